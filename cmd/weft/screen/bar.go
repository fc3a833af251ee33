package screen

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Bar shows the progress of long work: on a terminal a line that changes, elsewhere a line
// each 10 seconds, so that short work prints nothing there. It is for one goroutine.
type Bar struct {
	out   io.Writer
	live  bool // a terminal
	shown bool // the line is on the terminal
	last  time.Time

	what  string    // the current work
	began time.Time // when the current work began
	from  int       // what was done of it then
}

// How often the progress is shown.
const (
	progressEvery = 100 * time.Millisecond // on a terminal
	logEvery      = 10 * time.Second       // elsewhere
)

// rateAfter is the time after which a rate means something.
const rateAfter = time.Second

// NewBar makes a bar that shows nothing yet.
func NewBar(out io.Writer) *Bar { return &Bar{out: out, live: Of(out).Live} }

// Show shows the current work and its progress, both in items of any kind; total 0 means
// that the total is unknown. After a second Show adds the rate and the time that is left.
func (p *Bar) Show(what string, done, total int) {
	now := time.Now()
	fresh := what != p.what
	if fresh {
		p.what, p.began, p.from = what, now, done
	}
	every := progressEvery
	if !p.live {
		every = logEvery
		if p.last.IsZero() {
			p.last = now
		}
	}
	if now.Sub(p.last) < every && (!p.live || !fresh) {
		return
	}
	p.last = now
	line := p.line(done, total, now.Sub(p.began))
	if !p.live {
		_, _ = fmt.Fprintln(p.out, line)
		return
	}
	p.shown = true
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", line)
}

// line describes the current work, which has taken a time.
func (p *Bar) line(done, total int, took time.Duration) string {
	line := p.what + " ..."
	switch {
	case total > 0:
		line = fmt.Sprintf("%s: %d of %d (%d%%)", p.what, done, total, done*100/total)
	case done > 0:
		line = fmt.Sprintf("%s: %d", p.what, done)
	}
	// A copy that continues began with some of the work done: the rate counts the rest.
	if did := done - p.from; did > 0 && took >= rateAfter {
		rate := float64(did) / took.Seconds()
		line += fmt.Sprintf(", %.0f a second", rate)
		if done < total {
			left := time.Duration(float64(total-done) / rate * float64(time.Second))
			line += ", " + left.Round(time.Second).String() + " left"
		}
	}
	return line
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
