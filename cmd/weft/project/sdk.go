package project

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/scaffold"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// sdkOptions are the flags of `weft sdk update`.
type sdkOptions struct {
	dryRun bool
	force  bool
}

// NewSDK makes the command 'weft sdk'.
func NewSDK() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sdk [DIR]",
		Short: "Compare a project's SDK with the SDK of this weft, and renew it",
		Long: `Compare the SDK in a project's folder sdk with the SDK in this weft. DIR is the project
(default: this folder). 'weft sdk update' renews the project's SDK.`,
		Example: `  weft sdk
  weft sdk update`,
		Args: cli.Takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showSDK(Folder(args), cmd.OutOrStdout())
		},
	}
	cmd.AddCommand(newSDKUpdate())
	return cmd
}

func newSDKUpdate() *cobra.Command {
	var o sdkOptions
	cmd := &cobra.Command{
		Use:   "update [DIR]",
		Short: "Replace a project's SDK by the SDK of this weft",
		Long: `Replace the SDK in a project's folder sdk by the SDK in this weft, and show which files
change. The command touches nothing outside of that folder, and no file in it that weft
has not put there. It names files of the SDK that were changed in the project, and
overwrites them only with --force.`,
		Example: `  weft sdk update --dry-run
  weft sdk update && weft build && weft test`,
		Args: cli.Takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return updateSDK(o, Folder(args), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&o.force, "force", false, "overwrite files of the SDK that were changed in the project")
	return cmd
}

// compareSDK compares a project's SDK with this program's, and explains errors.
func compareSDK(dir string) (guest.Project, *scaffold.SDK, error) {
	p, err := guest.Find(dir, "")
	if err != nil {
		return p, nil, err
	}
	s, err := scaffold.CompareSDK(dir, p.Language, cli.Version)
	if errors.Is(err, scaffold.ErrNoSDK) {
		err = fmt.Errorf("%s: %w, as those have that 'weft new' makes: its SDK is where %s says", dir, err, manifestFile(p))
	}
	return p, s, err
}

// manifestFile is the compiler's file that says where the SDK is.
func manifestFile(p guest.Project) string {
	switch {
	case p.Language == "rust":
		return "Cargo.toml"
	case p.Language == "py":
		return "pyproject.toml"
	case guest.Script(p.Language):
		return "tsconfig.json"
	}
	return "go.mod"
}

func showSDK(dir string, out io.Writer) error {
	p, s, err := compareSDK(dir)
	if err != nil {
		return err
	}
	text := "the SDK of " + p.Name + " " + standing(s) + "\n" + differences(s)
	if !s.Same() {
		text += "renew it with: weft sdk update" + argument(dir) + "\n"
	}
	_, err = io.WriteString(out, text)
	return err
}

// argument returns a folder as an argument of a command; "" for the current folder.
func argument(dir string) string {
	if dir == "." {
		return ""
	}
	return " " + dir
}

// standing says which SDK a project has, compared with this program's.
func standing(s *scaffold.SDK) string {
	from := "that of weft " + screen.Printable(s.From)
	if s.From == "" {
		from = "of an early weft"
	}
	switch older, ok := scaffold.Older(s.From, cli.Version); {
	case s.Same():
		return "is this weft's"
	case ok && older:
		return "is older than this weft: it is " + from + ", this is " + cli.Version
	case ok:
		return "is newer than this weft: it is " + from + ", this is " + cli.Version
	case s.From == cli.Version:
		return "is not quite that of this weft"
	}
	return "is not this weft's: it is " + from + ", this is " + cli.Version
}

// mostFiles is how many files of a kind are listed.
const mostFiles = 20

// differences lists the files that differ.
func differences(s *scaffold.SDK) string {
	var b strings.Builder
	list := func(what string, names []string) {
		for i, name := range names {
			if i == mostFiles {
				_, _ = fmt.Fprintf(&b, "  %-8s and %d more\n", what, len(names)-i)
				return
			}
			_, _ = fmt.Fprintf(&b, "  %-8s %s/%s\n", what, scaffold.SDKFolder, screen.Printable(name))
		}
	}
	list("changed", s.Changed)
	list("new", s.Added)
	list("gone", s.Removed)
	list("edited", s.Edited)
	list("not ours", s.Foreign)
	return b.String()
}

func updateSDK(o sdkOptions, dir string, out io.Writer) error {
	p, s, err := compareSDK(dir)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, "the SDK of "+p.Name+" "+standing(s)+"\n"+differences(s)); err != nil || s.Same() {
		return err
	}
	if o.dryRun {
		_, err = io.WriteString(out, "dry run: nothing was written\n")
		return err
	}
	if err := o.mayUpdate(s, dir); err != nil {
		return err
	}
	if err := s.Update(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "files written: %d, removed: %d; nothing outside of %s was touched\n",
		len(s.Changed)+len(s.Added), len(s.Removed), filepath.Join(dir, scaffold.SDKFolder))
	if err != nil {
		return err
	}
	return tellGoMod(p, out)
}

// mayUpdate says why an update needs --force.
func (o sdkOptions) mayUpdate(s *scaffold.SDK, dir string) error {
	older, ok := scaffold.Older(cli.Version, s.From)
	switch {
	case o.force:
	case len(s.Edited) > 0:
		return fmt.Errorf("files of the SDK were changed in this project (edited, above), and nothing has been written: "+
			"keep the changes elsewhere, then 'weft sdk update --force%s'", argument(dir))
	case ok && older:
		return errors.New("the project's SDK is newer than this weft, and nothing has been written: --force replaces it by the older one")
	}
	return nil
}

// tellGoMod says what a Go project's go.mod lacks for the SDK.
func tellGoMod(p guest.Project, out io.Writer) error {
	if p.Language == "rust" || guest.Script(p.Language) {
		return nil // cargo completes Cargo.lock by itself, and scripts need no list
	}
	text, err := os.ReadFile(filepath.Join(p.Dir, "go.mod"))
	if err != nil {
		return err
	}
	lacks, err := scaffold.GoModLacks(text)
	if err != nil || len(lacks) == 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "go.mod is yours; the SDK needs in it:\n  go mod edit %s && go mod tidy\n", strings.Join(lacks, " "))
	return err
}

// SDKNote returns a line about a project whose SDK is not this program's; "" if there is
// nothing to say. If the SDKs cannot be compared, the build continues.
func SDKNote(p guest.Project) string {
	s, err := scaffold.CompareSDK(p.Dir, p.Language, cli.Version)
	if err != nil || s.Same() {
		return ""
	}
	return "note: the project's SDK " + standing(s) + "; 'weft sdk update" + argument(p.Dir) + "' renews it\n"
}
