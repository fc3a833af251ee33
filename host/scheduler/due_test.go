package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// asleep is a workflow whose step sleeps, for as long as its handler's name says, and
// one whose step does not.
const (
	asleep = `{"abi": 1, "workflow": "two", "timeout": 0, "events": {},
  "steps": [{"name": "sleep", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`
	awake = `{"abi": 1, "workflow": "awake", "timeout": 0, "events": {},
  "steps": [{"name": "awake", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`
)

// overdueTimers is a server that was down while so many timers came due.
type overdueTimers struct {
	*bench
	delays []int    // in milliseconds, by session
	ages   []int64  // when they started
	woken  []string // sessions, in the order in which their step went on
	most   int      // sessions in memory at a time
}

func newOverdue(t *testing.T, n, atOnce int) *overdueTimers {
	t.Helper()
	o := &overdueTimers{bench: &bench{tokens: 1, dueAtOnce: atOnce, modules: newSimModules(t, map[string]string{"two": asleep, "awake": awake})}}
	begin := time.Unix(1_700_000_000, 0)
	o.delays = rand.New(rand.NewPCG(uint64(n), 1)).Perm(n)
	o.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		var i int
		if _, err := fmt.Sscanf(g.in.Run.SessionID, "s%d", &i); err == nil {
			until := begin.Add(time.Hour + time.Duration(o.delays[i])*time.Millisecond)
			if _, err := g.do(abi.ImportSleep, []any{until.UnixNano() - g.clock}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		o.woken = append(o.woken, g.in.Run.SessionID)
		return stopEvent(), nil
	}
	o.open(t)
	for i := range n {
		o.ages = append(o.ages, o.clock().UnixNano())
		o.start(fmt.Sprint("h", i), fmt.Sprint("s", i))
		if o.sched.Loaded() > 1000 {
			o.advance(20 * time.Millisecond) // they leave memory when they are idle
			o.rest()
		}
	}
	if len(o.woken) > 0 {
		t.Fatalf("%d sessions do not sleep", len(o.woken))
	}
	o.advance(2*time.Hour + time.Duration(n)*time.Millisecond) // the server is down
	o.open(t)
	return o
}

// turn carries out one round of what there is to do, but the commits, and looks at the
// memory after each piece of it.
func (o *overdueTimers) turn() (worked bool) {
	o.t.Helper()
	work := o.step()
	for _, w := range work {
		w()
		o.most = max(o.most, o.sched.Loaded())
	}
	return len(work) > 0
}

// wantOrder wants the sessions to have gone on in the order of their times, those that
// started at the same time: of those in memory, the oldest goes on first.
func (o *overdueTimers) wantOrder(t *testing.T) {
	t.Helper()
	want, got := map[int64][]string{}, map[int64][]string{}
	order := make([]int, len(o.delays))
	for i, d := range o.delays {
		order[d] = i
	}
	for _, i := range order {
		want[o.ages[i]] = append(want[o.ages[i]], fmt.Sprint("s", i))
	}
	for _, s := range o.woken {
		var i int
		if _, err := fmt.Sscanf(s, "s%d", &i); err == nil {
			got[o.ages[i]] = append(got[o.ages[i]], s)
		}
	}
	for age, want := range want {
		if !slices.Equal(got[age], want) {
			t.Fatalf("%d of %d sessions went on, or not in the order of their times:\n%v\nwant\n%v", len(got[age]), len(want), got[age], want)
		}
	}
}

// After a long time down any number of timers is overdue. They fire in the order of
// their times, a bounded number of sessions is in memory, and a start that comes in
// between waits for a bounded number of them.
func TestOverdueTimers(t *testing.T) {
	const atOnce = 64
	sleepers := 5000
	if raced {
		sleepers = 1000
	}
	o := newOverdue(t, sleepers, atOnce)
	started := make(chan error, 1)
	at, served := -1, -1
	for o.turn() || at >= 0 && served < 0 {
		o.commit()
		if at < 0 && len(o.woken) > sleepers/3 {
			at = len(o.woken)
			ready := o.sched.Ready()
			go func() {
				run, err := o.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "awake", HandlerID: "client", Wait: true})
				if err == nil && run.Status != host.StatusCompleted {
					err = fmt.Errorf("it is %s", run.Status)
				}
				started <- err
			}()
			for o.sched.Ready() == ready { // until its attempt waits for its turn
				runtime.Gosched()
			}
		}
		if served < 0 {
			served = slices.Index(o.woken, "client")
		}
	}
	if err := <-started; err != nil {
		t.Fatalf("the start in between: %v", err)
	}
	o.wantOrder(t)
	if waited := served - at; waited > atOnce+loadAtOnce {
		t.Errorf("the start waited for %d others, want %d at most", waited, atOnce)
	}
	if o.most > atOnce+loadAtOnce+1 {
		t.Errorf("%d sessions were in memory, want %d at most", o.most, atOnce)
	}
	t.Logf("at most %d sessions in memory; the start waited for %d others", o.most, served-at)
	if leak := o.sched.Leak(); leak != "" {
		t.Error(leak)
	}
}

// loadAtOnce is the scheduler's.
const loadAtOnce = 4

// While the disk takes nothing, no more sessions are admitted than that, but for the
// trickle.
func TestOverdueTimersOnASlowDisk(t *testing.T) {
	const atOnce = 16
	sleepers := 1000
	if raced {
		sleepers = 300
	}
	o := newOverdue(t, sleepers, atOnce)
	begun := o.clock()
	for range 500 {
		o.turn()
		o.advance(time.Millisecond)
	}
	trickled := int(o.clock().Sub(begun)/(10*time.Millisecond)) + 1
	if o.most < atOnce || o.most > atOnce+loadAtOnce+trickled {
		t.Errorf("%d sessions were in memory, want %d, and %d that trickle in", o.most, atOnce, trickled)
	}
	for o.turn() {
		o.commit()
	}
	o.wantOrder(t)
}
