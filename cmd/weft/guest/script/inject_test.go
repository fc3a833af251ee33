package script

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// tinyEngine is a module with two pages of memory, one data segment, and the bundle's
// struct at the address 1040.
func tinyEngine() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = appendSection(out, 1, []byte{0})
	out = appendSection(out, sectionMemory, []byte{1, 0, 2})
	out = appendSection(out, sectionGlobal, []byte{2,
		0x7f, 1, opI32Const, 0x80, 0x80, 4, opEnd, // the stack pointer
		0x7f, 0, opI32Const, 0x90, 8, opEnd})
	exports := []byte{2, 6}
	exports = append(append(exports, "memory"...), 2, 0, byte(len(bundleExport)))
	exports = append(append(exports, bundleExport...), 3, 1)
	out = appendSection(out, sectionExport, exports)
	out = appendSection(out, sectionDataCount, []byte{1})
	return appendSection(out, sectionData, appendSegment([]byte{1}, 1024, bytes.Repeat([]byte{1, 0, 0, 0}, 8)))
}

// The module that Inject returns holds the script, the map, the struct and the custom
// section, and the rest of the engine unchanged.
func TestInject(t *testing.T) {
	engine := tinyEngine()
	before := bytes.Clone(engine)
	source := bytes.Repeat([]byte("x"), pageSize)
	got, err := Inject(engine, source, []byte("lines"), []byte(`{"language":"ts"}`))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(engine, before) {
		t.Error("Inject has changed its argument")
	}
	sections, err := split(got)
	if err != nil {
		t.Fatal(err)
	}
	want := map[byte][]byte{
		1:                {0},
		sectionMemory:    {1, 0, 4}, // two pages for 65,542 bytes
		sectionGlobal:    mustSplit(t, engine)[2].body,
		sectionExport:    append([]byte{1, 6}, "memory\x02\x00"...),
		sectionDataCount: {3},
	}
	header := []byte{}
	for _, n := range []uint32{2 * pageSize, pageSize, 3*pageSize + 1, 5} {
		header = binary.LittleEndian.AppendUint32(header, n)
	}
	data := appendSegment([]byte{3}, 1024, bytes.Repeat([]byte{1, 0, 0, 0}, 8))
	data = appendSegment(data, 2*pageSize, append(append(bytes.Clone(source), 0), "lines"...))
	want[sectionData] = appendSegment(data, 1040, header)
	want[sectionCustom] = append([]byte{byte(len(Section))}, Section+`{"language":"ts"}`...)
	for _, s := range sections {
		if !bytes.Equal(s.body, want[s.id]) {
			t.Errorf("section %d is %.80q, want %.80q", s.id, s.body, want[s.id])
		}
		delete(want, s.id)
	}
	if len(want) != 0 {
		t.Errorf("sections %v are missing", want)
	}
	if info := Info(got); string(info) != `{"language":"ts"}` {
		t.Errorf("Info gives %q", info)
	}
	if _, err := Inject(got, nil, nil, nil); !errors.Is(err, ErrEngine) {
		t.Errorf("a module with a script is taken as an engine: %v", err)
	}
}

func mustSplit(t *testing.T, wasm []byte) []section {
	t.Helper()
	sections, err := split(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return sections
}

// Inject refuses a script that the memory cannot hold.
func TestInjectFull(t *testing.T) {
	engine := bytes.Replace(tinyEngine(), appendSection(nil, sectionMemory, []byte{1, 0, 2}), appendSection(nil, sectionMemory, []byte{1, 1, 2, 3}), 1)
	if _, err := Inject(engine, make([]byte, pageSize-1), nil, nil); err != nil {
		t.Errorf("a page that fits: %v", err)
	}
	if _, err := Inject(engine, make([]byte, pageSize), nil, nil); err == nil || errors.Is(err, ErrEngine) {
		t.Errorf("a page and a byte: %v", err)
	}
}

// Inject never panics. What it accepts can be read again.
func FuzzInject(f *testing.F) {
	f.Add(tinyEngine(), []byte("let x"), []byte("m"))
	engine := tinyEngine()
	for i := 8; i < len(engine); i += 3 {
		broken := bytes.Clone(engine)
		broken[i] ^= 0xff
		f.Add(broken, []byte("let x"), []byte(nil))
		f.Add(engine[:i], []byte(nil), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, engine, source, lines []byte) {
		before := bytes.Clone(engine)
		got, err := Inject(engine, source, lines, []byte("{}"))
		if !bytes.Equal(engine, before) {
			t.Fatal("Inject has changed its argument")
		}
		if err != nil {
			return
		}
		old, err := parse(engine)
		if err != nil {
			t.Fatal(err)
		}
		if len(mustSplit(t, got)) != len(old.sections)+1 || !bytes.Equal(Info(got), []byte("{}")) && Info(engine) == nil {
			t.Errorf("%q cannot be read again", got)
		}
		if !bytes.Contains(got, append(append(bytes.Clone(source), 0), lines...)) {
			t.Error("the script is not in the module")
		}
	})
}
