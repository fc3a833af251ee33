package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/host/sandbox/codefiles"
)

// TestUnfinishedBuildsOfOthers: a sandbox removes what processes have left that have ended,
// and what is too old, and leaves the builds of other processes alone.
func TestUnfinishedBuildsOfOthers(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder := func(name string) string { return filepath.Join(dir, name) }
	mine, other := fmt.Sprintf("unfinished-%d-1", os.Getpid()), fmt.Sprintf("unfinished-%d-2", os.Getppid())
	old := fmt.Sprintf("unfinished-%d-3", os.Getppid())
	for _, name := range []string{mine, other, old, fmt.Sprintf("unfinished-%d-4", ended.Process.Pid), "unfinished-x", "built"} {
		if err := os.Mkdir(folder(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-2 * codefiles.UnfinishedFor)
	if err := os.Chtimes(folder(old), then, then); err != nil {
		t.Fatal(err)
	}
	if err := codefiles.RemoveUnfinished(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"built", mine, other}
	slices.Sort(want)
	var got []string
	for _, e := range left {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("left: %q, want %q", got, want)
	}
}
