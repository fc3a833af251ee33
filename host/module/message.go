package module

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/work"
)

const (
	maxShownText  = 60  // bytes of a value or pattern in a message
	maxShownAll   = 200 // bytes of a list of values
	maxShownSteps = 20  // of a path
)

// path is where a value stands: the name of the root, then names of members and
// indices of items.
type path []step

// step is a part of a path.
type step struct {
	name []byte
	item int // index of an item + 1; 0: it is a member
}

// String shows the path as start_event.items[2].name.
func (p path) String() string {
	var b strings.Builder
	for i, step := range p {
		if i == maxShownSteps {
			b.WriteString("...")
			break
		}
		switch {
		case step.item > 0:
			fmt.Fprintf(&b, "[%d]", step.item-1)
		case !plainName(step.name):
			b.WriteString("[" + clip(string(step.name)) + "]")
		case i > 0:
			b.WriteString("." + string(step.name))
		default:
			b.Write(step.name)
		}
	}
	return b.String()
}

// plainName tells whether a name can stand in a path without quotes.
func plainName(name []byte) bool {
	for _, r := range name {
		letter := r == '_' || r == '-' || r == '$' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !letter {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxShownText
}

// String names the types: "a string, an integer or null".
func (t types) String() string {
	var names []string
	for _, known := range typeNames {
		if t&known.is == 0 || known.is == typeInteger && t&typeNumber != 0 {
			continue
		}
		names = append(names, known.one)
	}
	switch n := len(names); n {
	case 0:
		return "absent"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
}

// describe says what a value is that has the wrong type. Only numbers are
// shown themselves, as 1.5 explains itself where an integer is wanted.
func describe(v cursor) string {
	switch v.kind {
	case kindInt, kindUint, kindFloat:
		return show(v)
	case kindBlob:
		return "a byte string"
	}
	return typesOf(v).String()
}

// show writes a value as JSON, cut short.
func show(v cursor) string {
	switch v.kind {
	case kindFalse:
		return "false"
	case kindTrue:
		return "true"
	case kindInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case kindUint:
		return strconv.FormatUint(v.bits, 10)
	case kindText:
		return clip(string(v.raw[:min(len(v.raw), maxShownText+1)]))
	case kindFloat:
		s := strconv.FormatFloat(v.float(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	case kindList:
		return "a certain array"
	case kindObject:
		return "a certain object"
	case kindBlob:
		return "a certain byte string"
	}
	return "null"
}

// showAll lists values, cut short.
func showAll(values []cursor) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxShownAll {
			fmt.Fprintf(&b, "and %d more", len(values)-i)
			break
		}
		b.WriteString(show(v))
	}
	return b.String()
}

// showRat writes a bound of a schema as a decimal number.
func showRat(r *big.Rat) string {
	if r.IsInt() {
		return clipPlain(r.Num().String())
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func clipPlain(s string) string { return abi.Clip(s, maxShownText) }

// clip quotes text, cut short.
func clip(s string) string { return strconv.Quote(clipPlain(s)) }

// evaluate lists what is wrong with a value, named after root. The error is that of
// the meter, unless the meter's limit was reached: then the list says so.
func evaluate(m *work.Meter, s *schema, v cursor, root string) ([]string, error) {
	e := &evaluation{path: path{{name: []byte(root)}}, meter: m}
	if e.apply(s, v, nil) {
		return nil, nil
	}
	if e.err != nil {
		return nil, e.err
	}
	if e.stop != "" {
		return append(e.problems, root+": "+e.stop), nil
	}
	if e.more {
		e.problems = append(e.problems, "and more")
	}
	return e.problems, nil
}
