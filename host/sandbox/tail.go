package sandbox

import "strings"

// keptTail is how much of a guest's output is kept. It exceeds what a message shows,
// because a trace of the goroutines follows the text of a panic.
const keptTail = 4096

// panicMark is how Go, TinyGo and the Rust SDK begin the text of a panic.
const panicMark = "panic: "

// tail keeps the end of what a guest printed.
type tail struct{ b []byte }

func (t *tail) reset() { t.b = t.b[:0] }

func (t *tail) write(text []byte) {
	if len(text) > keptTail {
		text = text[len(text)-keptTail:]
	}
	if surplus := len(t.b) + len(text) - keptTail; surplus > 0 {
		t.b = append(t.b[:0], t.b[surplus:]...)
	}
	t.b = append(t.b, text...)
}

// text returns the part to show, in one line: from the last panic on, without the trace
// that follows it, otherwise the end.
func (t *tail) text() string {
	if mark, text, ok := t.lastPanic(); ok {
		return mark + text
	}
	text := string(t.b)
	return oneLine(text[max(0, len(text)-maxTailText):])
}

// lastPanic returns the text of the last panic, in one line, and the mark that identified
// it.
func (t *tail) lastPanic() (mark, text string, ok bool) {
	all := "\n" + string(t.b)
	for _, mark := range []string{panicMark, "fatal error: "} {
		if i := strings.LastIndex(all, "\n"+mark); i >= 0 {
			text, _, _ := strings.Cut(all[i+1+len(mark):], "\n\n")
			return mark, oneLine(text[:min(len(text), maxTailText)]), true
		}
	}
	return "", "", false
}
