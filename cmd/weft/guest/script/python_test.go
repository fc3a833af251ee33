package script

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/sdk-guest/py/sdk"
)

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func wheel(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPythonSources(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"main.py": "1", "src/steps.py": "2", "prompt.txt": "3", "data/rows.csv": "4", "vendor/pure/__init__.py": "5", "vendor/pure/tests/a.py": "6",
		"vendor/pure-1.0.dist-info/METADATA.txt": "no", "cases.json": "no", "weft.json": "no", "README.md": "no", "test_main.py": "no", "tests/a.py": "no",
		".venv/a.py": "no", "other/pyvenv.cfg": "no", "other/a.py": "no", "build/a.py": "no", "src/__pycache__/a.py": "no", "image.png": "no",
		"vendor/whole-1.0-py3-none-any.whl": wheel(t, map[string]string{"whole/__init__.py": "7", "whole-1.0.dist-info/RECORD.txt": "no", "../evil.py": "no"}),
	})
	own, err := fs.ReadFile(sdk.Source, "weft/events.py")
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"sdk/weft/events.py": string(own), "sdk/README.md": "no"})
	files, err := pythonSources(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"data/rows.csv", "main.py", "prompt.txt", "src/steps.py", "vendor/pure/__init__.py", "vendor/pure/tests/a.py", "vendor/whole/__init__.py"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("files = %q, want %q", got, want)
	}
	v, err := abi.DecodeValue(cborMap(files))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range v.(map[string]any) {
		if !bytes.Equal(text.([]byte), files[name]) {
			t.Errorf("%s = %q, want %q", name, text, files[name])
		}
	}

	// An SDK that the author has changed is a part of the module.
	writeFiles(t, dir, map[string]string{"sdk/weft/events.py": string(own) + "\n"})
	if files, err = pythonSources(dir); err != nil || files["sdk/weft/events.py"] == nil || files["sdk/README.md"] != nil {
		t.Errorf("a changed SDK: %q, %v", slices.Sorted(maps.Keys(files)), err)
	}
}

func TestPythonSourcesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"native code":    {map[string]string{"vendor/fast/core.so": ""}, "vendor/fast/core.so is native code, which a step cannot load"},
		"a native wheel": {map[string]string{"vendor/fast-1.0-cp311-linux_x86_64.whl": ""}, "is not a wheel in pure Python"},
		"a broken wheel": {map[string]string{"vendor/fast-1.0-py3-none-any.whl": "no zip"}, "not a valid zip file"},
		"much data":      {map[string]string{"a.txt": strings.Repeat("x", maxBundle), "b.txt": "y"}, "the project's files are larger than"},
	} {
		dir := t.TempDir()
		writeFiles(t, dir, tt.files)
		if _, err := pythonSources(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
