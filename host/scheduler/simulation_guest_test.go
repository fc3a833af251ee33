package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// simManifest is the workflow that the simulation runs, by name and timeout in
// nanoseconds. Every way of an event through the engine is in it: fan-out and
// join, sends, collected events, waits and sleeps, retries, step timeouts, a
// catcher, a clean-up of several steps, a stop.
const simManifest = `{"abi": 1, "workflow": %q, "timeout": %d, ` + simWants + `
  "events": {"Work": {}, "Part": {}, "Piece": {}, "Tick": {}, "Note": {}, "Nudge": {}, "Close": {"kind": "human_response"}},
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": ["Work", "Tick", "Nudge", ["list", ["Part"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Work", "Tick", "Nudge", "StopEvent"], "workers": 2, "timeout": 2000000000, "waits": ["Nudge"],
     "retry": {"wait": {"fixed": 30000000}, "stop": {"attempts": 3}}},
    {"name": "part", "accepts": ["Part"], "emits": ["Piece", "Work", "Tick", "Nudge"], "workers": 3, "waits": ["Nudge"],
     "retry": {"wait": {"fixed": 0}, "stop": {"attempts": 2}}},
    {"name": "join", "accepts": [["list", ["Piece"]]], "emits": ["Work", "Tick"]},
    {"name": "whole", "accepts": ["Work"], "emits": ["Tick"], "atomic": true, "workers": 2,
     "retry": {"wait": {"fixed": 10000000}, "stop": {"attempts": 2}}},
    {"name": "gather", "accepts": ["Tick"], "emits": [], "workers": 2},
    {"name": "rescue", "accepts": ["StepFailedEvent"], "catches": "*", "max_recoveries": 3, "emits": ["Work", "Tick"]},
    {"name": "tidy", "accepts": ["StepFailedEvent"], "catches": ["cancelled", "timeout"], "emits": ["Work", "Tick", "Nudge"], "waits": ["Nudge"],
     "retry": {"wait": {"fixed": 20000000}, "stop": {"attempts": 2}}},
    {"name": "close", "accepts": ["Close"], "emits": ["StopEvent"]}]}`

// kidManifest is the workflow that guests run as a child.
const kidManifest = `{"abi": 1, "workflow": "kid", "timeout": 5000000000, ` + simWants + ` "events": {"Note": {}, "Nudge": {}},
  "steps": [{"name": "kid", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Nudge"],
     "retry": {"wait": {"fixed": 20000000}, "stop": {"attempts": 2}}}]}`

// simSandbox runs guests that are Go functions: each is drawn by its trigger
// and makes its host calls one interleaving point at a time.
type simSandbox struct{ w *world }

func (s simSandbox) Inspect(context.Context, []byte, host.Limits) ([]string, []host.Problem) {
	return nil, nil
}

func (s simSandbox) Describe(context.Context, string, []byte, host.Limits) (host.Description, error) {
	return host.Description{}, nil
}

// Invoke runs a guest to its end, or to the error that unwinds it.
func (s simSandbox) Ready(*host.Invocation) bool { return true }

func (s simSandbox) Prepare(context.Context, *host.Invocation) (uint64, error) { return 0, nil }

func (s simSandbox) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	in, err := abi.DecodeStepInput(inv.Input)
	if err != nil {
		return host.InvocationResult{}, err
	}
	inv.Token = burner{inv.Token, s.w.sim.billing.burnt}
	s.w.sim.billing.burnt.Add(1) // an end burns that, and nothing else is metered of it
	g := &simGuest{w: s.w, ctx: ctx, inv: inv, in: in, clock: inv.Clock}
	g.tag = triggerTag(&in)
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, in.Step, g.tag, in.Run.Attempt)
	g.rng = rand.New(rand.NewPCG(h.Sum64(), s.w.sim.seed))
	out, trap, err := g.program()
	if err != nil {
		s.w.yield("guest is on its way out")
		return host.InvocationResult{}, err
	}
	if s.w.dead.Load() || ctx.Err() != nil {
		return host.InvocationResult{}, context.Canceled
	}
	s.w.sim.finished(&in, g.done)
	if trap != nil {
		return host.InvocationResult{Err: trap, Fuel: 1}, nil
	}
	return host.InvocationResult{Output: out, Fuel: 1}, nil
}

