package sandbox

import "strings"

// keptTail is how much of a guest's output is kept: more than a message shows,
// as a panic's text is followed by a trace of the goroutines.
const keptTail = 4096

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

// text gives the part to show, in one line: from the last panic on, without
// the trace that follows it, else the end.
func (t *tail) text() string {
	text := string(t.b)
	for _, mark := range []string{"panic: ", "fatal error: "} {
		if i := strings.LastIndex("\n"+text, "\n"+mark); i >= 0 {
			text, _, _ = strings.Cut(text[i:], "\n\n")
			return oneLine(text[:min(len(text), maxTailText)])
		}
	}
	return oneLine(text[max(0, len(text)-maxTailText):])
}
