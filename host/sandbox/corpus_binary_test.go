package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/weftrun/weft/abi"
)

// forged is a plugin in binary pieces: entries that follow the usual ones of
// their section, and what is to stand there instead. The usual functions are
// output (0, imported), weft_describe (1) and weft_step (2); types are
// (i32 i32) -> (), () -> () and (i32) -> (i32).
type forged struct {
	types, imports, funcs, globals, exports, code, data [][]byte

	locals  []byte          // the vector of weft_step's
	step    []byte          // code that weft_step begins with
	end     []byte          // code that it ends with; nil: it answers
	instead map[byte][]byte // payloads of sections, also of those that are not usual
	last    []byte          // what follows the last section
}

const (
	valueI32  = 0x7f
	valueI64  = 0x7e
	valueV128 = 0x7b
)

var (
	// answers82 calls output with the usual answer, and returns 0.
	answers82 = []byte{0x41, 0x80, 0x04, 0x41, 0x03, 0x10, 0x00, 0x41, 0x00}
	manifest  = []byte("\xa4cabi\x01esteps\x81\xa3dnamecruneemits\x81iStopEventgaccepts\x81jStartEventfevents\xa0hworkflowghostile")
	// ids are those of the sections, in their order.
	ids = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11}
)

func leb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func vec(entries ...[]byte) []byte { return cat(leb(uint64(len(entries))), cat(entries...)) }

func sized(b ...byte) []byte { return cat(leb(uint64(len(b))), b) }

func named(name string) []byte { return sized([]byte(name)...) }

func section(id byte, payload []byte) []byte { return cat([]byte{id}, sized(payload...)) }

// function is a body: its locals as a vector, and code without the last end.
func function(locals, code []byte) []byte {
	if locals == nil {
		locals = []byte{0}
	}
	return sized(cat(locals, code, []byte{0x0b})...)
}

func many(n int, entry ...byte) []byte { return bytes.Repeat(entry, n) }

// entries makes n entries of a section, each by its number.
func entries(n int, make func(i int) []byte) (all [][]byte) {
	for i := range n {
		all = append(all, make(i))
	}
	return all
}

func numbered(n int, kind byte, index uint64) [][]byte {
	return entries(n, func(i int) []byte { return cat(named(fmt.Sprint("n", i)), []byte{kind}, leb(index)) })
}

// sections gives the payloads of the forged module's sections.
func (f forged) sections() map[byte][]byte {
	end := f.end
	if end == nil {
		end = answers82
	}
	describe := cat([]byte{0x41, 0x00, 0x41}, []byte{0xd5, 0x00}, []byte{0x10, 0x00}) // 85 bytes at 0
	all := map[byte][]byte{
		1: vec(append([][]byte{{0x60, 2, valueI32, valueI32, 0}, {0x60, 0, 0}, {0x60, 1, valueI32, 1, valueI32}}, f.types...)...),
		2: vec(append([][]byte{cat(named(abi.ImportModule), named("output"), []byte{0, 0})}, f.imports...)...),
		3: vec(append([][]byte{{1}, {2}}, f.funcs...)...),
		5: {1, 0, 1},
		7: vec(append([][]byte{
			cat(named(abi.ExportMemory), []byte{2, 0}), cat(named(abi.ExportDescribe), []byte{0, 1}), cat(named(abi.ExportStep), []byte{0, 2}),
		}, f.exports...)...),
		10: vec(append([][]byte{function(nil, describe), function(f.locals, cat(f.step, end))}, f.code...)...),
		11: vec(append([][]byte{cat([]byte{0, 0x41, 0, 0x0b}, sized(manifest...)), {0, 0x41, 0x80, 0x04, 0x0b, 3, 0x82, 0, 0xf6}}, f.data...)...),
	}
	if f.globals != nil {
		all[6] = vec(f.globals...)
	}
	maps.Copy(all, f.instead)
	return all
}

func (f forged) wasm() []byte {
	wasm, all := []byte("\x00asm\x01\x00\x00\x00"), f.sections()
	for _, id := range ids {
		if payload, there := all[id]; there {
			wasm = append(wasm, section(id, payload)...)
		}
	}
	return append(wasm, f.last...)
}

