package main

import (
	"fmt"
	"sync"
	"time"
)

// working shows on a terminal, until done is called, what takes time and for how long it
// has; elsewhere it shows nothing. done may be called twice.
func (r *remote) working(format string, args ...any) (done func()) {
	if r.json || !terminalOf(r.errs).live {
		return func() {}
	}
	what := fmt.Sprintf(format, args...)
	began, stop, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			line := fmt.Sprintf("%c %s, %d s", spinner[n%len(spinner)], what, int(time.Since(began).Seconds()))
			_, _ = fmt.Fprintf(r.errs, "%s%s%s", toLineStart, clearBelow, cut(line, max(terminalOf(r.errs).cols-1, leastColumn)))
			select {
			case <-stop:
				_, _ = fmt.Fprint(r.errs, toLineStart+clearBelow)
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
}
