package screen

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// Text that is written while the line is shown appears above the line, complete. The line
// is removed at the end.
func TestWorkingLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		w := NewWorking(&shown)
		w.Size = func() Terminal { return Terminal{Live: true, Cols: 30, Rows: 5} }
		for range 2 {
			w.Phase("compiling %s", "greet")
			if _, err := io.WriteString(w, "main.go:1: said\n"); err != nil {
				t.Fatal(err)
			}
			w.Detail("the server checks a file with a long name")
			w.Done()
			w.Done()
		}
		const gone = LineStart + ClearBelow
		once := gone + "⠋ compiling greet, 0 s" + gone + "main.go:1: said\n" + gone + "⠙ the server checks a file w…" + gone
		again := strings.NewReplacer("⠋", "⠹", "⠙", "⠸").Replace(once)
		if got := shown.String(); got != once+again {
			t.Errorf("shown:\n%q\nwant:\n%q", got, once+again)
		}
	})
}
