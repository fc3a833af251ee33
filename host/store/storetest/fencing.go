package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/weftrun/weft/host"
)

// Peers opens handles on one database, which is new and empty. Each call returns a
// different handle, like that of another server, and closes it when t ends. A store in
// memory, or a store whose directory only one process can open, may return handles that
// share more, as long as each keeps to the epochs.
type Peers func(t *testing.T) (peer func() host.Store)

// RunPeers runs the suite for stores with several handles on one database. The epoch
// decides which handle owns the database. Append is fenced in the transaction that
// writes, whatever a handle believes. All other methods have no owner, and work on every
// handle.
func RunPeers(t *testing.T, open Peers) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, peer func() host.Store)
	}{
		{"FencedParts", testFencedParts},
		{"Turns", testTurns},
		{"ClaimsByPeers", testClaimsByPeers},
		{"ClaimWhileAppending", testClaimWhileAppending},
		{"NobodysMethods", testNobodysMethods},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// owner claims the store through a handle.
func owner(t *testing.T, s host.Store) *fixture {
	t.Helper()
	return claimed(t, func(*testing.T) host.Store { return s })
}

// see returns what a handle reads of the sessions that another handle knows.
func (f *fixture) see(s host.Store) contents {
	f.t.Helper()
	other := *f
	other.Store = s
	return dump(&other)
}

// namedParts is a batch without an epoch.
type namedParts struct {
	name  string
	parts []host.SessionBatch
}

// parts returns one part for each kind of change, on what testFencedParts made. With any
// single one of them, a fenced batch writes nothing.
func (f *fixture) parts() []namedParts {
	key := host.SessionKey{Tenant: tenant, Session: "s"}
	fresh, old, changed := running("fresh", "s", 50), running("h", "s", 10), running("h", "s", 20)
	changed.Steps = 9
	with := func(change func(p *host.SessionBatch)) []host.SessionBatch {
		p := f.part("s", 1)
		change(&p)
		return []host.SessionBatch{p}
	}
	return []namedParts{
		{"nothing", nil},
		{"entries", with(func(*host.SessionBatch) {})},
		{"a new session", []host.SessionBatch{f.part("new", 1)}},
		{"two sessions", []host.SessionBatch{f.part("s", 1), f.part("new", 1)}},
		{"a wake time", with(func(p *host.SessionBatch) { p.WakeAt = 5 })},
		{"a snapshot", with(func(p *host.SessionBatch) { p.Snapshot = p.Last })},
		{"a snapshot and a cut", with(func(p *host.SessionBatch) { p.Snapshot, p.Cut = p.Last, p.Last })},
		{"a changed run", with(func(p *host.SessionBatch) { p.Runs = []host.Run{changed} })},
		{"a started run", with(func(p *host.SessionBatch) { p.Runs, p.Started = []host.Run{fresh}, []string{fresh.RunID} })},
		{"events", with(func(p *host.SessionBatch) { p.Stream = []host.StreamRow{events(changed, 6, 2)} })},
		{"a repeat", with(func(p *host.SessionBatch) { p.Repeats = []host.Repeat{{Route: "r", Key: "k", RunID: "x", Made: 1}} })},
		{"a drop", []host.SessionBatch{{Key: key, Drop: []string{old.RunID}, WakeAt: host.WakeNever}}},
		{"a purge", []host.SessionBatch{{Key: key, Purge: []string{"h"}, WakeAt: host.WakeNever}}},
		{"what would be refused", []host.SessionBatch{{Key: key, First: 99, Last: 99, Data: []byte("x"), WakeAt: host.WakeNever}}},
	}
}

// testFencedParts: an owner that has been fenced writes nothing, whatever it writes and
// through whichever handle. The new owner can write all of it.
func testFencedParts(t *testing.T, peer func() host.Store) {
	a := owner(t, peer())
	a.ran("s", completed("h", "s", 10, 11))
	a.ran("s", running("h", "s", 20))
	b := owner(t, peer())
	b.last = maps.Clone(a.last)
	b.last[host.SessionKey{Tenant: tenant, Session: "new"}] = 0
	before := dump(b)
	for _, batch := range a.parts() {
		for _, epoch := range []uint64{a.epoch, a.epoch - 1, b.epoch + 1, 0, math.MaxUint64} {
			for _, handle := range []host.Store{a.Store, b.Store} {
				if err := handle.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: batch.parts}); !errors.Is(err, host.ErrFenced) {
					t.Fatalf("Append of %s with epoch %d, newest %d = %v, want ErrFenced", batch.name, epoch, b.epoch, err)
				}
			}
		}
	}
	same(t, "the store after what a fenced owner tried", dump(b), before)
	same(t, "the store by the fenced owner's handle", b.see(a.Store), before)
	_, err := b.Repeat(t.Context(), tenant, "r", "k")
	missing(t, "the fenced owner's request", err)
	rows, err := b.History(t.Context(), host.SessionKey{Tenant: tenant, Session: "s"}, math.MaxInt64, 0, 10)
	ok(t, "History", err)
	if len(rows) != 2 {
		t.Errorf("the journal has %d rows, want 2", len(rows))
	}
	for _, batch := range b.parts() {
		if batch.name == "what would be refused" {
			continue
		}
		for _, p := range batch.parts { // continue where the others ended
			if p.First > 0 {
				first := b.last[p.Key] + 1
				if p.First, p.Last = first, first; p.Snapshot > 0 {
					p.Snapshot = first
				}
			}
			b.append(p)
		}
	}
}

