package engine

import (
	"math/bits"
	"reflect"
	"strings"
	"testing"
)

// audit checks the invariants of a session between two ticks.
func audit(t reporter, s *Session) {
	t.Helper()
	seats, invocations, timers := 0, 0, 0
	for id, r := range s.runs {
		if r.rec.Status.Final() || r.rec.RunID != id {
			t.Fatalf("run %s is active with status %s", id, r.rec.Status)
		}
		if len(r.unhandled) != 0 {
			t.Fatalf("run %s: %d unhandled events were not told of", id, len(r.unhandled))
		}
		a := auditRun(t, s, r)
		invocations += a.invocations
		timers += a.timers
		if r.rec.Blocked == nil {
			seats += a.seats
		}
	}
	auditTurns(t, s)
	if seats != s.seats || invocations != len(s.invocations) || timers != len(s.timers.heap) || timers != len(s.timers.byID) {
		t.Fatalf("seats %d/%d, invocations %d/%d, timers %d/%d/%d", s.seats, seats, len(s.invocations), invocations, len(s.timers.heap), len(s.timers.byID), timers)
	}
	for i, tm := range s.timers.heap {
		if tm.slot != i || s.timers.byID[tm.id] != tm {
			t.Fatalf("timer %d is not where it says", tm.id)
		}
	}
	if len(s.Open()) != seats {
		t.Fatalf("%d attempts are open, %d hold a slot", len(s.Open()), seats)
	}
	auditChildren(t, s)
	auditCalls(t, s)
	if s.root == nil || !s.root.IsMap() {
		t.Fatal("the state is not a map")
	}
}

// auditTurns: a queued run has nothing but its record.
func auditTurns(t reporter, s *Session) {
	t.Helper()
	n := 0
	for at := s.turns.line.Front(); at != nil; at = at.Next() {
		n++
		q := at.Value.(*queued)
		if s.turns.byRun[q.rec.RunID] != at || s.runs[q.rec.RunID] != nil || q.rec.Status.Final() {
			t.Fatalf("run %s waits for its turn and is %s", q.rec.RunID, q.rec.Status)
		}
		if id, active, _ := s.HandlerRun(q.rec.HandlerID); id != q.rec.RunID || !active {
			t.Fatalf("handler %s waits with run %s, and has %s", q.rec.HandlerID, q.rec.RunID, id)
		}
	}
	if n != len(s.turns.byRun) || s.TurnDue() && s.WakeAt() != 0 || s.Active() != n+len(s.runs) {
		t.Fatalf("%d runs wait for their turn, %d counted; the session wakes at %d", n, len(s.turns.byRun), s.WakeAt())
	}
}

type runAudit struct{ seats, invocations, timers int }

func auditRun(t reporter, s *Session, r *run) runAudit {
	t.Helper()
	var a runAudit
	alive := make(map[*collection]int)
	busy := make([]int, len(r.pools))
	queued := make([]int, len(r.pools))
	suspended := make([]int, len(r.pools))
	outside := 0
	count := func(tm *timer) {
		if tm != nil && tm.slot >= 0 {
			a.timers++
		}
	}
	count(r.deadline)
	for inv := r.oldest; inv != nil; inv = inv.newer {
		a.invocations++
		alive[inv.in]++
		count(inv.timer)
		if s.invocations[inv.id] != inv || inv.newer == nil && r.newest != inv {
			t.Fatalf("invocation %d is not where it should be", inv.id)
		}
		switch inv.phase {
		case phaseRunning:
			a.seats++
			busy[inv.step.index]++
			if r.pools[inv.step.index].taken[inv.worker/64]&(1<<(inv.worker%64)) == 0 {
				t.Fatalf("invocation %d holds a worker that is free", inv.id)
			}
		case phaseQueued:
			queued[inv.step.index]++
		case phaseSuspended:
			suspended[inv.step.index]++
			count(inv.suspended.timer)
			if w := inv.suspended.waiter; w != nil {
				outside++
				if w.shape == nil || w.place == nil || w.answer != nil || inv.waiters[w.id] != w {
					t.Fatalf("invocation %d: the wait %s is not listed", inv.id, w.id)
				}
			}
		}
		if inv.halfway && inv.phase != phaseQueued || (inv.ahead != nil || inv.behind != nil) && inv.phase != phaseQueued {
			t.Fatalf("invocation %d is %s, and stands in a queue", inv.id, inv.phase)
		}
		if (inv.phase == phaseSuspended) != (inv.suspended != nil) {
			t.Fatalf("invocation %d: phase %s, suspended %v", inv.id, inv.phase, inv.suspended)
		}
	}
	if r.ending != nil && (a.invocations == 0 || r.held() || r.deadline == nil || r.deadline.kind != timerGrace) {
		t.Fatalf("run %s is cleaned up after by %d invocations, until %v", r.rec.RunID, a.invocations, r.deadline)
	}
	if r.seated != a.seats || r.deadline != nil && (r.deadline.slot >= 0) != r.counts() {
		t.Fatalf("run %s: %d seats, %d counted, deadline %v", r.rec.RunID, a.seats, r.seated, r.deadline)
	}
	if a.invocations != r.alive {
		t.Fatalf("run %s: %d invocations, %d counted", r.rec.RunID, a.invocations, r.alive)
	}
	for i := range r.pools {
		auditPool(t, r, i, busy[i], queued[i])
		if r.pools[i].suspended != suspended[i] {
			t.Fatalf("step %s: %d suspended, %d counted", r.graph.steps[i].name, suspended[i], r.pools[i].suspended)
		}
	}
	auditWaits(t, r, outside)
	listed := 0
	for at := r.standing.Front(); at != nil; at = at.Next() {
		inv := at.Value.(*invocation)
		if inv.phase == phaseSuspended {
			listed++
		}
		if inv.phase != phaseSuspended && inv.phase != phaseWaiting || inv.line != at {
			t.Fatalf("invocation %d is listed as standing still", inv.id)
		}
	}
	for _, n := range suspended {
		listed -= n
	}
	if listed != 0 {
		t.Fatalf("%d more are listed as suspended than are", listed)
	}
	for id, c := range r.collections {
		if c.id != id || c.parent == nil {
			t.Fatalf("collection %d is not where it should be", id)
		}
		alive[c.parent]++
	}
	for c, n := range alive {
		if c.alive != n || c.parent != nil && r.collections[c.id] != c {
			t.Fatalf("collection %d: %d alive, %d counted", c.id, n, c.alive)
		}
	}
	for id, c := range r.collections {
		if alive[c] == 0 {
			t.Fatalf("collection %d is open without a member", id)
		}
	}
	return a
}

