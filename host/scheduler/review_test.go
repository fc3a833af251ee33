package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// quiet is a guest that emits so many Work events and does nothing else.
func quiet(n int) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, c *call) (abi.StepOutput, error) {
		switch c.in.Step {
		case "begin":
			return list(n), nil
		case "close":
			return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: abi.EmptyMap}}}, nil
		}
		return abi.StepOutput{}, nil
	}
}

// A cancelled run's attempts that wait for a token take one and give it back
// without running: those behind them must not wait for a chance wake-up.
func TestTokensOfAbandonedAttemptsAreGivenOn(t *testing.T) {
	b := (&bench{tokens: 1, guest: quiet(20)}).open(t)
	b.rest()
	cancelled := make(chan error, 1)
	var run host.Run
	var errStart error
	started := make(chan struct{})
	go func() {
		run, errStart = b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", SessionID: "s"})
		close(started)
	}()
	for waiting := true; waiting; { // the start's one attempt runs; its twenty wait
		select {
		case <-started:
			waiting = false
		default:
			b.commit()
		}
	}
	if errStart != nil {
		t.Fatal(errStart)
	}
	for b.sched.Counters().Attempts == 0 {
		for _, w := range b.step() {
			w()
		}
	}
	go func() {
		_, err := b.sched.Cancel(t.Context(), "t", run.RunID, false)
		cancelled <- err
	}()
	for waiting := true; waiting; {
		select {
		case err := <-cancelled:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		default:
			b.commit()
		}
	}
	for n := 0; b.sched.Counters().Attempts < 30 && n < 100; n++ {
		for _, w := range b.step() {
			drained(b)
			w()
			if b.sched.Overslept() {
				t.Fatal("a token is free, attempts are ready, and nobody is woken")
			}
		}
	}
	b.rest()
	if leak := b.sched.Leak(); leak != "" {
		t.Fatal(leak)
	}
}

// drained takes the wake-up that is there.
func drained(b *bench) {
	select {
	case <-b.sched.Wake():
	default:
	}
}

// heldDue is a store whose answer about due sessions can be held up.
type heldDue struct {
	host.Store
	asked, answer chan struct{}
}

func (h *heldDue) Due(ctx context.Context, until int64, limit int) ([]host.SessionKey, int64, error) {
	keys, next, err := h.Store.Due(ctx, until, limit)
	if h.asked != nil {
		h.asked <- struct{}{}
		<-h.answer
	}
	return keys, next, err
}

// The answer about due sessions is old when it comes: a session that left
// memory meanwhile has noted its timer, which the answer does not know.
func TestTimerOfASessionEvictedWhileTheStoreIsAsked(t *testing.T) {
	b := (&bench{guest: quiet(0)}).open(t)
	slow := &heldDue{Store: b.store}
	b.store = slow
	b = b.open(t)
	work := b.step() // asks for due sessions
	slow.asked, slow.answer = make(chan struct{}), make(chan struct{})
	asking := make(chan struct{})
	go func() {
		for _, w := range work {
			w()
		}
		close(asking)
	}()
	<-slow.asked
	run := b.start("h", "")
	b.advance(time.Second)
	b.rest()
	if n := b.sched.Loaded(); n != 0 {
		t.Fatalf("%d sessions in memory", n)
	}
	close(slow.answer)
	<-asking
	slow.asked = nil
	b.advance(2 * time.Minute)
	b.rest()
	if got := b.status(run.RunID); got != host.StatusFailed {
		t.Fatalf("the run's deadline is forgotten: it is %s", got)
	}
}

// failingLoad is a store that cannot read sessions for a while.
type failingLoad struct {
	host.Store
	fails int
}

func (f *failingLoad) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	if f.fails > 0 {
		f.fails--
		return host.StoredSession{}, errors.New("bad sector")
	}
	return f.Store.LoadSession(ctx, key)
}

func TestADueSessionThatDoesNotLoadIsTriedAgain(t *testing.T) {
	var log strings.Builder
	b := (&bench{guest: quiet(0)}).open(t)
	run := b.start("h", "")
	b.store, b.log = &failingLoad{Store: b.store, fails: 2}, &log
	b.advance(time.Second)
	b = b.open(t) // another server: it loads what is due
	for range 30 {
		b.advance(10 * time.Second)
		b.rest()
	}
	if got := b.status(run.RunID); got != host.StatusFailed {
		t.Fatalf("a session that did not load once is forgotten: its run is %s", got)
	}
	if !strings.Contains(log.String(), "bad sector") {
		t.Fatalf("nobody is told: %s", log.String())
	}
}

