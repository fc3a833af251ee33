package screen

import "github.com/mattn/go-runewidth"

// columns counts the terminal columns of a text. Characters whose width depends on the
// user's language are narrow, which is the default of terminals: the locale of a command
// and the locale of its terminal may differ.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns the number of columns of a printable line: 2 for each ideograph and
// emoji, 0 for a mark that combines with the previous character.
func Width(s string) int { return columns.StringWidth(s) }

// Cut shortens text to a number of columns. If it removes text, it ends with an ellipsis.
// The text is one column shorter if a wide character does not fit.
func Cut(s string, width int) string {
	switch {
	case Width(s) <= width:
		return s
	case width <= 0:
		return ""
	}
	return columns.Truncate(s, width, "…")
}
