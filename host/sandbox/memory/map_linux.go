package memory

import "golang.org/x/sys/unix"

// noReserve has the host not count untouched memory, if it may choose.
const noReserve = unix.MAP_NORESERVE

// smallPages keeps huge pages away: what is written is found page by page, and a
// guest of 128 KiB should not take 2 MiB. A kernel without them refuses.
func smallPages(base []byte) { _ = unix.Madvise(base, unix.MADV_NOHUGEPAGE) }

// populate has the host give the memory of a part at once, instead of at a fault
// for each page. Kernels before 5.14 refuse.
func populate(part []byte) { _ = unix.Madvise(part, unix.MADV_POPULATE_WRITE) }

// discard gives the memory back to the host; it is zero then.
func discard(part []byte) error { return unix.Madvise(part, unix.MADV_DONTNEED) }
