package sandbox

import (
	"testing"

	"github.com/weftrun/weft/host/sandbox/memory"
)

// spare is an instance with a memory of the given wasm pages.
func spare(t *testing.T, pages int) *guest {
	t.Helper()
	memories := memory.New(memory.Config{})
	t.Cleanup(memories.Close)
	linear, err := memories.Take(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	linear.SetLimit(1 << 20)
	linear.Reallocate(uint64(pages) * wasmPageBytes)
	return &guest{linear: linear}
}

// The modules that were used the longest ago give back first, and only they.
func TestPoolGivesBackTheLeastRecentlyUsed(t *testing.T) {
	one := spare(t, 1).bytes()
	p := &pool{budget: 4 * one}
	shelves := []*shelf{{room: 2}, {room: 2}, {room: 4}}
	put := func(i int) bool { return p.put(shelves[i], spare(t, 1)) }
	counts := func() [3]int {
		return [3]int{len(shelves[0].spare), len(shelves[1].spare), len(shelves[2].spare)}
	}
	for _, i := range []int{0, 0, 1, 1} {
		if !put(i) {
			t.Fatalf("no room: %v", counts())
		}
	}
	if put(0) {
		t.Error("a shelf holds more than its room")
	}
	if g := p.take(shelves[0]); g == nil || !p.put(shelves[0], g) { // now 1 is the older one
		t.Fatal("an instance went amiss")
	}
	if !put(2) || counts() != [3]int{2, 1, 1} {
		t.Errorf("spares %v, want 2, 1, 1", counts())
	}
	if !put(2) || counts() != [3]int{2, 0, 2} {
		t.Errorf("spares %v, want 2, 0, 2", counts())
	}
	if first, second := put(2), put(2); !first || !second || counts() != [3]int{0, 0, 4} || put(2) {
		t.Errorf("spares %v, want 0, 0, 4", counts())
	}
	if p.put(shelves[0], spare(t, 16)) {
		t.Error("an instance beyond the budget was kept")
	}
	if p.bytes != 4*one {
		t.Errorf("%d bytes are counted, want %d", p.bytes, 4*one)
	}
	p.clear()
	if counts() != [3]int{} || p.bytes != 0 || p.take(shelves[2]) != nil {
		t.Errorf("after clear: %v, %d bytes", counts(), p.bytes)
	}
	if !put(1) || len(p.forget(shelves[1])) != 1 || p.bytes != 0 || shelves[1].place != nil {
		t.Errorf("a shelf is not forgotten: %v, %d bytes", counts(), p.bytes)
	}
}

// A pool that is to be small keeps half as much, of each module one at least.
func TestPoolIsHalved(t *testing.T) {
	one := spare(t, 1).bytes()
	p := &pool{budget: 6 * one}
	shelves := []*shelf{{room: 4}, {room: 4}, {room: 1}}
	kept := func() (counts [3]int) {
		for i, s := range shelves {
			for p.beginFilling(s) {
				p.endFilling(s)
				g := spare(t, 1)
				if !p.put(s, g) {
					g.drop()
					break
				}
			}
			counts[i] = len(s.spare)
		}
		return counts
	}
	p.halve(true)
	if got := kept(); got != [3]int{2, 2, 1} || p.bytes != 3*one {
		t.Errorf("kept are at most %v in %d bytes, want 2, 2 and 1 in %d bytes", got, p.bytes, 3*one)
	}
	p.halve(false)
	if got := kept(); got[2] != 1 || p.bytes != 6*one {
		t.Errorf("kept are %v in %d bytes, want %d bytes", got, p.bytes, 6*one)
	}
	p.clear()
}

// What nobody uses is given back after a while, instances first, and is there
// again when somebody does.
func TestIdleModulesAreGivenBack(t *testing.T) {
	b := newBench(t, func(c *Config) { c.CacheDir, c.Spares = t.TempDir(), 1 })
	idle, busy := b.library.add(hostile(t, "good")), b.library.add(hostile(t, "remember"))
	run := func(digest string) {
		t.Helper()
		if res, err := b.Invoke(t.Context(), b.invocation(digest, nil)); err != nil || res.Err != nil {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	counts := func() (modules, instances int) {
		b.modules.mu.Lock()
		defer b.modules.mu.Unlock()
		return len(b.modules.byKey), int(b.memories.Counts().Lent)
	}
	run(idle)
	run(busy)
	awaitUnused(t, b)
	for range idleInstance {
		run(busy)
		b.age()
	}
	if modules, instances := counts(); modules != 2 || instances != 1 {
		t.Errorf("%d modules and %d instances, want 2 and 1", modules, instances)
	}
	for range idleModule {
		run(busy)
		b.age()
	}
	if modules, instances := counts(); modules != 1 || instances != 1 {
		t.Errorf("%d modules and %d instances, want 1 and 1", modules, instances)
	}
	run(idle)
	if modules, instances := counts(); modules != 2 || instances != 2 {
		t.Errorf("%d modules and %d instances, want 2 and 2", modules, instances)
	}
}

// Code is ready once it has been prepared, which says what that took, and not any more
// when it is dropped.
func TestPrepare(t *testing.T) {
	b := newBench(t, nil)
	inv := b.invocation(b.library.add(hostile(t, "good")), nil)
	if b.Ready(&inv) {
		t.Error("code is ready that nobody has asked for")
	}
	work, err := b.Prepare(t.Context(), &inv)
	if err != nil || work == 0 || !b.Ready(&inv) {
		t.Errorf("prepared: %d units, %v; ready %t", work, err, b.Ready(&inv))
	}
	if work, err := b.Prepare(t.Context(), &inv); err != nil || work != 0 {
		t.Errorf("prepared again: %d units, %v", work, err)
	}
	other := inv
	other.Digest = digestOf([]byte("unknown"))
	if _, err := b.Prepare(t.Context(), &other); err == nil || b.Ready(&other) {
		t.Errorf("an unknown module is prepared: %v", err)
	}
}
