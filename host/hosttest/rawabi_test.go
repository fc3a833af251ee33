package hosttest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// Plugins written for the ABI alone, without an SDK.
func TestRawABI(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	for _, name := range []string{"greet-c", "greet-zig"} {
		t.Run(name, func(t *testing.T) {
			if status, body := h.Do(t, "PUT", "/plugins/"+name, hosttest.Plugin(t, name)); status != 201 {
				t.Fatalf("upload: %d %s", status, body)
			}
			expect(t, h.Result(t, name, in("hall-"+name, fields{"name": "Ada"})), `{"hello":"Ada","greeted":1}`)
			// Values of every kind and size precede the field that the step looks for.
			around := fields{
				"a": nil, "b": []any{true, -1, int64(1 << 40), 0.5, fields{}, []any{}}, "c": strings.Repeat("x", 300),
				"d": fields{"name": "nested"}, "e": -70000, "na": "shorter", "names": "longer", "name": "J\"ö\n",
			}
			expect(t, h.Result(t, name, in("hall-"+name, around)), `{"hello":"J\"ö\n","greeted":2}`)
			expect(t, h.Result(t, name, start(fields{"name": strings.Repeat("n", 70000)})),
				`{"hello":"`+strings.Repeat("n", 70000)+`","greeted":1}`)

			// An input larger than the plugin's buffer is the plugin's own failure, and
			// does not affect the next run.
			if r := h.Run(t, name, start(fields{"name": strings.Repeat("n", 900_000)})); r.Status != "failed" || !strings.Contains(r.Error, "unreachable") {
				t.Errorf("a name that does not fit: %s, %v", r.Status, r.Error)
			}
			expect(t, h.Result(t, name, start(fields{"name": ""})), `{"hello":"","greeted":1}`)
			if status, body := h.Do(t, "POST", "/workflows/"+name+"/run", start(nil)); status != 400 {
				t.Errorf("a run without a name: %d %s", status, body)
			}

			// The host's refusal of an edit is the step's error: greeted is not a number.
			if status, body := h.Do(t, "PUT", "/sessions/odd-"+name, fields{"state": fields{"greeted": "many"}}); status/100 != 2 {
				t.Fatalf("PUT of a session: %d %s", status, body)
			}
			if r := h.Run(t, name, in("odd-"+name, fields{"name": "Ada"})); r.Status != "failed" || !strings.Contains(r.Error, "greeted") {
				t.Errorf("an edit that cannot be: %s, %v", r.Status, r.Error)
			}
		})
	}
}

// The documentation says that the header is short.
func TestHeaderIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(hosttest.Root(), "sdk-guest/c/weft.h"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 150 {
		t.Errorf("weft.h has %d lines", n)
	}
}
