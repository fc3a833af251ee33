package screen

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Working shows what a command does that takes time. On a terminal it is the last line,
// with a spinner and the seconds since the command began to work; what is written
// meanwhile stands above the line. Elsewhere each phase is a line of its own. All
// methods may be called from any goroutine.
type Working struct {
	out   io.Writer
	Quiet bool            // nothing is shown
	Size  func() Terminal // asked for each frame: windows change

	mu    sync.Mutex // guards what follows, and out
	what  string     // "": nothing is shown
	began time.Time
	frame int
	line  bool // the line is on the screen
	stop  chan struct{}
	ended chan struct{}
}

// NewWorking makes one that shows nothing yet.
func NewWorking(out io.Writer) *Working {
	return &Working{out: out, Size: func() Terminal { return Of(out) }}
}

// Phase shows what is done from now on. Elsewhere than on a terminal it writes a line.
func (w *Working) Phase(format string, args ...any) { w.show(true, format, args...) }

// Detail says on a terminal more of the phase.
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

// Done ends what is shown. It may be called twice, and again after a new phase.
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

// Write writes above the line, which comes back by itself.
func (w *Working) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.erase()
	return w.out.Write(text)
}

// spin draws the line again and again, until stop is closed.
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
	// A line as wide as the terminal could wrap, and count as two.
	_, _ = fmt.Fprint(w.out, LineStart+ClearBelow+screen.Paint(Cyan, mark)+" "+Cut(text, max(screen.Cols-3, leastColumn)))
}

// erase takes the line off the screen. The caller holds mu.
func (w *Working) erase() {
	if w.line {
		_, _ = fmt.Fprint(w.out, LineStart+ClearBelow)
		w.line = false
	}
}
