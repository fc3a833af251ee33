package rewrite

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// turns is a module of loops that are paid from a purse, and one that is not; each
// takes the number of turns. Function 0 adds up to 3 and turns; 1 leaves by each
// kind of branch, with results and without; 2 has a loop in a loop, with an arm that
// is dear; 3 calls in its loop; 4 counts down and then divides by what is left.
func turns() guest {
	up := func(local int, by int64) []byte {
		return code(wasmbin.OpLocalGet, local, i32(by), wasmbin.OpI32Add, wasmbin.OpLocalSet, local)
	}
	down := code(wasmbin.OpLocalGet, 0, i32(1), wasmbin.OpI32Sub, wasmbin.OpLocalTee, 0)
	dear := bytes.Repeat(code(wasmbin.OpLocalGet, 1, i32(3), wasmbin.OpI32Mul, wasmbin.OpLocalSet, 1), 60)
	isAt := func(n int64) []byte { return code(wasmbin.OpLocalGet, 0, i32(n), wasmbin.OpI32Sub, wasmbin.OpI32Eqz) }
	const ne = 0x47
	one := code(1, 1, wasmbin.TypeI32)
	return guest{
		types:   []wasmbin.FuncType{{Params: string([]byte{wasmbin.TypeI32}), Results: string([]byte{wasmbin.TypeI32})}},
		exports: []wasmbin.Export{{Name: "add", Kind: wasmbin.KindFunc, Index: 0}, {Name: "leave", Kind: wasmbin.KindFunc, Index: 1}, {Name: "nest", Kind: wasmbin.KindFunc, Index: 2}, {Name: "call", Kind: wasmbin.KindFunc, Index: 3}, {Name: "trap", Kind: wasmbin.KindFunc, Index: 4}},
		funcs: []guestFunc{
			{0, one, code(wasmbin.OpLoop, wasmbin.BlockEmpty, up(1, 3), down, wasmbin.OpBrIf, 0, wasmbin.OpEnd, wasmbin.OpLocalGet, 1)},
			{0, one, code(
				wasmbin.OpBlock, wasmbin.TypeI32,
				wasmbin.OpBlock, wasmbin.BlockEmpty,
				wasmbin.OpBlock, wasmbin.BlockEmpty,
				wasmbin.OpLoop, wasmbin.TypeI32,
				up(1, 1),
				i32(7), isAt(1000), wasmbin.OpBrIf, 3, wasmbin.OpDrop, // with a result
				isAt(2000), wasmbin.OpBrIf, 1,
				isAt(3000), wasmbin.OpIf, wasmbin.BlockEmpty, i32(9), wasmbin.OpReturn, wasmbin.OpEnd,
				isAt(4000), wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpBr, 3, wasmbin.OpEnd,
				wasmbin.OpBlock, wasmbin.BlockEmpty, wasmbin.OpBlock, wasmbin.BlockEmpty,
				wasmbin.OpLocalGet, 0, wasmbin.OpBrTable, 3, 3, 1, 0, 1, // to behind the loop, and to the next turn
				wasmbin.OpEnd, wasmbin.OpEnd,
				down, wasmbin.OpLocalSet, 0, wasmbin.OpLocalGet, 0, i32(500), i32(2), wasmbin.OpI32Mul, wasmbin.OpI32Sub, i32(-1), ne, wasmbin.OpBrIf, 0,
				wasmbin.OpLocalGet, 1,
				wasmbin.OpEnd,
				wasmbin.OpBr, 2,
				wasmbin.OpEnd,
				i32(11), wasmbin.OpBr, 1,
				wasmbin.OpEnd,
				i32(13),
				wasmbin.OpEnd, wasmbin.OpLocalGet, 1, wasmbin.OpI32Mul)},
			{0, code(1, 2, wasmbin.TypeI32), code(
				wasmbin.OpLoop, wasmbin.BlockEmpty,
				i32(5), wasmbin.OpLocalSet, 2,
				wasmbin.OpLoop, wasmbin.BlockEmpty,
				wasmbin.OpLocalGet, 2, i32(1), wasmbin.OpI32And, wasmbin.OpIf, wasmbin.BlockEmpty, dear, wasmbin.OpEnd,
				up(1, 7), wasmbin.OpLocalGet, 2, i32(1), wasmbin.OpI32Sub, wasmbin.OpLocalTee, 2, wasmbin.OpBrIf, 0, wasmbin.OpEnd,
				down, wasmbin.OpBrIf, 0, wasmbin.OpEnd, wasmbin.OpLocalGet, 1)},
			{0, one, code(wasmbin.OpLoop, wasmbin.BlockEmpty, i32(2), wasmbin.OpCall, 0, wasmbin.OpLocalGet, 1, wasmbin.OpI32Add, wasmbin.OpLocalSet, 1, down, wasmbin.OpBrIf, 0, wasmbin.OpEnd, wasmbin.OpLocalGet, 1)},
			{0, one, code(wasmbin.OpLoop, wasmbin.BlockEmpty, up(1, 100), i32(6), down, 0x6d, wasmbin.OpDrop, wasmbin.OpLocalGet, 1, wasmbin.OpBrIf, 0, wasmbin.OpEnd, wasmbin.OpLocalGet, 1)},
		},
	}
}

