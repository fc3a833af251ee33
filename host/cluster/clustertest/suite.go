package clustertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
)

// Peer is a table of nodes as one node sees it, with the commits that the table fences.
type Peer interface {
	cluster.Table
	// Commit commits something as the owner. It returns an error that wraps
	// [host.ErrFenced] if the entry is not open, and any error if the node is not the owner.
	Commit(ctx context.Context, p cluster.Place) error
}

// node is a node of the suite.
type node struct {
	Peer
	place cluster.Place
}

// Run runs the suite for tables of nodes. open opens a new table, and returns a function that
// connects one more node to it.
func Run(t *testing.T, open func(t *testing.T) (connect func() Peer)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, connect func() Peer)
	}{
		{"ClosedNodeWritesNothing", testClosedNode},
		{"NodeThatIsNotSilentIsNotClosed", testNotSilent},
		{"OneNodeTakes", testOneTakes},
		{"ReleasedSessionsAreNotWritten", testReleased},
		{"NameOfANode", testName},
		{"OneLease", testLease},
		{"Strangers", testStrangers},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func selfOf(name string) cluster.Self {
	return cluster.Self{Name: name, URL: "https://" + name + ":1", Key: []byte(name), Version: "test", Lease: cluster.LeastLease}
}

func join(t *testing.T, connect func() Peer, name string) *node {
	t.Helper()
	n := &node{Peer: connect()}
	var err error
	n.place, err = n.Join(t.Context(), selfOf(name))
	must(t, err)
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantFenced(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, host.ErrFenced) {
		t.Errorf("%s: %v, want ErrFenced", what, err)
	}
}

func (n *node) beats(t *testing.T) cluster.View {
	t.Helper()
	v, err := n.Beat(t.Context(), n.place)
	must(t, err)
	return v
}

// seen returns the entry of another node as a node sees it.
func (n *node) seen(t *testing.T, other *node) cluster.Info {
	t.Helper()
	v := n.beats(t)
	i := v.Node(other.place.Epoch)
	if i == nil {
		t.Fatalf("there is no entry %d", other.place.Epoch)
	}
	return *i
}

func (n *node) takes(t *testing.T) {
	t.Helper()
	if taken, err := n.Take(t.Context(), n.place); err != nil || !taken {
		t.Fatalf("taken %t, %v", taken, err)
	}
}

// Only the owner commits. A node that was closed commits nothing more, and closes and takes
// nothing. The table shows its entry while it is the owner's.
func testClosedNode(t *testing.T, connect func() Peer) {
	ctx := t.Context()
	a, b := join(t, connect, "a"), join(t, connect, "b")
	if v := a.beats(t); v.Owner != 0 || !v.Free() || len(v.Nodes) != 2 {
		t.Errorf("the new table is %+v", v)
	}
	a.takes(t)
	must(t, a.Commit(ctx, a.place))
	if taken, err := b.Take(ctx, b.place); err != nil || taken {
		t.Fatalf("a second owner: %t, %v", taken, err)
	}
	if err := b.Commit(ctx, b.place); err == nil {
		t.Error("a node that does not own the sessions commits")
	}
	before := b.seen(t, a)
	if before.Batch == 0 || before.State != cluster.Live || before.Name != "a" || before.URL != "https://a:1" || string(before.Key) != "a" || before.Lease != cluster.LeastLease {
		t.Errorf("the entry is %+v", before)
	}
	if fenced, err := b.Fence(ctx, b.place, before); err != nil || !fenced {
		t.Fatalf("closed %t, %v", fenced, err)
	}
	if v := b.beats(t); v.Owner != a.place.Epoch || !v.Free() || len(v.Nodes) != 2 || v.Node(a.place.Epoch).State != cluster.Fenced {
		t.Errorf("the table is %+v", v)
	}
	wantFenced(t, "a commit", a.Commit(ctx, a.place))
	_, err := a.Beat(ctx, a.place)
	wantFenced(t, "a beat", err)
	_, err = a.Fence(ctx, a.place, b.seen(t, b))
	wantFenced(t, "the closing of another", err)
	_, err = a.Take(ctx, a.place)
	wantFenced(t, "a take", err)
	wantFenced(t, "a release", a.Release(ctx, a.place))
	wantFenced(t, "leaving", a.Leaving(ctx, a.place))
	wantFenced(t, "a leave", a.Leave(ctx, a.place))
	b.takes(t)
	must(t, b.Commit(ctx, b.place))
	v := b.beats(t)
	if v.Owner != b.place.Epoch || v.Free() || len(v.Nodes) != 1 {
		t.Errorf("the table is %+v", v)
	}
	looked, err := a.Look(ctx)
	if err != nil || looked.Owner != v.Owner || looked.Map != v.Map || len(looked.Nodes) != 1 {
		t.Errorf("a node without an entry reads %+v, %v", looked, err)
	}
}

// A node is closed only if it has neither beaten nor committed since it was seen.
func testNotSilent(t *testing.T, connect func() Peer) {
	a, b := join(t, connect, "a"), join(t, connect, "b")
	a.takes(t)
	for name, sign := range map[string]func(){
		"a beat":   func() { a.beats(t) },
		"a commit": func() { must(t, a.Commit(t.Context(), a.place)) },
	} {
		seen := b.seen(t, a)
		sign()
		if fenced, err := b.Fence(t.Context(), b.place, seen); err != nil || fenced {
			t.Errorf("closed %t in spite of %s: %v", fenced, name, err)
		}
	}
	if !b.seen(t, a).Connected {
		t.Error("a connection that stands is not seen")
	}
	a.beats(t)
}

// Of nodes that take the sessions at the same time, one gets them.
func testOneTakes(t *testing.T, connect func() Peer) {
	list := make([]*node, 4)
	for i, name := range []string{"a", "b", "c", "d"} {
		list[i] = join(t, connect, name)
	}
	last := uint64(0)
	for range 5 {
		took := make([]bool, len(list))
		var racing sync.WaitGroup
		for i, n := range list {
			racing.Go(func() {
				var err error
				if took[i], err = n.Take(t.Context(), n.place); err != nil {
					t.Error(err)
				}
			})
		}
		racing.Wait()
		var owner *node
		for i, n := range list {
			if took[i] && owner != nil {
				t.Fatal("two nodes took the sessions")
			}
			if took[i] {
				owner = n
			}
		}
		if owner == nil || owner.beats(t).Owner != owner.place.Epoch {
			t.Fatal("no node took the sessions")
		}
		must(t, owner.Release(t.Context(), owner.place))
		v := owner.beats(t)
		if !v.Free() || v.Map < last+2 {
			t.Errorf("the sessions are not free, or the map does not grow: %+v", v)
		}
		last = v.Map
	}
}

// A node that has released the sessions commits nothing, although its entry is still open.
func testReleased(t *testing.T, connect func() Peer) {
	a := join(t, connect, "a")
	a.takes(t)
	must(t, a.Commit(t.Context(), a.place))
	must(t, a.Leaving(t.Context(), a.place))
	must(t, a.Commit(t.Context(), a.place))
	must(t, a.Release(t.Context(), a.place))
	if err := a.Commit(t.Context(), a.place); err == nil {
		t.Error("the commit was made")
	}
	if state := a.seen(t, a).State; state != cluster.Leaving {
		t.Errorf("the node is %s", state)
	}
	must(t, a.Leave(t.Context(), a.place))
	_, err := a.Beat(t.Context(), a.place)
	wantFenced(t, "a beat of a node that has left", err)
}

// A name belongs to one process. A process that starts again takes the place of the process
// before, if that one is silent.
func testName(t *testing.T, connect func() Peer) {
	a, other := join(t, connect, "a"), connect()
	stop, beating := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(beating)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := a.Beat(context.WithoutCancel(t.Context()), a.place); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	_, err := other.Join(t.Context(), selfOf("a"))
	close(stop)
	<-beating
	if !errors.Is(err, cluster.ErrNameTaken) {
		t.Errorf("a second process of the name joins: %v", err)
	}
	place, err := other.Join(t.Context(), selfOf("a"))
	if err != nil || place.Epoch <= a.place.Epoch {
		t.Errorf("the process that starts again: %+v, %v", place, err)
	}
	_, err = a.Beat(t.Context(), a.place)
	wantFenced(t, "a beat of the process before", err)
}

// Nodes agree on the lease.
func testLease(t *testing.T, connect func() Peer) {
	join(t, connect, "a")
	self := selfOf("b")
	self.Lease = time.Minute
	if _, err := connect().Join(t.Context(), self); err == nil {
		t.Error("a node with another lease joins")
	}
}

// An entry with another mark is another node's, and an entry that was never made is nobody's.
func testStrangers(t *testing.T, connect func() Peer) {
	a := join(t, connect, "a")
	a.takes(t)
	for _, place := range []cluster.Place{{Epoch: a.place.Epoch, Mark: a.place.Mark + 1}, {Epoch: a.place.Epoch + 1, Mark: a.place.Mark}} {
		_, err := a.Beat(t.Context(), place)
		wantFenced(t, "a beat", err)
		_, err = a.Take(t.Context(), place)
		wantFenced(t, "a take", err)
		wantFenced(t, "a release", a.Release(t.Context(), place))
		wantFenced(t, "a leave", a.Leave(t.Context(), place))
	}
	if v := a.beats(t); v.Owner != a.place.Epoch || v.Free() {
		t.Errorf("the table is %+v", v)
	}
}
