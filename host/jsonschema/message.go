package jsonschema

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
type path []Step

// Step is a part of a path: the Name of a member, or an Item.
type Step struct {
	Name string
	Item int // index of an item + 1; 0: the step is a member
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
		case step.Item > 0:
			fmt.Fprintf(&b, "[%d]", step.Item-1)
		case !plainName(step.Name):
			b.WriteString("[" + clip(step.Name) + "]")
		case i > 0:
			b.WriteString("." + step.Name)
		default:
			b.WriteString(step.Name)
		}
	}
	return b.String()
}

// plainName tells whether a name can stand in a path without quotes.
func plainName(name string) bool {
	for _, r := range name {
		letter := r == '_' || r == '-' || r == '$' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !letter {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxShownText
}

// String names the types: "a string, an integer or null".
func (t Types) String() string {
	names := t.names(func(name, one string) string { return one })
	switch n := len(names); n {
	case 0:
		return "absent"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
}

// Names returns the names of the types in the specification, without "integer" if
// "number" is among them.
func (t Types) Names() []string {
	return t.names(func(name, _ string) string { return name })
}

func (t Types) names(of func(name, one string) string) (names []string) {
	for _, known := range typeNames {
		if t&known.is == 0 || known.is == typeInteger && t&typeNumber != 0 {
			continue
		}
		names = append(names, of(known.name, known.one))
	}
	return names
}

// describe says what a value is that has the wrong type. Only numbers are shown
// themselves, as 1.5 explains itself where an integer is wanted.
func (c Value) describe() string {
	switch c.kind {
	case kindInt, kindUint, kindFloat:
		return show(c)
	case kindBytes, kindBlob:
		return "a byte string"
	}
	return typesOf(c).String()
}

// show writes a value as JSON, cut short.
func show(v Value) string {
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
	case kindBytes, kindBlob:
		return "a certain byte string"
	}
	return "null"
}

// showAll lists values, cut short.
func showAll(values []Value) string {
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

// Evaluate lists what is wrong with an encoded value, named after root, in at most
// ten lines and one that says that there are more. The error is that of the
// meter, unless the meter's limit was reached: then the list says so.
func (s *Schema) Evaluate(m *work.Meter, v Value, root string) ([]string, error) {
	e := &evaluation{path: path{{Name: root}}, meter: m, prices: encoded}
	e.apply(s, v, nil)
	return e.lines(root)
}

// lines lists what is wrong with the value of that name.
func (e *evaluation) lines(root string) ([]string, error) {
	if e.err != nil {
		return nil, e.err
	}
	var lines []string
	for _, p := range e.problems {
		lines = append(lines, path(p.Path).String()+": "+p.Text)
	}
	switch {
	case e.stop != "":
		lines = append(lines, root+": "+e.stop)
	case e.more:
		lines = append(lines, "and more")
	}
	return lines, nil
}

// Checker checks values of a tree one by one. It is for one goroutine at a time.
type Checker struct{ evaluation }

// NewChecker makes a checker that charges a meter by a table.
func NewChecker(m *work.Meter, prices Prices) *Checker {
	return &Checker{evaluation{meter: m, prices: prices, first: true}}
}

// Check returns the first problem of a value; nil if there is none. The path of the
// problem begins at the value. A shallow check leaves out what is in a list or an
// object, and which members are required. The result is of no use if the meter has
// ended.
func (c *Checker) Check(s *Schema, v Value, shallow bool) *Problem {
	c.shallow, c.found, c.stop, c.problems, c.path = shallow, false, "", c.problems[:0], c.path[:0]
	if c.apply(s, v, nil) {
		return nil
	}
	if len(c.problems) == 0 {
		return &Problem{Schema: s, Value: v, Text: c.stop}
	}
	return &c.problems[0]
}
