package scheduler_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// simWants are the resources that the workflows of the simulation ask for: one of
// each mode, and one that nobody is granted.
const simWants = `"resources": [{"name": "look", "kind": "count"}, {"name": "put", "kind": "count"},
   {"name": "once", "kind": "count"}, {"name": "never", "kind": "count", "optional": true}],`

// simInFlight is how many calls of a grant may be under way.
const simInFlight = 1

// outsideCall is what the outside knows of a call, by its key. It survives the
// crashes of the worlds.
type outsideCall struct {
	mode  host.ResourceMode
	made  int // times that it reached the outside
	ended int // times that it had its effect
	run   string
}

// simResources counts the calls that reach it, and fails some of them.
type simResources struct {
	noKV
	w     *world
	under map[string]int // calls under way, by pool
}

func (r simResources) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	mode, ok := map[string]host.ResourceMode{"look": host.ResourceReadOnly, "put": host.ResourceRepeat, "once": host.ResourceFail}[decl.Name]
	if !ok || decl.Kind != "count" {
		return host.ResourceGrant{}, host.Errorf(host.CodePermissionDenied, "the resource '%s' is not granted", decl.Name)
	}
	return host.ResourceGrant{Mode: mode, Pool: user.Tenant + "/" + decl.Name, InFlight: simInFlight}, nil
}

// Call takes a while, and fails now and then. It is always one goroutine of the
// world that runs.
func (r simResources) Call(ctx context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	w, s := r.w, r.w.sim
	w.yield("outside")
	gone := func() bool { return w.dead.Load() || ctx.Err() != nil }
	aborted := &abi.Error{Code: "unavailable", Message: "aborted"}
	if gone() {
		return nil, aborted
	}
	pool := call.User.Tenant + "/" + call.Resource
	s.mu.Lock()
	if r.under[pool]++; r.under[pool] > simInFlight {
		s.failure = fmt.Sprintf("%d calls of %s are under way, %d may be", r.under[pool], pool, simInFlight)
	}
	known := s.outside[call.Key]
	if known == nil {
		known = &outsideCall{mode: call.Mode, run: call.RunID}
		s.outside[call.Key] = known
	}
	known.made++
	if call.Mode == host.ResourceFail && known.made > 1 || known.mode != call.Mode || known.run != call.RunID {
		s.failure = fmt.Sprintf("the call %+v reaches the outside as %+v", call, *known)
	}
	turns, luck, again := s.chance.IntN(8), s.chance.IntN(10), s.chance.IntN(2) == 0
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		r.under[pool]--
		s.mu.Unlock()
	}()
	for range turns {
		s.advance(15 * time.Millisecond)
		w.yield("outside")
		if gone() {
			return nil, aborted
		}
	}
	if luck < 3 {
		return nil, &abi.Error{Code: "unavailable", Message: "no route", Retryable: &again}
	}
	s.mu.Lock()
	known.ended++
	s.mu.Unlock()
	return must(abi.EncodeValue(map[string]any{"key": call.Key, "run": call.RunID})), nil
}

// askOutside calls a resource, and tells what it answered.
func (g *simGuest) askOutside() error {
	name := []string{"look", "put", "put", "once", "never"}[g.rng.IntN(5)]
	resp, err := g.call(abi.ImportResource, []any{name, "add", map[string]any{"k": g.rng.IntN(2)}})
	if err != nil {
		return err
	}
	if resp == nil {
		return g.tell("an outside that refuses")
	}
	fields := fieldsOf(resp)
	key, _ := fields["key"].(string)
	s := g.w.sim
	s.mu.Lock()
	known := s.outside[key]
	if known == nil || known.ended == 0 || fields["run"] != known.run || known.run != g.in.Run.RunID && !s.retries || name == "never" {
		s.failure = fmt.Sprintf("a guest of run %s has the answer %v of %s, the outside knows %+v", g.in.Run.RunID, fields, name, known)
	}
	s.answers++
	s.mu.Unlock()
	h := fnv.New32a()
	_, _ = h.Write(resp)
	return g.tell(fmt.Sprint("outside ", h.Sum32()))
}

// outcalls checks what the journal says of calls to the outside: each is answered
// at most once for each time that it was asked, and well at most once ever.
func (a *audit) outcalls(eng *engine.Session, e *engine.Entry) {
	switch {
	case e.Resource != nil:
		call, ok := eng.OutCall(e.Invocation)
		if !ok || a.answered[call.Key] {
			a.sim.failf("session %s: %+v asks what has its answer: %+v", a.session, e.Resource, call)
		}
		a.asked[e.Invocation] = call.Key
	case e.Answer != nil:
		key := a.asked[e.Invocation]
		if key == "" {
			a.sim.failf("session %s: an answer that nobody asked for: %+v", a.session, e.Answer)
		}
		delete(a.asked, e.Invocation)
		if e.Answer.Err != nil {
			if e.Answer.Err.Code == "unavailable" && e.Answer.Err.Message != "no route" {
				a.sim.total.Unknown++
			}
			return
		}
		if a.answered[key] {
			a.sim.failf("session %s: the call %s has two answers", a.session, key)
		}
		a.answered[key] = true
		a.sim.total.OutAnswers++
	}
}
