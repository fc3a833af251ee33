package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrCompile is returned if a compiler refuses the sources. The compiler has printed why.
var ErrCompile = errors.New("it does not compile")

// Options say how a project is built.
type Options struct {
	// Names keeps the names of functions and the source lines in the module, for
	// debugging. The module is larger then.
	Names bool
	// NoLines leaves out the table of lines from a module in TypeScript or JavaScript:
	// errors then name no files and lines.
	NoLines bool
	// Types checks types with the TypeScript compiler in node_modules, if there is one.
	Types bool
	// Version is the version of the program that builds.
	Version string
	// Out is the output file; "": [Project.Output].
	Out string
	// Said receives the compiler's output, unchanged.
	Said io.Writer
	// Begins, if not nil, is called when the compiler is found, before it runs.
	Begins func()
}

// Build compiles the project.
//
// # Errors
//
// ErrCompile if the compiler refuses the sources, *Missing if this machine does not have
// the required tools, ctx's error.
func (p Project) Build(ctx context.Context, o Options) error {
	if o.Out == "" {
		o.Out = p.Output()
	}
	out, err := filepath.Abs(o.Out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	switch p.Language {
	case "go":
		err = p.buildGo(ctx, o, out)
	case "tinygo":
		err = p.buildTinyGo(ctx, o, out)
	case "ts", "js", "py":
		err = p.buildScript(ctx, o, out)
	default:
		err = p.buildRust(ctx, o, out)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// buildGo calls Go. Its modules always report the file and line of a panic: the omitted
// information is for debuggers.
func (p Project) buildGo(ctx context.Context, o Options, out string) error {
	if err := needGo(ctx, p.Dir); err != nil {
		return err
	}
	args := []string{"build", "-buildmode=c-shared", "-buildvcs=false", "-trimpath", "-ldflags=-s -w"}
	cmd := p.command(ctx, "go", append(append(args, p.Flags...), "-o", out, ".")...)
	cmd.Env = append(cmd.Env, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	return o.run(cmd)
}

// buildTinyGo calls TinyGo.
func (p Project) buildTinyGo(ctx context.Context, o Options, out string) error {
	if err := needTinyGo(ctx, p.Dir); err != nil {
		return err
	}
	args := []string{"build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-gc=leaking"}
	if !o.Names {
		args = append(args, "-no-debug")
	}
	return o.run(p.command(ctx, "tinygo", append(append(args, p.Flags...), "-o", out, ".")...))
}

// buildRust calls cargo, and copies the module that cargo has built.
func (p Project) buildRust(ctx context.Context, o Options, out string) error {
	cargo, err := needCargo(ctx)
	if err != nil {
		return err
	}
	args := append([]string{"build", "--release", "--target", wasmTarget, "--message-format=json-render-diagnostics"}, p.Flags...)
	if o.Names {
		// Only for the project's own crate: with another profile, cargo would rebuild all
		// dependencies.
		args[0] = "rustc"
		args = append(args, "--lib", "--", "-C", "strip=none", "-C", "debuginfo=line-tables-only")
	}
	cmd := p.command(ctx, cargo, args...)
	var messages bytes.Buffer
	cmd.Stdout = &messages
	if err := o.run(cmd); err != nil {
		return err
	}
	module, err := artifact(&messages)
	if err != nil {
		return err
	}
	if module == "" {
		return errors.New("cargo has built no module: Cargo.toml lacks crate-type = [\"cdylib\"] under [lib]")
	}
	return copyFile(module, out)
}

// artifact finds the module in cargo's messages about the files that it has built.
func artifact(messages io.Reader) (string, error) {
	lines := bufio.NewReader(messages)
	module := ""
	for {
		line, err := lines.ReadBytes('\n')
		var m struct {
			Reason    string
			Filenames []string
		}
		if json.Unmarshal(line, &m) == nil && m.Reason == "compiler-artifact" {
			for _, name := range m.Filenames {
				if strings.HasSuffix(name, ".wasm") {
					module = name // the last one is the project's own
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return module, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// copyFile writes a new file and renames it over the old one, so that no program reads an
// incomplete file.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return replace(to, text)
}

func replace(file string, text []byte) error {
	if err := os.WriteFile(file+".new", text, 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// command prepares a call of a compiler in the project's folder. A Go workspace around the
// caller must not affect guests.
func (p Project) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.WaitDelay = killAfter
	return cmd
}

// run calls a compiler.
func (o Options) run(cmd *exec.Cmd) error {
	if o.Begins != nil {
		o.Begins()
	}
	cmd.Stderr = o.Said
	if cmd.Stdout == nil {
		cmd.Stdout = o.Said
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return ErrCompile
	}
	if err != nil {
		return fmt.Errorf("call %s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}
