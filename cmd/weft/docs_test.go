package main

import (
	"encoding/json"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host/hosttest"
)

// page is one Markdown file of the project.
type page struct {
	path  string // from the root, with slashes
	lines []string
}

// docPages reads all pages, except pages that were built or installed.
func docPages(t *testing.T) []page {
	t.Helper()
	root := hosttest.Root()
	var list []page
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (rel == "build" || rel == "bin" || d.Name() == "target" || d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "vendor") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		list = append(list, page{filepath.ToSlash(rel), strings.Split(string(text), "\n")})
		return err
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%d pages: %v", len(list), err)
	}
	return list
}

// block is a fenced part of a page.
type block struct {
	lang string
	line int // of the fence, counted from 1
	text string
}

// blocks returns the fenced blocks, and the page's lines without them.
func (p page) blocks() (fenced []block, prose []string) {
	var open *block
	for i, line := range p.lines {
		switch trimmed := strings.TrimSpace(line); {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			open = &block{lang: strings.TrimPrefix(trimmed, "```"), line: i + 1}
		case open != nil && trimmed == "```":
			fenced = append(fenced, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			prose = append(prose, line)
			continue
		}
		prose = append(prose, "") // keeps the line numbers
	}
	return fenced, prose
}

// Code blocks in the pages are valid: JSON and Go can be parsed, and commands and their
// flags exist.
func TestCodeInPages(t *testing.T) {
	var goBlocks, jsonBlocks, commands int
	for _, p := range docPages(t) {
		before := commands
		fenced, prose := p.blocks()
		for _, b := range fenced {
			switch b.lang {
			case "json":
				jsonBlocks++
				if !json.Valid([]byte(b.text)) {
					t.Errorf("%s:%d: no JSON", p.path, b.line)
				}
			case "go":
				goBlocks++
				if _, err := format.Source([]byte(b.text)); err != nil {
					t.Errorf("%s:%d: no Go: %v", p.path, b.line, err)
				}
			}
			for i, line := range strings.Split(b.text, "\n") {
				commands += checkCommand(t, p.path, b.line+1+i, line)
			}
		}
		for i, line := range prose {
			if strings.HasPrefix(line, "    ") {
				commands += checkCommand(t, p.path, i+1, line)
			}
		}
		if commands > before && !knownCommands(p.path) {
			t.Errorf("%s: it is not said who runs its commands, or why nobody does: see commandsOf in docscode_test.go", p.path)
		}
	}
	if goBlocks < 5 || jsonBlocks < 3 || commands < 50 {
		t.Errorf("only %d blocks of Go, %d of JSON, %d commands were found", goBlocks, jsonBlocks, commands)
	}
}

// commandLine matches a line that calls weft, perhaps after variables and a path; also in
// a systemd unit.
var commandLine = regexp.MustCompile(`^\s*(?:\$ |ExecStart=)?(?:[A-Z_]+=\S+ )*(?:[./a-z]*bin/|\./)?weft( .*)?$`)

// checkCommand checks a line that calls weft: the command and its flags must exist. It
// returns the number of calls.
func checkCommand(t *testing.T, path string, line int, text string) int {
	found := commandLine.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	words := shellWords(found[1])
	if len(words) == 0 || !strings.HasPrefix(words[0], "-") && !isName(words[0]) {
		return 0 // prose, or output
	}
	cmd, rest, err := newRootOfPages().Find(words)
	if err != nil {
		t.Errorf("%s:%d: %v", path, line, err)
		return 1
	}
	for _, word := range rest {
		if !strings.HasPrefix(word, "-") || word == "-" || word == "--" {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		flag := cmd.Flags().Lookup(name)
		if flag == nil && !strings.HasPrefix(word, "--") {
			flag = cmd.Flags().ShorthandLookup(name[:1])
		}
		if flag == nil && name != "help" && name != "h" && name != "version" {
			t.Errorf("%s:%d: 'weft %s' has no flag %s", path, line, cmd.Name(), word)
		}
	}
	return 1
}

// newRootOfPages is the command line including the commands that cobra adds when it runs.
func newRootOfPages() *cobra.Command {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

func isName(word string) bool { return regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) }

// shellWords splits a line into words up to the end of the command: a pipe, a comment, a
// redirection, or a second command.
func shellWords(line string) []string {
	var words []string
	for _, quoted := range regexp.MustCompile(`'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s'"]+`).FindAllString(line, -1) {
		if quoted == "|" || quoted == "#" || quoted == "\\" || quoted == "&&" || quoted == ";" || quoted[0] == '>' || quoted[0] == '<' || quoted[0] == '&' {
			break
		}
		words = append(words, quoted)
	}
	return words
}

// link is a Markdown link to a place in the project.
var link = regexp.MustCompile(`\]\(([^)\s:]+)\)`)

// Links within the project lead to existing files, and to existing titles in them.
func TestLinksInPages(t *testing.T) {
	titles := map[string]map[string]bool{}
	all := docPages(t)
	for _, p := range all {
		titles[p.path] = anchors(p)
	}
	links := 0
	for _, p := range all {
		_, prose := p.blocks()
		for i, line := range prose {
			for _, found := range link.FindAllStringSubmatch(line, -1) {
				links++
				file, title, _ := strings.Cut(found[1], "#")
				target := p.path
				if file != "" {
					target = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), file))
				}
				if _, err := os.Stat(filepath.Join(hosttest.Root(), target)); err != nil {
					t.Errorf("%s:%d: %s is not there", p.path, i+1, target)
				} else if title != "" && !titles[target][title] {
					t.Errorf("%s:%d: %s has no title %q", p.path, i+1, target, title)
				}
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links were found", links)
	}
}

// named matches a file or a folder of the project, as pages for contributors name it.
var named = regexp.MustCompile("`((?:abi|host|cmd|plugins|sdk-guest|testdata|docs|\\.ci)(?:/\\w[-\\w.]*)*)(?:/\\.\\.\\.)?`")

// Files and folders named by the pages for contributors exist.
func TestPathsInPages(t *testing.T) {
	paths := 0
	for _, p := range docPages(t) {
		if p.path != "CONTRIBUTING.md" && p.path != "docs/architecture.md" && p.path != "docs/testing.md" {
			continue
		}
		for i, line := range p.lines {
			for _, found := range named.FindAllStringSubmatch(line, -1) {
				paths++
				if _, err := os.Stat(filepath.Join(hosttest.Root(), found[1])); err != nil {
					t.Errorf("%s:%d: %s is not there", p.path, i+1, found[1])
				}
			}
		}
	}
	if paths < 60 {
		t.Errorf("only %d paths were found", paths)
	}
}

// anchors returns the anchors of a page's titles.
func anchors(p page) map[string]bool {
	names := map[string]bool{}
	_, prose := p.blocks()
	for _, line := range prose {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			var b strings.Builder
			for _, r := range strings.ToLower(title) {
				switch {
				case r == ' ':
					b.WriteByte('-')
				case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
					b.WriteRune(r)
				}
			}
			names[b.String()] = true
		}
	}
	return names
}