// triggerTag is what the event was named by whoever made it. A list is named by
// its first event, what has no event by its invocation.
func triggerTag(in *abi.StepInput) string {
	if len(in.Trigger) > 0 {
		if tag, _ := fieldsOf(in.Trigger[0].Body)["tag"].(string); tag != "" {
			if in.List {
				return tag + "+"
			}
			return tag
		}
	}
	return fmt.Sprintf("%s/%d", in.Run.RunID, in.Run.Invocation)
}

func fieldsOf(body abi.Raw) map[string]any {
	v, _ := abi.DecodeValue(body)
	m, _ := v.(map[string]any)
	return m
}

// effect is something that a guest did and that must be there once. kind is
// edit, note or send.
type effect struct{ kind, token string }

type simGuest struct {
	w     *world
	ctx   context.Context
	inv   host.Invocation
	in    abi.StepInput
	tag   string
	rng   *rand.Rand
	clock int64
	ops   int
	done  []effect
}

// call makes a host call, as the sandbox does. A nil answer and no error: the
// host refused it.
func (g *simGuest) call(im abi.Import, req any) (abi.Raw, error) {
	g.w.yield("guest call")
	if g.w.dead.Load() || g.ctx.Err() != nil {
		return nil, context.Canceled
	}
	b, err := abi.EncodeValue(req)
	if err != nil {
		return nil, err
	}
	resp, status, clock, err := g.inv.Calls.Call(im, b, g.clock)
	if err != nil {
		return nil, err
	}
	if clock < g.clock {
		g.w.sim.failf("the guest's clock went back from %d to %d", g.clock, clock)
	}
	g.clock = clock
	if status != abi.StatusOK {
		return nil, nil
	}
	return resp, nil
}

// token is a new name for an effect; the same in every run of the attempt.
func (g *simGuest) token() string {
	g.ops++
	run := g.in.Run.RunID // an attempt of a run that was retried is another one
	return fmt.Sprintf("%s|%s%s|%d|%d", g.tag, g.in.Step, run[:min(4, len(run))], g.in.Run.Attempt, g.ops)
}

func (g *simGuest) did(kind, token string) { g.done = append(g.done, effect{kind, token}) }

// program is what the guest does: some operations, and a result.
func (g *simGuest) program() (out []byte, trap *abi.Error, err error) {
	if g.in.Step == "gather" {
		if err := g.collect(); err != nil {
			return nil, nil, err
		}
	}
	if g.in.Step == "whole" {
		return g.whole()
	}
	most := 6
	if g.w.sim.hot {
		most = 12
	}
	for range g.rng.IntN(most) {
		if err := g.operation(); err != nil {
			return nil, nil, err
		}
	}
	g.w.yield("guest end")
	return g.result()
}

