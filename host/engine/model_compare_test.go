package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// pair is a session and its model. Both get the same ticks.
type pair struct {
	manifest *abi.Manifest
	types    []string // that it declares, and base types
	names    []string // of its steps
	session  *engine.Session
	model    *model
	journal  []*engine.Entry
	played   []func() string // the ticks, for a failure

	mood    mood
	now     int64
	started uint64
	fresh   int
	guests  map[uint64]*guest
	seen    map[string]uint64 // the invocation that an event started, by step and event
}

func newPair(m *abi.Manifest) (*pair, error) {
	g, problems := engine.Compile(m)
	if g == nil {
		return nil, fmt.Errorf("the drawn workflow is refused: %v", problems)
	}
	p := &pair{manifest: m, model: newModel(m), guests: map[uint64]*guest{}, seen: map[string]uint64{}}
	p.session = engine.New(sessionKey, func(string) (*engine.Graph, error) { return g, nil })
	p.types = p.model.g.allTypes()
	for i := range m.Steps {
		p.names = append(p.names, m.Steps[i].Name)
	}
	return p, nil
}

var sessionKey = host.SessionKey{Tenant: "t", Session: "s"}

// play reduces a tick in both, and returns how they differ.
func (p *pair) play(now int64, t engine.Tick) error {
	p.played = append(p.played, func() string { return showTick(now, t) })
	res, err := p.session.Reduce(now, t)
	refusal := codeOf(err)
	var answer, refused string
	commit, isCommit := commitOf(t)
	if isCommit {
		refused = p.playCommit(now, t.(engine.Call), commit)
	} else {
		answer, refused = p.model.tick(now, t)
	}
	if refusal != refused {
		return fmt.Errorf("refused with %q (%s), the model with %q", refusal, fmt.Sprint(err), refused)
	}
	if got := showAnswer(res.Response); refused == "" && got != answer {
		return fmt.Errorf("the answer is %q, the model's is %q", got, answer)
	}
	if err := same("what is done", showCommands(res.Commands), p.model.out); err != nil {
		return err
	}
	if err := same("what is open", p.showOpen(), p.model.showOpen()); err != nil {
		return err
	}
	if err := same("the runs", p.showRuns(), p.model.showRuns()); err != nil {
		return err
	}
	engine.Audit(fatal{}, p.session)
	if res.Entry != nil {
		p.journal = append(p.journal, res.Entry)
	}
	p.note(t, refused, res.Response.Suspended)
	return p.invariants()
}

func showTick(now int64, t engine.Tick) string {
	if start, ok := t.(engine.StartRun); ok {
		l := start.Limits
		return fmt.Sprintf("%d: start %s of %s by %s, timeout %d of work %t, events %d, stream %d, inbox %d, suspensions %d",
			now, start.RunID, start.HandlerID, start.Event.Type, start.Timeout, start.Work, l.RunEvents, l.StreamBytes, l.InboxEvents, l.Suspensions)
	}
	return fmt.Sprintf("%d: %T%+v", now, t, t)
}

// fatal is a test that fails by a panic, which the player of a seed catches.
type fatal struct{}

func (fatal) Helper()                           {}
func (fatal) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (fatal) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (fatal) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (fatal) FailNow()                          { panic("failed") }

// note records the outcome of a guest's call.
func (p *pair) note(t engine.Tick, refused string, suspended bool) {
	c, ok := t.(engine.Call)
	if g := p.guests[c.Invocation]; ok && g != nil && refused != stale {
		g.again = nil
		if suspended {
			g.again = &c
		}
		if _, ok := c.Request.(engine.CommitState); ok && len(g.bases) > 0 {
			g.bases = g.bases[1:]
		}
	}
}

func commitOf(t engine.Tick) (engine.CommitState, bool) {
	c, ok := t.(engine.Call)
	if !ok {
		return engine.CommitState{}, false
	}
	commit, ok := c.Request.(engine.CommitState)
	return commit, ok
}

func (p *pair) playCommit(now int64, c engine.Call, commit engine.CommitState) string {
	w := p.model
	w.advance(now)
	w.out = nil
	if w.open(c.Invocation, c.Attempt) == nil {
		return stale
	}
	value := map[string]int64{}
	flatten(strings.Join(pathNames(commit), "."), decoded(commit.Value.Encode()), value)
	return w.commit(strings.Join(pathNames(commit), "."), p.guests[c.Invocation].bases[0].was, value)
}

func pathNames(c engine.CommitState) []string { return strings.Split(c.Path.String(), ".") }

func decoded(raw abi.Raw) any {
	v, err := abi.DecodeValue(raw)
	if err != nil {
		panic(err)
	}
	return v
}