// auditWaits counts waiters, and the events kept for later waits.
func auditWaits(t reporter, r *run, outside int) {
	t.Helper()
	listed, kept := 0, 0
	for key, of := range r.waiting {
		if len(of.shapes) == 0 {
			t.Fatalf("nobody waits for %s", key)
		}
		for _, shape := range of.shapes {
			for _, queue := range shape.byWant {
				listed += queue.single.Len() + queue.broadcast.Len()
			}
		}
	}
	for _, events := range r.inbox.byType {
		kept += len(events)
	}
	if listed != outside || r.outside != outside || kept != r.inbox.size || kept > r.limits.InboxEvents {
		t.Fatalf("run %s: %d wait, %d listed, %d counted; %d events are kept, %d counted", r.rec.RunID, outside, listed, r.outside, kept, r.inbox.size)
	}
}

func auditPool(t reporter, r *run, i, busy, queued int) {
	t.Helper()
	p, st := &r.pools[i], r.graph.steps[i]
	taken := 0
	for _, word := range p.taken {
		taken += bits.OnesCount64(word)
	}
	waiting := 0
	for inv := p.first; inv != nil; inv = inv.behind {
		waiting++
	}
	if p.busy != busy || taken != busy || busy > st.workers || waiting != queued || waiting != p.waiting {
		t.Fatalf("step %s: busy %d/%d/%d of %d, waiting %d/%d/%d", st.name, p.busy, busy, taken, st.workers, p.waiting, waiting, queued)
	}
	if waiting > 0 && busy < st.workers && !r.held() {
		t.Fatalf("step %s: %d wait while a slot is free", st.name, waiting)
	}
}

// auditCalls checks that a call of a resource is open exactly while its invocation waits
// for it.
func auditCalls(t reporter, s *Session) {
	t.Helper()
	open := 0
	for _, inv := range s.invocations {
		for id, c := range inv.asked {
			if c.id != id || c.inv != inv || c.value != nil && c.err != nil {
				t.Fatalf("the call %s is not where it should be", id)
			}
			waits := inv.suspended != nil && inv.suspended.call == c
			if waits == c.answered() || waits != (s.calls[inv.id] == c) {
				t.Fatalf("the call %s: awaited %t, answered %t", id, waits, c.answered())
			}
			if waits {
				open++
			}
		}
	}
	if open != len(s.calls) || open > 0 && s.WakeAt() != 0 {
		t.Fatalf("%d calls are under way, %d counted, wake at %d", open, len(s.calls), s.WakeAt())
	}
}

// TestEntryTagsAreUnique checks the journal's format: if two fields had one key, the
// codec would drop one of them silently.
func TestEntryTagsAreUnique(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Entry](), reflect.TypeFor[StartPart](), reflect.TypeFor[CollectPart](), reflect.TypeFor[FinishPart](),
		reflect.TypeFor[RetryPart](), reflect.TypeFor[ChildPart](), reflect.TypeFor[StagedPart](), reflect.TypeFor[ChildEnd](), reflect.TypeFor[ChildShow](), reflect.TypeFor[Parent](), reflect.TypeFor[ResourcePart](), reflect.TypeFor[AnswerPart](), reflect.TypeFor[DeliveredPart](), reflect.TypeFor[WaitPart](), reflect.TypeFor[AttemptOpen](), reflect.TypeFor[HeldAttempt](), reflect.TypeFor[CallRecord](), reflect.TypeFor[LogRecord](),
	} {
		seen := make(map[string]string)
		for f := range typ.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			if key == "" || seen[key] != "" {
				t.Errorf("%s.%s has the key %q, as has %q", typ.Name(), f.Name, key, seen[key])
			}
			seen[key] = f.Name
		}
	}
}
