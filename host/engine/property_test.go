package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// genManifest draws a workflow that passes validation: every step may stop the run, and
// every type has an emitting step before the accepting one. Collectors that no list leads
// to are corrected afterwards.
func genManifest(t *rapid.T) *abi.Manifest {
	m := &abi.Manifest{ABI: 1, Workflow: "random", Events: map[string]abi.EventDecl{
		"Ask": {Kind: abi.KindInputRequired}, "Answer": {Kind: abi.KindHumanResponse}, "Sub": {Extends: "T1"}, "Progress": {},
	}}
	m.Resources = []abi.ResourceDecl{{Name: "crm", Kind: "http"}}
	n := rapid.IntRange(2, 7).Draw(t, "steps")
	stop := abi.Emit{Types: []string{abi.TypeStop}}
	for i := range n {
		s := abi.StepDecl{Name: fmt.Sprint("s", i), Emits: []abi.Emit{stop}, Workers: rapid.IntRange(0, 3).Draw(t, "workers")}
		typ := fmt.Sprint("T", i)
		if i == 0 {
			s.Accepts = []abi.Slot{{Types: []string{abi.TypeStart}}}
		} else {
			m.Events[typ] = abi.EventDecl{}
			s.Accepts = genSlots(t, i)
			maker := &m.Steps[rapid.IntRange(0, i-1).Draw(t, "maker")]
			maker.Emits = append(maker.Emits, abi.Emit{Types: []string{typ}, List: rapid.Bool().Draw(t, "list")})
		}
		s.AcceptSubtypes = rapid.Bool().Draw(t, "subtypes")
		if rapid.IntRange(0, 3).Draw(t, "retry") == 0 {
			wait, attempts := time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")), uint64(2)
			s.Retry = &abi.RetryPolicy{Wait: &abi.WaitRule{Fixed: &wait}, Stop: &abi.StopRule{Attempts: &attempts}}
		}
		if rapid.IntRange(0, 4).Draw(t, "timeout") == 0 {
			s.Timeout = 5
		}
		if rapid.IntRange(0, 4).Draw(t, "ask") == 0 {
			s.Emits = append(s.Emits, abi.Emit{Types: []string{"Ask"}})
		}
		m.Steps = append(m.Steps, s)
	}
	if rapid.Bool().Draw(t, "catch") {
		m.Steps = append(m.Steps, abi.StepDecl{
			Name: "rescue", Accepts: []abi.Slot{{Types: []string{abi.TypeStepFailed}}}, CatchesAll: true, Emits: []abi.Emit{stop, {Types: []string{"T1"}}},
		})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "cleaners") {
		tidy := abi.StepDecl{
			Name: fmt.Sprint("tidy", i), Accepts: []abi.Slot{{Types: []string{abi.TypeStepFailed}}}, Emits: []abi.Emit{stop, {Types: []string{"T1"}}},
			Catches: rapid.SampledFrom([][]string{{abi.CatchCancelled}, {abi.CatchTimeout}, {abi.CatchTimeout, abi.CatchCancelled}}).Draw(t, "catches"),
		}
		if rapid.Bool().Draw(t, "list of clean-up") {
			tidy.Emits = append(tidy.Emits, abi.Emit{Types: []string{"T1"}, List: true})
		}
		m.Steps = append(m.Steps, tidy)
	}
	return m
}

// genSlots draws what step i accepts: always its own type, and perhaps others.
func genSlots(t *rapid.T, i int) []abi.Slot {
	own := fmt.Sprint("T", i)
	other := fmt.Sprint("T", rapid.IntRange(1, i).Draw(t, "other"))
	switch rapid.IntRange(0, 5).Draw(t, "mode") {
	case 0:
		return []abi.Slot{{Kind: abi.SlotAny, Types: []string{own, "Answer"}}}
	case 1:
		return []abi.Slot{{Types: []string{own}}, {Types: []string{other}}}
	case 2, 3:
		return []abi.Slot{{Kind: abi.SlotList, Types: []string{own}, Take: uint64(rapid.IntRange(0, 3).Draw(t, "take"))}}
	case 4:
		return []abi.Slot{{Kind: abi.SlotAny, Types: slices.Compact([]string{own, other})}}
	}
	return []abi.Slot{{Types: []string{own}}}
}

