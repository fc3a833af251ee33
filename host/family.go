package host

import (
	"context"
	"time"
)

// FamilyStream is an open subscription to the events of a run and of all its descendants.
// One goroutine uses it.
type FamilyStream interface {
	// Next is like Next of [Stream]. It returns io.EOF after the terminal event of the
	// run.
	Next(ctx context.Context, wait time.Duration) ([]FamilyEvent, error)
	// Ended is like Ended of [Stream], for the run.
	Ended() bool
	// Close ends the subscription. It may be called twice.
	Close()
}

// FamilyEvent is an event of a run or of one of its children.
type FamilyEvent struct {
	StreamEvent
	HandlerID string // handler of the event; Seq counts the events of this handler
	ParentID  string // handler of the run that started HandlerID's as its child; "": the run itself
	// Position is the place directly after the event, for a new subscription; see
	// [position.Parse].
	Position string
}
