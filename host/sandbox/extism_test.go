package sandbox

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
)

var ownExports = []string{"count_vowels", "echo", "fail", "trap", "config", "vars", "fetch", "log_lines", "spin", "hoard"}

// ownConfig is the configuration of that plugin.
var ownConfig = map[string]string{"greeting": "hello", "empty": ""}

// extismBuild builds the plugin of testdata with the PDK for a compiler's language.
func extismBuild(tb testing.TB, compiler string) []byte {
	if compiler == "rust" {
		return guestBuild(tb, "extism", compiler) // testdata/plugins/extism-rust
	}
	return guestBuild(tb, "extism-go", compiler)
}

// TestExtism runs that plugin, by each compiler.
func TestExtism(t *testing.T) {
	compilers := guestCompilers
	if few {
		compilers = compilers[:1]
	}
	tests := []struct {
		name string
		test func(t *testing.T, p *pair)
	}{
		{"echo", testEcho}, {"errors", testErrors}, {"config", testConfig}, {"vars", testVars}, {"http", testHTTP},
		{"logs", testLogs}, {"pristine", testPristine},
	}
	b := newBench(t, nil)
	for _, compiler := range compilers {
		t.Run(compiler, func(t *testing.T) {
			panics := codePanic + ": out of order"
			if compiler == "rust" { // which does not print
				panics = codeTrap + ": unreachable"
			}
			both := inBoth(t, b, extismBuild(t, compiler), ownConfig, ownExports...)
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) { test.test(t, both.anew(t, panics)) })
			}
		})
	}
}

func testEcho(t *testing.T, p *pair) {
	theirs := p.instance()
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 8, 9, 255, 4096, 65_535, 65_536, 65_537, 1 << 20, 4 << 20} {
		input := make([]byte, n)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		if got := p.same(theirs, "echo", input); !bytes.Equal(got, input) {
			t.Errorf("%d bytes came back as %d", n, len(got))
		}
	}
	for _, text := range []string{"", "Hello, World!", strings.Repeat("aeiou ", 1000), "\xff no text", "a\x00e", "\u00e4\U0001f600a"} {
		p.same(theirs, "count_vowels", []byte(text))
	}
}

func testErrors(t *testing.T, p *pair) {
	for _, text := range []string{
		"0", "1 it went wrong", "0 an error without a code", "7 \u00e4", "-1 minus", "1 no \xff\xfe text", "1 a\x00b\nc",
		"2 " + strings.Repeat("long ", 1000), "2147483647 large", "-2147483648 small", "",
	} {
		p.same(p.instance(), "fail", []byte(text))
	}
	if len(p.ours.state) != 1 { // of those that succeeded
		t.Errorf("after failures the state is %v", p.ours.state)
	}
	for _, text := range []string{"3", "3 "} { // an error of no text is none in either host
		if code, _, err := p.instance().Call("fail", []byte(text)); code != 3 || err != nil {
			t.Errorf("%q: Extism's host gives %d, %v", text, code, err)
		}
		if _, fail := p.run("fail", []byte(text)); fail == nil || fail.Code != "error" || fail.Message != "fail returned 3 and set no error" {
			t.Errorf("%q, a code without an error: %v", text, fail)
		}
	}
	p.same(p.instance(), "trap", []byte("order"))
	if _, fail := p.run("trap", []byte("order")); fail == nil || !strings.HasPrefix(fail.Error(), p.panics) {
		t.Errorf("a trap: %v", fail)
	}
	p.same(p.instance(), "echo", []byte("after that"))
}

func testConfig(t *testing.T, p *pair) {
	for _, name := range []string{"greeting", "empty", "missing", "", "Greeting", "greeting ", "\xff", "\u00e4", strings.Repeat("k", 100_000)} {
		p.same(p.instance(), "config", []byte(name))
	}
	p.version = map[string]string{"greeting": "bonjour"}
	if got, fail := p.run("config", []byte("greeting")); string(got) != "bonjour true" {
		t.Errorf("with a configuration of the step: %q, %v", got, fail)
	}
}

// Variables live as long as the session, where Extism's live as long as the
// instance.
func testVars(t *testing.T, p *pair) {
	theirs := p.instance()
	for _, lines := range []string{
		"get a", "set a one\nget a", "get a", "set a two\nset b three", "get b\nget a", "remove a\nget a", "get a\nget b",
		"set a.b dotted\nset 0 zero\nset % percent\nset \u00e4 \u00fc", "get a.b\nget 0\nget %\nget \u00e4", "count n", "count n", "count n",
		"remove never\nget never", "set e \nget e", "remove e\nset e again\nremove e\nget e", "get e", "set \nget ", "remove \nget ",
		"set v \xff\x00\xfe\nget v", "set \xff bytes\nget \xff", "set big " + strings.Repeat("0123456789abcdef", 1<<15), "get big\nremove big", "get big",
	} {
		p.same(theirs, "vars", []byte(lines))
	}
	testOldVars(t, p)
	edits := p.ours.edits
	if _, fail := p.run("fail", []byte("1 on purpose")); fail == nil || p.ours.edits != edits {
		t.Errorf("a call that failed (%v) has made %d edits", fail, p.ours.edits-edits)
	}
	p.same(theirs, "fail", []byte("0"))
	p.same(theirs, "vars", []byte("get left"))
}

