package host_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// docLink is a link of a comment: [Name], [Type.Method], [pkg.Name] or
// [pkg.Type.Method], of exported names.
var docLink = regexp.MustCompile(`(?:^|[\s(*])\[\*?((?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\](?:[\s,.;:)'?!-]|$)`)

// TestDocLinks holds every link of a comment to what our packages declare.
func TestDocLinks(t *testing.T) {
	sources := load(t)
	declared := map[string]map[string]bool{} // room, then name or Type.Name
	for _, s := range sources {
		if declared[s.room] == nil {
			declared[s.room] = map[string]bool{}
		}
		if !s.test {
			declare(s.file, declared[s.room])
		}
	}
	links := 0
	for _, s := range sources {
		if s.test {
			continue
		}
		n, problems := linkProblems(s, declared)
		links += n
		for _, problem := range problems {
			t.Error(problem)
		}
	}
	if links < 100 {
		t.Errorf("only %d links found", links)
	}
}

func TestDocLinkChecksNotice(t *testing.T) {
	declared := map[string]map[string]bool{"abi": {"Raw": true}}
	for text, want := range map[string]string{
		"// F is [F].\nfunc F() {}":                                                "",
		"// F is [Missing].\nfunc F() {}":                                          "Missing",
		"// F is [T.M], [T.F] and [*T].\ntype T struct{F int}\nfunc (t *T) M() {}": "",
		"// F is [T.N].\ntype T struct{}":                                          "T.N",
		"// F is [I.M].\ntype I interface{ M() }":                                  "",
		"// F is [abi.Raw], [time.Now] and [context.Any].\nvar F = 1":              "",
		"// F is [abi.Rawer].\nvar F = 1":                                          "abi.Rawer",
		"// F is code:\n//\n//\t[Missing]\nvar F = 1":                              "",
		"// F is a list [A, B] and x[Missing].\nvar F = 1":                         "",
	} {
		s, err := parse(token.NewFileSet(), "host/x/x.go", "package x\nimport \"github.com/weftrun/weft/abi\"\n"+text)
		if err != nil {
			t.Fatal(err)
		}
		declared[s.room] = map[string]bool{}
		declare(s.file, declared[s.room])
		_, problems := linkProblems(s, declared)
		if got := strings.Join(problems, "; "); (want == "") != (got == "") || !strings.Contains(got, "["+want+"]") && want != "" {
			t.Errorf("%s\ngot %q, want one about %q", text, got, want)
		}
	}
}

// linkProblems checks the links of a file and says how many there are.
func linkProblems(s source, declared map[string]map[string]bool) (links int, problems []string) {
	rooms := map[string]string{} // of our packages, by the name in a link
	for room := range declared {
		rooms[path.Base(room)] = room
	}
	for _, spec := range s.file.Imports {
		if ours, ok := strings.CutPrefix(importPath(spec), modulePath+"/"); ok && spec.Name != nil {
			rooms[spec.Name.Name] = ours
		}
	}
	for _, group := range s.file.Comments {
		for line := range strings.SplitSeq(group.Text(), "\n") {
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") {
				continue // code
			}
			for _, match := range docLink.FindAllStringSubmatch(line, -1) {
				if len(match[1]) > 1 && strings.ToUpper(match[1]) == match[1] && !strings.Contains(match[1], ".") {
					continue // it stands for an argument: [NAME]
				}
				links++
				room, name := s.room, match[1]
				if first, rest, _ := strings.Cut(name, "."); first != "" && !ast.IsExported(first) {
					ours, ok := rooms[first]
					if !ok {
						continue // of the standard library, or of others
					}
					room, name = ours, rest
				}
				if !declared[room][name] {
					problems = append(problems, fmt.Sprintf("%s: the link [%s] leads nowhere", s.fset.Position(group.Pos()), match[1]))
				}
			}
		}
	}
	return links, problems
}

// declare notes the exported names of a file: those of its top level, and the
// methods and fields of its types.
func declare(file *ast.File, names map[string]bool) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiver(decl.Recv.List[0].Type) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
					declareMembers(spec, names)
				}
			}
		}
	}
}

func declareMembers(spec *ast.TypeSpec, names map[string]bool) {
	var fields *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names[spec.Name.Name+"."+name.Name] = true
		}
	}
}

// receiver is the name of a method's type.
func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr:
		return receiver(typ.X)
	case *ast.IndexListExpr:
		return receiver(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return ""
}
