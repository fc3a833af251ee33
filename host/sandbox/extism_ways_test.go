package sandbox

import (
	"bytes"
	"testing"

	"github.com/weftrun/weft/host"
)

// Plugins of Extism's PDKs do the same in all ways to give them an instance, also
// after calls for which their memory grew, by much or by little, and after calls
// that failed then.
func TestWaysAgreeOnExtism(t *testing.T) {
	calls := []struct {
		export, input string
		memory        int // limit; 0: as ever
	}{
		{export: "echo", input: "small"},
		{export: "echo", input: string(bytes.Repeat([]byte("large"), 800_000))},
		{export: "echo", input: "small"},
		{export: "count_vowels", input: string(bytes.Repeat([]byte("vowels"), 100_000))},
		{export: "vars", input: "set a b\nget a\ncount n"},
		{export: "hoard", memory: 24 << 20},
		{export: "count_vowels", input: "small"},
		{export: "echo", input: string(bytes.Repeat([]byte("large"), 400_000)), memory: 4 << 20},
		{export: "trap", input: string(bytes.Repeat([]byte("order"), 50_000))},
		{export: "vars", input: "get a"},
		{export: "fail", input: "1 " + string(bytes.Repeat([]byte("sorry"), 50_000))},
		{export: "config", input: "greeting"},
	}
	compilers := guestCompilers
	if raced {
		compilers = compilers[:1]
	}
	all := ways(t)
	for _, compiler := range compilers {
		t.Run(compiler, func(t *testing.T) {
			wasm := asSteps(t, extismBuild(t, compiler), ownConfig, ownExports...)
			var want []observed
			var hash string
			for _, way := range []string{"reference", "image", "reset"} {
				b := all[way]
				digest := b.library.add(wasm)
				_, image, err := describe(t, b, wasm)
				if err != nil {
					t.Fatalf("%s: %v: %+v", way, err, problemsOf(err))
				}
				if hash == "" {
					hash = image
				}
				if image != hash {
					t.Errorf("%s: image %s, want %s", way, image, hash)
				}
				for i, call := range calls {
					inv := extismInvocation(t, b, digest, call.export, []byte(call.input), nil)
					inv.Limits = host.DefaultLimits()
					if call.memory > 0 {
						inv.Limits.MemoryBytes = call.memory
					}
					got := observe(t, b, inv, answers{})
					if way == "reference" {
						want = append(want, got)
					}
					if !got.equal(want[i]) {
						t.Errorf("%s, call %d of %s: %.300v, want %.300v", way, i, call.export, got, want[i])
					}
				}
				checkPristine(t, b, digest, hash, way != "reference")
			}
			if want[0].result.Output == nil || want[1].result.Output == nil || want[5].result.Err == nil {
				t.Errorf("not what was to be compared: %.300v", want)
			}
		})
	}
}
