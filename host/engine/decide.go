package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// decision is the outcome of a tick: an entry, or nothing to journal. root is the state
// after the entry, if deciding the tick has already worked it out.
type decision struct {
	entry    *Entry
	response Response
	root     *state.Node
}

// decide turns a tick into an entry. It does not change the session.
func (s *Session) decide(at int64, t Tick) (decision, error) {
	e := &Entry{Seq: s.seq + 1, At: at}
	switch t := t.(type) {
	case StartRun:
		return s.decideStart(e, t)
	case PostEvent:
		return s.decidePost(e, t)
	case Call:
		return s.decideCall(e, t)
	case Finish:
		return s.decideFinish(e, t)
	case Timer:
		return s.decideTimer(e)
	case BeginRun:
		return s.decideBegin(e), nil
	case Cancel:
		e.Kind, e.RunID = EntryCancel, t.RunID
		_, err := s.activeRun(t.RunID)
		// A run that waits for its turn can be cancelled like any other.
		if s.notBegun(t.RunID) != nil {
			err = nil
		}
		return decision{entry: e}, err
	case Block:
		r, err := s.activeRun(t.RunID)
		// A second reason would hide the first, which an operator may be looking at.
		if err == nil && r.rec.Blocked != nil {
			err = ErrStale
		}
		e.Kind, e.RunID, e.Block = EntryBlock, t.RunID, &t.Reason
		return decision{entry: e}, err
	case Pause:
		r, err := s.activeRun(t.RunID)
		// Clients believe that a run in clean-up has ended, so they cannot pause it.
		if err == nil && r.ending != nil {
			err = host.Errorf(host.CodeConflict, "Run %s is cleaning up before it ends: it cannot be paused, only cancelled", clip(t.RunID))
		}
		// Pausing a paused run is not an error: the client has what it asked for.
		if err != nil || r.rec.Paused {
			return decision{}, err
		}
		e.Kind, e.RunID = EntryPause, t.RunID
		return decision{entry: e}, nil
	case Resume:
		r, err := s.activeRun(t.RunID)
		if err == nil && !r.held() {
			err = host.Errorf(host.CodeConflict, "Run %s is neither paused nor blocked", clip(t.RunID))
		}
		// Only a block interrupts attempts: after a pause nothing could begin anew.
		if err == nil && t.Anew && r.rec.Blocked == nil {
			err = host.Errorf(host.CodeConflict, "Run %s is not blocked", clip(t.RunID))
		}
		e.Kind, e.RunID, e.Anew = EntryResume, t.RunID, t.Anew
		return decision{entry: e}, err
	case Delivered:
		return s.decideDelivered(e, t)
	case ChildEnded:
		return s.decideEnded(e, t)
	case ChildShown:
		return s.decideShown(e, t)
	case ResourceAnswered:
		return s.decideAnswered(e, t)
	case ResourceDelta:
		return s.decideDelta(e, t)
	case TakeSnapshot:
		return s.decideSnapshot(e, t)
	case Adopt:
		return s.decideAdopt(e, t)
	case Rerun:
		return s.decideRerun(e, t)
	case Migrate:
		return s.decideMigrate(e, t)
	case EditSession:
		return s.decideOutside(e, t)
	case Extend:
		return s.decideExtend(e, t), nil
	case Shift:
		// The clock may have gone back while the server was down: no time was lost.
		if t.Lost <= 0 {
			return decision{}, nil
		}
		e.Kind, e.Lost = EntryShift, t.Lost
		return decision{entry: e}, nil
	}
	return decision{}, fmt.Errorf("unknown tick %T", t)
}

func (s *Session) activeRun(id string) (*run, error) {
	if r, ok := s.runs[id]; ok {
		return r, nil
	}
	if err := s.notBegun(id); err != nil { // a queued run exists, but cannot do this yet
		return nil, err
	}
	return nil, ErrUnknownRun
}

