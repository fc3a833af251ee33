package engine

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// restored are sessions restored from snapshots of a session that plays on. All get every
// tick of that session, and must behave the same.
type restored struct{ sessions []*Session }

// translated returns the tick for one of the restored sessions, which has its own nodes
// of the state.
func (p *player) translated(tick Tick) []Tick {
	of := p.restored[p.live]
	if of == nil {
		of = &restored{}
		p.restored[p.live] = of
	}
	out := make([]Tick, len(of.sessions))
	for i, s := range of.sessions {
		out[i] = translate(tick, p.live, s)
	}
	return out
}

// translate translates the nodes that a tick compares from one session to another.
func translate(tick Tick, from, to *Session) Tick {
	node := func(path state.Path, n *state.Node) *state.Node {
		if now, _ := state.Get(from.root, path); now != n {
			return &state.Node{} // what is nowhere
		}
		there, _ := state.Get(to.root, path)
		return there
	}
	switch t := tick.(type) {
	case Call:
		if req, ok := t.Request.(CommitState); ok {
			req.Base = node(req.Path, req.Base)
			t.Request = req
		}
		return t
	case Finish:
		if t.Stage == nil {
			return t
		}
		stage := *t.Stage
		stage.Seen = nil
		for _, seen := range t.Stage.Seen {
			stage.Seen = append(stage.Seen, Seen{seen.Path, node(seen.Path, seen.Node)})
		}
		t.Stage = &stage
		return t
	case EditSession:
		if t.Base != nil {
			t.Base = node(nil, t.Base)
		}
		return t
	}
	return tick
}

// checkRestored reduces the tick in the restored sessions and compares the outcome. It
// then restores the session once more.
func (p *player) checkRestored(ticks []Tick, want Result, wantErr error) {
	p.t.Helper()
	of := p.restored[p.live]
	for i, s := range of.sessions {
		res, err := s.Reduce(p.now, ticks[i])
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			p.t.Fatalf("restored session %d: error %v, want %v", i, err, wantErr)
		}
		if !reflect.DeepEqual(res, want) {
			p.t.Fatalf("restored session %d:\n got %s\nwant %s", i, plain(res), plain(want))
		}
		audit(p.t, s)
		diffText(p.t, "restored session", p.live.Dump(), s.Dump())
	}
	again := p.snapshot()
	if p.keepAll || len(of.sessions) == 0 {
		of.sessions = append(of.sessions, again)
	} else { // the next one is restored from this one
		of.sessions[0] = p.again(of.sessions[0])
	}
}

func plain(r Result) string {
	var b strings.Builder
	if r.Entry != nil {
		raw, _ := abi.Marshal(r.Entry)
		b.WriteString(abi.Diag(raw))
	}
	for _, c := range r.Commands {
		b.WriteString("\n" + showCommand(c))
	}
	return b.String()
}

// snapshot restores the live session from a snapshot of it.
func (p *player) snapshot() *Session {
	p.t.Helper()
	return p.again(p.live)
}

func (p *player) again(from *Session) *Session {
	p.t.Helper()
	data, err := from.Snapshot()
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := Restore(from.key, onlyNeeded(p.t, from, &Entry{Kind: EntrySnapshot}, from.graphs), data)
	if err != nil {
		p.t.Fatalf("restore: %v", err)
	}
	s.graphs = from.graphs
	audit(p.t, s)
	diffText(p.t, "restored session", from.Dump(), s.Dump())
	other, err := s.Snapshot()
	if err != nil || !bytes.Equal(data, other) {
		p.t.Fatalf("the snapshot of a restored session is another one: %v\n%s\n%s", err, abi.Diag(data), abi.Diag(other))
	}
	return s
}