// TestPurse runs loops as they are, charged turn by turn, and paid from a purse:
// the results are the same, and so is the fuel, unless a trap keeps what was taken
// ahead.
func TestPurse(t *testing.T) {
	wasm := turns().wasm()
	direct := placed
	direct.purse = false
	slow, err := rewriteWith(wasm, Options{}, direct)
	if err != nil {
		t.Fatal(err)
	}
	fast := mustRewrite(t, wasm, Options{})
	if slow.Stats.Regions != 0 || fast.Stats.Regions != 4 {
		t.Errorf("%d and %d loops are paid from a purse, not 0 and 4", slow.Stats.Regions, fast.Stats.Regions)
	}
	for _, r := range []*Result{slow, fast} {
		if err := Verify(r.Wasm); err != nil {
			t.Fatal(err)
		}
	}
	plainHost, slowHost := newMachine(t, compiler), newMachine(t, compiler)
	plain, charged := plainHost.start(t, wasm), slowHost.start(t, slow.Wasm)
	for _, config := range []struct {
		name string
		machine
	}{{"compiler", newMachine(t, compiler)}, {"interpreter", newMachine(t, interpreter)}} {
		paid := config.start(t, fast.Wasm)
		for _, name := range []string{"add", "leave", "nest", "call", "trap"} {
			for _, n := range []uint64{1, 2, 3, 40, 999, 1000, 1001, 1500, 2500, 3100, 5000, 20_000} {
				want, wantErr := plain.ExportedFunction(name).Call(t.Context(), n)
				before, slowBefore := config.total(paid), slowHost.total(charged)
				got, gotErr := paid.ExportedFunction(name).Call(t.Context(), n)
				_, slowErr := charged.ExportedFunction(name).Call(t.Context(), n)
				if !slices.Equal(got, want) || (gotErr == nil) != (wantErr == nil) || (slowErr == nil) != (wantErr == nil) {
					t.Fatalf("%s: %s %d: %d, %v, not %d, %v", config.name, name, n, got, gotErr, want, wantErr)
				}
				units, slowUnits := config.total(paid)-before, slowHost.total(charged)-slowBefore
				if units != slowUnits && (gotErr == nil || units < slowUnits || units > slowUnits+purse) {
					t.Errorf("%s: %s %d: %d units from a purse, %d turn by turn", config.name, name, n, units, slowUnits)
				}
			}
		}
		if config.longest > Slice+MaxCharge || config.refuels == 0 {
			t.Errorf("%s: %d units between two of %d refuels", config.name, config.longest, config.refuels)
		}
	}
}

// TestPurseStops stops a loop that has no end.
func TestPurseStops(t *testing.T) {
	g := guest{
		types:   []wasmbin.FuncType{{}},
		exports: []wasmbin.Export{{Name: "go", Kind: wasmbin.KindFunc, Index: 0}},
		funcs:   []guestFunc{{0, nil, code(wasmbin.OpLoop, wasmbin.BlockEmpty, wasmbin.OpLoop, wasmbin.BlockEmpty, wasmbin.OpBr, 1, wasmbin.OpEnd, wasmbin.OpEnd)}},
	}
	r := mustRewrite(t, g.wasm(), Options{})
	if err := Verify(r.Wasm); err != nil || r.Stats.Regions != 1 {
		t.Fatalf("%d loops are paid from a purse: %v", r.Stats.Regions, err)
	}
	m := newMachine(t, compiler)
	m.stopAfter = 10
	if _, err := m.start(t, r.Wasm).ExportedFunction("go").Call(t.Context()); err == nil || m.refuels != 10 || m.longest > Slice+MaxCharge {
		t.Errorf("%v after %d refuels, %d units apart", err, m.refuels, m.longest)
	}
}