// openAttempt returns the invocation of an attempt that may still have effects.
func (s *Session) openAttempt(invocation, attempt uint64) (*invocation, error) {
	// An attempt of a blocked run is abandoned, though its invocation keeps its slot.
	inv, ok := s.invocations[invocation]
	if !ok || inv.phase != phaseRunning || inv.attempt != attempt || inv.run.rec.Blocked != nil {
		return nil, ErrStale
	}
	return inv, nil
}

func (s *Session) decideStart(e *Entry, t StartRun) (decision, error) {
	if _, _, known := s.HandlerRun(t.HandlerID); known && t.Parent != nil { // the message was delivered before
		return decision{}, ErrStale // the message came before
	}
	part, g, err := s.checkStart(t)
	if err != nil {
		return decision{}, err
	}
	e.RunID = t.RunID
	// A queued run gets its state when it begins, because other runs change it until
	// then.
	if t.Queue && s.waitsForTurn() {
		return s.decideQueue(e, part)
	}
	root, changes, err := s.stateFor(g, part.Limits)
	e.Kind, e.Start, e.Changes = EntryStart, part, changes
	return decision{entry: e, root: root}, err
}

// checkStart checks a start, except for the state that the run begins on, and returns the
// part for the entry.
func (s *Session) checkStart(t StartRun) (*StartPart, *Graph, error) {
	if t.RunID == "" || t.HandlerID == "" {
		return nil, nil, host.Errorf(host.CodeInvalidArgument, "a run needs an id and a handler")
	}
	// A handler has one run at a time: its stream must not mix the events of two.
	if _, active, _ := s.HandlerRun(t.HandlerID); active {
		return nil, nil, host.Errorf(host.CodeConflict, "Handler %s is already running", clip(t.HandlerID))
	}
	if _, ok := s.runs[t.RunID]; ok || s.notBegun(t.RunID) != nil {
		return nil, nil, host.Errorf(host.CodeConflict, "Run %s is already active", clip(t.RunID))
	}
	g, err := s.graphs(t.Version)
	if err != nil {
		return nil, nil, fmt.Errorf("find the workflow of version %s: %w", t.Version, err)
	}
	// A client need not name the start type, because a workflow has only one.
	if t.Event.Type == "" {
		t.Event.Type = g.start
	}
	if !g.mayStart(t.Event.Type) {
		return nil, nil, host.Errorf(host.CodeInvalidArgument, "Start event must be of type %s, not %s", g.start, clip(t.Event.Type))
	}
	return t.part(), g, nil
}

// schemaBreach returns the path and the reason of a breach without its error code.
func schemaBreach(err error) error {
	if breach := (*state.SchemaError)(nil); errors.As(err, &breach) {
		return fmt.Errorf("%q: %s", breach.Path, breach.Reason)
	}
	return err
}

// mayStart reports whether a run may begin with an event of the type: the start type, or
// a subtype of it that a step accepts.
func (g *Graph) mayStart(typ string) bool {
	t, ok := g.types[typ]
	return ok && (typ == g.start || t.kind == abi.KindStart && len(g.routes[typ]) > 0)
}

func (g *Graph) knows(typ string) bool { return g.types[typ] != nil }

func (s *Session) decidePost(e *Entry, t PostEvent) (decision, error) {
	r, err := s.activeRun(t.RunID)
	if err == nil && r.ending != nil {
		err = ErrUnknownRun // for clients the run has ended
	}
	if err != nil {
		return decision{}, err
	}
	if refused := r.graph.CheckPost(t.Event.Type, t.Step); refused != nil {
		return decision{}, refused
	}
	// An event of a client that breaks a limit is refused. Only a step's event fails the
	// run.
	if r.routed >= r.limits.RunEvents {
		return decision{}, host.Errorf(host.CodeLimitExceeded, "the run has had %d events, its limit", r.routed)
	}
	// Defaults belong in the entry, so that waits compare what the steps will see.
	ev := r.graph.filled(sanitized(t.Event))
	if s.overflows(r, parcel{[]abi.Event{ev}, t.Step, r.outermost.leadsTo}) {
		full := host.Errorf(host.CodeLimitExceeded, "the run keeps %d events that no step has waited for yet (limit inbox_events): try again later", r.inbox.size)
		full.RetryAfter = 1e9 // a second
		return decision{}, full
	}
	e.Kind, e.RunID, e.Event, e.Step = EntryPost, t.RunID, &ev, t.Step
	return decision{entry: e, response: Response{Delivery: s.delivery(r, ev, t.Step)}}, nil
}

