package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/store/memory"
)

// oneStep is a workflow whose run is one step.
const oneStep = `{"abi": 1, "workflow": "one", "timeout": 0, "events": {}, "steps": [{"name": "only", "accepts": ["StartEvent"], "emits": ["StopEvent"], "workers": 100}],
  "resources": [{"name": "crm", "kind": "held", "optional": true}]}`

// errGone is what the guests of a process get that has ended.
var errGone = context.Canceled

// mortal is a bench whose process can end.
type mortal struct {
	*bench
	deaths int
	todo   []func()
	kill   time.Time // when somebody kills the process while it waits; zero: nobody does
}

// newMortal opens a bench with a box.
func newMortal(t *testing.T, tokens int) *mortal {
	b := &bench{tokens: tokens, store: memory.New(), now: time.Unix(1_700_000_000, 0), box: newBox(),
		modules: newSimModules(t, map[string]string{"one": oneStep})}
	m := &mortal{bench: b}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	b.open(t)
	return m
}

// begin starts runs, each in a session of its own, and makes the starts durable. No
// guest runs.
func (m *mortal) begin(handlers ...string) {
	m.t.Helper()
	for _, h := range handlers {
		done := make(chan error, 1)
		go func() {
			_, err := m.sched.Start(m.t.Context(), host.StartRequest{Tenant: "t", Workflow: "one", HandlerID: h, SessionID: h})
			done <- err
		}()
		for waiting := true; waiting; {
			select {
			case err := <-done:
				if waiting = false; err != nil {
					m.t.Fatal(err)
				}
			default:
				m.commit()
			}
		}
	}
}

// die ends the process, for the guest that holds the core, too.
func (m *mortal) die(class deaths.DeathClass) error {
	m.life.die(class)
	return errGone
}

// dead reports whether the process has ended.
func (m *mortal) dead() bool {
	m.box.mu.Lock()
	defer m.box.mu.Unlock()
	return m.life.over
}

// restart begins the next life.
func (m *mortal) restart() {
	m.t.Helper()
	m.deaths++
	m.advance(time.Second)
	m.open(m.t)
}

// live goes on until the process ends (false) or nothing is left to do.
func (m *mortal) live() bool {
	m.t.Helper()
	for range 10_000 {
		work, next := m.sched.Step(m.clock())
		m.todo = work
		if m.work(); m.dead() {
			return false
		}
		m.commit()
		if len(work) > 0 {
			continue
		}
		if m.sched.Trials() == 0 && m.sched.Ready() == 0 {
			return true
		}
		if next.IsZero() {
			continue
		}
		if !m.kill.IsZero() && m.kill.Before(next) {
			m.advance(max(m.kill.Sub(m.clock()), 0))
			_ = m.die(deaths.DeathUnknown)
			return false
		}
		m.advance(max(next.Sub(m.clock()), 0)) // a pause or a window ends
	}
	m.t.Fatal("the server does not come to rest")
	return true
}

// work carries out what the newest step has given and nobody has begun.
func (m *mortal) work() {
	for len(m.todo) > 0 && !m.dead() {
		w := m.todo[0]
		m.todo = m.todo[1:]
		w()
	}
}

// survive goes on over deaths until nothing is left to do, and says how many there were.
func (m *mortal) survive() int {
	m.t.Helper()
	before := m.deaths
	for !m.live() {
		if m.restart(); m.deaths-before > 60 {
			m.t.Fatal("the server ends again and again")
		}
	}
	return m.deaths - before
}

// want holds the runs against what they are to be: "" has ended, and others are
// blocked with this in the message.
func (m *mortal) want(handlers map[string]string) {
	m.t.Helper()
	for h, message := range handlers {
		run := m.record(m.t, h)
		switch {
		case message == "" && run.Status != host.StatusCompleted:
			m.t.Errorf("run %s is %s, %+v", h, run.Status, run.Blocked)
		case message != "" && (run.Blocked == nil || run.Blocked.Code != host.BlockedHostCrash || !strings.Contains(run.Blocked.Message, message)):
			m.t.Errorf("run %s is %s, blocked %+v, want a message with %q", h, run.Status, run.Blocked, message)
		}
	}
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("h", i))
	}
	return list
}

func all(list []string) map[string]string {
	out := map[string]string{}
	for _, h := range list {
		out[h] = ""
	}
	return out
}
