package screen

import "syscall"

// The requests that read and set a terminal's settings.
const (
	getTermios = syscall.TCGETS
	setTermios = syscall.TCSETS
)
