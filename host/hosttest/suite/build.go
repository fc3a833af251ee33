package suite

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Build runs a compiler that makes the file out from the files in the source folders. If
// "make" has recorded the compiler's identity, the result of an earlier build of the same
// files by the same compiler comes from a cache outside the checkout: see .ci/built.
// Build returns what the compiler printed.
func Build(cmd *exec.Cmd, out string, sources ...string) ([]byte, error) {
	tool := map[string]string{"go": "go", "tinygo": "tinygo"}[filepath.Base(cmd.Path)]
	stamp, err := os.ReadFile(filepath.Join(Root(), "build", "stamp-"+tool))
	if err != nil {
		return cmd.CombinedOutput()
	}
	args := []string{out}
	for _, dir := range sources {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "wefttest") {
				return fs.SkipDir
			}
			if err == nil && d.Type().IsRegular() {
				args = append(args, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	by := string(stamp) + strings.ReplaceAll(strings.Join(cmd.Args, "\n"), out, "OUT")
	whole := exec.Command(filepath.Join(Root(), ".ci", "built"), slices.Concat(args, []string{"--"}, cmd.Args)...)
	whole.Dir, whole.Env = cmd.Dir, append(slices.Clip(cmd.Env), "WEFT_BUILT_BY="+by)
	return whole.CombinedOutput()
}

// GuestSDK returns the folder of the Go SDK, a source of every guest in Go.
func GuestSDK() string { return filepath.Join(Root(), "sdk-guest", "go") }
