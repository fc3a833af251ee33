//go:build linux || darwin || freebsd || netbsd

package screen

import (
	"os"
	"syscall"
	"unsafe"
)

// HideInput has the terminal behind the file not show what is entered, until the
// function that it gives is called; nil: the file is no terminal.
func HideInput(f *os.File) (show func()) {
	var was syscall.Termios
	if !termios(f, getTermios, &was) {
		return nil
	}
	hidden := was
	hidden.Lflag &^= syscall.ECHO
	hidden.Lflag |= syscall.ICANON | syscall.ISIG
	if !termios(f, setTermios, &hidden) {
		return nil
	}
	return func() { termios(f, setTermios, &was) } // a terminal that has gone shows nothing
}

// termios reads or sets a terminal's settings, and says whether it could.
func termios(f *os.File, request uintptr, t *syscall.Termios) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(t)))
	return errno == 0
}

// windowSize asks the terminal behind the file for its size; ok is false when
// there is none.
func windowSize(f *os.File) (cols, rows int, ok bool) {
	var size struct{ rows, cols, width, height uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.cols), int(size.rows), errno == 0
}
