package main

import (
	"strings"
	"unicode/utf8"
)

// leastColumn is how narrow a column gets at most, in characters.
const leastColumn = 8

// gap separates columns.
const gap = "  "

// column is one column of a table.
type column struct {
	title   string
	elastic bool // may be cut so that the table fits
	right   bool // numbers
}

// table is text in columns.
type table struct {
	columns []column
	rows    [][]string
}

// add adds a row. Cells are made printable, as they come from others.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	t.rows = append(t.rows, cells)
}

// statusTitle is the title of columns, and the name of lines, that show how a run is.
const statusTitle = "status"

// render gives the table's lines as the terminal shows them, no longer than its lines
// if the elastic columns allow it.
func (t *table) render(on terminal) string {
	widths := t.widths()
	if on.cols > 0 {
		t.squeeze(widths, on.cols)
	}
	var b strings.Builder
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	t.line(&b, titles, widths, func(_, text string) string { return on.paint(bold, text) })
	for _, row := range t.rows {
		t.line(&b, row, widths, func(title, text string) string {
			if strings.EqualFold(title, statusTitle) {
				return on.paint(statusColor(text), text)
			}
			return text
		})
	}
	return b.String()
}

// widths gives what each column needs.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	return widths
}

// squeeze takes what is too much from the widest elastic columns.
func (t *table) squeeze(widths []int, width int) {
	over := len(gap)*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range t.columns {
			if c.elastic && widths[i] > leastColumn && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// line adds a line; paint colours a cell of a column.
func (t *table) line(b *strings.Builder, cells []string, widths []int, paint func(title, text string) string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(gap)
		}
		cell = cut(cell, widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		cell = paint(t.columns[i].title, cell)
		if t.columns[i].right {
			line.WriteString(pad + cell)
		} else {
			line.WriteString(cell + pad)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// cut shortens text to a number of characters, the last of which then is an
// ellipsis.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == width {
			return s[:i] + "…"
		}
	}
	return ""
}

// sheet is a list of names and values, one a line.
type sheet struct {
	names  []string
	values []string
}

// add adds a line; empty values are left out. Values are made printable.
func (s *sheet) add(name, value string) {
	if value != "" {
		s.names = append(s.names, name)
		s.values = append(s.values, printable(value))
	}
}

// render gives the lines, each after the indent.
func (s *sheet) render(indent string) string { return s.renderOn(terminal{}, indent) }

// renderOn is render for a terminal, which may show colours.
func (s *sheet) renderOn(on terminal, indent string) string {
	width := 0
	for _, name := range s.names {
		width = max(width, len(name))
	}
	var b strings.Builder
	for i, name := range s.names {
		value := s.values[i]
		switch name {
		case statusTitle:
			value = on.paint(statusColor(value), value)
		case "error", "blocked":
			value = on.paint(red, value)
		}
		b.WriteString(indent + on.paint(bold, name) + strings.Repeat(" ", width-len(name)) + gap + value + "\n")
	}
	return b.String()
}
