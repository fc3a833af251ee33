// Package screen shows text to people: tables, sheets of names and values, lines that
// show how far work is, colours, sizes and times, all as wide as the terminal allows. It
// also asks people at a terminal.
//
// Text of others is made safe before a terminal gets it. Where the output is not a
// terminal, text is plain and lines are never cut.
//
// It must not know commands, servers or files. It knows the words of package host for the
// status of a run.
package screen

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

// Terminal is what a command shows its output on.
type Terminal struct {
	Live  bool // a terminal that understands cursor movements; else a file or pipe
	Color bool // it shows colours, and they are wanted
	Cols  int  // 0: lines may be of any length
	Rows  int
}

// Of looks at where a writer leads.
func Of(w io.Writer) Terminal {
	if shown, ok := w.(*Working); ok {
		return Of(shown.out)
	}
	f, ok := w.(*os.File)
	if !ok {
		return Terminal{}
	}
	cols, rows, ok := windowSize(f)
	if !ok {
		return Terminal{}
	}
	if cols <= 0 || rows <= 0 {
		cols, rows = defaultCols, defaultRows
	}
	live := os.Getenv("TERM") != "dumb"
	return Terminal{Live: live, Color: live && wantsColor(), Cols: cols, Rows: rows}
}

// Printable makes text of others safe to show: a terminal obeys control
// characters, and a line has to stay one. Characters that do not print are
// shown as escapes.
func Printable(s string) string {
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

// PrintableJSON does the same to JSON text, which stays the same JSON.
func PrintableJSON(s string) string {
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