func (g *simGuest) operation() error {
	if (g.in.Step == "work" || g.in.Step == "part" || g.in.Step == "kid" || g.in.Step == "tidy") && g.rng.IntN(10) == 0 {
		return g.wait()
	}
	if (g.in.Step == "work" || g.in.Step == "part" || g.in.Step == "kid") && g.rng.IntN(12) == 0 {
		return g.child()
	}
	if g.in.Step != "gather" && g.rng.IntN(10) == 0 {
		return g.askOutside()
	}
	n := g.rng.IntN(15)
	if g.w.sim.hot && n < 8 {
		n = 2 + n%2*10 // an edit or a poke
	}
	switch n {
	case 0, 1:
		return g.bump()
	case 2, 3, 4:
		return g.region()
	case 5:
		return g.refusedEdit()
	case 6:
		return g.readAndTell()
	case 7:
		return g.send()
	case 8:
		_, err := g.call(abi.ImportLog, []any{0, g.token()})
		return err
	case 9:
		return g.drawAndTell()
	case 10:
		g.inv.Calls.Print(1, []byte("printed\n"))
		if resp, err := g.call(abi.ImportStateGet, []any{"nowhere"}); err != nil || resp != nil {
			return fmt.Errorf("a missing path gives %x: %w", resp, err)
		}
		return nil
	case 14:
		_, err := g.call(abi.ImportSleep, []any{g.rng.IntN(100_000_000)})
		return err
	case 13:
		if g.in.Step == "kid" {
			return nil
		}
		_, err := g.call(abi.ImportSendEvent, []any{[]any{"Nudge", map[string]any{"tag": g.token(), "k": g.rng.IntN(2)}}})
		return err
	case 12:
		_, err := g.call(abi.ImportStateEdit, []any{[]any{"increment", "r.0.pokes", 1}})
		return err
	default:
		for range 40 {
			g.w.sim.advance(200 * time.Microsecond)
			if err := g.inv.Token.Checkpoint(50_000); err != nil {
				return err
			}
			g.w.yield("checkpoint")
		}
		return nil
	}
}

// wait waits for a nudge, not for ever mostly, and tells what it was.
func (g *simGuest) wait() error {
	req := map[string]any{"type": "Nudge"}
	if g.rng.IntN(4) > 0 {
		req["timeout"] = 1 + g.rng.IntN(300_000_000)
	}
	if g.rng.IntN(2) == 0 {
		req["requirements"] = map[string]any{"k": g.rng.IntN(2)}
	}
	if g.rng.IntN(3) == 0 {
		req["waiter_id"] = "again"
	}
	if g.rng.IntN(4) == 0 {
		req["broadcast"] = true
	}
	resp, err := g.call(abi.ImportWait, req)
	if err != nil {
		return err
	}
	h := fnv.New32a()
	_, _ = h.Write(resp)
	return g.tell(fmt.Sprint("nudged ", h.Sum32()))
}

// whole is what an atomic step does: all of it takes effect, or nothing.
func (g *simGuest) whole() (out []byte, trap *abi.Error, err error) {
	for range g.rng.IntN(5) {
		op := []func() error{g.bump, g.region, g.refusedEdit, g.readAndTell, g.send, g.drawAndTell}[g.rng.IntN(6)]
		if err := op(); err != nil {
			return nil, nil, err
		}
	}
	if g.rng.IntN(20) == 0 {
		if resp, err := g.call(abi.ImportSleep, []any{1000}); err != nil || resp != nil {
			return nil, nil, fmt.Errorf("an atomic step sleeps: %x: %w", resp, err)
		}
	}
	g.w.yield("guest end")
	if g.rng.IntN(4) == 0 {
		for i := range g.done {
			g.done[i].kind = "no " + g.done[i].kind
		}
		out, err = abi.StepOutput{Err: &abi.Error{Code: "drawn", Message: "by the seed"}}.Encode()
		return out, nil, err
	}
	out, err = abi.StepOutput{}.Encode()
	return out, nil, err
}

// child runs a workflow, and tells what came of it.
func (g *simGuest) child() error {
	if g.deep() {
		return nil
	}
	req := map[string]any{"workflow": "kid", "event": []any{"StartEvent", map[string]any{"tag": g.token() + "k"}}}
	switch g.rng.IntN(4) {
	case 0:
		req["session"] = map[string]any{"shared": true}
	case 1:
		req["session"] = map[string]any{"id": fmt.Sprint("s", g.rng.IntN(simSessions))}
	}
	if g.rng.IntN(3) == 0 {
		req["id"] = "once"
	}
	if g.rng.IntN(3) == 0 {
		req["include_stream"] = true
	}
	resp, err := g.call(abi.ImportRunWorkflow, req)
	if err != nil {
		return err
	}
	g.w.sim.children.Add(1)
	h := fnv.New32a()
	_, _ = h.Write(resp)
	return g.tell(fmt.Sprint("child ", h.Sum32()))
}

