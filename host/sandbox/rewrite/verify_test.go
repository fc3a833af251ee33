package rewrite

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// placedPiece is a piece of a function and where it stands in its code.
type placedPiece struct {
	kind     pieceKind
	from, to int
	must     bool // stand there: at the beginning, and behind the head of a loop
	units    int64
}

// pieces takes an own function of a rewritten module to pieces; none of a helper.
func pieces(tb testing.TB, m *wasmbin.Module, own int) (list []placedPiece) {
	tb.Helper()
	v := newVerifier(m)
	if err := errors.Join(v.imports(), v.metersGlobals()); err != nil {
		tb.Fatal(err)
	}
	if v.findHelpers(); v.imported+uint32(own) >= v.helpers {
		return nil
	}
	f := &flow{verifier: v}
	if err := f.skim(v.imported + uint32(own)); err != nil {
		tb.Fatal(err)
	}
	f.begin(v.imported + uint32(own))
	loop, first := false, true
	for at := 0; len(f.r.Rest) > 0; at = len(m.Bodies[own].Code) - len(f.r.Rest) {
		if f.next(); f.err != nil {
			tb.Fatal(f.err)
		}
		if f.kind == pieceInstruction && f.in.Op == wasmbin.OpBrTable {
			for range uint64(f.in.X) + 1 {
				f.r.U32()
			}
		}
		list = append(list, placedPiece{f.kind, at, len(m.Bodies[own].Code) - len(f.r.Rest), first || loop, f.units})
		loop, first = f.kind == pieceInstruction && f.in.Op == wasmbin.OpLoop || loop && f.kind == pieceCharge, false
	}
	return list
}

func without(b []byte, p placedPiece) []byte { return slices.Delete(slices.Clone(b), p.from, p.to) }

// TestVerifyRefusesMissing takes out each charge, check and frame, one by one.
func TestVerifyRefusesMissing(t *testing.T) {
	for name, wasm := range map[string][]byte{"plain": plain().wasm(), "kernels": readFile(t, "testdata", "kernels.wasm")} {
		rewritten := mustRewrite(t, wasm, Options{}).Wasm
		if err := Verify(rewritten); err != nil {
			t.Fatal(err)
		}
		m := mustParse(t, rewritten)
		mutants, refused := 0, 0
		for own := range m.Bodies {
			original := m.Bodies[own].Code
			for _, p := range pieces(t, m, own) {
				if p.kind == pieceInstruction || p.kind == pieceShort {
					continue
				}
				mutants++
				m.Bodies[own].Code = without(original, p)
				if p.kind == pieceTurn { // its else and end stay
					m.Bodies[own].Code = slices.Concat(original[:p.from], code(i32(1), wasmbin.OpIf, wasmbin.BlockEmpty), original[p.to:])
				}
				if err := Verify(assembled(m)); errors.Is(err, ErrUnmetered) {
					refused++
				} else if p.kind != pieceCheck && p.kind != pieceCharge && p.kind != pieceSpend || p.must {
					t.Errorf("%s: accepts function %d without what is at %d of its code, of kind %d: %v", name, own, p.from, p.kind, err)
				}
			}
			m.Bodies[own].Code = original
		}
		t.Logf("%s: %d of %d mutants refused", name, refused, mutants)
	}
}

// TestVerifyRefusesLess makes each charge of the kernels a unit less than half.
func TestVerifyRefusesLess(t *testing.T) {
	m := mustParse(t, mustRewrite(t, readFile(t, "testdata", "kernels.wasm"), Options{}).Wasm)
	fuel := m.Imported(wasmbin.KindGlobal) + uint32(len(m.Globals)) - 2
	for own := range m.Bodies {
		original := m.Bodies[own].Code
		for _, p := range pieces(t, m, own) {
			if p.kind != pieceCharge || p.units < 4 {
				continue
			}
			var a assembler
			a.charge(meter{fuel: fuel}, uint32(p.units/2-1))
			m.Bodies[own].Code = slices.Concat(original[:p.from], a.b, original[p.to:])
			if err := Verify(assembled(m)); !errors.Is(err, ErrUnmetered) {
				t.Errorf("accepts %d units less in function %d: %v", p.units-p.units/2+1, own, err)
			}
		}
		m.Bodies[own].Code = original
	}
}

