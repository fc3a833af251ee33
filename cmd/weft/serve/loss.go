package serve

import (
	"fmt"
	"io"
	"time"

	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host/store/sqlite"
)

// losses prints what 'weft serve --accept-loss' has lost, as a list. The operator must
// see the list at any log level.
func losses(w io.Writer) func(*sqlite.Missing) {
	told := false
	return func(m *sqlite.Missing) {
		if !told {
			told = true
			_, _ = fmt.Fprintf(w, "Accepted as lost from the data directory %s:\n", m.Dir) // the log has it, too
		}
		_, _ = fmt.Fprintln(w, "  -", lossLine(m))
	}
}

// lossLine describes a loss.
func lossLine(m *sqlite.Missing) string {
	line := m.Code + ": " + m.What
	if m.Commits > 0 {
		line += fmt.Sprintf(", %s", screen.Counted(m.Commits, "acknowledged commit"))
	}
	if !m.Since.IsZero() {
		line += ", the last of them before " + m.Since.UTC().Format(time.RFC3339)
	}
	return line
}
