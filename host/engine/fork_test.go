package engine

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/weftrun/weft/host"
)

// forkAll forks every active run, and checks what continues in the forks.
func (p *player) forkAll() {
	p.t.Helper()
	for _, id := range sortedKeys(p.live.runs) {
		const later = 5_000
		target := ForkTarget{Key: host.SessionKey{Tenant: "t", Session: "forked"}, RunID: "fork-run", HandlerID: "forked", Seed: [32]byte{9}, At: p.live.now + later}
		past := p.again(p.live)
		runs, anew, err := past.Fork(id, target)
		if err != nil {
			p.t.Fatalf("fork of %s: %v", id, err)
		}
		data, err := past.Snapshot()
		if err != nil {
			p.t.Fatal(err)
		}
		s := New(target.Key, p.live.graphs)
		res, err := s.Reduce(target.At, Adopt{Snapshot: data})
		if err != nil {
			p.t.Fatalf("the fork of %s does not begin: %v", id, err)
		}
		audit(p.t, s)
		stored := New(target.Key, p.live.graphs)
		commands, err := stored.Fold(recoded(p.t, res.Entry))
		if err != nil || !reflect.DeepEqual(commands, res.Commands) {
			p.t.Fatalf("folded, the fork does something else: %v, %v, %v", err, commands, res.Commands)
		}
		diffText(p.t, "stored fork", s.Dump(), stored.Dump())
		p.compareFork(s, runs, anew)
		exercise(s)
		audit(p.t, s)
	}
}

// compareFork compares a fork with the session that it was made from.
func (p *player) compareFork(s *Session, runs []ForkedRun, anew []host.Renewed) {
	p.t.Helper()
	if string(s.root.Encode()) != string(p.live.root.Encode()) || s.seq != 1 || len(runs) != len(s.runs) || len(s.handlers) != len(runs) {
		p.t.Fatalf("the fork has %d runs and %d handlers, want %d, or another state:\n%s", len(s.runs), len(s.handlers), len(runs), s.Dump())
	}
	starts := 0
	for _, m := range s.outbox.all() {
		if m.Start == nil || m.Start.Parent.Session != s.key.Session {
			p.t.Fatalf("the fork tells %s of what is not its own", m.To)
		}
		starts++
	}
	if asked := len(s.calls); starts+asked != len(anew) {
		p.t.Fatalf("%d children are begun and %d calls made anew, %d listed", starts, asked, len(anew))
	}
	for inv, c := range s.calls {
		if was := p.live.calls[inv]; was == nil || was.id != c.id || was.key() == c.key() {
			p.t.Fatalf("the call %s of invocation %d is made by the fork under the key %s", c.id, inv, c.key())
		}
	}
	for _, f := range runs {
		was, r := p.live.runs[f.Was], s.runs[f.RunID]
		if was == nil || r == nil || p.live.handlers[f.HandlerID] != nil || p.live.runs[f.RunID] != nil || r.seed == was.seed || r.handler.next != 0 {
			p.t.Fatalf("the run %s goes on as %s:\n%s", f.Was, f.RunID, s.Dump())
		}
		for inv, old := r.oldest, was.oldest; inv != nil || old != nil; inv, old = inv.newer, old.newer {
			p.compareForked(s, inv, old)
		}
		p.compareTimer(s, r.deadline, was.deadline)
	}
}

func (p *player) compareForked(s *Session, inv, old *invocation) {
	p.t.Helper()
	if inv == nil || old == nil || inv.id != old.id || inv.phase != old.phase || inv.attempt != old.attempt {
		p.t.Fatalf("the fork has other invocations:\n%s", s.Dump())
	}
	if inv.began && s.now-inv.start != p.live.now-old.start {
		p.t.Fatalf("invocation %d has taken %d in the fork, and %d before", inv.id, s.now-inv.start, p.live.now-old.start)
	}
	p.compareTimer(s, inv.timer, old.timer)
	if inv.suspended != nil {
		p.compareTimer(s, inv.suspended.timer, old.suspended.timer)
	}
	for key, c := range inv.children {
		was := old.children[key]
		if !c.ended() && (c.run == was.run || c.handler == was.handler || c.session != "" && c.session == was.session && was.session == was.handler) {
			p.t.Fatalf("the child %s of the fork is that of the old run", key)
		}
	}
}

// stopped returns since when a timer is stopped.
func (t *timer) stopped() int64 {
	if t.inv == nil {
		return t.run.stopped
	}
	return t.run.heldAt
}

// compareTimer: a timer keeps the time that it has left.
func (p *player) compareTimer(s *Session, t, was *timer) {
	p.t.Helper()
	switch {
	case t == nil && was == nil:
	case t == nil || was == nil || t.id != was.id || (t.slot < 0) != (was.slot < 0):
		p.t.Fatalf("a timer of the fork is another: %+v, %+v", t, was)
	case t.slot >= 0 && t.at-s.now != was.at-p.live.now:
		p.t.Fatalf("timer %d has %d left in the fork, and had %d", t.id, t.at-s.now, was.at-p.live.now)
	case t.slot < 0 && t.at-t.stopped() != was.at-was.stopped():
		p.t.Fatalf("the held timer %d has %d left in the fork, and had %d", t.id, t.at-t.stopped(), was.at-was.stopped())
	}
}

// TestForkRefuses: only an active run can be forked, and a session begins only once.
func TestForkRefuses(t *testing.T) {
	g := mustGraph(t, `{"abi": 1, "workflow": "w", "events": {}, "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`)
	p := newPlayer(t, map[string]*Graph{"v1": g})
	p.play("start r h StartEvent")
	p.play("start q h2 StartEvent busy=queue")
	if _, _, err := p.again(p.live).Fork("nobody", ForkTarget{}); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
	if _, _, err := p.again(p.live).Fork("q", ForkTarget{}); host.CodeOf(err) != host.CodeConflict {
		t.Errorf("a run that waits for its turn: %v", err)
	}
	data, err := p.live.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s := New(host.SessionKey{Tenant: "t", Session: "new"}, p.live.graphs)
	if _, err := s.Reduce(1, Adopt{Snapshot: data}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a snapshot that goes on in the middle: %v", err)
	}
	if _, err := s.Reduce(1, Adopt{Snapshot: []byte("garbage")}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("garbage: %v", err)
	}
	bare := p.again(p.live)
	if runs, anew, err := bare.Fork("", ForkTarget{Key: s.key}); err != nil || len(runs)+len(anew)+bare.Active()+len(bare.handlers)+len(bare.timers.heap) > 0 {
		t.Errorf("the state alone: %v, %v, %v\n%s", runs, anew, err, bare.Dump())
	}
	limited := p.again(p.live)
	if err := limited.Limit(func(version string) (host.Limits, error) { return host.Limits{RunEvents: 3}, nil }); err != nil || limited.runs["r"].limits.RunEvents != 3 || limited.runs["r"].limits.Fuel == 0 {
		t.Errorf("limited: %v, %+v", err, limited.runs["r"].limits)
	}
	ids := make(map[string]bool)
	for i := range 3 {
		past := p.again(p.live)
		if _, _, err := past.Fork("r", ForkTarget{RunID: "f", HandlerID: "f", Seed: [32]byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		ids[fmt.Sprint(past.runs["f"].derive("run", past.invocations[1], 1))] = true
	}
	ids[fmt.Sprint(p.live.runs["r"].derive("run", p.live.invocations[1], 1))] = true
	if len(ids) != 4 {
		t.Errorf("of 4 runs %d derive ids of their own", len(ids))
	}
}
