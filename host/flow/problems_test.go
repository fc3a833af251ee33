package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/work"
)

// parsed reads a document of JSON and lists its problems, as CODE NODE.
func parsed(tb testing.TB, text string) (*Document, []string) {
	tb.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	d, problems := Parse(nil, raw)
	var out []string
	for _, p := range problems {
		out = append(out, strings.TrimSpace(p.Code+" "+p.Step))
		if p.Step != "" && !strings.Contains(p.Message, p.Step) {
			tb.Errorf("the message of %s does not name %s: %s", p.Code, p.Step, p.Message)
		}
	}
	return d, out
}

func TestProblems(t *testing.T) {
	const a = `{"name": "a", "function": "p.f"}`
	deep := strings.Repeat(`{"name": "g", "type": "steps", "steps": [`, MaxDepth) + a + strings.Repeat(`]}`, MaxDepth)
	many := strings.Repeat(`{"name": "x", "type": "steps", "steps": [`+a+`]},`, 0)
	for i := range MaxNodes + 1 {
		many += fmt.Sprintf(`{"name": "n%d", "function": "p.f"},`, i)
	}
	for _, tt := range []struct{ name, flow, want string }{
		{"good", `{"steps": [` + a + `]}`, ""},
		{"no object", `[1]`, "invalid_flow"},
		{"no steps", `{}`, "missing_field"},
		{"steps of another kind", `{"steps": 3}`, "wrong_type"},
		{"empty", `{"steps": []}`, "missing_field"},
		{"unknown field", `{"steps": [` + a + `], "colour": 1, "zoo": 2}`, "unknown_field; unknown_field"},
		{"state of another kind", `{"steps": [` + a + `], "session_state": []}`, "wrong_type"},
		{"a schema of another kind", `{"steps": [` + a + `], "input_schema": "string"}`, "wrong_type"},
		{"a schema that is none", `{"steps": [` + a + `], "input_schema": {"type": "text"}}`, "wrong_value"},
		{"a schema", `{"steps": [` + a + `], "input_schema": {"type": ["string", "null"], "maxLength": 9}}`, ""},
		{"a node that is none", `{"steps": [7]}`, "wrong_type steps[0]"},
		{"no name", `{"steps": [{"function": "p.f"}]}`, "missing_field steps[0]"},
		{"empty name", `{"steps": [{"name": "", "function": "p.f"}]}`, "invalid_name steps[0]"},
		{"a name of another kind", `{"steps": [{"name": 1, "function": "p.f"}]}`, "wrong_type steps[0]"},
		{"a slash", `{"steps": [{"name": "a/b", "function": "p.f"}]}`, "invalid_name steps[0]"},
		{"twice", `{"steps": [` + a + `,` + a + `]}`, "duplicate_name a"},
		{"twice in both branches", `{"steps": [{"name": "c", "type": "condition", "evaluator": true, "steps": [` + a + `], "else_steps": [` + a + `]}]}`, "duplicate_name c/a"},
		{"the same name deeper", `{"steps": [` + a + `, {"name": "g", "type": "steps", "steps": [` + a + `]}]}`, ""},
		{"nothing to do", `{"steps": [{"name": "a"}]}`, "missing_field a"},
		{"both", `{"steps": [{"name": "a", "function": "p.f", "workflow": "w"}]}`, "wrong_kind a"},
		{"no plugin", `{"steps": [{"name": "a", "function": "f"}]}`, "wrong_kind a"},
		{"unknown type", `{"steps": [{"name": "a", "type": "map", "over": 1}]}`, "unknown_type a"},
		{"a field of another type", `{"steps": [{"name": "a", "function": "p.f", "steps": []}]}`, "unknown_field a"},
		{"bad duration", `{"steps": [{"name": "a", "function": "p.f", "timeout": "soon"}]}`, "bad_duration a"},
		{"no time at all", `{"steps": [{"name": "a", "function": "p.f", "timeout": 0}]}`, "bad_duration a"},
		{"seconds", `{"steps": [{"name": "a", "function": "p.f", "timeout": 1.5}]}`, ""},
		{"endless", `{"steps": [{"name": "a", "function": "p.f", "timeout": 1e300}]}`, "bad_duration a"},
		{"a workflow's timeout", `{"steps": [{"name": "a", "workflow": "w", "timeout": "1s"}]}`, "wrong_kind a"},
		{"on_error", `{"steps": [{"name": "a", "function": "p.f", "on_error": "shrug"}]}`, "wrong_value a"},
		{"retries", `{"steps": [{"name": "a", "function": "p.f", "retries": -1}]}`, "wrong_value a"},
		{"a wait between tries that there are not", `{"steps": [{"name": "a", "function": "p.f", "backoff": "1s"}]}`, "wrong_value a"},
		{"a wait that is none", `{"steps": [{"name": "a", "function": "p.f", "retries": 2, "backoff": "-1s"}]}`, "bad_duration a"},
		{"iterations", `{"steps": [{"name": "l", "type": "loop", "max_iterations": 1000000, "steps": [` + a + `]}]}`, "wrong_value l"},
		{"no iterations", `{"steps": [{"name": "l", "type": "loop", "max_iterations": 0, "steps": [` + a + `]}]}`, "wrong_value l"},
		{"concurrency", `{"steps": [{"name": "p", "type": "parallel", "max_concurrency": 0, "steps": [` + a + `]}]}`, "wrong_value p"},
		{"no evaluator", `{"steps": [{"name": "c", "type": "condition", "steps": [` + a + `]}]}`, "missing_field c"},
		{"a selector that is a bool", `{"steps": [{"name": "r", "type": "router", "selector": true, "choices": [` + a + `]}]}`, "wrong_type r"},
		{"no choices", `{"steps": [{"name": "r", "type": "router", "selector": "p.f"}]}`, "missing_field r"},
		{"CEL syntax", `{"steps": [{"name": "c", "type": "condition", "evaluator": "input ==", "steps": [` + a + `]}]}`, "invalid_expression c"},
		{"CEL name", `{"steps": [{"name": "c", "type": "condition", "evaluator": "inputs == 1", "steps": [` + a + `]}]}`, "invalid_expression c"},
		{"CEL of a loop elsewhere", `{"steps": [{"name": "c", "type": "condition", "evaluator": "current_iteration > 1", "steps": [` + a + `]}]}`, "invalid_expression c"},
		{"CEL type", `{"steps": [{"name": "c", "type": "condition", "evaluator": "1 + 2", "steps": [` + a + `]}]}`, "invalid_expression c"},
		{"CEL type of a selector", `{"steps": [{"name": "r", "type": "router", "selector": "1 < 2", "choices": [` + a + `]}]}`, "invalid_expression r"},
		{"CEL types that do not go together", `{"steps": [{"name": "l", "type": "loop", "end_condition": "current_iteration == \"a\"", "steps": [` + a + `]}]}`, "invalid_expression l"},
		{"either of two", `{"steps": [{"name": "c", "type": "condition", "evaluator": {"function": "p.f", "cel": "true"}, "steps": [` + a + `]}]}`, "wrong_value c"},
		{"said to be an expression", `{"steps": [{"name": "c", "type": "condition", "evaluator": {"cel": "true"}, "steps": [` + a + `]}]}`, ""},
		{"review of a branch node", `{"steps": [{"name": "p", "type": "parallel", "review": {"confirm": true}, "steps": [` + a + `]}]}`, "wrong_kind p"},
		{"review of nothing", `{"steps": [{"name": "a", "function": "p.f", "review": {}}]}`, "missing_field a"},
		{"review of iterations", `{"steps": [{"name": "a", "function": "p.f", "review": {"iteration": true}}]}`, "wrong_kind a"},
		{"else without a condition", `{"steps": [{"name": "a", "function": "p.f", "review": {"confirm": true, "on_reject": "else"}}]}`, "wrong_kind a"},
		{"a schema that cannot be", `{"steps": [{"name": "a", "function": "p.f", "review": {"input": {"schema": {"type": "colour"}}}}]}`, "wrong_value a"},
		{"too deep", `{"steps": [` + deep + `]}`, "limit_exceeded " + strings.TrimSuffix(strings.Repeat("g/", MaxDepth), "/")},
		{"too many", `{"steps": [` + strings.TrimSuffix(many, ",") + `]}`, "limit_exceeded"},
		{"all at once", `{"steps": [{"name": "a", "function": "f", "timeout": "x"}, {"name": "c", "type": "condition", "evaluator": "(", "steps": [{"name": "b"}]}]}`,
			"wrong_kind a; bad_duration a; invalid_expression c; missing_field c/b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := parsed(t, tt.flow); strings.Join(got, "; ") != tt.want {
				t.Errorf("problems %q, want %q", got, tt.want)
			}
		})
	}
}

