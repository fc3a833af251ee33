package sandbox

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/codefiles"
)

// onDisk lists the folders of compiled code.
type onDisk struct{ images, codes, unfinished []string }

func kept(t *testing.T, folder string) (d onDisk) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		has := func(name string) bool {
			_, err := os.Stat(filepath.Join(path, name))
			return err == nil
		}
		switch {
		case has(planFile):
			d.images = append(d.images, path)
		case has(skeletonFile):
			d.codes = append(d.codes, path)
		default:
			d.unfinished = append(d.unfinished, path)
		}
	}
	return d
}

// machineCode returns the file with the machine code in a folder of compiled code.
func machineCode(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, codeFolder, "wazero-*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of machine code: %q, %v", files, err)
	}
	return files[0]
}

func TestCompiledCodeOnDisk(t *testing.T) {
	wasm := hostile(t, "call_flood")
	flip := func(offset int) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			b := readFile(t, path)
			b[(offset+len(b))%len(b)] ^= 0xff
			writeFile(t, path, b)
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, code, seal string)
		warns  bool
	}{
		{"intact", func(*testing.T, string, string) {}, false},
		{"no file", func(t *testing.T, code, _ string) { removeFile(t, code) }, true},
		{"no seal", func(t *testing.T, _, seal string) { removeFile(t, seal) }, true},
		{"magic", func(t *testing.T, code, _ string) { flip(0)(t, code) }, true},
		// The number of functions, which the reader would allocate by.
		{"count", func(t *testing.T, code, _ string) { flip(15)(t, code) }, true},
		{"offsets", func(t *testing.T, code, _ string) { flip(20)(t, code) }, true},
		{"machine code", func(t *testing.T, code, _ string) { flip(-100)(t, code) }, true},
		{"empty", func(t *testing.T, code, _ string) { writeFile(t, code, nil) }, true},
		{"truncated", func(t *testing.T, code, _ string) { b := readFile(t, code); writeFile(t, code, b[:len(b)/2]) }, true},
		{"seal", func(t *testing.T, _, seal string) { flip(3)(t, seal) }, true},
		{"file added", func(t *testing.T, code, _ string) { writeFile(t, code+"2", []byte("x")) }, true},
		{"another module", func(t *testing.T, code, seal string) {
			writeFile(t, filepath.Join(filepath.Dir(seal), skeletonFile), []byte("other"))
			if err := codefiles.Seal(filepath.Dir(seal)); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"no code at all", func(t *testing.T, _, seal string) {
			if err := os.RemoveAll(filepath.Dir(seal)); err != nil {
				t.Fatal(err)
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "code")
			run := func() (log string) {
				var text bytes.Buffer
				b := newBench(t, func(c *Config) {
					c.CacheDir = folder
					c.Log = slog.New(slog.NewTextHandler(&text, nil))
				})
				inv := b.invocation(b.library.add(wasm), nil)
				inv.Limits.HostCalls = 10
				res, err := b.Invoke(t.Context(), inv)
				if err != nil || res.Err == nil || res.Err.Code != codeLimit {
					t.Fatalf("Invoke = %+v, %v", res, err)
				}
				if err := b.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				return text.String()
			}
			if log := run(); log != "" {
				t.Errorf("first start logs %s", log)
			}
			there := kept(t, folder)
			if len(there.codes) != 1 || len(there.images) != 1 || len(there.unfinished) != 0 {
				t.Fatalf("on disk are %+v", there)
			}
			code := machineCode(t, there.codes[0])
			good := readFile(t, code)
			tt.damage(t, code, filepath.Join(there.codes[0], codefiles.SealName))
			if log := run(); strings.Contains(log, "damaged") != tt.warns {
				t.Errorf("second start logs %q", log)
			}
			if again := kept(t, folder); !reflect.DeepEqual(again, there) || len(readFile(t, machineCode(t, again.codes[0]))) != len(good) {
				t.Errorf("after it on disk are %+v", again)
			}
			if log := run(); log != "" {
				t.Errorf("third start logs %s", log)
			}
		})
	}
}

func TestFolderOfCodeIsClosedToOthers(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "code")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	newBench(t, func(c *Config) { c.CacheDir = folder })
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

// A folder that cannot be written to costs a warning, not the service.
func TestCompilingWithoutTheDisk(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "code")
	wasm := hostile(t, "good")
	b := newBench(t, func(c *Config) { c.CacheDir = folder })
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, []byte("a file, not a folder"))
	if _, err := b.Invoke(t.Context(), b.invocation(b.library.add(wasm), nil)); err != nil {
		t.Fatal(err)
	}
}

func TestManyWaitForOneCompilation(t *testing.T) {
	folder := t.TempDir()
	b := newBench(t, func(c *Config) { c.CacheDir = folder })
	digest := b.library.add(hostile(t, "good"))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if res, err := b.Invoke(t.Context(), b.invocation(digest, nil)); err != nil || res.Err != nil {
				t.Errorf("Invoke = %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if b.library.reads != 1 {
		t.Errorf("the module was read %d times, want once", b.library.reads)
	}
}

func TestRewrittenDigest(t *testing.T) {
	b := newBench(t, nil)
	for name, depends := range map[string]bool{"good": false, "table_grow": true} {
		wasm := hostile(t, name)
		digest := func(limits host.Limits) string {
			d, err := b.Describe(t.Context(), b.library.add(wasm), wasm, limits)
			if err != nil {
				t.Fatal(err)
			}
			return d.Rewritten
		}
		first := digest(host.Limits{})
		if first == digestOf(wasm) || first != digest(host.Limits{}) {
			t.Errorf("%s: digest of what runs = %s", name, first)
		}
		if small := digest(host.Limits{TableEntries: 100}); (small != first) != depends {
			t.Errorf("%s: other limits give %s and %s", name, first, small)
		}
	}
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
