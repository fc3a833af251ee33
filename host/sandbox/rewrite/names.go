package rewrite

import (
	"strings"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// names.go keeps the function names of the custom sections.

const (
	nameSection      = "name"
	nameSubsectionFn = 1
)

// funcName is the name of a function of the original.
type funcName struct {
	index uint32
	name  string
}

// nameFunctions collects the names for FuncName and the new name section. An unreadable
// name section is ignored.
func (w *rewriter) nameFunctions() {
	for _, e := range w.m.Exports {
		if e.Kind == wasmbin.KindFunc {
			w.result.exports = append(w.result.exports, funcName{e.Index, e.Name})
		}
	}
	for _, c := range w.m.Custom {
		if c.Name != nameSection {
			w.result.Stats.Dropped++
			w.result.Stats.DroppedBytes += c.Bytes
		}
	}
	functions := uint32(len(w.scanner.funcTypes))
	r := &wasmbin.Reader{Rest: w.m.Names}
	for len(r.Rest) > 0 && r.Err == nil {
		id, sub := r.Byte(), &wasmbin.Reader{}
		sub.Rest = r.Take(r.Uint(32))
		if id != nameSubsectionFn {
			continue
		}
		var names []funcName
		sub.Each(func() {
			if n := (funcName{sub.U32(), cutName(sub.Name())}); n.index < functions && (len(names) == 0 || n.index > names[len(names)-1].index) {
				names = append(names, n)
			}
		})
		if sub.Err == nil {
			w.result.names = names
		}
	}
}

// maxFuncName bounds a function's name in bytes, because a trap's trace contains a name
// for each frame.
const maxFuncName = 256

// cutName shortens a name without splitting a character.
func cutName(name string) string {
	if len(name) <= maxFuncName {
		return name
	}
	return strings.ToValidUTF8(name[:maxFuncName], "")
}

// nameSection names the functions of the rewritten module, helpers included.
func (w *rewriter) nameSection() []byte {
	n := len(w.result.names) + len(w.helpers)
	if n == 0 {
		return nil
	}
	names := appendUint(nil, uint64(n))
	for _, f := range w.result.names {
		names = appendBytes(appendUint(names, uint64(w.function(f.index))), f.name)
	}
	first := w.result.imported + added + w.result.functions
	for i, h := range w.helpers {
		names = appendBytes(appendUint(names, uint64(first)+uint64(i)), h.name())
	}
	section := appendBytes(nil, nameSection)
	return appendBytes(append(section, nameSubsectionFn), names)
}
