package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A step may call a resource that an operator has granted: something outside of weft. The
// entry that suspends the invocation is the intent. It holds everything that the call
// needs, so that the call can be made after a crash too. The answer arrives as a tick.
// The first of the answer and the end of the attempt or run decides.
//
// A call belongs to its invocation. The invocation identifies it by resource, method,
// payload and the number of equal calls that the attempt has made before. An attempt that
// makes a call again gets the recorded answer. Two kinds of calls are made again, under
// the same key: calls that the end of an attempt interrupted, and calls whose error
// permits another try. Mode fail permits neither: the call is never repeated, and an
// interrupted call is a final error.

// outcall is a call of a resource by an invocation.
type outcall struct {
	inv     *invocation
	attempt uint64 // the attempt that made it last
	n       uint64 // number of the call in that attempt
	order   uint64 // position among the calls of the session
	part    *ResourcePart
	id      string // identifies the call in its invocation

	// The part of the answer that the run's stream has: bytes of text, and their SHA-256.
	streamed int
	hash     [32]byte

	// How the call ended: with a value or an error.
	value abi.Raw
	err   *abi.Error
}

func (c *outcall) answered() bool { return c.value != nil || c.err != nil }

// OutCall is a call of a resource that has no answer yet. A [CallOut] asks for it.
// Callers must not change its Payload.
type OutCall struct {
	Invocation uint64
	Attempt    uint64
	N          uint64 // of the call in its attempt

	RunID    string
	Workflow string
	Version  string
	Step     string
	Resource string
	Method   string
	Payload  abi.Raw
	Mode     host.ResourceMode
	// Key is the same whenever this call is made, and no other call has it.
	Key string
	// Streamed is the length of the answer's text on the run's stream, in bytes, and Hash
	// the SHA-256 of that text.
	Streamed int
	Hash     [32]byte
}

// callID identifies a call in its invocation.
func callID(resource, method string, payload abi.Raw, ordinal uint64) string {
	return fmt.Sprintf("%q %q %x #%d", resource, method, sha256.Sum256(payload), ordinal)
}

