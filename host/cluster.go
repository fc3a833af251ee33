package host

import "time"

// Node is a server of a cluster.
type Node struct {
	Name    string
	Epoch   uint64 // number of its entry in the table of nodes
	State   string // live, leaving, left or fenced
	Owner   bool   // it runs the sessions
	URL     string // where the other nodes reach it
	Version string // of weft
	Seen    int64  // when the store last heard of it, Unix nanoseconds
	Lease   time.Duration
	// Drained says that an operator has moved the sessions away from it: it takes them only
	// if no other node can.
	Drained bool
	// Differs are the flags whose settings differ from those of the owner.
	Differs []string
}
