// Package search finds runs by the words of their errors and results: it reads what people
// search for, and says which words a run has.
//
// It must not know how stores look words up.
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
	// MaxBytes is the longest text that is searched for, in bytes.
	MaxBytes = 256
	// MaxTerms is how many words it may have.
	MaxTerms = 8
	// MinPrefix is how long the beginning of a word must be that is searched for, in
	// bytes: a letter or two begin too many words.
	MinPrefix = 3
	// MaxText is how much of a run's text can be found, in bytes: its error comes
	// first, then its result.
	MaxText = 8 << 10
	// maxWord is how much of a word counts, in bytes.
	maxWord = 64
)

// Parse reads a text that is searched for: words, all of which have to occur, in
// any order. A word is what lies between characters that are neither letters nor
// digits; a * directly behind it makes it the beginning of one. No other character
// has a meaning. A text without any characters searches for nothing.
//
// # Errors
//
// CodeInvalidArgument when it is too long, no UTF-8, has too many words or none, or
// too short a beginning of one.
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

// Matches reports whether all terms occur in a run's words, as Words gives them. A run
// that has not ended has none, so that only no terms at all occur in it.
func Matches(words []string, terms []host.SearchTerm) bool {
	for _, t := range terms {
		i, found := slices.BinarySearch(words, t.Word)
		if !found && (!t.Prefix || i == len(words) || !strings.HasPrefix(words[i], t.Word)) {
			return false
		}
	}
	return true
}

// Words returns the words by which a run can be found, sorted, each once: those of its
// error's code and message, of its result's type, and of the names, texts and numbers
// in its result, up to MaxSearched bytes. Before its end a run has none.
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
		if v, err := abi.DecodeValue(r.Result.Body); err == nil { // what does not read has no words
			g.value(v)
		}
	}
	return slices.Sorted(maps.Keys(g.words))
}

// gatherer gathers words.
type gatherer struct {
	left  int // bytes that may still be looked at
	words map[string]struct{}
}

func (g *gatherer) text(text string) {
	if len(text) > g.left {
		text = text[:g.left]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && size == 1 {
			text = text[:len(text)-1] // the first byte of what was cut off
		}
		g.left = 0
	} else {
		g.left -= len(text)
	}
	eachWord(text, func(word string, _ int) { g.words[word] = struct{}{} })
}

// value gathers the words of a decoded value. Maps go in the order of their names, so
// that the same is cut off each time.
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

// eachWord hands out the words of a text, in the form in which they are compared, and
// where in the text they end.
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
		// Over the capital, as letters that differ in form alone (ς, σ) have the same.
		if r = unicode.ToLower(unicode.ToUpper(r)); len(word)+utf8.RuneLen(r) <= maxWord {
			word = utf8.AppendRune(word, r)
		}
	}
	if len(word) > 0 {
		each(string(word), len(text))
	}
}

// inWord reports whether a character is part of a word. Marks are: in many scripts
// vowels are.
func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}