// delivery says which steps an event from a client reaches.
func (s *Session) delivery(r *run, ev abi.Event, step string) host.Delivery {
	d := host.Delivery{How: host.DeliveredWaiter}
	add := func(st string) {
		if !slices.Contains(d.To, st) {
			d.To = append(d.To, st)
		}
	}
	// Waiters come first, as in route: an event that answers a wait reaches no step.
	for _, w := range s.takers(r, ev, step, nil) {
		add(w.step.name)
	}
	if len(d.To) > 0 {
		return d
	}
	for _, to := range r.graph.routes[ev.Type] {
		// The event is in the outermost collection, so only collectors of that can take
		// it.
		if (step == "" || step == to.step.name) && (to.step.mode != modeCollect || r.outermost.leadsTo(to.step)) {
			add(to.step.name)
		}
	}
	switch {
	case len(d.To) > 0:
		d.How = host.DeliveredSteps
	case r.graph.keeps(ev.Type, step):
		d.How = host.DeliveredKept
	default:
		d.How = host.DeliveredNobody
	}
	return d
}

// decideCall decides a host call of an open attempt.
func (s *Session) decideCall(e *Entry, t Call) (decision, error) {
	inv, err := s.openAttempt(t.Invocation, t.Attempt)
	if err != nil {
		return decision{}, err
	}
	e.RunID, e.Invocation, e.Attempt, e.N = inv.run.rec.RunID, inv.id, inv.attempt, t.N
	switch req := t.Request.(type) {
	case EditState:
		return s.decideWritten(e, inv, req, req.Prepared)
	case CommitState:
		return s.decideCommit(e, inv, req)
	case SendEvent:
		return s.decideSend(e, inv, req)
	case WriteStream:
		return s.decideWrite(e, inv, req)
	case CollectEvents:
		req.Event.Body = sanitized(req.Event).Body
		return s.decideCollect(e, inv, req)
	case WaitForEvent:
		return s.decideWait(e, inv, req)
	case Sleep:
		return s.decideSleep(e, inv, req)
	case RunWorkflow:
		return s.decideRun(e, inv, req)
	case CallResource:
		return s.decideResource(e, inv, req)
	}
	return decision{}, fmt.Errorf("unknown request %T", t.Request)
}

func (s *Session) decideCommit(e *Entry, inv *invocation, req CommitState) (decision, error) {
	// Nodes are immutable, so one comparison of pointers covers the whole value.
	if now, _ := state.Get(s.root, req.Path); now != req.Base {
		return decision{}, ErrConflict
	}
	return s.decideWritten(e, inv, req, req.Prepared)
}

// stateRefusal turns an error of package state into an error for the guest.
func stateRefusal(err error) error {
	if breach := (*state.SchemaError)(nil); errors.As(err, &breach) {
		return refusal("schema_violation", "%q: %s", breach.Path, breach.Reason)
	}
	if refused := (*state.Error)(nil); errors.As(err, &refused) {
		if refused.Path == "" {
			return refusal(refused.Code, "%s", refused.Message)
		}
		return refusal(refused.Code, "%q: %s", refused.Path, refused.Message)
	}
	return fmt.Errorf("edit the state: %w", err)
}

