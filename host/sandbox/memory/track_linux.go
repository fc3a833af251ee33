//go:build linux && (amd64 || arm64)

package memory

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of the kernel's interface, from its headers userfaultfd.h and fs.h.
const (
	uffdAPI            = 0xaa
	uffdUserModeOnly   = 1
	uffdIOAPI          = 0xc018aa3f
	uffdIORegister     = 0xc020aa00
	uffdIOWriteProtect = 0xc018aa06
	uffdRegisterWP     = 1 << 1
	uffdWPUnpopulated  = 1 << 13
	uffdWPAsync        = 1 << 15

	pagemapScan      = 0xc0606610
	scanWPMatching   = 1 << 0
	scanCheckWPAsync = 1 << 1
	pageIsWritten    = 1 << 1
)

// maxParts is the most parts that one call of the kernel reports.
const maxParts = 128

// tracker asks the kernel which pages were written. Memories are registered with a
// userfaultfd whose write protection removes itself without waking a thread. A page
// without protection counts as written. Methods may be called from any goroutine, for
// different memories.
type tracker struct {
	uffd    int
	pagemap int
}

// The kernel's uffdio_api, uffdio_register, uffdio_writeprotect, pm_scan_arg and
// page_region.
type (
	apiArg      struct{ api, features, ioctls uint64 }
	registerArg struct{ start, size, mode, ioctls uint64 }
	protectArg  struct{ start, size, mode uint64 }
	scanArg     struct {
		size, flags, start, end, walkEnd, vec, vecLen, maxPages         uint64
		categoryInverted, categoryMask, categoryAnyOfMask, returnedMask uint64
	}
	pageRegion struct{ start, end, _ uint64 } // the third field: categories
)

// scan holds what the kernel reports about one memory.
type scan struct {
	arg   scanArg
	vec   [maxParts]pageRegion
	parts [maxParts]part
}

// part is a part of a memory, in bytes from its beginning.
type part struct{ from, to int }

func ioctl(fd int, request uintptr, arg unsafe.Pointer) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// newTracker returns a tracker that has passed its test, or an error.
func newTracker() (*tracker, error) {
	if os.Getpagesize() != pageBytes {
		return nil, fmt.Errorf("pages of %d bytes", os.Getpagesize())
	}
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return nil, fmt.Errorf("userfaultfd: %w", errno)
	}
	t := &tracker{uffd: int(fd), pagemap: -1}
	if err := t.begin(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tracker) begin() (err error) {
	api := apiArg{api: uffdAPI, features: uffdWPAsync | uffdWPUnpopulated}
	if _, err := ioctl(t.uffd, uffdIOAPI, unsafe.Pointer(&api)); err != nil {
		return fmt.Errorf("userfaultfd's features: %w", err)
	}
	if t.pagemap, err = unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open the page map: %w", err)
	}
	return t.test()
}

// close closes the descriptors; a nil tracker has none. Registered memories are not
// tracked any more.
func (t *tracker) close() {
	if t == nil {
		return
	}
	if t.pagemap >= 0 {
		_ = unix.Close(t.pagemap)
	}
	_ = unix.Close(t.uffd)
}

// register begins to track a mapping, until the mapping is unmapped. All of the mapping
// counts as written.
//
// The scan must be on the heap: the kernel receives an address inside it that the
// compiler does not see, and stacks move.
//
//go:noinline
func (t *tracker) register(base []byte) (*scan, error) {
	arg := registerArg{start: address(base), size: uint64(len(base)), mode: uffdRegisterWP}
	if _, err := ioctl(t.uffd, uffdIORegister, unsafe.Pointer(&arg)); err != nil {
		return nil, fmt.Errorf("register a memory: %w", err)
	}
	return new(scan), nil
}

