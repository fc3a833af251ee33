package guest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/weftrun/weft/cmd/weft/guest/script"
)

// buildScript bundles the project and puts the bundle into the engine, all in this
// process.
func (p Project) buildScript(ctx context.Context, o Options, out string) error {
	if o.Begins != nil {
		o.Begins()
	}
	if o.Types && p.Language != "py" {
		if err := p.checkTypes(ctx, o); err != nil {
			return err
		}
	}
	wasm, err := script.Build(p.Dir, script.Options{Language: p.Language, Version: o.Version, NoLines: o.NoLines, Said: o.Said})
	if errors.Is(err, script.ErrSources) {
		return ErrCompile
	}
	if err != nil {
		return err
	}
	return replace(out, wasm)
}

// TestFiles lists the files with tests of a project in TypeScript, JavaScript or Python,
// relative to its folder: those that end in .test.ts, .test.mts, .test.js or .test.mjs, and
// in Python test_*.py.
func (p Project) TestFiles() ([]string, error) {
	pattern := scriptTest
	if p.Language == "py" {
		pattern = pythonTest
	} else if !Script(p.Language) {
		return nil, nil
	}
	var files []string
	err := filepath.WalkDir(p.Dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != p.Dir && (built[d.Name()] || d.Name() == "sdk" || d.Name() == "vendor"):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !pattern.MatchString(d.Name()):
			return nil
		}
		rel, err := filepath.Rel(p.Dir, name)
		files = append(files, rel)
		return err
	})
	return files, err
}

var (
	scriptTest = regexp.MustCompile(`\.test\.m?[jt]s$`)
	pythonTest = regexp.MustCompile(`^test_.*\.py$`)
)

// BuildTests makes a module of files with tests: see [script.BuildTests].
//
// # Errors
//
// ErrCompile if the bundler refuses the sources.
func (p Project) BuildTests(files []string, workflow string, o Options) ([]byte, error) {
	wasm, err := script.BuildTests(p.Dir, files, workflow, script.Options{Language: p.Language, Version: o.Version, Said: o.Said})
	if errors.Is(err, script.ErrSources) {
		return nil, ErrCompile
	}
	return wasm, err
}

// checkTypes calls the TypeScript compiler of the project, if the project has one and
// this machine has Node, which runs it.
func (p Project) checkTypes(ctx context.Context, o Options) error {
	const compiler = "node_modules/.bin/tsc"
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, compiler)); err != nil {
		return nil //nolint:nilerr // types are checked where there is a compiler
	}
	if _, err := exec.LookPath("node"); err != nil {
		return nil //nolint:nilerr // likewise
	}
	o.Begins = nil
	return o.run(p.command(ctx, filepath.Join(dir, compiler), "--noEmit", "--pretty", "false"))
}
