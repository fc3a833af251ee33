//go:build linux || darwin || freebsd || netbsd

package main

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hideInput has the terminal behind the file not show what is entered, until the
// function that it gives is called; nil: the file is no terminal.
func hideInput(f *os.File) (show func()) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	if unix.IoctlSetTermios(fd, setTermios, &hidden) != nil {
		return nil
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) } // a terminal that has gone shows nothing
}

// windowSize asks the terminal behind the file for its size; ok is false when
// there is none.
func windowSize(f *os.File) (cols, rows int, ok bool) {
	var size struct{ rows, cols, width, height uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.cols), int(size.rows), errno == 0
}
