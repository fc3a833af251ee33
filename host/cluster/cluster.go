// Package cluster makes several servers on one store act as one: each is a node, and any
// node answers any request.
//
// One node at a time, the owner, runs all sessions and changes all names. The other nodes
// hand requests to it, and one of them takes its place when it leaves, dies or cannot be
// reached by the store. Who owns the sessions, the store decides: it refuses each commit of a
// node that another node has closed. Clocks decide how soon a node is replaced, and how
// fresh an answer from memory is. They never decide what is written. Machines' clocks need
// not agree: what passes is measured by monotonic clocks, and the time of runs is that of
// the store; see [Node.Time].
//
// The package does not depend on what a request means, how runs are executed, or the kind
// of store.
package cluster

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Times of the protocol. They depend on each other: a node answers from memory only until
// leaseFor after it has sent its newest answered beat, and no other node closes it earlier
// than silentFor after it has seen that beat.
const (
	// beatEvery is the time between two beats, give or take a tenth.
	beatEvery = 500 * time.Millisecond
	// beatTimeout is how long a beat waits for its answer.
	beatTimeout = time.Second
	// leaseFor is how long a node may answer from memory, counted from the sending of its
	// newest answered beat.
	leaseFor = 1200 * time.Millisecond
	// silentFor is how long a node must be silent before it is closed, if its connection to
	// the store is gone. A node whose connection stands has its lease: see [Self].
	silentFor = 1500 * time.Millisecond
)

// Bounds and default of a node's lease; see [Self].
const (
	DefaultLease = 8 * time.Second
	LeastLease   = 2 * time.Second
	MostLease    = time.Minute
)

// Place is a node's entry in the table of nodes. A process that was closed enters again and
// has another.
type Place struct {
	Epoch uint64 // number of the entry; grows
	Mark  int64  // random: after the store has lost commits, a number may be given again
}

// Self is what a node says about itself when it enters.
type Self struct {
	Name    string // unique among the nodes
	URL     string // where other nodes reach it: https://host:port
	Key     []byte // SHA-256 of the public key of its certificate
	Version string // of weft
	// Lease is how long the node may be silent while its connection to the store stands.
	// All nodes have the same.
	Lease time.Duration
	// Drained says that the node takes the sessions only if no other live node can.
	Drained bool
	// Settings are digests of the settings that all nodes should share, by the name of the
	// flag. Nodes with other settings are shown, and not refused: during a change of a setting
	// they differ.
	Settings map[string]string
}

// Differing returns the names of the settings that two nodes do not share, sorted. A node of
// a release that does not say its settings differs in none.
func (s *Self) Differing(other *Self) []string {
	if s.Settings == nil || other.Settings == nil {
		return nil
	}
	var names []string
	for name, digest := range s.Settings {
		if there, ok := other.Settings[name]; ok && there != digest {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// State is the state of an entry in the table of nodes.
type State string

// States of an entry. Only live and leaving nodes can own the sessions.
const (
	Live    State = "live"
	Leaving State = "leaving"
	Left    State = "left"   // by itself
	Fenced  State = "fenced" // closed by another node
)

// Info is an entry in the table of nodes. It is open unless it left or was closed.
type Info struct {
	Place
	Self
	State State
	// Beats and Batch count the node's beats and commits: a node of which neither grows is
	// silent.
	Beats, Batch uint64
	// Connected says that the connection over which the node sends its beats stands.
	Connected bool
	// Beat is the time of the newest beat by the clock of the store.
	Beat time.Time
}

// Open reports whether the node may own the sessions.
func (i *Info) Open() bool { return i.State == Live || i.State == Leaving }

// View is the table of nodes at one moment: all open entries, and the owner's if it is
// closed.
type View struct {
	Nodes []Info
	Owner uint64 // epoch of the owner of the sessions; 0: there was none yet
	Map   uint64 // grows with each change of the owner
}

// Node returns the entry with the epoch, or nil.
func (v *View) Node(epoch uint64) *Info {
	for i := range v.Nodes {
		if v.Nodes[i].Epoch == epoch {
			return &v.Nodes[i]
		}
	}
	return nil
}

// Free reports whether nobody may own the sessions, so that a node can take them.
func (v *View) Free() bool {
	owner := v.Node(v.Owner)
	return owner == nil || !owner.Open()
}

// Table is the table of nodes in the shared store. Its methods may be called from any
// goroutine, but Beat from one at a time.
//
// # Errors
//
// Every method that takes a Place returns an error that wraps [host.ErrFenced] if the entry
// is not open, or is not there with that mark. Any other error leaves open what happened.
type Table interface {
	// Join enters a node. An open entry of the same name that neither beats nor commits is
	// closed first. [ErrNameTaken]: it does. All nodes must have the same lease.
	Join(ctx context.Context, self Self) (Place, error)
	// Beat says that the node is alive, and reads the table.
	Beat(ctx context.Context, p Place) (View, error)
	// Look reads the table.
	Look(ctx context.Context) (View, error)
	// Fence closes the entry of another node, unless it has sent a beat or committed since
	// it was seen. From then on the store refuses its commits.
	Fence(ctx context.Context, p Place, seen Info) (fenced bool, err error)
	// Take makes the node the owner if the owner's entry is closed, or there is none. The
	// node is then no longer drained.
	Take(ctx context.Context, p Place) (taken bool, err error)
	// Release makes nobody the owner of what the node owns. The node has made all its
	// commits; no commit in progress is made after that.
	Release(ctx context.Context, p Place) error
	// Leaving says that the node is about to leave.
	Leaving(ctx context.Context, p Place) error
	// Drain makes the live node of a name drained, or no longer drained. p is the node that
	// asks. It fails with [host.CodeNotFound] if there is no live node of that name, and with
	// [host.CodeFailedPrecondition] if no other live node would be left that is not drained.
	Drain(ctx context.Context, p Place, name string, drained bool) error
	// Leave closes the node's own entry: its commits are refused from then on.
	Leave(ctx context.Context, p Place) error
}

// ErrNameTaken is the error of [Table.Join] while another process serves under the name.
var ErrNameTaken = errors.New("another process serves as this node")

// Target is the node that requests go to at the moment.
type Target struct {
	Info
	// Here says that this node is the owner itself, and serves.
	Here bool
	// Tenure ends when the node is no longer the owner. Requests that were sent to the node
	// may then never be answered.
	Tenure context.Context
}
