package history

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// timelineBytes is about how many bytes of values a part of a timeline has.
const timelineBytes = 8 << 20

// Timeline reads what happened in a run; see [host.Runs].
func (r *Reader) Timeline(ctx context.Context, q host.TimelineQuery) (host.Timeline, error) {
	run, err := r.Get(ctx, q.Tenant, q.ID)
	if err != nil {
		return host.Timeline{}, err
	}
	q.Limit = min(max(q.Limit, 1), host.MaxTimeline)
	if q.Before == 0 || q.Before > math.MaxInt64 {
		q.Before = math.MaxInt64
	}
	key := host.SessionKey{Tenant: q.Tenant, Session: run.SessionID}
	if q.Newest {
		return r.newest(ctx, key, run.RunID, q)
	}
	t, p := newTeller(run.RunID, q), r.Past(key)
	// The walk begins where the position can be folded from, and the teller passes over what
	// precedes the page.
	err = p.Walk(ctx, max(q.After, 1), t)
	switch {
	case err != nil:
		return host.Timeline{}, err
	// Entries between the page before and this one have been deleted: a page that begins later
	// would hide the gap.
	case p.First > q.After+1 && (q.After != 0 || len(t.out.Entries) == 0):
		return host.Timeline{}, CutAway(p.First)
	}
	return t.out, nil
}

// newest reads the last entries of a query, newest first. It folds the journal from one
// snapshot to the next, the last part first.
func (r *Reader) newest(ctx context.Context, key host.SessionKey, runID string, q host.TimelineQuery) (host.Timeline, error) {
	var out host.Timeline
	bytes := 0
	for q.Before > q.After+1 {
		t, p := newTeller(runID, q), r.Past(key)
		t.limit, t.bytes = q.Limit-len(out.Entries), bytes
		if err := p.Walk(ctx, q.Before-1, t); err != nil {
			return host.Timeline{}, err
		}
		slices.Reverse(t.out.Entries)
		out.Entries, bytes = append(out.Entries, t.out.Entries...), t.bytes
		begun := p.First <= 1 || p.First >= q.Before // there are no entries before
		switch {
		case len(out.Entries) > 0 && (t.dropped || len(out.Entries) == q.Limit && !begun && p.First > q.After+1):
			out.Next = out.Entries[len(out.Entries)-1].Seq
			return out, nil
		case begun:
			return out, nil
		}
		q.Before = p.First
	}
	return out, nil
}

func newTeller(runID string, q host.TimelineQuery) *teller {
	return &teller{run: runID, q: q, limit: q.Limit, began: map[uint64]attemptBegun{}}
}

// teller writes down the entries of one run.
type teller struct {
	run     string
	q       host.TimelineQuery
	limit   int
	out     host.Timeline // oldest first
	bytes   int
	dropped bool // the query wants the newest entries, and older ones were dropped

	began map[uint64]attemptBegun // attempts that hold a worker, or wait in mid-attempt
	// Of the entry that is being folded.
	root  *state.Node
	view  engine.Invocation
	asked engine.OutCall // that the invocation waits for
	timer string
	begun bool // before it
	over  bool // the run has ended
}

// attemptBegun is when an attempt of an invocation began.
type attemptBegun struct {
	attempt uint64
	at      int64
}

// See implements Onlooker.
func (t *teller) See(p *Past, e *engine.Entry) bool {
	// The entry changes all of this, and the description needs the values from before.
	t.root = p.Engine.State()
	t.view, _ = p.Engine.Invocation(e.Invocation)
	t.asked, _ = p.Engine.OutCall(e.Invocation)
	t.timer = p.Engine.TimerKind(e.Timer)
	t.begun = p.Engine.Begun(t.run)
	return !t.over && t.out.Next == 0 && e.Seq < t.q.Before
}

// Seen implements Onlooker.
func (t *teller) Seen(p *Past, e *engine.Entry, cmds []engine.Command) error {
	out := host.TimelineEntry{Seq: e.Seq, At: e.At, RunID: t.run, Kind: e.Kind.String()}
	// Entries before the page count, too: an attempt on the page may have begun there.
	t.follow(p, e, cmds, &out)
	if !t.concerns(p, e, &out) || e.Seq <= t.q.After {
		return nil
	}
	own := e.RunID == t.run || e.Kind == engine.EntryPatch
	if !selects(t.q.Kinds, out.Kind) || len(t.q.Steps) > 0 && (!own || !selects(t.q.Steps, t.view.Step)) {
		return nil
	}
	// The entry belongs to the next page. A page has at least one entry, whatever its size.
	if n := len(t.out.Entries); !t.q.Newest && (n == t.limit || t.bytes > timelineBytes) {
		t.out.Next = t.out.Entries[n-1].Seq
		return nil
	}
	out.Forkable = p.Engine.Begun(t.run) && p.Ledger.Restful()
	// Of an entry of another run only the effect on this run is shown.
	if own {
		if err := t.describe(p, e, &out); err != nil {
			return err
		}
	}
	if err := t.shorten(&out); err != nil {
		return err
	}
	t.bytes += sizeOfTimeline(&out)
	t.out.Entries = append(t.out.Entries, out)
	t.drop()
	return nil
}

