//go:build linux || darwin || freebsd || netbsd

package screen

import (
	"os"
	"syscall"
	"unsafe"
)

// HideInput stops the terminal from showing input, until the returned function is called.
// It returns nil if the file is not a terminal.
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
	return func() { termios(f, setTermios, &was) } // a terminal that is gone shows nothing
}

// termios reads or sets a terminal's settings, and reports whether that succeeded.
func termios(f *os.File, request uintptr, t *syscall.Termios) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(t)))
	return errno == 0
}

// windowSize asks the terminal behind the file for its size; ok is false if the file is
// not a terminal.
func windowSize(f *os.File) (cols, rows int, ok bool) {
	var size struct{ rows, cols, width, height uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.cols), int(size.rows), errno == 0
}
