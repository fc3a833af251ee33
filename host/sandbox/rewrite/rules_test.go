package rewrite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// TestDeterminism rewrites the same bytes again, and compares with the digest
// that they had with this Version: who changes what comes out changes both.
func TestDeterminism(t *testing.T) {
	const want = Version + " 976d0f8bf318e6e2"
	wasm, h := readFile(t, "testdata", "kernels.wasm"), sha256.New()
	before := bytes.Clone(wasm)
	for _, original := range [][]byte{wasm, plain().wasm()} {
		for _, o := range []Options{{}, {TableEntries: 10, MemoryPages: 16, Extract: true}} {
			first := mustRewrite(t, original, o)
			for range 3 {
				if again := mustRewrite(t, original, o); !bytes.Equal(again.Wasm, first.Wasm) || fmt.Sprint(again.Stats) != fmt.Sprint(first.Stats) {
					t.Fatal("the same bytes became others")
				}
			}
			h.Write(first.Wasm)
		}
	}
	if got := Version + " " + hex.EncodeToString(h.Sum(nil))[:16]; got != want {
		t.Errorf("%s, not %s: what comes out has changed, so Version has to", got, want)
	}
	if !bytes.Equal(wasm, before) {
		t.Error("the original was changed")
	}
}

// TestClamps has limits of memories and tables, and what they become.
func TestClamps(t *testing.T) {
	limit := func(lowest, most uint64) wasmbin.Limits { return wasmbin.Limits{Min: lowest, Max: most, HasMax: true} }
	for _, tt := range []struct {
		o            Options
		memory       wasmbin.Limits
		tables       []wasmbin.Limits
		wantMemory   wasmbin.Limits
		wantedTables []wasmbin.Limits
	}{
		{Options{}, wasmbin.Limits{Min: 1}, []wasmbin.Limits{{Min: 1}}, wasmbin.Limits{Min: 1}, []wasmbin.Limits{{Min: 1}}},
		{Options{MemoryPages: 8, TableEntries: 10}, wasmbin.Limits{Min: 1}, []wasmbin.Limits{{Min: 4}}, limit(1, 8), []wasmbin.Limits{limit(4, 10)}},
		{Options{MemoryPages: 8, TableEntries: 10}, limit(1, 3), []wasmbin.Limits{limit(1, 7)}, limit(1, 3), []wasmbin.Limits{limit(1, 7)}},
		{Options{MemoryPages: 8, TableEntries: 10}, limit(1, 9), []wasmbin.Limits{limit(1, 1<<31)}, limit(1, 8), []wasmbin.Limits{limit(1, 10)}},
		{Options{MemoryPages: 8, TableEntries: 10}, wasmbin.Limits{Min: 9}, []wasmbin.Limits{{Min: 11}}, limit(9, 9), []wasmbin.Limits{limit(11, 11)}},
		{Options{TableEntries: 10}, wasmbin.Limits{Min: 2}, []wasmbin.Limits{{Min: 1}, {Min: 3}}, wasmbin.Limits{Min: 2}, []wasmbin.Limits{limit(1, 4), limit(3, 6)}},
		{Options{TableEntries: 10}, wasmbin.Limits{Min: 2}, []wasmbin.Limits{{Min: 20}, {Min: 3}, limit(1, 2)}, wasmbin.Limits{Min: 2}, []wasmbin.Limits{limit(20, 20), limit(3, 3), limit(1, 1)}},
	} {
		g := guest{types: []wasmbin.FuncType{{}}, memories: []wasmbin.Limits{tt.memory}}
		for _, l := range tt.tables {
			g.tables = append(g.tables, wasmbin.Table{Type: wasmbin.TypeFuncref, Limits: l})
		}
		m := mustParse(t, mustRewrite(t, g.wasm(), tt.o).Wasm)
		got := []wasmbin.Limits{}
		for _, table := range m.Tables {
			got = append(got, table.Limits)
		}
		if m.Memories[0] != tt.wantMemory || !slices.Equal(got, tt.wantedTables) {
			t.Errorf("%+v of %+v, %+v: %+v, %+v", tt.o, tt.memory, tt.tables, m.Memories[0], got)
		}
	}
}

