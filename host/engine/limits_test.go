package engine

import (
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/work"
)

// A run has all limits. Limits that a start leaves out are journaled with their defaults,
// and an entry of a server with fewer limits gets the missing ones.
func TestRunsHaveAllLimits(t *testing.T) {
	g := mustGraph(t, chainManifest)
	fresh := func() *Session {
		return New(host.SessionKey{Tenant: "t", Session: "s"}, func(string) (*Graph, error) { return g, nil })
	}
	s := fresh()
	res, err := s.Reduce(1, StartRun{RunID: "r", HandlerID: "h", Version: "v", Event: abi.Event{Body: abi.EmptyMap}, Limits: host.Limits{Fuel: 12_345}})
	if err != nil {
		t.Fatal(err)
	}
	want := limit.Default()
	want.Fuel = 12_345
	if got := res.Entry.Start.Limits; got != want {
		t.Errorf("the entry has %+v", got)
	}
	older := *res.Entry
	start := *older.Start
	start.Limits = host.Limits{Fuel: 12_345, HostCalls: 7}
	older.Start = &start
	s = fresh()
	if _, err := s.Fold(&older); err != nil {
		t.Fatal(err)
	}
	want.HostCalls = 7
	if inv, ok := s.Invocation(s.Open()[0]); !ok || inv.Limits != want {
		t.Errorf("the invocation has %+v, %v", inv.Limits, ok)
	}
}

// A check of the state that takes too much work exceeds a limit. It does not count as a
// breach of the schema.
func TestCheckOfTheStateIsBounded(t *testing.T) {
	g := mustGraph(t, `{"abi": 1, "workflow": "w", "events": {}, "state": {"schema": {"properties": {"a": {"type": "string", "pattern": "x*"}}}, "default": {"a": "xx"}},
		"steps": [{"name": "start", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`)
	s := New(host.SessionKey{Tenant: "t", Session: "s"}, func(string) (*Graph, error) { return g, nil })
	s.own = *work.New(mostOwn, nil)
	if _, _, err := s.stateFor(g, limit.Default()); err != nil {
		t.Fatal(err)
	}
	s.own = *work.New(1, nil)
	_, _, err := s.stateFor(g, limit.Default())
	if host.CodeOf(err) != host.CodeLimitExceeded || !strings.Contains(err.Error(), "takes more than 1 units of work") {
		t.Errorf("the error is %v (%s)", err, host.CodeOf(err))
	}
}
