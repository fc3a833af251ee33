package hostcall_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// priced is the beginning of an attempt that pays for the work of its calls.
func priced() engine.AttemptOpen {
	return engine.AttemptOpen{Clock: 500, Seed: [32]byte{7}, Limits: limit.Default(), Prices: state.Prices}
}

// checksText is a workflow whose state has a text with a pattern.
const checksText = `{"abi": 1, "workflow": "w", "events": {}, "state": {"schema": {"type": "object",
	"properties": {"t": {"type": "string", "pattern": "(a?){100}b"}}}},
	"steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["HumanResponseEvent"]}]}`

// The record has the cost of each call. A replay of any beginning pays the same for the
// same calls, and does not repeat the work. An attempt that began without prices pays
// none.
func TestFuelOfCallsReplays(t *testing.T) {
	for _, prices := range []uint64{0, state.Prices} {
		play := func(w *world, a *hostcall.Attempt, stop int) []uint64 {
			var paid []uint64
			g := &guest{a: a, stop: stop}
			a.Afford(1e9, func(uint64) error { return nil })
			g.paid = func() { paid = append(paid, a.Charged()) }
			if err := g.run(); err != nil && !errors.Is(err, errAbandon) {
				t.Fatal(err)
			}
			return paid
		}
		open := priced()
		open.Prices = prices
		w := newWorld(t)
		whole := play(w, w.attempt(open, nil), 0)
		if free := slices.Max(whole) == 0; free != (prices == 0) || len(whole) != programCalls {
			t.Fatalf("prices %d: calls cost %v", prices, whole)
		}
		for stop := 1; stop <= programCalls+1; stop++ {
			w := newWorld(t)
			play(w, w.attempt(open, nil), stop)
			open, record := w.crash()
			if open.Limits == (host.Limits{}) {
				open = priced()
				open.Prices = prices
			}
			if got := play(w, w.attempt(open, record), 0); !slices.Equal(got, whole) {
				t.Fatalf("prices %d, stopped before call %d: calls cost %v, want %v", prices, stop, got, whole)
			}
		}
	}
}

// dear is a host call that takes long for its length, on a state of its own.
type dear struct {
	name string
	make []abi.Edit // the state before
	im   abi.Import
	req  any
	most uint64 // units; 0: as they come
}

func dearCalls() []dear {
	small := make([]any, 20_000)
	for i := range small {
		small[i] = int64(i % 20)
	}
	names := map[string]any{}
	for i := range 5_000 {
		names[fmt.Sprintf("k%d", i)] = int64(1)
	}
	list := []abi.Edit{{Op: abi.OpSet, Path: "l", Value: value(small)}}
	dict := []abi.Edit{{Op: abi.OpSet, Path: "m", Value: value(names)}}
	long := []abi.Edit{{Op: abi.OpSet, Path: "x", Value: value(strings.Repeat("x", 8<<20))}}
	return []dear{
		{"pattern", nil, abi.ImportStateEdit, []any{[]any{"set", "t", strings.Repeat("a", 500)}}, 0},
		{"test", list, abi.ImportStateEdit, []any{[]any{"test", "l", small}}, 0},
		{"put what is there", list, abi.ImportStateEdit, []any{[]any{"set", "l", small}}, 0},
		{"merge", dict, abi.ImportStateEdit, []any{[]any{"merge", "m", names}}, 0},
		{"many edits", list, abi.ImportStateEdit, slices.Repeat([]any{[]any{"set", "l.19000", int64(5)}}, 500), 0},
		{"get", list, abi.ImportStateGet, []any{"l"}, 0},
		{"get too much", long, abi.ImportStateGet, []any{""}, 20_000},
		{"begin too much", long, abi.ImportStateBegin, []any{""}, 20_000},
		{"begin", dict, abi.ImportStateBegin, []any{"m"}, 0},
		{"wait", nil, abi.ImportWait, map[string]any{"type": "HumanResponseEvent", "requirements": map[string]any{"l": small}}, 0},
		{"malformed", nil, abi.ImportStateEdit, []any{small}, 0},
	}
}

// play makes the call in a new attempt that has the given number of units.
func (d *dear) play(tb testing.TB, left uint64, look func(uint64) error) (w *world, a *hostcall.Attempt, err error) {
	tb.Helper()
	w = newWorldOf(tb, checksText)
	if d.make != nil {
		if _, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: 1, N: 1, Request: engine.EditState{Edits: d.make}}); err != nil {
			tb.Fatal(err)
		}
	}
	open := priced()
	open.Limits.CallBytes = 4 << 20
	a = w.attempt(open, nil)
	a.Afford(left, look)
	_, _, _, err = a.Call(d.im, value(d.req), 0)
	return w, a, err
}