// TestFallback has what stands in the way of an image.
func TestFallback(t *testing.T) {
	element := code(wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0)
	with := func(change func(g *guest)) guest {
		g := guest{types: []wasmbin.FuncType{{}}, memories: []wasmbin.Limits{{Min: 1}}, tables: []wasmbin.Table{{Type: wasmbin.TypeFuncref, Limits: wasmbin.Limits{Min: 1}}}, funcs: []guestFunc{{}}, globals: []wasmbin.GlobalType{{Type: wasmbin.TypeI64, Mutable: true}}}
		change(&g)
		return g
	}
	does := func(parts ...any) func(*guest) { return func(g *guest) { g.funcs[0].code = code(parts...) } }
	for _, tt := range []struct {
		change func(g *guest)
		want   []string
	}{
		{func(*guest) {}, nil},
		{does(element, wasmbin.OpMisc, wasmbin.MiscMemoryFill, 0, element, wasmbin.OpMisc, wasmbin.MiscMemoryCopy, 0, 0, wasmbin.OpI32Const, 1, wasmbin.OpMemoryGrow, 0, wasmbin.OpDrop), nil},
		{does(wasmbin.OpI32Const, 0, wasmbin.OpRefNull, wasmbin.TypeFuncref, wasmbin.OpTableSet, 0), []string{"function 0 uses table.set"}},
		{does(wasmbin.OpRefNull, wasmbin.TypeFuncref, wasmbin.OpI32Const, 1, wasmbin.OpMisc, wasmbin.MiscTableGrow, 0, wasmbin.OpDrop), []string{"function 0 uses table.grow"}},
		{does(wasmbin.OpI32Const, 0, wasmbin.OpRefNull, wasmbin.TypeFuncref, wasmbin.OpI32Const, 1, wasmbin.OpMisc, wasmbin.MiscTableFill, 0, element, wasmbin.OpMisc, wasmbin.MiscTableCopy, 0, 0), []string{"function 0 uses table.copy", "function 0 uses table.fill"}},
		{func(g *guest) { g.globals[0].Type = wasmbin.TypeFuncref }, []string{"global 0 is a mutable funcref"}},
		{func(g *guest) { g.globals[0].Type = wasmbin.TypeV128 }, []string{"global 0 is a mutable v128"}},
		{func(g *guest) { g.globals[0] = wasmbin.GlobalType{Type: wasmbin.TypeV128, Mutable: false} }, nil},
		{func(g *guest) { g.globals = slices.Repeat(g.globals, maxRestored+1) }, []string{"1001 mutable globals, more than 1000"}},
		{func(g *guest) {
			g.imports = []wasmbin.Import{{Module: "a", Kind: wasmbin.KindGlobal, Global: wasmbin.GlobalType{Type: wasmbin.TypeI32, Mutable: true}}, {Module: "b", Kind: wasmbin.KindTable, Table: wasmbin.Table{Type: wasmbin.TypeFuncref}}}
		}, []string{"a mutable global is imported", "a table is imported"}},
		{func(g *guest) { g.memories, g.imports = nil, []wasmbin.Import{{Module: "a", Kind: wasmbin.KindMemory}} }, []string{"the memory is imported"}},
		{func(g *guest) {
			g.data = []wasmbin.DataSegment{{Offset: code(i32(65535), wasmbin.OpEnd), Bytes: []byte("ab")}}
		}, []string{"data segment 0 is out of range"}},
		{func(g *guest) {
			g.globals[0] = wasmbin.GlobalType{Type: wasmbin.TypeI32, Mutable: false}
			g.data = []wasmbin.DataSegment{{Offset: code(wasmbin.OpGlobalGet, 0, wasmbin.OpEnd)}}
		}, []string{"the offset of data segment 0 is not a plain number"}},
	} {
		r := mustRewrite(t, with(tt.change).wasm(), Options{Extract: true})
		if !slices.Equal(r.Fallback, tt.want) || r.Restorable != (len(tt.want) == 0) {
			t.Errorf("%q, restorable: %v; not %q", r.Fallback, r.Restorable, tt.want)
		}
		if err := Verify(r.Wasm); err != nil {
			t.Errorf("%q: %v", tt.want, err)
		}
	}
}

