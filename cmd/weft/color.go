package main

import (
	"os"
	"strings"

	"github.com/weftrun/weft/host"
)

// Select Graphic Rendition of terminals (ECMA-48).
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// wantsColor reports whether a terminal may show colours: NO_COLOR, if it is set to
// anything, says no (no-color.org).
func wantsColor() bool { return os.Getenv("NO_COLOR") == "" }

// paint gives text that is ready to be shown, in a colour if the terminal shows colours.
func (t terminal) paint(color, text string) string {
	if !t.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// statusColor gives the colour of a run's status, as statusOf words it; "": none.
func statusColor(text string) string {
	status, more, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch host.Status(status) {
	case host.StatusCompleted:
		return green
	case host.StatusFailed:
		return red
	case host.StatusCancelled:
		return yellow
	case host.StatusRunning:
		if more != "" { // blocked or paused
			return yellow
		}
		return cyan
	}
	return ""
}