// A problem of an expression says where in it.
func TestExpressionPositions(t *testing.T) {
	for text, want := range map[string]string{
		"input == \n  nothing":       "line 2, column 3: undeclared reference to 'nothing'",
		"1 + 2":                      "line 1, column 1: it gives int, but must give true or false",
		"session_state.a && (":       "line 1, column 21",
		`input.matches("(")`:         "line 1, column 15",
		`all_success`:                "line 1, column 1: undeclared reference to 'all_success'",
		`timestamp("2020") == input`: "line 1, column 11",
		strings.Repeat("(", 3000):    "",
		strings.Repeat("x", 5000):    "5000 bytes",
		`[1,2].all(x, [1].all(y, [1].all(z, [1].all(u, [1].all(v, true)))))`: "nest",
	} {
		if _, err := compile(text, exprCondition); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("compile(%.40q): %v, want %q", text, err, want)
		}
	}
}

// Literal patterns are bounded when a flow is uploaded; a flow that is stored opens all
// the same.
func TestLiteralPatternsAreBounded(t *testing.T) {
	for pattern, want := range map[string]string{
		"^a.*b$": "", "(a?){200}b": "", "a{900}b{900}c{900}": "line 1, column 15: the pattern is too complex",
		strings.Repeat("a", 1500): "line 1, column 15: the pattern has 1500 bytes",
	} {
		raw := mustRaw(t, `{"steps": [{"name": "c", "type": "condition", "evaluator": "input.matches('`+pattern+`')", "steps": [{"name": "z", "function": "p.f"}]}]}`)
		_, problems := Parse(nil, raw)
		got := ""
		for _, p := range problems {
			got += p.Code + " " + p.Message
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%.30s: %q, want %q", pattern, got, want)
		}
		canonical, err := abi.Canonical(raw, abi.MaxValueDepth)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(append([]byte(Magic), canonical...)); err != nil {
			t.Errorf("%.30s, stored: %v", pattern, err)
		}
	}
}