// TestExtract takes data segments and the start function out of a module that is
// restorable; of another, the start function alone.
func TestExtract(t *testing.T) {
	start := uint32(0)
	base := guest{
		types: []wasmbin.FuncType{{}}, memories: []wasmbin.Limits{{Min: 1}}, funcs: []guestFunc{{}}, start: &start,
		tables: []wasmbin.Table{{Type: wasmbin.TypeFuncref, Limits: wasmbin.Limits{Min: 1}}},
		data: []wasmbin.DataSegment{
			{Offset: code(i32(7), wasmbin.OpEnd), Bytes: []byte("seven")},
			{Flag: wasmbin.DataPassive, Bytes: []byte("passive")},
			{Offset: code(i32(1000), wasmbin.OpEnd), Bytes: []byte("thousand")},
		},
	}
	named := base
	named.counted = true
	named.funcs = []guestFunc{{code: code(wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 3, wasmbin.OpMisc, wasmbin.MiscMemoryInit, 1, 0)}}
	stuck := base
	stuck.funcs = []guestFunc{{code: code(wasmbin.OpI32Const, 0, wasmbin.OpRefNull, wasmbin.TypeFuncref, wasmbin.OpTableSet, 0)}}
	for _, tt := range []struct {
		name     string
		g        guest
		o        Options
		segments int
		sizes    []uint32 // of the segments that stay
		start    bool     // is taken out
	}{
		{"left alone", base, Options{}, 0, []uint32{5, 7, 8}, false},
		{"not named", base, Options{Extract: true}, 2, nil, true},
		{"named", named, Options{Extract: true}, 2, []uint32{0, 7, 0}, true},
		{"not restorable", stuck, Options{Extract: true}, 0, []uint32{5, 7, 8}, true},
	} {
		r := mustRewrite(t, tt.g.wasm(), tt.o)
		m := mustParse(t, r.Wasm)
		if len(r.Segments) != tt.segments || !slices.Equal(m.DataSizes, tt.sizes) {
			t.Errorf("%s: %d segments, %d stay", tt.name, len(r.Segments), m.DataSizes)
		}
		if tt.segments == 2 && (r.Segments[0].Offset != 7 || string(r.Segments[1].Data) != "thousand" || slices.Contains(m.DataActive, true)) {
			t.Errorf("%s: %+v", tt.name, r.Segments)
		}
		if taken := tt.segments > 0; taken != (r.MemoryPages == 1) || taken != (m.Memories[0].Min == 0) {
			t.Errorf("%s: the memory begins with %d pages, and %d are extracted", tt.name, m.Memories[0].Min, r.MemoryPages)
		}
		exported := slices.Contains(m.Exports, wasmbin.Export{Name: ExportStart, Kind: wasmbin.KindFunc, Index: 2})
		if r.HasStart != tt.start || exported != tt.start || (m.Start == nil) != tt.start {
			t.Errorf("%s: start %v, exported %v, %v", tt.name, r.HasStart, exported, m.Start)
		}
		if err := compiles(t, r.Wasm); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestNames: custom sections go, names of functions stay, by their new indices.
func TestNames(t *testing.T) {
	g := plain()
	g.custom = []string{".debug_info", "producers"}
	named := func(last string) *Result {
		names := append(append(appendBytes([]byte{2, 1}, "small"), 2), appendBytes(nil, last)...)
		section := append(appendBytes(nil, nameSection), appendBytes([]byte{nameSubsectionFn}, names)...)
		return mustRewrite(t, appendBytes(append(g.wasm(), wasmbin.SectionCustom), section), Options{})
	}
	if r := named("second"); r.FuncName(3) != "small" || r.FuncName(4) != "go" {
		t.Errorf("%q and %q", r.FuncName(3), r.FuncName(4))
	}
	r := named("\xff") // names nothing
	if r.Stats.Dropped != 2 || r.Stats.DroppedBytes != 12+2+10+2 {
		t.Errorf("dropped: %+v", r.Stats)
	}
	for index, want := range []string{"function 0", "weft:meter.refuel", "weft:meter.overflow", "function 1", "go", "loop", "fill", "function 5", "weft:memory.fill", "weft:table.fill 0", "function 10 of the rewritten module"} {
		if got := r.FuncName(uint32(index)); got != want {
			t.Errorf("function %d is %q, not %q", index, got, want)
		}
	}
	if c := mustParse(t, r.Wasm).Custom; len(c) != 1 || c[0].Name != nameSection {
		t.Errorf("custom sections: %v", c)
	}
	if text := (wasmbin.FuncType{Params: string([]byte{wasmbin.TypeI32, wasmbin.TypeV128}), Results: string([]byte{wasmbin.TypeF64})}).String(); !strings.Contains(text, "(i32, v128) -> (f64)") {
		t.Error(text)
	}
}