// Variables that older versions have stored under encoded names are read, and move when
// they are set.
func testOldVars(t *testing.T, p *pair) {
	t.Helper()
	raw, err := abi.EncodeValue([]byte("of old"))
	if err != nil {
		t.Fatal(err)
	}
	p.ours.state["extism.vars.old%2Ename"], p.ours.state["extism.vars.%37"] = raw, raw
	for lines, want := range map[string]string{"get old.name": "of old", "get 7": "of old"} {
		if got, fail := p.run("vars", []byte(lines)); fail != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %q, %v", lines, got, fail)
		}
	}
	if got, fail := p.run("vars", []byte("set old.name new\nremove 7")); fail != nil {
		t.Errorf("%q, %v", got, fail)
	}
	if p.ours.state["extism.vars.old%2Ename"] != nil || p.ours.state["extism.vars.%37"] != nil || p.ours.state[`extism.vars.old\.name`] == nil {
		t.Errorf("the state is %v", p.ours.state)
	}
}

func testHTTP(t *testing.T, p *pair) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answer", r.Method+" "+r.Header.Get("X-Question"))
		switch r.URL.Path {
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
			return
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
			return
		case "/bytes":
			_, _ = w.Write([]byte("\xff\x00\xfe"))
			return
		case "/large":
			_, _ = w.Write(bytes.Repeat([]byte("large"), 1<<18))
			return
		case "/away":
			http.Redirect(w, r, "/teapot", http.StatusFound)
			return
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		_, _ = w.Write([]byte("got " + body.String()))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, q := range []string{
		`{"method": "GET", "url": "` + server.URL + `/"}`,
		`{"method": "POST", "url": "` + server.URL + `/", "body": "a body", "headers": {"X-Question": "why"}}`,
		`{"method": "GET", "url": "` + server.URL + `/teapot"}`,
		`{"method": "GET", "url": "` + server.URL + `/nothing"}`,
		`{"method": "GET", "url": "` + server.URL + `/bytes"}`,
		`{"method": "GET", "url": "` + server.URL + `/large"}`,
		`{"method": "GET", "url": "` + server.URL + `/away"}`,
		`{"method": "PUT", "url": "` + server.URL + `/", "headers": {"X-Question": "", "X-Body": "put"}}`,
		`{"method": "POST", "url": "` + server.URL + `/", "body": "\u00e4\u0000", "headers": {"X-Question": "a, b", "X-Body": "\u00e4"}}`,
		`{"method": "GET", "url": "http://127.0.0.1:1/"}`,
		`not JSON`,
	} {
		p.same(p.instance(), "fetch", []byte(q))
	}
}

// The plugins that Extism's host for Go is tested with run here too.
func TestExtismsOwnPlugins(t *testing.T) {
	suite.NotShort(t, "compiles large modules")
	dir, err := sdkModules()
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]string{"thing": "hello", "vowels": "aeiouyAEIOUY"}
	cases := []struct{ file, export, input string }{
		{"alloc.wasm", "run_test", ""},
		{"hello.wasm", "run_test", ""},
		{"fail.wasm", "run_test", ""},
		{"input_offset.wasm", "input_offset_length", "hello"},
		{"replace.wasm", "run_test", `{"name": "Frodo"}`},
		{"noop.wasm", "run_test", ""},
		{"config.wasm", "run_test", ""},
		{"log.wasm", "run_test", ""},
		{"var.wasm", "run_test", ""},
		{"count_vowels.wasm", "count_vowels", "this is a test yyy"},
		{"count_vowels.wasm", "count_vowels", "\xff no text"},
		{"hello_haskell.wasm", "testing", "John"},
		{"std_command.wasm", "_start", "command"},
		{"read_write.wasm", "try_read", ""},
		{"http_headers.wasm", "http_get", `{"url": "no url"}`},
	}
	b := newBench(t, nil)
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			if few && strings.HasPrefix(c.file, "std") {
				t.Skip("make soak plays it: compiling a standard Go guest takes long")
			}
			wasm, err := os.ReadFile(filepath.Join(dir, c.file))
			if err != nil {
				t.Fatal(err)
			}
			p := inBoth(t, b, wasm, config, c.export)
			theirs := p.instance()
			for range 2 {
				if c.export == "_start" { // a command ends its instance
					theirs = p.instance()
				}
				t.Logf("%.100q", p.same(theirs, c.export, []byte(c.input)))
			}
		})
	}
}

func testLogs(t *testing.T, p *pair) {
	if _, fail := p.run("log_lines", []byte("a line")); fail != nil || strings.Join(p.ours.lines, "|") != "a line|an error line" {
		t.Errorf("logged %q, %v", p.ours.lines, fail)
	}
}

// What a plugin leaves in its memory, and in the arena, is gone before the next
// call; the same call burns the same fuel.
func testPristine(t *testing.T, p *pair) {
	inv := p.invocation("vars", []byte("set a b\nget a\ncount n"))
	if _, err := p.bench.Agree(t.Context(), 10, func(int) host.Invocation {
		p.ours.state = map[string]abi.Raw{}
		return inv
	}); err != nil {
		t.Error(err)
	}
	p.limits.Fuel = 20_000_000
	if _, fail := p.run("spin", nil); fail == nil || fail.Code != codeFuel {
		t.Errorf("a loop without end: %v", fail)
	}
	p.limits.Fuel = limit.Default().Fuel
	p.limits.MemoryBytes = 64 << 20
	if _, fail := p.run("hoard", nil); fail == nil || fail.Code != codeLimit || !strings.Contains(fail.Message, "memory_bytes") {
		t.Errorf("an allocation without end: %v", fail)
	}
	if got, fail := p.run("echo", []byte("after that")); string(got) != "after that" {
		t.Errorf("afterwards: %q, %v", got, fail)
	}
}
