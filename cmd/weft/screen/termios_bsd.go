//go:build darwin || freebsd || netbsd

package screen

import "syscall"

// The requests that read and set a terminal's settings.
const (
	getTermios = syscall.TIOCGETA
	setTermios = syscall.TIOCSETA
)
