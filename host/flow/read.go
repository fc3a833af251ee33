package flow

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/work"
)

// Seal returns the bytes of a document's module.
func Seal(d *Document) []byte { return append([]byte(Magic), d.raw...) }

// Open reads a document from the bytes of its module.
//
// # Errors
//
// The problems found by Parse, as one error. There are none for bytes that [Seal] of this
// version returned.
func Open(module []byte) (*Document, error) {
	raw, ok := bytes.CutPrefix(module, []byte(Magic))
	if !ok {
		return nil, fmt.Errorf("not a flow of a known version")
	}
	d, problems := parse(&parser{stored: true}, abi.Raw(raw))
	if len(problems) > 0 {
		return nil, fmt.Errorf("the flow has %d problems, of which the first is: %s", len(problems), problems[0].Message)
	}
	return d, nil
}

// Parse reads and checks a document, which is a map. It returns all problems, each with
// the path of its node. If there are problems, the returned document, if any, may only be
// used to find the names in it. Parse does not know which functions and workflows exist.
// It neither modifies nor keeps raw. The work is charged to the meter; if the meter has
// ended, the result must not be used.
func Parse(m *work.Meter, raw abi.Raw) (*Document, []host.Problem) {
	return parse(&parser{meter: m}, raw)
}

func parse(p *parser, raw abi.Raw) (*Document, []host.Problem) {
	p.byPath = map[string]*Node{}
	if len(raw) > MaxBytes {
		p.problem("limit_exceeded", "", "the flow has %d bytes, at most %d are allowed", len(raw), MaxBytes)
		return nil, p.problems
	}
	canonical, err := abi.Canonical(raw, abi.MaxValueDepth)
	if err != nil {
		p.problem("invalid_flow", "", "the flow cannot be read: %s", err)
		return nil, p.problems
	}
	v, err := abi.DecodeValue(canonical)
	if err != nil {
		p.problem("invalid_flow", "", "the flow cannot be read: %s", err)
		return nil, p.problems
	}
	top, ok := v.(map[string]any)
	if !ok {
		p.problem("invalid_flow", "", "a flow is an object with the field \"steps\"")
		return nil, p.problems
	}
	d := &Document{raw: bytes.Clone(canonical), byPath: p.byPath}
	f := fields{p: p, at: "", have: top}
	d.Description = f.text("description", maxDescription)
	if state, given := f.take("session_state"); given {
		if d.SessionState, ok = state.(map[string]any); !ok {
			p.problem("wrong_type", "", "\"session_state\" must be an object")
		}
	}
	d.Input = f.schema("input_schema")
	d.Root = &Node{Kind: KindSteps}
	if d.Root.Steps = p.list(&f, "", "steps", 1, map[string]bool{}); d.Root.Steps == nil && len(p.problems) == 0 {
		p.problem("missing_field", "", "\"steps\" is missing: a flow needs at least one")
	}
	f.rest()
	d.order = p.order
	if p.nodes > MaxNodes {
		p.problem("limit_exceeded", "", "the flow has %d nodes: it may have %d", p.nodes, MaxNodes)
	}
	return d, p.problems
}

// The price of compiling an expression, in units, and of each of its bytes.
const (
	compileUnits = 300_000
	compileByte  = 20_000
)

const (
	maxDescription = 4096
	maxMessage     = 4096
)

// parser collects nodes and problems.
type parser struct {
	problems []host.Problem
	byPath   map[string]*Node
	order    []*Node
	nodes    int
	meter    *work.Meter
	stored   bool // the document was accepted before, perhaps under looser limits
}

// problem records a problem. The message says how to fix it.
func (p *parser) problem(code, path, format string, args ...any) {
	if len(p.problems) >= maxProblems {
		return
	}
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = "node " + clip(path) + ": " + message
	}
	p.problems = append(p.problems, host.Problem{Code: code, Step: clip(path), Message: message})
}

// clip bounds a name in a message.
func clip(s string) string { return abi.Clip(s, 256) }

