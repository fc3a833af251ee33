package engine

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// TypeAnswerPart is the type of the events by which a stream shows a text that a
// resource answers while it comes: {call, step, resource, offset, text}. call tells
// the calls of a session apart; a text begins at offset 0, in bytes, and one that
// begins again takes the place of what was shown of that call before.
const TypeAnswerPart = "AnswerPartEvent"

// decideDelta decides a part of the answer to a call of a resource.
func (s *Session) decideDelta(e *Entry, t ResourceDelta) (decision, error) {
	c := s.calls[t.Invocation]
	if c == nil || c.attempt != t.Attempt || c.n != t.N {
		return decision{}, ErrStale
	}
	d := &t.Delta
	if d.Text == "" || d.Offset != 0 && d.Offset != c.streamed {
		return decision{}, host.Errorf(host.CodeInvalidArgument, "a part of an answer begins at %d, and %d bytes are there", d.Offset, c.streamed)
	}
	body, err := abi.EncodeValue(map[string]any{
		"call": int64(c.order), "step": c.inv.step.name, "resource": c.part.Resource, "offset": int64(d.Offset), "text": d.Text,
	})
	if err != nil {
		return decision{}, host.Errorf(host.CodeInvalidArgument, "a part of an answer cannot be encoded: %w", err)
	}
	e.Kind, e.RunID, e.Invocation, e.Attempt, e.N = EntryAnswerPart, c.inv.run.rec.RunID, t.Invocation, t.Attempt, t.N
	e.Delta = &DeltaPart{Body: body, Streamed: d.Offset + len(d.Text), Hash: d.Hash}
	return decision{entry: e}, nil
}

func (s *Session) foldDelta(e *Entry) error {
	p, c := e.Delta, s.calls[e.Invocation]
	if p == nil || p.Streamed <= 0 {
		return corrupt(e, "no part of an answer")
	}
	if c == nil || c.attempt != e.Attempt || c.n != e.N || c.inv.run.rec.RunID != e.RunID {
		return corrupt(e, "call %d of invocation %d is not under way", e.N, e.Invocation)
	}
	c.streamed, c.hash = p.Streamed, p.Hash
	if s.published(c.inv, abi.Event{Type: TypeAnswerPart, Body: p.Body}) {
		s.settle(c.inv.run, false)
	}
	return nil
}
