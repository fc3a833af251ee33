package script

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/sdk-guest/py"
	"github.com/weftrun/weft/sdk-guest/py/sdk"
)

// PythonEntry is the file that a project in Python begins with.
const PythonEntry = "main.py"

// pythonFiles are the endings of the files that become a part of a module: sources, and
// data that steps read.
var pythonFiles = []string{".py", ".txt", ".md", ".json", ".sql", ".csv", ".toml", ".yaml", ".yml", ".html", ".xml"}

// native are the endings of code that the engine cannot load.
var native = []string{".so", ".pyd", ".dylib", ".dll"}

// notPython are folders whose files are not a part of a module.
var notPython = map[string]bool{"build": true, "target": true, "node_modules": true, "tests": true, "__pycache__": true, "venv": true, "env": true}

// notData are files of a project that steps do not read.
var notData = map[string]bool{"cases.json": true, "weft.json": true, "README.md": true, "flow.yaml": true, "flow.yml": true, "flow.json": true,
	"pyproject.toml": true, "requirements.txt": true, "CHANGELOG.md": true, "LICENSE.txt": true}

// buildPython puts the files of a project into the engine for Python. The engine compiles
// them when the plugin is described.
//
// # Errors
//
// [py.ErrNoEngine]; an error if the folder has no main.py, if a package in vendor is native
// code, or if the files are too large.
func buildPython(dir string, o Options) ([]byte, error) { return buildPythonWith(dir, nil, "", o) }

// testsFile is the file by which the SDK knows that a module holds tests.
const testsFile = ".weft-tests"

// buildPythonWith makes the module, or, if there are tests, the module of the workflow that
// runs them.
func buildPythonWith(dir string, tests []string, workflow string, o Options) ([]byte, error) {
	engine, err := py.Engine()
	if err != nil {
		return nil, err
	}
	files, err := pythonSources(dir)
	if err != nil {
		return nil, err
	}
	if files[PythonEntry] == nil {
		return nil, fmt.Errorf("%s has no file %s", dir, PythonEntry)
	}
	if err := addTests(files, dir, tests, workflow); err != nil {
		return nil, err
	}
	b := &bundled{source: cborMap(files), inputs: map[string]int{}}
	for name, text := range files {
		b.inputs[name] = len(text)
	}
	if err := b.checkSize(o.Said); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b.source)
	info, err := json.Marshal(Description{Language: o.Language, Version: o.Version, SHA256: hex.EncodeToString(sum[:]), Size: len(b.source),
		Files: slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return strings.HasPrefix(name, "vendor/") })})
	if err != nil {
		return nil, err
	}
	return Inject(engine, b.source, nil, info)
}

// addTests adds files with tests, given relative to the folder.
func addTests(files map[string][]byte, dir string, tests []string, workflow string) error {
	if len(tests) == 0 {
		return nil
	}
	given := struct {
		Workflow string   `json:"workflow"`
		Files    []string `json:"files"`
	}{Workflow: workflow}
	for _, name := range tests {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)] = text
		given.Files = append(given.Files, filepath.ToSlash(name))
	}
	var err error
	files[testsFile], err = json.Marshal(given)
	return err
}

// pythonSources reads the files that become a part of a module, by their slash-separated
// paths.
func pythonSources(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	total := 0
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == ".":
			return nil
		case d.IsDir():
			if strings.HasPrefix(d.Name(), ".") || notPython[d.Name()] && !strings.HasPrefix(name, "vendor/") || is(filepath.Join(file, "pyvenv.cfg")) ||
				strings.HasSuffix(d.Name(), ".dist-info") {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") || notData[name]:
			return nil
		case slices.Contains(native, path.Ext(name)):
			return fmt.Errorf("%s is native code, which a step cannot load: use a package in pure Python", name)
		case path.Ext(name) == ".whl":
			return addWheel(files, file, name)
		case !slices.Contains(pythonFiles, path.Ext(name)) || strings.HasPrefix(d.Name(), "test_") && !strings.HasPrefix(name, "vendor/"):
			return nil
		}
		files[name], err = os.ReadFile(file)
		if total += len(files[name]); err == nil && total > maxBundle {
			return fmt.Errorf("the project's files are larger than %d bytes with %s: move data that steps do not need to another folder, such as one that begins with a dot", maxBundle, name)
		}
		return err
	})
	if err == nil {
		err = withoutSDK(files)
	}
	return files, err
}

func is(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// withoutSDK removes the SDK from a project's files if it is the SDK of this program, which
// the engine holds as bytecode.
func withoutSDK(files map[string][]byte) error {
	same := true
	err := fs.WalkDir(sdk.Source, "weft", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sdk.Source.ReadFile(name)
		own, there := files[sdkFolder+"/"+name]
		same = same && (!there || bytes.Equal(text, own))
		return err
	})
	maps.DeleteFunc(files, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, sdkFolder+"/") && (same || path.Ext(name) != ".py")
	})
	return err
}

// addWheel adds the files of a wheel as files of the folder vendor.
func addWheel(files map[string][]byte, file, name string) error {
	if !strings.HasSuffix(name, "-none-any.whl") {
		return fmt.Errorf("%s is not a wheel in pure Python, whose name ends in -none-any.whl: a step cannot load native code", name)
	}
	r, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = r.Close() }() // it was only read
	for _, f := range r.File {
		if !f.Mode().IsRegular() || !slices.Contains(pythonFiles, path.Ext(f.Name)) || strings.Contains(f.Name, ".dist-info/") || !fs.ValidPath(f.Name) {
			continue
		}
		if f.UncompressedSize64 > maxBundle {
			return fmt.Errorf("%s: %s has %d bytes, and at most %d are allowed", name, f.Name, f.UncompressedSize64, maxBundle)
		}
		in, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		text, err := io.ReadAll(io.LimitReader(in, maxBundle+1))
		if err = errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("%s: %s: %w", name, f.Name, err)
		}
		files["vendor/"+f.Name] = text
	}
	return nil
}

// cborMap writes files as a map in CBOR, in the order of their names.
func cborMap(files map[string][]byte) []byte {
	out := cborHead(nil, cbor.Map, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(cborHead(out, cbor.Text, len(name)), name...)
		out = append(cborHead(out, cbor.Bytes, len(files[name])), files[name]...)
	}
	return out
}

func cborHead(out []byte, major byte, n int) []byte {
	if n < cbor.Info8 {
		return cbor.AppendHead(out, major, uint64(n))
	}
	at := len(out)
	out = cbor.AppendWide(out, major)
	cbor.PutWide(out, at, n) // at most maxBundle
	return out
}
