package sandbox

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

// Nothing of what a module becomes depends on the settings: else a change of
// them would refuse modules that were taken, and runs under way.
func TestSettingsChangeNoImage(t *testing.T) {
	wasm := plugin(t, "counter-tinygo")
	var first host.Description
	for i, l := range []host.Limits{{}, {MemoryBytes: 8 << 20}, {MemoryBytes: 1 << 30, DescribeFuel: 1e12, CallDepth: 1 << 26}} {
		b := newBench(t, func(c *Config) { c.Limits = l })
		d, err := b.Describe(t.Context(), digestOf(wasm), wasm, l)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = d
		}
		if d.ImageHash != first.ImageHash || d.Rewritten != first.Rewritten {
			t.Errorf("with %+v it is %s, %s; else %s, %s", l, d.ImageHash, d.Rewritten, first.ImageHash, first.Rewritten)
		}
	}
}

// A run keeps limits that were lowered since, and gets what they allow.
func TestInvocationOfGreaterLimits(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.MemoryBytes, c.Spares = 1<<20, -1 })
	for range 3 {
		inv := b.invocation(b.library.add(hostile(t, "memory_grow")), nil)
		inv.Limits.MemoryBytes = 5 << 20
		res, err := b.Invoke(t.Context(), inv)
		if err != nil || res.Err == nil || !strings.Contains(res.Err.Message, "at the limit of 5242880 bytes") {
			t.Errorf("Invoke = %+v, %v", res, err)
		}
	}
	if n := b.memories.Counts().Lent; n != 0 {
		t.Errorf("%d memories are lent still", n)
	}
}

// Two tenants upload the same module at the same time: each is held to its own
// limits, whoever's have it built.
func TestUploadsTogether(t *testing.T) {
	wasm := plugin(t, "counter-tinygo")
	b := newBench(t, func(c *Config) { c.CacheDir = "" })
	little, much := host.Limits{DescribeFuel: 1_000}, host.Limits{DescribeFuel: 1e9, DescribeTime: time.Minute}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, problems := b.Inspect(t.Context(), wasm, little)
			if len(problems) != 1 || problems[0].Code != "describe_fuel_exhausted" || !strings.Contains(problems[0].Message, "1000 ") {
				t.Errorf("with little fuel: %+v", problems)
			}
		})
		wg.Go(func() {
			if _, problems := b.Inspect(t.Context(), wasm, much); len(problems) != 0 {
				t.Errorf("with much fuel: %+v", problems)
			}
		})
	}
	wg.Wait()
}