func (s *Session) decideSend(e *Entry, inv *invocation, req SendEvent) (decision, error) {
	req.Step = inv.addressed(req.Step)
	if err := inv.step.checkSend(inv.run.graph, req.Event.Type, req.Step); err != nil {
		return decision{}, err
	}
	ev := inv.correlatedOne(req.Event)
	// Refuse the event now: folding has no way to return an error to the guest.
	if r := inv.run; s.overflows(r, parcel{[]abi.Event{ev}, req.Step, inv.in.leadsTo}) {
		return decision{}, refuseInbox(r)
	}
	e.Kind, e.Event, e.Step = EntrySend, &ev, req.Step
	return decision{entry: e}, nil
}

// checkSend reports whether the step may send an event of the type, to the step named to
// if that is not "". It returns an [*abi.Error] or nil.
func (st *step) checkSend(g *Graph, typ, to string) error {
	kind, known := g.Kind(typ)
	switch {
	case IsRuntimeType(typ):
		return refuseRuntimeType(typ)
	case known && kind == abi.KindStop:
		return refusal("failed_precondition", "step %s sends the stop event %s: return it, a run ends only by a step's result", st.name, typ)
	case known && kind == abi.KindStart:
		return refusal("failed_precondition", "step %s sends the start event %s: it begins a run, send an event of another type", st.name, typ)
	case !st.single[typ]:
		return refusal(host.RunInvalidOutput, "step %s sends %s, which it does not declare: add it to its emits", st.name, clip(typ))
	case to != "" && !g.HasStep(to):
		return refusal("not_found", "step %s sends %s to %s, which is not a step", st.name, typ, clip(to))
	case to != "" && !g.Accepts(to, typ) && !g.keeps(typ, to):
		return refusal("failed_precondition", "step %s sends %s to step %s, which does not accept it", st.name, typ, to)
	}
	return nil
}

func refuseRuntimeType(typ string) *abi.Error {
	return refusal("permission_denied", "only the server makes events of the type %s", typ)
}

func (s *Session) decideWrite(e *Entry, inv *invocation, req WriteStream) (decision, error) {
	warning, err := inv.checkWrite(req.Event.Type)
	if err != nil || warning != "" {
		return decision{response: Response{Warning: warning}}, err
	}
	ev := sanitized(req.Event)
	e.Kind, e.Event = EntryStream, &ev
	return decision{entry: e}, nil
}

func (s *Session) decideFinish(e *Entry, t Finish) (decision, error) {
	inv, err := s.openAttempt(t.Invocation, t.Attempt)
	if err != nil {
		return decision{}, err
	}
	e.Kind, e.RunID, e.Invocation, e.Attempt = EntryFinish, inv.run.rec.RunID, inv.id, inv.attempt
	p := &FinishPart{Fuel: t.Fuel}
	e.Finish = p
	// Output that the step did not declare fails the attempt as if the guest had failed.
	if p.Err = t.Output.Err; p.Err == nil {
		p.Err = inv.step.checkOutput(t.Output)
	}
	if p.Err == nil {
		p.Err = inv.answers(t.Output)
	}
	t.Output.Events = inv.correlated(t.Output.Events)
	d := decision{entry: e}
	// The staged effects of an atomic step become part of this entry, or of none.
	if p.Err == nil && t.Stage != nil {
		if d.root, err = s.decideStage(e, inv, t.Stage); err != nil {
			return decision{}, err
		}
	}
	// Events that would overflow the inbox fail the attempt, so that none of them is
	// lost.
	if p.Err == nil && len(inv.run.graph.waits) > 0 && s.overflows(inv.run, t.Stage.sent(inv, parcel{t.Output.Events, "", inv.reach(t.Output)})...) {
		p.Err = refuseInbox(inv.run)
	}
	if p.Err != nil {
		p.Err = sanitizedError(p.Err)
		e.Retry = inv.retry(e.At, p.Err)
		p.Staged, e.Changes = nil, nil // a failed atomic step leaves no effects
		return decision{entry: e}, nil
	}
	p.List = t.Output.List
	if len(t.Output.Events) > 0 {
		p.Events = make([]abi.Event, len(t.Output.Events))
		for i, ev := range t.Output.Events {
			p.Events[i] = sanitized(ev)
		}
	}
	return d, nil
}

