package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
)

// TestProblems covers each rule of validation with a manifest that breaks it and the
// resulting problems, as CODE STEP EVENT.
func TestProblems(t *testing.T) {
	const begin = `{"name": "start", "accepts": ["StartEvent"], "emits": ["StopEvent"]}`
	tests := []struct {
		name   string
		events string // and other top-level keys
		steps  string
		want   []string
	}{
		{"fine", `{}`, begin, nil},
		{"no start", `{}`, `{"name": "a", "accepts": ["HumanResponseEvent"], "emits": ["StopEvent"]}`, []string{"no_start - -"}},
		{"several starts", `{"Go": {"kind": "start"}}`, begin + `, {"name": "go", "accepts": ["Go"], "emits": ["StopEvent"]}`, []string{"several_starts - Go"}},
		{"no stop", `{"Ask": {"kind": "input_required"}}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["Ask"]}`, []string{"no_stop - -"}},
		{"accepted but never produced", `{"A": {}}`, begin + `, {"name": "a", "accepts": ["A"], "emits": ["StopEvent"]}`, []string{"never_produced a A"}},
		{"produced as a subtype", `{"A": {}, "B": {"extends": "A"}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["B"]}, {"name": "a", "accepts": ["A"], "accept_subtypes": true, "emits": ["StopEvent"]}`, nil},
		{"a subtype may be produced", `{"A": {}, "B": {"extends": "A"}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}, {"name": "a", "accepts": ["A"], "emits": ["StopEvent"]}, {"name": "b", "accepts": ["B"], "emits": ["StopEvent"]}`, nil},
		{"produced but never accepted", `{"A": {}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": ["A", "StopEvent"]}`, []string{"never_accepted s A"}},
		{"stream-only types", `{"Progress": {}}`, begin, nil},
		{"answers come from outside", `{"Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["Ask"]}, {"name": "a", "accepts": ["Answer"], "emits": ["StopEvent"]}`, nil},
		{"unreachable", `{"A": {}, "B": {}}`, begin +
			`, {"name": "a", "accepts": ["A"], "emits": ["B"]}, {"name": "b", "accepts": ["B"], "emits": ["A", "StopEvent"]}`, []string{"unreachable_step a -", "unreachable_step b -"}},
		{"dead end", `{"A": {}, "B": {}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["A", "StopEvent"]}, {"name": "a", "accepts": ["A"], "emits": ["B"]}, {"name": "b", "accepts": ["B"], "emits": ["A"]}`,
			[]string{"dead_end a -", "dead_end b -"}},
		{"a sink beside the way to the end", `{"A": {}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": ["A", "StopEvent"]}, {"name": "a", "accepts": ["A"]}`, nil},
		{"nothing but sinks", `{"A": {}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}, {"name": "a", "accepts": ["A"]}`, []string{"dead_end a -", "dead_end s -", "no_stop - -"}},
		{"accepts stop", `{"Bye": {"kind": "stop"}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": ["Bye"]}, {"name": "a", "accepts": ["Bye"], "emits": ["StopEvent"]}`,
			[]string{"accepts_stop a Bye"}},
		{"duplicate step", `{}`, begin + ", " + begin, []string{"duplicate_step start -"}},
		{"duplicate step with problems of its own", `{"A": {}, "B": {}}`, begin + `, {"name": "start", "accepts": ["A"], "emits": ["B"]}`,
			[]string{"dead_end start -", "duplicate_step start -", "never_accepted start B", "never_produced start A"}},
		{"collector without producer", `{"A": {}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}, {"name": "c", "accepts": [["list", ["A"]]], "emits": ["StopEvent"]}`, []string{"collector_without_producer c A"}},
		{"collector behind a join and a catch", `{"A": {}, "B": {}, "C": {}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": [["list", ["A", "B"]]]}, {"name": "j", "accepts": ["A", "B"], "emits": ["StopEvent"]},
			 {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["j"], "emits": ["C"]}, {"name": "c", "accepts": [["list", ["C"]]], "emits": ["StopEvent"]}`, nil},
		{"unknown catch target", `{}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["nope"], "emits": ["StopEvent"]}`, []string{"unknown_catch_target k -"}},
		{"catches itself", `{}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["k"], "emits": ["StopEvent"]}`, []string{"catches_itself k -"}},
		{"several catchers", `{}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["start"], "emits": ["StopEvent"]}, {"name": "l", "accepts": ["StepFailedEvent"], "catches": ["start"], "emits": ["StopEvent"]}`,
			[]string{"several_catchers l -"}},
		{"several that catch all", `{}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": "*", "emits": ["StopEvent"]}, {"name": "l", "accepts": ["StepFailedEvent"], "catches": "*", "emits": ["StopEvent"]}`,
			[]string{"several_catchers l -"}},
		{"catch without slot", `{"A": {}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}, {"name": "k", "accepts": ["A"], "catches": ["s"], "emits": ["StopEvent"]}`,
			[]string{"catch_without_slot k StepFailedEvent"}},
		{"slot without catch", `{}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "emits": ["StopEvent"]}`, []string{"accepts_runtime_type k StepFailedEvent"}},
		{"joined failures", `{"A": {}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}, {"name": "k", "accepts": ["StepFailedEvent", "A"], "catches": ["s"], "emits": ["StopEvent"]}`,
			[]string{"accepts_runtime_type k StepFailedEvent"}},
		{"base type with another kind", `{"StopEvent": {"kind": "start"}}`, begin, []string{"base_kind - StopEvent"}},
		{"base type with its kind", `{"StopEvent": {"kind": "stop", "schema": {"type": "object"}}, "Event": {}}`, begin, nil},
		{"base type that extends", `{"StopEvent": {"extends": "Event"}}`, begin, []string{"base_extends - StopEvent"}},
		{"extends unknown", `{"A": {"extends": "Nope"}}`, begin, []string{"unknown_type - A"}},
		{"extends in a circle", `{"A": {"extends": "B"}, "B": {"extends": "C"}, "C": {"extends": "B"}}`, begin, []string{"cyclic_extends - A", "cyclic_extends - B", "cyclic_extends - C"}},
		{"extends itself", `{"A": {"extends": "A"}}`, begin, []string{"cyclic_extends - A"}},
		{"extends another kind", `{"A": {"kind": "stop", "extends": "B"}, "B": {"kind": "start"}}`, begin, []string{"kind_mismatch - A"}},
		{"extends a runtime type", `{"A": {"extends": "StepFailedEvent"}}`, begin, []string{"unknown_type - A"}},
		{"runtime type declared", `{"WorkflowIdleEvent": {}}`, begin, []string{"runtime_type - WorkflowIdleEvent"}},
		{"runtime type accepted", `{}`, begin + `, {"name": "a", "accepts": [["any", ["HumanResponseEvent", "UnhandledEvent"]]], "emits": ["StopEvent"]}`, []string{"accepts_runtime_type a UnhandledEvent"}},
		{"runtime type emitted", `{}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent", "WorkflowFailedEvent"]}`, []string{"emits_runtime_type a WorkflowFailedEvent"}},
		{"join with a list", `{"A": {}, "B": {}}`, `{"name": "s", "accepts": ["StartEvent"], "emits": [["list", ["A"]], "B"]}, {"name": "j", "accepts": [["list", ["A"]], "B"], "emits": ["StopEvent"]}`,
			[]string{"join_with_list j -"}},
		{"reserved name", `{}`, `{"name": "timeout", "accepts": ["StartEvent"], "emits": ["StopEvent"]}`, []string{"reserved_name timeout -"}},
		{"undeclared types", `{}`, `{"name": "a", "accepts": [["any", ["StartEvent", "A"]]], "emits": ["StopEvent", "B"]}`, []string{"unknown_type a A", "unknown_type a B"}},
		{"start emitted", `{}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent", "StartEvent"]}`, []string{"emits_start a StartEvent"}},
		{"list of stops", `{}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent", ["list", ["StopEvent"]]]}`, []string{"emits_stop_list a StopEvent"}},
		{"waits", `{"A": {}}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent", "A"], "waits": ["HumanResponseEvent", "A"]}`, nil},
		{"waits for what there is not", `{}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["A", "StartEvent", "StopEvent", "StepStateChanged"]}`,
			[]string{"unknown_type a A", "waits_for_ends a StartEvent", "waits_for_ends a StopEvent", "waits_runtime_type a StepStateChanged"}},
		{"atomic", `{}`, `{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent"], "atomic": true, "waits": ["HumanResponseEvent"]}`, []string{"atomic_waits a HumanResponseEvent"}},
		{"catches the end of a run", `{}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["cancelled", "timeout"], "emits": ["StopEvent"]}`, nil},
		{"several clean up, and need not lead to an end", `{"A": {}, "B": {}}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["cancelled"], "emits": ["A"]},
			 {"name": "l", "accepts": ["StepFailedEvent"], "catches": ["cancelled", "start"]}, {"name": "a", "accepts": ["A"], "emits": ["B"]}, {"name": "b", "accepts": ["B"], "emits": ["A"]}`, nil},
		{"a dead end that clean-up leads to as well", `{"A": {}, "B": {}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["A", "StopEvent"]}, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["timeout"], "emits": ["A"]},
			 {"name": "a", "accepts": ["A"], "emits": ["B"]}, {"name": "b", "accepts": ["B"], "emits": ["A"]}`,
			[]string{"dead_end a -", "dead_end b -"}},
		{"clean-up whose events nobody takes", `{"A": {}}`, begin + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["cancelled"], "emits": ["A"]}`, []string{"never_accepted k A"}},
		{"clean-up is no way to the end", `{"A": {}}`,
			`{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}, {"name": "a", "accepts": ["A"]}, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["cancelled"], "emits": ["StopEvent"]}`,
			[]string{"dead_end a -", "dead_end s -"}},
		{"clean-up without a slot", `{}`, begin + `, {"name": "k", "accepts": ["StartEvent"], "catches": ["cancelled"], "emits": ["StopEvent"]}`, []string{"catch_without_slot k StepFailedEvent"}},
		{"part", `{"A": {}, "B": {}}, "part": true`, `{"name": "a", "accepts": ["A"], "emits": ["B"]}, {"name": "c", "accepts": [["list", ["B"]]]},
			{"name": "k", "accepts": ["StepFailedEvent"], "catches": ["elsewhere"]}`, nil},
		{"faults of a part itself", `{"A": {"extends": "Nope"}}, "part": true, "state": {"schema": {"required": ["n"]}}`,
			`{"name": "a", "accepts": ["A", "B"], "emits": ["StartEvent"]}, {"name": "a", "accepts": ["StopEvent"]}, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["k"]}`,
			[]string{"accepts_stop a StopEvent", "catches_itself k -", "duplicate_step a -", "emits_start a StartEvent", "state_default - -", "unknown_type - A", "unknown_type a B"}},
		{"state schema", `{}, "state": {"schema": {"type": "object", "oneOf": []}}`, begin, []string{"state_schema - -"}},
		{"state defaults", `{}, "state": {"schema": {"properties": {"n": {"type": "integer"}}}, "default": {"n": "x"}}`, begin, []string{"state_default - -"}},
		{"state without a required default", `{}, "state": {"schema": {"required": ["n"]}}`, begin, []string{"state_default - -"}},
		{"resources", `{}, "resources": [{"name": "a", "kind": "http"}, {"name": "a", "kind": "http", "optional": true}, {"name": "b", "kind": "llm"}]`, begin, nil},
		{"a resource of two kinds", `{}, "resources": [{"name": "a", "kind": "http"}, {"name": "a", "kind": "llm"}]`, begin, []string{"resource_kinds - -"}},
		{"all at once", `{"A": {}, "B": {"extends": "Nope"}}`, `{"name": "a", "accepts": ["A"], "emits": ["A"]}`,
			[]string{"dead_end a -", "no_start - -", "no_stop - -", "unknown_type - B", "unreachable_step a -"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"abi": 1, "workflow": "w", "events": %s, "steps": [%s]}`, tt.events, tt.steps)
			raw, err := abi.FromJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			m, err := abi.DecodeManifest(raw)
			if err != nil {
				if tt.name == "reserved name" {
					return // the decoder refuses it first
				}
				t.Fatal(err)
			}
			g, problems := Compile(&m)
			if (g == nil) != (len(problems) > 0) {
				t.Errorf("graph %v with %d problems", g, len(problems))
			}
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%s %s %s", p.Code, orDash(p.Step), orDash(p.Event)))
				if len(p.Message) < 20 || !strings.Contains(p.Message, ":") && p.Code != "limit_exceeded" {
					t.Errorf("%s: the message does not say how to mend it: %q", p.Code, p.Message)
				}
				if p.Step != "" && !strings.Contains(p.Message, p.Step) || p.Event != "" && !strings.Contains(p.Message, p.Event) && p.Code != "unsupported" {
					t.Errorf("%s: the message does not name step %q and event %q: %q", p.Code, p.Step, p.Event, p.Message)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("problems\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// TestProblemsBeyondTheEncoding covers faults that the decoder would refuse first.
func TestProblemsBeyondTheEncoding(t *testing.T) {
	good := abi.StepDecl{Name: "start", Accepts: []abi.Slot{{Types: []string{abi.TypeStart}}}, Emits: []abi.Emit{{Types: []string{abi.TypeStop}}}}
	with := func(change func(*abi.StepDecl)) *abi.Manifest {
		s := good
		change(&s)
		return &abi.Manifest{ABI: 1, Workflow: "w", Steps: []abi.StepDecl{s}}
	}
	long := make([]abi.Slot, maxSlots+1)
	for i := range long {
		long[i] = good.Accepts[0]
	}
	base := func(b float64) *abi.WaitRule {
		return &abi.WaitRule{Sum: []abi.WaitRule{{Exponential: &abi.ExponentialRule{Base: b}}}}
	}
	tests := map[string]*abi.Manifest{
		"reserved_name":  with(func(s *abi.StepDecl) { s.Name = "cancelled" }),
		"invalid_name":   with(func(s *abi.StepDecl) { s.Name = "" }),
		"out_of_range":   with(func(s *abi.StepDecl) { s.Workers = 1001 }),
		"out_of_range 2": with(func(s *abi.StepDecl) { s.Workers = -1 }),
		"out_of_range 3": with(func(s *abi.StepDecl) { s.Timeout = -time.Second }),
		"out_of_range 4": with(func(s *abi.StepDecl) { s.Accepts = long }),
		"out_of_range 5": with(func(s *abi.StepDecl) { s.Accepts = nil }),
		"out_of_range 6": with(func(s *abi.StepDecl) { s.Accepts = []abi.Slot{{}} }),
		"out_of_range 7": with(func(s *abi.StepDecl) { s.Emits = []abi.Emit{{List: true}} }),
		"retry_policy":   with(func(s *abi.StepDecl) { s.Retry = &abi.RetryPolicy{Wait: base(0)} }),
		"retry_policy 2": with(func(s *abi.StepDecl) {
			s.Retry = &abi.RetryPolicy{Wait: &abi.WaitRule{Random: &[2]time.Duration{2, 1}}}
		}),
		"limit_exceeded":   {ABI: 1, Workflow: "w", Steps: make([]abi.StepDecl, maxSteps+1)},
		"limit_exceeded 2": {ABI: 1, Workflow: "w"},
		"limit_exceeded 3": {ABI: 1, Workflow: "w", Steps: make([]abi.StepDecl, 1), Resources: make([]abi.ResourceDecl, maxResources+1)},
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			code, _, _ := strings.Cut(name, " ")
			g, problems := Compile(m)
			if g != nil || len(problems) == 0 {
				t.Fatalf("compiled; problems %v", problems)
			}
			if problems[0].Code != code {
				t.Errorf("problems %+v, want %s first", problems, code)
			}
		})
	}
}