// saved says for every field of a session where the snapshot has it, as TYPE.FIELD of the
// saved form, or, after "-", why the snapshot does not have it.
var saved = map[string]string{
	"Session.key":            "- given to Restore",
	"Session.graphs":         "- given to Restore",
	"Session.seq":            "savedSession.Seq",
	"Session.now":            "savedSession.Now",
	"Session.root":           "savedSession.State",
	"Session.lastEvent":      "savedSession.LastEvent",
	"Session.lastInvocation": "savedSession.LastInvocation",
	"Session.lastTimer":      "savedSession.LastTimer",
	"Session.lastCollection": "savedSession.LastCollection",
	"Session.lastSeat":       "savedSession.LastSeat",
	"Session.lastWait":       "savedSession.LastWait",
	"Session.lastMessage":    "savedSession.LastMessage",
	"Session.lastCall":       "savedSession.LastCall",
	"Session.ran":            "savedSession.Ran",
	"ranVersion.workflow":    "savedRan.Workflow",
	"ranVersion.version":     "savedRan.Version",
	"Session.calls":          "savedSuspension.Call",
	"Session.handlers":       "savedSession.Handlers",
	"Session.runs":           "savedSession.Runs",
	"Session.invocations":    "savedRun.Invocations",
	"Session.timers":         "- each is saved with what it belongs to",
	"Session.children":       "savedInvocation.Children",
	"Session.outbox":         "savedSession.Outbox",
	"Session.turns":          "savedSession.Turns",
	"Session.seats":          "- the attempts that run",
	"Session.ended":          "savedSession.Ended",
	"Session.out":            "- empty between entries",
	"Session.own":            "- counts the work of a tick",
	"Session.visited":        "- counts work for tests",

	"handler.id":   "savedHandler.ID",
	"handler.run":  "savedHandler.Run",
	"handler.next": "savedHandler.Next",

	"timers.heap": "- made of the timers that run",
	"timers.byID": "- made of the timers that run",

	"timer.id":   "savedTimer.ID",
	"timer.kind": "- follows from what it belongs to",
	"timer.at":   "savedTimer.At",
	"timer.span": "savedTimer.Span",
	"timer.run":  "- what it is saved with",
	"timer.inv":  "- what it is saved with",
	"timer.slot": "- place in the heap; whether it runs follows from the run",

	"outbox.byTarget": "savedSession.Outbox",
	"outbox.size":     "- a count",
	"Message.ID":      "savedMessage.ID",
	"Message.To":      "savedMessage.To",
	"Message.Start":   "savedMessage.Start",
	"Message.Ended":   "savedMessage.Ended",
	"Message.Shown":   "savedMessage.Shown",
	"Message.Cancel":  "savedMessage.Cancel",

	"turns.line":   "savedSession.Turns",
	"turns.byRun":  "- made of the line",
	"queued.rec":   "savedTurn.Record",
	"queued.start": "savedTurn.Start",
	"queued.graph": "- found by the version",

	"run.rec":         "savedRun.Record",
	"run.graph":       "- found by the version",
	"run.limits":      "savedRun.Limits",
	"run.seed":        "savedRun.Seed",
	"run.handler":     "- found by the record's handler id",
	"run.parent":      "savedRun.Parent",
	"run.result":      "- of a run that has ended",
	"waiter.need":     "savedWaiter.Need",
	"run.pools":       "savedRun.Queues",
	"run.outermost":   "savedRun.Joins",
	"run.collections": "savedRun.Collections",
	"run.buffers":     "savedRun.Buffers",
	"run.waiting":     "savedSuspension.Waiter",
	"run.outside":     "- a count of waits",
	"run.standing":    "savedRun.Standing",
	"run.inbox":       "savedRun.Inbox",
	"run.deadline":    "savedRun.Deadline",
	"run.work":        "savedRun.Work",
	"run.stopped":     "savedRun.Stopped",
	"run.stalls":      "savedRun.Stalls",
	"run.silent":      "savedRun.Silent",
	"run.last":        "- set again by the entry that looks at it",
	"run.seated":      "- a count of the attempts that run",
	"run.begun":       "savedRun.Begun",
	"run.age":         "savedRun.Age",
	"run.ending":      "savedRun.Ending",
	"run.heldAt":      "savedRun.HeldAt",
	"run.oldest":      "savedRun.Invocations",
	"run.newest":      "savedRun.Invocations",
	"run.alive":       "- a count of invocations",
	"run.routed":      "savedRun.Routed",
	"run.streamBytes": "savedRun.StreamBytes",
	"run.unhandled":   "- empty between entries",

	"parentLink.session": "savedParent.Session",
	"parentLink.stream":  "savedParent.Stream",
	"parentLink.shown":   "savedParent.Shown",
	"parentLink.depth":   "savedParent.Depth",

	"ending.cause":  "savedEnding.Cause",
	"ending.span":   "savedEnding.Span",
	"ending.active": "savedEnding.Active",

	"pool.busy":      "- a count of the attempts that run",
	"pool.taken":     "savedInvocation.Worker",
	"pool.first":     "savedRun.Queues",
	"pool.last":      "savedRun.Queues",
	"pool.waiting":   "- a count",
	"pool.suspended": "- a count",

	"collection.id":         "savedCollection.ID",
	"collection.parent":     "savedCollection.Parent",
	"collection.alive":      "- a count of what is in it",
	"collection.collectors": "savedCollection.Collectors",
	"collection.joins":      "savedCollection.Joins",
	"collector.step":        "savedCollector.Step",
	"collector.events":      "savedCollector.Events",
	"collector.lineage":     "savedCollector.Lineage",
	"collector.fired":       "savedCollector.Fired",
	"join.slots":            "savedJoin.Slots",
	"join.ready":            "- a count",
	"emission.event":        "savedKept.Event",
	"emission.in":           "- of a join its collection; of the inbox nobody looks at it",
	"emission.lineage":      "savedKept.Lineage",
	"emission.step":         "savedKept.Step",
	"emission.shown":        "- looked at only while it is routed",
	"recovery.catcher":      "savedRecovery.Catcher",
	"recovery.count":        "savedRecovery.Count",

	"bufferKey.step": "savedBuffer.Step",
	"bufferKey.name": "savedBuffer.Name",
	"buffer.events":  "savedBuffer.Events",
	"buffer.types":   "savedBuffer.Events",
	"arrivals.ids":   "savedBuffer.Events",
	"arrivals.live":  "- a count",

	"inbox.byType": "savedRun.Inbox",
	"inbox.size":   "- a count",

	"waiting.shapes":      "- made of the waits",
	"waitShape.key":       "- made of the fields",
	"waitShape.fields":    "savedWish.Fields",
	"waitShape.byWant":    "- made of the waits",
	"waitQueue.single":    "- made of the waits, in the order of savedWaiter.Seq",
	"waitQueue.broadcast": "- made of the waits, in the order of savedWaiter.Seq",

	"invocation.id":          "savedInvocation.ID",
	"invocation.run":         "- what it is saved with",
	"invocation.step":        "savedInvocation.Step",
	"invocation.trigger":     "savedInvocation.Trigger",
	"invocation.in":          "savedInvocation.In",
	"invocation.lineage":     "savedInvocation.Lineage",
	"invocation.attempt":     "savedInvocation.Attempt",
	"invocation.lastErr":     "savedInvocation.LastError",
	"invocation.began":       "savedInvocation.Began",
	"invocation.start":       "savedInvocation.Start",
	"invocation.phase":       "savedInvocation.Phase",
	"invocation.worker":      "savedInvocation.Worker",
	"invocation.seat":        "savedInvocation.Seat",
	"invocation.timer":       "savedInvocation.Timer",
	"invocation.calls":       "savedInvocation.Calls",
	"invocation.suspended":   "savedInvocation.Suspension",
	"invocation.suspensions": "savedInvocation.Suspensions",
	"invocation.line":        "savedRun.Standing",
	"invocation.since":       "savedInvocation.Since",
	"invocation.halfway":     "savedInvocation.Halfway",
	"invocation.asked":       "savedInvocation.Asked",
	"invocation.askedBytes":  "savedInvocation.AskedBytes",
	"invocation.waiters":     "savedInvocation.Waiters",
	"invocation.children":    "savedInvocation.Children",
	"invocation.slept":       "savedInvocation.Slept",
	"invocation.ahead":       "savedRun.Queues",
	"invocation.behind":      "savedRun.Queues",
	"invocation.older":       "savedRun.Invocations",
	"invocation.newer":       "savedRun.Invocations",

	"collectCalls.made":    "savedInvocation.Calls",
	"collectCalls.fresh":   "savedInvocation.Fresh",
	"collectCalls.byID":    "- made of the trigger when needed",
	"collectKey.buffer":    "savedCall.Buffer",
	"collectKey.given":     "savedCall.Given",
	"collectKey.fresh":     "savedCall.Fresh",
	"collectCall.sets":     "savedCall.Sets",
	"releasedSet.expected": "savedSet.Expected",
	"releasedSet.events":   "savedSet.Events",

	"suspension.n":      "savedSuspension.N",
	"suspension.waiter": "savedSuspension.Waiter",
	"suspension.child":  "savedSuspension.Child",
	"suspension.call":   "savedSuspension.Call",
	"suspension.timer":  "savedSuspension.Timer",

	"outcall.inv":     "- what it is saved with",
	"outcall.attempt": "savedOutcall.Attempt",
	"outcall.n":       "savedOutcall.N",
	"outcall.order":   "savedOutcall.Order",
	"outcall.part":    "savedOutcall.Part",
	"outcall.id":      "savedOutcall.ID",
	"outcall.value":   "savedOutcall.Value",
	"outcall.err":     "savedOutcall.Err",

	"outcall.streamed": "savedOutcall.Streamed",
	"outcall.hash":     "savedOutcall.Hash",

	"waiter.id":        "savedWaiter.ID",
	"waiter.inv":       "- what it is saved with",
	"waiter.step":      "- of its invocation",
	"waiter.typ":       "savedWaiter.Type",
	"waiter.shape":     "savedWish.Fields",
	"waiter.place":     "- its place in a queue, by savedWaiter.Seq",
	"waiter.values":    "savedWish.Values",
	"waiter.broadcast": "savedWaiter.Broadcast",
	"waiter.seq":       "savedWaiter.Seq",
	"waiter.since":     "savedWaiter.Since",
	"waiter.asked":     "savedWaiter.Asked",
	"waiter.answer":    "savedWaiter.Answer",
	"waiter.late":      "savedWaiter.Late",

	"child.key":      "savedChild.Key",
	"child.inv":      "- what it is saved with",
	"child.workflow": "savedChild.Workflow",
	"child.run":      "savedChild.Run",
	"child.handler":  "savedChild.Handler",
	"child.session":  "savedChild.Session",
	"child.begun":    "savedChild.Begun",
	"child.stream":   "savedChild.Stream",
	"child.seen":     "savedChild.Seen",
	"child.since":    "savedChild.Since",
	"child.start":    "savedChild.Start",
	"child.result":   "savedChild.Result",
	"child.err":      "savedChild.Err",
}

