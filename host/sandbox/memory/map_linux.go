package memory

import "golang.org/x/sys/unix"

// noReserve asks the host not to count untouched memory, if its settings leave the
// choice.
const noReserve = unix.MAP_NORESERVE

// smallPages disables huge pages: written pages are found page by page, and a guest of
// 128 KiB should not take 2 MiB. A kernel without huge pages returns an error, which is
// ignored.
func smallPages(base []byte) { _ = unix.Madvise(base, unix.MADV_NOHUGEPAGE) }

// populate asks the host for the memory of a part at once, instead of one fault for each
// page. Kernels before 5.14 return an error, which is ignored.
func populate(part []byte) { _ = unix.Madvise(part, unix.MADV_POPULATE_WRITE) }

// discard returns the memory to the host; it then reads as zero.
func discard(part []byte) error { return unix.Madvise(part, unix.MADV_DONTNEED) }
