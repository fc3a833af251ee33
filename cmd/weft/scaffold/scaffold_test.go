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

	gosdk "github.com/weftrun/weft/sdk-guest/go"
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
		"Greet":                        `"Greet" is no name for a project: use small letters, digits and '-', beginning with a letter, as in greet`,
		"my_step":                      "as in my-step",
		"2nd":                          "as in nd",
		"greet-":                       "as in greet",
		"grüße":                        "as in gr-e",
		"Weft":                         "beginning with a letter",
		"weft":                         "my-weft",
		"match":                        "means something else",
	} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestProjects looks at what can be seen without a compiler: nothing is left open,
// Go is formatted, and the SDK is there.
func TestProjects(t *testing.T) {
	open := regexp.MustCompile(`\{\{[a-zA-Z_]+\}\}`)
	for _, language := range Languages {
		for _, tmpl := range Templates {
			p := Project{Name: "greet", Language: language, Template: tmpl.Name}
			files, err := p.Files()
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
			if sdk < 20 {
				t.Errorf("%+v: %d files of the SDK", p, sdk)
			}
		}
	}
	if _, err := (Project{Name: "greet", Language: "cobol", Template: "minimal"}).Files(); err == nil {
		t.Error("a language that there is not")
	}
}

// TestSourcesAreWhole compares what is embedded with the folders beside it.
func TestSourcesAreWhole(t *testing.T) {
	for dir, c := range map[string]struct {
		from fs.FS
		in   []string
	}{
		"go":   {gosdk.Source, []string{"go.mod", "weft", "wefttest", "internal"}},
		"rust": {rustsdk.Source, []string{"Cargo.toml", "weft/src", "weft/Cargo.toml", "weft-macros/src", "weft-macros/Cargo.toml", "crates"}},
	} {
		root := os.DirFS(filepath.Join("..", "..", "..", "sdk-guest", dir))
		for _, start := range c.in {
			err := fs.WalkDir(root, start, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				_, err = fs.Stat(c.from, name)
				return err
			})
			if err != nil {
				t.Errorf("sdk-guest/%s: %v", dir, err)
			}
		}
	}
}

// TestCratesAreThoseOfTheLock holds the crates that projects get to the checksums
// of the SDK's lock file and to those of their index.
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
			case errors.Is(err, fs.ErrNotExist) && name == "serde_derive": // no build takes it
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
