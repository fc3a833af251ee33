package abi

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// The rules for single fields, shared by the decoders and the encoders. Each returns what
// is wrong, or "".

func sizeFault(n, least, most int) string {
	if n >= least && n <= most {
		return ""
	}
	return fmt.Sprintf("must be %d to %d bytes long, not %d", least, most, n)
}

func nameFault(s string) string     { return sizeFault(len(s), 1, MaxName) }
func typeNameFault(s string) string { return sizeFault(len(s), 1, MaxTypeName) }

func workflowNameFault(s string) string {
	ok := len(s) >= 1 && len(s) <= MaxWorkflowName
	for i := 0; i < len(s) && ok; i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '.' || c == '_' || c == '-')
	}
	if ok {
		return ""
	}
	return "must match [a-z0-9][a-z0-9._-]{0,127}"
}

func stepNameFault(s string) string {
	if s == CatchCancelled || s == CatchTimeout {
		return fmt.Sprintf("%q is reserved and cannot name a step", s)
	}
	return nameFault(s)
}

func pathFault(s string) string {
	if fault := sizeFault(len(s), 0, MaxPath); fault != "" {
		return fault
	}
	if n := strings.Count(s, ".") + 1; n > MaxPathSegments {
		return fmt.Sprintf("has %d segments, at most %d are allowed", n, MaxPathSegments)
	}
	return ""
}

func rangeFault(v, least, most uint64) string {
	if v >= least && v <= most {
		return ""
	}
	return fmt.Sprintf("must be %d to %d, not %d", least, most, v)
}

func workersFault(v uint64) string { return rangeFault(v, 1, MaxWorkers) }
func takeFault(v uint64) string    { return rangeFault(v, 1, MaxTake) }
func randomFault(v uint64) string  { return rangeFault(v, 0, MaxRandomBytes) }

func levelFault(level int64) string {
	switch level {
	case -4, 0, 4, 8:
		return ""
	}
	return fmt.Sprintf("must be -4, 0, 4 or 8, not %d", level)
}

func baseFault(f float64) string {
	if f > 0 && !math.IsInf(f, 0) {
		return ""
	}
	return "must be finite and greater than 0"
}

func durationFault(d time.Duration) string {
	if d < 0 {
		return "must not be negative"
	}
	return ""
}

func spanFault(least, most time.Duration) string {
	if least > most {
		return "max must not be less than min"
	}
	return ""
}

func kindFault(k EventKind) string {
	switch k {
	case KindStart, KindStop, KindInputRequired, KindHumanResponse:
		return ""
	}
	return fmt.Sprintf("unknown kind %q", clip(string(k)))
}

// Clip shortens foreign text for a message: it cuts between code points after at most
// most bytes and appends "...". Invalid UTF-8 becomes U+FFFD.
func Clip(s string, most int) string {
	cut := len(s) > most
	if cut {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	if s = strings.ToValidUTF8(s, "\ufffd"); cut {
		s += "..."
	}
	return s
}

// clip is Clip for the errors of this package.
func clip(s string) string { return Clip(s, 48) }

// tooMany says that an array or map has more entries than this version defines.
func tooMany(n, known int) string {
	return fmt.Sprintf("has %d items, at most %d are known: needs a newer weft", n, known)
}

func tooFew(n, least int) string {
	return fmt.Sprintf("has %d items, needs at least %d", n, least)
}

// segment is one step of the path to a field: a name, or an index if the name
// is empty.
type segment struct {
	name  string
	index int
}

// pathOf joins the segments and the last name for an error.
func pathOf(path []segment, last string) string {
	var s strings.Builder
	add := func(part string) {
		if s.Len() > 0 {
			s.WriteByte('.')
		}
		s.WriteString(part)
	}
	for _, seg := range path {
		if seg.name != "" {
			add(seg.name)
		} else if seg.index >= 0 {
			add(fmt.Sprint(seg.index))
		}
	}
	if last != "" {
		add(last)
	}
	return s.String()
}
