package sandbox

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
)

// ways are the ways to give an invocation its instance; the first is the
// reference. A module may burn the given fuel while it describes itself.
func ways(t *testing.T, describeFuel uint64) map[string]bench {
	t.Helper()
	return map[string]bench{
		"reference": newBench(t, func(c *Config) { c.Reference, c.Spares, c.Limits.DescribeFuel = true, -1, describeFuel }),
		"image":     newBench(t, func(c *Config) { c.Spares, c.Limits.DescribeFuel = -1, describeFuel }),
		"reset":     newBench(t, func(c *Config) { c.Spares, c.Limits.DescribeFuel = 1, describeFuel }),
	}
}

// observed is all that an invocation lets others see.
type observed struct {
	result  host.InvocationResult
	err     string
	calls   []string // imports and requests
	printed string
}

func (o observed) equal(p observed) bool {
	return same(o.result, p.result) && o.err == p.err && slices.Equal(o.calls, p.calls) && o.printed == p.printed
}

// observe invokes, and answers calls with the given answers.
func observe(t *testing.T, b bench, inv host.Invocation, given answers) observed {
	t.Helper()
	var o observed
	s := &script{call: func(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
		o.calls = append(o.calls, string(im)+string(req))
		return given.Call(im, req, clock+1)
	}}
	inv.Calls, inv.Token = s, s
	res, err := b.Invoke(suite.Context(t), inv)
	if err != nil {
		o.err = err.Error()
	}
	o.result, o.printed = res, s.printed.String()
	return o
}

// Guests of real toolchains do the same in all ways, and begin with the same
// image.
func TestWaysAgreeOnPlugins(t *testing.T) {
	all := ways(t, limit.Default().DescribeFuel) // CPython takes 90 million units
	var succeeded atomic.Int64
	t.Cleanup(func() {
		if succeeded.Load() == 0 && !t.Skipped() {
			t.Error("no invocation had an output: there was nothing to compare")
		}
	})
	for _, path := range pluginFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".wasm"), func(t *testing.T) {
			t.Parallel()
			wasm := readFile(t, path)
			var want []observed
			var manifest []byte
			var hash string
			for _, way := range []string{"reference", "image", "reset"} {
				b := all[way]
				digest := b.library.add(wasm)
				raw, image, err := describe(t, b, wasm)
				if err != nil {
					t.Fatalf("%s: %v: %+v", way, err, problemsOf(err))
				}
				if manifest == nil {
					manifest, hash = raw, image
				}
				if !bytes.Equal(raw, manifest) || image != hash {
					t.Errorf("%s: image %s, want %s; manifest % x", way, image, hash, raw)
				}
				got := invokeSteps(t, b, digest, raw)
				if want == nil {
					want = got
				}
				for i := range got {
					if got[i].result.Output != nil {
						succeeded.Add(1)
					}
					if !got[i].equal(want[i]) {
						t.Errorf("%s, invocation %d: %+v, want %+v", way, i, got[i], want[i])
					}
				}
				checkPristine(t, b, digest, hash, way != "reference")
			}
		})
	}
}

func pluginFiles(t *testing.T) []string {
	t.Helper()
	names := "*.wasm"
	if few { // compiling them all takes a while
		names = "counter-*.wasm"
	}
	paths, err := filepath.Glob(filepath.Join(suite.Plugins(), names))
	if err != nil || len(paths) == 0 {
		suite.Missing(t, "needs built plugins: make plugins")
	}
	if testing.Short() { // beside the race detector a module of standard Go takes minutes
		paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "-go.wasm") })
	}
	return paths
}

