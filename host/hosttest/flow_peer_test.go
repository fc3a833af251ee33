package hosttest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// peerRun is the result of a run in the agno package.
type peerRun struct {
	Result  any
	Stopped bool
	Error   string
	State   map[string]any
}

// TestFlowsAsInAgno runs the table of TestFlows in the agno package. The results are
// equal, except in the cases that declare a difference.
func TestFlowsAsInAgno(t *testing.T) {
	dir := filepath.Join(hosttest.Root(), "testdata", "flows")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), hosttest.Python(t, "agno"), append([]string{filepath.Join(dir, "peer.py")}, files...)...)
	cmd.Dir = t.TempDir()
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	played := map[string][]peerRun{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var line struct {
			File, Name string
			Runs       []peerRun
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		played[line.File+"/"+line.Name] = line.Runs
	}
	for file, cases := range flowCases(t) {
		for _, c := range cases {
			t.Run(file+"/"+c.Name, func(t *testing.T) {
				theirs := played[file+".json/"+c.Name]
				if len(theirs) != len(c.Runs) {
					t.Fatalf("%d runs were played, want %d", len(theirs), len(c.Runs))
				}
				same := slices.EqualFunc(c.Runs, theirs, func(ours flowRun, theirs peerRun) bool {
					return ours.Error == nil && theirs.Error == "" && reflect.DeepEqual(ours.Result, theirs.Result) &&
						ours.Stopped == theirs.Stopped && reflect.DeepEqual(ours.State, theirs.State)
				})
				switch {
				case !same && c.Ours == "":
					t.Errorf("it came to %+v, ours to %+v", theirs, c.Runs)
				case same && c.Ours != "":
					t.Errorf("it is the same by now, and does no more what was noted: %s", c.Ours)
				}
			})
		}
	}
}
