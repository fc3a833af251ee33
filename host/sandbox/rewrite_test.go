package sandbox

import (
	"bytes"
	"math"
	"testing"

	"github.com/weftrun/weft/host"
)

// sectionBytes is a section with the given payload.
func sectionBytes(id byte, payload ...byte) []byte { return appendSection(nil, id, payload) }

// moduleOf makes a module of sections: a memory of one page and its export,
// and what is given.
func moduleOf(sections map[byte][]byte) []byte {
	given := map[byte][]byte{
		sectionMemory: {1, 0, 1},
		sectionExport: {1, 6, 'm', 'e', 'm', 'o', 'r', 'y', kindMemory, 0},
	}
	for id, payload := range sections {
		given[id] = payload
	}
	wasm := append([]byte{}, "\x00asm\x01\x00\x00\x00"...)
	for _, id := range []byte{sectionType, sectionFunc, sectionTable, sectionMemory, sectionGlobal, sectionExport, sectionStart, sectionElement, sectionCount, sectionCode, sectionData} {
		if payload, there := given[id]; there {
			wasm = append(wasm, sectionBytes(id, payload...)...)
		}
	}
	return wasm
}

func TestRestorable(t *testing.T) {
	data := func(segment ...byte) map[byte][]byte {
		return map[byte][]byte{sectionData: append([]byte{1}, segment...)}
	}
	global := func(g ...byte) map[byte][]byte { return map[byte][]byte{sectionGlobal: append([]byte{1}, g...)} }
	tests := []struct {
		name     string
		sections map[byte][]byte
		want     bool
	}{
		{"plain", nil, true},
		{"start", map[byte][]byte{sectionStart: {0}}, false},
		{"active", data(0, opI32Const, 8, opEnd, 2, 'h', 'i'), true},
		{"active, with index", data(2, 0, opI32Const, 8, opEnd, 2, 'h', 'i'), true},
		{"other memory", data(2, 1, opI32Const, 8, opEnd, 2, 'h', 'i'), false},
		{"passive", data(1, 2, 'h', 'i'), true},
		{"unknown kind", data(3, 2, 'h', 'i'), false},
		{"offset of a global", data(0, 0x23, 0, opEnd, 2, 'h', 'i'), false},
		{"offset of two instructions", data(0, opI32Const, 8, opI32Const, 8, 0x6a, opEnd, 2, 'h', 'i'), false},
		{"last byte", data(0, opI32Const, 0xff, 0xff, 3, opEnd, 1, 'h'), true},
		{"beyond", data(0, opI32Const, 0xff, 0xff, 3, opEnd, 2, 'h', 'i'), false},
		{"negative offset", data(0, opI32Const, 0x7f, opEnd, 0), false},
		{"cut", data(0, opI32Const, 8, opEnd, 9, 'h', 'i'), false},
		{"bytes left", data(1, 1, 'h', 'i'), false},
		{"count", map[byte][]byte{sectionCount: {1}, sectionData: {1, 1, 1, 'h'}}, true},
		{"wrong count", map[byte][]byte{sectionCount: {2}, sectionData: {1, 1, 1, 'h'}}, false},
		{"count alone", map[byte][]byte{sectionCount: {0}}, true},
		{"mutable i32", global(typeI32, 1, opI32Const, 0x80, 0, opEnd), true},
		{"mutable f64", global(typeF64, 1, opF64Const, 11, 11, 11, 11, 11, 11, 11, 11, opEnd), true},
		{"mutable vector", global(typeV128, 1, opVector, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, opEnd), false},
		{"constant vector", global(typeV128, 0, opVector, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, opEnd), true},
		{"mutable reference", global(typeFuncref, 1, opRefNull, typeFuncref, opEnd), false},
		{"constant reference", global(typeFuncref, 0, opRefNull, typeFuncref, opEnd), true},
		{"mutability", global(typeI32, 2, opI32Const, 0, opEnd), false},
		{"unknown constant", global(typeI32, 0, 0xfb, 0, opEnd), false},
		{"no end", global(typeI32, 0, opI32Const, 0), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wasm := moduleOf(tt.sections)
			m, err := readModule(wasm)
			if err != nil {
				t.Fatal(err)
			}
			r, ok := restorable(wasm, m)
			if ok != tt.want || ok != r.restorable {
				t.Fatalf("restorable = %v, want %v", ok, tt.want)
			}
			if !ok {
				return
			}
			again, err := readModule(r.wasm)
			if err != nil {
				t.Fatalf("the rewritten module: %v", err)
			}
			if again.sections[sectionData].there() || again.sections[sectionCount].there() || len(again.exports) != 1+len(r.globals) {
				t.Errorf("rewritten to % x", r.wasm)
			}
		})
	}
}