// checkOutput reports whether the step may return the output.
func (st *step) checkOutput(out abi.StepOutput) *abi.Error {
	fail := func(typ, what, fix string) *abi.Error {
		return refusal(host.RunInvalidOutput, "step %s returned %s%s: %s", st.name, clip(typ), what, fix)
	}
	if !out.List && len(out.Events) > 1 {
		return fail("several events", "", "return them as a list")
	}
	for i := range out.Events {
		typ := out.Events[i].Type
		switch {
		case IsRuntimeType(typ):
			return fail(typ, "", "only the server makes events of this type")
		case !out.List && st.single[typ]:
		case !out.List:
			return fail(typ, ", which it does not declare", "add it to its emits")
		}
	}
	if !out.List {
		return nil
	}
	if len(st.lists) == 0 {
		return fail("a list", ", which it does not declare", "add [\"list\", [type]] to its emits")
	}
	longest := -1 // elements that the best list emit declares
	for i := range st.lists {
		n := 0
		for n < len(out.Events) && st.lists[i].types[out.Events[n].Type] {
			n++
		}
		longest = max(longest, n)
		// Name the element at which the best list emit ends: that one is the mistake.
	}
	if longest < len(out.Events) {
		return fail(out.Events[longest].Type, " in a list, which it does not declare", "add it to that list in its emits")
	}
	return nil
}

// retry decides whether another attempt follows the failed one.
func (inv *invocation) retry(now int64, err *abi.Error) *RetryPart {
	return retryAt(now, attemptFailure{
		policy: inv.step.decl.Retry, err: err, attempt: inv.attempt, elapsed: now - inv.start,
		seed: inv.run.seed, invocation: inv.id,
	})
}

func (s *Session) decideTimer(e *Entry) (decision, error) {
	// The caller may be early, or an earlier tick may have removed the timer.
	t := s.timers.first()
	if t == nil || t.at > e.At {
		return decision{}, nil
	}
	e.Kind, e.RunID, e.Timer = EntryTimer, t.run.rec.RunID, t.id
	if t.inv != nil {
		e.Invocation, e.Attempt = t.inv.id, t.inv.attempt
	}
	// The policy is applied here, and the entry holds its result: Fold needs no policy.
	if t.kind == timerAttempt {
		e.Retry = t.inv.retry(e.At, t.overdue())
	}
	return decision{entry: e}, nil
}

// overdue is the error of an attempt that ran into its step's timeout.
func (t *timer) overdue() *abi.Error {
	return refusal(host.RunTimeout, "step %s timed out after %s", t.inv.step.name, showSeconds(t.span))
}

// sanitized prepares an event from outside the session for storage. It removes the id,
// because the session gives its own ids, and adds an empty body if there is none.
func sanitized(ev abi.Event) abi.Event {
	ev.ID = 0
	if ev.Body == nil {
		ev.Body = abi.EmptyMap
	}
	return ev
}

// maxMessage bounds the message of a step's error, in bytes. The message becomes part of
// the run's record.
const maxMessage = 16 << 10

// sanitizedError bounds an error and turns it into valid UTF-8, fit for storage.
func sanitizedError(err *abi.Error) *abi.Error {
	out := *err
	if out.Code = clip(out.Code); out.Code == "" {
		out.Code = "internal"
	}
	if len(out.Message) > maxMessage {
		out.Message = out.Message[:maxMessage] + "..."
	}
	out.Message = strings.ToValidUTF8(out.Message, "\ufffd")
	return &out
}