// drop removes the oldest entries that exceed the page, if the query wants the newest.
func (t *teller) drop() {
	if !t.q.Newest {
		return
	}
	for len(t.out.Entries) > t.limit || t.bytes > timelineBytes && len(t.out.Entries) > 1 {
		t.bytes -= sizeOfTimeline(&t.out.Entries[0])
		t.out.Entries[0] = host.TimelineEntry{} // its values need not stay in memory
		t.out.Entries, t.dropped = t.out.Entries[1:], true
	}
}

// selects reports whether a filter of a query selects a value.
func selects(filter []string, value string) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

// shorten cuts the values of an entry that are longer than the query asks for.
func (t *teller) shorten(out *host.TimelineEntry) error {
	if t.q.Cut == 0 {
		return nil
	}
	var values []*abi.Raw
	for i := range out.Events {
		values = append(values, &out.Events[i].Body)
	}
	for i := range out.Edits {
		values = append(values, &out.Edits[i].Old, &out.Edits[i].New)
	}
	for i := range out.Logs {
		values = append(values, &out.Logs[i].Attrs)
	}
	if c := out.Called; c != nil {
		values = append(values, &c.Payload, &c.Answer)
	}
	for _, v := range values {
		if len(*v) <= t.q.Cut {
			continue
		}
		limits := abi.Limits{MaxBytes: len(*v), MaxDepth: abi.MaxValueDepth, MaxElements: 2 * len(*v), MaxText: len(*v)}
		text, err := limits.AppendJSON(nil, *v)
		if err != nil {
			return err
		}
		head := strings.ToValidUTF8(string(text[:min(t.q.Cut, len(text))]), "")
		if *v, err = abi.Marshal(map[string]any{"cut": true, "bytes": len(text), "head": head}); err != nil {
			return err
		}
	}
	return nil
}

// follow keeps account of the run's attempts, and notes which began and whether
// the run has ended.
func (t *teller) follow(p *Past, e *engine.Entry, cmds []engine.Command, out *host.TimelineEntry) {
	if e.Kind == engine.EntrySnapshot { // the timeline may begin with it
		for i := range e.Held {
			if h := &e.Held[i]; h.Open != nil && t.began[h.Invocation].attempt != h.Attempt {
				t.began[h.Invocation] = attemptBegun{h.Attempt, h.Open.Clock}
			}
		}
	}
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.StartAttempt:
			view, ok := p.Engine.Invocation(c.Invocation)
			if !ok || view.RunID != t.run {
				continue
			}
			out.Began = append(out.Began, host.TimelineAttempt{Step: view.Step, Invocation: view.ID, Attempt: view.Attempt})
			// An attempt that continues after a wait keeps the time of its first start.
			if b := t.began[view.ID]; b.attempt != view.Attempt {
				t.began[view.ID] = attemptBegun{view.Attempt, e.At}
			}
		case engine.RunChanged:
			if c.Run.RunID == t.run && c.Run.Status.Final() {
				out.Status, t.over = c.Run.Status, true
			}
		}
	}
	if e.RunID != t.run || e.Finish == nil && e.Kind != engine.EntryTimer {
		return
	}
	// A timer ends an attempt only if the timer is the timeout of the attempt.
	if b := t.began[e.Invocation]; b.attempt != 0 && b.attempt == e.Attempt && (e.Finish != nil || t.timer == "attempt") {
		out.Duration = e.At - b.at
		delete(t.began, e.Invocation)
	}
}

// concerns reports whether an entry is of the run: its own, the one that began it
// as a child or a fork, one of a child that it waited for, or an edit of the state from
// outside while it was active.
func (t *teller) concerns(p *Past, e *engine.Entry, out *host.TimelineEntry) bool {
	if e.Kind == engine.EntryPatch {
		return t.begun
	}
	// A fork or a retry begins the run by a snapshot: its entry need not name the run.
	if e.RunID == t.run || (e.Kind == engine.EntryFork || e.Kind == engine.EntryRetry) && p.Engine.Begun(t.run) && !t.begun {
		return true
	}
	if runID, start := e.Begins(); start != nil && runID == t.run {
		out.Kind, out.Events = engine.EntryStart.String(), []abi.Event{start.Event}
		return true
	}
	// Nothing but the end of a child lets a run continue by an entry of another run.
	if len(out.Began) > 0 || out.Status != "" {
		out.Kind = engine.EntryChildEnded.String()
		return true
	}
	return false
}