// savedForms are the types of the form, by name. host.Run and StartRun are converted as a
// whole, which the compiler checks.
var savedForms = []reflect.Type{
	reflect.TypeFor[savedForm](), reflect.TypeFor[savedSession](), reflect.TypeFor[savedHandler](), reflect.TypeFor[savedRecord](),
	reflect.TypeFor[savedTurn](), reflect.TypeFor[savedMessage](), reflect.TypeFor[savedStart](), reflect.TypeFor[savedRun](),
	reflect.TypeFor[savedParent](), reflect.TypeFor[savedTimer](), reflect.TypeFor[savedEnding](), reflect.TypeFor[savedRecovery](),
	reflect.TypeFor[savedKept](), reflect.TypeFor[savedJoin](), reflect.TypeFor[savedCollection](), reflect.TypeFor[savedCollector](),
	reflect.TypeFor[savedBuffer](), reflect.TypeFor[savedInvocation](), reflect.TypeFor[savedCall](), reflect.TypeFor[savedSet](),
	reflect.TypeFor[savedSuspension](), reflect.TypeFor[savedWish](), reflect.TypeFor[savedWaiter](), reflect.TypeFor[savedChild](),
	reflect.TypeFor[savedOutcall](), reflect.TypeFor[savedRan](),
}

// listed are the types inside container/list, which reflection does not see.
var listed = []reflect.Type{reflect.TypeFor[queued](), reflect.TypeFor[invocation](), reflect.TypeFor[waiter]()}

