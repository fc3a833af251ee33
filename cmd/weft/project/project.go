// Package project has the commands that create a project of steps and update its SDK, and
// finds and compiles projects for other commands.
//
// It does not depend on servers.
package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// compilers are the names of the compilers of languages.
var compilers = map[string]string{"go": "Go", "tinygo": "TinyGo", "rust": "Rust", "ts": "weft", "js": "weft", "py": "weft"}

// Compiling returns a function that shows that a project is being compiled.
func Compiling(w *screen.Working, p guest.Project) func() {
	return func() { w.Phase("compiling %s with %s", p.Name, compilers[p.Language]) }
}

// LanguageFlag adds --lang to a command that builds.
func LanguageFlag(cmd *cobra.Command, language *string) {
	cmd.Flags().StringVar(language, "lang", "", "`LANGUAGE` to compile as: "+strings.Join(guest.Languages, ", ")+" (default: the project's)")
}

// Folder returns the folder that an argument names, if any.
func Folder(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}

// Find examines a folder; see [guest.Find].
func Find(dir, language string) (guest.Project, error) {
	if language != "" && !slices.Contains(guest.Languages, language) {
		return guest.Project{}, cli.Usage("unknown language %q: %s", language,
			cli.Meant(language, guest.Languages, "there are "+strings.Join(guest.Languages, ", ")))
	}
	return guest.Find(dir, language)
}

// Compile compiles a project, and explains errors.
func Compile(ctx context.Context, p guest.Project, o guest.Options) error {
	o.Version = cli.Version
	err := p.Build(ctx, o)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, guest.ErrCompile):
		return fmt.Errorf("%s: %w; what the compiler says is above", p.Name, err)
	}
	return err
}
