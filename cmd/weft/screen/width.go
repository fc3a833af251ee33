package screen

import "github.com/mattn/go-runewidth"

// columns counts the columns of a terminal that text takes. Characters whose width the
// user's language decides are narrow, as terminals show them unless told otherwise: the
// locale of a command and that of its terminal may differ.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// Width is how many columns a line of printable text takes: 2 for each ideograph and
// emoji, 0 for a mark that combines with the character before.
func Width(s string) int { return columns.StringWidth(s) }

// Cut shortens text to a number of columns, the last of which then is an ellipsis. The
// text is one column shorter if a wide character does not fit.
func Cut(s string, width int) string {
	switch {
	case Width(s) <= width:
		return s
	case width <= 0:
		return ""
	}
	return columns.Truncate(s, width, "…")
}
