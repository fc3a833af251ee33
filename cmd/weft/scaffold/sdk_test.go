package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// project makes a project in Rust, whose SDK is in every build of this package.
func project(t *testing.T, version string) string {
	t.Helper()
	files, err := Project{Name: "greet", Language: "rust", Template: "minimal", Version: version}.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "greet")
	if err := Write(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func compare(t *testing.T, dir string) *SDK {
	t.Helper()
	s, err := CompareSDK(dir, "rust", "v2.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// age turns the SDK of a project into one that an older weft has written: one file
// differed, one file was deleted later, and one file did not exist yet.
func age(t *testing.T, dir string) {
	t.Helper()
	lib, old := filepath.Join(dir, "sdk", "weft", "src", "lib.rs"), "// as it was\n"
	now, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "sdk/weft/src/lib.rs", old)
	put(t, dir, "sdk/weft/src/gone.rs", old)
	if err := os.Remove(filepath.Join(dir, "sdk", "weft", "src", "retry.rs")); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "sdk", sumFile))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(sums), hashOf(now)+"  weft/src/lib.rs", hashOf([]byte(old))+"  weft/src/lib.rs", 1)
	put(t, dir, "sdk/"+sumFile, text+hashOf([]byte(old))+"  weft/src/gone.rs\n")
}

func TestSDKOfANewProjectIsTheSame(t *testing.T) {
	s := compare(t, project(t, "v2.0.0"))
	if !s.Same() || s.From != "v2.0.0" || len(s.Edited)+len(s.Foreign) > 0 {
		t.Errorf("%q: changed %q, added %q, removed %q, edited %q, foreign %q", s.From, s.Changed, s.Added, s.Removed, s.Edited, s.Foreign)
	}
}

func TestUpdateOfAnOlderSDK(t *testing.T) {
	dir := project(t, "v1.2.3")
	age(t, dir)
	put(t, dir, "sdk/notes.txt", "mine")
	put(t, dir, "src/lib.rs", "mine")
	kept := filepath.Join(dir, "sdk", "weft", "src", "state.rs")
	before, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	s := compare(t, dir)
	for what, lists := range map[string][2][]string{
		"changed": {s.Changed, {"weft/src/lib.rs"}}, "added": {s.Added, {"weft/src/retry.rs"}}, "removed": {s.Removed, {"weft/src/gone.rs"}},
		"edited": {s.Edited, nil}, "foreign": {s.Foreign, {"notes.txt"}},
	} {
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%s: %q, want %q", what, lists[0], lists[1])
		}
	}
	if s.From != "v1.2.3" {
		t.Errorf("it is from %q", s.From)
	}
	if err := s.Update(); err != nil {
		t.Fatal(err)
	}
	if again := compare(t, dir); !again.Same() || again.From != "v2.0.0" {
		t.Errorf("after the update: %+v", again)
	}
	after, err := os.Stat(kept)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a file that is the same was written: %v", err)
	}
	for _, name := range []string{"sdk/notes.txt", "src/lib.rs"} {
		if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestEditedFilesOfTheSDKAreNamed(t *testing.T) {
	dir := project(t, "v1.2.3")
	age(t, dir)
	put(t, dir, "sdk/weft/src/wait.rs", "// mine\n")
	put(t, dir, "sdk/weft/src/gone.rs", "// mine\n")
	s := compare(t, dir)
	if want := []string{"weft/src/gone.rs", "weft/src/wait.rs"}; !slices.Equal(s.Edited, want) {
		t.Errorf("edited %q, want %q", s.Edited, want)
	}
}

// Early SDKs had no list of hashes: other files in their folders belong to an older SDK.
func TestSDKWithoutAList(t *testing.T) {
	dir := project(t, "v1.2.3")
	age(t, dir)
	put(t, dir, "sdk/mine/notes.txt", "mine")
	if err := os.Remove(filepath.Join(dir, "sdk", sumFile)); err != nil {
		t.Fatal(err)
	}
	s := compare(t, dir)
	if s.From != "" || !slices.Equal(s.Removed, []string{"weft/src/gone.rs"}) || !slices.Equal(s.Foreign, []string{"mine/notes.txt"}) || len(s.Edited) > 0 {
		t.Errorf("%q: removed %q, edited %q, foreign %q", s.From, s.Removed, s.Edited, s.Foreign)
	}
}

func TestProjectWithoutSDK(t *testing.T) {
	if _, err := CompareSDK(t.TempDir(), "rust", "v1.0.0"); !errors.Is(err, ErrNoSDK) {
		t.Error(err)
	}
}

func TestOlder(t *testing.T) {
	for _, tt := range []struct {
		a, b      string
		older, ok bool
	}{
		{"v0.9.0", "v0.10.0", true, true},
		{"1.0.0", "v0.10.0", false, true},
		{"v1.0.0", "v1.0.0", false, false},
		{"v1.0.0-3-gabc", "v1.0.0", false, false},
		{"", "dev", false, false},
	} {
		if older, ok := Older(tt.a, tt.b); older && ok != tt.older || ok != tt.ok {
			t.Errorf("%s, %s: %t, %t", tt.a, tt.b, older, ok)
		}
	}
}

func TestGoModLacksWhatTheSDKIsMadeOf(t *testing.T) {
	files, err := Project{Name: "greet", Language: "go", Template: "minimal"}.Files()
	if errors.Is(err, ErrNotPacked) && !hasPacked() {
		return // ErrNotPacked is the correct result; make test packs the SDK
	}
	if err != nil {
		t.Fatal(err)
	}
	if lacks, err := GoModLacks(files["go.mod"]); err != nil || len(lacks) > 0 {
		t.Errorf("a new project lacks %q, %v", lacks, err)
	}
	lacks, err := GoModLacks([]byte("module m\n\nreplace github.com/weftrun/weft/sdk-guest/go => ./sdk/go\n"))
	if err != nil || !slices.Contains(lacks, "-replace=github.com/weftrun/weft/sdk-guest/go/wefttest=./sdk/wefttest") ||
		slices.Contains(lacks, "-replace=github.com/weftrun/weft/sdk-guest/go=./sdk/go") {
		t.Errorf("%q, %v", lacks, err)
	}
}
