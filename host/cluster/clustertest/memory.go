// Package clustertest has a table of nodes in memory, and the suite that all tables pass. It
// is linked into tests only.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
)

// Memory is a store in memory, as far as nodes and their commits are concerned. Its fields
// may be changed between calls. Its methods may be called from any goroutine.
type Memory struct {
	Now func() time.Time // the store's clock
	// Watch waits while an entry of the name that joins may show that it is alive. nil: its
	// process has ended.
	Watch func(context.Context) error
	Away  bool // the store does not answer

	// Deliberate mistakes, for tests that must find them: a commit does not look at the
	// entry, or does not look who the owner is.
	NoFence, NoOwner bool

	mu      sync.Mutex
	entries map[uint64]*entry
	last    uint64
	owner   uint64
	number  uint64 // of the map
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{Now: time.Now, entries: map[uint64]*entry{}}
}

var (
	errAway = errors.New("the store does not answer")
	errBusy = errors.New("another transaction holds the row")
)

// watches is how often an entry of the name that joins is watched.
const watches = 3

type entry struct {
	cluster.Info
	commit *Commit // holds the entry's row
}

// free ends the transaction that holds an entry's row, as the end of its connection does.
func (e *entry) free() {
	if e.commit != nil {
		e.commit.aborted = true
		e.commit = nil
	}
}

// Commit is a transaction of an owner that has not ended.
type Commit struct {
	store   *Memory
	epoch   uint64
	aborted bool
}

// Begin begins a commit: the fence, and then the check of the owner.
func (m *Memory) Begin(p cluster.Place) (*Commit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Commit{store: m, epoch: p.Epoch}
	if !m.NoFence {
		e := m.entry(p)
		if e == nil {
			return nil, host.ErrFenced
		}
		if e.commit != nil {
			return nil, errBusy
		}
		e.commit = c
	}
	if !m.NoOwner && m.owner != p.Epoch {
		m.entries[p.Epoch].commit = nil
		return nil, host.ErrFenced
	}
	return c, nil
}

// End commits.
func (c *Commit) End() error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.aborted {
		return host.ErrFenced
	}
	e := c.store.entries[c.epoch]
	e.commit = nil
	e.Batch++
	return nil
}

// Restart ends all transactions and connections.
func (m *Memory) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		e.free()
		e.Connected = false
	}
}

// Disconnect ends the connection of a node's beats, and with it the transaction of the node,
// if abort says so.
func (m *Memory) Disconnect(epoch uint64, abort bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[epoch]; e != nil {
		e.Connected = false
		if abort {
			e.free()
		}
	}
}

// entry returns the open entry of a place, or nil. mu is held.
func (m *Memory) entry(p cluster.Place) *entry {
	if e := m.entries[p.Epoch]; e != nil && e.Mark == p.Mark && e.Open() {
		return e
	}
	return nil
}

// view returns the table. mu is held.
func (m *Memory) view() cluster.View {
	v := cluster.View{Owner: m.owner, Map: m.number}
	for epoch := uint64(1); epoch <= m.last; epoch++ {
		if e := m.entries[epoch]; e.Open() || epoch == m.owner {
			v.Nodes = append(v.Nodes, e.Info)
		}
	}
	return v
}

// Members is the table of nodes as one node sees it.
type Members struct {
	*Memory
	Cut bool // the node does not reach the store
}

var _ cluster.Table = (*Members)(nil)

// Members returns the table for a node.
func (m *Memory) Members() *Members { return &Members{Memory: m} }

// enter locks the store, unless the node does not reach it.
func (t *Members) enter() error {
	t.mu.Lock()
	if t.Away || t.Cut {
		t.mu.Unlock()
		return errAway
	}
	return nil
}

// Reaches reports whether the node reaches the store.
func (t *Members) Reaches() bool {
	if t.enter() != nil {
		return false
	}
	t.mu.Unlock()
	return true
}

// at locks the store, and returns the open entry of a place.
func (t *Members) at(p cluster.Place) (*entry, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	e := t.entry(p)
	if e == nil {
		t.mu.Unlock()
		return nil, host.ErrFenced
	}
	return e, nil
}