// TestVerifyRefusesPurses changes what the rewriting makes of a loop that is left
// by a branch.
func TestVerifyRefusesPurses(t *testing.T) {
	g := guest{
		types:   []wasmbin.FuncType{{Params: string([]byte{wasmbin.TypeI32}), Results: ""}},
		exports: []wasmbin.Export{{Name: "go", Kind: wasmbin.KindFunc, Index: 0}},
		funcs: []guestFunc{{0, nil, code(wasmbin.OpBlock, wasmbin.BlockEmpty, wasmbin.OpLoop, wasmbin.BlockEmpty,
			wasmbin.OpLocalGet, 0, wasmbin.OpI32Eqz, wasmbin.OpBrIf, 1, wasmbin.OpLocalGet, 0, i32(1), wasmbin.OpI32Sub, wasmbin.OpLocalSet, 0, wasmbin.OpBr, 0, wasmbin.OpEnd, wasmbin.OpEnd)}},
	}
	const local, fuel = 1, 0
	wasm := mustRewrite(t, g.wasm(), Options{}).Wasm
	if err := Verify(wasm); err != nil {
		t.Fatal(err)
	}
	i64 := func(v int64) []byte { return appendInt([]byte{wasmbin.OpI64Const}, v) }
	const units = 2
	lacks := code(wasmbin.OpLocalGet, local, i64(units), wasmbin.OpI64LtS)
	ready := code(wasmbin.OpLocalGet, local, i64(units), wasmbin.OpI64GeS, wasmbin.OpIf, wasmbin.BlockEmpty)
	spend := code(wasmbin.OpLocalGet, local, i64(units), wasmbin.OpI64Sub, wasmbin.OpLocalSet, local)
	refund := code(wasmbin.OpGlobalGet, fuel, wasmbin.OpLocalGet, local, wasmbin.OpI64Add, wasmbin.OpGlobalSet, fuel)
	filled := code(i64(purse), wasmbin.OpLocalSet, local)
	back := code(wasmbin.OpElse, wasmbin.OpBr, 2)
	for _, tt := range []struct {
		name     string
		from, to []byte
	}{
		{"no decrement", spend, nil},
		{"a smaller decrement", spend, code(wasmbin.OpLocalGet, local, i64(units-1), wasmbin.OpI64Sub, wasmbin.OpLocalSet, local)},
		{"a turn of less than it spends", ready, code(wasmbin.OpLocalGet, local, i64(units-1), wasmbin.OpI64GeS, wasmbin.OpIf, wasmbin.BlockEmpty)},
		{"a turn of more than was filled", code(ready, spend), code(wasmbin.OpLocalGet, local, i64(units+1), wasmbin.OpI64GeS, wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpLocalGet, local, i64(units+1), wasmbin.OpI64Sub, wasmbin.OpLocalSet, local)},
		{"a fuller purse", filled, code(i64(purse+1), wasmbin.OpLocalSet, local)},
		{"a purse that is filled for nothing", code(i64(purse), wasmbin.OpI64Sub), code(i64(purse-1), wasmbin.OpI64Sub)},
		{"filled without a check", code(wasmbin.OpGlobalGet, fuel, i64(0), wasmbin.OpI64GeS, wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpElse, wasmbin.OpCall, 0, wasmbin.OpEnd), nil},
		{"filled for less", lacks, code(wasmbin.OpLocalGet, local, i64(units-1), wasmbin.OpI64LtS)},
		{"filled for more than it holds", lacks, code(wasmbin.OpLocalGet, local, i64(purse+1), wasmbin.OpI64LtS)},
		{"a purse that begins full", code(i64(0), wasmbin.OpLocalSet, local), filled},
		{"a purse that begins as it was", code(i64(0), wasmbin.OpLocalSet, local), nil},
		{"given back twice", refund, code(refund, refund)},
		{"more given back", refund, code(wasmbin.OpGlobalGet, fuel, wasmbin.OpLocalGet, local, wasmbin.OpI64Add, i64(1), wasmbin.OpI64Add, wasmbin.OpGlobalSet, fuel)},
		{"not given back", code(wasmbin.OpEnd, refund, wasmbin.OpBr, 1), code(wasmbin.OpEnd, wasmbin.OpBr, 1)},
		{"written elsewhere", spend, code(spend, i64(5), wasmbin.OpLocalSet, local)},
		{"written by tee", spend, code(spend, i64(5), wasmbin.OpLocalTee, local, wasmbin.OpDrop)},
		{"read elsewhere", spend, code(spend, wasmbin.OpLocalGet, local, wasmbin.OpDrop)},
		{"added to", spend, code(spend, wasmbin.OpLocalGet, local, i64(-5), wasmbin.OpI64Sub, wasmbin.OpLocalSet, local)},
		{"a branch out that keeps it", spend, code(spend, wasmbin.OpLocalGet, 0, wasmbin.OpBrIf, 5)},
		{"a turn without a way back", back, code(wasmbin.OpElse, wasmbin.OpNop)},
		{"a turn that goes back to itself", back, code(wasmbin.OpElse, wasmbin.OpBr, 1)},
		{"a turn that goes on", back, code(wasmbin.OpElse)},
		{"a charge in it", spend, code(spend, wasmbin.OpGlobalGet, fuel, i64(5), wasmbin.OpI64Sub, wasmbin.OpGlobalSet, fuel)},
		{"a call in it", spend, code(spend, wasmbin.OpLocalGet, 0, wasmbin.OpCall, 2)},
		{"a loop of its own in it", spend, code(spend, wasmbin.OpLoop, wasmbin.BlockEmpty, wasmbin.OpBr, 0, wasmbin.OpEnd)},
		{"instructions that are not paid", spend, code(spend, bytes.Repeat(code(i32(1), wasmbin.OpDrop, wasmbin.OpLocalGet, 0, wasmbin.OpLocalSet, 0), 20))},
	} {
		m := mustParse(t, wasm)
		if !bytes.Contains(m.Bodies[0].Code, tt.from) {
			t.Errorf("%s: there is no % x in % x", tt.name, tt.from, m.Bodies[0].Code)
			continue
		}
		m.Bodies[0].Code = bytes.Replace(m.Bodies[0].Code, tt.from, tt.to, 1)
		if err := Verify(assembled(m)); !errors.Is(err, ErrUnmetered) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
