package screen

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Bar shows on a terminal the progress of long work; elsewhere it shows nothing.
type Bar struct {
	out   io.Writer
	on    bool
	shown bool
	last  time.Time
}

// progressEvery is how often the progress is shown.
const progressEvery = 100 * time.Millisecond

// NewBar makes a bar that shows nothing yet.
func NewBar(out io.Writer) *Bar { return &Bar{out: out, on: Of(out).Live} }

// Show shows the current work and its progress; total 0 means that the total is unknown.
func (p *Bar) Show(what string, done, total int) {
	if !p.on || time.Since(p.last) < progressEvery && total > 0 {
		return
	}
	p.last, p.shown = time.Now(), true
	line := what + " ..."
	if total > 0 {
		line = fmt.Sprintf("%s: %d of %d (%d%%)", what, done, total, done*100/total)
	}
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", line)
}

// Clear removes the line, so that other lines can be written.
func (p *Bar) Clear() {
	if p.shown {
		p.shown = false
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}

// Loading is a line that shows on a terminal the progress of loading; elsewhere it shows
// nothing. Its methods may be called from any goroutine.
type Loading struct {
	mu   sync.Mutex // guards the fields below
	out  io.Writer
	on   bool
	done int
	all  int
}

// NewLoading makes a line that counts to all; it shows nothing yet.
func NewLoading(out io.Writer, all int) *Loading {
	return &Loading{out: out, on: Of(out).Live, all: all}
}

// Step counts one more, and names it.
func (p *Loading) Step(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.on {
		_, _ = fmt.Fprintf(p.out, "%s%sloading examples: %d of %d, %s", LineStart, ClearBelow, p.done, p.all, name)
	}
}

// End removes the line.
func (p *Loading) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on {
		_, _ = fmt.Fprint(p.out, LineStart+ClearBelow)
	}
}