// list reads the nodes of a field. taken holds the names of their siblings.
func (p *parser) list(f *fields, path, field string, depth int, taken map[string]bool) []*Node {
	v, given := f.take(field)
	if !given {
		return nil
	}
	items, ok := v.([]any)
	switch {
	case !ok:
		p.problem("wrong_type", path, "%q must be a list of nodes", field)
		return nil
	case len(items) == 0:
		p.problem("missing_field", path, "%q is empty: it needs at least one node", field)
		return nil
	case depth > MaxDepth:
		p.problem("limit_exceeded", path, "the nodes are more than %d deep", MaxDepth)
		return nil
	}
	out := make([]*Node, 0, len(items))
	for i, item := range items {
		if p.nodes++; p.nodes > MaxNodes {
			return out
		}
		if n := p.node(item, path, join(path, field+"["+strconv.Itoa(i)+"]"), depth, taken); n != nil {
			out = append(out, n)
		}
	}
	return out
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// node reads a node. place stands for its path while the node has no name.
func (p *parser) node(item any, parent, place string, depth int, taken map[string]bool) *Node {
	have, ok := item.(map[string]any)
	if !ok {
		p.problem("wrong_type", place, "a node is an object with the field \"name\"")
		return nil
	}
	f := &fields{p: p, at: place, have: have}
	n := &Node{Kind: KindStep, Path: place, OnError: OnErrorFail}
	told := len(p.problems)
	_, named := have["name"].(string)
	n.Name = f.text("name", abi.MaxName)
	switch {
	case len(p.problems) > told: // not a text, or too long
	case !named:
		p.problem("missing_field", place, "\"name\" is missing: give the node one")
	case n.Name == "":
		p.problem("invalid_name", place, "a node's name has 1 to %d bytes", abi.MaxName)
	case strings.ContainsAny(n.Name, "/\x00"):
		p.problem("invalid_name", place, "a node's name must not contain \"/\": %q", clip(n.Name))
	case taken[n.Name]:
		p.problem("duplicate_name", join(parent, n.Name), "another node in the same list has this name: rename one of them")
	default:
		taken[n.Name] = true
		n.Path = join(parent, n.Name)
		f.at = n.Path
		p.byPath[n.Path] = n
	}
	p.order = append(p.order, n)
	n.Description = f.text("description", maxDescription)
	if v, given := f.take("type"); given {
		text, _ := v.(string)
		n.Kind = Kind(text)
	}
	p.body(f, n, depth)
	f.rest()
	return n
}

// body reads the fields of a node's kind.
func (p *parser) body(f *fields, n *Node, depth int) {
	inner := map[string]bool{}
	switch n.Kind {
	case KindStep:
		p.step(f, n)
	case KindSteps:
		n.Steps = p.children(f, n, "steps", depth, inner)
	case KindParallel:
		n.Steps = p.children(f, n, "steps", depth, inner)
		n.MaxConcurrency = f.integer("max_concurrency", 0, 1, MaxNodes)
	case KindCondition:
		n.Test = p.test(f, n, "evaluator", exprCondition, true)
		n.Steps = p.children(f, n, "steps", depth, inner)
		n.Else = p.list(f, n.Path, "else_steps", depth+1, inner)
	case KindRouter:
		n.Test = p.test(f, n, "selector", exprRouter, true)
		n.Multiple = f.flag("multiple")
		n.Steps = p.children(f, n, "choices", depth, inner)
	case KindLoop:
		n.MaxIterations = f.integer("max_iterations", 3, 1, MaxIterations)
		n.Forward = f.flag("forward_output")
		n.Test = p.test(f, n, "end_condition", exprLoop, false)
		n.Steps = p.children(f, n, "steps", depth, inner)
	default:
		p.problem("unknown_type", n.Path, "\"type\" %q is not known: use step, steps, parallel, condition, router or loop", clip(string(n.Kind)))
		clear(f.have) // the meaning of the other fields is unknown
		return
	}
	n.Review = p.review(f, n)
}

// children is list for a required field.
func (p *parser) children(f *fields, n *Node, field string, depth int, taken map[string]bool) []*Node {
	if _, given := f.have[field]; !given {
		p.problem("missing_field", n.Path, "%q is missing: a %s needs at least one node", field, n.Kind)
		return nil
	}
	return p.list(f, n.Path, field, depth+1, taken)
}

func (p *parser) step(f *fields, n *Node) {
	n.Function = f.text("function", 2*abi.MaxName+1)
	n.Workflow = f.text("workflow", abi.MaxWorkflowName)
	switch {
	case n.Function != "" && n.Workflow != "":
		p.problem("wrong_kind", n.Path, "it names both a function and a workflow: leave one out")
	case n.Function == "" && n.Workflow == "":
		p.problem("missing_field", n.Path, "it names nothing to do: give it \"function\": \"PLUGIN.FUNCTION\" or \"workflow\": \"NAME\"")
	case n.Function != "" && !qualified(n.Function):
		p.problem("wrong_kind", n.Path, "%q does not name a function: write PLUGIN.FUNCTION", clip(n.Function))
	}
	n.Retries = f.integer("retries", 0, 0, MaxRetries)
	n.Backoff = f.duration("backoff")
	if n.Backoff > 0 && n.Retries == 0 {
		p.problem("wrong_value", n.Path, "\"backoff\" is how long to wait before a retry, and there are none: set \"retries\"")
	}
	n.Timeout = f.duration("timeout")
	if n.Timeout > 0 && n.Workflow != "" {
		p.problem("wrong_kind", n.Path, "\"timeout\" is for functions only: a workflow has its timeout in its settings")
	}
	switch text := f.text("on_error", 16); OnError(text) {
	case "":
	case OnErrorFail, OnErrorSkip, OnErrorPause:
		n.OnError = OnError(text)
	default:
		p.problem("wrong_value", n.Path, "\"on_error\" is %q: use fail, skip or pause", clip(text))
	}
}

// qualified reports whether a name has the form PLUGIN.FUNCTION.
func qualified(name string) bool {
	i := strings.IndexByte(name, '.')
	return i > 0 && i < len(name)-1
}

// test reads how a node decides: a function, a CEL expression or, for a condition, true
// or false.
func (p *parser) test(f *fields, n *Node, field string, kind exprKind, needed bool) *Test {
	v, given := f.take(field)
	switch v := v.(type) {
	case bool:
		if kind == exprCondition {
			return &Test{Fixed: &v}
		}
	case string:
		if v == "" {
			break
		}
		if namesFunction(v) {
			return &Test{Function: v}
		}
		return p.expression(n, field, v, kind)
	case map[string]any:
		inner := &fields{p: p, at: f.at, have: maps.Clone(v)}
		function, cel := inner.text("function", 2*abi.MaxName+1), inner.text("cel", MaxExpression)
		inner.rest()
		switch {
		case (function == "") == (cel == ""):
			p.problem("wrong_value", n.Path, "%q needs either \"function\" or \"cel\"", field)
			return nil
		case function != "" && !qualified(function):
			p.problem("wrong_kind", n.Path, "%q does not name a function: write PLUGIN.FUNCTION", clip(function))
			return nil
		case function != "":
			return &Test{Function: function}
		}
		return p.expression(n, field, cel, kind)
	}
	if given {
		p.problem("wrong_type", n.Path, "%q must be a function (PLUGIN.FUNCTION) or a CEL expression", field)
	} else if needed {
		p.problem("missing_field", n.Path, "%q is missing: name a function (PLUGIN.FUNCTION), or give a CEL expression", field)
	}
	return nil
}

func (p *parser) expression(n *Node, field, text string, kind exprKind) *Test {
	if p.meter.Spend(compileUnits+compileByte*uint64(len(text))) != nil {
		return nil
	}
	expr, err := compile(text, kind)
	if err == nil && !p.stored {
		err = expr.boundPatterns()
	}
	if err != nil {
		p.problem("invalid_expression", n.Path, "%q is not a CEL expression that can be used: %s", field, err)
		return nil
	}
	return &Test{expr: expr}
}

// namesFunction reports whether a text is PLUGIN.FUNCTION and not an expression: its
// first word is not a name that expressions know.
func namesFunction(text string) bool {
	if !qualified(text) {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || i > 0 && (c >= '0' && c <= '9' || c == '-') {
			continue
		}
		return false
	}
	first, _, _ := strings.Cut(text, ".")
	return !slices.Contains(variables, first)
}
