package screen

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Working shows the current work of a command. On a terminal it is the last line, with a
// spinner and the seconds since the work began; other output appears above the line.
// Elsewhere each phase is a line of its own. All methods may be called from any
// goroutine.
type Working struct {
	out   io.Writer
	Quiet bool            // nothing is shown
	Size  func() Terminal // called for each frame: windows change their size

	mu    sync.Mutex // guards the fields below, and out
	what  string     // "": nothing is shown
	began time.Time
	frame int
	line  bool // the line is on the screen
	stop  chan struct{}
	ended chan struct{}
}

// NewWorking creates a Working that shows nothing yet.
func NewWorking(out io.Writer) *Working {
	return &Working{out: out, Size: func() Terminal { return Of(out) }}
}

// Phase shows a new phase. If the output is not a terminal, it writes a line.
func (w *Working) Phase(format string, args ...any) { w.show(true, format, args...) }

// Detail shows a detail of the phase on a terminal.
func (w *Working) Detail(format string, args ...any) { w.show(false, format, args...) }

func (w *Working) show(everywhere bool, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	switch {
	case w.Quiet:
	case w.Size().Live:
		w.what = what
		if w.stop == nil {
			w.began, w.stop, w.ended = time.Now(), make(chan struct{}), make(chan struct{})
			go w.spin(w.stop, w.ended)
		}
		w.draw()
	case everywhere:
		_, _ = fmt.Fprintln(w.out, what)
	}
}

// Done removes the line. It may be called twice, and again after a new phase.
func (w *Working) Done() {
	w.mu.Lock()
	stop, ended := w.stop, w.ended
	w.stop = nil
	w.erase()
	w.what = ""
	w.mu.Unlock()
	if stop != nil {
		close(stop)
		<-ended
	}
}

// Write writes above the line, which reappears by itself.
func (w *Working) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.erase()
	return w.out.Write(text)
}

// spin redraws the line until stop is closed.
func (w *Working) spin(stop, ended chan struct{}) {
	defer close(ended)
	tick := time.NewTicker(FrameEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		w.draw()
		w.mu.Unlock()
	}
}

// draw draws the line. The caller holds mu.
func (w *Working) draw() {
	if w.what == "" {
		return
	}
	text := fmt.Sprintf("%s, %d s", w.what, int(time.Since(w.began).Seconds()))
	mark, screen := string(Spinner[w.frame%len(Spinner)]), w.Size()
	w.frame++
	w.line = true
	// A line as wide as the terminal could wrap, and occupy two lines.
	_, _ = fmt.Fprint(w.out, LineStart+ClearBelow+screen.Paint(Cyan, mark)+" "+Cut(text, max(screen.Cols-3, leastColumn)))
}

// erase takes the line off the screen. The caller holds mu.
func (w *Working) erase() {
	if w.line {
		_, _ = fmt.Fprint(w.out, LineStart+ClearBelow)
		w.line = false
	}
}
