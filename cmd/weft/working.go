package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// working shows what a command does that takes time. On a terminal it is the last line,
// with a spinner and the seconds since the command began to work; what is written
// meanwhile stands above the line. Elsewhere each phase is a line of its own. All
// methods may be called from any goroutine.
type working struct {
	out   io.Writer
	quiet bool            // nothing is shown
	size  func() terminal // asked for each frame: windows change

	mu    sync.Mutex // guards what follows, and out
	what  string     // "": nothing is shown
	began time.Time
	frame int
	line  bool // the line is on the screen
	stop  chan struct{}
	ended chan struct{}
}

// newWorking makes one that shows nothing yet.
func newWorking(out io.Writer) *working {
	return &working{out: out, size: func() terminal { return terminalOf(out) }}
}

// working begins to show what a command does.
func (r *remote) working() *working {
	w, ok := r.errs.(*working)
	if !ok {
		w = newWorking(r.errs)
	}
	w.quiet = r.json
	return w
}

// phase shows what is done from now on. Elsewhere than on a terminal it writes a line.
func (w *working) phase(format string, args ...any) { w.show(true, format, args...) }

// detail says on a terminal more of the phase.
func (w *working) detail(format string, args ...any) { w.show(false, format, args...) }

func (w *working) show(everywhere bool, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	switch {
	case w.quiet:
	case w.size().live:
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

// done ends what is shown. It may be called twice, and again after a new phase.
func (w *working) done() {
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
func (w *working) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.erase()
	return w.out.Write(text)
}

// spin draws the line again and again, until stop is closed.
func (w *working) spin(stop, ended chan struct{}) {
	defer close(ended)
	tick := time.NewTicker(frameEvery)
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
func (w *working) draw() {
	if w.what == "" {
		return
	}
	text := fmt.Sprintf("%s, %d s", w.what, int(time.Since(w.began).Seconds()))
	mark, screen := string(spinner[w.frame%len(spinner)]), w.size()
	w.frame++
	w.line = true
	// A line as wide as the terminal could wrap, and count as two.
	_, _ = fmt.Fprint(w.out, toLineStart+clearBelow+screen.paint(cyan, mark)+" "+cut(text, max(screen.cols-3, leastColumn)))
}

// erase takes the line off the screen. The caller holds mu.
func (w *working) erase() {
	if w.line {
		_, _ = fmt.Fprint(w.out, toLineStart+clearBelow)
		w.line = false
	}
}
