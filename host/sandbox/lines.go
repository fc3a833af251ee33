package sandbox

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host/sandbox/lines"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// With Config.SourceLines, a trap of a module that has line tables says which line of
// the sources it was in. wazero's stack traces tell where in the code they were only
// for modules with debug information. That of the original is a stranger's, and of
// other code than what runs: so what runs gets one of ours, which has one line for all
// code, and of what a trace says of it the offset is taken. When a guest has trapped,
// the offsets are followed to the original's code, and looked up in its line tables;
// nothing of that is kept.

// lineMarks are the sections of that debug information.
var lineMarks = slices.Concat(
	debugSection(".debug_abbrev",
		1, 0x11, 0, // a unit of compilation, without children, has
		0x11, 0x01, 0x12, 0x06, 0x10, 0x17, // its first address, its length in 4 bytes, and where its lines are
		0, 0, 0),
	debugSection(".debug_info",
		20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, // bytes, version 4, its abbreviations, bytes of an address
		1, 1, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0), // from 1 to nearly the last
	debugSection(lines.Section,
		46, 0, 0, 0, 4, 0, 22, 0, 0, 0, // bytes, version 4, bytes of the header
		1, 1, 1, 0, 1, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, // opcodes up to 9, with the arguments that they have
		0, '-', 0, 0, 0, 0, 0, // no directory, and one file
		0, 5, 2, 1, 0, 0, 0, 1, // a row at 1
		0, 5, 2, 0xf0, 0xff, 0xff, 0xff, 0, 1, 1)) // and the end

// debugSection makes a custom section.
func debugSection(name string, content ...byte) []byte {
	payload := append(append([]byte{byte(len(name))}, name...), content...)
	return append([]byte{0, byte(len(payload))}, payload...) // they are short
}

// hasLines reports whether a module has line tables.
func hasLines(m *rewrite.Module) bool {
	return slices.ContainsFunc(m.Custom, func(c rewrite.Custom) bool { return c.Name == lines.Section })
}

// mostOffsets bounds the frames that are looked up; wazero tells of 30.
const mostOffsets = 64

// places are those of the frames of a stack trace; none are known if the module does
// not tell.
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
		offsets, err = rewrite.Origins(wasm, rewrite.Options{}, offsets) // the options change no code
	}
	if err != nil {
		m.sandbox.log.Warn("where a guest has trapped cannot be looked up", "digest", m.digest, "error", err)
		return make([]lines.Place, len(frames))
	}
	return lines.Find(wasm, offsets)
}

// runtimeSources are parts of the paths of what comes with a language.
var runtimeSources = []string{"/src/runtime/", "/src/internal/task/", "/rustc/", "/library/core/", "/library/std/", "/library/alloc/", "libc-top-half/", "libc-bottom-half/"}

// placeText is the first place that is not the runtime's, as " (main.go:17)", or
// " (called from main.go:17)" if that is not the innermost; "" if none is known.
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
	at   uint32 // offset in the code section of what runs; 0: not known
}

// frames reads a stack trace, the innermost first: one line for each function, as
// MODULE.NAME(types) types, or MODULE.$INDEX when it has no name, and one for its
// place, as TAB 0xOFFSET: FILE:LINE, if it is known. Functions of the rewriter's are
// passed over: who called them is meant.
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

// withMarks appends the marks, if the module has a plan for them.
func (p *plan) withMarks(runs []byte) []byte {
	if !p.Lines {
		return runs
	}
	return slices.Concat(runs, lineMarks)
}
