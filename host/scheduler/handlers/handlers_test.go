package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

// world is a store and a journal for tests.
type world struct {
	*Reservations
	known   map[string]host.Handler
	broken  error
	durable uint64
	now     int64
	random  byte
}

func newWorld() *world {
	w := &world{known: map[string]host.Handler{}}
	w.Reservations = New(Config{
		Store: w, Journal: w, Now: func() int64 { return w.now },
		Entropy: func(p []byte) {
			for i := range p {
				p[i] = w.random
				w.random += 7
			}
		},
	})
	return w
}

// Durable implements Journal.
func (w *world) Durable() uint64 { return w.durable }

// Handler implements Store.
func (w *world) Handler(_ context.Context, tenant, id string) (host.Handler, error) {
	h, ok := w.known[tenant+"/"+id]
	if w.broken != nil {
		return h, w.broken
	}
	if !ok {
		return h, host.ErrNotFound
	}
	return h, nil
}

// take reserves a handler of workflow "w" and tenant "t".
func (w *world) take(handler, session string) (*Reservation, error) {
	return w.Take(context.Background(), &host.StartRequest{Tenant: "t", Workflow: "w", HandlerID: handler, SessionID: session})
}

// An id is taken until its start is durable, also if its client leaves before. A start that
// was refused gives the id back at once.
func TestAnIDIsTakenUntilItsStartIsDurable(t *testing.T) {
	w := newWorld()
	r, err := w.take("h", "")
	if err != nil {
		t.Fatal(err)
	}
	busy := func(when string, want bool) {
		t.Helper()
		other, err := w.take("h", "")
		if got := host.CodeOf(err) == host.CodeConflict; got != want {
			t.Errorf("%s: %v", when, err)
		}
		if err == nil {
			other.GiveBack()
		}
	}
	busy("while it starts", true)
	if other, err := w.Take(context.Background(), &host.StartRequest{Tenant: "u", HandlerID: "h"}); err != nil {
		t.Errorf("a handler of another tenant: %v", err)
	} else {
		other.GiveBack()
	}
	r.Pos = 5
	r.GiveBack()
	w.durable = 4
	busy("before the start is durable", true)
	if w.Left() == "" {
		t.Error("an id whose start is not durable is not left")
	}
	w.durable = 5
	busy("when the start is durable", false)
	if left := w.Left(); left != "" {
		t.Error(left)
	}
	r, err = w.take("h", "")
	if err != nil {
		t.Fatal(err)
	}
	r.GiveBack()
	busy("after a refusal", false)
}

// A handler whose run has ended may run again in its own session and workflow.
func TestReuse(t *testing.T) {
	w := newWorld()
	known := func(status host.Status) host.Handler {
		return host.Handler{HandlerID: "h", Workflow: "w", SessionID: "s", Run: host.Run{Status: status}}
	}
	ended, other := known(host.StatusCompleted), known(host.StatusCompleted)
	other.Workflow = "v"
	for _, c := range []struct {
		name    string
		known   host.Handler
		broken  error
		session string
		want    host.Code
	}{
		{"ended", ended, nil, "", ""},
		{"its session", ended, nil, "s", ""},
		{"another session", ended, nil, "x", host.CodeConflict},
		{"another workflow", other, nil, "", host.CodeConflict},
		{"running", known(host.StatusRunning), nil, "", host.CodeConflict},
		{"a store that does not answer", ended, errors.New("broken"), "", host.CodeUnavailable},
	} {
		w.known["t/h"], w.broken = c.known, c.broken
		r, err := w.take("h", c.session)
		if c.want != "" && host.CodeOf(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			if r.Session != "s" || r.Private {
				t.Errorf("%s: %+v", c.name, r)
			}
			r.GiveBack()
		}
		if left := w.Left(); left != "" {
			t.Errorf("%s: %s", c.name, left)
		}
	}
}

// A session is private only if nobody can know its id.
func TestPrivate(t *testing.T) {
	w := newWorld()
	for _, c := range []struct {
		handler, session string
		private          bool
	}{{"", "", true}, {"h", "", false}, {"", "s", false}, {"g", "s", false}} {
		req := &host.StartRequest{Tenant: "t", HandlerID: c.handler, SessionID: c.session}
		r, err := w.Take(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(c.session, req.HandlerID); c.session == "" && r.Session != want || c.session != "" && r.Session != c.session || r.Private != c.private {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// Prune forgets durable starts only when there are many. Forget takes one tenant.
func TestPruneAndForget(t *testing.T) {
	w := newWorld()
	for i := range pruneAbove + 1 {
		r, err := w.take(fmt.Sprint("h", i), "")
		if err != nil {
			t.Fatal(err)
		}
		r.Pos = uint64(i) + 1
		r.GiveBack()
	}
	w.Prune(pruneAbove)
	if len(w.starting) != 1 {
		t.Errorf("%d ids are left, want the one that is not durable", len(w.starting))
	}
	w.Prune(pruneAbove + 1)
	if len(w.starting) != 1 {
		t.Errorf("%d ids are left: few are not pruned", len(w.starting))
	}
	w.Forget("u")
	if len(w.starting) != 1 {
		t.Error("an id of another tenant is gone")
	}
	if w.Forget("t"); len(w.starting) != 0 {
		t.Error("an id of the tenant is left")
	}
}

// New ids have 12 letters and digits, and those of a later time sort later.
func TestNewID(t *testing.T) {
	w := newWorld()
	var ids []string
	for range 5 {
		ids = append(ids, w.NewID())
		w.now += int64(time.Second)
	}
	for _, id := range ids {
		if len(id) != 12 || strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("id %q", id)
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("ids are not in the order of their times: %q", ids)
	}
}

func TestCheckID(t *testing.T) {
	for id, want := range map[string]bool{
		"": true, "a b": true, strings.Repeat("x", maxID): true, strings.Repeat("x", maxID+1): false,
		"\xff": false, "a\nb": false, ".": false, "..": false, "...": true,
	} {
		err := CheckStart(&host.StartRequest{SessionID: id})
		if got := err == nil; got != want {
			t.Errorf("session %q: %v", id, err)
		}
		if err = CheckStart(&host.StartRequest{HandlerID: id}); (err == nil) != want {
			t.Errorf("handler %q: %v", id, err)
		}
	}
}
