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

// decision is what a tick comes to: an entry, or nothing to journal. root is
// the state after the entry if deciding made it already.
type decision struct {
	entry    *Entry
	response Response
	root     *state.Node
}

// decide turns a tick into the entry it becomes. It changes nothing.
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
		if s.notBegun(t.RunID) != nil {
			err = nil
		}
		return decision{entry: e}, err
	case Block:
		r, err := s.activeRun(t.RunID)
		if err == nil && r.rec.Blocked != nil {
			err = ErrStale
		}
		e.Kind, e.RunID, e.Block = EntryBlock, t.RunID, &t.Reason
		return decision{entry: e}, err
	case Pause:
		r, err := s.activeRun(t.RunID)
		if err == nil && r.ending != nil {
			err = host.Errorf(host.CodeConflict, "Run %s is cleaning up before it ends: it cannot be paused, only cancelled", clip(t.RunID))
		}
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
	if err := s.notBegun(id); err != nil {
		return nil, err
	}
	return nil, ErrUnknownRun
}

// openAttempt finds an attempt that may still do something.
func (s *Session) openAttempt(invocation, attempt uint64) (*invocation, error) {
	inv, ok := s.invocations[invocation]
	if !ok || inv.phase != phaseRunning || inv.attempt != attempt || inv.run.rec.Blocked != nil {
		return nil, ErrStale
	}
	return inv, nil
}

func (s *Session) decideStart(e *Entry, t StartRun) (decision, error) {
	if _, _, known := s.HandlerRun(t.HandlerID); known && t.Parent != nil {
		return decision{}, ErrStale // the message came before
	}
	part, g, err := s.checkStart(t)
	if err != nil {
		return decision{}, err
	}
	e.RunID = t.RunID
	if t.Queue && s.waitsForTurn() {
		return s.decideQueue(e, part)
	}
	root, changes, err := s.stateFor(g, part.Limits)
	e.Kind, e.Start, e.Changes = EntryStart, part, changes
	return decision{entry: e, root: root}, err
}

// checkStart checks a start but for the state that it begins on, and gives what
// the entry has of it.
func (s *Session) checkStart(t StartRun) (*StartPart, *Graph, error) {
	if t.RunID == "" || t.HandlerID == "" {
		return nil, nil, host.Errorf(host.CodeInvalidArgument, "a run needs an id and a handler")
	}
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
	if t.Event.Type == "" {
		t.Event.Type = g.start
	}
	if !g.mayStart(t.Event.Type) {
		return nil, nil, host.Errorf(host.CodeInvalidArgument, "Start event must be of type %s, not %s", g.start, clip(t.Event.Type))
	}
	return t.part(), g, nil
}

// schemaBreach says where and why, without the code that the error has anyway.
func schemaBreach(err error) error {
	if breach := (*state.SchemaError)(nil); errors.As(err, &breach) {
		return fmt.Errorf("%q: %s", breach.Path, breach.Reason)
	}
	return err
}

// mayStart reports whether a run may begin with the type: the start type, or a
// subtype of it that a step accepts.
func (g *Graph) mayStart(typ string) bool {
	t, ok := g.types[typ]
	return ok && (typ == g.start || t.kind == abi.KindStart && len(g.routes[typ]) > 0)
}

func (g *Graph) knows(typ string) bool { return g.types[typ] != nil }

func (s *Session) decidePost(e *Entry, t PostEvent) (decision, error) {
	r, err := s.activeRun(t.RunID)
	if err == nil && r.ending != nil {
		err = ErrUnknownRun // to clients it has ended
	}
	if err != nil {
		return decision{}, err
	}
	if refused := r.graph.CheckPost(t.Event.Type, t.Step); refused != nil {
		return decision{}, refused
	}
	if r.routed >= r.limits.RunEvents {
		return decision{}, host.Errorf(host.CodeLimitExceeded, "the run has had %d events, its limit", r.routed)
	}
	ev := r.graph.filled(sanitized(t.Event))
	if s.overflows(r, parcel{[]abi.Event{ev}, t.Step, r.outermost.leadsTo}) {
		full := host.Errorf(host.CodeLimitExceeded, "the run keeps %d events that no step has waited for yet (limit inbox_events): try again later", r.inbox.size)
		full.RetryAfter = 1e9 // a second
		return decision{}, full
	}
	e.Kind, e.RunID, e.Event, e.Step = EntryPost, t.RunID, &ev, t.Step
	return decision{entry: e, response: Response{Delivery: s.delivery(r, ev, t.Step)}}, nil
}

