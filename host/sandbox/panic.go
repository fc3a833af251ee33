package sandbox

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
)

// A language whose panics cannot be caught prints why it panics just before it traps or
// exits. People and retry policies see such an end as a panic, as in languages that catch
// panics.

// panicked returns the failure of a step that printed a panic, or nil if it printed none.
// err, if not nil, is the trap, which may have a place.
func (g *guest) panicked(err error) *abi.Error {
	mark, text, ok := g.tail.lastPanic()
	if !ok || mark != panicMark || g.phase != phaseStep { // otherwise an error that Go calls fatal
		return nil
	}
	if err != nil && !knowsPlace.MatchString(text) {
		text += g.module.panicPlace(err)
	}
	return &abi.Error{Code: codePanic, Message: text}
}

// knowsPlace matches a text that ends with a file and a line.
var knowsPlace = regexp.MustCompile(`\([^()]+:[0-9]+\)$`)

// panicMachinery are the prefixes of function names that a panic passes through.
var panicMachinery = []string{"runtime.", "core::", "std::", "alloc::", "rust_", "__rust", "_ZN4core", "_ZN3std", "_RN", "(runtime.", "abort", abi.ExportStep}

// panicPlace returns where a panic was: the file and line if the module has line tables,
// otherwise the name of the first function on the stack outside the runtime.
func (m *module) panicPlace(err error) string {
	frames := m.frames(err)
	for i, f := range frames {
		own := true
		for _, prefix := range panicMachinery {
			own = own && !strings.HasPrefix(f.name, prefix)
		}
		if _, err := strconv.Atoi(f.name); !own || err == nil {
			continue
		}
		if place := placeText(m.places(frames[i:])); place != "" {
			return place
		}
		return " in function " + shortName(f.name)
	}
	return ""
}

// trapPlace returns where a trap was: the function, and the line if the module has line
// tables. It returns "" if there is no trace.
func (m *module) trapPlace(err error) string {
	frames := m.frames(err)
	if len(frames) == 0 || frames[0].name == "" {
		return ""
	}
	return " in function " + shortName(frames[0].name) + placeText(m.places(frames))
}

// shortName bounds a guest's name for a message.
func shortName(name string) string {
	if len(name) > maxFuncText {
		name = name[:maxFuncText] + "..."
	}
	return oneLine(name)
}

// traceName extracts the name from a line of a stack trace.
func traceName(line string) string {
	line, _, _ = strings.Cut(line, "\n")
	if before, ok := strings.CutSuffix(line, ")"); ok {
		if i := strings.LastIndex(before, ") ("); i >= 0 { // the function has several results
			line = line[:i+1]
		}
	}
	if i := strings.LastIndexByte(line, '('); i >= 0 {
		line = line[:i]
	}
	return strings.TrimPrefix(line, ".")
}
