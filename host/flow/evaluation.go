package flow

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/weftrun/weft/host/pattern"
	"github.com/weftrun/weft/host/work"
)

// The prices of evaluating an expression, in units.
const (
	callUnits  = 500 // a call of a function
	valueUnits = 150 // a value that is read or compared
	textBytes  = 32  // to count, copy or compare 8 bytes of a text
	entryUnits = 60  // an entry of a sorted map, for each halving
)

// mostMatched bounds the patterns of the function matches.
var mostMatched = pattern.Most{Bytes: 1024, States: 2_000}

// evaluation is one evaluation of an expression: its variables, each converted on first
// use, and its cost. When the meter ends, the evaluation is cancelled.
type evaluation struct {
	meter     *work.Meter
	native    map[string]any
	converted map[string]ref.Val
	patterns  map[string]*pattern.Pattern
	// missing is a key that a map did not have; keys lists the map's keys for people.
	missing, keys string
}

// hidden is the variable by which the parts of an expression find the evaluation. No
// expression can contain this name.
const hidden = "@evaluation"

// ResolveName implements interpreter.Activation.
func (e *evaluation) ResolveName(name string) (any, bool) {
	if name == hidden {
		return e, true
	}
	if v, ok := e.converted[name]; ok {
		return v, true
	}
	native, ok := e.native[name]
	if !ok {
		return nil, false
	}
	v := ordered{e}.NativeToValue(native)
	e.converted[name] = v
	return v, true
}

// Parent implements interpreter.Activation.
func (e *evaluation) Parent() interpreter.Activation { return nil }

// spend charges for work before it is done.
func (e *evaluation) spend(units uint64) {
	if e == nil {
		return
	}
	if err := e.meter.Spend(units); err != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: err.Error()})
	}
}

// check ends the evaluation if it must end, during work that is charged already.
func (e *evaluation) check() {
	if e != nil && e.meter.Check() != nil {
		e.spend(0)
	}
}

// sort sorts keys. It charges for the work in advance, because the number of comparisons
// depends on a map's iteration order.
func (e *evaluation) sort(keys []ref.Val, compare func(x, y ref.Val) int) {
	const often = 4096 // comparisons between two checks
	for n := len(keys); n > 0; n -= often {
		e.spend(entryUnits * uint64(min(n, often)) * uint64(1+bits.Len(uint(len(keys)))))
	}
	compared := 0
	slices.SortFunc(keys, func(x, y ref.Val) int {
		if compared++; compared%often == 0 {
			e.check()
		}
		return compare(x, y)
	})
}

// looked charges for a value passed to a function.
func (e *evaluation) looked(v ref.Val) {
	switch v := v.(type) {
	case types.String:
		e.spend(valueUnits + work.Bytes(len(v), textBytes))
	case types.Bytes:
		e.spend(valueUnits + work.Bytes(len(v), textBytes))
	default:
		e.spend(valueUnits)
	}
}

// evaluationOf returns the evaluation that a part of an expression belongs to. It returns
// nil for a constant that is evaluated while the expression is compiled.
func evaluationOf(vars interpreter.Activation) *evaluation {
	found, _ := vars.ResolveName(hidden)
	e, _ := found.(*evaluation)
	return e
}

// ordered converts values so that expressions walk maps in key order. The result and the
// cost of an expression are then always the same.
type ordered struct{ e *evaluation }

// NativeToValue implements types.Adapter. Nested values are converted when they are
// reached.
func (a ordered) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return &orderedMap{Mapper: types.NewStringInterfaceMap(a, v), e: a.e, sorted: func() []ref.Val {
			keys := make([]ref.Val, 0, len(v))
			for key := range v {
				keys = append(keys, types.String(key))
			}
			a.e.sort(keys, func(x, y ref.Val) int { return strings.Compare(string(x.(types.String)), string(y.(types.String))) })
			return keys
		}}
	case map[ref.Val]ref.Val:
		return &orderedMap{Mapper: types.NewRefValMap(a, v), e: a.e, sorted: func() []ref.Val {
			keys := slices.Collect(maps.Keys(v))
			a.e.sort(keys, func(x, y ref.Val) int {
				return cmp.Or(strings.Compare(x.Type().TypeName(), y.Type().TypeName()), strings.Compare(fmt.Sprint(x.Value()), fmt.Sprint(y.Value())))
			})
			return keys
		}}
	case []any:
		return types.NewDynamicList(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// orderedMap is a map whose keys are sorted when it is first walked.
type orderedMap struct {
	traits.Mapper
	e      *evaluation
	sorted func() []ref.Val
	keys   []ref.Val
}

// Iterator implements traits.Iterable.
func (m *orderedMap) Iterator() traits.Iterator {
	if m.keys == nil {
		m.keys = m.sorted()
	}
	return types.NewRefValList(ordered{m.e}, m.keys).Iterator()
}

// part replaces a node of a compiled expression by a node that charges for its work.
func part(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableAttribute:
		return attribute{i}, nil
	case interpreter.InterpretableCall:
		switch i.Function() {
		case operators.Equals, operators.NotEquals, operators.In, overloads.Matches:
			if len(i.Args()) == 2 {
				return comparison{i}, nil
			}
		}
		return call{i}, nil
	case interpreter.InterpretableConstructor:
		if i.Type() == types.MapType {
			return madeMap{i}, nil
		}
	}
	return i, nil
}

