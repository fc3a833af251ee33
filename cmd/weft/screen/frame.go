package screen

import (
	"fmt"
	"time"
)

// FrameEvery is how often animated text is redrawn.
const FrameEvery = 100 * time.Millisecond

// Control sequences of terminals (ECMA-48).
const (
	LineStart  = "\r"
	UpLines    = "\x1b[%dA" // takes the number of lines
	ClearBelow = "\x1b[J"
)

// Spinner has the frames of a sign that work continues.
var Spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Elapsed formats a running time in steps that people can follow.
func Elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return Span(d)
}
