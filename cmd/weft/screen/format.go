package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/weftrun/weft/host"
)

// shortDigest is the length of a digest for people, in characters.
const shortDigest = 12

// Ago says how long ago a time was.
func Ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// Span formats a duration with the precision that people need.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Bytes formats a size in decimal units.
func Bytes(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

// Counted returns a number with its noun.
func Counted(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Digest shortens a digest for people.
func Digest(s string) string { return s[:min(len(s), shortDigest)] }

// Stamp formats a time of the server in the local time zone.
func Stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// Indented indents JSON for people.
func Indented(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text) // an answer that is not JSON is shown unchanged
	}
	return b.String()
}

// Compact returns a JSON text in one line.
func Compact(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return PrintableJSON(b.String())
}

// Quote writes a JSON string.
func Quote(s string) []byte {
	text, _ := json.Marshal(s) // every string can be encoded
	return text
}

// Grouped returns a number with commas.
func Grouped(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TimeoutOf describes the timeout of a workflow's runs.
func TimeoutOf(t host.WorkflowTimeout) string {
	switch {
	case t.Span <= 0:
		return "none"
	case t.Set:
		return t.Span.String() + ", with its waits"
	}
	return t.Span.String() + " of work, without its waits"
}
