package lines

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestFind holds the places of all code against those that the standard library's
// reader gives.
func TestFind(t *testing.T) {
	for _, name := range []string{"dwarf4.wasm", "dwarf5.wasm"} {
		t.Run(name, func(t *testing.T) {
			wasm := module(t, name)
			const most = 400
			offsets := make([]uint32, most)
			for i := range offsets {
				offsets[i] = uint32(most - i)
			}
			got := Find(wasm, offsets)
			known, lines := 0, map[int]bool{}
			for i, want := range standard(t, wasm, offsets) {
				if got[i].Line != want.Line || want.Line > 0 && got[i].File != want.File && "/src/"+got[i].File != want.File { // that of version 4 does not name the folder
					t.Errorf("%#x: %+v, want %+v", offsets[i], got[i], want)
				}
				if got[i].Line > 0 {
					known++
					lines[got[i].Line] = true
				}
			}
			if known < 50 || !lines[14] || !lines[20] || !lines[21] || lines[17] {
				t.Errorf("%d places, of lines %v", known, lines)
			}
		})
	}
}

func module(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// standard finds places by debug/dwarf.
func standard(t *testing.T, wasm []byte, offsets []uint32) []Place {
	t.Helper()
	s := map[string][]byte{}
	r := &reader{b: wasm[headerBytes:]}
	for len(r.b) > 0 {
		id, payload := r.fixed(1), &reader{}
		if payload.b = r.take(r.uleb()); id == sectionCustom {
			s[string(payload.take(payload.uleb()))] = payload.b
		}
	}
	d, err := dwarf.New(s[".debug_abbrev"], nil, nil, s[".debug_info"], s[".debug_line"], nil, s[".debug_ranges"], s[".debug_str"])
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"} {
		if err == nil {
			err = d.AddSection(name, s[name])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	places := make([]Place, len(offsets))
	unit, err := d.Reader().Next()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := d.LineReader(unit)
	if err != nil {
		t.Fatal(err)
	}
	var last, row dwarf.LineEntry
	for {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			return places
		} else if err != nil {
			t.Fatal(err)
		}
		for i, offset := range offsets {
			if at := uint64(offset); last.File != nil && !last.EndSequence && last.Address <= at && at < row.Address && last.Line > 0 {
				places[i] = Place{last.File.Name, last.Line}
			}
		}
		last = row
	}
}

// A table is not trusted in what it says of its own sizes.
func TestFindRefuses(t *testing.T) {
	table := func(content ...byte) []byte {
		payload := append(append([]byte{byte(len(Section))}, Section...), content...)
		return append(append([]byte("\x00asm\x01\x00\x00\x00\x00"), binary.AppendUvarint(nil, uint64(len(payload)))...), payload...)
	}
	for name, wasm := range map[string][]byte{
		"nothing": nil, "no module": []byte("x"), "no sections": []byte("\x00asm\x01\x00\x00\x00"),
		"64 bits":      table(0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0),
		"beyond":       table(200, 0, 0, 0, 4, 0),
		"no width":     table(20, 0, 0, 0, 4, 0, 10, 0, 0, 0, 1, 1, 1, 0, 0, 10, 0, 1, 1, 1, 1, 0, 0, 0),
		"many entries": table(24, 0, 0, 0, 5, 0, 4, 0, 16, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0),
	} {
		if got := Find(wasm, []uint32{1, 2}); got[0] != (Place{}) || got[1] != (Place{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// FuzzFind finds something or nothing in whatever it is given.
func FuzzFind(f *testing.F) {
	f.Add(module(f, "dwarf4.wasm"), uint32(20))
	f.Add(module(f, "dwarf5.wasm"), uint32(20))
	f.Fuzz(func(t *testing.T, wasm []byte, offset uint32) {
		for _, p := range Find(wasm, []uint32{offset, offset + 1, 0}) {
			if p.Line < 0 || (p.File == "") != (p.Line == 0) || len(p.File) > 3*2*(maxName+1) {
				t.Errorf("place %+v", p)
			}
		}
	})
}