// TestSnapshotHasEverything walks the types of a session. A new field must be saved, or
// listed with a reason.
func TestSnapshotHasEverything(t *testing.T) {
	forms := make(map[string]bool)
	for _, typ := range savedForms {
		keys := make(map[string]bool)
		for f := range typ.Fields() {
			forms[typ.Name()+"."+f.Name] = true
			key, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			if key == "" || keys[key] {
				t.Errorf("%s.%s has the key %q, as has another", typ.Name(), f.Name, key)
			}
			keys[key] = true
		}
	}
	met := make(map[string]bool)
	seen := make(map[reflect.Type]bool)
	here := reflect.TypeFor[Session]().PkgPath()
	whole := map[reflect.Type]bool{ // types of other packages, or with an encoding of their own
		reflect.TypeFor[Graph](): true, reflect.TypeFor[step](): true, reflect.TypeFor[StartPart](): true, reflect.TypeFor[Parent](): true,
		reflect.TypeFor[ChildEnd](): true, reflect.TypeFor[ChildShow](): true, reflect.TypeFor[StartRun](): true,
		reflect.TypeFor[ResourcePart](): true,
	}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(typ.Elem())
			return
		case reflect.Map:
			walk(typ.Key())
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ.PkgPath() != here || whole[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name := typ.Name() + "." + f.Name
			met[name] = true
			if how := saved[name]; how == "" || !strings.HasPrefix(how, "- ") && !forms[how] {
				t.Errorf("%s is saved as %q, which is not a field of a snapshot: save it in snapshot.go, restore it in restore.go, and note it here", name, how)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Session]())
	for _, typ := range listed {
		walk(typ)
	}
	for name := range saved {
		if !met[name] {
			t.Errorf("%s is noted as saved, and is not a field", name)
		}
	}
}

