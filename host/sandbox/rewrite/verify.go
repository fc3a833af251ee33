package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// verify.go looks at a rewritten module as a stranger's: what the module as a
// whole has to be. verify_flow.go follows each function's control.

// ErrUnmetered is wrapped for a module that is not metered as the package
// comment says.
var ErrUnmetered = errors.New("not metered")

// Verify proves by structure that a valid module is metered, so that no mistake
// of the placement can go unseen. It shares with the rewriting how instructions
// are decoded and what each costs, and the text of the helpers; it knows nothing
// of how charges were placed. What it proves:
//
//   - The two imports, the two globals and their exports are there, and nothing
//     else names them: neither code, nor exports, elements or references.
//   - Each function begins with a charge, and each loop with a charge and a check,
//     or with those that are paid from a purse. On every way, what is charged is at
//     least what the instructions cost.
//   - A purse begins empty, holds no more than was taken off the fuel, is spent from
//     only as it was filled, is given back once on each way out, and its local is
//     used for nothing else.
//   - On every way through all functions at most MaxCharge units are charged
//     between two checks. What a function may count on when it is called and what
//     it owes when it returns are fixed, so that one function is looked at after
//     the other.
//   - Each function that calls takes its frame off the depth first, at least as
//     much as documented, and gives it back at its only end.
//   - A bulk instruction stands in a helper, moves at most Piece bytes whatever its
//     operands are, or at most shortBulk after a comparison.
//
// It allocates at most 200 bytes for each of the original and 64 KiB, all in all.
//
// # Errors
//
// Those of Parse; others wrap ErrUnmetered and say where and what.
func Verify(wasm []byte) error {
	m, err := Parse(wasm)
	if err != nil {
		return err
	}
	v := newVerifier(m)
	for _, rule := range []func() error{v.imports, v.metersGlobals, v.exports, v.sections, v.functions} {
		if err := rule(); err != nil {
			return fmt.Errorf("%w: %w", ErrUnmetered, err)
		}
	}
	return nil
}

// verifier is one module that is looked at.
type verifier struct {
	m        *Module
	types    []uint32 // of all functions
	imported uint32   // functions, with the two of the meter
	globals  uint32   // imported ones
	meter    meter
	helpers  uint32 // index of the first helper; all from there on are
	helperAt map[uint32]helper
	facts    []facts        // of own functions
	leaves   map[uint32]int // units that small leaves charge at most, by index
	trapping map[uint32]int // the same of functions without calls and checks that never return
}

func newVerifier(m *Module) *verifier {
	return &verifier{m: m, types: m.functionTypes(), imported: m.imported(KindFunc), globals: m.imported(KindGlobal)}
}

// signature is Module.Signature, at once.
func (v *verifier) signature(index uint32) (FuncType, bool) {
	if uint64(index) >= uint64(len(v.types)) {
		return FuncType{}, false
	}
	return v.m.typeAt(v.types[index])
}

func (v *verifier) imports() error {
	at := len(v.m.Imports) - added
	for i := range v.m.Imports {
		im := &v.m.Imports[i]
		if i < at && im.Module != MeterModule {
			continue
		}
		if i < at || im.Module != MeterModule || im.Name != [...]string{FuncRefuel, FuncOverflow}[i-at] || im.Kind != KindFunc {
			return fmt.Errorf("import %d is %s.%s", i, im.Module, im.Name)
		}
		if t, ok := v.m.typeAt(im.Type); !ok || t != (FuncType{}) {
			return fmt.Errorf("import %s.%s is a %v", im.Module, im.Name, t)
		}
	}
	if at < 0 {
		return errors.New("refuel and overflow are not imported")
	}
	v.meter.refuel, v.meter.overflow = v.imported-2, v.imported-1
	return nil
}

// metersGlobals finds fuel and depth: the last two globals.
func (v *verifier) metersGlobals() error {
	n := len(v.m.Globals)
	if n < 2 || v.m.Globals[n-2] != (GlobalType{TypeI64, true}) || v.m.Globals[n-1] != (GlobalType{TypeI32, true}) {
		return errors.New("the last two globals are not fuel and depth")
	}
	v.meter.fuel, v.meter.depth = v.globals+uint32(n)-2, v.globals+uint32(n)-1
	_, entries := v.m.vector(sectionGlobal)
	r, values := &reader{b: entries}, [2][]byte{}
	for range v.m.Globals {
		r.take(2)
		values[0], values[1] = values[1], r.span(r.constant)
	}
	if want := []byte{opI64Const, 0, opEnd}; !bytes.Equal(values[0], want) {
		return errors.New("there is fuel at the beginning")
	}
	if want := append(appendInt([]byte{opI32Const}, DefaultDepth), opEnd); !bytes.Equal(values[1], want) {
		return errors.New("the depth at the beginning is not DefaultDepth")
	}
	return nil
}