// attribute is a variable, or a field of a value.
type attribute struct {
	interpreter.InterpretableAttribute
}

// Exec implements interpreter.InterpretableV2.
func (a attribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := a.InterpretableAttribute.Exec(frame)
	e := evaluationOf(frame)
	e.looked(v)
	if e != nil && types.IsError(v) {
		e.note(a.Attr())
	}
	return v
}

// mostKeys bounds the keys of a map that an error lists.
const mostKeys = 20

// note finds the map in which an attribute's key is missing, and records the map's keys.
func (e *evaluation) note(attr interpreter.Attribute) {
	named, ok := attr.(interpreter.NamespacedAttribute)
	if !ok || len(named.CandidateVariableNames()) == 0 {
		return
	}
	names := named.CandidateVariableNames()
	value := e.native[names[len(names)-1]]
	for _, q := range named.Qualifiers() {
		constant, ok := q.(interpreter.ConstantQualifier)
		if !ok {
			return
		}
		in, isMap := value.(map[string]any)
		key, isText := constant.Value().(types.String)
		if !isMap || !isText {
			return
		}
		if value, ok = in[string(key)]; !ok {
			e.missing, e.keys = string(key), e.list(in)
			return
		}
	}
}

// list names the first keys of a map, in order.
func (e *evaluation) list(m map[string]any) string {
	if len(m) == 0 {
		return "there are no keys"
	}
	e.spend(entryUnits * uint64(len(m)) * uint64(1+bits.Len(uint(len(m)))))
	keys := slices.Sorted(maps.Keys(m))
	more := ""
	if len(keys) > mostKeys {
		keys, more = keys[:mostKeys], fmt.Sprintf(" and %d more", len(m)-mostKeys)
	}
	for i, key := range keys {
		keys[i] = clip(key)
	}
	return "the keys are " + strings.Join(keys, ", ") + more
}

// Eval implements interpreter.Interpretable: branches of a conditional are evaluated by
// Eval.
func (a attribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// call is a function call. Its arguments are charged where they are produced.
type call struct {
	interpreter.InterpretableCall
}

// Exec implements interpreter.InterpretableV2.
func (c call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	e := evaluationOf(frame)
	e.spend(callUnits)
	v := c.InterpretableCall.Exec(frame)
	e.looked(v)
	return v
}

// Eval implements interpreter.Interpretable: branches of a conditional are evaluated by
// Eval.
func (c call) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// comparison is a call of a function whose cost grows with its arguments. This package
// implements these functions, with charges.
type comparison struct {
	interpreter.InterpretableCall
}

// Exec implements interpreter.InterpretableV2.
func (c comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	e := evaluationOf(frame)
	if e == nil {
		return c.InterpretableCall.Exec(frame)
	}
	e.spend(callUnits)
	args := c.Args()
	l, r := args[0].Exec(frame), args[1].Exec(frame)
	switch {
	case types.IsUnknownOrError(l):
		return l
	case types.IsUnknownOrError(r):
		return r
	}
	switch c.Function() {
	case operators.Equals:
		return types.Bool(e.equal(l, r))
	case operators.NotEquals:
		return types.Bool(!e.equal(l, r))
	case operators.In:
		return e.in(l, r)
	}
	return e.matches(l, r)
}

// Eval implements interpreter.Interpretable: branches of a conditional are evaluated by
// Eval.
func (c comparison) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// equal compares by the rules of CEL.
func (e *evaluation) equal(l, r ref.Val) bool {
	e.spend(valueUnits)
	if a, ok := l.(traits.Lister); ok {
		b, ok := r.(traits.Lister)
		if !ok || a.Size() != b.Size() {
			return false
		}
		for i := types.Int(0); i < a.Size().(types.Int); i++ {
			if !e.equal(a.Get(i), b.Get(i)) {
				return false
			}
		}
		return true
	}
	if a, ok := l.(traits.Mapper); ok {
		b, ok := r.(traits.Mapper)
		if !ok || a.Size() != b.Size() {
			return false
		}
		for it := a.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			v, _ := a.Find(key)
			other, found := b.Find(key)
			if !found || !e.equal(v, other) {
				return false
			}
		}
		return true
	}
	e.looked(l)
	return types.Equal(l, r) == types.True
}