// invokeSteps runs every step that a manifest declares, and twice each: with
// events that it accepts and a state, and with nonsense.
func invokeSteps(t *testing.T, b bench, digest string, raw []byte) (seen []observed) {
	t.Helper()
	manifest, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	state, err := abi.EncodeValue(map[string]any{"count": 41, "text": "some words, and some more"})
	if err != nil {
		t.Fatal(err)
	}
	given := answers{abi.ImportStateBegin: state, abi.ImportStateGet: state}
	for _, step := range manifest.Steps {
		for _, accepted := range step.Accepts {
			inv := b.invocation(digest, nil)
			inv.Limits.Fuel = 200_000_000 // for the one that spins
			input := abi.StepInput{
				Step:    step.Name,
				Trigger: []abi.Event{{Type: accepted.Types[0], Body: state, ID: 1}},
				Run:     abi.RunInfo{Tenant: "default", Workflow: manifest.Workflow, RunID: "r", SessionID: "s", Invocation: 1, Attempt: 1, Clock: inv.Clock},
			}
			if inv.Input, err = input.Encode(); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, observe(t, b, inv, given))
			seen = append(seen, observe(t, b, inv, answers{}))
		}
		seen = append(seen, observe(t, b, b.invocation(digest, []byte("nonsense")), given))
	}
	return seen
}

// checkPristine takes an instance as the next invocation would get it, one
// that is made and one that is reset, and compares them with the image.
func checkPristine(t *testing.T, b bench, digest, hash string, snapshot bool) {
	t.Helper()
	l, err := b.lease(t.Context(), moduleKey{digest, limit.Default().TableEntries}, nil, &b.stored)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	p := l.module.plan
	if (l.module.snapshot != nil) != snapshot || p.Restorable != snapshot {
		t.Fatalf("snapshot = %v, want one: %v; reasons: %q", l.module.snapshot != nil, snapshot, p.Fallback)
	}
	for _, from := range []func(int) (*guest, error){l.module.acquire, l.module.pristine} {
		g, err := from(0)
		if err != nil {
			t.Fatal(err)
		}
		if actual := g.linear.Hash(); actual != hash {
			t.Errorf("an instance has the image %s, want %s", actual, hash)
		}
		if snapshot {
			for i, global := range g.mutable() {
				if global.Get() != p.GlobalValues[i] {
					t.Errorf("global %s = %#x, want %#x", p.Globals[i].Name, global.Get(), p.GlobalValues[i])
				}
			}
		}
		g.drop()
	}
}

// The hostile guests end in the same way, however they get their instance.
func TestWaysAgreeOnHostileGuests(t *testing.T) {
	suite.NotShort(t, "computes for long, by one goroutine")
	all := ways(t, corpusFuel)
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "hostile", "*.wasm"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no hostile modules", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".wasm")
		t.Run(name, func(t *testing.T) {
			wasm := readFile(t, path)
			want := hostileOutcome(t, all["reference"], wasm)
			for _, way := range slices.Sorted(maps.Keys(all)) {
				got := hostileOutcome(t, all[way], wasm)
				if !slices.EqualFunc(got.seen, want.seen, observed.equal) || !slices.Equal(got.problems, want.problems) || got.hash != want.hash {
					t.Errorf("%s: %+v, want %+v", way, got, want)
				}
			}
		})
	}
}

type outcome struct {
	problems []host.Problem
	hash     string
	seen     []observed
}

func hostileOutcome(t *testing.T, b bench, wasm []byte) (o outcome) {
	t.Helper()
	if o.problems = check(t, b, wasm); len(o.problems) > 0 {
		return o
	}
	var err error
	if _, o.hash, err = describe(t, b, wasm); err != nil {
		t.Fatal(err)
	}
	inv := b.invocation(digestOf(wasm), []byte("twelve bytes"))
	inv.Limits.MemoryBytes = 8 << 20
	inv.Limits.HostCalls, inv.Limits.LogLines, inv.Limits.Fuel = 1000, 100, 2_000_000
	for range 3 {
		o.seen = append(o.seen, observe(t, b, inv, answers{}))
	}
	return o
}

