package extism

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/weftrun/weft/abi"
)

// HostModule is the import module of Extism's plugins.
const HostModule = "extism:host/env"

const (
	headerBytes   = 8 // of a module
	sectionCustom = 0
	sectionImport = 2
)

// section is a section of a module: its payload and its position.
type section struct {
	id         byte
	payload    []byte
	begin, end int
}

// sections returns the sections of a module that can be read, and whether that is all of
// them. Other code refuses a module that cannot be read.
func sections(wasm []byte) (all []section, whole bool) {
	for at := headerBytes; at < len(wasm); {
		size, n := binary.Uvarint(wasm[at+1:])
		begin := at + 1 + n
		if n <= 0 || size > uint64(len(wasm)-begin) {
			return all, false
		}
		end := begin + int(size)
		all = append(all, section{wasm[at], wasm[begin:end], at, end})
		at = end
	}
	return all, len(wasm) >= headerBytes
}

// name reads a name, and returns the remaining bytes.
func name(b []byte) (name string, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil, false
	}
	return string(b[n : n+int(size)]), b[n+int(size):], true
}

// given returns the manifests in a module's custom sections, in order.
func given(all []section) (manifests [][]byte) {
	for _, s := range all {
		if s.id != sectionCustom {
			continue
		}
		if is, rest, ok := name(s.payload); ok && is == abi.SectionManifest {
			manifests = append(manifests, rest)
		}
	}
	return manifests
}

// imports reports whether an import of a module belongs to Extism. It stops at the first
// import that is not a function, because plugins import only functions.
func imports(payload []byte) bool {
	count, n := binary.Uvarint(payload)
	if n <= 0 {
		return false
	}
	rest := payload[n:]
	for range min(count, uint64(len(payload))) {
		module, after, ok := name(rest)
		if !ok {
			return false
		}
		if module == HostModule {
			return true
		}
		if _, after, ok = name(after); !ok || len(after) == 0 || after[0] != 0 { // 0: a function
			return false
		}
		_, n := binary.Uvarint(after[1:])
		if n <= 0 {
			return false
		}
		rest = after[1+n:]
	}
	return false
}

// Is reports whether a module is an Extism plugin: it imports Extism's functions, or has
// a manifest section.
func Is(wasm []byte) bool {
	all, _ := sections(wasm)
	if len(given(all)) > 0 {
		return true
	}
	for _, s := range all {
		if s.id == sectionImport {
			return imports(s.payload)
		}
	}
	return false
}

// Complete adds a manifest to an Extism plugin without one. If the manifest does not name
// the workflow, Complete adds the plugin's name. Other modules, unreadable modules, and
// modules with an unreadable manifest are returned unchanged.
func Complete(wasm []byte, plugin string) []byte {
	all, whole := sections(wasm)
	if !whole || !Is(wasm) {
		return wasm
	}
	manifests := given(all)
	if len(manifests) == 0 {
		manifests = [][]byte{[]byte("{}")}
	}
	var m map[string]json.RawMessage
	for _, other := range manifests {
		if !bytes.Equal(other, manifests[0]) { // a problem that Read reports
			return wasm
		}
	}
	if len(manifests[0]) > MaxManifest || json.Unmarshal(manifests[0], &m) != nil || m == nil {
		return wasm
	}
	if _, named := m["workflow"]; !named {
		text, err := json.Marshal(plugin)
		if err != nil {
			return wasm
		}
		m["workflow"] = text
	}
	text, err := json.Marshal(m)
	if err != nil || len(manifests) == 1 && bytes.Equal(text, manifests[0]) {
		return wasm
	}
	return abi.WithManifest(without(wasm, all), text)
}

// without returns a readable module without its manifests.
func without(wasm []byte, all []section) []byte {
	kept := append([]byte{}, wasm[:headerBytes]...)
	for _, s := range all {
		if is, _, ok := name(s.payload); s.id != sectionCustom || !ok || is != abi.SectionManifest {
			kept = append(kept, wasm[s.begin:s.end]...)
		}
	}
	return kept
}
