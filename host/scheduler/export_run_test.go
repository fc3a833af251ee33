package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

// TestExport: a run leaves one server and goes on in another; of one that has ended
// a new one starts on its state.
func TestExport(t *testing.T) {
	runs := 0
	modules := newSimModules(t, map[string]string{"two": asking, "kid": asked})
	b := &bench{tokens: 1, modules: modules}
	b.guest = named(&runs)
	b.open(t)
	run := b.start("h", "s")
	b.rest()
	b.advance(5 * time.Minute)
	b.send(t, "h") // it sleeps for an hour now
	b.advance(20 * time.Minute)
	open, err := b.sched.Export(t.Context(), "t", "h")
	if err != nil || open.Version != 1 || open.Workflow != "two" || open.RunID != run.RunID || open.Status != host.StatusRunning || len(open.Modules) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	b.through(t, "h")
	over, err := b.sched.Export(t.Context(), "t", run.RunID)
	if err != nil || over.Status != host.StatusCompleted || len(over.Modules) != 0 {
		t.Fatalf("%+v, %v", over, err)
	}

	other := &bench{tokens: 1, modules: modules}
	other.guest = named(&runs)
	other.open(t)
	begin := func(handler, session string, from host.RunSnapshot) (host.Run, error) {
		return await(other, func() (host.Run, error) {
			return other.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: handler, SessionID: session, Snapshot: &from})
		})
	}
	copied, err := begin("copy", "", open)
	if err != nil || copied.HandlerID != "copy" || copied.SessionID != "copy" || copied.RunID == run.RunID || len(copied.WaitingFor) != 1 {
		t.Fatalf("%+v, %v", copied, err)
	}
	if left := time.Unix(0, copied.WaitingFor[0].Until).Sub(other.clock()); left != time.Hour { // the newest entry is that of the sleep
		t.Errorf("it sleeps for another %s", left)
	}
	if done := other.through(t, "copy"); done.Status != host.StatusCompleted || !strings.Contains(string(done.Result.Body), "\x18\x6f") {
		t.Errorf("the copy: %+v", done)
	}
	if _, err := begin("fresh", "", over); err != nil {
		t.Fatal(err)
	}
	if done := other.through(t, "fresh"); done.Status != host.StatusCompleted || !strings.Contains(string(done.Result.Body), "\x18\xde") { // 222: on the state
		t.Errorf("a run on the state of one that has ended: %x", done.Result.Body)
	}

	change := func(f func(s *host.RunSnapshot)) host.RunSnapshot {
		s := open
		f(&s)
		return s
	}
	for _, c := range []struct {
		handler, session string
		from             host.RunSnapshot
		code             host.Code
		text             string
	}{
		{"copy", "", open, host.CodeConflict, "Handler 'copy' exists"},
		{"n1", "copy", open, host.CodeConflict, "Session 'copy' has been used"},
		{"n2", "", change(func(s *host.RunSnapshot) { s.Workflow = "kid" }), host.CodeInvalidArgument, "of workflow 'kid'"},
		{"n3", "", change(func(s *host.RunSnapshot) { s.Session = []byte("garbage") }), host.CodeInvalidArgument, "cannot be used here"},
		{"n4", "", change(func(s *host.RunSnapshot) { s.Held = []byte("garbage") }), host.CodeInvalidArgument, "cannot be used here"},
		{"n5", "", change(func(s *host.RunSnapshot) { s.RunID = "nobody" }), host.CodeInvalidArgument, "not of the run that it names"},
	} {
		if _, err := begin(c.handler, c.session, c.from); host.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %s with %q", c.handler, err, c.code, c.text)
		}
	}
	if _, err := other.sched.Export(t.Context(), "t", "nobody"); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("nobody's: %v", err)
	}
}

// runsGone is a store of which the runs are deleted once their handlers were read.
type runsGone struct{ host.Store }

func (runsGone) Run(context.Context, string, string) (host.Run, error) {
	return host.Run{}, host.ErrNotFound
}

// A run that is purged while somebody exports it is not there: that is no fault of
// the store.
func TestExportOfARunThatIsPurged(t *testing.T) {
	b := (&bench{guest: quiet(0)}).open(t)
	b.start("h", "")
	b.advance(2 * time.Minute)
	b.rest()
	b.store = runsGone{b.store}
	b = b.open(t)
	_, err := await(b, func() (host.RunSnapshot, error) { return b.sched.Export(t.Context(), "t", "h") })
	if host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("Export = %v", err)
	}
}