// in implements the operator in.
func (e *evaluation) in(v, of ref.Val) ref.Val {
	switch of := of.(type) {
	case traits.Mapper:
		return of.Contains(v)
	case traits.Lister:
		for i := types.Int(0); i < of.Size().(types.Int); i++ {
			if e.equal(of.Get(i), v) {
				return types.True
			}
		}
		return types.False
	}
	return types.MaybeNoSuchOverloadErr(of)
}

// matches implements the function matches, in linear time.
func (e *evaluation) matches(text, expr ref.Val) ref.Val {
	t, ok := text.(types.String)
	p, also := expr.(types.String)
	if !ok || !also {
		return types.MaybeNoSuchOverloadErr(text)
	}
	compiled := e.patterns[string(p)]
	if compiled == nil {
		if len(p) <= mostMatched.Bytes {
			e.spend(pattern.Price(string(p)))
		}
		var err error
		if compiled, err = pattern.Compile(string(p), mostMatched); err != nil {
			return types.WrapErr(err)
		}
		e.patterns[string(p)] = compiled
	}
	found, err := compiled.Match(e.meter, string(t))
	if err != nil {
		e.spend(0) // the meter has ended
	}
	return types.Bool(found)
}

// madeMap is a map literal.
type madeMap struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (m madeMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return inOrder(evaluationOf(frame), m.InterpretableConstructor.Exec(frame))
}

// Eval implements interpreter.Interpretable: branches of a conditional are evaluated by
// Eval.
func (m madeMap) Eval(vars interpreter.Activation) ref.Val { return m.Exec(interpreter.AsFrame(vars)) }

func inOrder(e *evaluation, v ref.Val) ref.Val {
	if entries, ok := v.Value().(map[ref.Val]ref.Val); ok {
		return ordered{e}.NativeToValue(entries)
	}
	return v
}

// evaluate computes an expression. The result is a bool, a text or a list of texts. The
// meter is charged for the work even if the evaluation fails. If the meter ends, the
// evaluation ends with an error that wraps the meter's error.
func (e *expression) evaluate(m *work.Meter, vars map[string]any) (any, error) {
	on := &evaluation{meter: m, native: vars, converted: make(map[string]ref.Val, len(vars)), patterns: map[string]*pattern.Pattern{}}
	out, _, err := e.program.Eval(on)
	if ended := m.Err(); ended != nil {
		if over := (*work.Exceeded)(nil); errors.As(ended, &over) {
			return nil, fmt.Errorf("cost limit exceeded: %w", ended)
		}
		return nil, ended
	}
	if err != nil {
		if on.missing != "" && strings.HasSuffix(err.Error(), "no such key: "+on.missing) {
			return nil, fmt.Errorf("the expression failed: %w; %s", err, on.keys)
		}
		return nil, fmt.Errorf("the expression failed: %w", err)
	}
	return resultOf(out)
}

// resultOf converts the value of an expression for the flow.
func resultOf(out ref.Val) (any, error) {
	switch v := out.(type) {
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case traits.Lister:
		size, ok := v.Size().(types.Int)
		if !ok || size > MaxNodes {
			return nil, fmt.Errorf("the expression gave a list of more than %d names", MaxNodes)
		}
		names := make([]any, 0, size)
		for i := range size {
			name, ok := v.Get(i).(types.String)
			if !ok {
				return nil, errors.New("the expression gave a list whose items are not all names")
			}
			names = append(names, string(name))
		}
		return names, nil
	}
	return nil, fmt.Errorf("the expression gave %s", out.Type().TypeName())
}
