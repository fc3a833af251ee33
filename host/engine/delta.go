package engine

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// TypeAnswerPart is the type of the stream events that show the text of a resource's
// answer while it arrives: {call, step, resource, offset, text}. call identifies the call
// in the session. offset is in bytes. A text begins at offset 0, and a text that begins
// again replaces the text shown for the call before.
const TypeAnswerPart = "AnswerPartEvent"

// decideDelta decides a part of the answer to a call of a resource.
func (s *Session) decideDelta(e *Entry, t ResourceDelta) (decision, error) {
	c := s.calls[t.Invocation]
	if c == nil || c.attempt != t.Attempt || c.n != t.N {
		return decision{}, ErrStale
	}
	d := &t.Delta
	// A gap would leave clients with a wrong text. A part at 0 begins the text again.
	if d.Text == "" || d.Offset != 0 && d.Offset != c.streamed {
		return decision{}, host.Errorf(host.CodeInvalidArgument, "a part of an answer begins at %d, but %d bytes have been streamed", d.Offset, c.streamed)
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
		return corrupt(e, "it has no part of an answer")
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