// Dear calls are charged for their work, the same each time. A call that the guest cannot
// pay is refused, wherever that is found out, and changes nothing.
func TestDearCallsAreMetered(t *testing.T) {
	for _, d := range dearCalls() {
		most := uint64(0)
		w, a, err := d.play(t, 1e12, func(units uint64) error { most = max(most, units); return nil })
		if err != nil && !errors.Is(err, hostcall.ErrSuspended) {
			t.Errorf("%s: %v", d.name, err)
		}
		paid := a.Charged()
		if d.most == 0 && paid < 100_000 || d.most > 0 && paid > d.most {
			t.Errorf("%s costs %d units", d.name, paid)
		}
		if most > work.Piece {
			t.Errorf("%s: %d units between two looks", d.name, most)
		}
		if _, again, _ := d.play(t, 1e12, nil); again.Charged() != 0 && again.Charged() != paid {
			t.Errorf("%s costs %d units, then %d", d.name, paid, again.Charged())
		}
		before, _, _ := (&dear{make: d.make, im: abi.ImportNow, req: []any{}}).play(t, 1e12, nil)
		for _, left := range []uint64{1, paid / 5, paid / 2, paid - 1} {
			poor, a, err := d.play(t, left, func(uint64) error { return nil })
			over := (*hostcall.LimitError)(nil)
			if !errors.As(err, &over) || over.Err.Code != host.RunFuelExhausted {
				if len(poor.journal) != len(w.journal) { // a debt after the effect ends the guest later
					t.Errorf("%s with %d of %d units: %v", d.name, left, paid, err)
				}
				continue
			}
			if poor.stateNow() != before.stateNow() || len(poor.journal) != len(before.journal) || len(a.Record()) != 0 {
				t.Errorf("%s with %d of %d units changed something", d.name, left, paid)
			}
		}
		stop := errors.New("stop")
		if paid < 400_000 {
			continue
		}
		if _, _, err := d.play(t, 1e12, func(uint64) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s, stopped: %v", d.name, err)
		}
	}
}

// A stop within a commit takes the attempt back to before its edit. The replay is that of
// a guest that makes the whole edit again.
func TestCommitThatIsStoppedIsMadeAgain(t *testing.T) {
	small := make([]any, 20_000)
	for i := range small {
		small[i] = int64(i)
	}
	w := newWorldOf(t, checksText)
	if _, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: 1, N: 1, Request: engine.EditState{Edits: []abi.Edit{{Op: abi.OpSet, Path: "l", Value: value([]any{})}}}}); err != nil {
		t.Fatal(err)
	}
	a := w.attempt(priced(), nil)
	stop := errors.New("stop")
	program := func(look func(uint64) error) error {
		a.Restart()
		a.Afford(1e12, look)
		if _, status, _, err := a.Call(abi.ImportStateBegin, value([]any{"l"}), 0); err != nil || status != abi.StatusOK {
			t.Fatal(status, err)
		}
		_, status, _, err := a.Call(abi.ImportStateCommit, value([]any{small}), 0)
		if err == nil && status != abi.StatusOK {
			t.Fatalf("status %d", status)
		}
		return err
	}
	for after := range 3 {
		looks := 0
		if err := program(func(uint64) error {
			if looks++; looks > after {
				return stop
			}
			return nil
		}); !errors.Is(err, stop) {
			t.Fatalf("after %d looks: %v", after, err)
		}
	}
	if err := program(func(uint64) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n, _ := state.Get(w.eng.State(), must(state.ParsePath("l"))); n.Len() != len(small) {
		t.Errorf("the state has %d elements", n.Len())
	}
}

// asksAll is a workflow whose step may make every host call.
const asksAll = `{"abi": 1, "workflow": "w", "resources": [{"name": "crm", "kind": "http"}], "events": {"Side": {}, "Note": {}},
	"steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent", "Side"], "waits": ["HumanResponseEvent"]},
	          {"name": "side", "accepts": ["Side"], "emits": ["StopEvent"]}]}`

