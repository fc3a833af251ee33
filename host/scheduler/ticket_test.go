package scheduler

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/versions"
	"github.com/weftrun/weft/host/state"
)

// sink is a journal that takes what it is given.
type sink struct{ Journal }

func (sink) Append(time.Time, host.JournalItem) uint64 { return 1 }

// silent are answers that have logged nothing.
type silent struct{ Answers }

func (silent) Logs() []engine.LogRecord { return nil }

// holding is a session in which the first attempt has the write ticket of path
// n, and the second waits for it.
func holding(t *testing.T) (ss *session, holder, waiter *attempt) {
	t.Helper()
	raw, err := abi.FromJSON([]byte(`{"abi": 1, "workflow": "w", "events": {},
		"steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	g, problems := engine.Compile(&m)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := newScheduler(context.Background(), Config{Tokens: 1, Journal: sink{}, Log: slog.New(slog.DiscardHandler), Modules: oneGraph{graph: g}})
	ss = &session{s: s, attempts: map[uint64]*attempt{}, ledger: history.NewLedger()}
	ss.eng = engine.New(host.SessionKey{Tenant: "t", Session: "s"}, func(string) (*engine.Graph, error) { return g, nil })
	start := engine.StartRun{RunID: "r", HandlerID: "h", Version: "v", Event: abi.Event{Type: abi.TypeStart, Body: abi.EmptyMap}, Limits: limit.Default()}
	if _, err := ss.eng.Reduce(1, start); err != nil {
		t.Fatal(err)
	}
	ss.state.Store(ss.eng.State())
	inv := ss.eng.Open()[0]
	view, _ := ss.eng.Invocation(inv)
	holder = &attempt{ss: ss, inv: inv, view: view, answers: silent{}}
	waiter = &attempt{ss: ss, inv: inv + 1, parked: true}
	n := []state.Path{pathN(t)}
	ss.tickets.Init(holders{ss})
	ss.tickets.Take(holder, n)
	ss.tickets.Queue(waiter, n)
	return ss, holder, waiter
}

// oneGraph are modules that all have one graph.
type oneGraph struct {
	versions.Source
	graph *engine.Graph
}

// ByDigest implements versions.Source.
func (m oneGraph) ByDigest(string) (versions.Module, error) {
	return versions.Module{Graph: m.graph}, nil
}

func pathN(t *testing.T) state.Path {
	t.Helper()
	p, err := state.ParsePath("n")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A holder that goes on computing after its edit keeps nobody waiting.
func TestTicketIsGivenUpAtTheEditsEnd(t *testing.T) {
	value, err := state.Decode(abi.Raw{0x01})
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(*attempt) error{
		"commit": func(at *attempt) error {
			return live{at}.Effect(nil, 1, engine.CommitState{Path: pathN(t), Value: value}, func(*engine.Result) {})
		},
		"lost commit": func(at *attempt) error {
			_ = live{at}.Effect(nil, 1, engine.CommitState{Path: pathN(t), Base: value, Value: value}, func(*engine.Result) {})
			return nil
		},
		"abort":              func(at *attempt) error { live{at}.End(); return nil },
		"end of the attempt": func(at *attempt) error { at.ss.drop(at); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ss, holder, waiter := holding(t)
			if err := end(holder); err != nil {
				t.Fatal(err)
			}
			if ss.tickets.Len() != 1 || !ss.tickets.Holds(waiter) || waiter.parked || ss.s.cores.queue.Ready() != 1 {
				t.Errorf("tickets %+v, the waiter parked: %v, ready: %d", ss.tickets, waiter.parked, ss.s.cores.queue.Ready())
			}
		})
	}
}
