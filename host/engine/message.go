package engine

import (
	"github.com/weftrun/weft/abi"
)

// Sessions tell each other by messages that a run begins, ends or is cancelled. The entry
// that makes a message puts it into the outbox of the session. The message stays there
// until an EntryDelivered says that the other session has an entry of its own for it, or
// needs none. A message may be carried more than once: the receiver recognises a child by
// its ids, which nobody can guess, and drops what it has seen. So each message has its
// effect once, whatever crashes.
//
// Messages to one session keep the order in which they were made.

// Message is a message to another session of the tenant. Exactly one of its parts is set.
type Message struct {
	ID uint64 // counts up in the sender's session
	To string // begin this run as a child

	Start  *StartRun  // begin this child
	Ended  *ChildEnd  // a child has ended
	Shown  *ChildShow // an event for the stream of the child's parent
	Cancel string     // cancel the run with this id
}

// Tick returns the tick that the message is for the session that receives it.
func (m *Message) Tick() Tick {
	switch {
	case m.Start != nil:
		return *m.Start
	case m.Ended != nil:
		return ChildEnded{End: *m.Ended}
	case m.Shown != nil:
		return ChildShown{Show: *m.Shown}
	}
	return Cancel{RunID: m.Cancel}
}

// ChildEnd reports to a parent how its child has ended.
type ChildEnd struct {
	RunID  string     `cbor:"1,keyasint"` // the child's
	Result *abi.Event `cbor:"2,keyasint,omitempty"`
	Err    *abi.Error `cbor:"3,keyasint,omitempty"` // nil: it completed with Result
}

// ChildShow is an event of a child's stream that the parent's stream shows too.
type ChildShow struct {
	RunID    string   `cbor:"1,keyasint"` // the child's
	Seq      uint64   `cbor:"2,keyasint"` // counts the child's events
	Type     string   `cbor:"3,keyasint"`
	Types    []string `cbor:"4,keyasint,omitempty"`
	Base     bool     `cbor:"5,keyasint,omitempty"`
	Body     abi.Raw  `cbor:"6,keyasint"`
	Workflow string   `cbor:"7,keyasint"`
}

// outbox holds the messages that no EntryDelivered covers yet.
type outbox struct {
	byTarget map[string][]Message // oldest first; no empty ones
	size     int
}

// post puts a message into the outbox.
func (s *Session) post(m Message) {
	s.lastMessage++
	m.ID = s.lastMessage
	if s.outbox.byTarget == nil {
		s.outbox.byTarget = make(map[string][]Message)
	}
	s.outbox.byTarget[m.To] = append(s.outbox.byTarget[m.To], m)
	s.outbox.size++
	s.emit(Mail{To: m.To})
}

// Mail returns the oldest messages to a session that must be delivered, at most limit.
// Callers must not change them.
func (s *Session) Mail(to string, limit int) []Message {
	all := s.outbox.byTarget[to]
	return all[:min(len(all), limit):min(len(all), limit)]
}

// MailTo returns the names of the sessions that have messages waiting, sorted.
func (s *Session) MailTo() []string { return sortedKeys(s.outbox.byTarget) }

// upTo counts the messages to a session with ids up to id.
func (o *outbox) upTo(to string, id uint64) int {
	n := 0
	for _, m := range o.byTarget[to] {
		if m.ID > id {
			break
		}
		n++
	}
	return n
}

func (s *Session) decideDelivered(e *Entry, t Delivered) (decision, error) {
	// Another delivery of the same messages was faster.
	if s.outbox.upTo(t.To, t.ID) == 0 {
		return decision{}, nil
	}
	e.Kind, e.Delivered = EntryDelivered, &DeliveredPart{To: t.To, ID: t.ID}
	return decision{entry: e}, nil
}

func (s *Session) foldDelivered(e *Entry) error {
	p := e.Delivered
	if p == nil {
		return corrupt(e, "it does not say what was delivered")
	}
	n := s.outbox.upTo(p.To, p.ID)
	if n == 0 {
		return corrupt(e, "message %d to session %s is not in the outbox", p.ID, clip(p.To))
	}
	for _, m := range s.outbox.byTarget[p.To][:n] {
		if m.Start == nil {
			continue
		}
		// The child's session has the run now: the parent's record may name the child.
		if c := s.children[m.Start.RunID]; c != nil {
			c.begun = true
			s.settle(c.inv.run, false)
		}
	}
	s.outbox.size -= n
	if rest := s.outbox.byTarget[p.To][n:]; len(rest) > 0 {
		s.outbox.byTarget[p.To] = rest
	} else {
		delete(s.outbox.byTarget, p.To)
	}
	return nil
}
