package guest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

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