// binarySpecimens makes what no text can say, or only a huge one.
func binarySpecimens() (all []*specimen) {
	_, limits := corpusLimits()
	add := func(at, name, wants string, wasm []byte) {
		s := &specimen{name: name, wasm: wasm, at: at, limits: limits, runs: 2}
		if wants != "" {
			s.wants = []want{wantOf(wants)}
		}
		all = append(all, s)
	}
	addTooMany(add)
	addMalformed(add)
	addCounts(add)
	addNewer(add)
	addHuge(add)
	return all
}

type adder func(at, name, wants string, wasm []byte)

// addTooMany adds what has more of something than a host compiles.
func addTooMany(add adder) {
	million := leb(1_000_000)
	refuse := func(name, number string, f forged) { add(atUpload, name, "too_many "+number, f.wasm()) }
	refuse("locals_million", "1000000 locals", forged{locals: vec(cat(million, []byte{valueI64}))})
	refuse("locals_groups", "100000 locals", forged{locals: vec(entries(100_000, func(int) []byte { return []byte{1, valueI32} })...)})
	refuse("locals_most", "4294967295 locals", forged{locals: vec(cat(leb(1<<32-1), []byte{valueV128}))})
	refuse("nesting_blocks", "100000", forged{step: cat(many(100_000, 0x02, 0x40), many(100_000, 0x0b))})
	refuse("nesting_loops", "100000", forged{step: cat(many(100_000, 0x03, 0x40), many(100_000, 0x0b))})
	refuse("nesting_ifs", "100000", forged{step: cat(many(100_000, 0x41, 0x00, 0x04, 0x40), many(100_000, 0x0b))})
	refuse("labels_million", "100000", forged{step: cat([]byte{0x02, 0x40, 0x41, 0x00, 0x0e}, million, make([]byte, 1_000_001), []byte{0x0b})})
	refuse("parameters_million", "1000000 parameters", forged{types: [][]byte{cat([]byte{0x60}, million, many(1_000_000, valueI32), []byte{0})}})
	refuse("results_million", "1000000 results", forged{types: [][]byte{cat([]byte{0x60, 0}, million, many(1_000_000, valueI64))}})
	refuse("body_large", "5000011 bytes of code", forged{step: many(5_000_000, 0x01)})
	refuse("types_many", "100003 types", forged{types: entries(100_000, func(int) []byte { return []byte{0x60, 0, 0} })})
	refuse("imports_many", "100001 imports", forged{
		imports: entries(100_000, func(int) []byte { return cat(named(abi.ImportModule), named("output"), []byte{0, 0}) }),
		instead: map[byte][]byte{7: vec(cat(named(abi.ExportMemory), []byte{2, 0}), cat(named(abi.ExportDescribe), []byte{0}, leb(100_001)), cat(named(abi.ExportStep), []byte{0}, leb(100_002)))},
	})
	refuse("functions_million", "1000002 functions", forged{
		funcs: entries(1_000_000, func(int) []byte { return []byte{1} }), code: entries(1_000_000, func(int) []byte { return []byte{2, 0, 0x0b} })})
	refuse("globals_many", "100000 globals", forged{globals: entries(100_000, func(int) []byte { return []byte{valueI32, 1, 0x41, 0, 0x0b} })})
	refuse("exports_many", "100003 exports", forged{exports: numbered(100_000, 0, 1)})
	refuse("data_bomb", "100001 data segments", forged{data: entries(99_999, func(int) []byte { return []byte{1, 0} })})
	refuse("elements_bomb", "100001 element segments", forged{instead: map[byte][]byte{9: vec(entries(100_001, func(int) []byte { return []byte{1, 0, 0} })...)}})
	add(atUpload, "memories_many", "several_memories 1000 memories", forged{instead: map[byte][]byte{5: vec(entries(1000, func(int) []byte { return []byte{0, 1} })...)}}.wasm())
	add(atUpload, "bytes_many", "too_large", make([]byte, 32<<20+1))
	add(atUpload, "memory_beyond", "too_large|malformed|invalid_module", forged{instead: map[byte][]byte{5: cat([]byte{1, 0}, leb(65_536))}}.wasm())
	add(atUpload, "table_beyond", "too_large|malformed 4294967295", forged{instead: map[byte][]byte{4: cat([]byte{1, 0x70, 0}, leb(1<<32-1))}}.wasm())
}

