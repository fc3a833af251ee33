package scaffold

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rustsdk "github.com/weftrun/weft/sdk-guest/rust"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "greet", "my-greeting-2", strings.Repeat("a", MaxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"":                             "needs a name",
		strings.Repeat("a", MaxName+1): "longer than 60",
		"Greet":                        `"Greet" is not a name for a project: use small letters, digits and '-', beginning with a letter, as in greet`,
		"my_step":                      "as in my-step",
		"2nd":                          "as in nd",
		"greet-":                       "as in greet",
		"grüße":                        "as in gr-e",
		"Weft":                         "beginning with a letter",
		"weft":                         "my-weft",
		"match":                        "another meaning",
	} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestProjects checks what can be checked without a compiler: no placeholder is left, Go
// is formatted, and the SDK is complete.
func TestProjects(t *testing.T) {
	open := regexp.MustCompile(`\{\{[a-zA-Z_]+\}\}`)
	for _, language := range Languages {
		for _, tmpl := range Templates {
			p := Project{Name: "greet", Language: language, Template: tmpl.Name}
			files, err := p.Files()
			if errors.Is(err, ErrNotPacked) && (language == "go" || language == "tinygo") && !hasPacked() {
				continue // ErrNotPacked is the correct result; make test packs the SDK
			}
			if err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
			sdk := 0
			for name, text := range files {
				if strings.HasPrefix(name, "sdk/") {
					sdk++
					continue
				}
				if left := open.Find(text); left != nil {
					t.Errorf("%+v: %s still has %s", p, name, left)
				}
				if !strings.HasSuffix(name, ".go") {
					continue
				}
				if tidy, err := format.Source(text); err != nil || string(tidy) != string(text) {
					t.Errorf("%+v: %s is not formatted: %v", p, name, err)
				}
			}
			if sdk < 15 {
				t.Errorf("%+v: %d files of the SDK", p, sdk)
			}
		}
	}
	if _, err := (Project{Name: "greet", Language: "cobol", Template: "minimal"}).Files(); err == nil {
		t.Error("a language that there is not")
	}
}

// hasPacked reports whether the SDK for Go existed when this test was compiled.
func hasPacked() bool {
	_, err := fs.Stat(packed, "packed/go.tar.gz")
	return err == nil
}

// TestGoModuleIsTheProjects checks that go.mod has the project's name, and that the
// modules that it takes from the folder sdk exist.
func TestGoModuleIsTheProjects(t *testing.T) {
	files, err := Project{Name: "greet", Language: "go", Template: "minimal"}.Files()
	if errors.Is(err, ErrNotPacked) && !hasPacked() {
		return // ErrNotPacked is the correct result; make test packs the SDK
	}
	if err != nil {
		t.Fatal(err)
	}
	mod := string(files["go.mod"])
	if !strings.HasPrefix(mod, "module example.com/greet\n") {
		t.Errorf("go.mod begins with %.40q", mod)
	}
	replaced := regexp.MustCompile(`(?m)^\t(\S+) => \./(sdk/\S+)$`).FindAllStringSubmatch(mod, -1)
	if len(replaced) < 4 {
		t.Errorf("modules that are in the project: %q", replaced)
	}
	for _, m := range replaced {
		if own := string(files[m[2]+"/go.mod"]); !strings.Contains(own, "module "+m[1]+"\n") {
			t.Errorf("%s/go.mod is not that of %s: %.60q", m[2], m[1], own)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "sdk/") && strings.HasSuffix(name, "_test.go") {
			t.Errorf("a test of the SDK: %s", name)
		}
	}
}

// TestUnpackRefusesWhatIsCut reads truncated archives.
func TestUnpackRefusesWhatIsCut(t *testing.T) {
	for _, archive := range [][]byte{nil, []byte("no archive"), {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0}} {
		if err := unpack(archive, map[string][]byte{}); err == nil {
			t.Errorf("%x was read", archive)
		}
	}
}

// TestSourcesAreWhole compares the embedded files with the folder of the SDK.
func TestSourcesAreWhole(t *testing.T) {
	root := os.DirFS(filepath.Join("..", "..", "..", "sdk-guest", "rust"))
	for _, start := range []string{"Cargo.toml", "weft/src", "weft/Cargo.toml", "weft-macros/src", "weft-macros/Cargo.toml", "crates"} {
		err := fs.WalkDir(root, start, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			_, err = fs.Stat(rustsdk.Source, name)
			return err
		})
		if err != nil {
			t.Errorf("sdk-guest/rust: %v", err)
		}
	}
}

// TestCratesAreThoseOfTheLock compares the crates in projects with the checksums of the
// SDK's lock file and of their index.
func TestCratesAreThoseOfTheLock(t *testing.T) {
	for _, file := range []string{"../../../sdk-guest/rust/Cargo.lock", "templates/rust/Cargo.lock.tmpl"} {
		lock, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		entry := regexp.MustCompile(`name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"\n`)
		locked := entry.FindAllStringSubmatch(string(lock), -1)
		if len(locked) < 5 {
			t.Fatalf("%s: found %d crates", file, len(locked))
		}
		for _, e := range locked {
			name, version, sum := e[1], e[2], e[3]
			index, err := fs.ReadFile(rustsdk.Source, "crates/index/"+indexPath(name))
			if err != nil || !strings.Contains(string(index), `"vers":"`+version+`"`) || !strings.Contains(string(index), sum) {
				t.Errorf("%s: %s %s is not in the index: %v", file, name, version, err)
			}
			crate, err := fs.ReadFile(rustsdk.Source, "crates/"+name+"-"+version+".crate")
			switch got := sha256.Sum256(crate); {
			case errors.Is(err, fs.ErrNotExist) && name == "serde_derive": // no build uses it
			case err != nil:
				t.Error(err)
			case hex.EncodeToString(got[:]) != sum:
				t.Errorf("%s: the checksum of %s is not that of the file", file, name)
			}
		}
	}
}

// indexPath is where cargo looks for a crate in an index.
func indexPath(name string) string {
	if len(name) == 3 {
		return "3/" + name[:1] + "/" + name
	}
	return name[:2] + "/" + name[2:4] + "/" + name
}

func TestLockIsSorted(t *testing.T) {
	for _, name := range []string{"a", "quiz", "zebra"} {
		files, err := Project{Name: name, Language: "rust", Template: "minimal"}.Files()
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		for _, part := range strings.Split(string(files["Cargo.lock"]), "[[package]]\n")[1:] {
			if part < before || !strings.HasPrefix(part, "name = ") {
				t.Errorf("%s: after %.30q comes %.30q", name, before, part)
			}
			before = part
		}
	}
}

func TestWriteKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"a/b.txt": []byte("b")}
	for range 2 {
		if err := Write(filepath.Join(dir, "new"), files); err != nil {
			if !errors.Is(err, ErrNotEmpty) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Error("it was written twice")
}
