package host_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
	"github.com/weftrun/weft/host/missing"
)

// explained lists the codes that are explained for a place.
func explained(where codes.Where) []string {
	var list []string
	for _, e := range codes.Explanations() {
		if e.Where == where {
			list = append(list, e.Code)
		}
	}
	return list
}

// Every code that an answer, a call or an uploaded plugin can have is in the table, once,
// and nothing else is.
func TestEveryCodeIsExplained(t *testing.T) {
	same := func(where codes.Where, used []string) {
		t.Helper()
		slices.Sort(used)
		used = slices.Compact(used)
		if list := explained(where); !slices.Equal(list, used) {
			t.Errorf("codes of %s:\nused      %q\nexplained %q", where, used, list)
		}
	}
	var answers, calls, problems []string
	for _, code := range host.Codes(0) {
		answers = append(answers, string(code))
	}
	for status := abi.StatusOK + 1; status <= abi.StatusInternal; status++ {
		calls = append(calls, status.Code())
	}
	for _, s := range load(t) {
		if !s.test && slices.Contains([]string{"host/engine", "host/flow", "host/module", "host/sandbox", "host/extism"}, s.room) {
			problems = append(problems, problemCodes(s.file)...)
		}
	}
	same(codes.InAnswer, answers)
	same(codes.InCall, calls)
	same(codes.InPlugin, problems)
}

// problemCodes finds the codes of problems in a file: the first argument of a function
// or method called problem, the field Code of a Problem, and constants that are called
// problemSomething.
func problemCodes(file *ast.File) []string {
	var list []string
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			code, _ := strconv.Unquote(lit.Value)
			list = append(list, code)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "problem" && len(n.Args) > 0 {
				add(n.Args[0])
			}
		case *ast.CompositeLit:
			for _, problem := range problemsIn(n) {
				for _, e := range problem.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Code" {
						add(kv.Value)
					}
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(name.Name) > 7 && name.Name[:7] == "problem" && i < len(n.Values) {
					add(n.Values[i])
				}
			}
		}
		return true
	})
	return list
}

// problemsIn returns the literals of host.Problem that a literal is: itself, or the
// elements of a slice, which have no type of their own.
func problemsIn(lit *ast.CompositeLit) []*ast.CompositeLit {
	named := func(e ast.Expr) bool {
		sel, ok := e.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Problem"
	}
	if named(lit.Type) {
		return []*ast.CompositeLit{lit}
	}
	slice, ok := lit.Type.(*ast.ArrayType)
	if !ok || !named(slice.Elt) {
		return nil
	}
	var list []*ast.CompositeLit
	for _, e := range lit.Elts {
		if l, ok := e.(*ast.CompositeLit); ok && l.Type == nil {
			list = append(list, l)
		}
	}
	return list
}

func TestExplain(t *testing.T) {
	if got := codes.Explain("limit_exceeded"); len(got) != 4 {
		t.Errorf("limit_exceeded is met in an answer, a run, a plugin and a call; explained are %d", len(got))
	}
	if got := codes.Explain("no such code"); got != nil {
		t.Errorf("explained %v", got)
	}
	for _, code := range explained(codes.InRun) {
		if codes.Remedy(codes.InRun, code, "it broke") == "" && code != host.RunCancelled {
			t.Errorf("there is nothing to do about a run with %s", code)
		}
	}
	if own := codes.Remedy(codes.InRun, "mine", "it broke"); own == "" || own != codes.Remedy(codes.InRun, "error", "") || codes.Remedy(codes.InBlocked, "mine", "open /x") != "" {
		t.Errorf("of a code of a step's own: %q", own)
	}
	for message, want := range map[string]missing.Thing{
		`Get "http://example.com/": dial tcp: lookup example.com on [::1]:53: write: Connection reset by peer`: missing.Network,
		"open data.txt: Not implemented on wasip1":                                                             missing.Files, "open data.txt: errno 76": missing.Files,
		"operation not supported on this platform": missing.Files, "can't sleep": missing.Sleep,
		`panic: failed to spawn thread: Error { kind: Unsupported, message: "operation not supported on this platform" }`: missing.Threads,
		"panic: runtime error: scheduler is disabled in function main.first":                                              missing.Threads,
	} {
		got := codes.Remedy(codes.InRun, "error", message)
		if !strings.EqualFold(got, want.Instead()+".") {
			t.Errorf("%s: %q", message, got)
		}
	}
	for _, e := range codes.Explanations() {
		if e.What == "" || e.Do == "" && e.Code != host.RunCancelled {
			t.Errorf("%s in %s is explained by nothing", e.Code, e.Where)
		}
	}
}
