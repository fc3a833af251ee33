// Package pattern matches texts with regular expressions in linear time, on a meter. Each
// state that a match visits is charged, and the match ends when the meter does.
//
// The patterns are those of package regexp, with the same results. Package regexp itself
// does not bound a match: a long text and a large pattern take seconds in one call.
package pattern

import (
	"fmt"
	"math/bits"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/weftrun/weft/host/work"
)

// The prices, in units of package work.
const (
	stateUnits = 30  // a state visited
	runeUnits  = 24  // a character, or a step of the search in a large class of characters
	matchUnits = 300 // the start of a match
	memUnits   = 2   // the start of a match, for each state of the pattern
	// For each 8 bytes that are searched for a literal.
	literalUnits = 8
)

// piece is how many bytes are searched for a literal between two charges.
const piece = 64 << 10

// Pattern is a compiled regular expression. It is immutable and safe for concurrent use.
type Pattern struct {
	text     string
	prog     *syntax.Prog
	weight   []uint32 // price of each instruction
	prefix   string   // every match begins with it; "": not known
	complete bool     // the prefix is a match
	anchored bool     // a match can only begin at the beginning of the text
}

// Most bounds a pattern.
type Most struct {
	Bytes  int // of its text
	States int // of its program
}

// Compile parses a pattern in the syntax of package regexp. The error says what is wrong
// with the pattern, or which bound it exceeds.
func Compile(text string, most Most) (*Pattern, error) {
	if len(text) > most.Bytes {
		return nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(text), most.Bytes)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	// Simplify expands repetitions. Count what the expansion makes before making it.
	if size(tree, most.States) > most.States {
		return nil, tooComplex(most)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > most.States {
		return nil, tooComplex(most)
	}
	p := &Pattern{text: text, prog: prog, weight: make([]uint32, len(prog.Inst))}
	for i := range prog.Inst {
		p.weight[i] = stateUnits + runeUnits*uint32(bits.Len(uint(len(prog.Inst[i].Rune))/8))
	}
	p.prefix, p.complete = prog.Prefix()
	p.anchored = prog.StartCond()&syntax.EmptyBeginText != 0
	return p, nil
}

func tooComplex(most Most) error {
	return fmt.Errorf("the pattern is too complex: its program has more than %d states", most.States)
}

// size is an upper bound of the number of states of an expression's program, without the
// states that every program has. It stops counting beyond most.
func size(re *syntax.Regexp, most int) int {
	n := 0
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		times := max(re.Max, re.Min, 1)
		if re.Max == 0 {
			return 0
		}
		return min(times*size(re.Sub[0], most), most+1)
	case syntax.OpConcat, syntax.OpAlternate, syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
	default:
		return 1
	}
	for _, sub := range re.Sub {
		if n += size(sub, most); n > most {
			return most + 1
		}
	}
	return n
}

// Price is the cost of compiling a text, in units. Classes of Unicode are large tables,
// and ignoring case looks up each character.
func Price(text string) uint64 {
	const plain, tables = 2_000, 30_000 // for each byte
	price := uint64(plain)
	if strings.Contains(text, `\p`) || strings.Contains(text, `\P`) || strings.Contains(text, `(?`) {
		price = tables
	}
	return uint64(len(text)+1) * price
}

// String returns the pattern's text.
func (p *Pattern) String() string { return p.text }

// States returns the size of the pattern's program.
func (p *Pattern) States() int { return len(p.prog.Inst) }

// Match reports whether the text contains a match of the pattern. Invalid UTF-8 is read
// as package regexp reads it. The error is that of the meter.
func (p *Pattern) Match(m *work.Meter, text string) (bool, error) {
	if p.prefix != "" {
		at, err := find(m, text, p.prefix)
		if err != nil || at < 0 {
			return false, err
		}
		if p.complete {
			return true, nil
		}
	}
	n := len(p.prog.Inst)
	if err := m.Spend(matchUnits + memUnits*uint64(n)); err != nil {
		return false, err
	}
	room := make([]uint32, 4*n)
	r := run{Pattern: p, meter: m, now: set{room[:n], room[n : n : 2*n]}, next: set{room[2*n : 3*n], room[3*n : 3*n : 4*n]}}
	return r.match(text)
}