// The work of reading a flow is charged, and ends with the meter.
func TestReadingAFlowIsMetered(t *testing.T) {
	node := `{"name": "c%d", "type": "condition", "evaluator": "input == 'a' || size(input) > %d", "steps": [{"name": "z", "function": "p.f"}]}`
	var nodes []string
	for i := range 50 {
		nodes = append(nodes, fmt.Sprintf(node, i, i))
	}
	raw := mustRaw(t, `{"steps": [`+strings.Join(nodes, ",")+`]}`)
	m := work.New(0, nil)
	if _, problems := Parse(m, raw); len(problems) > 0 || m.Spent() < 50*compileUnits {
		t.Errorf("%d units, %v", m.Spent(), problems)
	}
	all, looks := m.Spent(), 0
	m = work.New(0, func(uint64) error {
		if looks++; looks == 10 {
			return errors.New("stop")
		}
		return nil
	})
	if Parse(m, raw); m.Err() == nil || m.Spent() > all/2 {
		t.Errorf("%d units, %v", m.Spent(), m.Err())
	}
}

func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{"short": `true`, "usual": `input == 'a' || size(input) > 3`,
		"nested": strings.Repeat("(input == 1 || ", 50) + "true" + strings.Repeat(")", 50), "list": "[" + strings.Repeat("1,", 1800) + "1].size() > 0",
		"pattern": "matches('a', '(a{100}b{90}){10}')", "macros": "[1].all(x," + strings.Repeat("[x].all(y, y > 1) || ", 60) + " true)"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e, err := compile(text, exprCondition)
				if err == nil {
					err = e.boundPatterns()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(compileUnits+compileByte*len(text))*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "units/ns")
		})
	}
}