// genGraph compiles a drawn manifest after correcting lonely collectors.
func genGraph(t *rapid.T) *Graph {
	m := genManifest(t)
	for range len(m.Steps) + 1 {
		g, problems := Compile(m)
		if g != nil {
			return g
		}
		for _, p := range problems {
			if p.Code != "collector_without_producer" {
				t.Fatalf("%+v", p)
			}
			for i := range m.Steps {
				if m.Steps[i].Name == p.Step {
					m.Steps[i].Accepts = []abi.Slot{{Types: m.Steps[i].Accepts[0].Types[:1]}}
				}
			}
		}
	}
	t.Fatal("the manifest cannot be mended")
	return nil
}

// walk plays random ticks.
type walk struct {
	t       *rapid.T
	p       *player
	g       *Graph
	runs    int
	known   map[*collection]scope // collections that were seen open
	ending  map[string]string     // run -> what it was cleaned up after
	journal []*Entry
}

// scope is the phase of a collection: its run before its clean-up, or in its clean-up.
type scope struct {
	run    *run
	ending *ending
}

func (w *walk) tick(tick Tick) Result {
	w.t.Helper()
	res, err := w.p.tick(tick)
	if _, block := tick.(Block); block && errors.Is(err, ErrStale) {
		return res // it was blocked
	}
	if post, ok := tick.(PostEvent); ok && errors.Is(err, ErrUnknownRun) && w.p.live.runs[post.RunID].ending != nil {
		return res
	}
	if err != nil && !strings.HasPrefix(showError(err), "guest error") && !strings.HasPrefix(showError(err), "client error") {
		w.t.Fatal(err)
	}
	if res.Entry != nil {
		w.journal = append(w.journal, recoded(w.t, res.Entry))
	}
	w.checkCommands(res)
	w.checkCollections()
	return res
}

// checkCommands: streams have consecutive numbers, a terminal event is the last of its
// run, and a run that only the outside can continue reports that it is idle.
func (w *walk) checkCommands(res Result) {
	ended := make(map[string]bool)
	for _, c := range res.Commands {
		switch c := c.(type) {
		case Publish:
			if ended[c.Event.RunID] {
				w.t.Fatalf("%s follows the terminal event", c.Event.Type)
			}
			ended[c.Event.RunID] = c.Event.Terminal
			if abi.CheckValue(c.Event.Body, abi.MaxValueDepth) != nil {
				w.t.Fatalf("body of %s: %x", c.Event.Type, c.Event.Body)
			}
			if canonical, err := abi.Canonical(c.Event.Body, abi.MaxValueDepth); err != nil || string(canonical) != string(c.Event.Body) {
				w.t.Fatalf("body of %s is not canonical: %x", c.Event.Type, c.Event.Body)
			}
		case RunChanged:
			want := map[string]string{abi.CatchCancelled: host.RunCancelled, abi.CatchTimeout: host.RunTimeout}[w.ending[c.Run.RunID]]
			if want != "" && c.Run.Status.Final() && c.Run.ErrorCode != want {
				w.t.Fatalf("run %s was cleaned up after %s and ends as %s %s", c.Run.RunID, want, c.Run.Status, c.Run.ErrorCode)
			}
		case RunEnded:
			if !ended[c.RunID] {
				w.t.Fatalf("run %s ended without a terminal event", c.RunID)
			}
		}
	}
	for id, r := range w.p.live.runs {
		if r.ending != nil {
			w.ending[id] = r.ending.cause
		}
	}
	if e := res.Entry; e != nil && (e.Kind == EntryPost || e.Kind == EntryFinish || e.Kind == EntryStart) {
		r, active := w.p.live.runs[e.RunID]
		idle := slices.ContainsFunc(res.Commands, func(c Command) bool {
			p, ok := c.(Publish)
			return ok && p.Event.Type == abi.TypeIdle
		})
		if want := active && r.alive == 0 && r.rec.Blocked == nil; want != idle {
			w.t.Fatalf("idle is told: %t, want %t", idle, want)
		}
	}
}

