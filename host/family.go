package host

import (
	"context"
	"strconv"
	"strings"
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
	// [ParsePosition].
	Position string
}

// FamilyStart is the place where a [FamilyStream] begins.
type FamilyStart struct {
	After    int64 // for the run's own events; see StreamFromNow and StreamFromRun
	Children []FamilyMember
}

// FamilyMember is a child whose events begin after a number.
type FamilyMember struct {
	Handler string
	Parent  string // handler of the parent; "": the run itself
	After   int64
}

// maxPosition limits the children that a position names.
const maxPosition = 1024

// Position returns the text of a start: the number of the run's last event, followed by
// /HANDLER=NUMBER for each child that may have more events, or /HANDLER:PARENT=NUMBER if
// root is not its parent.
func (s FamilyStart) Position(root string) string {
	b := strconv.AppendInt(nil, s.After, 10)
	for _, c := range s.Children {
		b = append(append(b, '/'), c.Handler...)
		if c.Parent != root {
			b = append(append(b, ':'), c.Parent...)
		}
		b = strconv.AppendInt(append(b, '='), c.After, 10)
	}
	return string(b)
}

// ParsePosition reads the text of a position.
func ParsePosition(text string) (FamilyStart, bool) {
	parts := strings.Split(text, "/")
	after, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || after < StreamFromRun || len(parts) > maxPosition+1 {
		return FamilyStart{}, false
	}
	from := FamilyStart{After: after}
	for _, part := range parts[1:] {
		name, number, _ := strings.Cut(part, "=")
		handler, parent, _ := strings.Cut(name, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < StreamFromRun || handler == "" {
			return FamilyStart{}, false
		}
		from.Children = append(from.Children, FamilyMember{Handler: handler, Parent: parent, After: n})
	}
	return from, true
}
