//go:build linux || darwin

package blackbox

import (
	"os"
	"syscall"
)

// mapFile maps a file as shared memory, and locks it in memory if the system allows.
func mapFile(f *os.File, size int) ([]byte, error) {
	mem, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	_ = syscall.Mlock(mem) // otherwise a page may have to be read again, which only takes time
	return mem, nil
}

func unmapFile(mem []byte) error { return os.NewSyscallError("munmap", syscall.Munmap(mem)) }
