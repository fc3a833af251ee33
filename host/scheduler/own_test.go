package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/work"
)

// dearState is a workflow whose state is dear to check.
const dearState = `{"abi": 1, "workflow": "solo", "timeout": 0, "events": {}, "state": {"schema": {"type": "object",
  "additionalProperties": {"type": "string", "pattern": "(a|b)*c$"}}},
  "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"], "retry": {"wait": {"fixed": 0}}}]}`

// dearPatch is a patch of many members that are dear to check.
func dearPatch(n int, value string) abi.Raw {
	all := map[string]any{}
	for i := range n {
		all[fmt.Sprint("k", i)] = value
	}
	return must(abi.EncodeValue(all))
}

// Whatever edits of clients cost, little of it is done while others wait for the session.
func TestDearEditsAreWorkedOutOutsideTheMutex(t *testing.T) {
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"solo": dearState})}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		b.wantEdit(`{}`, host.SessionEdit{State: abi.EmptyMap, Make: true})
		must(b.ask(t, "h", "s", "", true))
		before := b.sched.Counters().OwnMost
		patches := []abi.Raw{dearPatch(500, strings.Repeat("ab", 20)+"c"), dearPatch(500, strings.Repeat("ba", 20)+"c")}
		var clients sync.WaitGroup
		var done atomic.Int32
		for i := range 4 { // they take the state from under each other
			clients.Go(func() {
				for n := range 5 {
					_, _, err := b.sched.EditState(t.Context(), host.SessionEdit{Tenant: "t", Session: "s", Patch: patches[(i+n)%2]})
					if err == nil {
						done.Add(1)
					} else if host.CodeOf(err) != host.CodeUnavailable {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		if done.Load() == 0 {
			t.Error("no edit was made")
		}
		if most := b.sched.Counters().OwnMost; most > max(before, work.Look) {
			t.Errorf("a tick did work of %d units", most)
		}
	})
}

// looked is a context that ends when it was looked at so often.
type looked struct {
	context.Context
	left atomic.Int32
}

func (a *looked) Err() error {
	if a.left.Add(-1) < 0 {
		return context.Canceled
	}
	return a.Context.Err()
}

// A dear edit ends with its request, and changes nothing then.
func TestDearEditsEndWithTheirRequest(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"solo": dearState})}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		b.wantEdit(`{}`, host.SessionEdit{State: abi.EmptyMap, Make: true})
		must(b.ask(t, "h", "s", "", true))
		patch := dearPatch(500, strings.Repeat("ab", 20)+"c")
		ended := 0
		for looks := int32(0); ; looks++ {
			ctx := &looked{Context: t.Context()}
			ctx.left.Store(looks)
			_, _, err := b.sched.EditState(ctx, host.SessionEdit{Tenant: "t", Session: "s", Patch: patch})
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) && host.CodeOf(err) != host.CodeUnavailable {
				t.Fatal(err)
			}
			if b.stateAt("") != `{}` {
				break // it had been made
			}
			ended++
		}
		if ended < 10 {
			t.Errorf("the request was looked at %d times within the edit", ended)
		}
	})
}

// An edit that costs more than its size and that of the state allow is refused.
func TestEditsAreBounded(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"solo": strings.Replace(dearState, "(a|b)*c$", "(a?){90}c$", 1)})}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		b.wantEdit(`{}`, host.SessionEdit{State: abi.EmptyMap, Make: true})
		must(b.ask(t, "h", "s", "", true))
		_, _, err := b.sched.EditState(t.Context(), host.SessionEdit{Tenant: "t", Session: "s", Patch: dearPatch(100, strings.Repeat("ab", 2000)+"c")})
		if host.CodeOf(err) != host.CodeInvalidArgument || !strings.Contains(err.Error(), "too costly") {
			t.Error(err)
		}
		if got := b.stateAt(""); got != `{}` {
			t.Errorf("the state is %.200s", got)
		}
	})
}
