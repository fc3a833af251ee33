package spectest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// What the engine's module carries of WebAssembly's specification tests, and
// what of it ran when this was written: fewer means that the test has lost some.
const (
	specModules    = 2_379
	specAssertions = 0
	specRewritten  = 0
)

// TestSpec plays the specification's scripts, 1.0 and 2.0, in all lanes.
func TestSpec(t *testing.T) {
	folder := filepath.Join(engineFolder(t), "internal", "integration_test", "spectest")
	host, err := os.ReadFile(filepath.Join(folder, "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	total := newTally()
	scripts, seed := 0, seed(t)
	for _, suite := range []struct {
		folder   string
		features api.CoreFeatures
	}{
		{"v1", api.CoreFeaturesV1},
		{"v2", api.CoreFeaturesV2},
	} {
		files, err := filepath.Glob(filepath.Join(folder, suite.folder, "testdata", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if scripts++; !plays(seed, scripts) {
				continue
			}
			name := suite.folder + "/" + strings.TrimSuffix(filepath.Base(file), ".json")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, file, suite.features, host, total)
				total.count(&total.scripts, suite.folder)
			})
		}
	}
	t.Cleanup(func() {
		t.Log(total)
		if sum(total.scripts) < scripts {
			return // some were not asked for, are left out beside the race detector, or have failed
		}
		if got := sum(total.modules); got < specModules {
			t.Errorf("%d modules, there were %d", got, specModules)
		}
		if got := sum(total.assertions); got < specAssertions {
			t.Errorf("%d assertions, there were %d", got, specAssertions)
		}
		if got := total.notes.rewritten; got < specRewritten {
			t.Errorf("%d rewritten modules, there were %d", got, specRewritten)
		}
	})
}

// engineFolder is where the go command keeps the engine's source.
func engineFolder(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// tally counts what has been compared, by kind. It is shared by parallel tests.
type tally struct {
	mu                                    sync.Mutex // guards all below
	scripts, modules, assertions, skipped map[string]int
	notes                                 notes
	refuels, overflows                    int
	worst, units                          int64
}

func newTally() *tally {
	return &tally{
		scripts: map[string]int{}, modules: map[string]int{},
		assertions: map[string]int{}, skipped: map[string]int{},
	}
}

// count adds one to a kind in one of the tally's maps.
func (c *tally) count(in *map[string]int, kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	(*in)[kind]++
}

// spent adds units of fuel.
func (c *tally) spent(units int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.units += units
}

// add adds what a machine has seen.
func (c *tally) add(m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes.rewritten += m.notes.rewritten
	c.notes.extracted += m.notes.extracted
	c.notes.segments += m.notes.segments
	c.refuels += m.meter.refuels
	c.overflows += m.meter.overflow
	c.worst = max(c.worst, m.meter.worst)
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, part := range []struct {
		name   string
		counts map[string]int
	}{
		{"scripts", c.scripts}, {"modules", c.modules}, {"assertions", c.assertions}, {"skipped", c.skipped},
	} {
		fmt.Fprintf(&b, "%d %s", sum(part.counts), part.name)
		for _, kind := range slices.Sorted(maps.Keys(part.counts)) {
			fmt.Fprintf(&b, ", %d %s", part.counts[kind], kind)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d times a module was rewritten, %d times something was extracted (%d segments)\n",
		c.notes.rewritten, c.notes.extracted, c.notes.segments)
	fmt.Fprintf(&b, "%d refuels at most %d units apart, %d times out of frames", c.refuels, c.worst, c.overflows)
	if c.units > 0 {
		fmt.Fprintf(&b, ", %d units in all", c.units)
	}
	return b.String()
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// memoryOf is the instance's memory, exported or not; nil if it has none.
func memoryOf(mod api.Module) api.Memory {
	memory := mod.Memory()
	if reflect.ValueOf(memory).IsNil() { // a nil pointer in an interface
		return nil
	}
	return memory
}

// sameMemory compares the memories of two instances.
func sameMemory(a, b api.Module) error {
	x, y := memoryOf(a), memoryOf(b)
	if x == nil || y == nil {
		if (x == nil) != (y == nil) {
			return errors.New("one has a memory, the other has none")
		}
		return nil
	}
	if x.Size() != y.Size() {
		return fmt.Errorf("memory of %d bytes, not %d", y.Size(), x.Size())
	}
	p, _ := x.Read(0, x.Size())
	q, _ := y.Read(0, y.Size())
	if bytes.Equal(p, q) {
		return nil
	}
	at := 0
	for p[at] == q[at] {
		at++
	}
	return fmt.Errorf("memory differs from byte %d on: %#x, not %#x", at, q[at], p[at])
}
