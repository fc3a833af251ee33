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

// A step may call a resource that an operator granted: something outside. The
// entry that suspends its invocation is the intent, with all that whoever makes
// the call needs, so that it can be made after a crash too; the answer comes as a
// tick. What comes first wins: the answer, or what ends the attempt or the run.
//
// A call belongs to its invocation, which knows it by its resource, method and
// payload and by how many like it the attempt has made before. An attempt that
// makes a call again gets the answer that is there. Two kinds of calls are made
// again, under the same key: those that an attempt's end has cut off, and those
// that failed with an error after which they may be tried again. Both but for mode
// fail: there nobody may ask twice, and what was cut off is an error for good.

// outcall is a call of a resource that an invocation has made.
type outcall struct {
	inv     *invocation
	attempt uint64 // that made it last
	n       uint64 // its call
	order   uint64 // of the calls of the session
	part    *ResourcePart
	id      string // of the call in its invocation

	// What the run's stream has of its answer: so many bytes of text, and their
	// SHA-256.
	streamed int
	hash     [32]byte

	// How it ended: with a value or an error.
	value abi.Raw
	err   *abi.Error
}

func (c *outcall) answered() bool { return c.value != nil || c.err != nil }

// OutCall is a call of a resource that has no answer yet: what [CallOut] wants
// done. Its Payload must not be changed.
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
	// Key is the same whenever the call is made, and no other call's.
	Key string
	// Streamed is how many bytes of the answer's text the run's stream has; Hash is
	// their SHA-256.
	Streamed int
	Hash     [32]byte
}

// callID names a call in its invocation.
func callID(resource, method string, payload abi.Raw, ordinal uint64) string {
	return fmt.Sprintf("%q %q %x #%d", resource, method, sha256.Sum256(payload), ordinal)
}

// key is the stable key of a call: nobody can guess it who does not know the run's
// seed.
func (c *outcall) key() string {
	h := sha256.New()
	h.Write(c.inv.run.seed[:])
	h.Write(binary.BigEndian.AppendUint64([]byte("resource"), c.inv.id))
	h.Write([]byte(c.id))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// decideResource decides a call_resource: it has an answer already, or is made.
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
	if most := inv.run.limits.RecordBytes; inv.askedBytes > most {
		return decision{}, exhausted("the calls of resources that step %s has made, and their answers, exceed %d bytes (limit record_bytes)", inv.step.name, most)
	}
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
		return corrupt(e, "no resource, or none of a known mode")
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
		return corrupt(e, "no answer of a resource")
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

// hangUp takes a call out of those under way. One without an answer is forgotten,
// and can be made again, unless nobody may ask twice.
func (s *Session) hangUp(c *outcall) {
	delete(s.calls, c.inv.id)
	switch {
	case c.answered():
	case c.part.Mode == host.ResourceFail:
		c.err = OutcomeUnknown(c.part.Resource, "the attempt that called it ended before the answer came")
	default:
		delete(c.inv.asked, c.id)
	}
	// The answer is all that is still needed of it.
	c.part = &ResourcePart{Resource: c.part.Resource, Method: c.part.Method, Ordinal: c.part.Ordinal, Mode: c.part.Mode}
}

// OutcomeUnknown is the answer to a call of mode fail of which nobody can tell
// whether it did anything.
func OutcomeUnknown(resource, why string) *abi.Error {
	no := false
	return &abi.Error{Code: abi.StatusUnavailable.Code(), Retryable: &no, Message: fmt.Sprintf(
		"outcome unknown: %s; it may have had its effect or not, and the resource %s is called once only (mode fail)", why, clip(resource))}
}

// forgetFailures forgets the calls of an attempt that failed and may be tried
// again by the next one. Where one failed as somebody else was first, what was read
// of that resource holds no more, and is read again too.
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

// OutCall gives the call of a resource on which an invocation waits.
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

// OutCalls lists the invocations that wait for a resource, in the order in which
// they called. It is meant for a session that was just loaded.
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

// Resource gives the declaration of a resource that the workflow asks for.
func (g *Graph) Resource(name string) (abi.ResourceDecl, bool) {
	d, ok := g.resources[name]
	return d, ok
}