// bump counts and keeps its token, in one edit.
func (g *simGuest) bump() error {
	k, token := g.rng.IntN(3), g.token()
	resp, err := g.call(abi.ImportStateEdit, []any{
		[]any{"increment", fmt.Sprint("c.", k), 1}, []any{"append", fmt.Sprint("l.", k), token}})
	if err != nil {
		return err
	}
	if resp == nil {
		return fmt.Errorf("an edit was refused")
	}
	g.did("edit", token)
	return nil
}

// region does the same by read, change and write.
func (g *simGuest) region() error {
	k, token := g.rng.IntN(2), g.token()
	if g.w.sim.hot {
		k = 0
	}
	path := fmt.Sprint("r.", k)
	resp, err := g.call(abi.ImportStateBegin, []any{path})
	if err != nil {
		return err
	}
	if resp == nil { // not there yet: whoever is first makes it
		_, err := g.call(abi.ImportStateEdit, []any{[]any{"merge", path, map[string]any{}}})
		return err
	}
	value := fieldsOf(resp)
	n, _ := value["n"].(int64)
	tokens, _ := value["t"].([]any)
	if int(n) != len(tokens) {
		g.w.sim.failf("%s counts %d, but holds %d", path, n, len(tokens))
	}
	reads := g.rng.IntN(2)
	if g.w.sim.hot {
		reads = g.rng.IntN(8) // a long edit loses against short ones
	}
	for range reads {
		inside, err := g.call(abi.ImportStateGet, []any{path})
		if err != nil {
			return err
		}
		if len(inside) == 0 {
			g.w.sim.failf("a read inside an edit fails")
		}
	}
	if g.rng.IntN(6) == 0 {
		_, err := g.call(abi.ImportStateAbort, []any{})
		return err
	}
	if value == nil {
		value = map[string]any{}
	}
	value["n"], value["t"] = n+1, append(tokens, token)
	done, err := g.call(abi.ImportStateCommit, []any{value})
	if err != nil {
		return err
	}
	if done == nil {
		return fmt.Errorf("a commit was refused")
	}
	g.did("edit", token)
	return nil
}

// refusedEdit changes nothing, and a batch is all or nothing.
func (g *simGuest) refusedEdit() error {
	resp, err := g.call(abi.ImportStateEdit, []any{[]any{"append", "l.0", g.token()}, []any{"test", "c", "never"}})
	if err == nil && resp != nil {
		err = fmt.Errorf("a batch with a failing test is done")
	}
	return err
}

// readAndTell makes an effect from what it read: a replay has to read the same.
func (g *simGuest) readAndTell() error {
	resp, err := g.call(abi.ImportStateGet, []any{"", map[string]any{}})
	if err != nil {
		return err
	}
	h := fnv.New32a()
	_, _ = h.Write(resp)
	return g.tell(fmt.Sprint(h.Sum32()))
}

// drawAndTell does so with what chance and the clock gave.
func (g *simGuest) drawAndTell() error {
	a, err := g.call(abi.ImportRandom, []any{8})
	if err != nil {
		return err
	}
	b, err := g.call(abi.ImportRandom, []any{8})
	if err != nil {
		return err
	}
	if bytes.Equal(a, b) {
		g.w.sim.failf("the same random bytes twice")
	}
	now, err := g.call(abi.ImportNow, []any{})
	if err != nil {
		return err
	}
	return g.tell(fmt.Sprintf("%x %x %x", a, b, now))
}

