package sandbox

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

var compilers = []string{"tinygo", "go"}

// Guests of real toolchains start, describe themselves and run a step.
func TestPlugins(t *testing.T) {
	b := newBench(t, nil)
	for _, compiler := range compilers {
		t.Run(compiler, func(t *testing.T) {
			wasm := plugin(t, "counter-"+compiler)
			imports, problems := b.Inspect(t.Context(), wasm, host.Limits{})
			if len(problems) > 0 {
				t.Fatalf("problems: %+v", problems)
			}
			t.Log(imports)
			raw, hash, err := describe(t, b, wasm)
			if err != nil {
				t.Fatalf("%v: %+v", err, problemsOf(err))
			}
			manifest, err := abi.DecodeManifest(raw)
			if err != nil || manifest.Workflow != "counter" {
				t.Fatalf("manifest = %+v, %v", manifest, err)
			}
			inv := counterStep(t, b, b.invocation(digestOf(wasm), nil))
			inv.ImageHash = hash
			res, err := b.Invoke(t.Context(), inv)
			if err != nil || res.Err != nil {
				t.Fatalf("Invoke = %+v, %v", res, err)
			}
			out, err := abi.DecodeStepOutput(res.Output)
			if err != nil || len(out.Events) != 1 {
				t.Fatalf("output = %+v, %v", out, err)
			}
			body, err := abi.DecodeValue(out.Events[0].Body)
			if err != nil || body.(map[string]any)["result"] != int64(42) {
				t.Errorf("stop event = %v, %v, want a result of 42", body, err)
			}
		})
	}
}

// The image depends on the module alone: not on the sandbox, the time, or what
// ran before.
func TestImagesAreEqual(t *testing.T) {
	for _, compiler := range compilers {
		wasm := plugin(t, "counter-"+compiler)
		var first string
		for range 2 {
			b := newBench(t, nil)
			_, hash, err := describe(t, b, wasm)
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = hash
			}
			l, err := b.lease(t.Context(), moduleKey{digestOf(wasm), limit.Default().TableEntries}, nil, &b.stored)
			if err != nil {
				t.Fatal(err)
			}
			g, err := l.module.pristine(0)
			if err != nil {
				t.Fatal(err)
			}
			if again := g.linear.Hash(); hash != first || again != first {
				t.Errorf("%s: image hashes %s, %s and %s", compiler, first, hash, again)
			}
			g.drop()
			l.release()
		}
	}
}

func TestRunsAgree(t *testing.T) {
	b := newBench(t, nil)
	for _, compiler := range compilers {
		inv := counterStep(t, b, b.invocation(b.library.add(plugin(t, "counter-"+compiler)), nil))
		if _, err := b.Agree(t.Context(), 20, func(int) host.Invocation { return inv }); err != nil {
			t.Errorf("%s: %v", compiler, err)
		}
		_, err := b.Agree(t.Context(), 5, func(run int) host.Invocation {
			if run < 3 {
				return inv
			}
			other := inv
			state, _ := abi.EncodeValue(map[string]any{"count": 1})
			other.Calls = answers{abi.ImportStateBegin: state}
			return other
		})
		var d *Disagreement
		if !errors.As(err, &d) || d.Run != 3 || bytes.Equal(d.First.Output, d.Other.Output) {
			t.Errorf("%s: a run with another answer: %v", compiler, err)
		}
	}
}

func TestPluginsGiveMemoryBack(t *testing.T) {
	b := newBench(t, nil)
	var before, after runtime.MemStats
	for _, compiler := range compilers {
		inv := counterStep(t, b, b.invocation(b.library.add(plugin(t, "counter-"+compiler)), nil))
		for i := range 1000 {
			if i == 100 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
			if res, err := b.Invoke(t.Context(), inv); err != nil || res.Err != nil {
				t.Fatalf("Invoke = %+v, %v", res, err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("%s: %d MiB of heap in use, %d MiB after 100 runs", compiler, after.HeapAlloc>>20, before.HeapAlloc>>20)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
			t.Errorf("%s: 900 invocations left %d bytes behind", compiler, grown)
		}
	}
}