// Every host call has its price, for its kind and its size: with a text of 3 bytes and of
// 1,003. A change of a price is a change of what attempts pay that have begun: it needs a
// new number of [state.Prices].
func TestPriceOfEachCall(t *testing.T) {
	event := func(typ string) func(text string) any {
		return func(text string) any { return []any{typ, map[string]any{"x": text}} }
	}
	side, note := event("Side"), event("Note")
	for _, tt := range []struct {
		im          abi.Import
		req         func(text string) any
		short, long uint64
	}{
		{abi.ImportStateGet, func(x string) any { return []any{"none", x} }, 227, 6740},
		{abi.ImportStateEdit, func(x string) any { return []any{[]any{"set", "a", x}} }, 10_412, 17_426},
		{abi.ImportStateBegin, func(string) any { return []any{""} }, 160, 160},
		{abi.ImportStateCommit, func(x string) any { return []any{map[string]any{"a": x}} }, 8270, 15_284},
		{abi.ImportStateAbort, func(string) any { return []any{} }, 66, 66},
		{abi.ImportSendEvent, func(x string) any { return []any{side(x)} }, 11_268, 18_783},
		{abi.ImportCollect, func(x string) any { return []any{side(x), []any{"Side"}} }, 11_482, 23_005},
		{abi.ImportCollect, func(x string) any { return []any{side(x), []any{"Side", "Side"}} }, 10_930, 17_418},
		{abi.ImportWait, func(x string) any {
			return map[string]any{"type": "HumanResponseEvent", "requirements": map[string]any{"x": x}}
		}, 1737, 84_357},
		{abi.ImportWriteStream, func(x string) any { return []any{note(x)} }, 10_068, 17_583},
		{abi.ImportRunWorkflow, func(x string) any {
			return map[string]any{"workflow": "kid", "event": side(x)}
		}, 9787, 16_267},
		{abi.ImportResource, func(x string) any { return []any{"crm", "add", x} }, 6932, 15_449},
		{abi.ImportSleep, func(string) any { return []any{5} }, 727, 727},
		{abi.ImportNow, func(string) any { return []any{} }, 72, 72},
		{abi.ImportRandom, func(x string) any { return []any{len(x)} }, 145, 5158},
		{abi.ImportLog, func(x string) any { return []any{0, x} }, 1110, 5619},
	} {
		price := func(size int) uint64 {
			w := newWorldOf(t, asksAll)
			a := w.attempt(priced(), nil)
			a.Afford(1e12, nil)
			if tt.im == abi.ImportStateCommit || tt.im == abi.ImportStateAbort {
				if _, status, _, err := a.Call(abi.ImportStateBegin, value([]any{""}), 0); err != nil || status != abi.StatusOK {
					t.Fatal(status, err)
				}
			}
			a.Afford(1e12, func(uint64) error { return nil })
			// Some calls suspend the guest, or need what only a whole host has. They pay before.
			_, _, _, _ = a.Call(tt.im, value(tt.req(strings.Repeat("x", size))), 0)
			return a.Charged()
		}
		if short, long := price(3), price(1003); short != tt.short || long != tt.long {
			t.Errorf("%s costs %d and %d units, want %d and %d", tt.im, short, long, tt.short, tt.long)
		}
	}
}

// generate draws a host call of any kind and shape.
func generate(r *rand.Rand) (abi.Import, any) {
	var draw func(depth int) any
	draw = func(depth int) any {
		switch k := r.IntN(9); {
		case k < 3:
			return int64(r.IntN(100))
		case k < 5:
			return strings.Repeat("ab", r.IntN(1<<r.IntN(12)))
		case k == 5:
			return make([]byte, r.IntN(1<<r.IntN(12)))
		case k == 6 && depth > 0:
			m := map[string]any{}
			for i := range r.IntN(1 << r.IntN(9)) {
				m[fmt.Sprintf("k%d", i)] = draw(depth - 1)
			}
			return m
		case depth > 0:
			l := []any{}
			for range r.IntN(1 << r.IntN(9)) {
				l = append(l, draw(depth-1))
			}
			return l
		}
		return nil
	}
	paths := []string{"", "a", "b", "a.k1", "b.0", "t", "l"}
	path := func() any { return paths[r.IntN(len(paths))] }
	switch r.IntN(10) {
	case 0:
		return abi.ImportStateGet, []any{path(), draw(1)}
	case 1, 2, 3, 4:
		edits := []any{}
		for range 1 + r.IntN(1<<r.IntN(7)) {
			op := []string{"set", "append", "merge", "test", "increment", "set"}[r.IntN(6)]
			edits = append(edits, []any{op, path(), draw(2)})
		}
		return abi.ImportStateEdit, edits
	case 5:
		return abi.ImportStateBegin, []any{path()}
	case 6:
		return abi.ImportStateCommit, []any{draw(2)}
	case 7:
		return abi.ImportLog, []any{int64(0), strings.Repeat("x", r.IntN(3000))}
	case 8:
		return abi.ImportRandom, []any{int64(r.IntN(5000))}
	}
	return abi.ImportWriteStream, []any{[]any{"Note", map[string]any{"x": draw(2)}}}
}

// TestGeneratedCallsAreCharged plays calls of random kinds and shapes twice. They cost
// the same both times, and at least the price of reading the request.
func TestGeneratedCallsAreCharged(t *testing.T) {
	seed := uint64(rand.Uint32())
	if s, err := strconv.ParseUint(os.Getenv("WEFT_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("WEFT_SEED=%d", seed)
	play := func() (paid []uint64, end string) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		a := w.attempt(priced(), nil)
		for i := range 300 {
			im, req := generate(r)
			raw := value(req)
			a.Afford(1e12, func(units uint64) error {
				if units > work.Piece {
					t.Errorf("call %d, %s: %d units between two looks", i, im, units)
				}
				return nil
			})
			if _, _, _, err := a.Call(im, raw, 0); err != nil {
				t.Fatalf("call %d, %s: %v", i, im, err)
			}
			if a.Charged() < uint64(len(raw))/4 {
				t.Errorf("call %d, %s of %d bytes, costs %d units", i, im, len(raw), a.Charged())
			}
			paid = append(paid, a.Charged())
		}
		return paid, w.stateNow()
	}
	paid, end := play()
	if again, same := play(); !slices.Equal(paid, again) || end != same {
		t.Error("the same calls cost another price")
	}
}
