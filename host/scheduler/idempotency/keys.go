// Package idempotency answers requests that a client sends again by what the first request
// has left.
//
// It must not depend on what a request does: a store and the journal's positions are all that it
// needs.
package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// A request that a client may send again carries a key. The record of the first request is
// written with what the request does, in the same transaction. Until that is durable the
// record is found here, and a client that repeats the request meanwhile waits for the
// outcome of the first one. A request that is refused leaves nothing.

// repeatsKept is how long a request can be repeated, in nanoseconds.
const repeatsKept = int64(24 * time.Hour)

// Store keeps the records of requests.
type Store interface {
	Repeat(ctx context.Context, tenant, route, key string) (host.Repeat, error)
	ForgetRepeats(ctx context.Context, before int64, limit int) (int, error)
}

// Journal is the queue by which records become durable.
type Journal interface {
	Durable() uint64
	Wait(ctx context.Context, pos uint64) error
}

// Config says what keys are kept with. All fields must be set.
type Config struct {
	Store   Store
	Journal Journal
	Now     func() int64 // Unix nanoseconds
}

// Keys has the requests that may be repeated and that the store perhaps does not know yet.
// It has a mutex of its own; its methods may be called from any goroutine.
type Keys struct {
	cfg Config

	mu      sync.Mutex // guards what follows; no I/O under it
	records map[name]*record
}

// name names a request.
type name struct{ tenant, route, key string }

// record is a request that the store does not know yet.
type record struct {
	settled chan struct{} // closed when the rest is set
	row     host.Repeat
	pos     uint64 // at which it is durable; 0: it was refused
}

// New makes keys without requests.
func New(cfg Config) *Keys { return &Keys{cfg: cfg, records: map[name]*record{}} }

// Claim is a request that is the first of its key. A nil claim is of a request without a
// key.
type Claim struct {
	keys *Keys
	name name
	row  host.Repeat
}

// Claim makes the caller the one who carries a request out, or gives what the
// first one has left. The caller must settle the claim in any case.
//
// # Errors
//
// CodeIdempotencyMismatch: the key was that of a request with another body.
// CodeUnavailable. ctx's.
func (k *Keys) Claim(ctx context.Context, tenant string, once host.Once) (*Claim, *host.Repeat, error) {
	if once.Key == "" {
		return nil, nil, nil
	}
	n := name{tenant, once.Route, once.Key}
	for {
		first := k.begin(n)
		if first == nil {
			break
		}
		row, err := k.join(ctx, first)
		if err != nil || row != nil {
			return nil, row, matches(row, once, err)
		}
		// The first request was refused and left nothing: this one may be the first now.
	}
	c := &Claim{keys: k, name: n, row: host.Repeat{Route: once.Route, Key: once.Key, Hash: once.Hash, Made: k.cfg.Now()}}
	row, err := k.cfg.Store.Repeat(ctx, tenant, once.Route, once.Key)
	switch {
	case err == nil && row.Made > k.cfg.Now()-repeatsKept:
		c.Settle(0)
		return nil, &row, matches(&row, once, nil)
	case err == nil || errors.Is(err, host.ErrNotFound):
		return c, nil, nil
	}
	c.Settle(0)
	return nil, nil, host.Unavailable(err)
}

// begin makes a record of a request, or gives the record of the first one if that is not
// durable yet.
func (k *Keys) begin(n name) (first *record) {
	durable := k.cfg.Journal.Durable()
	k.mu.Lock()
	defer k.mu.Unlock()
	first = k.records[n]
	if first != nil && (first.pos == 0 || first.pos > durable) {
		return first
	}
	k.records[n] = &record{settled: make(chan struct{})} // a durable one is known to the store
	return nil
}

// matches refuses another request under the same key.
func matches(row *host.Repeat, once host.Once, err error) error {
	if err == nil && row.Hash != once.Hash {
		return host.Errorf(host.CodeIdempotencyMismatch, "the Idempotency-Key %q was used for another request body: use a new key for a new request", once.Key)
	}
	return err
}

// join waits for the outcome of the first request; nil if that was refused.
func (k *Keys) join(ctx context.Context, first *record) (*host.Repeat, error) {
	select {
	case <-first.settled:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if first.pos == 0 {
		return nil, nil
	}
	if err := k.cfg.Journal.Wait(ctx, first.pos); err != nil {
		return nil, host.Unavailable(err)
	}
	row := first.row
	return &row, nil
}

// Rows are what the journal writes with the request's entry.
func (c *Claim) Rows(runID string) []host.Repeat {
	if c == nil {
		return nil
	}
	c.row.RunID = runID
	return []host.Repeat{c.row}
}

// Settle says at which position the request is durable, 0 if it was refused. Until then
// those who repeat the request find its record here.
func (c *Claim) Settle(pos uint64) {
	if c == nil {
		return
	}
	k := c.keys
	durable := k.cfg.Journal.Durable()
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.records[c.name]
	r.row, r.pos = c.row, pos
	close(r.settled)
	if pos <= durable {
		delete(k.records, c.name)
	}
}

// Known reports whether a request was made before.
func (k *Keys) Known(ctx context.Context, tenant string, once host.Once) (bool, error) {
	k.mu.Lock()
	_, known := k.records[name{tenant, once.Route, once.Key}]
	k.mu.Unlock()
	if known {
		return true, nil
	}
	row, err := k.cfg.Store.Repeat(ctx, tenant, once.Route, once.Key)
	if host.CodeOf(err) == host.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, host.Unavailable(err)
	}
	return row.Made > k.cfg.Now()-repeatsKept, nil
}

// mostRecords is how many records are remembered before those that the store has by now
// are forgotten.
const mostRecords = 1024

// Prune forgets records that the store has by now, if there are many.
func (k *Keys) Prune(durable uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.records) <= mostRecords {
		return
	}
	for n, r := range k.records {
		if r.pos != 0 && r.pos <= durable {
			delete(k.records, n)
		}
	}
}

// Forget forgets the requests of a tenant, none of which is in progress.
func (k *Keys) Forget(tenant string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := range k.records {
		if n.tenant == tenant {
			delete(k.records, n)
		}
	}
}

// oldBatch is how many old requests are deleted at a time.
const oldBatch = 1000

// DeleteOld deletes records from the store that are too old to be repeated, and gives their
// number.
func (k *Keys) DeleteOld(ctx context.Context) (n int, err error) {
	return k.cfg.Store.ForgetRepeats(ctx, k.cfg.Now()-repeatsKept, oldBatch)
}

// Left names a request in progress, for tests; "" if there is none.
func (k *Keys) Left() string {
	durable := k.cfg.Journal.Durable()
	k.mu.Lock()
	defer k.mu.Unlock()
	for n, r := range k.records {
		if r.pos == 0 || r.pos > durable {
			return fmt.Sprintf("the request %s stays open", n.key)
		}
	}
	return ""
}
