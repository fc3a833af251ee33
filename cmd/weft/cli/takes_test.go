package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// Arguments in brackets may be absent, and the last may occur any number of times.
func TestTakes(t *testing.T) {
	for _, tt := range []struct {
		names       []string
		least, most int
	}{
		{nil, 0, 0},
		{[]string{"ID"}, 1, 1},
		{[]string{"[ID]"}, 0, 1},
		{[]string{"SESSION", "[PATH]"}, 1, 2},
		{[]string{"SESSION", "PATH=VALUE..."}, 1, 9},
		{[]string{"ID", "TYPE", "key=value..."}, 2, 9},
		{[]string{"ID", "[TYPE]", "key=value..."}, 1, 9},
	} {
		takes := Takes(tt.names...)
		for n := range 10 {
			err := takes(&cobra.Command{}, make([]string, n))
			if want := n >= tt.least && n <= tt.most; (err == nil) != want {
				t.Errorf("of %q, %d arguments: %v", tt.names, n, err)
			}
		}
	}
}
