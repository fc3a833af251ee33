package wasmbin

import (
	"errors"
	"strings"
	"testing"
)

// TestParseRefuses has what is refused before a look at instructions, and by
// which words.
func TestParseRefuses(t *testing.T) {
	section := func(id byte, payload ...byte) []byte {
		return append([]byte(Header+string([]byte{id, byte(len(payload))})), payload...)
	}
	for _, tt := range []struct {
		name string
		wasm []byte
		is   error
		says string
	}{
		{"nothing", nil, ErrNotWasm, ""},
		{"text", []byte("(module)"), ErrNotWasm, ""},
		{"half a header", []byte(Header[:6]), ErrTruncated, "at byte 6"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), ErrComponent, ""},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), nil, "version 02 00 00 00"},
		{"a section without its size", append([]byte(Header), SectionType), ErrTruncated, "at byte 9"},
		{"a section that ends late", append([]byte(Header), SectionType, 5, 0), ErrTruncated, "at byte 10"},
		{"a section that is not known", section(13, 0), nil, "unknown section 13"},
		{"a section twice", append(section(SectionType, 0), SectionType, 1, 0), nil, "there twice"},
		{"sections in another order", append(section(SectionFunc, 0), SectionType, 1, 0), nil, "out of order"},
		{"bytes left over", section(SectionType, 0, 0), nil, "left over in section 1"},
		{"more entries than bytes", section(SectionType, 0xff, 0xff, 0xff, 0xff, 0x0f), ErrTruncated, "4294967295 entries are missing"},
		{"a type that is not known", section(SectionType, 1, FormFunc, 1, 0x77, 0), nil, "value type 0x77"},
		{"a name that is not a text", section(SectionCustom, 1, 0xff), nil, "not UTF-8"},
		{"functions without code", section(SectionFunc, 1, 0), nil, "1 functions are declared, 0 have code"},
		{"memory 64 kinds of limits", section(SectionMemory, 1, 8, 0), nil, "unknown kind 0x8"},
		{"a table of numbers", section(SectionTable, 1, TypeI32, 0, 0), nil, "tables of type 0x7f"},
		{"a tag", section(SectionImport, 1, 0, 0, 4, 0, 0), nil, "imports of kind 4"},
	} {
		_, err := Parse(tt.wasm)
		if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
