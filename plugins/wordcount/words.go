package main

import (
	"strings"
	"unicode"
)

// words counts the words of a text, in lower case. A word is a sequence of letters and
// apostrophes that has a letter.
func words(text string) map[string]int {
	counts := map[string]int{}
	var lower strings.Builder // the words share its memory
	lower.Grow(len(text))
	begin, letters := 0, false // where the current word begins, and whether it has a letter
	end := func() {
		if letters {
			counts[lower.String()[begin:]]++
		}
		begin, letters = lower.Len(), false
	}
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z':
			lower.WriteByte(byte(r))
			letters = true
		case r == '\'':
			lower.WriteByte('\'')
		case unicode.IsLetter(r):
			lower.WriteRune(unicode.ToLower(r))
			letters = true
		default:
			end()
		}
	}
	end()
	return counts
}
