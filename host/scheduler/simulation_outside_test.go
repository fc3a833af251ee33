package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Clients edit the state of sessions beside the guests, and delete sessions. What they
// write keeps the guests' own account: a counter counts the tokens in its list.

// outsideEdit is an edit that was acknowledged, or may be.
type outsideEdit struct {
	key   host.SessionKey
	token string
	acked bool
	gone  bool // its session was deleted, or may have been before it was made
}

// someSession names a session: a named one mostly.
func (s *sim) someSession() host.SessionKey {
	tenant := []string{"t", "u"}[s.rng.IntN(2)]
	if s.rng.IntN(3) == 0 && !s.hot {
		return host.SessionKey{Tenant: tenant, Session: fmt.Sprint(tenant, s.rng.IntN(simHandlers))}
	}
	return host.SessionKey{Tenant: tenant, Session: fmt.Sprint("s", s.rng.IntN(simSessions))}
}

// spawnOutside edits a state: by edits, some of them under a key, or by writing what
// was read with one thing more, if nobody else has written since.
func (s *sim) spawnOutside() {
	key, k := s.someSession(), s.rng.IntN(3)
	req := host.SessionEdit{Tenant: key.Tenant, Session: key.Session, Make: s.rng.IntN(3) == 0}
	op := &outsideEdit{key: key, token: fmt.Sprint("outside ", s.ops)}
	if s.rng.IntN(3) == 0 {
		op.token = fmt.Sprint("outside ", key, k, req.Make, s.ops/40)
		req.Once = host.Once{Route: "edit", Key: op.token, Hash: "body"}
	}
	s.facts.edits = append(s.facts.edits, op)
	ctx, w, whole := s.hurried(), s.w, req.Once.Key == "" && s.rng.IntN(2) == 0
	token := must(abi.EncodeValue(op.token))
	w.spawn("edit", func() {
		var err error
		if whole {
			var v host.StateValue
			if v, err = w.sched.State(ctx, key.Tenant, key.Session, ""); err == nil {
				w.yield("state read")
				req.State, req.Match = oneMore(v.Value, fmt.Sprint(k), op.token), []string{v.Tag}
			}
		} else {
			req.Edits = []abi.Edit{{Op: abi.OpIncrement, Path: fmt.Sprint("c.", k), Value: abi.Raw{1}}, {Op: abi.OpAppend, Path: fmt.Sprint("l.", k), Value: token}}
		}
		if err == nil {
			_, _, err = w.sched.EditState(ctx, req)
			w.yield("edited")
		}
		if err == nil && !w.dead.Load() {
			op.acked = true
			s.total.Edited++
		}
		if host.CodeOf(err) == host.CodePreconditionFailed {
			s.total.Outrun++
		}
		s.expect("edit", err, host.CodeNotFound, host.CodeUnavailable, host.CodePreconditionFailed)
	})
}

// oneMore is a state in which one more token is counted.
func oneMore(value abi.Raw, k, token string) abi.Raw {
	root := fieldsOf(value)
	counts, _ := root["c"].(map[string]any)
	lists, _ := root["l"].(map[string]any)
	if counts == nil {
		counts = map[string]any{}
	}
	if lists == nil {
		lists = map[string]any{}
	}
	n, _ := counts[k].(int64)
	tokens, _ := lists[k].([]any)
	counts[k], lists[k] = n+1, append(tokens, token)
	root["c"], root["l"] = counts, lists
	return must(abi.EncodeValue(root))
}

// spawnErase deletes a session. What it had before is never seen again.
func (s *sim) spawnErase() {
	key := s.someSession()
	var before []string
	for _, op := range s.facts.edits {
		if op.key == key && op.acked {
			before = append(before, op.token)
		}
	}
	ctx, w := s.hurried(), s.w
	w.spawn("erase", func() {
		err := w.sched.DeleteSession(ctx, key.Tenant, key.Session)
		w.yield("erased")
		if err == nil && !w.dead.Load() {
			s.total.Erased++
			s.facts.erased[key] = append(s.facts.erased[key], before...)
		}
		s.expect("erase", err, host.CodeNotFound, host.CodeConflict, host.CodeUnavailable)
	})
}

// letGo notes which sessions a batch has deleted, or begun to: nothing of what they
// had can be expected any more.
func (f *facts) letGo(s *sim, b *host.Batch) {
	for i := range b.Sessions {
		p := &b.Sessions[i]
		if len(p.Purge)+len(p.Drop)+p.Erase == 0 {
			continue
		}
		f.deletions++
		if _, err := s.store.LoadSession(context.Background(), p.Key); err == nil {
			continue
		}
		for _, op := range f.edits {
			op.gone = op.gone || op.key == p.Key
		}
		if p.Erase == 0 {
			continue
		}
		for _, op := range f.starts {
			op.gone = op.gone || op.runID == "" || op.session == p.Key
		}
		for _, r := range f.readers {
			r.gone = r.gone || tenantOf(r.handler) == p.Key.Tenant
		}
	}
}

// checkEdits wants every edit that was acknowledged to be there once, and none that was
// deleted.
func (s *sim) checkEdits() {
	for key := range s.facts.erased {
		if _, err := s.store.LoadSession(context.Background(), key); s.atRest && errors.Is(err, host.ErrErasing) {
			s.failf("session %s is deleted half", key.Session)
		}
	}
	tokens := map[host.SessionKey][]string{}
	for _, op := range s.facts.edits {
		there, known := tokens[op.key]
		if !known {
			there = s.tokensOf(op.key)
			tokens[op.key] = there
		}
		n := 0
		for _, token := range there {
			if token == op.token {
				n++
			}
		}
		if n > 1 || n == 0 && op.acked && !op.gone {
			s.failf("the edit %q of session %s is there %d times", op.token, op.key.Session, n)
		}
	}
	for key, before := range s.facts.erased {
		for _, token := range s.tokensOf(key) {
			if slices.Contains(before, token) {
				s.failf("session %s was deleted, and has %q", key.Session, token)
			}
		}
	}
}

// tokensOf lists the tokens of a stored state that clients edit too.
func (s *sim) tokensOf(key host.SessionKey) (out []string) {
	root := fieldsOf(s.stateOf(key))
	lists, _ := root["l"].(map[string]any)
	for _, list := range lists {
		tokens, _ := list.([]any)
		for _, token := range tokens {
			out = append(out, fmt.Sprint(token))
		}
	}
	return out
}

// eraseSome deletes sessions when all their runs have ended, while the server goes on
// to crash.
func (s *sim) eraseSome() {
	s.chaos, s.atRest = true, false
	for range 4 {
		s.spawnErase()
		for range 30 {
			switch n := s.rng.IntN(10); {
			case n < 6:
				if !s.w.resume() && !s.w.step() {
					s.w.commit()
				}
			case n < 8:
				s.w.commit()
			default:
				s.pass()
			}
			if s.rng.IntN(100) < 3 {
				s.restart()
			}
			s.verdict()
		}
	}
	s.chaos = false
	s.quiet(s.calm)
	s.atRest = true
	s.checkDurable()
}
