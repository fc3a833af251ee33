package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// The pages of the SDKs list the exported items with their signatures and comments in the
// sources. An exported item without a comment fails the test.

// goPage lists the packages of the SDK for Go.
func goPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# The SDK for Go\n\nEverything that the packages export, as `go doc` shows it. In a project that `weft new` has made,\n" +
		"`go doc weft.Context`, `go doc weft.Context.Wait` and `go doc -all wefttest` show the same: the SDK is inside of the project.\n" +
		"[The guide](../../sdk-guest/go/README.md) explains it.\n")
	for _, name := range []string{"weft", "wefttest"} {
		fset := token.NewFileSet()
		paths, err := filepath.Glob(filepath.Join(hosttest.Root(), "sdk-guest", "go", name, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no sources of %s: %v", name, err)
		}
		var files []*ast.File
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		pkg, err := doc.NewFromFiles(fset, files, "github.com/weftrun/weft/sdk-guest/go/"+name)
		if err != nil {
			t.Fatal(err)
		}
		p := goPackage{t, fset, &b}
		fmt.Fprintf(&b, "\n# package %s\n\n%s\n", name, fenced(strings.TrimSpace(pkg.Doc)))
		p.values(pkg.Consts)
		p.values(pkg.Vars)
		p.functions("", pkg.Funcs)
		for _, typ := range pkg.Types {
			p.symbol(typ.Name, typ.Decl, typ.Doc)
			p.values(typ.Consts)
			p.values(typ.Vars)
			p.functions("", typ.Funcs)
			p.functions(typ.Name+".", typ.Methods)
		}
	}
	return b.String()
}

// goPackage writes the exported items of a package.
type goPackage struct {
	t    *testing.T
	fset *token.FileSet
	b    *strings.Builder
}

func (p goPackage) values(list []*doc.Value) {
	for _, v := range list {
		p.symbol(strings.Join(v.Names, ", "), v.Decl, v.Doc)
	}
}

func (p goPackage) functions(of string, list []*doc.Func) {
	for _, f := range list {
		p.symbol(of+f.Name, f.Decl, f.Doc)
	}
}

func (p goPackage) symbol(name string, decl ast.Decl, text string) {
	p.t.Helper()
	documented := text != ""
	switch d := decl.(type) {
	case *ast.FuncDecl:
		d.Doc = nil
	case *ast.GenDecl:
		documented = documented || d.Tok != token.TYPE // a group may be documented line by line
		d.Doc = nil
		for _, s := range d.Specs {
			if s, ok := s.(*ast.TypeSpec); ok {
				s.Doc = nil
			}
		}
	}
	if !documented {
		p.t.Errorf("%s is exported and has no comment", name)
	}
	var signature bytes.Buffer
	if err := format.Node(&signature, p.fset, decl); err != nil {
		p.t.Fatal(err)
	}
	block := signature.String()
	if text = strings.TrimSpace(text); text != "" {
		block += "\n\n" + text
	}
	fmt.Fprintf(p.b, "\n### %s\n\n%s\n", name, fenced(block))
}