// A purge names a handler by any of its runs. If a newer run is active by then,
// the purge ends it too: the store would refuse whatever it writes afterwards,
// and with it everything.
func TestPurgeByAnOldRunEndsTheNewerOne(t *testing.T) {
	b := (&bench{guest: quiet(0)}).open(t)
	old := b.start("h", "")
	if _, err := await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", old.RunID, false) }); err != nil {
		t.Fatal(err)
	}
	newer := b.start("h", "")
	other := b.start("other", "h") // keeps the session busy
	if _, err := await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", old.RunID, true) }); err != nil {
		t.Fatal(err)
	}
	b.advance(2 * time.Minute)
	b.rest()
	if err := b.sched.Health(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{old.RunID, newer.RunID} {
		if _, err := b.store.Run(t.Context(), "t", id); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("run %s is still there: %v", id, err)
		}
	}
	if got := b.status(other.RunID); got != host.StatusFailed {
		t.Errorf("the session's other run is %s", got)
	}
}

// A client that leaves before its start is durable leaves the handler id
// taken: two starts of one id, in two sessions, must not meet in the store.
func TestHandlerStaysReservedUntilItsStartIsDurable(t *testing.T) {
	b := (&bench{guest: quiet(0)}).open(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.sched.Start(ctx, host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", SessionID: "a"})
		left <- err
	}()
	for b.journal.Stats().Items == 0 {
		runtime.Gosched()
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	ctx, leave = context.WithCancel(t.Context())
	go func() {
		_, err := b.sched.Start(ctx, host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", SessionID: "b"})
		left <- err
	}()
	for waiting := true; waiting; {
		select {
		case err := <-left:
			if waiting = false; host.CodeOf(err) != host.CodeConflict {
				t.Fatalf("a start of an id that is on its way to the store: %v", err)
			}
		default:
			if b.journal.Stats().Items > 1 {
				leave()
			}
			runtime.Gosched()
		}
	}
	leave()
	b.rest()
	run, err := b.sched.History().Get(t.Context(), "t", "h")
	if err != nil || run.SessionID != "a" {
		t.Fatalf("%+v, %v", run, err)
	}
	if _, err := await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", "h", true) }); err != nil {
		t.Fatal(err)
	}
	if run := b.start("h", "b"); run.SessionID != "b" { // free again
		t.Fatalf("%+v", run)
	}
}

// A stop lets guests end, then cuts them off; whoever waits for a run is told,
// and the attempt goes on at the next start.
func TestStopCutsOffAndGoesOnLater(t *testing.T) {
	reached := make(chan struct{}, 1)
	b := &bench{guest: func(ctx context.Context, c *call) (abi.StepOutput, error) {
		if _, err := c.do(abi.ImportStateEdit, []any{[]any{"increment", "n", 1}}); err != nil {
			return abi.StepOutput{}, err
		}
		reached <- struct{}{}
		<-ctx.Done() // it computes for ever
		return abi.StepOutput{}, ctx.Err()
	}}
	b.open(t)
	b.mu.Lock()
	b.now = time.Now()
	b.mu.Unlock()
	jctx, stopJournal := context.WithCancel(t.Context())
	sctx, stop := context.WithCancel(t.Context())
	jrnl, runs, client := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { jrnl <- b.journal.Run(jctx) }()
	go func() { runs <- b.sched.Run(sctx, time.Millisecond) }()
	go func() {
		_, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", Wait: true})
		client <- err
	}()
	<-reached
	stop()
	if err := <-client; host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("a client that waits gets %v", err)
	}
	if err := <-runs; err != nil {
		t.Fatal(err)
	}
	if _, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two"}); host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("a start afterwards: %v", err)
	}
	stopJournal()
	if err := <-jrnl; err != nil {
		t.Fatal(err)
	}
	if err := b.sched.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	b.advance(time.Second)
	b.guest = func(_ context.Context, c *call) (abi.StepOutput, error) {
		got, err := c.do(abi.ImportStateEdit, []any{[]any{"increment", "n", 1}})
		if err == nil && abi.Diag(got) != "[1]" {
			t.Errorf("the edit of before the stop is made again: %s", abi.Diag(got))
		}
		return list(0), err
	}
	b.open(t)
	b.rest()
	if c := b.sched.Counters(); c.Attempts != 1 || c.Replayed != 1 {
		t.Errorf("%+v", c)
	}
}

// A step that returns with an edit open has made a mistake: it fails by name, and
// nothing of the edit, its ticket too, is left.
func TestReturningInsideAnEdit(t *testing.T) {
	b := &bench{tokens: 1}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.RunID == "" || g.in.Run.SessionID == "open" {
			_, err := g.do(abi.ImportStateBegin, []any{""})
			return stopEvent(), err
		}
		_, err := g.do(abi.ImportStateEdit, []any{[]any{"set", "n", 1}})
		return stopEvent(), err
	}
	live(t, b, func(t *testing.T) {
		run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", SessionID: "open", Wait: true})
		want := "the step ended inside an edit, which it began by host call 1: end each edit by state_commit or state_abort"
		if err != nil || run.Status != host.StatusFailed || run.ErrorCode != "failed_precondition" || run.Error != want {
			t.Errorf("%+v, %v", run, err)
		}
		run, err = b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", SessionID: "closed", Wait: true})
		if err != nil || run.Status != host.StatusCompleted {
			t.Errorf("%+v, %v", run, err)
		}
	})
}