const unreadable = "malformed|truncated|too_many|invalid_module"

// addCounts adds sections that claim more than they have.
func addCounts(add adder) {
	most := leb(1<<32 - 1)
	for _, id := range ids {
		if id == 8 || id == 12 { // not vectors
			continue
		}
		add(atUpload, fmt.Sprint("claims_section_", id), unreadable, forged{instead: map[byte][]byte{id: most}}.wasm())
		add(atUpload, fmt.Sprint("claims_bytes_", id), "truncated", cat(forged{}.wasm()[:8], []byte{id}, most, []byte{1}))
	}
	add(atUpload, "claims_data", unreadable, forged{instead: map[byte][]byte{11: cat([]byte{1, 0, 0x41, 0, 0x0b}, most)}}.wasm())
	add(atUpload, "claims_elements", unreadable, forged{instead: map[byte][]byte{9: cat([]byte{1, 0, 0x41, 0, 0x0b}, most)}}.wasm())
	add(atUpload, "claims_body", unreadable, forged{instead: map[byte][]byte{10: cat([]byte{2}, most, []byte{0, 0x0b})}}.wasm())
	add(atUpload, "claims_name", unreadable, forged{exports: [][]byte{cat(most, []byte("name"))}}.wasm())
	add(atUpload, "claims_locals", unreadable, forged{locals: most}.wasm())
	add(atUpload, "claims_labels", unreadable, forged{step: cat([]byte{0x41, 0, 0x0e}, most)}.wasm())
	add(atUpload, "claims_parameters", unreadable, forged{types: [][]byte{cat([]byte{0x60}, most)}}.wasm())
	add(atUpload, "claims_count", "malformed|invalid_module", forged{instead: map[byte][]byte{12: most}}.wasm())
}