// A guest that tries to remember an invocation finds nothing in the next one,
// in whatever way the first one ended.
func TestNothingIsRemembered(t *testing.T) {
	suspended := errors.New("suspended")
	for way, b := range ways(t, corpusFuel) {
		for name, restored := range map[string]bool{
			"remember": true, "remember_growth": true, "remember_table": false, "remember_segment": false, "remember_vector": false,
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				wasm := hostile(t, name)
				_, hash, err := describe(t, b, wasm)
				if err != nil {
					t.Fatal(err)
				}
				for run := range 12 {
					inv := b.invocation(digestOf(wasm), nil)
					end := run % 3
					if name != "remember" {
						end = 0 // it makes no calls
					}
					inv.Calls.(*script).call = func(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
						switch end {
						case 1:
							return nil, 0, clock, suspended
						case 2:
							return make([]byte, inv.Limits.CallBytes+1), 0, clock, nil
						}
						return abi.Null, abi.StatusOK, clock, nil
					}
					res, err := b.Invoke(suite.Context(t), inv)
					switch {
					case end == 1 && errors.Is(err, suspended):
					case end == 2 && err == nil && res.Err != nil && res.Err.Code == codeLimit:
					case end == 0 && err == nil && res.Err == nil:
					default:
						t.Fatalf("run %d: Invoke = %+v, %v", run, res, err)
					}
				}
				checkPristine(t, b, digestOf(wasm), hash, restored && way != "reference")
			})
		}
	}
}

// An instance is used again only if it is whole.
func TestRecycling(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Spares = 1 })
	for name, again := range map[string]bool{
		"good": true, "remember": true, "output_twice": true, "call_flood": true,
		"unreachable": true, "recursion": true, "loop": true, "remember_growth": true,
	} {
		t.Run(name, func(t *testing.T) {
			inv := b.invocation(b.library.add(hostile(t, name)), nil)
			inv.Limits.HostCalls, inv.Limits.Fuel = 100, 50_000_000
			l, err := b.lease(t.Context(), moduleKey{inv.Digest, inv.Limits.TableEntries}, nil, &b.stored)
			if err != nil {
				t.Fatal(err)
			}
			defer l.release()
			g, err := l.module.restored(inv.Limits.MemoryBytes)
			if err != nil {
				t.Fatal(err)
			}
			defer g.drop()
			if _, err := g.invoke(t.Context(), &inv); err != nil {
				t.Fatal(err)
			}
			if reset := g.reset(); reset != again {
				t.Errorf("reset = %v, want %v", reset, again)
			}
			if got := int(g.mem.Size()); again && got != l.module.plan.ImageBytes {
				t.Errorf("the instance has %d bytes of memory, want %d", got, l.module.plan.ImageBytes)
			}
			if again && g.linear.Hash() != l.module.plan.ImageHash {
				t.Error("it is not as the image")
			}
		})
	}
}

// A guest that is not reset, as its memory has grown as far as its module allows, is
// replaced by one in the same memory, and that is like the image.
func TestReplacing(t *testing.T) {
	b := newBench(t, nil)
	inv := b.invocation(b.library.add(hostile(t, "remember_growth")), nil)
	l, err := b.lease(t.Context(), moduleKey{inv.Digest, inv.Limits.TableEntries}, nil, &b.stored)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	g, err := l.module.replaced(nil)
	if err != nil {
		t.Fatal(err)
	}
	for run := range 5 {
		linear := g.linear
		if res, err := g.invoke(t.Context(), &inv); err != nil || res.Err != nil {
			t.Fatalf("run %d: %+v, %v", run, res, err)
		}
		if len(linear.Bytes()) == l.module.plan.ImageBytes {
			t.Fatal("its memory has not grown")
		}
		g.unharmed = run != 3 // then nothing of it is to be used
		if g, err = l.module.replaced(g); err != nil {
			t.Fatal(err)
		}
		if hash := g.linear.Hash(); hash != l.module.plan.ImageHash || (g.linear == linear) != (run != 3) {
			t.Errorf("run %d: image %s, want %s; in the same memory: %v", run, hash, l.module.plan.ImageHash, g.linear == linear)
		}
		for i, global := range g.mutable() {
			if global.Get() != l.module.plan.GlobalValues[i] {
				t.Errorf("run %d: global %d = %#x, want %#x", run, i, global.Get(), l.module.plan.GlobalValues[i])
			}
		}
	}
	g.drop()
}
