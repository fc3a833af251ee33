//go:build !(linux || darwin || freebsd || netbsd)

package screen

import "os"

// windowSize does not support terminals on this system: output is plain.
func windowSize(*os.File) (cols, rows int, ok bool) { return 0, 0, false }

// HideInput does not support terminals either: input stays visible.
func HideInput(*os.File) (show func()) { return nil }