// addMalformed adds what breaks the rules of WebAssembly's binary format.
func addMalformed(add adder) {
	bad := func(name string, f forged) { add(atUpload, name, "malformed|truncated|invalid_module", f.wasm()) }
	noText := []byte{2, 0xff, 0xfe}
	bad("name_no_text_export", forged{exports: [][]byte{cat(noText, []byte{0, 1})}})
	bad("name_no_text_import", forged{imports: [][]byte{cat(noText, named("x"), []byte{0, 1})}})
	bad("name_no_text_custom", forged{last: section(0, noText)})
	bad("custom_without_name", forged{last: []byte{0, 0}})
	bad("export_duplicate", forged{exports: [][]byte{cat(named(abi.ExportStep), []byte{0, 2})}})
	bad("export_index", forged{exports: [][]byte{cat(named("more"), []byte{0, 99})}})
	bad("export_kind", forged{exports: [][]byte{cat(named("more"), []byte{9, 0})}})
	bad("start_signature", forged{instead: map[byte][]byte{8: {2}}})
	bad("start_index", forged{instead: map[byte][]byte{8: {99}}})
	bad("memory_upside_down", forged{instead: map[byte][]byte{5: {1, 1, 2, 1}}})
	bad("code_missing", forged{funcs: [][]byte{{1}}})
	bad("code_left_over", forged{code: [][]byte{{2, 0, 0x0b}}})
	bad("count_wrong", forged{instead: map[byte][]byte{12: {7}}})
	bad("data_other_memory", forged{data: [][]byte{{2, 1, 0x41, 0, 0x0b, 0}}})
	bad("data_flag", forged{data: [][]byte{{9, 0}}})
	bad("data_offset_global", forged{data: [][]byte{{0, 0x23, 0, 0x0b, 0}}})
	bad("elements_other_table", forged{instead: map[byte][]byte{9: {1, 2, 5, 0x41, 0, 0x0b, 0, 0}}})
	bad("elements_function", forged{instead: map[byte][]byte{4: {1, 0x70, 0, 1}, 9: {1, 0, 0x41, 0, 0x0b, 1, 99}}})
	bad("type_index", forged{funcs: [][]byte{{99}}, code: [][]byte{{2, 0, 0x0b}}})
	bad("type_unknown", forged{types: [][]byte{{0x60, 1, 0x11, 0}}})
	bad("section_unknown", forged{last: section(0x55, nil)})
	bad("section_padded", forged{instead: map[byte][]byte{5: {1, 0, 1, 0}}})
	for code, bytes := range map[string][]byte{
		"call": {0x10, 99}, "global": {0x23, 99, 0x1a}, "local": {0x20, 99, 0x1a}, "label": {0x0c, 99}, "labels": {0x41, 0, 0x0e, 1, 98, 99},
		"block_type": {0x02, 99, 0x0b}, "block_type_negative": {0x02, 0x45, 0x0b}, "else": {0x05}, "end": {0x0b, 0x01}, "no_end": {0x02, 0x40},
		"table": {0x41, 0, 0x25, 3, 0x1a}, "memory_init": {0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0}, "unknown": {0xff}, "unknown_misc": {0xfc, 99},
		"unknown_vector": {0xfd, 0xff, 0x3f}, "alignment": {0x41, 0, 0x28, 5, 0, 0x1a}, "type": {0x42, 0, 0x1a, 0x41, 0, 0x42, 0, 0x6a, 0x1a}, "stack": {0x1a},
		"select_types": {0x41, 0, 0x41, 0, 0x41, 0, 0x1c, 2, valueI32, valueI32, 0x1a}, "lane": {0x41, 0, 0xfd, 15, 0xfd, 21, 16, 0x1a},
		"long_constant": {0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a}, "wide_constant": {0x41, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x1a}, "long_index": {0x20, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a},
	} {
		bad("code_"+code, forged{step: bytes})
	}
	good := forged{}.sections()
	for _, id := range ids {
		if payload, there := good[id]; there {
			bad(fmt.Sprint("section_twice_", id), forged{last: section(id, payload)})
		}
	}
	bad("section_order", forged{instead: map[byte][]byte{1: {0}}, last: section(1, good[1])})
	wasm := forged{}.wasm()
	add(atUpload, "section_size_long", "malformed", cat(wasm[:8], []byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0}))
	add(atUpload, "trailing", "malformed|invalid_module|truncated", append(wasm, 1))
}

// addNewer adds what later versions of WebAssembly have, and this host has not.
func addNewer(add adder) {
	bad := func(name string, f forged) {
		add(atUpload, "newer_"+name, "malformed|invalid_module", f.wasm())
	}
	add(atUpload, "newer_memory64", "memory_kind", forged{instead: map[byte][]byte{5: {1, 4, 1}}}.wasm())
	add(atUpload, "newer_memory_shared", "memory_kind", forged{instead: map[byte][]byte{5: {1, 3, 1, 2}}}.wasm())
	bad("table64", forged{instead: map[byte][]byte{4: {1, 0x70, 4, 1}}})
	bad("table_initial", forged{instead: map[byte][]byte{4: {1, 0x40, 0, 0x70, 0, 1, 0xd0, 0x70, 0x0b}}})
	bad("tag_section", forged{last: section(13, []byte{1, 0, 1})})
	bad("tag_import", forged{imports: [][]byte{cat(named(abi.ImportModule), named("output"), []byte{4, 0, 1})}})
	bad("type_struct", forged{types: [][]byte{{0x5f, 1, valueI32, 1}}})
	bad("type_array", forged{types: [][]byte{{0x5e, valueI32, 1}}})
	bad("type_rec", forged{types: [][]byte{{0x4e, 1, 0x60, 0, 0}}})
	bad("type_sub", forged{types: [][]byte{{0x50, 0, 0x60, 0, 0}}})
	bad("local_ref", forged{locals: []byte{1, 1, 0x63, 0}})
	bad("global_extended", forged{globals: [][]byte{{valueI32, 0, 0x41, 1, 0x41, 2, 0x6a, 0x0b}}})
	for name, code := range map[string][]byte{
		"try": {0x06, 0x40, 0x0b}, "try_catch": {0x06, 0x40, 0x19, 0x0b}, "throw": {0x08, 0}, "rethrow": {0x09, 0}, "throw_ref": {0x0a}, "try_table": {0x1f, 0x40, 0, 0x0b},
		"return_call": {0x12, 1}, "return_call_indirect": {0x13, 1, 0}, "call_ref": {0x14, 1}, "return_call_ref": {0x15, 1},
		"ref_eq": {0xd3}, "ref_as_non_null": {0xd4}, "br_on_null": {0xd5, 0}, "struct_new": {0xfb, 0, 0, 0x1a}, "i31": {0x41, 0, 0xfb, 28, 0x1a},
		"atomic_fence": {0xfe, 3, 0}, "atomic_load": {0x41, 0, 0xfe, 0x10, 2, 0, 0x1a}, "atomic_wait": {0x41, 0, 0x41, 0, 0x42, 0x7f, 0xfe, 1, 2, 0, 0x1a},
		"memory_index": {0x41, 0, 0x28, 0x42, 0, 0, 0x1a}, "memory_grow_index": {0x41, 0, 0x40, 1, 0x1a}, "wide_arithmetic": {0x42, 0, 0x42, 0, 0x42, 0, 0x42, 0, 0xfc, 19, 0x1a, 0x1a},
		"relaxed": {0x41, 0, 0xfd, 15, 0x41, 0, 0xfd, 15, 0xfd, 0x80, 2, 0x1a}, "suspend": {0xe2, 0},
	} {
		bad(name, forged{step: code})
	}
}

