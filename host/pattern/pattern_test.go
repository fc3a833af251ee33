package pattern_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/pattern"
	"github.com/weftrun/weft/host/work"
)

var most = pattern.Most{Bytes: 1024, States: 500}

// samples are patterns of each form of the syntax, with texts.
var samples = []struct{ pattern, text string }{
	{"", ""}, {"", "x"}, {"a", "bab"}, {"^a$", "a"}, {"^a$", "a\n"}, {`(?m)^b$`, "a\nb\nc"}, {`\Ab`, "ab"},
	{`b\z`, "ab"}, {`\bfoo\b`, "a foo b"}, {`\bfoo\b`, "afoo b"}, {`\Boo`, "foo"}, {`a|b|`, "c"},
	{`(a+)+$`, "aaaaaaaaab"}, {`(?i)straße`, "STRASSE Straße"}, {`(?i)k`, "\u212a"}, {`[^a]`, "aaa"},
	{`[\pL]+\d{2,3}`, "abc12"}, {`^.{3}$`, "日本語"}, {`(?s).`, "\n"}, {`.`, "\n"}, {`\x{10FFFF}`, "\U0010ffff"},
	{"\ufffd", "\xff"}, {"a\ufffd", "a\xff"}, {`\xff`, "\xff"}, {`[[:alpha:]]{3}x?`, "ab1abc"}, {`(foo|foobar)baz`, "foobarbaz"},
	{`^(?:x|y)*z`, "xyxyz"}, {`a{0}`, "b"}, {`(|a)*b`, "aab"}, {`(a*)*`, ""}, {`x*$`, "xxy"}, {`ab*c`, "xabbbcx"},
	{`日本`, "x日本x"}, {`[^\x00-\x{10FFFF}]`, "a"}, {`(?:(?:a{2}){3}){4}`, strings.Repeat("a", 24)}, {`\Qa.b\E`, "a.b"},
}

func compare(t *testing.T, text, in string) {
	t.Helper()
	p, err := pattern.Compile(text, most)
	if err != nil {
		return
	}
	re, err := regexp.Compile(text)
	if err != nil {
		t.Fatalf("%q: package regexp refuses it: %v", text, err)
	}
	m := work.New(0, nil)
	got, err := p.Match(m, in)
	if want := re.MatchString(in); err != nil || got != want {
		t.Fatalf("%q in %q: %v, %v; package regexp: %v", text, in, got, err, want)
	}
	// A character visits each state twice at most, once to follow and once to read.
	if bound := uint64(len(in)+2) * uint64(p.States()+60) * 300; m.Spent() > bound {
		t.Fatalf("%q in %d bytes takes %d units, more than %d", text, len(in), m.Spent(), bound)
	}
	again := work.New(0, nil)
	if same, err := p.Match(again, in); err != nil || same != got || again.Spent() != m.Spent() {
		t.Fatalf("%q in %q: %v and %d units, then %v and %d units, %v", text, in, got, m.Spent(), same, again.Spent(), err)
	}
}

func TestVerdictsAreThoseOfRegexp(t *testing.T) {
	for _, s := range samples {
		if _, err := pattern.Compile(s.pattern, most); err != nil {
			t.Errorf("%q: %v", s.pattern, err)
		}
		for _, other := range samples {
			compare(t, s.pattern, other.text)
		}
	}
}

func FuzzVerdictsAreThoseOfRegexp(f *testing.F) {
	for _, s := range samples {
		f.Add(s.pattern, s.text)
	}
	f.Fuzz(compare)
}

// A match ends when its meter does, at any point, and costs the same each time.
func TestMatchEndsWithItsMeter(t *testing.T) {
	text := strings.Repeat("aaaaaaaaab", 500)
	for _, s := range []string{`(a|aa|a*)*c`, `b{5}`, `literal`, `^(a|b)*$`} {
		p, err := pattern.Compile(s, most)
		if err != nil {
			t.Fatal(err)
		}
		whole := work.New(0, nil)
		if _, err := p.Match(whole, text); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []uint64{1, whole.Spent() / 3, whole.Spent() - 1} {
			var over *work.Exceeded
			if got, err := p.Match(work.New(limit, nil), text); got || !errors.As(err, &over) {
				t.Errorf("%s with %d of %d units: %v, %v", s, limit, whole.Spent(), got, err)
			}
		}
		if _, err := p.Match(work.New(whole.Spent(), nil), text); err != nil {
			t.Errorf("%s with exactly its units: %v", s, err)
		}
	}
}

// No part of a match between two charges is longer than the meter allows.
func TestMatchLooksOften(t *testing.T) {
	p, err := pattern.Compile(`(\pL|\pN|x*y*z*|[^\pL]){40}!`, most)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	m := work.New(0, func(units uint64) error {
		looks++
		if units > work.Look+500_000 {
			t.Errorf("%d units between two looks", units)
		}
		return nil
	})
	if _, err := p.Match(m, strings.Repeat("x", 2000)); err != nil || looks < 10 {
		t.Errorf("%d looks, %v", looks, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`(`:                         "missing closing",
		`a{501}`:                    "too complex",
		`((a{20}){20}){2}`:          "too complex",
		strings.Repeat(`a{999}`, 9): "too complex",
		strings.Repeat(`a`, 1025):   "1025 bytes",
	} {
		if _, err := pattern.Compile(text, most); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
