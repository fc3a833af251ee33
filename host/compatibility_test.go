package host_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCompatibilityIsShown holds docs/compatibility.md to the tests that it
// names: each line of its lists names some, and all of them exist.
func TestCompatibilityIsShown(t *testing.T) {
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	known := namedTests(t)
	reference := regexp.MustCompile("`(Test[A-Z]\\w*|check_\\w+\\.\\w+\\.\\w+|\\d{3}-[a-z0-9-]+|[a-z0-9-]+\\.txtar)`")
	lines := strings.Split(strings.ReplaceAll(string(page), "\n  ", " "), "\n")
	points, heading := 0, ""
	for _, line := range lines {
		if strings.HasPrefix(line, "## ") {
			heading = line
		}
		named := reference.FindAllStringSubmatch(line, -1)
		for _, m := range named {
			if !known[m[1]] {
				t.Errorf("docs/compatibility.md names %s, which does not exist", m[1])
			}
		}
		if strings.HasPrefix(line, "- ") {
			if points++; len(named) == 0 {
				t.Errorf("docs/compatibility.md, %s: nothing shows %q", heading, line)
			}
		}
	}
	if points < 30 {
		t.Errorf("docs/compatibility.md has %d points: it is not read as it is written", points)
	}
}

// namedTests are the names under which docs/compatibility.md may speak of tests:
// Go's, the Python client's checks, recorded exchanges and the engine's histories.
func namedTests(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, s := range load(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && s.test {
				known[f.Name.Name] = true
			}
		}
	}
	for _, file := range glob(t, "../testdata/wire/*.http") {
		known[strings.TrimSuffix(filepath.Base(file), ".http")] = true
	}
	for _, file := range glob(t, "../testdata/engine/*.txtar") {
		known[filepath.Base(file)] = true
	}
	group := regexp.MustCompile(`^class (\w+)\(Check\):`)
	check := regexp.MustCompile(`^    (?:async )?def (test_\w+)\(`)
	for _, file := range glob(t, "../testdata/client/check_*.py") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		class := ""
		for line := range strings.Lines(string(text)) {
			if m := group.FindStringSubmatch(line); m != nil {
				class = m[1]
			}
			if m := check.FindStringSubmatch(line); m != nil {
				known[strings.TrimSuffix(filepath.Base(file), ".py")+"."+class+"."+m[1]] = true
			}
		}
	}
	return known
}

// glob is the files of a pattern; there has to be one.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file is like %s (%v)", pattern, err)
	}
	return files
}
