package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
)

// cargo runs cargo in a folder: the toolchain's, or otherwise the user's.
func cargo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(suite.Tool(t, "wasm32-cargo"), args...)
	cmd.Dir = dir
	// One target folder for all, so that a second test process finds the first's results.
	// make's settings are not meant for cargo.
	cmd.Env = append(os.Environ(), "CARGO_TARGET_DIR="+targets(), "MAKEFLAGS=", "MFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in %s: %v\n%s", strings.Join(cmd.Args, " "), dir, err, out)
	}
}

func targets() string { return filepath.Join(hosttest.Root(), "build", "cargo") }

// probe returns the plugin that tests the SDK.
func probe(t *testing.T) []byte {
	t.Helper()
	cargo(t, filepath.Join(hosttest.Root(), "sdk-guest", "rust", "testdata", "probe"), "build", "--quiet", "--release", "--locked")
	wasm, err := os.ReadFile(filepath.Join(targets(), "wasm32-unknown-unknown", "release", "probe_rust.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func openProbe(t *testing.T) *hosttest.Host {
	t.Helper()
	limits, err := limit.Parse([]byte(`{"plugins": {"probe-rust": {"fuel": 100000000}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{Limits: limits})
	if status, out := h.Do(t, http.MethodPut, "/plugins/probe-rust", probe(t)); status != http.StatusCreated {
		t.Fatalf("upload: %d %s", status, out)
	}
	return h
}

// A step receives fields of every kind and returns them unchanged.
func TestRustFields(t *testing.T) {
	h := openProbe(t)
	large, _ := json.Marshal(strings.Repeat("\u00e4\u4e16\U0001f600 ", 60_000))
	// As deep as data may be; this also tests the guest's small stack.
	deep := strings.Repeat(`{"name":"n","inner":`, 61) + `{"name":"last","type":"the other"}` + strings.Repeat(`}`, 61)
	nested := strings.Repeat(`[{"a":`, 31) + `1` + strings.Repeat(`}]`, 31)
	var list []string
	for i := range 3000 {
		list = append(list, fmt.Sprintf(`{"name":"%d"}`, i))
	}
	for fields, want := range map[string]string{
		``: ``,
		`"count":18446744073709551615,"small":-9`:     `"count":18446744073709551615,"small":-9`,
		`"count":0,"small":9,"ratio":3`:               `"count":0,"small":9,"ratio":3.0`,
		`"count":3.0,"small":2e0,"ratio":-25e-2`:      `"count":3,"small":2,"ratio":-0.25`,
		`"count":null,"ratio":null,"inner":null`:      ``,
		`"small":null,"text":null,"list":null`:        ``,
		`"text":"\u0000\u007f\"\\\n\ud83d\ude00"`:     `"text":"\u0000\u007f\"\\\n\ud83d\ude00"`,
		`"text":` + string(large):                     `"text":` + string(large),
		`"inner":` + deep:                             `"inner":` + deep,
		`"list":[` + strings.Join(list, ",") + `]`:    `"list":[` + strings.Join(list, ",") + `]`,
		`"any":[1,1.0,-9223372036854775808,"",{},[]]`: `"any":[1,1.0,-9223372036854775808,"",{},[]]`,
		`"any":{"$bytes":"AAECAw=="}`:                 `"any":{"$bytes":"AAECAw=="}`,
		`"any":` + nested:                             `"any":` + nested,
		`"any":false`:                                 `"any":false`,
		`"x":1,"\u00e9":{"y":[null]}`:                 `"more":{"x":1,"\u00e9":{"y":[null]}}`,
	} {
		expect(t, echo(t, h, fields), echoed(t, want))
	}
}

// echo returns the fields that the probe returns for some fields.
func echo(t *testing.T, h *hosttest.Host, fields string) string {
	t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	return inOrder(t, h.Result(t, "probe-rust", `{"start_event":{"what":"echo"`+fields+`}}`))
}

// echoed returns what the probe must return: the fields and its defaults.
func echoed(t *testing.T, fields string) string {
	t.Helper()
	all := map[string]json.RawMessage{"text": []byte(`""`), "small": []byte(`7`), "list": []byte(`[]`), "more": []byte(`{}`)}
	if err := json.Unmarshal([]byte("{"+fields+"}"), &all); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return inOrder(t, string(out))
}

// An invalid field is named in the error, and no run is made.
func TestRustWrongFields(t *testing.T) {
	h := openProbe(t)
	for fields, want := range map[string]string{
		`{}`:                                                  "what",
		`{"what":"dance"}`:                                    "what",
		`{"what":"Echo"}`:                                     "what",
		`{"what":"echo","small":10}`:                          "small",
		`{"what":"echo","small":"3"}`:                         "small",
		`{"what":"echo","count":-1}`:                          "count",
		`{"what":"echo","count":1.5}`:                         "count",
		`{"what":"echo","ratio":"1"}`:                         "ratio",
		`{"what":"echo","inner":{}}`:                          "inner",
		`{"what":"echo","inner":{"name":"n","type":null}}`:    "type",
		`{"what":"echo","inner":[]}`:                          "inner",
		`{"what":"echo","list":[{"n":1}]}`:                    "list",
		`{"what":"echo","inner":{"name":"n","type":"three"}}`: "type",
	} {
		status, out := h.Do(t, http.MethodPost, "/workflows/probe-rust/run", `{"start_event":`+fields+`}`)
		if status != http.StatusBadRequest || !strings.Contains(string(out), want) {
			t.Errorf("%s: %d %s, want a 400 that names %s", fields, status, out, want)
		}
	}
}

// A client receives the text of errors and panics. They change nothing and do not affect
// later runs.
func TestRustFailures(t *testing.T) {
	h := openProbe(t)
	run := func(body string) hosttest.Record {
		return h.Run(t, "probe-rust", `{"session":"s","start_event":`+body+`}`)
	}
	count := 0
	for _, c := range [][2]string{
		{`{"what":"fail","text":"so \u00e4"}`, "so \u00e4"},
		{`{"what":"fail_in_edit","text":"so"}`, "so"},
		{`{"what":"panic","text":"l\u00e4rm"}`, "asked to: l\u00e4rm (src/lib.rs:"},
		{`{"what":"panic_in_edit","text":"x"}`, "asked to: x (src/lib.rs:"},
		{`{"what":"unwrap"}`, "called `Option::unwrap()` on a `None` value (src/lib.rs:"},
		{`{"what":"index","text":"abc"}`, "index out of bounds: the len is 3 but the index is 3 (src/lib.rs:"},
		{`{"what":"number","text":"256"}`, "a small number: ParseIntError"},
		{`{"what":"recurse"}`, "out of bounds memory access"},
		{`{"what":"spin"}`, "fuel"},
	} {
		if r := run(c[0]); r.Status != "failed" || !strings.Contains(r.Error, c[1]) {
			t.Errorf("%s: %s %q, want an error with %q", c[0], r.Status, r.Error, c[1])
		}
		count++
		if r := run(`{"what":"count"}`); r.Result == nil || string(r.Result.Value.Result) != fmt.Sprint(count) {
			t.Errorf("after %s: %+v, want the count %d", c[0], r, count)
		}
	}
}

// A schema allows integers as large as JSON carries; a 32-bit guest accepts them.
func TestRustLargeCounts(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	h.Load(t, "rust", "wordcount")
	for _, n := range []string{"4294967296", "9223372036854775807", "18446744073709551615"} {
		got := h.Result(t, "wordcount-rust", fmt.Sprintf(`{"start_event":{"text":"a b a","top":%s,"chunk_lines":%s}}`, n, n))
		expectJSON(t, got, `{"lines":1,"words":3,"distinct":2,"top":[["a",2],["b",1]]}`)
	}
}
