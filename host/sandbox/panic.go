package sandbox

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
)

// A language whose panics cannot be caught says why it panics just before it traps or
// exits. To people, and to retry policies, that is a panic as where it is caught.

// panicked is the failure of a step that has said that it panics; nil: it has not.
// err, if it is not nil, is the trap, which may say where it was.
func (g *guest) panicked(err error) *abi.Error {
	mark, text, ok := g.tail.lastPanic()
	if !ok || mark != panicMark || g.phase != phaseStep { // else what Go calls fatal
		return nil
	}
	if err != nil && !knowsPlace.MatchString(text) {
		text += g.module.panicPlace(err)
	}
	return &abi.Error{Code: codePanic, Message: text}
}

// knowsPlace matches a text that ends with a file and a line.
var knowsPlace = regexp.MustCompile(`\([^()]+:[0-9]+\)$`)

// panicMachinery begins the names of functions that a panic runs through.
var panicMachinery = []string{"runtime.", "core::", "std::", "alloc::", "rust_", "__rust", "_ZN4core", "_ZN3std", "_RN", "(runtime.", "abort", abi.ExportStep}

// panicPlace says where a panic was: file and line, if the module tells, else the
// function, if it has names: the first on the stack that is not the runtime's.
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

// trapPlace says where a trap was: in which function, and in which line if the module
// tells. "" when there is no trace.
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

// traceName takes the name out of a line of a stack trace.
func traceName(line string) string {
	line, _, _ = strings.Cut(line, "\n")
	if before, ok := strings.CutSuffix(line, ")"); ok {
		if i := strings.LastIndex(before, ") ("); i >= 0 { // several results
			line = line[:i+1]
		}
	}
	if i := strings.LastIndexByte(line, '('); i >= 0 {
		line = line[:i]
	}
	return strings.TrimPrefix(line, ".")
}
