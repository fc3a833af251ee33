package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// verify.go checks a rewritten module as if it were hostile: the properties of the whole
// module. verify_flow.go follows the control flow of each function.

// ErrUnmetered is wrapped for a module that is not metered as the package comment
// describes.
var ErrUnmetered = errors.New("not metered")

// Verify proves by structure that a valid module is metered, so that a mistake of the
// placement cannot stay unnoticed. It shares three things with the rewriting: how
// instructions are decoded, what each costs, and the code of the helpers. It does not
// depend on how charges were placed. Verify proves:
//
//   - The two imports, the two globals and their exports exist, and nothing else refers
//     to them: neither code, exports, elements nor references.
//   - Each function begins with a charge, and each loop with a charge and a check, or
//     with their forms for a purse. On every path, the charges are at least the cost of
//     the instructions.
//   - A purse begins empty and holds no more than was taken off the fuel. Each spending
//     is covered by the last filling. Each way out gives the purse back exactly once. The
//     purse's local has no other use.
//   - On every path through all functions, at most MaxCharge units are charged between
//     two checks. Fixed bounds hold for the units that may be unchecked when a function
//     is called and when it returns, so functions can be checked one at a time.
//   - Each function that calls takes its frame off the depth first, at least the
//     documented size, and gives the frame back at its only end.
//   - A bulk instruction is either in a helper and moves at most Piece bytes whatever its
//     operands are, or follows a comparison and moves at most shortBulk bytes.
//
// Verify allocates at most 200 bytes for each byte of the original, plus 64 KiB.
//
// # Errors
//
// Those of Parse; other errors wrap ErrUnmetered and say where the fault is and what it
// is.
func Verify(wasm []byte) error {
	m, err := wasmbin.Parse(wasm)
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

// verifier is the state of checking one module.
type verifier struct {
	m        *wasmbin.Module
	types    []uint32 // type indices of all functions
	imported uint32   // imported functions, including the meter's two
	globals  uint32   // imported globals
	meter    meter
	helpers  uint32 // index of the first helper; all later functions are helpers
	helperAt map[uint32]helper
	facts    []facts        // of the module's own functions
	leaves   map[uint32]int // units that small leaves charge at most, by function index
	trapping map[uint32]int // the same for functions without calls and checks that never return
}

func newVerifier(m *wasmbin.Module) *verifier {
	return &verifier{m: m, types: m.FunctionTypes(), imported: m.Imported(wasmbin.KindFunc), globals: m.Imported(wasmbin.KindGlobal)}
}

// signature is Module.Signature without a search.
func (v *verifier) signature(index uint32) (wasmbin.FuncType, bool) {
	if uint64(index) >= uint64(len(v.types)) {
		return wasmbin.FuncType{}, false
	}
	return v.m.TypeAt(v.types[index])
}

func (v *verifier) imports() error {
	at := len(v.m.Imports) - added
	for i := range v.m.Imports {
		im := &v.m.Imports[i]
		if i < at && im.Module != MeterModule {
			continue
		}
		if i < at || im.Module != MeterModule || im.Name != [...]string{FuncRefuel, FuncOverflow}[i-at] || im.Kind != wasmbin.KindFunc {
			return fmt.Errorf("import %d is %s.%s", i, im.Module, im.Name)
		}
		if t, ok := v.m.TypeAt(im.Type); !ok || t != (wasmbin.FuncType{}) {
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
	if n < 2 || v.m.Globals[n-2] != (wasmbin.GlobalType{Type: wasmbin.TypeI64, Mutable: true}) || v.m.Globals[n-1] != (wasmbin.GlobalType{Type: wasmbin.TypeI32, Mutable: true}) {
		return errors.New("the last two globals are not fuel and depth")
	}
	v.meter.fuel, v.meter.depth = v.globals+uint32(n)-2, v.globals+uint32(n)-1
	_, entries := v.m.Vector(wasmbin.SectionGlobal)
	r, values := &wasmbin.Reader{Rest: entries}, [2][]byte{}
	for range v.m.Globals {
		r.Take(2)
		values[0], values[1] = values[1], r.Span(r.Constant)
	}
	if want := []byte{wasmbin.OpI64Const, 0, wasmbin.OpEnd}; !bytes.Equal(values[0], want) {
		return errors.New("there is fuel at the beginning")
	}
	if want := append(appendInt([]byte{wasmbin.OpI32Const}, DefaultDepth), wasmbin.OpEnd); !bytes.Equal(values[1], want) {
		return errors.New("the depth at the beginning is not DefaultDepth")
	}
	return nil
}

// exports checks the exports. Fuel, depth and the original's mutable globals must be
// exported under their names, and fuel and depth under no other names.
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
		case e.Name == ExportFuel && e.Kind == wasmbin.KindGlobal && e.Index == v.meter.fuel, e.Name == ExportDepth && e.Kind == wasmbin.KindGlobal && e.Index == v.meter.depth:
			found++
		case e.Name == ExportFuel, e.Name == ExportDepth, e.Kind == wasmbin.KindGlobal && (e.Index == v.meter.fuel || e.Index == v.meter.depth):
			return fmt.Errorf("%q is an export of kind %d, %d", e.Name, e.Kind, e.Index)
		case isGlobal:
			if e.Kind != wasmbin.KindGlobal || number != strconv.FormatUint(uint64(e.Index), 10) || own >= uint64(len(v.m.Globals)) || !v.m.Globals[own].Mutable {
				return fmt.Errorf("%q is an export of kind %d, %d", e.Name, e.Kind, e.Index)
			}
			found++
		case e.Name == ExportStart:
			if t, ok := v.m.Signature(e.Index); e.Kind != wasmbin.KindFunc || !ok || t != (wasmbin.FuncType{}) || v.m.Start != nil {
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

// references checks what is reachable by other means than a direct call.
func (v *verifier) references() error {
	for index, referenced := range v.m.Referenced() {
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

// helper reports whether a function equals, byte for byte, the helper of the first bulk
// instruction in it.
func (v *verifier) helper(index uint32) (h helper, ok bool) {
	own := index - v.imported
	body := &v.m.Bodies[own]
	if !bytes.Equal(body.Decl, []byte{1, 2, wasmbin.TypeI32}) {
		return h, false
	}
	r, in := &wasmbin.Reader{Rest: body.Code}, wasmbin.Instruction{}
	for !in.IsBulk() {
		if r.Next(&in); r.Err != nil || in.Op == wasmbin.OpBrTable || len(r.Rest) == 0 {
			return h, false
		}
	}
	h = helperOf(&in)
	typ, ok := v.m.TypeAt(v.m.Funcs[own])
	want := helperBody(v.m, h, v.meter)
	return h, ok && typ == helperType(v.m, h) && bytes.Equal(want[len(body.Decl):], body.Code)
}