func address(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// protect marks the pages of mem as not written until they are written.
func (t *tracker) protect(s *scan, mem []byte) error {
	s.arg = scanArg{
		flags: scanWPMatching | scanCheckWPAsync, categoryMask: pageIsWritten,
	}
	_, err := t.walk(s, mem)
	return err
}

// unprotect marks the pages of mem as written, so that writes to them do not fault.
func (t *tracker) unprotect(mem []byte) error {
	arg := protectArg{start: address(mem), size: uint64(len(mem))}
	if _, err := ioctl(t.uffd, uffdIOWriteProtect, unsafe.Pointer(&arg)); err != nil {
		return fmt.Errorf("end the protection of a memory: %w", err)
	}
	return nil
}

// scan reports which parts of mem were written since they were protected, and up to where
// it has looked; a further call covers the rest. The parts are in order and valid until
// the next call.
func (t *tracker) scan(s *scan, mem []byte) (parts []part, end int, err error) {
	s.arg = scanArg{
		flags: scanCheckWPAsync, categoryMask: pageIsWritten, returnedMask: pageIsWritten,
		vec: uint64(uintptr(unsafe.Pointer(&s.vec))), vecLen: maxParts,
	}
	n, err := t.walk(s, mem)
	if err != nil {
		return nil, 0, err
	}
	start := address(mem)
	for i, r := range s.vec[:n] {
		s.parts[i] = part{int(r.start - start), int(r.end - start)}
	}
	return s.parts[:n], int(s.arg.walkEnd - start), nil
}

func (t *tracker) walk(s *scan, mem []byte) (n int, err error) {
	s.arg.size = uint64(unsafe.Sizeof(s.arg))
	s.arg.start = address(mem)
	s.arg.end = s.arg.start + uint64(len(mem))
	n, err = ioctl(t.pagemap, pagemapScan, unsafe.Pointer(&s.arg))
	runtime.KeepAlive(s)
	if err == nil && (s.arg.walkEnd <= s.arg.start || s.arg.walkEnd > s.arg.end) {
		err = errors.New("the kernel did not look at any page")
	}
	if err != nil {
		return 0, fmt.Errorf("scan the page map: %w", err)
	}
	return n, nil
}

// test checks on a small mapping that every write is reported, whoever writes and
// whatever the page held before, and that reading alone is not reported.
func (t *tracker) test() error {
	const pages = PageBytes / pageBytes
	mem, err := reserve(PageBytes)
	if err != nil {
		return err
	}
	defer func() { _ = unreserve(mem) }()
	s, err := t.register(mem)
	if err != nil {
		return err
	}
	write := func(page int) { mem[page*pageBytes]++ }
	for page := range pages / 2 { // the others stay untouched for now
		write(page)
	}
	steps := []struct {
		do   func() error
		want [pages]bool
	}{
		{func() error { return t.protect(s, mem) }, [pages]bool{}},
		{func() error { write(1); write(3); write(4); write(9); return nil }, [pages]bool{1: true, 3: true, 4: true, 9: true}},
		{func() error { // a page that is only read
			if write(3); mem[12*pageBytes] == 0 {
				write(15)
			}
			return nil
		}, [pages]bool{1: true, 3: true, 4: true, 9: true, 15: true}},
		{func() error { return t.protect(s, mem) }, [pages]bool{}},
		{func() error { // the kernel writes
			_, err := unix.Pread(t.pagemap, mem[5*pageBytes:5*pageBytes+8], 0)
			return err
		}, [pages]bool{5: true}},
		{func() error { write(9); return nil }, [pages]bool{5: true, 9: true}},
	}
	for i, step := range steps {
		if err := step.do(); err != nil {
			return err
		}
		parts, end, err := t.scan(s, mem)
		if err != nil {
			return err
		}
		var told [pages]bool
		for _, p := range parts {
			for at := p.from; at < p.to; at += pageBytes {
				told[at/pageBytes] = true
			}
		}
		if told != step.want || end != len(mem) {
			return fmt.Errorf("step %d of the test: pages %v were reported, want %v", i, told, step.want)
		}
	}
	return nil
}