func flatten(at string, v any, into map[string]int64) {
	switch v := v.(type) {
	case int64:
		into[at] = v
	case map[string]any:
		for key, inner := range v {
			flatten(strings.TrimPrefix(at+"."+key, "."), inner, into)
		}
	}
}

func codeOf(err error) string {
	var guest *abi.Error
	var client *host.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, engine.ErrStale):
		return stale
	case errors.Is(err, engine.ErrConflict):
		return conflict
	case errors.Is(err, engine.ErrUnknownRun):
		return unknown
	case errors.As(err, &guest):
		return guest.Code
	case errors.As(err, &client):
		return string(client.Code)
	}
	return err.Error()
}

func showAnswer(r engine.Response) string {
	switch {
	case r.Suspended:
		return "suspended"
	case r.Complete:
		return "collected" + showEvents(r.Collected)
	case r.Event.Type != "":
		return showEvent(r.Event)
	case r.Delivery.How != "":
		return fmt.Sprint(r.Delivery.How, r.Delivery.To)
	case r.Warning != "":
		return "warning"
	case len(r.Results) > 0:
		return fmt.Sprint(decoded(r.Results[0]))
	}
	return ""
}

func showCommands(commands []engine.Command) []string {
	var out []string
	for _, c := range commands {
		switch c := c.(type) {
		case engine.StartAttempt:
			out = append(out, fmt.Sprintf("attempt %d", c.Invocation))
		case engine.Abandon:
			out = append(out, fmt.Sprintf("abandon %d", c.Invocation))
		case engine.RunEnded:
			out = append(out, fmt.Sprintf("ended %s", c.RunID))
		case engine.Publish:
			out = append(out, fmt.Sprintf("%s %d %s %v", c.HandlerID, c.Event.Seq, c.Event.Type, normal(c.Event.Body)))
		}
	}
	return out
}

func same(what string, got, want []string) error {
	for i := range max(len(got), len(want)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(nothing more)"
		}
		if line(got) != line(want) {
			return fmt.Errorf("%s, line %d:\n  engine %s\n  model  %s", what, i+1, line(got), line(want))
		}
	}
	return nil
}

func (p *pair) showOpen() []string {
	out := []string{fmt.Sprint("next timer ", p.session.NextTimer())}
	for _, id := range p.session.Open() {
		out = append(out, fmt.Sprint("open ", id))
	}
	for id := range p.model.invocations { // of all past invocations
		if inv, ok := p.session.Invocation(id + 1); ok {
			code := ""
			if inv.LastError != nil {
				code = inv.LastError.Code
			}
			out = append(out, fmt.Sprintf("invocation %d of %s in %s: attempt %d after %q, list %t:%s", inv.ID, inv.Step, inv.RunID, inv.Attempt, code, inv.List, showEvents(inv.Trigger)))
		}
	}
	return out
}

func (w *model) showOpen() []string {
	next := host.WakeNever
	if t := w.nextTimer(); t != nil {
		next = max(t.at, 1)
	}
	out := []string{fmt.Sprint("next timer ", next)}
	var all, open []*modelInvocation
	for _, r := range w.runs {
		for _, inv := range r.invocations {
			all = append(all, inv)
			if inv.where == "running" && r.blocked == "" {
				open = append(open, inv)
			}
		}
	}
	slices.SortFunc(open, func(a, b *modelInvocation) int { return int(a.seat) - int(b.seat) })
	slices.SortFunc(all, func(a, b *modelInvocation) int { return int(a.id) - int(b.id) })
	for _, inv := range open {
		out = append(out, fmt.Sprint("open ", inv.id))
	}
	for _, inv := range all {
		list := isJoin(inv.step) || isCollector(inv.step)
		out = append(out, fmt.Sprintf("invocation %d of %s in %s: attempt %d after %q, list %t:%s", inv.id, inv.step.Name, inv.run.id, inv.attempt, inv.lastErr, list, showEvents(inv.trigger)))
	}
	return out
}

func (p *pair) showRuns() []string {
	var out []string
	for _, r := range p.model.runs {
		out = append(out, showRecord(p.session, r.id))
	}
	if r := p.model.lastGone(); r != nil {
		out = append(out, showRecord(p.session, r.id))
	}
	now := map[string]int64{}
	flatten("", decoded(p.session.State().Encode()), now)
	return append(out, fmt.Sprint(p.session.Active(), " active, state ", now))
}