// find is strings.Index on a meter.
func find(m *work.Meter, text, literal string) (int, error) {
	for at := 0; ; at += piece {
		part := text[at:]
		last := len(part) <= piece+len(literal)
		if !last {
			part = part[:piece+len(literal)]
		}
		if err := m.Spend(matchUnits + work.Bytes(len(part), literalUnits)); err != nil {
			return 0, err
		}
		if i := strings.Index(part, literal); i >= 0 {
			return at + i, nil
		}
		if last {
			return -1, nil
		}
	}
}

// run is one match: a simulation of all paths through the program at once.
type run struct {
	*Pattern
	meter     *work.Meter
	now, next set
	owed      uint64 // units for visited states that have not been charged yet
}

// set is a set of states that are about to read the next character. sparse maps a state
// to its index in dense; the entry counts only if dense agrees.
type set struct {
	sparse, dense []uint32
}

// add adds a state to the set, unless the set has the state.
func (s *set) add(pc uint32) {
	if i := s.sparse[pc]; int(i) < len(s.dense) && s.dense[i] == pc {
		return
	}
	s.sparse[pc] = uint32(len(s.dense))
	s.dense = append(s.dense, pc)
}

func (r *run) match(text string) (bool, error) {
	before, at := rune(-1), 0
	for {
		if len(r.now.dense) == 0 {
			if at > 0 && r.anchored {
				return false, r.settle()
			}
			if r.prefix != "" { // no path is open, and a match begins with the prefix
				i, err := find(r.meter, text[at:], r.prefix)
				if err != nil || i < 0 {
					return false, err
				}
				if i > 0 {
					at += i
					before, _ = utf8.DecodeLastRuneInString(text[:at])
				}
			}
		}
		c, size := rune(-1), 0
		if at < len(text) {
			c, size = utf8.DecodeRuneInString(text[at:])
		}
		done := r.advance(before, c, at == 0 || !r.anchored)
		if err := r.settle(); err != nil || done {
			return done && err == nil, err
		}
		if size == 0 {
			return false, nil
		}
		if done := r.read(c); done {
			return true, r.settle()
		}
		before, at = c, at+size
	}
}

// settle charges for the visited states. Each character visits each state at most once,
// so the meter never lags behind by more.
func (r *run) settle() error {
	owed := r.owed + runeUnits
	r.owed = 0
	return r.meter.Spend(owed)
}

// advance follows the paths that read nothing, between two characters. It returns true if
// a path ends in a match.
func (r *run) advance(before, after rune, begin bool) bool {
	flags := syntax.EmptyOpContext(before, after)
	if begin {
		r.now.add(uint32(r.prog.Start))
	}
	for i := 0; i < len(r.now.dense); i++ { //nolint:intrange // dense grows in the loop
		pc := r.now.dense[i]
		inst := &r.prog.Inst[pc]
		r.owed += stateUnits
		switch inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			r.now.add(inst.Out)
			r.now.add(inst.Arg)
		case syntax.InstNop, syntax.InstCapture:
			r.now.add(inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^flags == 0 {
				r.now.add(inst.Out)
			}
		}
	}
	return false
}

// read makes every path read a character. It returns true if a path ends in a match right
// after the character. advance finds the matches that depend on what follows.
func (r *run) read(c rune) bool {
	r.next.dense = r.next.dense[:0]
	for _, pc := range r.now.dense {
		inst := &r.prog.Inst[pc]
		reads := false
		switch inst.Op {
		case syntax.InstRune1:
			reads = c == inst.Rune[0]
		case syntax.InstRune:
			r.owed += uint64(r.weight[pc])
			reads = inst.MatchRune(c)
		case syntax.InstRuneAny:
			reads = true
		case syntax.InstRuneAnyNotNL:
			reads = c != '\n'
		}
		if !reads {
			continue
		}
		if r.prog.Inst[inst.Out].Op == syntax.InstMatch {
			return true
		}
		r.next.add(inst.Out)
	}
	r.now, r.next = r.next, r.now
	return false
}
