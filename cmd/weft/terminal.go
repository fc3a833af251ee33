package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// A terminal that does not tell its size has this one.
const (
	defaultCols = 80
	defaultRows = 24
)

// terminal is what a command shows its output on.
type terminal struct {
	live  bool // a terminal that understands cursor movements; else a file or pipe
	color bool // it shows colours, and they are wanted
	cols  int  // 0: lines may be of any length
	rows  int
}

// terminalOf looks at where a writer leads.
func terminalOf(w io.Writer) terminal {
	if shown, ok := w.(*working); ok {
		return terminalOf(shown.out)
	}
	f, ok := w.(*os.File)
	if !ok {
		return terminal{}
	}
	cols, rows, ok := windowSize(f)
	if !ok {
		return terminal{}
	}
	if cols <= 0 || rows <= 0 {
		cols, rows = defaultCols, defaultRows
	}
	live := os.Getenv("TERM") != "dumb"
	return terminal{live: live, color: live && wantsColor(), cols: cols, rows: rows}
}

// printable makes text of others safe to show: a terminal obeys control
// characters, and a line has to stay one. Characters that do not print are
// shown as escapes.
func printable(s string) string {
	return escaped(s, func(r rune) string {
		switch r {
		case '\n':
			return `\n`
		case '\t':
			return " "
		case '\r':
			return ""
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// printableJSON does the same to JSON text, which stays the same JSON.
func printableJSON(s string) string {
	return escaped(s, func(r rune) string {
		switch {
		case r == '\n':
			return "\n"
		case r > 0xffff:
			r -= 0x10000
			return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escaped replaces the characters that do not print.
func escaped(s string, replace func(rune) string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(replace(r))
		}
	}
	return b.String()
}
