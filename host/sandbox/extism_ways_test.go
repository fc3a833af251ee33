package sandbox

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// pdkImports are what Extism's PDKs import, with their types: those for Go (1.1.3),
// Rust (1.4.1) and C (and Zig, which has no others), and the Haskell one's. That for
// JavaScript is in Rust.
var pdkImports = map[string]string{
	"alloc": "I I", "free": "I ", "length": "I I", "length_unsafe": "I I",
	"load_u8": "I i", "load_u64": "I I", "store_u8": "Ii ", "store_u64": "II ",
	"input_length": " I", "input_offset": " I", "input_load_u8": "I i", "input_load_u64": "I I",
	"output_set": "II ", "error_set": "I ", "config_get": "I I", "var_get": "I I", "var_set": "II ",
	"http_request": "II I", "http_status_code": " i", "http_headers": " I", "get_log_level": " i",
	"log_trace": "I ", "log_debug": "I ", "log_info": "I ", "log_warn": "I ", "log_error": "I ",
}

func TestEveryImportOfThePDKsIsThere(t *testing.T) {
	for name, typ := range pdkImports {
		params, results, _ := strings.Cut(typ, " ")
		if f, ok := extismImports[name]; !ok || f.is != signature(params, results) {
			t.Errorf("%s of type %q: %v, %+v", name, typ, ok, f.is)
		}
	}
}

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
	if few {
		compilers = compilers[:1]
	}
	all := ways(t, corpusFuel)
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
					inv.Limits = suite.Limits()
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