// key is the stable key of a call. Nobody can guess it without the run's seed.
func (c *outcall) key() string {
	h := sha256.New()
	h.Write(c.inv.run.seed[:])
	h.Write(binary.BigEndian.AppendUint64([]byte("resource"), c.inv.id))
	h.Write([]byte(c.id))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// decideResource decides a call_resource: it already has an answer, or it is made.
func (s *Session) decideResource(e *Entry, inv *invocation, req CallResource) (decision, error) {
	if _, declared := inv.run.graph.resources[req.Resource]; !declared {
		return decision{}, refusal("failed_precondition", "step %s calls the resource %s, which its plugin does not ask for: add it to resources", inv.step.name, clip(req.Resource))
	}
	c := inv.asked[callID(req.Resource, req.Method, req.Payload, req.Ordinal)]
	switch {
	case c != nil && c.err != nil:
		return decision{}, c.err
	case c != nil:
		return decision{response: Response{Value: c.value}}, nil
	}
	// Recorded answers stay for as long as the invocation, so bound them together.
	if most := inv.run.limits.RecordBytes; inv.askedBytes > most {
		return decision{}, exhausted("the calls of resources that step %s has made, and their answers, exceed %d bytes (limit record_bytes)", inv.step.name, most)
	}
	// Only the server's configuration knows the mode: the caller must look it up.
	if req.Mode == "" {
		return decision{}, ErrUnresolved
	}
	e.Kind = EntryResource
	e.Resource = &ResourcePart{Resource: req.Resource, Method: req.Method, Payload: req.Payload, Ordinal: req.Ordinal, Mode: req.Mode}
	return s.decideSuspension(e, inv)
}

func (s *Session) foldResource(e *Entry, inv *invocation) error {
	p := e.Resource
	if p == nil || !p.Mode.Valid() {
		return corrupt(e, "it has no call of a resource with a known mode")
	}
	c := &outcall{inv: inv, attempt: e.Attempt, n: e.N, part: p, id: callID(p.Resource, p.Method, p.Payload, p.Ordinal)}
	if inv.asked[c.id] != nil {
		return corrupt(e, "the call of %s is in progress, or has its answer", clip(p.Resource))
	}
	if inv.asked == nil {
		inv.asked = make(map[string]*outcall)
	}
	s.lastCall++
	c.order = s.lastCall
	inv.asked[c.id] = c
	inv.askedBytes += len(p.Payload)
	s.calls[inv.id] = c
	s.suspend(inv, suspension{n: e.N, call: c})
	s.emit(CallOut{Invocation: inv.id})
	s.settle(inv.run, false)
	return nil
}

// decideAnswered decides the answer to a call of a resource.
func (s *Session) decideAnswered(e *Entry, t ResourceAnswered) (decision, error) {
	c := s.calls[t.Invocation]
	// The attempt or the run has ended meanwhile, or the call has its answer.
	if c == nil || c.attempt != t.Attempt || c.n != t.N {
		return decision{}, ErrStale
	}
	e.Kind, e.RunID, e.Invocation, e.Attempt, e.N = EntryResourceAnswered, c.inv.run.rec.RunID, t.Invocation, t.Attempt, t.N
	e.Answer = &AnswerPart{Value: t.Value, Err: t.Err}
	switch {
	case t.Err != nil:
		e.Answer.Value, e.Answer.Err = nil, sanitizedError(t.Err)
	case t.Value == nil:
		e.Answer.Value = abi.Null
	}
	return decision{entry: e}, nil
}

func (s *Session) foldAnswered(e *Entry) error {
	p, c := e.Answer, s.calls[e.Invocation]
	if p == nil || (p.Err == nil) == (p.Value == nil) {
		return corrupt(e, "it has no answer of a resource")
	}
	if c == nil || c.attempt != e.Attempt || c.n != e.N || c.inv.run.rec.RunID != e.RunID {
		return corrupt(e, "call %d of invocation %d is not under way", e.N, e.Invocation)
	}
	c.value, c.err = p.Value, p.Err
	c.inv.askedBytes += len(c.value)
	s.resume(c.inv)
	s.settle(c.inv.run, false)
	return nil
}

// endOutcall ends the wait for a call. A call without an answer is forgotten and can be made
// again, unless its mode forbids a second call.
func (s *Session) endOutcall(c *outcall) {
	delete(s.calls, c.inv.id)
	switch {
	case c.answered():
	case c.part.Mode == host.ResourceFail:
		c.err = OutcomeUnknown(c.part.Resource, "the attempt that called it ended before the answer came")
	default:
		delete(c.inv.asked, c.id)
	}
	// Of the call only the answer is needed from here on: free the payload.
	c.part = &ResourcePart{Resource: c.part.Resource, Method: c.part.Method, Ordinal: c.part.Ordinal, Mode: c.part.Mode}
}

// OutcomeUnknown is the answer to a call of mode fail if nobody can know whether the call
// had an effect.
func OutcomeUnknown(resource, why string) *abi.Error {
	no := false
	return &abi.Error{Code: abi.StatusUnavailable.Code(), Retryable: &no, Message: fmt.Sprintf(
		"outcome unknown: %s; it may have had its effect or not, and the resource %s is called once only (mode fail)", why, clip(resource))}
}

// forgetFailures forgets the failed calls of an attempt that the next attempt may make
// again. If a call failed because another writer was first, earlier reads of that
// resource are out of date, and are forgotten too.
func (inv *invocation) forgetFailures() {
	var outrun []string
	for id, c := range inv.asked {
		if c.err != nil && c.part.Mode != host.ResourceFail && (c.err.Retryable == nil || *c.err.Retryable) {
			delete(inv.asked, id)
			if c.err.Code == abi.StatusConflict.Code() {
				outrun = append(outrun, c.part.Resource)
			}
		}
	}
	for id, c := range inv.asked {
		if c.part.Mode == host.ResourceReadOnly && slices.Contains(outrun, c.part.Resource) {
			delete(inv.asked, id)
		}
	}
}

// OutCall returns the call of a resource for which an invocation waits.
func (s *Session) OutCall(invocation uint64) (OutCall, bool) {
	c, ok := s.calls[invocation]
	if !ok {
		return OutCall{}, false
	}
	r := c.inv.run
	return OutCall{
		Invocation: invocation, Attempt: c.attempt, N: c.n,
		RunID: r.rec.RunID, Workflow: r.rec.Workflow, Version: r.rec.Version, Step: c.inv.step.name,
		Resource: c.part.Resource, Method: c.part.Method, Payload: c.part.Payload, Mode: c.part.Mode, Key: c.key(),
		Streamed: c.streamed, Hash: c.hash,
	}, true
}

// OutCalls lists the invocations that wait for a resource, in the order of their calls.
// It is meant for a session that has just been loaded.
func (s *Session) OutCalls() []uint64 {
	open := make([]*outcall, 0, len(s.calls))
	for _, c := range s.calls {
		open = append(open, c)
	}
	slices.SortFunc(open, func(a, b *outcall) int { return cmp.Compare(a.order, b.order) })
	ids := make([]uint64, len(open))
	for i, c := range open {
		ids[i] = c.inv.id
	}
	return ids
}

// Resource returns the declaration of a resource that the workflow asks for.
func (g *Graph) Resource(name string) (abi.ResourceDecl, bool) {
	d, ok := g.resources[name]
	return d, ok
}
