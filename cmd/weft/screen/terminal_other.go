//go:build !(linux || darwin || freebsd || netbsd)

package screen

import "os"

// windowSize does not support terminals on this system: output is plain.
func windowSize(*os.File) (cols, rows int, ok bool) { return 0, 0, false }

// HideInput knows none either: what is entered is shown as it is entered.
func HideInput(*os.File) (show func()) { return nil }