func TestGraph(t *testing.T) {
	g := mustGraph(t, `{"abi": 1, "workflow": "w", "timeout": 5000000000,
	  "events": {"Go": {"kind": "start", "schema": {"type": "object"}}, "Greeting": {"kind": "stop", "description": "says hello"}, "Warm": {"extends": "Greeting"},
	    "Mid": {}, "Ask": {"kind": "input_required"}, "Answer": {"extends": "HumanResponseEvent"}, "Own": {"extends": "Event"}},
	  "steps": [
	    {"name": "first", "accepts": ["Go"], "emits": ["Mid", "Ask"], "description": "begins"},
	    {"name": "Mid", "accepts": [["any", ["Mid", "Answer"]]], "emits": ["Greeting", "StopEvent"]}]}`)
	if d, set := g.Timeout(); d != 5*time.Second || !set {
		t.Errorf("timeout %v, %t", d, set)
	}
	if got := g.StartType(); got != "Go" {
		t.Errorf("start type %s", got)
	}
	if got := strings.Join(g.StopTypes(), " "); got != "Greeting StopEvent Warm" {
		t.Errorf("stop types %s", got)
	}
	if got := strings.Join(g.EventTypes(), " "); got != "Answer Ask Go Greeting Mid Own StopEvent Warm" {
		t.Errorf("event types %s", got)
	}
	for typ, want := range map[string]string{
		"Warm": "Greeting StopEvent", "Greeting": "StopEvent", "Go": "StartEvent", "Ask": "InputRequiredEvent", "Answer": "HumanResponseEvent",
		"Mid": "", "Own": "", "StopEvent": "", "Nope": "",
	} {
		if got := strings.Join(g.Ancestors(typ), " "); got != want {
			t.Errorf("ancestors of %s: %s, want %s", typ, got, want)
		}
		if want == "" && g.Ancestors(typ) != nil {
			t.Errorf("ancestors of %s are not nil", typ)
		}
	}
	if kind, known := g.Kind("Warm"); kind != abi.KindStop || !known {
		t.Errorf("kind of Warm: %s, %t", kind, known)
	}
	if _, known := g.Kind("Nope"); known {
		t.Error("Nope is known")
	}
	if kind, known := g.Kind(abi.TypeHumanResponse); kind != abi.KindHumanResponse || !known {
		t.Errorf("base type: %s, %t", kind, known)
	}
	if !g.Accepts("Mid", "Answer") || g.Accepts("first", "Mid") || !g.HasStep("Mid") || g.HasStep("nope") {
		t.Error("who accepts what is wrong")
	}

	d := g.Drawing()
	var nodes, edges []string
	for _, n := range d.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s:%s%v%v", n.ID, n.Kind, n.EventTypes, n.ProducedBy))
		if n.ID == "Go" && showRaw(n.Schema) != `{"type":"object","title":"Go"}` {
			t.Errorf("schema of Go: %s", showRaw(n.Schema))
		}
	}
	for _, e := range d.Edges {
		edges = append(edges, e.Source+">"+e.Target)
	}
	wantNodes := "Answer:event[Answer HumanResponseEvent][] Ask:event[Ask InputRequiredEvent][first] Go:event[Go StartEvent][] Greeting:event[Greeting StopEvent][step:Mid] " +
		"Mid:event[Mid][first] StopEvent:event[StopEvent][step:Mid] external_step:external[][] first:step[][] step:Mid:step[][]"
	if got := strings.Join(nodes, " "); got != wantNodes {
		t.Errorf("nodes\n got %s\nwant %s", got, wantNodes)
	}
	wantEdges := "Answer>step:Mid Ask>external_step Go>first Mid>step:Mid external_step>Answer first>Ask first>Mid step:Mid>Greeting step:Mid>StopEvent"
	if got := strings.Join(edges, " "); got != wantEdges {
		t.Errorf("edges\n got %s\nwant %s", got, wantEdges)
	}
}

