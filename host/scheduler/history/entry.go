package history

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
)

// Entry is an engine entry as the journal writes it.
type Entry struct{ *engine.Entry }

// Append implements host.JournalEntry.
func (e Entry) Append(dst []byte, record bool) ([]byte, error) {
	v := e.Entry
	// The finish of the attempt follows in the same batch, so nobody replays the record. The
	// entry is shared with the session: only the copy is shortened.
	if !record && (v.Calls != nil || v.Open != nil) {
		short := *v
		short.Calls, short.Open = nil, nil
		v = &short
	}
	b, err := abi.Marshal(v)
	if err != nil {
		return nil, err
	}
	if dst == nil {
		return b, nil
	}
	return append(dst, b...), nil
}

// SizeOf is about how many bytes an entry holds in memory.
func SizeOf(e *engine.Entry) int {
	n := 256 + len(e.Changes) + len(e.Snapshot) + len(e.Rerun) + SizeOfHeld(e.Held)
	if e.Event != nil {
		n += len(e.Event.Body)
	}
	if e.Start != nil {
		n += len(e.Start.Event.Body)
	}
	if e.Child != nil && e.Child.Start != nil {
		n += len(e.Child.Start.Event.Body)
	}
	if e.Ended != nil && e.Ended.Result != nil {
		n += len(e.Ended.Result.Body)
	}
	if e.Shown != nil {
		n += len(e.Shown.Body)
	}
	if e.Resource != nil {
		n += len(e.Resource.Payload)
	}
	if e.Delta != nil {
		n += len(e.Delta.Body)
	}
	if e.Answer != nil {
		n += len(e.Answer.Value)
	}
	if e.Finish != nil {
		for i := range e.Finish.Events {
			n += len(e.Finish.Events[i].Body) + 64
		}
	}
	n += sizeOfCalls(e.Calls)
	for i := range e.Logs {
		n += len(e.Logs[i].Message) + len(e.Logs[i].Attrs) + 64
	}
	return n
}

func sizeOfCalls(calls []engine.CallRecord) int {
	n := 0
	for i := range calls {
		n += len(calls[i].Request) + len(calls[i].Response) + 64
	}
	return n
}

// SizeOfHeld is about how many bytes records of attempts hold in memory.
func SizeOfHeld(held []engine.HeldAttempt) int {
	n := 0
	for i := range held {
		n += sizeOfCalls(held[i].Calls) + 256
	}
	return n
}