// checkCollections: a closed collection has fired all its collectors, unless it was
// dropped for the clean-up.
func (w *walk) checkCollections() {
	for c, of := range w.known {
		r := of.run
		if r.collections[c.id] == c {
			continue
		}
		if w.p.live.runs[r.rec.RunID] == r && r.ending == of.ending {
			for i := range c.collectors {
				if !c.collectors[i].fired {
					w.t.Fatalf("collection %d closed and %s did not fire", c.id, c.collectors[i].step.name)
				}
			}
		}
		delete(w.known, c)
	}
	for _, r := range w.p.live.runs {
		for _, c := range r.collections {
			w.known[c] = scope{r, r.ending}
		}
	}
}

// output draws a result of the step, mostly a valid one.
func (w *walk) output(st *step) abi.StepOutput {
	t := w.t
	body := abi.Raw{0xa1, 0x61, 'i', byte(rapid.IntRange(0, 23).Draw(t, "i"))}
	switch rapid.IntRange(0, 9).Draw(t, "output") {
	case 0:
		return abi.StepOutput{}
	case 1:
		return abi.StepOutput{Err: &abi.Error{Code: "drawn", Message: "drawn error"}}
	case 2, 3, 4, 5:
		if len(st.lists) == 0 {
			break
		}
		types := sortedKeys(st.lists[rapid.IntRange(0, len(st.lists)-1).Draw(t, "list")].types)
		out := abi.StepOutput{List: true}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			out.Events = append(out.Events, abi.Event{Type: rapid.SampledFrom(types).Draw(t, "item"), Body: body})
		}
		return out
	case 6:
		return abi.StepOutput{Events: []abi.Event{{Type: rapid.SampledFrom(w.g.EventTypes()).Draw(t, "any"), Body: body}}}
	}
	types := sortedKeys(st.single)
	if len(types) > 1 && rapid.IntRange(0, 7).Draw(t, "stop") > 0 {
		types = slices.DeleteFunc(types, func(typ string) bool { return typ == abi.TypeStop })
	}
	return abi.StepOutput{Events: []abi.Event{{Type: rapid.SampledFrom(types).Draw(t, "type"), Body: body}}}
}

// call draws a host call of an open invocation.
func (w *walk) call(id uint64) Call {
	t := w.t
	inv := w.p.live.invocations[id]
	c := Call{Invocation: id, Attempt: inv.attempt, N: 1}
	typ := rapid.SampledFrom(w.g.EventTypes()).Draw(t, "call type")
	ev := abi.Event{Type: typ, Body: abi.EmptyMap}
	switch rapid.IntRange(0, 4).Draw(t, "call") {
	case 0:
		c.Request = SendEvent{Event: ev}
		if rapid.Bool().Draw(t, "named") {
			c.Request = SendEvent{Event: ev, Step: rapid.SampledFrom(w.g.steps).Draw(t, "to").name}
		}
	case 1:
		c.Request = WriteStream{Event: ev}
	case 2:
		if len(inv.trigger) > 0 && rapid.IntRange(0, 3).Draw(t, "own") > 0 {
			ev = rapid.SampledFrom(inv.trigger).Draw(t, "trigger")
		}
		expected := []string{"T1"}
		if rapid.Bool().Draw(t, "two") {
			expected = append(expected, typ)
		}
		c.Request = CollectEvents{Event: ev, Expected: expected, Buffer: rapid.SampledFrom([]string{"", "b"}).Draw(t, "buffer")}
	case 3:
		c.Request = CallResource{
			Resource: "crm", Method: "m", Payload: abi.EmptyMap, Ordinal: uint64(rapid.IntRange(1, 2).Draw(t, "ordinal")),
			Mode: rapid.SampledFrom([]host.ResourceMode{host.ResourceReadOnly, host.ResourceRepeat, host.ResourceFail}).Draw(t, "mode"),
		}
	default:
		c.Request = EditState{Edits: []abi.Edit{{Op: abi.OpIncrement, Path: "n", Value: abi.Raw{1}}}}
	}
	return c
}