// TestVersionOfRecord: the record of a run has its version, for queued runs too, and also
// after restoring an older snapshot without it.
func TestVersionOfRecord(t *testing.T) {
	text, err := os.ReadFile(histories + "/queue-fifo.txtar")
	if err != nil {
		t.Fatal(err)
	}
	a := parseArchive(string(text))
	p := newPlayer(t, graphsOf(t, a))
	runs, queued := 0, 0
	for line := range strings.Lines(a.file("ticks")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p.play(line)
		older := withoutVersions(t, p.live)
		s, err := Restore(p.live.key, p.live.graphs, older)
		if err != nil {
			t.Fatal(err)
		}
		for id, version := range p.live.Versions() {
			rec, restored := p.live.recordOf(id), s.recordOf(id)
			if rec.Version != version || restored.Version != version || version == "" {
				t.Errorf("run %s is on version %s: its record says %q, restored %q", id, version, rec.Version, restored.Version)
			}
		}
		runs, queued = runs+len(s.runs), queued+s.turns.line.Len()
	}
	if runs == 0 || queued == 0 {
		t.Errorf("%d runs and %d queued ones", runs, queued)
	}
}

// TestNeedsOfChildren: the parent's session needs the version of a child in another
// session until the child has ended, because the child may have to begin again.
func TestNeedsOfChildren(t *testing.T) {
	text, err := os.ReadFile(histories + "/child-private.txtar")
	if err != nil {
		t.Fatal(err)
	}
	a := parseArchive(string(text))
	p := newPlayer(t, graphsOf(t, a))
	most := 0
	for line := range strings.Lines(a.file("ticks")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p.play(line)
		if p.live.key.Session != "s" {
			continue // the child's own
		}
		needs := p.live.Needs(&Entry{Kind: EntrySnapshot})
		if most = max(most, len(needs)); len(p.live.children) > 0 && len(needs) != 2 {
			t.Errorf("after %q the session needs %q", line, needs)
		}
	}
	if needs := p.live.Needs(&Entry{Kind: EntrySnapshot}); most != 2 || len(needs) != 1 { // that of the run that was, for its schema
		t.Errorf("it has needed %d versions, and needs %q", most, needs)
	}
}