// rustPage lists the exported items of the crate weft.
func rustPage(t *testing.T) string {
	src := filepath.Join(hosttest.Root(), "sdk-guest", "rust", "weft", "src")
	var b strings.Builder
	b.WriteString("# The SDK for Rust\n\nEverything that the crate `weft` exports, from its sources. `cargo doc --no-deps --open -p weft` in a project that\n" +
		"`weft new --lang rust` has made shows the same as linked pages, offline: the SDK is inside of the project.\n" +
		"[The guide](../../sdk-guest/rust/README.md) explains it.\n")
	lib, err := os.ReadFile(filepath.Join(src, "lib.rs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range rustModules(string(lib)) {
		text, err := os.ReadFile(filepath.Join(src, module.file))
		if err != nil {
			t.Fatal(err)
		}
		items := rustItems(t, module, string(text))
		if len(items) == 0 {
			t.Errorf("%s exports nothing that was found", module.file)
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", module.title)
		for _, i := range items {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n", i.name, fenced(i.signature+"\n\n"+i.doc))
		}
	}
	return b.String()
}

// rustModule is a module of the crate, and its exported names.
type rustModule struct {
	title, file string
	names       []string // nil: all, because the module itself is public
}

var (
	rustUse = regexp.MustCompile(`(?m)^pub use ([a-z]+)::(\{[^}]*\}|\w+);`)
	rustMod = regexp.MustCompile(`(?m)^pub mod ([a-z]+);`)
)

func rustModules(lib string) []rustModule {
	var list []rustModule
	public := map[string]bool{}
	for _, m := range rustMod.FindAllStringSubmatch(lib, -1) {
		file := m[1] + ".rs"
		if m[1] == "testing" {
			file = "testing/mod.rs"
		}
		public[m[1]] = true
		list = append(list, rustModule{"weft::" + m[1], file, nil})
	}
	for _, m := range rustUse.FindAllStringSubmatch(lib, -1) {
		if !public[m[1]] {
			list = append(list, rustModule{"weft, from " + m[1] + ".rs", m[1] + ".rs", strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune("{}, \n", r) })})
		}
	}
	return list
}

// rustItem is an exported item.
type rustItem struct{ name, signature, doc string }

var (
	rustPub  = regexp.MustCompile(`^(    )?pub (?:const |unsafe |async )*(fn|struct|enum|trait|type|mod) (\w+)`)
	rustImpl = regexp.MustCompile(`^impl(?:<.*>)? (?:\w+(?:<.*>)? for )?(\w+)`)
	rustDoc  = regexp.MustCompile(`^ *///( |$)`)
)

// rustItems finds the exported items of a source: unindented items, and the functions of
// exported types. An exported item needs a comment.
func rustItems(t *testing.T, module rustModule, text string) (items []rustItem) {
	t.Helper()
	text, _, _ = strings.Cut(text, "\n#[cfg(test)]")
	lines := strings.Split(text, "\n")
	var comment []string
	of, hidden := "", false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case rustDoc.MatchString(line):
			comment = append(comment, rustDoc.ReplaceAllString(line, ""))
			continue
		case strings.HasPrefix(strings.TrimSpace(line), "#["): // between comment and item
			hidden = hidden || strings.Contains(line, "doc(hidden)")
			for !strings.HasSuffix(lines[i], "]") && i+1 < len(lines) {
				i++
			}
			continue
		case strings.HasPrefix(line, "impl"):
			if m := rustImpl.FindStringSubmatch(line); m != nil {
				of = m[1]
			}
		case line == "}":
			of = ""
		}
		m := rustPub.FindStringSubmatch(line)
		name := ""
		switch {
		case m == nil:
		case m[1] == "" && (module.names == nil || slices.Contains(module.names, m[3])):
			name = m[3]
		case m[1] != "" && of != "" && (module.names == nil || slices.Contains(module.names, of)):
			name = of + "::" + m[3]
		}
		if name != "" && !hidden {
			if len(comment) == 0 {
				t.Errorf("%s: %s is exported and has no comment", module.file, name)
			}
			items = append(items, rustItem{name, rustSignature(lines[i:], m[2]), strings.Join(comment, "\n")})
		}
		comment, hidden = nil, false
	}
	return items
}

// rustSignature returns an item up to its body; a struct with its public fields, an enum
// with its variants.
func rustSignature(lines []string, kind string) string {
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	var out, comment []string
	for _, line := range lines {
		line = strings.TrimPrefix(line, strings.Repeat(" ", indent))
		switch {
		case kind == "struct" && strings.HasPrefix(line, "    ") && strings.HasPrefix(strings.TrimSpace(line), "//"):
			comment = append(comment, line)
		case kind == "struct" && strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "    pub "):
			comment = nil
		default:
			out, comment = append(append(out, comment...), line), nil
		}
		whole := kind == "struct" || kind == "enum"
		if line == "}" || strings.HasSuffix(line, ";") || strings.HasSuffix(line, "{") && !whole || strings.HasSuffix(line, "}") && !strings.HasPrefix(line, " ") {
			break
		}
	}
	return strings.TrimRight(strings.Join(out, "\n"), " {;")
}