// answer draws the answer to a call of a resource.
func (w *walk) answer(invocation uint64) ResourceAnswered {
	call, _ := w.p.live.OutCall(invocation)
	a := ResourceAnswered{Invocation: invocation, Attempt: call.Attempt, N: call.N}
	if rapid.IntRange(0, 2).Draw(w.t, "answer") == 0 {
		again := rapid.Bool().Draw(w.t, "retryable")
		a.Err = &abi.Error{Code: "drawn", Message: "drawn error", Retryable: &again}
	}
	return a
}

// step plays one random tick.
func (w *walk) step() {
	t, s := w.t, w.p.live
	open := s.Open()
	ids := sortedKeys(s.runs)
	w.p.now += int64(rapid.IntRange(0, 2).Draw(t, "time"))
	pick := rapid.IntRange(0, 19).Draw(t, "tick")
	switch {
	case s.Active() == 0 || pick == 0 && len(ids) < 3:
		w.runs++
		w.tick(StartRun{
			RunID: fmt.Sprint("r", w.runs), HandlerID: fmt.Sprint("h", rapid.IntRange(0, 2).Draw(t, "handler")), Version: "v1", Event: abi.Event{Type: abi.TypeStart},
			Timeout: int64(rapid.SampledFrom([]int{0, 60}).Draw(t, "run timeout")),
			Queue:   rapid.Bool().Draw(t, "queue"),
			Work:    rapid.Bool().Draw(t, "timeout of work"),
			Limits: host.Limits{
				CleanupTime: rapid.SampledFrom([]time.Duration{3, 30}).Draw(t, "clean-up"), QueuedStarts: 2,
				RunEvents: rapid.SampledFrom([]int{30, 1000}).Draw(t, "events"), StreamBytes: rapid.SampledFrom([]int{20, 1000}).Draw(t, "stream"),
			},
		})
	case s.TurnDue() && rapid.Bool().Draw(t, "turn"):
		w.tick(BeginRun{})
	case len(ids) == 0:
		w.tick(BeginRun{})
	case pick == 1:
		w.tick(PostEvent{RunID: rapid.SampledFrom(ids).Draw(t, "run"), Event: abi.Event{Type: rapid.SampledFrom(w.g.EventTypes()).Draw(t, "posted")}})
	case pick == 2:
		due, _ := s.DueTimeout(w.p.now)
		w.tick(Extend{Of: due, By: int64(rapid.IntRange(0, 9).Draw(t, "extended"))})
	case pick <= 4:
		w.tick(Timer{})
	case pick == 5 && rapid.IntRange(0, 3).Draw(t, "cancel") == 0:
		w.tick(Cancel{RunID: rapid.SampledFrom(append(ids, sortedKeys(s.turns.byRun)...)).Draw(t, "run")})
	case pick == 6 && rapid.IntRange(0, 9).Draw(t, "block") == 0:
		w.tick(Block{RunID: rapid.SampledFrom(ids).Draw(t, "run"), Reason: host.Blocked{Code: host.BlockedHostCrash}})
	case pick == 7 && rapid.Bool().Draw(t, "snapshot"):
		w.tick(TakeSnapshot{})
	case pick == 7:
		w.tick(Shift{Lost: int64(rapid.IntRange(0, 3).Draw(t, "lost"))})
	case pick <= 10 && len(s.calls) > 0:
		w.tick(w.answer(rapid.SampledFrom(s.OutCalls()).Draw(t, "answered")))
	case len(open) > 0:
		id := rapid.SampledFrom(open).Draw(t, "invocation")
		inv := s.invocations[id]
		if pick <= 13 {
			w.tick(w.call(id))
			return
		}
		w.tick(Finish{Invocation: id, Attempt: inv.attempt, Output: w.output(inv.step), Fuel: 1})
	default:
		w.tick(Timer{})
	}
}