// recordOf returns the record of a run that has not ended.
func (s *Session) recordOf(id string) host.Run {
	if q, ok := s.turns.of(id); ok {
		return q.rec
	}
	return s.runs[id].rec
}

// withoutVersions is a snapshot as it was when records did not have versions.
func withoutVersions(t *testing.T, s *Session) []byte {
	t.Helper()
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var form savedForm
	var session savedSession
	if err := errors.Join(abi.Unmarshal(data, &form), abi.Unmarshal(form.Session, &session)); err != nil {
		t.Fatal(err)
	}
	e := &saver{}
	for i := range session.Runs {
		var r savedRun
		if err := abi.Unmarshal(session.Runs[i], &r); err != nil {
			t.Fatal(err)
		}
		r.Record.Version = ""
		session.Runs[i] = e.item(r)
	}
	for i := range session.Turns {
		var turn savedTurn
		if err := abi.Unmarshal(session.Turns[i], &turn); err != nil {
			t.Fatal(err)
		}
		turn.Record.Version = ""
		session.Turns[i] = e.item(turn)
	}
	form.Session = e.item(session)
	return e.item(form)
}

// TestLoadFromSnapshot: an entry with a snapshot changes nothing in a session that is
// being folded. To a session that begins with it, the entry replaces all entries before
// it.
func TestLoadFromSnapshot(t *testing.T) {
	text, err := os.ReadFile(histories + "/child-shared.txtar")
	if err != nil {
		t.Fatal(err)
	}
	a := parseArchive(string(text))
	p := newPlayer(t, graphsOf(t, a))
	later := New(p.live.key, p.live.graphs)
	n := 0
	for line := range strings.Lines(a.file("ticks")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		seq := p.live.seq
		p.play(line)
		if n++; n == 3 {
			held := []HeldAttempt{{Invocation: 1, Attempt: 1, Crashes: 2}}
			res, err := p.tick(TakeSnapshot{Held: held})
			if err != nil || !later.Skips(&Entry{Seq: seq, Kind: EntryEdit}) || later.Skips(res.Entry) {
				t.Fatalf("%v", err)
			}
			if _, err := later.Fold(recoded(t, res.Entry)); err != nil {
				t.Fatal(err)
			}
			if _, err := p.live.Reduce(p.now, Adopt{}); err == nil {
				t.Error("a session that has entries adopts another")
			}
			wrong := *res.Entry
			wrong.Seq++
			if _, err := New(p.live.key, p.live.graphs).Fold(&wrong); !errors.Is(err, errCorrupt) {
				t.Errorf("a snapshot of another entry: %v", err)
			}
			diffText(t, "loaded session", p.live.Dump(), later.Dump())
			if got, want := later.Versions(), p.live.Versions(); !reflect.DeepEqual(got, want) || len(got) == 0 {
				t.Errorf("versions %v, want %v", got, want)
			}
			return
		}
	}
	t.Fatal("the history is too short")
}
