package storetest

import (
	"errors"
	"math"
	"testing"

	"github.com/weftrun/weft/host"
)

// RunDurable runs the suite for stores that survive their process. open opens the store
// in a directory, which is empty the first time. It closes the store when t ends, unless
// the test has closed it.
func RunDurable(t *testing.T, open func(t *testing.T, dir string) host.Store) {
	t.Run("Reopen", func(t *testing.T) { testReopen(t, open) })
	t.Run("EpochsAcrossOpenings", func(t *testing.T) { testEpochs(t, open) })
}

// testReopen: everything is there after reopening, and the store continues where it
// ended.
func testReopen(t *testing.T, open func(t *testing.T, dir string) host.Store) {
	dir := t.TempDir()
	f, all := streamed(t, func(t *testing.T) host.Store { return open(t, dir) })
	waiting := running("w", "", 30)
	waiting.Blocked = &host.Blocked{Code: host.BlockedHostCrash, Message: "thrice"}
	p := f.part("w", 1)
	p.WakeAt, p.Runs, p.Started = 77, []host.Run{waiting}, []string{waiting.RunID}
	f.append(p)
	ok(t, "PutModule", f.PutModule(f.ctx, module("m")))
	ok(t, "PutPlugin", f.PutPlugin(f.ctx, plugin(tenant, "x", 1, "m")))
	composed := composition(tenant, "w", 1, "m")
	ok(t, "PutComposition", f.PutComposition(f.ctx, composed))
	ok(t, "SetMeta", f.SetMeta(f.ctx, "k", []byte("v")))
	before := dump(f)
	if len(before.Streams[tenant+"/h"]) != len(all) {
		t.Fatalf("the stream has %d events, want %d", len(before.Streams[tenant+"/h"]), len(all))
	}

	for range 2 {
		ok(t, "Close", f.Close())
		f.Store = open(t, dir)
		same(t, "the store opened again", dump(f), before)
		same(t, "Stats", f.Stats(), host.StoreStats{})
		got, err := f.Module(f.ctx, "m")
		ok(t, "Module", err)
		same(t, "Module", got, module("m"))
		plugins, err := f.Plugins(f.ctx, "")
		ok(t, "Plugins", err)
		same(t, "Plugins", plugins, []host.PluginVersion{plugin(tenant, "x", 1, "m")})
		compositions, err := f.Compositions(f.ctx, "")
		ok(t, "Compositions", err)
		same(t, "Compositions", compositions, []host.CompositionVersion{composed})
		value, err := f.Meta(f.ctx, "k")
		if err != nil || string(value) != "v" {
			t.Errorf("Meta = %q, %v", value, err)
		}
	}
	f.append(f.part("s", 1))
	if due, _, err := f.Due(f.ctx, math.MaxInt64, 10); err != nil || len(due) != 1 || due[0].Session != "w" {
		t.Errorf("Due = %v, %v, want w", due, err)
	}
}

// testEpochs: epochs grow across openings, and an owner from before is fenced.
func testEpochs(t *testing.T, open func(t *testing.T, dir string) host.Store) {
	dir := t.TempDir()
	f := claimed(t, func(t *testing.T) host.Store { return open(t, dir) })
	f.append(f.part("s", 1))
	ok(t, "Close", f.Close())
	f.Store = open(t, dir)
	newer, err := f.Claim(f.ctx)
	ok(t, "Claim", err)
	if newer <= f.epoch {
		t.Errorf("Claim = %d, want more than %d", newer, f.epoch)
	}
	if err := f.try(f.part("s", 1)); !errors.Is(err, host.ErrFenced) {
		t.Errorf("Append with the epoch of before = %v, want ErrFenced", err)
	}
	f.epoch = newer
	f.append(f.part("s", 1))
}