// delivery says to whom an event from outside goes.
func (s *Session) delivery(r *run, ev abi.Event, step string) host.Delivery {
	d := host.Delivery{How: host.DeliveredWaiter}
	add := func(st string) {
		if !slices.Contains(d.To, st) {
			d.To = append(d.To, st)
		}
	}
	for _, w := range s.takers(r, ev, step, nil) {
		add(w.step.name)
	}
	if len(d.To) > 0 {
		return d
	}
	for _, to := range r.graph.routes[ev.Type] {
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
	if now, _ := state.Get(s.root, req.Path); now != req.Base {
		return decision{}, ErrConflict
	}
	return s.decideWritten(e, inv, req, req.Prepared)
}

// stateRefusal turns an error of package state into one for the guest.
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
	if r := inv.run; s.overflows(r, parcel{[]abi.Event{ev}, req.Step, inv.in.leadsTo}) {
		return decision{}, refuseInbox(r)
	}
	e.Kind, e.Event, e.Step = EntrySend, &ev, req.Step
	return decision{entry: e}, nil
}

// checkSend says whether the step may send such an event, to the step if one is
// named. It returns an [*abi.Error] or nil.
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
	if p.Err = t.Output.Err; p.Err == nil {
		p.Err = inv.step.checkOutput(t.Output)
	}
	if p.Err == nil {
		p.Err = inv.answers(t.Output)
	}
	t.Output.Events = inv.correlated(t.Output.Events)
	d := decision{entry: e}
	if p.Err == nil && t.Stage != nil {
		if d.root, err = s.decideStage(e, inv, t.Stage); err != nil {
			return decision{}, err
		}
	}
	if p.Err == nil && len(inv.run.graph.waits) > 0 && s.overflows(inv.run, t.Stage.sent(inv, parcel{t.Output.Events, "", inv.reach(t.Output)})...) {
		p.Err = refuseInbox(inv.run)
	}
	if p.Err != nil {
		p.Err = sanitizedError(p.Err)
		e.Retry = inv.retry(e.At, p.Err)
		p.Staged, e.Changes = nil, nil // what an atomic step did is undone
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

// checkOutput says whether the step may return such a result.
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
	longest := -1 // how far the best fitting list emit goes
	for i := range st.lists {
		n := 0
		for n < len(out.Events) && st.lists[i].types[out.Events[n].Type] {
			n++
		}
		longest = max(longest, n)
	}
	if longest < len(out.Events) {
		return fail(out.Events[longest].Type, " in a list, which it does not declare", "add it to that list in its emits")
	}
	return nil
}

// retry decides whether the invocation's failed attempt is followed by another.
func (inv *invocation) retry(now int64, err *abi.Error) *RetryPart {
	return retryAt(now, attemptFailure{
		policy: inv.step.decl.Retry, err: err, attempt: inv.attempt, elapsed: now - inv.start,
		seed: inv.run.seed, invocation: inv.id,
	})
}

func (s *Session) decideTimer(e *Entry) (decision, error) {
	t := s.timers.first()
	if t == nil || t.at > e.At {
		return decision{}, nil
	}
	e.Kind, e.RunID, e.Timer = EntryTimer, t.run.rec.RunID, t.id
	if t.inv != nil {
		e.Invocation, e.Attempt = t.inv.id, t.inv.attempt
	}
	if t.kind == timerAttempt {
		e.Retry = t.inv.retry(e.At, t.overdue())
	}
	return decision{entry: e}, nil
}

// overdue is the error of an attempt that took too long.
func (t *timer) overdue() *abi.Error {
	return refusal(host.RunTimeout, "step %s timed out after %s", t.inv.step.name, showSeconds(t.span))
}

// sanitized is an event from outside of the session as it is kept: without an
// id, as ids are given here, and with a body.
func sanitized(ev abi.Event) abi.Event {
	ev.ID = 0
	if ev.Body == nil {
		ev.Body = abi.EmptyMap
	}
	return ev
}

// maxMessage bounds the message of a step's error in bytes: it is part of the
// run's record.
const maxMessage = 16 << 10

// sanitizedError bounds an error and makes it text that can be stored.
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