// exports looks at the exports: fuel, depth and the mutable globals of the
// original under their names, and the first two under no other.
func (v *verifier) exports() error {
	found, want := 0, 2
	for _, g := range v.m.Globals[:len(v.m.Globals)-2] {
		if g.Mutable {
			want++
		}
	}
	for _, e := range v.m.Exports {
		number, isGlobal := strings.CutPrefix(e.Name, GlobalPrefix)
		own := uint64(e.Index) - uint64(v.globals)
		switch {
		case e.Name == ExportFuel && e.Kind == KindGlobal && e.Index == v.meter.fuel, e.Name == ExportDepth && e.Kind == KindGlobal && e.Index == v.meter.depth:
			found++
		case e.Name == ExportFuel, e.Name == ExportDepth, e.Kind == KindGlobal && (e.Index == v.meter.fuel || e.Index == v.meter.depth):
			return fmt.Errorf("%q is an export of kind %d, %d", e.Name, e.Kind, e.Index)
		case isGlobal:
			if e.Kind != KindGlobal || number != strconv.FormatUint(uint64(e.Index), 10) || own >= uint64(len(v.m.Globals)) || !v.m.Globals[own].Mutable {
				return fmt.Errorf("%q is an export of kind %d, %d", e.Name, e.Kind, e.Index)
			}
			found++
		case e.Name == ExportStart:
			if t, ok := v.m.Signature(e.Index); e.Kind != KindFunc || !ok || t != (FuncType{}) || v.m.Start != nil {
				return fmt.Errorf("%q is not a start function", e.Name)
			}
		}
	}
	if found != want {
		return fmt.Errorf("%d exports of mutable globals, not %d", found, want)
	}
	return nil
}

func (v *verifier) sections() error {
	for _, c := range v.m.Custom {
		if c.Name != nameSection {
			return fmt.Errorf("a custom section %q", c.Name)
		}
	}
	return nil
}

func (v *verifier) functions() error {
	v.findHelpers()
	v.leaves, v.trapping = map[uint32]int{}, map[uint32]int{}
	f := &flow{verifier: v}
	for index := v.imported; index < v.helpers; index++ {
		if err := f.skim(index); err != nil {
			return fmt.Errorf("function %d: %w", index, err)
		}
		if !v.facts[index-v.imported].alone {
			continue
		}
		open, returns, err := f.follow(index)
		if err != nil {
			return fmt.Errorf("function %d: %w", index, err)
		}
		if returns {
			v.leaves[index] = open
		} else {
			v.trapping[index] = open
		}
	}
	for index := v.imported; index < v.helpers; index++ {
		if _, _, err := f.follow(index); err != nil {
			return fmt.Errorf("function %d: %w", index, err)
		}
	}
	return v.references()
}

// references looks at what may be reached other than by a direct call.
func (v *verifier) references() error {
	for index, referenced := range v.m.referenced() {
		if !referenced {
			continue
		}
		index := uint32(index)
		if _, leaf := v.leaves[index]; leaf {
			return fmt.Errorf("function %d has no check, and is exported or referenced", index)
		}
		if index == v.meter.refuel || index == v.meter.overflow || index >= v.helpers {
			return fmt.Errorf("function %d, which is the meter's, is exported or referenced", index)
		}
	}
	return nil
}

// findHelpers finds the helpers, which are the last functions.
func (v *verifier) findHelpers() {
	v.helpers = v.imported + uint32(len(v.m.Funcs))
	v.helperAt = map[uint32]helper{}
	v.facts = make([]facts, len(v.m.Funcs))
	for v.helpers > v.imported {
		h, ok := v.helper(v.helpers - 1)
		if !ok {
			return
		}
		v.helpers--
		v.helperAt[v.helpers] = h
	}
}

// helper finds out whether a function is, byte for byte, the helper of the first
// bulk instruction in it.
func (v *verifier) helper(index uint32) (h helper, ok bool) {
	own := index - v.imported
	body := &v.m.Bodies[own]
	if !bytes.Equal(body.decl, []byte{1, 2, TypeI32}) {
		return h, false
	}
	r, in := &reader{b: body.code}, instruction{}
	for !in.isBulk() {
		if r.next(&in); r.err != nil || in.op == opBrTable || len(r.b) == 0 {
			return h, false
		}
	}
	h = helperOf(&in)
	typ, ok := v.m.typeAt(v.m.Funcs[own])
	want := v.m.helperBody(h, v.meter)
	return h, ok && typ == v.m.helperType(h) && bytes.Equal(want[len(body.decl):], body.code)
}