func showRecord(s *engine.Session, id string) string {
	r, ok := s.Record(id)
	blocked := ""
	if r.Blocked != nil {
		blocked = r.Blocked.Code
	}
	return fmt.Sprintf("%s %t %s %q steps=%d fuel=%d paused=%t %s %v keeps %v", id, ok, r.Status, r.ErrorCode, r.Steps, r.Fuel, r.Paused, blocked, r.WaitingFor, r.Kept)
}

func (w *model) showRuns() []string {
	var out []string
	for _, r := range w.runs {
		r.waitingFor = w.waitingNow(r)
		out = append(out, w.showRun(r))
	}
	if r := w.lastGone(); r != nil {
		out = append(out, w.showRun(r))
	}
	return append(out, fmt.Sprint(len(w.runs), " active, state ", w.state))
}

// lastGone returns the run that ended last, unless its id is in use again.
func (w *model) lastGone() *modelRun {
	if n := len(w.gone); n > 0 && w.run(w.gone[n-1].id) == nil {
		return w.gone[n-1]
	}
	return nil
}

func (w *model) showRun(r *modelRun) string {
	return fmt.Sprintf("%s %t %s %q steps=%d fuel=%d paused=%t %s %v keeps %v", r.id, true, r.status, r.code, r.steps, r.fuel, r.paused, r.blocked, r.waitingFor, r.keeps())
}

// invariants hold independently of the model: no step runs more invocations than it has
// workers, and no event reaches a step twice.
func (p *pair) invariants() error {
	running := map[string]int{}
	for _, id := range p.session.Open() {
		inv, ok := p.session.Invocation(id)
		if !ok {
			return fmt.Errorf("invocation %d is open and is not there", id)
		}
		at := inv.RunID + " " + inv.Step
		if running[at]++; running[at] > workersOf(p.model.g.step(inv.Step)) {
			return fmt.Errorf("worker bound: %s runs %d", at, running[at])
		}
	}
	for id := range p.model.invocations {
		inv, ok := p.session.Invocation(id + 1)
		for _, ev := range inv.Trigger {
			key := fmt.Sprint(inv.Step, " ", ev.ID)
			if before := p.seen[key]; ok && before != 0 && before != inv.ID {
				return fmt.Errorf("nothing twice: event %d came to %s as %d and as %d", ev.ID, inv.Step, before, inv.ID)
			}
			p.seen[key] = inv.ID
		}
	}
	return nil
}

// rest continues until only the outside could change anything: attempts return nothing,
// timers fire, held runs are resumed.
func (p *pair) rest() error {
	for range 5000 {
		if open := p.session.Open(); len(open) > 0 {
			inv, _ := p.session.Invocation(open[0])
			if err := p.play(p.now, engine.Finish{Invocation: inv.ID, Attempt: inv.Attempt}); err != nil {
				return err
			}
			continue
		}
		if at := p.session.NextTimer(); at != host.WakeNever {
			p.now = max(p.now, at)
			if err := p.play(p.now, engine.Timer{}); err != nil {
				return err
			}
			continue
		}
		held := slices.IndexFunc(p.model.runs, (*modelRun).held)
		if held < 0 {
			return p.atRest()
		}
		if err := p.play(p.now, engine.Resume{RunID: p.model.runs[held].id}); err != nil {
			return err
		}
	}
	return errors.New("the session does not come to rest")
}

// atRest: every run that has not ended waits for something that its record names, or has
// no invocation left. The journal alone must restore the same session.
func (p *pair) atRest() error {
	for _, r := range p.model.runs {
		rec, _ := p.session.Record(r.id)
		if len(r.invocations) > 0 && len(rec.WaitingFor) == 0 {
			return fmt.Errorf("every run ends or waits: %s has %d invocations and waits for nothing", r.id, len(r.invocations))
		}
	}
	return p.reload()
}

// reload drops the session and loads it from its journal. Open edits are not committed,
// because their base belongs to the other session.
func (p *pair) reload() error {
	p.played = append(p.played, func() string { return "reload" })
	before := p.session.Dump()
	g, _ := engine.Compile(p.manifest)
	p.session = engine.New(sessionKey, func(string) (*engine.Graph, error) { return g, nil })
	for i, e := range p.journal {
		raw, err := abi.Marshal(e)
		var stored engine.Entry
		if err == nil {
			err = abi.Unmarshal(raw, &stored)
		}
		if err == nil {
			_, err = p.session.Fold(&stored)
		}
		if err != nil {
			return fmt.Errorf("load entry %d: %w", i+1, err)
		}
	}
	for _, g := range p.guests {
		g.bases = nil
	}
	return same("the loaded session", strings.Split(p.session.Dump(), "\n"), strings.Split(before, "\n"))
}