// Only what writes tables or uses segments, and what is not known, is in the
// way of an image.
func TestInstructions(t *testing.T) {
	tests := []struct {
		name string
		code []byte // of one function, without locals
		want bool
	}{
		{"empty", []byte{opEnd}, true},
		{"blocks", []byte{opBlock, 0x40, opLoop, typeI64, opIf, 5, opEnd, opEnd, 0x05, opBlock, 0x80, 0x01, opEnd, opEnd}, true},
		{"block of a negative index", []byte{opBlock, 0x41, opEnd, opEnd}, false},
		{"block of a spelt out type", []byte{opBlock, 0xff, 0x7f, opEnd, opEnd}, false},
		{"br_table", []byte{opBrTable, 2, 0, 0x81, 0x01, 0, opEnd}, true},
		{"table.set as an operand", []byte{opI32Const, 0x26, opLocalGet, 0x26, opCall, 0x26, 0x28, 2, 0x26, opF32Const, 0x26, 0x26, 0x26, 0x26, opEnd}, true},
		{"table.get", []byte{opTableGet, 0, opEnd}, true},
		{"table.set", []byte{0x26, 0, opEnd}, false},
		{"calls", []byte{opCall, 0x80, 0x02, opCallIndirect, 1, 0, opEnd}, true},
		{"tail call", []byte{0x12, 0, opEnd}, false},
		{"throw", []byte{0x08, 0, opEnd}, false},
		{"select", []byte{opSelectTyped, 1, typeI32, 0x1b, opEnd}, true},
		{"select of two", []byte{opSelectTyped, 2, typeI32, typeI32, opEnd}, false},
		{"constants", []byte{opI64Const, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, opF64Const, 1, 2, 3, 4, 5, 6, 7, 8, opEnd}, true},
		{"a number too long", []byte{opI64Const, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, opEnd}, false},
		{"a number cut off", []byte{opI32Const, 0xff}, false},
		{"memory", []byte{opMemorySize, 0, opMemoryGrow, 0, opMisc, miscMemoryCopy, 0, 0, opMisc, miscMemoryFill, 0, opMisc, 3, opEnd}, true},
		{"memory.grow of another", []byte{opMemoryGrow, 1, opEnd}, false},
		{"memory.init", []byte{opMisc, 8, 0, 0, opEnd}, false},
		{"data.drop", []byte{opMisc, 9, 0, opEnd}, false},
		{"table.init", []byte{opMisc, 12, 0, 0, opEnd}, false},
		{"elem.drop", []byte{opMisc, 13, 0, opEnd}, false},
		{"table.copy", []byte{opMisc, 14, 0, 0, opEnd}, false},
		{"table.grow", []byte{opMisc, 15, 0, opEnd}, false},
		{"table.size", []byte{opMisc, miscTableSize, 0, opEnd}, true},
		{"table.fill", []byte{opMisc, 17, 0, opEnd}, false},
		{"table.fill, spelt out", []byte{opMisc, 0x91, 0x00, 0, opEnd}, false},
		{"references", []byte{opRefNull, typeFuncref, opRefIsNull, opRefFunc, 3, opEnd}, true},
		{"reference of another kind", []byte{opRefNull, 0x69, opEnd}, false},
		{"vectors", []byte{opVector, 0, 4, 0, opVector, 13, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, opVector, 21, 3, opVector, 84, 0, 0, 7, opVector, 0x80, 1, opVector, 110, opEnd}, true},
		{"a vector number spelt out", []byte{opVector, 0x80, 0x26, opEnd}, false},
		{"atomics", []byte{0xfe, 0, 0, 0, opEnd}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := append([]byte{1, 2, typeI64}, tt.code...) // one group of locals
			code := append([]byte{1, byte(len(body))}, body...)
			if got := writesOnlyMemoryAndGlobals(code); got != tt.want {
				t.Errorf("= %v, want %v", got, tt.want)
			}
			if writesOnlyMemoryAndGlobals(append(code, 0)) {
				t.Error("bytes after the last function are accepted")
			}
		})
	}
}

