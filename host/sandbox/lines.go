package sandbox

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host/sandbox/lines"
	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// With Config.SourceLines, the message of a trap names the source line, if the module has
// line tables.
//
// wazero's stack traces give code offsets only for modules with debug information. The
// original's debug information is hostile input and describes the original code, not the
// rewritten code. The rewritten module therefore gets debug information of ours, with one
// line for all code, and only the offset is taken from a trace. After a trap, the offsets
// are translated to the original's code and looked up in its line tables. Nothing of that
// is kept.

// lineMarks are the sections of our debug information.
var lineMarks = slices.Concat(
	debugSection(".debug_abbrev",
		1, 0x11, 0, // a compilation unit, without children, has
		0x11, 0x01, 0x12, 0x06, 0x10, 0x17, // its first address, its length in 4 bytes, and the offset of its lines
		0, 0, 0),
	debugSection(".debug_info",
		20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, // bytes, version 4, offset of the abbreviations, bytes of an address
		1, 1, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0), // from 1 to almost the last address
	debugSection(lines.Section,
		46, 0, 0, 0, 4, 0, 22, 0, 0, 0, // bytes, version 4, bytes of the header
		1, 1, 1, 0, 1, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, // opcodes up to 9, with their numbers of arguments
		0, '-', 0, 0, 0, 0, 0, // no directory and one file
		0, 5, 2, 1, 0, 0, 0, 1, // a row at 1
		0, 5, 2, 0xf0, 0xff, 0xff, 0xff, 0, 1, 1)) // and the end of the sequence

// debugSection makes a custom section.
func debugSection(name string, content ...byte) []byte {
	payload := append(append([]byte{byte(len(name))}, name...), content...)
	return append([]byte{0, byte(len(payload))}, payload...) // short: one byte holds the length
}

// hasLines reports whether a module has line tables.
func hasLines(m *wasmbin.Module) bool {
	return slices.ContainsFunc(m.Custom, func(c wasmbin.Custom) bool { return c.Name == lines.Section })
}

// mostOffsets bounds the frames that are looked up; wazero reports at most 30.
const mostOffsets = 64

// places returns the source places of the frames of a stack trace, or nothing if the
// module has no line tables.
func (m *module) places(frames []frame) []lines.Place {
	if !m.plan.Lines {
		return make([]lines.Place, len(frames))
	}
	frames = frames[:min(len(frames), mostOffsets)]
	offsets := make([]uint32, len(frames))
	for i, f := range frames {
		offsets[i] = f.at
	}
	wasm, err := m.sandbox.fetch(m.digest)
	if err == nil {
		offsets, err = rewrite.Origins(wasm, rewrite.Options{}, offsets) // the options do not change the code
	}
	if err != nil {
		m.sandbox.log.Warn("where a guest has trapped cannot be looked up", "digest", m.digest, "error", err)
		return make([]lines.Place, len(frames))
	}
	return lines.Find(wasm, offsets)
}

// runtimeSources are parts of the source paths of language runtimes.
var runtimeSources = []string{"/src/runtime/", "/src/internal/task/", "/rustc/", "/library/core/", "/library/std/", "/library/alloc/", "libc-top-half/", "libc-bottom-half/"}

// placeText formats the first place outside the language's runtime, as " (main.go:17)",
// or as " (called from main.go:17)" if it is not the innermost. It returns "" if no such
// place is known.
func placeText(places []lines.Place) string {
	before := " ("
	for _, p := range places {
		own := p.Line > 0
		for _, part := range runtimeSources {
			own = own && !strings.Contains(p.File, part)
		}
		if own {
			return before + shortName(path.Base(strings.ReplaceAll(p.File, `\`, "/"))) + ":" + strconv.Itoa(p.Line) + ")"
		}
		before = " (called from "
	}
	return ""
}

// frame is a function of a stack trace.
type frame struct {
	name string
	at   uint32 // offset in the rewritten code section; 0: unknown
}

// frames parses a stack trace, innermost frame first. Each frame has a line
// MODULE.NAME(types) types, or MODULE.$INDEX if the function has no name, and, if the
// place is known, a line TAB 0xOFFSET: FILE:LINE. Functions added by the rewriter are
// skipped: their caller matters.
func (m *module) frames(err error) (frames []frame) {
	_, trace, _ := strings.Cut(err.Error(), "wasm stack trace:\n\t")
	passed := false
	for line := range strings.SplitSeq(trace, "\n\t") {
		if at, ok := strings.CutPrefix(line, "\t0x"); ok {
			at, _, _ = strings.Cut(at, ":")
			if n, err := strconv.ParseUint(at, 16, 32); err == nil && len(frames) > 0 && !passed {
				frames[len(frames)-1].at = uint32(n)
			}
			continue
		}
		name := traceName(line)
		if passed = strings.HasPrefix(name, helperPrefix); passed {
			continue
		}
		if index, ok := strings.CutPrefix(name, "$"); ok {
			n, _ := strconv.ParseUint(index, 10, 32)
			name = m.plan.functionName(uint32(n))
		}
		frames = append(frames, frame{name: name})
	}
	return frames
}

// withMarks appends our debug sections to a rewritten module.
func withMarks(skeleton []byte) []byte { return slices.Concat(skeleton, lineMarks) }
