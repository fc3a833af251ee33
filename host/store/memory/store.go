// Package memory is a store without durability: for tests, and for servers whose runs
// need not survive.
//
// It implements [host.Store] with the guarantees of the durable stores, except that
// nothing survives Close. The package does not know what a journal row means, and does no
// I/O. It consists of plain maps under one mutex.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/usage"
)

// errClosed is the error of every call after Close.
var errClosed = errors.New("the store is closed")

// Store is a [host.Store] in memory. Use [New]: the zero value is not usable.
type Store struct {
	// mu guards the fields below. Nothing that waits is called under it.
	mu       sync.RWMutex
	closed   bool
	epoch    uint64
	made     uint64 // sessions made so far
	sessions map[host.SessionKey]*session
	handlers map[id]*handler
	runs     map[id]*host.Run
	modules  map[string]*host.ModuleRecord
	plugins  map[id][]host.PluginVersion      // oldest first
	composed map[id][]host.CompositionVersion // oldest first
	// released are the modules that no name refers to any more, and gone the
	// compositions. They stay as long as a session needs them.
	released  map[string]bool
	gone      map[string]*host.CompositionVersion // by digest
	repeats   map[repeatKey]*host.Repeat
	meta      map[string][]byte
	spent     map[spentKey]*usage.Spent
	resources resources
	kv        map[kv.Space]*space
	access    access
	stats     host.StoreStats
}

// id is a name within a tenant.
type id struct{ tenant, name string }

type repeatKey struct{ tenant, route, key string }

type session struct {
	order    uint64 // of creation
	last     uint64
	rows     []row // oldest first
	wakeAt   int64
	private  bool // a handler with the session's own name has run in it
	handlers int
	created  int64
	updated  int64
	state    int64              // bytes of the state
	erasing  bool               // it is being deleted
	versions map[string]*uint64 // the versions that its rows need, with the last position that needs each
}

// row is a row of a session's journal.
type row struct {
	host.JournalRow
	snapshot uint64 // position of its newest snapshot, or 0
}

type handler struct {
	session  host.SessionKey
	runs     []*host.Run // in order of start; never empty
	stream   []host.StreamEvent
	firstSeq int64 // number of the latest run's first event, even before that event exists; negative while a batch starts the run
}

func (h *handler) latest() *host.Run { return h.runs[len(h.runs)-1] }

// lastSeq is the number of the stream's last event, or -1.
func (h *handler) lastSeq() int64 {
	if len(h.stream) == 0 {
		return -1
	}
	return int64(h.stream[len(h.stream)-1].Seq)
}

var _ host.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		sessions:  map[host.SessionKey]*session{},
		handlers:  map[id]*handler{},
		runs:      map[id]*host.Run{},
		modules:   map[string]*host.ModuleRecord{},
		released:  map[string]bool{},
		gone:      map[string]*host.CompositionVersion{},
		plugins:   map[id][]host.PluginVersion{},
		composed:  map[id][]host.CompositionVersion{},
		repeats:   map[repeatKey]*host.Repeat{},
		meta:      map[string][]byte{},
		spent:     map[spentKey]*usage.Spent{},
		resources: newResources(),
		kv:        map[kv.Space]*space{},
		access:    newAccess(),
	}
}

// Close implements [host.Store]. It discards everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.sessions, s.handlers, s.runs = nil, nil, nil
	s.modules, s.plugins, s.composed, s.released, s.gone, s.repeats, s.meta, s.spent = nil, nil, nil, nil, nil, nil, nil, nil
	s.access = access{}
	s.resources = resources{}
	s.kv = nil
	return nil
}

// Stats implements [host.Store].
func (s *Store) Stats() host.StoreStats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stats
}

// Claim implements [host.Store].
func (s *Store) Claim(ctx context.Context) (epoch uint64, err error) {
	err = s.update(ctx, func() error {
		s.epoch++
		epoch = s.epoch
		return nil
	})
	return epoch, err
}

// Append implements [host.Store].
func (s *Store) Append(ctx context.Context, b host.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", host.ErrNotCommitted, err)
	}
	begun := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	defer func() { s.stats.CommitTime += time.Since(begun) }()
	if s.epoch == 0 || b.Epoch != s.epoch {
		return host.ErrFenced
	}
	c := change{store: s}
	for i := range b.Sessions {
		if err := c.apply(&b.Sessions[i]); err != nil {
			c.revert()
			return fmt.Errorf("batch refused: %w", err)
		}
	}
	for i := range b.Spent {
		if err := c.putSpent(&b.Spent[i]); err != nil {
			c.revert()
			return fmt.Errorf("batch refused: %w", err)
		}
	}
	for i := range b.KV {
		if err := c.putKV(&b.KV[i]); err != nil {
			c.revert()
			return fmt.Errorf("batch refused: %w", err)
		}
	}
	c.settleVersions(&b)
	s.stats.Commits++
	for i := range b.Sessions {
		s.stats.JournalBytes += uint64(len(b.Sessions[i].Data))
	}
	return nil
}

// update runs fn with the store locked for writing.
func (s *Store) update(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return fn()
}

// view runs fn with the store locked for reading.
func (s *Store) view(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return fn()
}

func notFound(what, name string) error {
	return fmt.Errorf("%s %s: %w", what, name, host.ErrNotFound)
}

func cloneRun(r *host.Run) host.Run {
	c := *r
	if r.Result != nil {
		e := cloneEvent(r.Result)
		c.Result = &e
	}
	c.WaitingFor, c.Kept = slices.Clone(r.WaitingFor), slices.Clone(r.Kept)
	if r.Blocked != nil {
		b := *r.Blocked
		c.Blocked = &b
	}
	return c
}

func cloneEvent(e *host.StreamEvent) host.StreamEvent {
	c := *e
	c.Types = slices.Clone(e.Types)
	c.Body = slices.Clone(e.Body)
	return c
}
