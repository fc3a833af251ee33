//go:build linux || darwin || freebsd || netbsd

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// windowSize asks the terminal behind the file for its size; ok is false when
// there is none.
func windowSize(f *os.File) (cols, rows int, ok bool) {
	var size struct{ rows, cols, width, height uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.cols), int(size.rows), errno == 0
}