// testTurns: ownership goes back and forth. Each owner continues where the other ended,
// and each handle reads everything that any of them has acknowledged.
func testTurns(t *testing.T, peer func() host.Store) {
	handles := []host.Store{peer(), peer(), peer()}
	last := map[host.SessionKey]uint64{}
	var fenced []uint64
	for turn := range 9 {
		f := owner(t, handles[turn%len(handles)])
		f.last = last
		for _, old := range fenced {
			if old >= f.epoch {
				t.Fatalf("Claim = %d after %d", f.epoch, old)
			}
			if err := f.Append(f.ctx, host.Batch{Epoch: old, Sessions: []host.SessionBatch{f.part("s", 1)}}); !errors.Is(err, host.ErrFenced) {
				t.Fatalf("Append with epoch %d = %v, want ErrFenced", old, err)
			}
		}
		f.append(f.part("s", 2), f.part(fmt.Sprint("of turn ", turn), 1))
		f.ran("s", running(fmt.Sprint("h", turn), "s", int64(turn)))
		want := dump(f)
		for i, h := range handles {
			same(t, fmt.Sprint("handle ", i, " at turn ", turn), f.see(h), want)
		}
		fenced = append(fenced, f.epoch)
	}
}

// testClaimsByPeers: handles that claim concurrently get different epochs, and the one
// with the highest epoch owns the store.
func testClaimsByPeers(t *testing.T, peer func() host.Store) {
	handles := []host.Store{peer(), peer(), peer()}
	epochs := make([][]uint64, len(handles))
	var all sync.WaitGroup
	for i, h := range handles {
		all.Go(func() {
			for range 4 {
				epoch, err := h.Claim(t.Context())
				if err != nil {
					t.Errorf("Claim: %v", err)
				}
				epochs[i] = append(epochs[i], epoch)
			}
		})
	}
	all.Wait()
	got := slices.Sorted(slices.Values(slices.Concat(epochs...)))
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("the epochs are %d", epochs)
	}
	newest := got[len(got)-1]
	for i, h := range handles {
		for _, epoch := range epochs[i] {
			err := h.Append(t.Context(), host.Batch{Epoch: epoch})
			if owns := epoch == newest; owns != (err == nil) || !owns && !errors.Is(err, host.ErrFenced) {
				t.Errorf("Append with epoch %d, newest %d = %v", epoch, newest, err)
			}
		}
	}
}