// TestVerifyRefusesMutants changes the rewritten module of plain: imports are
// functions 0 to 2, own ones 3 to 7, then helpers; globals 2 and 3 are the
// meter's.
func TestVerifyRefusesMutants(t *testing.T) {
	const refuel, overflow, leaf, fuel, depth, helper = 1, 2, 3, 2, 3, 8
	replace := func(own int, from, to []byte) func(*wasmbin.Module) {
		return func(m *wasmbin.Module) {
			b := m.Bodies[own].Code
			if !bytes.Contains(b, from) {
				t.Errorf("function %d has no % x", own, from)
			}
			m.Bodies[own].Code = bytes.Replace(b, from, to, 1)
		}
	}
	section := func(id byte, from, to []byte) func(*wasmbin.Module) {
		return func(m *wasmbin.Module) {
			if !bytes.Contains(m.Sections[id], from) {
				t.Errorf("section %d has no % x", id, from)
			}
			m.Sections[id] = bytes.Replace(m.Sections[id], from, to, 1)
		}
	}
	export := func(e wasmbin.Export) func(*wasmbin.Module) {
		return func(m *wasmbin.Module) { m.Exports = append(m.Exports, e) }
	}
	add := code(wasmbin.OpLocalGet, 0, i32(3), wasmbin.OpI32Add)
	for _, tt := range []struct {
		name string
		do   func(*wasmbin.Module)
	}{
		{"a raw memory.fill", replace(0, add, code(wasmbin.OpLocalGet, 0, i32(0), i32(0), wasmbin.OpLocalGet, 0, wasmbin.OpMisc, wasmbin.MiscMemoryFill, 0))},
		{"a memory.copy beyond a piece", replace(3, i32(Piece), i32(Piece+1))},
		{"a short bulk instruction that is long", replace(3, i32(shortBulk), i32(shortBulk+1))},
		{"a short bulk instruction with another's helper", replace(3, code(wasmbin.OpCall, helper), code(wasmbin.OpCall, helper+1))},
		{"a loop added", replace(0, add, code(wasmbin.OpLoop, wasmbin.BlockEmpty, wasmbin.OpBr, 0, wasmbin.OpEnd, add))},
		{"instructions added", replace(0, add, code(add, bytes.Repeat(code(i32(1), wasmbin.OpI32Add), 10)))},
		{"a call of refuel", replace(0, add, code(add, wasmbin.OpCall, refuel))},
		{"a call of overflow", replace(1, code(wasmbin.OpCall, leaf), code(wasmbin.OpCall, leaf, wasmbin.OpCall, overflow))},
		{"a call without a frame", replace(2, i32(0), code(i32(0), wasmbin.OpCall, leaf+1))},
		{"a return that keeps the frame", replace(1, code(wasmbin.OpBr, 1), code(wasmbin.OpReturn))},
		{"fuel written", replace(0, add, code(wasmbin.OpI64Const, 0, wasmbin.OpGlobalSet, fuel, add))},
		{"fuel read", replace(0, add, code(wasmbin.OpGlobalGet, fuel, wasmbin.OpDrop, add))},
		{"depth written", replace(0, add, code(wasmbin.OpI32Const, 0, wasmbin.OpGlobalSet, depth, add))},
		{"a helper of larger pieces", replace(5, i32(Piece), i32(Piece*2))},
		{"a helper without its check", replace(5, code(wasmbin.OpCall, refuel), code(wasmbin.OpNop, wasmbin.OpNop))},
		{"refuel in the table", section(wasmbin.SectionElement, []byte{7}, []byte{refuel})},
		{"a small leaf in the table", section(wasmbin.SectionElement, []byte{7}, []byte{leaf})},
		{"a helper in the table", section(wasmbin.SectionElement, []byte{7}, []byte{helper})},
		{"imports in another order", section(wasmbin.SectionImport, []byte(FuncRefuel), []byte("refuse"))},
		{"no imports", func(m *wasmbin.Module) { m.Sections[wasmbin.SectionImport] = nil }},
		{"fuel at the beginning", section(wasmbin.SectionGlobal, code(wasmbin.OpI64Const, 0), code(wasmbin.OpI64Const, 1))},
		{"another depth", section(wasmbin.SectionGlobal, i32(DefaultDepth), i32(DefaultDepth-1))},
		{"fuel that is constant", section(wasmbin.SectionGlobal, []byte{wasmbin.TypeI64, 1}, []byte{wasmbin.TypeI64, 0})},
		{"a small leaf exported", export(wasmbin.Export{Name: "leaf", Kind: wasmbin.KindFunc, Index: leaf})},
		{"refuel exported", export(wasmbin.Export{Name: "again", Kind: wasmbin.KindFunc, Index: refuel})},
		{"fuel under another name", export(wasmbin.Export{Name: "f", Kind: wasmbin.KindGlobal, Index: fuel})},
		{"depth under another name", export(wasmbin.Export{Name: GlobalPrefix + "3", Kind: wasmbin.KindGlobal, Index: depth})},
		{"a reserved name for a function", export(wasmbin.Export{Name: GlobalPrefix + "0", Kind: wasmbin.KindFunc, Index: 4})},
		{"a reserved name for a constant", export(wasmbin.Export{Name: GlobalPrefix + "1", Kind: wasmbin.KindGlobal, Index: 1})},
		{"a start function with parameters", export(wasmbin.Export{Name: ExportStart, Kind: wasmbin.KindFunc, Index: 4})},
		{"fuel not exported", func(m *wasmbin.Module) {
			m.Exports = slices.DeleteFunc(m.Exports, func(e wasmbin.Export) bool { return e.Name == ExportFuel })
		}},
		{"a global not exported", func(m *wasmbin.Module) {
			m.Exports = slices.DeleteFunc(m.Exports, func(e wasmbin.Export) bool { return e.Name == GlobalPrefix+"0" })
		}},
	} {
		m := mustParse(t, mustRewrite(t, plain().wasm(), Options{}).Wasm)
		if err := Verify(assembled(m)); err != nil {
			t.Fatal(err)
		}
		if tt.do(m); !errors.Is(Verify(assembled(m)), ErrUnmetered) {
			t.Errorf("%s: %v", tt.name, Verify(assembled(m)))
		}
	}
	if err := Verify(append(mustRewrite(t, plain().wasm(), Options{}).Wasm, 0, 2, 1, 'x')); !errors.Is(err, ErrUnmetered) {
		t.Errorf("a custom section: %v", err)
	}
	if err := Verify([]byte("\x00as")); !errors.Is(err, wasmbin.ErrNotWasm) {
		t.Error(err)
	}
}
