package rewrite

import (
	"fmt"
	"math"
	"strconv"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// image.go finds out whether instances of the module can differ only in memory and
// numeric globals, and extracts the initial contents of the memory.

const (
	pageBytes = 64 << 10
	// maxRestored bounds the mutable globals of a restorable module: restoring more would
	// cost more than it saves.
	maxRestored = 1_000
)

// name returns the helper's name in traps.
func (h helper) name() string {
	text := "weft:" + wasmbin.MiscNames[h.sub]
	switch h.sub {
	case wasmbin.MiscMemoryFill, wasmbin.MiscMemoryCopy:
		return text
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy:
		return text + " " + strconv.Itoa(int(h.x)) + " " + strconv.Itoa(int(h.y))
	}
	return text + " " + strconv.Itoa(int(h.x))
}

// judge collects the reasons why there can be no image. If there is none and
// Options.Extract is set, judge extracts the data segments.
func (w *rewriter) judge() {
	w.judgeImports()
	w.judgeGlobals()
	for _, at := range []byte{0, wasmbin.MiscDataDrop, wasmbin.MiscTableInit, wasmbin.MiscElemDrop, wasmbin.MiscTableCopy, wasmbin.MiscTableGrow, wasmbin.MiscTableFill} {
		if function := w.m.Uses[at]; function > 0 {
			w.fallback("function %d uses %s", function-1, wasmbin.MiscNames[at])
		}
	}
	segments := w.segments()
	w.result.Restorable = len(w.result.Fallback) == 0
	if w.extracts = w.Extract && w.result.Restorable; !w.extracts {
		return
	}
	w.result.Segments = segments
	if len(w.m.Memories) > 0 {
		memory := &w.m.Memories[0]
		w.result.MemoryPages, memory.Min = uint32(memory.Min), 0
	}
	for i, active := range w.m.DataActive {
		if active {
			w.m.DataSizes[i] = 0
		}
	}
}

// fallback adds a reason.
func (w *rewriter) fallback(format string, args ...any) {
	w.result.Fallback = append(w.result.Fallback, fmt.Sprintf(format, args...))
}

func (w *rewriter) judgeImports() {
	var seen [wasmbin.KindGlobal + 1]bool
	for i := range w.m.Imports {
		im := &w.m.Imports[i]
		switch {
		case im.Kind == wasmbin.KindFunc, im.Kind == wasmbin.KindGlobal && !im.Global.Mutable, seen[im.Kind]:
			continue
		case im.Kind == wasmbin.KindTable:
			w.fallback("a table is imported")
		case im.Kind == wasmbin.KindMemory:
			w.fallback("the memory is imported")
		case im.Kind == wasmbin.KindGlobal:
			w.fallback("a mutable global is imported")
		}
		seen[im.Kind] = true
	}
	if len(w.m.Memories) > 1 {
		w.fallback("%d memories", len(w.m.Memories))
	}
}

func (w *rewriter) judgeGlobals() {
	mutable, other := 0, -1
	for i, g := range w.m.Globals {
		if !g.Mutable {
			continue
		}
		mutable++
		if other < 0 && (g.Type < wasmbin.TypeF64 || g.Type > wasmbin.TypeI32) {
			other = i
		}
	}
	if other >= 0 {
		w.fallback("global %d is a mutable %s", int(w.m.Imported(wasmbin.KindGlobal))+other, wasmbin.TypeName(w.m.Globals[other].Type))
	}
	if mutable > maxRestored {
		w.fallback("%d mutable globals, more than %d", mutable, maxRestored)
	}
}

// segments returns the active data segments. A segment that is out of range, or whose
// offset is not a plain number, stays in the module for instantiation to handle.
func (w *rewriter) segments() (list []Segment) {
	size := uint64(0)
	if len(w.m.Memories) > 0 {
		size = w.m.Memories[0].Min * pageBytes
	}
	n, entries := w.m.Vector(wasmbin.SectionData)
	r := &wasmbin.Reader{Rest: entries}
	for i := range n {
		d := r.Data()
		if d.Flag == wasmbin.DataPassive {
			continue
		}
		offset, ok := d.Address()
		switch {
		case !ok:
			w.fallback("the offset of data segment %d is not a plain number", i)
			return nil
		case d.Memory != 0 || uint64(offset)+uint64(len(d.Bytes)) > size:
			w.fallback("data segment %d is out of range", i)
			return nil
		}
		list = append(list, Segment{offset, d.Bytes})
	}
	return list
}

// dataSections returns the count of data segments and the segments. Extracted segments
// stay as empty ones if instructions name segments by index.
func (w *rewriter) dataSections() (count, data []byte) {
	named := w.m.Uses[wasmbin.MiscMemoryInit]+w.m.Uses[wasmbin.MiscDataDrop] > 0
	n, entries := w.m.Vector(wasmbin.SectionData)
	switch {
	case w.extracts && !named:
		return nil, nil
	case !w.extracts:
		return w.m.Sections[wasmbin.SectionCount], w.m.Sections[wasmbin.SectionData]
	}
	data = appendUint(nil, n)
	r := &wasmbin.Reader{Rest: entries}
	for range n {
		d := r.Data()
		if d.Flag != wasmbin.DataPassive {
			d.Bytes = nil
		}
		data = appendBytes(appendUint(data, wasmbin.DataPassive), d.Bytes)
	}
	return appendUint(nil, n), data
}

// clamp gives memory and tables their maximum sizes. The tables share evenly what their
// initial sizes leave over. Without a maximum, table.grow could take all memory of the
// host.
func (w *rewriter) clamp() {
	if w.MemoryPages > 0 {
		for i := range w.m.Memories {
			clampTo(&w.m.Memories[i], uint64(w.MemoryPages))
		}
	}
	if w.TableEntries <= 0 || len(w.m.Tables) == 0 {
		return
	}
	spare := uint64(w.TableEntries)
	for i := range w.m.Tables {
		spare -= min(w.m.Tables[i].Min, spare)
	}
	spare /= uint64(len(w.m.Tables))
	for i := range w.m.Tables {
		t := &w.m.Tables[i].Limits
		clampTo(t, t.Min+min(spare, math.MaxUint32-min(t.Min, math.MaxUint32)))
	}
}

// clampTo sets a maximum, but never below the initial size.
func clampTo(l *wasmbin.Limits, most uint64) {
	if most = max(most, l.Min); !l.HasMax || l.Max > most {
		l.HasMax, l.Max = true, most
	}
}
