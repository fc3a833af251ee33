// Package guest compiles a project of steps to a plugin: it detects the language, calls
// the compiler, and reports missing tools.
//
// It does not depend on the meaning of a plugin, and does not talk to a server.
package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weftrun/weft/cmd/weft/guest/script"
)

// Config is the file in a project with its build settings. It is optional.
const Config = "weft.json"

// Languages are the supported compilers, and the languages "ts", "js" and "py", TypeScript,
// JavaScript and Python, which this program builds by itself.
var Languages = []string{"go", "tinygo", "rust", "ts", "js", "py"}

// Project is a folder with the sources of one plugin.
type Project struct {
	Dir      string   // as the caller named it
	Name     string   // of the plugin
	Language string   // one of Languages
	Flags    []string // additional flags of the compiler
	Flow     string   // the file of the flow of its functions; "": none
}

// flows are the possible files of a project's flow.
var flows = []string{"flow.yaml", "flow.yml", "flow.json"}

// config is the content of weft.json.
type config struct {
	Name     string   `json:"name"`
	Language string   `json:"language"`
	Flags    []string `json:"flags"`
}

// ErrNoProject is returned for a folder without sources of a plugin.
var ErrNoProject = errors.New("no project of steps")

// Find examines a folder. language, if it is not "", replaces the language that the
// project names. It must be one of Languages.
//
// # Errors
//
// ErrNoProject if the folder has no go.mod, Cargo.toml, main.ts, main.js or main.py; other errors
// if the folder cannot be read, or weft.json is not valid.
func Find(dir, language string) (Project, error) {
	p := Project{Dir: dir}
	var c config
	text, err := os.ReadFile(filepath.Join(dir, Config))
	switch {
	case err == nil:
		if err := decode(text, &c); err != nil {
			return p, fmt.Errorf("%s: %w", filepath.Join(dir, Config), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return p, err
	}
	if p.Name = c.Name; p.Name == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return p, err
		}
		p.Name = filepath.Base(whole)
	}
	if strings.ContainsAny(p.Name, `/\`) || strings.HasPrefix(p.Name, ".") {
		return p, fmt.Errorf("%q is not a valid name for a plugin", p.Name)
	}
	if p.Language = c.Language; p.Language == "" {
		p.Language = detected(dir)
	}
	if p.Flow, err = flowOf(dir); err != nil {
		return p, err
	}
	if p.Flags = c.Flags; language != "" && language != p.Language {
		p.Language, p.Flags = language, nil // the flags are for the project's own compiler
	}
	return p, p.check()
}

// flowOf finds the file of a project's flow, if the project has one.
func flowOf(dir string) (string, error) {
	found := ""
	for _, name := range flows {
		file := filepath.Join(dir, name)
		if !is(file) {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("there are both %s and %s: a project has one flow, so keep one of them", found, file)
		}
		found = file
	}
	return found, nil
}

func decode(text []byte, c *config) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(c)
	if err != nil {
		return fmt.Errorf("it holds \"name\", \"language\" and \"flags\", a list of texts: %w", err)
	}
	if c.Language != "" && !slices.Contains(Languages, c.Language) {
		return fmt.Errorf("unknown language %q: it is one of %s", c.Language, strings.Join(Languages, ", "))
	}
	return nil
}

// detected returns the language of the sources in a folder, "" if it has none.
func detected(dir string) string {
	for _, l := range []struct{ language, file string }{{"rust", "Cargo.toml"}, {"go", "go.mod"}} {
		if is(filepath.Join(dir, l.file)) {
			return l.language
		}
	}
	switch filepath.Ext(script.Entry(dir)) {
	case ".ts", ".mts":
		return "ts"
	case ".js", ".mjs":
		return "js"
	case ".py":
		return "py"
	}
	return ""
}

// Script reports whether a language is bundled by this program.
func Script(language string) bool { return language == "ts" || language == "js" || language == "py" }

func is(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir()
}

// check checks that the sources are in the project's language.
func (p Project) check() error {
	file := "go.mod"
	switch p.Language {
	case "":
		return fmt.Errorf("%w in %s: there is no go.mod, Cargo.toml, main.ts, main.js or main.py; 'weft new' makes a project", ErrNoProject, p.Dir)
	case "rust":
		file = "Cargo.toml"
	}
	if info, err := os.Stat(p.Dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%w: %s is a file; name the folder that holds the sources", ErrNoProject, p.Dir)
	}
	if Script(p.Language) {
		entry, wanted := script.Entry(p.Dir) != "", "main.ts or main.js"
		if p.Language == "py" {
			entry, wanted = is(filepath.Join(p.Dir, script.PythonEntry)), script.PythonEntry
		}
		switch {
		case !entry:
			return fmt.Errorf("%w in %s: it must be built as %s, but there is no %s", ErrNoProject, p.Dir, p.Language, wanted)
		case len(p.Flags) > 0:
			return fmt.Errorf("%s: a project in %s takes no flags", filepath.Join(p.Dir, Config), p.Language)
		}
		return nil
	}
	if !is(filepath.Join(p.Dir, file)) {
		return fmt.Errorf("%w in %s: it must be built as %s, but there is no %s", ErrNoProject, p.Dir, p.Language, file)
	}
	return nil
}

// Output is the file that the build writes.
func (p Project) Output() string { return filepath.Join(p.Dir, "build", p.Name+".wasm") }