func mustRaw(tb testing.TB, text string) abi.Raw {
	tb.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// An expression that costs too much is a failure, in bounded time; what it comes to
// and costs is the same each time, in whatever order Go walks maps.
func TestExpressionsAreBoundedAndDeterministic(t *testing.T) {
	dear, err := compile(`previous_step_outputs.l.all(x, previous_step_outputs.l.all(y, previous_step_outputs.l.all(z, x + y + z >= 0)))`, exprCondition)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 1000)
	for i := range list {
		list[i] = int64(i)
	}
	vars := map[string]any{varOutputs: map[string]any{"l": list}}
	if _, err := dear.evaluate(work.New(MaxUnits, nil), vars); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("a billion steps: %v", err)
	}
	keys, err := compile(`{"b": 1, "a": 2, "c": 3}.map(k, k) + session_state.map(k, k)`, exprRouter)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]any{}
	for i := range 50 {
		state[fmt.Sprintf("k%02d", i)] = int64(i)
	}
	var first string
	for range 50 {
		m := work.New(MaxUnits, nil)
		v, err := keys.evaluate(m, map[string]any{varState: state})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(v, m.Spent())
		if first == "" {
			first = got
		}
		if got != first || !strings.HasPrefix(got, "[a b c k00 k01") {
			t.Fatalf("%s, and before %s", got, first)
		}
	}
}

// An expression that asks for a key that is not there is told which are; a fault of
// another kind, and one that the expression goes on without, is not.
func TestExpressionsListTheKeysThereAre(t *testing.T) {
	many := map[string]any{}
	for i := range 50 {
		many[fmt.Sprintf("k%02d", i)] = int64(i)
	}
	vars := map[string]any{varState: map[string]any{"user": map[string]any{"name": "Ada", "a.b": 1}, "many": many, "none": map[string]any{}, "l": []any{"x"}}, varInput: "x"}
	for text, want := range map[string]string{
		`session_state.usr == 1`:                    "no such key: usr; the keys are l, many, none, user",
		`session_state["user"].nme == 1`:            "no such key: nme; the keys are a.b, name",
		`session_state.none.x == 1`:                 "no such key: x; there are no keys",
		`session_state.many.x == 1`:                 "k18, k19 and 30 more",
		`session_state.usr == 1 || 1 / 0 == 1`:      "; the keys are",
		`session_state.l[7] == 1`:                   "index out of bounds: 7",
		`session_state.user.name.first == 1`:        "no such key: first",
		`session_state.usr == 1 || input == "x"`:    "",
		`session_state.user["a.b"] == 1`:            "",
		`session_state.many.map(k, k)[99] == "k00"`: "index out of bounds: 99",
	} {
		e, err := compile(text, exprCondition)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, err = e.evaluate(nil, vars)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			if text != `session_state.usr == 1 || 1 / 0 == 1` || err == nil { // either fault may be told
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
}

// FuzzParse reads any bytes, and JSON: a document that is good opens again from its
// module as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"steps": [{"name": "a", "function": "p.f", "timeout": "1s", "review": {"confirm": true}}]}`))
	f.Add([]byte(`{"steps": [{"name": "r", "type": "router", "selector": "input", "choices": [{"name": "l", "type": "loop", "steps": [{"name": "w", "workflow": "x"}]}]}]}`))
	f.Add([]byte(`{"session_state": {"a": [1.5]}, "steps": [{"name": "c", "type": "condition", "evaluator": "session_state.a[0] > 1", "steps": [{"name": "p", "type": "parallel", "steps": [{"name": "x", "function": "p.f"}]}]}]}`))
	f.Add([]byte{0xa1, 0x65, 's', 't', 'e', 'p', 's', 0x80})
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := abi.FromJSON(text)
		if err != nil {
			raw = abi.Raw(text)
		}
		d, problems := Parse(nil, raw)
		if len(problems) > 0 {
			return
		}
		again, err := Open(Seal(d))
		if err != nil || string(again.Raw()) != string(d.Raw()) || len(again.Nodes()) != len(d.Nodes()) {
			t.Fatalf("open: %v", err)
		}
		_ = d.Drawing()
		_ = d.Manifest("w", []string{"p.f"})
	})
}