// addHuge adds what is allowed, if only just, and what may go either way.
func addHuge(add adder) {
	good := func(name string, f forged) { add(atInvoke, name, "ok", f.wasm()) }
	good("plain", forged{})
	good("code_long_numbers", forged{step: []byte{0x41, 0x80, 0x80, 0x80, 0x80, 0x00, 0x21, 0x80, 0x80, 0x80, 0x80, 0x00, 0x02, 0x40, 0x0c, 0x80, 0x00, 0x0b}})
	good("name_long", forged{exports: [][]byte{cat(named(string(many(4<<20, 'x'))), []byte{0, 1})}})
	good("custom_large", forged{last: section(0, cat(named("more"), make([]byte, 8<<20)))})
	good("custom_many", forged{last: many(100_000, 0, 2, 1, 'x')})
	good("functions_many", forged{
		funcs: entries(10_000, func(int) []byte { return []byte{1} }), code: entries(10_000, func(i int) []byte { return function(nil, []byte{0x01}) }),
		step: cat(entries(10_000, func(i int) []byte { return cat([]byte{0x10}, leb(uint64(3+i))) })...),
	})
	// All globals are 0, or it traps, and they are 1 afterwards.
	marked := func(i int) []byte {
		n := leb(uint64(i))
		return cat([]byte{0x20, 1, 0x23}, n, []byte{0x72, 0x21, 1, 0x41, 1, 0x24}, n)
	}
	good("globals_most", forged{
		globals: entries(10_000, func(int) []byte { return []byte{valueI32, 1, 0x41, 0, 0x0b} }), locals: []byte{1, 1, valueI32},
		step: cat(cat(entries(10_000, marked)...), []byte{0x20, 1, 0x04, 0x40, 0x00, 0x0b}),
	})
	good("code_straight", forged{step: many(100_000, 0x20, 0, 0x41, 1, 0x6a, 0x21, 0)})
	good("code_nothing", forged{step: many(1_000_000, 0x01)})
	good("stack_high", forged{step: cat(many(10_000, 0x41, 1), many(9_999, 0x6a), []byte{0x1a})})

	ends := func(name, wants string, f forged) { add(atInvoke, name, wants, f.wasm()) }
	overflow := "limit_exceeded frames of nested calls ... more than 1048576 bytes (limit call_depth)"
	ends("recursion_locals", overflow, forged{locals: vec(cat(leb(9_000), []byte{valueI64})), step: []byte{0x20, 0, 0x10, 2, 0x0f}})
	ends("loop_straight", "fuel_exhausted more than 20000000 units of fuel (limit fuel)",
		forged{step: cat([]byte{0x03, 0x40}, many(100_000, 0x20, 0, 0x41, 1, 0x6a, 0x21, 0), []byte{0x0c, 0, 0x0b})})
	ends("loop_labels", "fuel_exhausted more than 20000000 units of fuel (limit fuel)",
		forged{step: cat([]byte{0x03, 0x40, 0x20, 0, 0x0e}, leb(10_000), make([]byte, 10_001), []byte{0x0b})})
	ends("loop_deep", "fuel_exhausted more than 20000000 units of fuel (limit fuel)",
		forged{step: cat(many(1000, 0x03, 0x40), []byte{0x0c}, leb(999), many(1000, 0x0b))})
	escapes := "\x1b[2J\x1b]0;mine\x07\r\nERROR: all is lost\u2028\u0085\u202e"
	trap := forged{step: []byte{0x10, 3}, funcs: [][]byte{{1}}, code: [][]byte{function(nil, []byte{0x00})}}
	ends("trap_nameless", "trap unreachable", trap)
	trap.last = functionName(escapes)
	ends("trap_name_escapes", "trap unreachable", trap)
	trap.last = functionName(string(many(4<<20, 'x')))
	ends("trap_name_long", "trap unreachable", trap)
	ends("trap_name_long_deep", "trap unreachable", trapBelow(string(many(4<<20, 'x'))))
	add(atUpload, "reserved_long", "reserved_name", forged{exports: [][]byte{cat(named("weft:"+string(many(4<<20, 'x'))), []byte{0, 1})}}.wasm())
	add(atUpload, "import_long", "forbidden_import", forged{imports: [][]byte{cat(named(string(many(4<<20, 'x'))), named(escapes), []byte{3, valueI32, 0})}}.wasm())

	either := func(name string, f forged) { add(atAny, name, "", f.wasm()) }
	either("name_garbage", forged{last: section(0, cat(named("name"), many(1000, 0xff)))})
	either("name_no_text", forged{last: functionName("\xff\xfe")})
	either("name_claims", forged{last: section(0, cat(named("name"), []byte{1}, sized(leb(1<<32-1)...)))})
	either("stack_higher", forged{step: cat(many(100_000, 0x41, 1), many(99_999, 0x6a), []byte{0x1a})})
	either("misc_long_number", forged{step: []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x8b, 0x80, 0, 0}})
	either("vector_long_number", forged{step: []byte{0x41, 0, 0xfd, 0x8f, 0x80, 0, 0x1a}})
	either("vector_long_constant", forged{step: cat([]byte{0xfd, 0x8c, 0x00}, many(16, 0x0b), []byte{0x1a})})
	either("body_straight", forged{step: many(500_000, 0x20, 0, 0x41, 1, 0x6a, 0x21, 0)})
	either("locals_most_allowed", forged{locals: vec(cat(leb(10_000), []byte{valueV128}))})
}

