package rewrite

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// turns is a module of loops that are paid from a purse, and one that is not; each
// takes the number of turns. Function 0 adds up to 3 and turns; 1 leaves by each
// kind of branch, with results and without; 2 has a loop in a loop, with an arm that
// is dear; 3 calls in its loop; 4 counts down and then divides by what is left.
func turns() guest {
	up := func(local int, by int64) []byte {
		return code(opLocalGet, local, i32(by), opI32Add, opLocalSet, local)
	}
	down := code(opLocalGet, 0, i32(1), opI32Sub, opLocalTee, 0)
	dear := bytes.Repeat(code(opLocalGet, 1, i32(3), opI32Mul, opLocalSet, 1), 60)
	isAt := func(n int64) []byte { return code(opLocalGet, 0, i32(n), opI32Sub, opI32Eqz) }
	const ne = 0x47
	one := code(1, 1, TypeI32)
	return guest{
		types:   []FuncType{{string([]byte{TypeI32}), string([]byte{TypeI32})}},
		exports: []Export{{"add", KindFunc, 0}, {"leave", KindFunc, 1}, {"nest", KindFunc, 2}, {"call", KindFunc, 3}, {"trap", KindFunc, 4}},
		funcs: []guestFunc{
			{0, one, code(opLoop, blockEmpty, up(1, 3), down, opBrIf, 0, opEnd, opLocalGet, 1)},
			{0, one, code(
				opBlock, TypeI32,
				opBlock, blockEmpty,
				opBlock, blockEmpty,
				opLoop, TypeI32,
				up(1, 1),
				i32(7), isAt(1000), opBrIf, 3, opDrop, // with a result
				isAt(2000), opBrIf, 1,
				isAt(3000), opIf, blockEmpty, i32(9), opReturn, opEnd,
				isAt(4000), opIf, blockEmpty, opBr, 3, opEnd,
				opBlock, blockEmpty, opBlock, blockEmpty,
				opLocalGet, 0, opBrTable, 3, 3, 1, 0, 1, // to behind the loop, and to the next turn
				opEnd, opEnd,
				down, opLocalSet, 0, opLocalGet, 0, i32(500), i32(2), opI32Mul, opI32Sub, i32(-1), ne, opBrIf, 0,
				opLocalGet, 1,
				opEnd,
				opBr, 2,
				opEnd,
				i32(11), opBr, 1,
				opEnd,
				i32(13),
				opEnd, opLocalGet, 1, opI32Mul)},
			{0, code(1, 2, TypeI32), code(
				opLoop, blockEmpty,
				i32(5), opLocalSet, 2,
				opLoop, blockEmpty,
				opLocalGet, 2, i32(1), opI32And, opIf, blockEmpty, dear, opEnd,
				up(1, 7), opLocalGet, 2, i32(1), opI32Sub, opLocalTee, 2, opBrIf, 0, opEnd,
				down, opBrIf, 0, opEnd, opLocalGet, 1)},
			{0, one, code(opLoop, blockEmpty, i32(2), opCall, 0, opLocalGet, 1, opI32Add, opLocalSet, 1, down, opBrIf, 0, opEnd, opLocalGet, 1)},
			{0, one, code(opLoop, blockEmpty, up(1, 100), i32(6), down, 0x6d, opDrop, opLocalGet, 1, opBrIf, 0, opEnd, opLocalGet, 1)},
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
		types:   []FuncType{{}},
		exports: []Export{{"go", KindFunc, 0}},
		funcs:   []guestFunc{{0, nil, code(opLoop, blockEmpty, opLoop, blockEmpty, opBr, 1, opEnd, opEnd)}},
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
		types:   []FuncType{{string([]byte{TypeI32}), ""}},
		exports: []Export{{"go", KindFunc, 0}},
		funcs: []guestFunc{{0, nil, code(opBlock, blockEmpty, opLoop, blockEmpty,
			opLocalGet, 0, opI32Eqz, opBrIf, 1, opLocalGet, 0, i32(1), opI32Sub, opLocalSet, 0, opBr, 0, opEnd, opEnd)}},
	}
	const local, fuel = 1, 0
	wasm := mustRewrite(t, g.wasm(), Options{}).Wasm
	if err := Verify(wasm); err != nil {
		t.Fatal(err)
	}
	i64 := func(v int64) []byte { return appendInt([]byte{opI64Const}, v) }
	const units = 2
	lacks := code(opLocalGet, local, i64(units), opI64LtS)
	ready := code(opLocalGet, local, i64(units), opI64GeS, opIf, blockEmpty)
	spend := code(opLocalGet, local, i64(units), opI64Sub, opLocalSet, local)
	refund := code(opGlobalGet, fuel, opLocalGet, local, opI64Add, opGlobalSet, fuel)
	filled := code(i64(purse), opLocalSet, local)
	back := code(opElse, opBr, 2)
	for _, tt := range []struct {
		name     string
		from, to []byte
	}{
		{"no decrement", spend, nil},
		{"a smaller decrement", spend, code(opLocalGet, local, i64(units-1), opI64Sub, opLocalSet, local)},
		{"a turn of less than it spends", ready, code(opLocalGet, local, i64(units-1), opI64GeS, opIf, blockEmpty)},
		{"a turn of more than was filled", code(ready, spend), code(opLocalGet, local, i64(units+1), opI64GeS, opIf, blockEmpty, opLocalGet, local, i64(units+1), opI64Sub, opLocalSet, local)},
		{"a fuller purse", filled, code(i64(purse+1), opLocalSet, local)},
		{"a purse that is filled for nothing", code(i64(purse), opI64Sub), code(i64(purse-1), opI64Sub)},
		{"filled without a check", code(opGlobalGet, fuel, i64(0), opI64GeS, opIf, blockEmpty, opElse, opCall, 0, opEnd), nil},
		{"filled for less", lacks, code(opLocalGet, local, i64(units-1), opI64LtS)},
		{"filled for more than it holds", lacks, code(opLocalGet, local, i64(purse+1), opI64LtS)},
		{"a purse that begins full", code(i64(0), opLocalSet, local), filled},
		{"a purse that begins as it was", code(i64(0), opLocalSet, local), nil},
		{"given back twice", refund, code(refund, refund)},
		{"more given back", refund, code(opGlobalGet, fuel, opLocalGet, local, opI64Add, i64(1), opI64Add, opGlobalSet, fuel)},
		{"not given back", code(opEnd, refund, opBr, 1), code(opEnd, opBr, 1)},
		{"written elsewhere", spend, code(spend, i64(5), opLocalSet, local)},
		{"written by tee", spend, code(spend, i64(5), opLocalTee, local, opDrop)},
		{"read elsewhere", spend, code(spend, opLocalGet, local, opDrop)},
		{"added to", spend, code(spend, opLocalGet, local, i64(-5), opI64Sub, opLocalSet, local)},
		{"a branch out that keeps it", spend, code(spend, opLocalGet, 0, opBrIf, 5)},
		{"a turn without a way back", back, code(opElse, opNop)},
		{"a turn that goes back to itself", back, code(opElse, opBr, 1)},
		{"a turn that goes on", back, code(opElse)},
		{"a charge in it", spend, code(spend, opGlobalGet, fuel, i64(5), opI64Sub, opGlobalSet, fuel)},
		{"a call in it", spend, code(spend, opLocalGet, 0, opCall, 2)},
		{"a loop of its own in it", spend, code(spend, opLoop, blockEmpty, opBr, 0, opEnd)},
		{"instructions that are not paid", spend, code(spend, bytes.Repeat(code(i32(1), opDrop, opLocalGet, 0, opLocalSet, 0), 20))},
	} {
		m := mustParse(t, wasm)
		if !bytes.Contains(m.Bodies[0].code, tt.from) {
			t.Errorf("%s: there is no % x in % x", tt.name, tt.from, m.Bodies[0].code)
			continue
		}
		m.Bodies[0].code = bytes.Replace(m.Bodies[0].code, tt.from, tt.to, 1)
		if err := Verify(m.assembled()); !errors.Is(err, ErrUnmetered) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