// drain continues every run to its end or to a wait for the outside: all attempts return
// nothing, all timers fire.
func (w *walk) drain() {
	s := w.p.live
	for range 10_000 {
		open := s.Open()
		switch {
		case len(open) > 0:
			w.tick(Finish{Invocation: open[0], Attempt: s.invocations[open[0]].attempt})
		case s.TurnDue():
			w.tick(BeginRun{})
		case len(s.calls) > 0:
			w.tick(w.answer(s.OutCalls()[0]))
		case s.NextTimer() != host.WakeNever:
			w.p.now = s.NextTimer()
			w.tick(Timer{})
		default:
			for id, r := range s.runs {
				if r.rec.Blocked == nil && r.alive > 0 || r.ending != nil {
					w.t.Fatalf("run %s stands still with %d invocations", id, r.alive)
				}
			}
			return
		}
	}
	w.t.Fatal("the session does not come to rest")
}

// TestRandomWorkflows plays random ticks on random workflows. After every tick the
// session is audited, and its replay must be equal. Every run ends or waits for
// something. A journal that was tampered with must not cause a panic.
func TestRandomWorkflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t)
		w := &walk{t: t, g: g, known: make(map[*collection]scope), ending: make(map[string]string)}
		w.p = newPlayer(t, map[string]*Graph{"v1": g})
		for range rapid.IntRange(1, 80).Draw(t, "ticks") {
			w.step()
		}
		w.drain()
		tamper(t, g, w.journal)
	})
}

// tamper folds the journal with one entry changed. The journal must be refused, or result
// in a session that passes the audit.
func tamper(t *rapid.T, g *Graph, journal []*Entry) {
	s := New(host.SessionKey{}, func(string) (*Graph, error) { return g, nil })
	at := rapid.IntRange(0, len(journal)-1).Draw(t, "tampered")
	for i, e := range journal {
		if i == at {
			e = tampered(t, e, journal)
		}
		if _, err := s.Fold(e); err != nil {
			return
		}
		audit(t, s)
	}
	_ = s.Dump()
}

// tampered returns the entry with a part changed or taken from another entry.
func tampered(t *rapid.T, e *Entry, journal []*Entry) *Entry {
	c, o := *e, rapid.SampledFrom(journal).Draw(t, "other entry")
	switch rapid.IntRange(0, 15).Draw(t, "part") {
	case 0:
		c.Kind = EntryKind(rapid.IntRange(0, 27).Draw(t, "kind"))
	case 1:
		c.Invocation, c.Attempt = o.Invocation, o.Attempt
	case 2:
		c.RunID = o.RunID
	case 3:
		c.Start = o.Start
	case 4:
		c.Event = o.Event
	case 5:
		c.Collect = o.Collect
	case 6:
		c.Finish = o.Finish
	case 7:
		c.Timer = uint64(rapid.IntRange(0, 9).Draw(t, "timer"))
	case 8:
		c.Changes = o.Changes
	case 9:
		c.Retry = &RetryPart{Due: int64(rapid.IntRange(-9, 99).Draw(t, "due"))}
	case 10:
		c.Seq += uint64(rapid.IntRange(0, 2).Draw(t, "skip"))
	case 11:
		c.At -= 5
	case 12:
		c.Fault = &abi.Error{Code: "drawn"}
	case 13:
		c.Resource = o.Resource
	case 14:
		c.Answer = o.Answer
	default:
		c = *o
		c.Seq = e.Seq
	}
	return &c
}
