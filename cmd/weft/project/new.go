package project

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/scaffold"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// newOptions are the flags of `weft new`.
type newOptions struct {
	language string
	template string
	list     bool
}

// New makes the command 'weft new'.
func New() *cobra.Command {
	var o newOptions
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a project: a plugin that builds, with tests and the SDK inside",
		Long: `Make a project in a new folder: the steps of a workflow with explaining comments, a unit
test, cases for 'weft test', a README, and the SDK itself, so that the project builds
without a network. The plugin and its workflow get the folder's name.

Without NAME, on a terminal, the command asks for name, language and template.`,
		Example: `  weft new greet                                   # Go, two steps
  weft new approve --lang rust --template human-in-the-loop
  weft new --list                                  # languages and templates
  cd greet && weft dev`,
		Args: cli.Takes("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newProject(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.language, "lang", "go", "`LANGUAGE` of the steps: "+strings.Join(scaffold.Languages, ", "))
	f.StringVar(&o.template, "template", scaffold.Templates[0].Name, "`NAME` of the template to begin with; --list shows them")
	f.BoolVar(&o.list, "list", false, "list languages and templates")
	return cmd
}

func newProject(ctx context.Context, o newOptions, args []string, in io.Reader, out io.Writer) error {
	if o.list {
		_, err := io.WriteString(out, listTemplates())
		return err
	}
	var dir string
	switch {
	case len(args) > 0:
		dir = args[0]
	case screen.OnTerminal(in):
		var err error
		if dir, err = askProject(ctx, &o, in, out); err != nil {
			return err
		}
	default:
		return cli.Usage("NAME is missing: 'weft new greet' makes a project in the folder greet")
	}
	if err := o.check(); err != nil {
		return err
	}
	return makeProject(o, dir, out)
}

// check names a choice that does not exist.
func (o newOptions) check() error {
	if !slices.Contains(scaffold.Languages, o.language) {
		return cli.Usage("unknown language %q: %s", o.language,
			cli.Meant(o.language, scaffold.Languages, "there are "+strings.Join(scaffold.Languages, ", ")))
	}
	names := templateNames()
	if !slices.Contains(names, o.template) {
		return cli.Usage("unknown template %q: %s", o.template, cli.Meant(o.template, names, "'weft new --list' shows the valid names"))
	}
	return nil
}

func templateNames() []string {
	var names []string
	for _, t := range scaffold.Templates {
		names = append(names, t.Name)
	}
	return names
}

func makeProject(o newOptions, dir string, out io.Writer) error {
	dir = filepath.Clean(dir)
	p := scaffold.Project{Name: filepath.Base(dir), Language: o.language, Template: o.template, Version: cli.Version}
	if err := scaffold.CheckName(p.Name); err != nil {
		return cli.Usage("%w", err)
	}
	files, err := p.Files()
	if err != nil {
		return err
	}
	if err := scaffold.Write(dir, files); err != nil {
		if errors.Is(err, scaffold.ErrNotEmpty) {
			return fmt.Errorf("%w: choose another name, or remove it first", err)
		}
		return err
	}
	_, err = fmt.Fprintf(out, "made %s: %s, template %s\n\n  cd %s\n  weft dev      # build, serve and run; again at each change\n"+
		"  weft test     # the cases of cases.json\n\nREADME.md there says the rest.\n", dir, p.Language, p.Template, dir)
	return err
}

// listTemplates lists the choices.
func listTemplates() string {
	var languages, templates screen.Sheet
	for i, l := range scaffold.Languages {
		languages.Add(l, languageNotes[i])
	}
	for _, t := range scaffold.Templates {
		templates.Add(t.Name, t.Summary)
	}
	return "languages:\n" + languages.Render("  ") + "\ntemplates:\n" + templates.Render("  ")
}

// languageNotes say for each of scaffold.Languages when to choose it.
var languageNotes = []string{
	"needs only Go; modules of 3 MB",
	"Go, compiled by TinyGo: modules of 0.1 MB, which run faster",
	"modules of 0.1 MB",
	"TypeScript; needs weft alone; modules of 1.1 MB",
	"JavaScript; needs weft alone; modules of 1.1 MB",
	"Python, as LlamaIndex Workflows; needs weft alone; modules of 8 MB",
}

// askProject asks for name, language and template. The questions go to out, which the
// user sees; an empty answer takes the first choice.
func askProject(ctx context.Context, o *newOptions, in io.Reader, out io.Writer) (dir string, err error) {
	a := asker{ctx: ctx, in: bufio.NewReader(in), out: out}
	dir = a.ask("name of the project: ", func(answer string) error { return scaffold.CheckName(filepath.Base(filepath.Clean(answer))) })
	o.language = a.choose("language", scaffold.Languages, languageNotes)
	var summaries []string
	for _, t := range scaffold.Templates {
		summaries = append(summaries, t.Summary)
	}
	o.template = a.choose("template", templateNames(), summaries)
	return dir, a.err
}

// asker asks questions on a terminal, until a question is not answered.
type asker struct {
	ctx context.Context
	in  *bufio.Reader
	out io.Writer
	err error // why there are no further answers
}

// ask repeats a question until the answer is valid.
func (a *asker) ask(question string, good func(answer string) error) string {
	for a.err == nil {
		_, _ = io.WriteString(a.out, question)
		answer, err := a.line()
		if err != nil {
			a.err = err
			break
		}
		fault := good(answer)
		if fault == nil {
			return answer
		}
		_, _ = fmt.Fprintf(a.out, "  %s\n", fault)
	}
	return ""
}

// line reads an answer. A read from a terminal cannot be cancelled: when ctx ends, the
// read continues in the background, and ends with the program.
func (a *asker) line() (string, error) {
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := a.in.ReadString('\n')
		if err != nil && text == "" {
			err = errors.New("there was no answer")
		} else {
			err = nil
		}
		read <- answer{strings.TrimSpace(text), err}
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-a.ctx.Done():
		return "", errors.New("interrupted")
	}
}

// choose lets the user choose one of several names, by its number or its name.
func (a *asker) choose(what string, names, summaries []string) string {
	if a.err != nil {
		return ""
	}
	var s screen.Sheet
	for i, name := range names {
		s.Add(strconv.Itoa(i+1)+" "+name, summaries[i])
	}
	_, _ = io.WriteString(a.out, "\n"+s.Render("  "))
	chosen := names[0]
	a.ask(what+" ["+names[0]+"]: ", func(answer string) error {
		n, err := strconv.Atoi(answer)
		switch {
		case answer == "":
		case err == nil && n >= 1 && n <= len(names):
			chosen = names[n-1]
		case slices.Contains(names, answer):
			chosen = answer
		default:
			return fmt.Errorf("%q is not one of them: %s", answer, cli.Meant(answer, names, "enter a number or a name"))
		}
		return nil
	})
	return chosen
}