func TestSignedNumbers(t *testing.T) {
	for _, tt := range []struct {
		b    []byte
		want int32
		fits bool
	}{
		{[]byte{0}, 0, true},
		{[]byte{0x3f}, 63, true},
		{[]byte{0x40}, -64, true},
		{[]byte{0x7f}, -1, true},
		{[]byte{0x80, 0x01}, 128, true},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x07}, math.MaxInt32, true},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x78}, math.MinInt32, true},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x08}, 0, false},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, 0, false},
		{[]byte{0x80}, 0, false},
	} {
		bits, fits := (&binaryReader{b: tt.b}).i32()
		if fits != tt.fits || fits && int32(bits) != tt.want {
			t.Errorf("% x = %d, %v; want %d, %v", tt.b, int32(bits), fits, tt.want, tt.fits)
		}
	}
}

// The digest of what runs is that of the way it runs, and says whether a
// module changed.
func TestRewrittenIsWhatRuns(t *testing.T) {
	image, reference := newBench(t, nil), newBench(t, func(c *Config) { c.Reference = true })
	wasm := hostile(t, "remember")
	m, problems := inspect(wasm, image.limits)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := image.rewrite(wasm, m)
	if !r.restorable || len(r.segments) != 4 || len(r.globals) != 4 || image.Rewritten(wasm) != rewrittenDigest(r.wasm) {
		t.Errorf("rewritten: %d segments, globals %q", len(r.segments), r.globals)
	}
	if bytes.Contains(r.wasm, []byte("twelve bytes")) || !bytes.Contains(r.wasm, []byte("weft:global:3")) {
		t.Errorf("rewritten to %q", r.wasm)
	}
	if reference.Rewritten(wasm) != rewrittenDigest(wasm) {
		t.Error("the reference way changes the module")
	}
}

// Whatever the bytes, taking a module apart gives a module again, or leaves it.
func FuzzRestorable(f *testing.F) {
	for _, name := range []string{"good", "remember", "remember_table", "remember_vector", "data_range"} {
		f.Add(hostile(f, name))
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, problems := inspect(wasm, host.DefaultLimits())
		if len(problems) > 0 {
			return
		}
		r, ok := restorable(wasm, m)
		if !ok {
			return
		}
		again, err := readModule(r.wasm)
		if err != nil {
			t.Fatalf("the rewritten module: %v", err)
		}
		if len(again.exports) != len(m.exports)+len(r.globals) || len(again.bodies) != len(m.bodies) || again.sections[sectionData].there() {
			t.Errorf("rewritten to % x", r.wasm)
		}
		for _, s := range r.segments {
			if uint64(s.offset)+uint64(len(s.data)) > m.memories[0].min*wasmPageBytes {
				t.Errorf("a segment of %d bytes at %d", len(s.data), s.offset)
			}
		}
	})
}
