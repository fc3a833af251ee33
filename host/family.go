package host

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// FamilyStream is an open subscription to the events of a run, of its children and of
// theirs. One goroutine uses it.
type FamilyStream interface {
	// Next is like that of [Stream], with io.EOF after the terminal event of the run.
	Next(ctx context.Context, wait time.Duration) ([]FamilyEvent, error)
	// Ended is like that of [Stream], about the run.
	Ended() bool
	// Close gives the subscription back. It may be called twice.
	Close()
}

// FamilyEvent is an event of a run or of one of its children.
type FamilyEvent struct {
	StreamEvent
	HandlerID string // whose event it is; Seq counts the events of this handler
	ParentID  string // handler of the run that has begun HandlerID's as its child; "": the run itself
	// Position is where a subscription begins just behind the event; see
	// [ParsePosition].
	Position string
}

// FamilyStart is where a [FamilyStream] begins.
type FamilyStart struct {
	After    int64 // of the run's own events; see StreamFromNow and StreamFromRun
	Children []FamilyMember
}

// FamilyMember is a child whose events begin behind a number.
type FamilyMember struct {
	Handler string
	Parent  string // handler; "": the run itself
	After   int64
}

// maxPosition bounds the children that a position names.
const maxPosition = 1024

// Position is the text of a start: the number of the run's last event, then for each child
// that may have more to give /HANDLER=NUMBER, or /HANDLER:PARENT=NUMBER if root is not its
// parent.
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
