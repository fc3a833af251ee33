package screen

import (
	"os"
	"strings"

	"github.com/weftrun/weft/host"
)

// Select Graphic Rendition of terminals (ECMA-48).
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
)

// wantsColor reports whether a terminal may show colours. It may not if NO_COLOR is set
// to any non-empty value (no-color.org).
func wantsColor() bool { return os.Getenv("NO_COLOR") == "" }

// Paint returns text that is ready to be shown, in a colour if the terminal shows
// colours.
func (t Terminal) Paint(color, text string) string {
	if !t.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// statusColor returns the colour of a run's status in the words of statusOf; "": none.
func statusColor(text string) string {
	status, more, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch host.Status(status) {
	case host.StatusCompleted:
		return Green
	case host.StatusFailed:
		return Red
	case host.StatusCancelled:
		return Yellow
	case host.StatusRunning:
		if more != "" { // blocked or paused
			return Yellow
		}
		return Cyan
	}
	return ""
}
