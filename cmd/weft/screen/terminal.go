// Package screen shows text to people: tables, sheets of names and values, progress
// lines, colours, sizes and times, all as wide as the terminal allows. It also asks
// people at a terminal.
//
// Text from other users is made safe before it is shown on a terminal. If the output is
// not a terminal, text is plain and lines are never cut.
//
// The package does not depend on commands, servers or files. It uses the statuses of
// package host.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// The size of a terminal that does not report its size.
const (
	defaultCols = 80
	defaultRows = 24
)

// Terminal describes the output of a command.
type Terminal struct {
	Live  bool // a terminal that supports cursor movements; otherwise a file or pipe
	Color bool // the terminal supports colours, and they are enabled
	Cols  int  // 0: lines may be of any length
	Rows  int
}

// Of examines the output of a writer.
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

// Printable makes text from other users safe to show: a terminal executes control
// characters, and a line must remain one line. It replaces characters that do not print
// by escapes.
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

// PrintableJSON does the same for JSON text, whose value does not change.
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
