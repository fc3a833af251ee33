// Package search finds runs by the words of their errors and results: it parses queries,
// and determines the words of a run.
//
// It does not depend on how stores look words up.
package search

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Limits of the search of runs by text.
const (
	// MaxBytes is the largest length of a query, in bytes.
	MaxBytes = 256
	// MaxTerms is the largest number of words in a query.
	MaxTerms = 8
	// MinPrefix is the smallest length of a word's beginning in a query, in bytes: too
	// many words begin with the same one or two letters.
	MinPrefix = 3
	// MaxText is how much of a run's text can be found, in bytes: its error comes
	// first, then its result.
	MaxText = 8 << 10
	// maxWord is how much of a word counts, in bytes.
	maxWord = 64
)

// Parse parses a query: words that must all occur, in any order. A word is delimited by
// characters that are neither letters nor digits. A * directly after it makes it the
// beginning of a word. No other character has a meaning. An empty query matches
// everything.
//
// # Errors
//
// CodeInvalidArgument if the query is too long, is not UTF-8, has too many words or none,
// or too short a beginning of a word.
func Parse(text string) ([]host.SearchTerm, error) {
	switch {
	case text == "":
		return nil, nil
	case len(text) > MaxBytes:
		return nil, host.Errorf(host.CodeInvalidArgument, "The text to search for is longer than %d bytes", MaxBytes)
	case !utf8.ValidString(text):
		return nil, host.Errorf(host.CodeInvalidArgument, "The text to search for is not UTF-8")
	}
	var terms []host.SearchTerm
	eachWord(text, func(word string, end int) {
		t := host.SearchTerm{Word: word, Prefix: strings.HasPrefix(text[end:], "*")}
		if !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	})
	if len(terms) == 0 {
		return nil, host.Errorf(host.CodeInvalidArgument, "The text to search for has no word: nothing but letters and digits is searched for")
	}
	if len(terms) > MaxTerms {
		return nil, host.Errorf(host.CodeInvalidArgument, "The text to search for has more than %d words", MaxTerms)
	}
	for _, t := range terms {
		if t.Prefix && len(t.Word) < MinPrefix {
			return nil, host.Errorf(host.CodeInvalidArgument, "The beginning of a word to search for, '%s*', is shorter than %d letters", t.Word, MinPrefix)
		}
	}
	return terms, nil
}

// Matches reports whether all terms occur in a run's words, which come from Words. A run
// that has not ended has no words, so it matches only an empty list of terms.
func Matches(words []string, terms []host.SearchTerm) bool {
	for _, t := range terms {
		i, found := slices.BinarySearch(words, t.Word)
		if !found && (!t.Prefix || i == len(words) || !strings.HasPrefix(words[i], t.Word)) {
			return false
		}
	}
	return true
}

// Words returns the words by which a run can be found, sorted and without duplicates: the
// words of its error's code and message, of its result's type, and of the names, texts
// and numbers in its result, up to MaxText bytes. A run that has not ended has none.
func Words(r *host.Run) []string {
	if !r.Status.Final() {
		return nil
	}
	g := gatherer{left: MaxText, words: map[string]struct{}{}}
	g.text(r.ErrorCode)
	g.text(r.Error)
	if r.Result != nil {
		if !r.Result.Base {
			g.text(r.Result.Type)
		}
		if v, err := abi.DecodeValue(r.Result.Body); err == nil { // an unreadable value has no words
			g.value(v)
		}
	}
	return slices.Sorted(maps.Keys(g.words))
}

// gatherer gathers words.
type gatherer struct {
	left  int // remaining bytes to examine
	words map[string]struct{}
}

func (g *gatherer) text(text string) {
	if len(text) > g.left {
		text = text[:g.left]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && size == 1 {
			text = text[:len(text)-1] // the first byte after the limit
		}
		g.left = 0
	} else {
		g.left -= len(text)
	}
	eachWord(text, func(word string, _ int) { g.words[word] = struct{}{} })
}

// value collects the words of a decoded value. It visits maps in the order of their
// names, so that the limit always cuts at the same place.
func (g *gatherer) value(v any) {
	if g.left <= 0 {
		return
	}
	switch v := v.(type) {
	case string:
		g.text(v)
	case int64:
		g.text(strconv.FormatInt(v, 10))
	case uint64:
		g.text(strconv.FormatUint(v, 10))
	case float64:
		g.text(strconv.FormatFloat(v, 'f', -1, 64))
	case []any:
		for _, e := range v {
			g.value(e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			g.text(name)
			g.value(v[name])
		}
	}
}

// eachWord calls each with the words of a text, in the form in which they are compared,
// and the offsets of their ends.
func eachWord(text string, each func(word string, end int)) {
	var word []byte
	for at, r := range text {
		if !inWord(r) {
			if len(word) > 0 {
				each(string(word), at)
				word = word[:0]
			}
			continue
		}
		// Convert through capitals, because letters that differ only in form (ς, σ) share
		// one.
		if r = unicode.ToLower(unicode.ToUpper(r)); len(word)+utf8.RuneLen(r) <= maxWord {
			word = utf8.AppendRune(word, r)
		}
	}
	if len(word) > 0 {
		each(string(word), len(text))
	}
}

// inWord reports whether a character is part of a word. Marks are, because in many
// scripts vowels are marks.
func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}