// testClaimWhileAppending: an owner appends while another takes over. Everything that the
// old owner was acknowledged is there when Claim returns, and nothing of the old owner
// arrives later.
func testClaimWhileAppending(t *testing.T, peer func() host.Store) {
	a, next := owner(t, peer()), peer()
	key := host.SessionKey{Tenant: tenant, Session: "s"}
	for range 5 {
		a.append(a.part("s", 1))
		begun := make(chan struct{})
		done := make(chan error)
		old := *a
		go func() {
			var err error
			for n := 0; err == nil; n++ {
				p := old.part("s", 1)
				if err = old.try(p); err == nil {
					old.last[key] = p.Last
				}
				if n == 3 {
					close(begun)
				}
				if err == nil { // a store may let the next one in while nobody writes only
					_, err = old.LoadSession(t.Context(), key)
				}
			}
			done <- err
		}()
		<-begun
		epoch, err := next.Claim(t.Context())
		for errors.Is(err, host.ErrNotCommitted) { // the old one was writing all the time
			epoch, err = next.Claim(t.Context())
		}
		ok(t, "Claim", err)
		at, err := next.LoadSession(t.Context(), key)
		ok(t, "LoadSession", err)
		if err := <-done; !errors.Is(err, host.ErrFenced) {
			t.Fatalf("Append of the old owner = %v, want ErrFenced", err)
		}
		later, err := next.LoadSession(t.Context(), key)
		ok(t, "LoadSession", err)
		if later.Last != at.Last || old.last[key] != at.Last {
			t.Fatalf("at the claim the session was at %d, later at %d; the old owner was acknowledged %d", at.Last, later.Last, old.last[key])
		}
		a.Store, next, a.epoch = next, a.Store, epoch
	}
}

// testNobodysMethods: any handle, fenced or not, writes what has no owner, and all
// handles read it.
func testNobodysMethods(t *testing.T, peer func() host.Store) {
	a := owner(t, peer())
	b := owner(t, peer())
	p := b.part("s", 1)
	p.Repeats = []host.Repeat{{Route: "r", Key: "k", RunID: "x", Made: 1}}
	b.append(p)
	for i, pair := range [][2]host.Store{{a, b}, {b, a}} {
		by, seen := pair[0], pair[1]
		name := fmt.Sprint("m", i)
		ok(t, "PutModule", by.PutModule(t.Context(), module(name)))
		ok(t, "PutPlugin", by.PutPlugin(t.Context(), plugin(tenant, "p", i+1, name)))
		ok(t, "PutComposition", by.PutComposition(t.Context(), composition(tenant, "w", i+1, name)))
		ok(t, "SetMeta", by.SetMeta(t.Context(), "k", []byte(name)))
		got, err := seen.Module(t.Context(), name)
		ok(t, "Module", err)
		same(t, "Module", got, module(name))
		versions, err := seen.PluginVersions(t.Context(), tenant, "p")
		ok(t, "PluginVersions", err)
		if len(versions) != i+1 {
			t.Errorf("the plugin has %d versions, want %d", len(versions), i+1)
		}
		compositions, err := seen.Compositions(t.Context(), tenant)
		ok(t, "Compositions", err)
		if len(compositions) != 1 || compositions[0].Version != i+1 {
			t.Errorf("Compositions = %+v", compositions)
		}
		value, err := seen.Meta(t.Context(), "k")
		if err != nil || string(value) != name {
			t.Errorf("Meta = %q, %v", value, err)
		}
	}
	n, err := a.ForgetRepeats(t.Context(), 10, 10)
	if err != nil || n != 1 {
		t.Errorf("ForgetRepeats = %d, %v", n, err)
	}
	_, err = b.Repeat(t.Context(), tenant, "r", "k")
	missing(t, "a forgotten request", err)
	ok(t, "DeletePlugin", a.DeletePlugin(t.Context(), tenant, "p", 0))
	ok(t, "DeleteComposition", b.DeleteComposition(t.Context(), tenant, "w"))
	for _, s := range []host.Store{a, b} {
		_, err := s.Module(t.Context(), "m0")
		missing(t, "a module that nothing names", err)
	}
}
