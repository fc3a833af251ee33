package screen

import (
	"strings"
)

// leastColumn is the smallest width of a column.
const leastColumn = 8

// Gap separates columns.
const Gap = "  "

// Column is one column of a table.
type Column struct {
	Title   string
	Elastic bool // may be cut so that the table fits
	Right   bool // numbers
}

// Table is text in columns.
type Table struct {
	Columns []Column
	rows    [][]string
}

// Add adds a row. It makes cells printable, because they may come from other users.
func (t *Table) Add(cells ...string) {
	for i, cell := range cells {
		cells[i] = Printable(cell)
	}
	t.rows = append(t.rows, cells)
}

// statusTitle is the title of columns, and the name of lines, that show the status of a
// run.
const statusTitle = "status"

// Render returns the table's lines for a terminal. They are no longer than the terminal's
// lines if the elastic columns allow it.
func (t *Table) Render(on Terminal) string {
	widths := t.widths()
	if on.Cols > 0 {
		t.squeeze(widths, on.Cols)
	}
	var b strings.Builder
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	t.line(&b, titles, widths, func(_, text string) string { return on.Paint(Bold, text) })
	for _, row := range t.rows {
		t.line(&b, row, widths, func(title, text string) string {
			if strings.EqualFold(title, statusTitle) {
				return on.Paint(statusColor(text), text)
			}
			return text
		})
	}
	return b.String()
}

// widths returns the width that each column needs.
func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = Width(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	return widths
}

// squeeze narrows the widest elastic columns until the table fits.
func (t *Table) squeeze(widths []int, width int) {
	over := len(Gap)*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range t.Columns {
			if c.Elastic && widths[i] > leastColumn && (widest < 0 || widths[i] > widths[widest]) {
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
func (t *Table) line(b *strings.Builder, cells []string, widths []int, paint func(title, text string) string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(Gap)
		}
		cell = Cut(cell, widths[i])
		pad := strings.Repeat(" ", widths[i]-Width(cell))
		cell = paint(t.Columns[i].Title, cell)
		if t.Columns[i].Right {
			line.WriteString(pad + cell)
		} else {
			line.WriteString(cell + pad)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// Sheet is a list of names and values, one per line.
type Sheet struct {
	names  []string
	values []string
}

// Add adds a line; empty values are omitted. Values are made printable.
func (s *Sheet) Add(name, value string) {
	if value != "" {
		s.names = append(s.names, name)
		s.values = append(s.values, Printable(value))
	}
}

// Render returns the lines, each with the indent.
func (s *Sheet) Render(indent string) string { return s.RenderOn(Terminal{}, indent) }

// RenderOn is Render for a terminal, which may show colours.
func (s *Sheet) RenderOn(on Terminal, indent string) string {
	width := 0
	for _, name := range s.names {
		width = max(width, Width(name))
	}
	var b strings.Builder
	for i, name := range s.names {
		value := s.values[i]
		switch name {
		case statusTitle:
			value = on.Paint(statusColor(value), value)
		case "error", "blocked":
			value = on.Paint(Red, value)
		}
		b.WriteString(indent + on.Paint(Bold, name) + strings.Repeat(" ", width-Width(name)) + Gap + value + "\n")
	}
	return b.String()
}
