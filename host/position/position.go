// Package position says where a stream of events begins, and has the text of such a place,
// which clients send back to continue a stream.
package position

import (
	"strconv"
	"strings"
)

// Special numbers after which a stream begins.
const (
	FromRun int64 = -1 // from the latest run's first event
	FromNow int64 = -2 // only new events
)

// Family is the place where a stream of a run's events and those of its descendants begins.
type Family struct {
	After    int64 // for the run's own events; see FromNow and FromRun
	Children []Member
}

// Member is a child whose events begin after a number.
type Member struct {
	Handler string
	Parent  string // handler of the parent; "": the run itself
	After   int64
}

// maxChildren limits the children that a position names.
const maxChildren = 1024

// Text returns the text of a position: the number of the run's last event, followed by
// /HANDLER=NUMBER for each child that may have more events, or /HANDLER:PARENT=NUMBER if
// root is not its parent.
func (f Family) Text(root string) string {
	b := strconv.AppendInt(nil, f.After, 10)
	for _, c := range f.Children {
		b = append(append(b, '/'), c.Handler...)
		if c.Parent != root {
			b = append(append(b, ':'), c.Parent...)
		}
		b = strconv.AppendInt(append(b, '='), c.After, 10)
	}
	return string(b)
}

// Parse reads the text of a position.
func Parse(text string) (Family, bool) {
	parts := strings.Split(text, "/")
	after, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || after < FromRun || len(parts) > maxChildren+1 {
		return Family{}, false
	}
	from := Family{After: after}
	for _, part := range parts[1:] {
		name, number, _ := strings.Cut(part, "=")
		handler, parent, _ := strings.Cut(name, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < FromRun || handler == "" {
			return Family{}, false
		}
		from.Children = append(from.Children, Member{Handler: handler, Parent: parent, After: n})
	}
	return from, true
}