func (g *simGuest) tell(what string) error {
	token := g.token()
	resp, err := g.call(abi.ImportWriteStream, []any{[]any{"Note", map[string]any{"tag": token, "what": what}}})
	if err != nil {
		return err
	}
	if resp == nil {
		return fmt.Errorf("a note was refused")
	}
	g.did("note", token)
	return nil
}

// deep says that the lineage is long enough.
func (g *simGuest) deep() bool { return len(g.tag) > 75 }

func (g *simGuest) send() error {
	if g.deep() || g.in.Step == "gather" || g.in.Step == "close" || g.in.Step == "kid" {
		return nil
	}
	typ := []string{"Work", "Tick"}[g.rng.IntN(2)]
	if g.in.Step == "whole" {
		typ = "Tick"
	}
	token := g.token()
	resp, err := g.call(abi.ImportSendEvent, []any{[]any{typ, map[string]any{"tag": token}}})
	if err != nil {
		return err
	}
	if resp == nil {
		return fmt.Errorf("a send was refused")
	}
	g.did("send", token)
	return nil
}

// collect waits for pairs, and keeps what it got.
func (g *simGuest) collect() error {
	ev := g.in.Trigger[0]
	event := []any{ev.Type, fieldsOf(ev.Body), ev.ID}
	resp, err := g.call(abi.ImportCollect, []any{event, []any{"Tick", "Tick"}})
	if err != nil || resp == nil || bytes.Equal(resp, abi.Null) {
		return err
	}
	set, err := abi.DecodeEvents(resp)
	if err != nil || len(set) != 2 {
		return fmt.Errorf("a set of %d: %w", len(set), err)
	}
	edits := make([]any, 0, 2)
	for i := range set {
		tag := fmt.Sprint("set:", fieldsOf(set[i].Body)["tag"])
		edits = append(edits, []any{"append", "g", tag})
		g.did("edit", tag)
	}
	_, err = g.call(abi.ImportStateEdit, edits)
	return err
}

// result draws what the guest returns.
func (g *simGuest) result() (out []byte, trap *abi.Error, err error) {
	event := func(typ string) abi.Event {
		body, _ := abi.EncodeValue(map[string]any{"tag": g.token()})
		return abi.Event{Type: typ, Body: body}
	}
	give := func(o abi.StepOutput) ([]byte, *abi.Error, error) {
		b, err := o.Encode()
		return b, nil, err
	}
	one := func(typ string) ([]byte, *abi.Error, error) {
		return give(abi.StepOutput{Events: []abi.Event{event(typ)}})
	}
	n := g.rng.IntN(100)
	switch {
	case g.in.Step == "kid" && n < 70:
		return one(abi.TypeStop)
	case g.in.Step == "kid" && n < 85:
		return give(abi.StepOutput{Err: &abi.Error{Code: "drawn", Message: "by the seed"}})
	case g.in.Step == "kid":
		return give(abi.StepOutput{})
	case g.in.Step == "close" || g.in.Step == "work" && n < 3:
		return one(abi.TypeStop)
	case g.in.Step == "gather" || g.deep():
		return give(abi.StepOutput{})
	case g.in.Step == "begin" && n < 60:
		parts := make([]abi.Event, g.rng.IntN(4))
		for i := range parts {
			parts[i] = event("Part")
		}
		return give(abi.StepOutput{Events: parts, List: true})
	case g.in.Step == "part" && n < 70:
		return one("Piece")
	case n < 12 && g.in.Step != "rescue", n < 40 && g.in.Step == "rescue": // nobody catches that
		return give(abi.StepOutput{Err: &abi.Error{Code: "drawn", Message: "by the seed"}})
	case n < 18 && g.in.Step != "rescue":
		return nil, &abi.Error{Code: host.RunTrap, Message: "unreachable"}, nil
	case n < 21:
		return []byte{0xff}, nil, nil
	case n < 50:
		return give(abi.StepOutput{})
	}
	return one("Work")
}
