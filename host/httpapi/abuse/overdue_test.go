package abuse

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A connection without a request may be closed when its grace has passed, once. A
// connection with a request may not.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Bind(&http.Server{}, 3)
		b := &boundConn{of: c}
		for _, step := range []struct {
			state http.ConnState
			after time.Duration
			want  *boundConn
		}{
			{http.StateNew, newGrace - 1, nil},
			{http.StateNew, newGrace, b},
			{http.StateActive, time.Hour, nil},
			{http.StateIdle, idleGrace - 1, nil},
			{http.StateIdle, idleGrace, b},
			{http.StateClosed, time.Hour, nil},
		} {
			c.changed(b, step.state)
			time.Sleep(step.after) // the bubble's clock
			got, _ := c.overdue()
			if got != step.want {
				t.Errorf("%v after %v: %p is overdue, want %p", step.state, step.after, got, step.want)
			}
			if again, _ := c.overdue(); got != nil && again != nil {
				t.Errorf("%v: the connection is overdue twice", step.state)
			}
		}
	})
}
