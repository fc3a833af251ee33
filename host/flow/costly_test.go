package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/work"
)

// large is a state with large things of every kind.
func large() map[string]any {
	many, list, deep := map[string]any{}, []any{}, map[string]any{}
	for i := range 20_000 {
		many[fmt.Sprintf("key%d", i)] = int64(i)
	}
	for i := range 2_000 {
		list = append(list, int64(i))
	}
	for i := range 200 {
		deep[fmt.Sprint(i)] = many
	}
	return map[string]any{
		"many": many, "list": list, "deep": deep, "same": deep,
		"text": strings.Repeat("é", 100_000), "expr": "(a?){200}b", "as": strings.Repeat("a", 20_000),
	}
}

// dearExpressions take long for what the language says that they cost.
var dearExpressions = []string{
	`session_state.list.all(x, 'key1' in session_state.many)`,
	`session_state.deep == session_state.same`,
	`session_state.deep != session_state.same`,
	`[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, size(session_state.text) > 0)`,
	`session_state.as.matches(session_state.expr)`,
	`session_state.as.matches('(a?){200}b')`,
	`session_state.list.exists(x, x in session_state.list && x < 0)`,
	`session_state.list.all(x, session_state.text.startsWith('é'))`,
	`session_state.list.all(x, session_state.text != 'x')`,
	`session_state.deep.all(k, session_state.deep[k].exists(j, j == 'none') || true)`,
	`session_state.deep in [session_state.same]`,
	`session_state.list.map(x, session_state.text + session_state.text).size() > 0`,
	`session_state.list.all(x, session_state.deep == session_state.same ? 'a' == 'b' : true)`,
	`session_state.list.all(x, true ? session_state.text + 'x' != session_state.text : false)`,
	`session_state.many.map(k, k) == session_state.many.map(k, k)`,
	`session_state.list.filter(x, 'key1' in session_state.many).filter(y, has(session_state.many.key7)).size() > 0`,
}

// Dear expressions are charged, the same each time, and end wherever their meter does.
func TestDearExpressionsAreMetered(t *testing.T) {
	vars := map[string]any{varState: large()}
	stop := errors.New("stop")
	for _, text := range dearExpressions {
		e, err := compile(text, exprCondition)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		most := uint64(0)
		run := func(limit uint64, hook func(uint64) error) (any, uint64, error) {
			m := work.New(limit, hook)
			v, err := e.evaluate(m, vars)
			return v, m.Spent(), err
		}
		const enough = 30_000_000
		_, spent, err := run(enough, func(units uint64) error { most = max(most, units); return nil })
		if over := (*work.Exceeded)(nil); err != nil && !errors.As(err, &over) {
			t.Errorf("%s: %v", text, err)
		}
		if spent < 400_000 {
			t.Errorf("%s takes %d units", text, spent)
		}
		if most > work.Piece {
			t.Errorf("%s: %d units between two looks", text, most)
		}
		if _, again, _ := run(enough, nil); again != spent {
			t.Errorf("%s takes %d units, then %d", text, spent, again)
		}
		if _, _, err := run(0, func(uint64) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s, stopped: %v", text, err)
		}
		over := (*work.Exceeded)(nil)
		if _, _, err := run(spent/2, nil); !errors.As(err, &over) {
			t.Errorf("%s with half of its units: %v", text, err)
		}
	}
}

// A look at a map does not put it in order, and a variable is converted once.
func TestLookingAtALargeMapIsCheap(t *testing.T) {
	e, err := compile(`'key1' in session_state.many && session_state.many.key7 == 7`, exprCondition)
	if err != nil {
		t.Fatal(err)
	}
	m := work.New(0, nil)
	v, err := e.evaluate(m, map[string]any{varState: large()})
	if v != true || err != nil || m.Spent() > 5_000 {
		t.Errorf("%v, %v, %d units", v, err, m.Spent())
	}
}

// What is compared here comes to what the language says.
func TestComparisonsOfTheLanguage(t *testing.T) {
	for text, want := range map[string]bool{
		`[1, 2.0, 'a'] == [1.0, 2, 'a']`: true, `[1] == [1, 2]`: false, `{'a': [1, {'b': null}]} == {'a': [1.0, {'b': null}]}`: true,
		`{'a': 1} == {'b': 1}`: false, `{'a': 1} != {'a': 2}`: true, `dyn(2.0) in [1, 2]`: true, `'b' in {'a': 1}`: false, `'a' in {'a': 1}`: true,
		`dyn([1]) in [[1.0]]`: true, `null == session_state.none`: true, `session_state.l == [1, 'x']`: true, `session_state.m == {'k': {'n': 1.5}}`: true,
		`session_state.l != dyn('x')`: true, `'abc'.matches('^a.c$')`: true, `'abc'.matches('b$')`: false, `matches('x1', '[0-9]')`: true,
		`session_state.m.k in [{'n': 1.5}]`: true, `has(session_state.m.k) && !has(session_state.m.x)`: true,
	} {
		e, err := compile(text, exprCondition)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := e.evaluate(work.New(0, nil), map[string]any{varState: map[string]any{
			"none": nil, "l": []any{int64(1), "x"}, "m": map[string]any{"k": map[string]any{"n": 1.5}},
		}})
		if got != want || err != nil {
			t.Errorf("%s = %v, %v", text, got, err)
		}
	}
}

// A flow that is not wanted any more ends within an expression, as does one whose time
// is up, and what it took is on its bill.
func TestExpressionsEndWithTheirRun(t *testing.T) {
	text := `{"steps": [{"name": "c", "type": "condition", "evaluator": "session_state.many.map(x, session_state.many.map(y, size(y)).size()).size() > 1", "steps": [{"name": "z", "function": "p.f"}]}]}`
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d, problems := Parse(nil, raw)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	i := slices.IndexFunc(d.Nodes(), func(n *Node) bool { return n.Test != nil })
	stop := errors.New("stop")
	for _, err := range []error{stop, ErrOverdue} {
		dr := &driver{limit: 1e12, prices: 1, token: &theater{}, stopped: func() error { return err }}
		m := dr.meter()
		_, got := d.Nodes()[i].Test.expr.evaluate(m, map[string]any{varState: large()})
		paid := dr.pay(m)
		if !errors.Is(got, err) || !errors.Is(paid, err) || dr.fuel < work.Look || dr.fuel > work.Piece {
			t.Errorf("%v: %v, %v after %d units", err, got, paid, dr.fuel)
		}
	}
	poor := &driver{limit: 1_000_000, prices: 1, token: &theater{}}
	m := poor.meter()
	_, _ = d.Nodes()[i].Test.expr.evaluate(m, map[string]any{varState: large()})
	if out := (*failure)(nil); !errors.As(poor.pay(m), &out) || out.code != host.RunFuelExhausted {
		t.Errorf("an expression beyond the fuel: %v", out)
	}
}
