// Package memory lends linear memories to WebAssembly instances, and restores an
// instance's memory to a snapshot.
//
// A [Pool] lends a [Linear], whose address space is reserved in advance. Growth therefore
// neither copies nor moves the memory, and cannot fail for lack of address space. All of
// a reservation is readable and writable. Protecting the part beyond the size would need
// a system call for each growth, which may fail, and compiled code checks bounds itself.
// A [Snapshot] is the contents of a memory. It fills fresh memories, resets used memories
// in place, and can be kept on disk.
//
// Some kernels report which pages were written (Linux 6.7 and later, unless a container's
// rules forbid userfaultfd; see track.go). There a reset costs what was written;
// elsewhere a reset compares all pages. In microseconds, on two quiet cores of a virtual
// machine, with the same pages written each time unless a third number says how many
// change:
//
//	reset of               compared   tracked
//	128 KiB, 3 pages            2.3       0.7
//	128 KiB, 3, one other       2.2       2.4
//	3 MiB, 3 pages              145       1.6
//	3 MiB, 15, five others      160        10
//	3 MiB, 30 pages             150       4.4
//	3 MiB, 30, ten others       165        16
//	16 MiB, 30 pages            900         8
//
//	a memory like a snapshot of 3 MiB, three quarters of it not zero
//	renewed, after growth                 2.7
//	shrunk, in its instance               2.7
//	of a region kept                      210
//	of a region kept, filled late         285
//	newly reserved                        480
//
// A standard Go guest with an image of 3.1 MiB writes 24 pages in a small invocation.
// Tracking reduced its reset from 127 to 6 us, and the invocation itself from 97 to 48
// us, because the comparison no longer empties the processor's caches. Comparing more
// than 4 KiB at a time, and testing for zeroes without a page of zeroes to compare with,
// gained nothing: the comparison waits for memory. Clearing a page costs 0.1 us and
// getting a new one from the host costs 0.7 us or more, so memories are kept and cleared.
//
// The package must not depend on what runs in a memory: no module, guest, call or tenant.
package memory