// A drawing shows lists, and steps that collect, join and wait.
func TestDrawingLabels(t *testing.T) {
	g := mustGraph(t, `{"abi": 1, "workflow": "w", "events": {"Item": {}, "Done": {}, "Other": {}, "Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}}, "steps": [
		{"name": "split", "accepts": ["StartEvent"], "emits": [["list", ["Item"]], "Ask"], "waits": ["Answer"]},
		{"name": "work", "accepts": ["Item"], "emits": ["Done"]},
		{"name": "all", "accepts": [["list", ["Done"]]], "emits": ["Other"]},
		{"name": "two", "accepts": [["list", ["Done"], 2]], "emits": ["Other"]},
		{"name": "both", "accepts": ["Other", "Answer"], "emits": ["StopEvent"]}]}`)
	var labels []string
	for _, e := range g.Drawing().Edges {
		if e.Label != "" {
			labels = append(labels, e.Source+">"+e.Target+" "+e.Label)
		}
	}
	want := "Answer>both joins, Answer>split waits, Done>all collects, Done>two collects 2, Other>both joins, split>Item list"
	if got := strings.Join(labels, ", "); got != want {
		t.Errorf("labels\n got %s\nwant %s", got, want)
	}
}

// TestCompileLargeManifest compiles manifests at the bounds.
func TestCompileLargeManifest(t *testing.T) {
	m := &abi.Manifest{ABI: 1, Workflow: "w", Events: map[string]abi.EventDecl{}}
	for i := range maxTypes {
		m.Events[fmt.Sprint("T", i)] = abi.EventDecl{}
	}
	all := sortedKeys(m.Events)
	for i := range maxSteps {
		s := abi.StepDecl{Name: fmt.Sprint("s", i), AcceptSubtypes: true}
		switch {
		case i == 0:
			s.Accepts = []abi.Slot{{Types: []string{abi.TypeStart}}}
		case i%2 == 0:
			s.Accepts = []abi.Slot{{Kind: abi.SlotList, Types: []string{abi.TypeEvent}}}
		default:
			s.Accepts = []abi.Slot{{Kind: abi.SlotAny, Types: []string{abi.TypeEvent}}}
		}
		s.Emits = []abi.Emit{{Types: []string{abi.TypeStop}}}
		if i < maxLists {
			s.Emits = append(s.Emits, abi.Emit{List: true, Types: all[:10]})
		}
		m.Steps = append(m.Steps, s)
	}
	problem := func(m *abi.Manifest) string {
		if _, problems := Compile(m); len(problems) > 0 {
			return problems[0].Code
		}
		return ""
	}
	if got := problem(m); got != "limit_exceeded" {
		t.Errorf("every step accepts every type: problem %q", got)
	}
	for i := range m.Steps {
		m.Steps[i].AcceptSubtypes = false
		if i > 0 {
			m.Steps[i].Accepts[0].Types = all[:10]
		}
	}
	g, problems := Compile(m)
	if g == nil {
		t.Fatalf("%+v", problems[0])
	}
	if n := len(g.steps[0].lists[0].collectors); n != maxSteps/2-1 {
		t.Errorf("%d collectors", n)
	}
	m.Steps[maxLists].Emits = m.Steps[0].Emits
	if got := problem(m); got != "limit_exceeded" {
		t.Errorf("too many lists: problem %q", got)
	}
}

// FuzzCompile compiles arbitrary manifests. The compiler must not panic, and must return
// either a graph or problems.
func FuzzCompile(f *testing.F) {
	files, err := filepath.Glob(histories + "/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(parseArchive(string(text)).file("manifest.json")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := abi.FromJSON(text)
		if err != nil {
			return
		}
		m, err := abi.DecodeManifest(raw)
		if err != nil {
			return
		}
		g, problems := Compile(&m)
		if (g == nil) != (len(problems) > 0) {
			t.Fatalf("graph %v with %d problems", g, len(problems))
		}
		if g == nil {
			return
		}
		g.Drawing()
		for _, typ := range g.EventTypes() {
			_ = g.CheckPost(typ, "")
		}
	})
}
