package engine

import (
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A run has all limits: those that a start leaves out are journaled as they are
// by default, and an entry of a server that knew fewer has the others'.
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
	want := host.DefaultLimits()
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
