package js_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// The engine's size is that of each plugin's module.
func TestEngineSize(t *testing.T) {
	const most = 1_100_000
	if n := len(engine()); n > most {
		t.Errorf("the engine has %d bytes, at most %d are meant", n, most)
	}
}

// counter is the smallest useful step: one edit of the state.
const counter = `const run = () => { const s = weft.state_begin([""]); const n = ++s.count; weft.state_commit([s]); return n; };`

// The fuel of a step is what its author pays beyond the work of the function.
func TestFuelOfACounterStep(t *testing.T) {
	const most = 24_000
	p := start(t, counter)
	state, err := abi.EncodeValue(map[string]any{"count": int64(4)})
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{answer: func(im abi.Import, _ []byte) ([]byte, abi.Status) {
		if im == abi.ImportStateBegin {
			return state, abi.StatusOK
		}
		return abi.Null, abi.StatusOK
	}}
	res := p.invoke(t, c, "{}", nil)
	again := p.invoke(t, c, "{}", nil)
	if res.Err != nil || again.Fuel != res.Fuel {
		t.Fatalf("result = %+v, then %d units", res, again.Fuel)
	}
	t.Logf("%d units", res.Fuel)
	if res.Fuel > most {
		t.Errorf("a counter step burns %d units, at most %d are meant", res.Fuel, most)
	}
}

// table is a map as the builder writes it.
type table struct{ b []byte }

func (m *table) unsigned(n ...uint64) {
	for _, v := range n {
		m.b = binary.AppendUvarint(m.b, v)
	}
}

func (m *table) zigzag(n ...int64) {
	for _, v := range n {
		m.b = binary.AppendVarint(m.b, v)
	}
}

func (m *table) file(flags uint64, name string) {
	m.unsigned(flags, uint64(len(name)))
	m.b = append(m.b, name...)
}

// Errors name places of the author's files: those of the bundle's segments, by UTF-16
// columns, without files of the SDK.
func TestMapOfLines(t *testing.T) {
	script := "globalThis.sdk = f => f();\n" + // line 0: the SDK's
		"/*😀é*/ function deep() { null.x }\n" + // line 1: src/steps.ts from line 20 on
		"function plain() { deep() }\n" + // line 2: no source
		"function top() { plain() } sdk(top);" // line 3: main.ts
	var m table
	m.unsigned(1, 3)
	m.file(1, "sdk/weft.ts")
	m.file(0, "src/steps.ts")
	m.file(0, "main.ts")
	m.unsigned(5)
	m.unsigned(0, 0)
	m.zigzag(1, 4, 2) // sdk/weft.ts:5:3
	m.unsigned(1, 0)
	m.zigzag(1, 15, -2)                                        // src/steps.ts:20:1
	m.unsigned(0, uint64(len(`/*ssé*/ function deep() { `)-1)) // in UTF-16 units
	m.zigzag(0, 1, 7)                                          // src/steps.ts:21:8
	m.unsigned(1, 0)
	m.zigzag(-2)
	m.unsigned(1, 0)
	m.zigzag(3, -20, -7) // main.ts:1:1
	_, _, err := load(script, m.b)
	got := problems(err)
	want := "TypeError: cannot read property 'x' of null (src/steps.ts:21:8) | at deep (src/steps.ts:21:8) | at top (main.ts:1:1) | at main.ts:1:1"
	if !strings.Contains(got, want) {
		t.Errorf("error = %s\nwant %s", got, want)
	}
	for i := range m.b { // a table that ends anywhere changes what is shown, and nothing else
		if i%7 != 0 || !suite.Soak() && i > 7 {
			continue
		}
		if _, _, err := load(script, m.b[:i]); !strings.Contains(problems(err), "TypeError: cannot read property 'x' of null") {
			t.Errorf("with %d bytes of the table: %s", i, problems(err))
		}
	}
}