// functionName is a name section that names function 3.
func functionName(name string) []byte {
	return section(0, cat(named("name"), []byte{1}, sized(cat([]byte{1, 3}, named(name))...)))
}

// trapBelow traps below a hundred calls of a function with the given name.
func trapBelow(name string) forged {
	code := []byte{0x20, 0, 0x45, 0x04, 0x40, 0x00, 0x0b, 0x20, 0, 0x41, 1, 0x6b, 0x10, 3}
	return forged{
		step: []byte{0x41, 0xe4, 0x00, 0x10, 3}, types: [][]byte{{0x60, 1, valueI32, 0}}, funcs: [][]byte{{3}}, code: [][]byte{function(nil, code)},
		last: functionName(name),
	}
}

// compileBombs makes modules that no count of the host's refuses, and that take
// the compiler minutes: more than in proportion to their size.
func compileBombs() (all []*specimen) {
	for name, step := range map[string][]byte{
		"bomb_branches": many(100_000, 0x02, 0x40, 0x20, 0, 0x0d, 0, 0x0b),
		"bomb_loops":    many(100_000, 0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b),
	} {
		all = append(all, &specimen{name: name, wasm: forged{step: step}.wasm(), at: atUpload, wants: []want{wantOf("compile_time more than 1s of CPU time (limit compile_time)")}})
	}
	return all
}
