package screen

import (
	"fmt"
	"time"
)

// FrameEvery is how often what moves is drawn anew.
const FrameEvery = 100 * time.Millisecond

// Control sequences of terminals (ECMA-48).
const (
	LineStart  = "\r"
	UpLines    = "\x1b[%dA" // by that many
	ClearBelow = "\x1b[J"
)

// Spinner has the frames of a sign that work goes on.
var Spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Elapsed shows a time that goes on, in steps that one can follow.
func Elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return Span(d)
}