// describe says what the run's own entry did.
func (t *teller) describe(p *Past, e *engine.Entry, out *host.TimelineEntry) error {
	out.Step, out.Invocation, out.Attempt, out.Call, out.To = t.view.Step, e.Invocation, e.Attempt, e.N, e.Step
	out.Timer, out.Until, out.Block = t.timer, e.Due, e.Block
	if e.Start != nil {
		out.Events = append(out.Events, e.Start.Event)
	}
	if e.Event != nil {
		out.Events = append(out.Events, *e.Event)
	}
	if f := e.Finish; f != nil {
		for _, staged := range f.Staged {
			out.Events = append(out.Events, staged.Event)
		}
		out.Events = append(out.Events, f.Events...)
		out.List, out.Fuel, out.Err = f.List, f.Fuel, f.Err
	}
	if e.Fault != nil {
		out.Err = e.Fault
	}
	if e.Retry != nil {
		out.RetryAt = e.Retry.Due
	}
	if w := e.Wait; w != nil {
		out.Wait = &host.TimelineWait{ID: w.ID, Type: w.Type, Requirements: w.Requirements, Broadcast: w.Broadcast, Answered: w.Taken}
	}
	t.child(p, e, out)
	if c := e.Resource; c != nil {
		out.Called = &host.TimelineCall{Resource: c.Resource, Method: c.Method, Payload: c.Payload}
	}
	if d := e.Delta; d != nil {
		out.Events = []abi.Event{{Type: engine.TypeAnswerPart, Body: d.Body}}
	}
	if a := e.Answer; a != nil {
		out.Called = &host.TimelineCall{Resource: t.asked.Resource, Method: t.asked.Method, Answer: a.Value}
		out.Err = a.Err
	}
	// Older entries have no clock for each line.
	for _, l := range e.Logs {
		out.Logs = append(out.Logs, host.TimelineLog{At: cmp.Or(l.Clock, e.At), Level: l.Level, Message: l.Message, Attrs: l.Attrs})
	}
	return t.edits(e, out)
}

// child says which child an entry is about.
func (t *teller) child(p *Past, e *engine.Entry, out *host.TimelineEntry) {
	switch c := e.Child; {
	case c != nil && c.Start != nil:
		out.Child = &host.TimelineChild{Workflow: c.Workflow, RunID: c.RunID, HandlerID: c.Start.HandlerID, SessionID: c.Session}
		// The child runs in the session of its parent.
		if c.Session == "" {
			out.Child.SessionID = p.Key.Session
		}
		out.Events = []abi.Event{c.Start.Event}
	case c != nil:
		out.Child = &host.TimelineChild{Workflow: c.Workflow}
	case e.Ended != nil:
		out.Child = &host.TimelineChild{RunID: e.Ended.RunID}
		if out.Err = e.Ended.Err; e.Ended.Result != nil {
			out.Events = []abi.Event{*e.Ended.Result}
		}
	case e.Shown != nil:
		out.Child = &host.TimelineChild{RunID: e.Shown.RunID, Workflow: e.Shown.Workflow}
		out.Events = []abi.Event{{Type: e.Shown.Type, Body: e.Shown.Body}}
	}
}

// edits shows the changes of the state, each with what was there before it.
func (t *teller) edits(e *engine.Entry, out *host.TimelineEntry) error {
	if len(e.Changes) == 0 {
		return nil
	}
	changes, err := state.DecodeChanges(e.Changes)
	if err != nil {
		return err
	}
	root := t.root
	for i := range changes {
		edit := host.TimelineEdit{Path: changes[i].At()}
		if old := changes[i].Old(root); old != nil {
			edit.Old = old.Encode()
		}
		if changes[i].Value != nil {
			edit.New = changes[i].Value.Encode()
		}
		out.Edits = append(out.Edits, edit)
		// Each change is relative to the state after the change before.
		if root, err = state.Fold(root, changes[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// sizeOfTimeline is about how many bytes of values an entry has.
func sizeOfTimeline(out *host.TimelineEntry) int {
	n := 256
	if c := out.Called; c != nil {
		n += len(c.Payload) + len(c.Answer)
	}
	for i := range out.Events {
		n += len(out.Events[i].Body)
	}
	for i := range out.Edits {
		n += len(out.Edits[i].Old) + len(out.Edits[i].New)
	}
	for i := range out.Logs {
		n += len(out.Logs[i].Message) + len(out.Logs[i].Attrs)
	}
	return n
}