// Join implements [cluster.Table].
func (t *Members) Join(ctx context.Context, self cluster.Self) (cluster.Place, error) {
	for range watches {
		seen, err := t.namesakes(self.Name)
		if err != nil {
			return cluster.Place{}, err
		}
		if t.Watch != nil && len(seen) > 0 {
			if err := t.Watch(ctx); err != nil {
				return cluster.Place{}, err
			}
		}
		if err := t.closeSilent(seen); err != nil {
			return cluster.Place{}, err
		}
	}
	if err := t.enter(); err != nil {
		return cluster.Place{}, err
	}
	defer t.mu.Unlock()
	for _, e := range t.entries {
		switch {
		case e.Open() && e.Name == self.Name:
			return cluster.Place{}, fmt.Errorf("%w: %q", cluster.ErrNameTaken, self.Name)
		case e.Open() && e.Lease != self.Lease:
			return cluster.Place{}, fmt.Errorf("the node %q has the lease %s", e.Name, e.Lease)
		}
	}
	t.last++
	const prime = 7919
	place := cluster.Place{Epoch: t.last, Mark: int64(t.last) * prime}
	t.entries[t.last] = &entry{Info: cluster.Info{Place: place, Self: self, State: cluster.Live}}
	return place, nil
}

// namesakes returns the open entries of a name.
func (t *Members) namesakes(name string) (list []cluster.Info, err error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	for _, e := range t.entries {
		if e.Open() && e.Name == name {
			list = append(list, e.Info)
		}
	}
	return list, nil
}

// closeSilent closes the entries that have not changed since they were seen.
func (t *Members) closeSilent(seen []cluster.Info) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.mu.Unlock()
	for i := range seen {
		t.fence(&seen[i])
	}
	return nil
}

// fence closes an entry unless it has changed. mu is held.
func (t *Members) fence(seen *cluster.Info) bool {
	e := t.entry(seen.Place)
	if e == nil || e.Beats != seen.Beats || e.Batch != seen.Batch {
		return false
	}
	e.free()
	e.State, e.Connected = cluster.Fenced, false
	return true
}

// Beat implements [cluster.Table].
func (t *Members) Beat(_ context.Context, p cluster.Place) (cluster.View, error) {
	e, err := t.at(p)
	if err != nil {
		return cluster.View{}, err
	}
	defer t.mu.Unlock()
	e.Beats++
	e.Connected, e.Beat = true, t.Now()
	return t.view(), nil
}

// Look implements [cluster.Table].
func (t *Members) Look(context.Context) (cluster.View, error) {
	if err := t.enter(); err != nil {
		return cluster.View{}, err
	}
	defer t.mu.Unlock()
	return t.view(), nil
}

// Fence implements [cluster.Table].
func (t *Members) Fence(_ context.Context, p cluster.Place, seen cluster.Info) (bool, error) {
	if _, err := t.at(p); err != nil {
		return false, err
	}
	defer t.mu.Unlock()
	return t.fence(&seen), nil
}

// Take implements [cluster.Table].
func (t *Members) Take(_ context.Context, p cluster.Place) (bool, error) {
	self, err := t.at(p)
	if err != nil {
		return false, err
	}
	defer t.mu.Unlock()
	if e := t.entries[t.owner]; e != nil && e.Open() {
		return false, nil
	}
	t.owner, self.Drained = p.Epoch, false
	t.number++
	return true, nil
}

// Release implements [cluster.Table].
func (t *Members) Release(_ context.Context, p cluster.Place) error {
	e, err := t.at(p)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	if e.commit != nil && !t.NoFence {
		return errBusy
	}
	if t.owner == p.Epoch {
		t.owner = 0
		t.number++
	}
	return nil
}

// Leaving implements [cluster.Table].
func (t *Members) Leaving(_ context.Context, p cluster.Place) error {
	e, err := t.at(p)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	e.State = cluster.Leaving
	return nil
}

// Drain implements [cluster.Table].
func (t *Members) Drain(_ context.Context, p cluster.Place, name string, drained bool) error {
	if _, err := t.at(p); err != nil {
		return err
	}
	defer t.mu.Unlock()
	var node *entry
	others := false
	for _, e := range t.entries {
		switch {
		case e.State != cluster.Live:
		case e.Name == name:
			node = e
		case !e.Drained:
			others = true
		}
	}
	switch {
	case node == nil:
		return host.Errorf(host.CodeNotFound, "No live node is named %q", name)
	case drained && !others:
		return host.Errorf(host.CodeFailedPrecondition, "No other live node can take the sessions of %q", name)
	}
	node.Drained = drained
	return nil
}

// Leave implements [cluster.Table].
func (t *Members) Leave(_ context.Context, p cluster.Place) error {
	e, err := t.at(p)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	if e.commit != nil && !t.NoFence {
		return errBusy
	}
	e.State = cluster.Left
	return nil
}
