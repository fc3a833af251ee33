package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/js/sdk"
)

// folder makes a folder with files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const hello = `import { result, startEvent, step, Stop, workflow } from "weft";
import text from "./greeting.txt";
import { shout } from "./src/shout";
export default workflow("hello", {}, [step("greet", startEvent("StartEvent"), Stop, () => result(shout(text)))]);
`

// Build bundles what the entry imports, in the order that files have, describes the
// module, and gives the same bytes again.
func TestBuild(t *testing.T) {
	dir := folder(t, map[string]string{"main.ts": hello, "greeting.txt": "good day", "src/shout.ts": "export const shout = (s: string) => s.toUpperCase();\n"})
	var said bytes.Buffer
	o := Options{Language: "ts", Version: "v1", Said: &said}
	module, err := Build(dir, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	d := Describe(module)
	if d == nil || d.Language != "ts" || d.Version != "v1" || !slices.Equal(d.Files, []string{"greeting.txt", "main.ts", "src/shout.ts"}) {
		t.Errorf("the description is %+v", d)
	}
	for _, want := range []string{`"good day"`, "src/shout.ts", "main.ts"} {
		if !bytes.Contains(module, []byte(want)) {
			t.Errorf("the module does not have %q", want)
		}
	}
	if again, err := Build(dir, o); err != nil || !bytes.Equal(again, module) {
		t.Errorf("a second build differs: %v", err)
	}
	o.NoLines = true
	if short, err := Build(dir, o); err != nil || len(short) >= len(module) || bytes.Contains(short, []byte("src/shout.ts\x00")) {
		t.Errorf("without lines: %d bytes, with lines %d: %v", len(short), len(module), err)
	}
}

// A project's own SDK goes before the SDK of the program.
func TestOwnSDK(t *testing.T) {
	dir := folder(t, map[string]string{"main.js": `import { mine } from "weft"; mine(URL);`,
		"sdk/weft.ts": `import "./globals"; export const mine = () => "my own";`, "sdk/globals.ts": "globalThis.URL = 1"})
	var said bytes.Buffer
	module, err := Build(dir, Options{Language: "js", Said: &said})
	if err != nil || !bytes.Contains(module, []byte("my own")) {
		t.Errorf("%v\n%s", err, &said)
	}
}

// The messages name file, line and column, and say what to use instead of Node.
func TestBuildRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"syntax", map[string]string{"main.ts": "let x = ;"}, []string{"main.ts:1:8", "Unexpected"}},
		{"a module of Node", map[string]string{"main.ts": `import fs from "node:fs"; fs.x();`}, []string{"main.ts:1:15", `"node:fs" is a module of Node`, `resource of the kind "kv"`}},
		{"without its prefix", map[string]string{"main.js": "import \"./a.js\";", "a.js": `require("fs");`}, []string{"a.js:1:8", `"fs" is a module of Node`}},
		{"an unknown module of Node", map[string]string{"main.js": `import "node:v8";`}, []string{"use what JavaScript itself has"}},
		{"a package", map[string]string{"main.js": `import "nothing-there";`}, []string{`Could not resolve "nothing-there"`}},
		{"a part of the SDK", map[string]string{"main.js": `import "weft/engine";`}, []string{`import from "weft"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said bytes.Buffer
			_, err := Build(folder(t, tt.files), Options{Said: &said})
			if !errors.Is(err, ErrSources) {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(said.String(), want) {
					t.Errorf("the messages do not have %q:\n%s", want, &said)
				}
			}
		})
	}
	if _, err := Build(t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "main.ts") {
		t.Errorf("an empty folder: %v", err)
	}
}

// A bundle has the module of a global if it names the global, and only then.
func TestGlobals(t *testing.T) {
	modules := map[string]string{"text": "TextDecoder reads UTF-8 only", "crypto": "getRandomValues", "clone": "DataCloneError", "url": "is not a URL", "abort": "AbortError"}
	if len(modules) != len(globals) {
		t.Fatalf("%d modules are tested, there are %d", len(modules), len(globals))
	}
	for _, tt := range []struct{ uses, module string }{
		{`new TextEncoder()`, "text"}, {`new TextDecoder()`, "text"}, {`globalThis.crypto.subtle`, "crypto"}, {`structuredClone({})`, "clone"},
		{`new URL("x:y")`, "url"}, {`new URLSearchParams()`, "url"}, {`(({ URL }) => URL)(globalThis)`, "url"}, {`new AbortController()`, "abort"},
		{`AbortSignal.timeout(1)`, "abort"}, {`new EventTarget()`, "abort"}, {`new Event("x")`, "abort"}, {`new CustomEvent("x")`, "abort"}, {`1`, ""},
	} {
		var said bytes.Buffer
		b, err := bundle(folder(t, map[string]string{"main.js": strings.Replace(hello, "shout(text)", tt.uses, 1), "greeting.txt": "", "src/shout.ts": "export const shout = 1;"}), `import "./main.js";`, &said)
		if err != nil {
			t.Fatalf("%v\n%s", err, &said)
		}
		for name, part := range modules {
			if has := bytes.Contains(b.source, []byte(part)); has != (name == tt.module) {
				t.Errorf("a bundle that uses %s has the module %s: %v", tt.uses, name, has)
			}
		}
	}
}

// Build says how zod's languages leave a bundle, if they are a large part of it.
func TestZodLanguages(t *testing.T) {
	files := map[string]string{"main.js": `import { z } from "zod"; import "./b.js"; console.log(z.string);`, "b.js": `import * as z from "zod"; console.log(z.string);`,
		"node_modules/zod/package.json":     `{"main": "index.js", "type": "module", "sideEffects": false}`,
		"node_modules/zod/index.js":         `import * as z from "./external.js"; export { z }; export * from "./external.js";`,
		"node_modules/zod/external.js":      `export * as locales from "./locales/index.js"; export const string = 1;`,
		"node_modules/zod/locales/index.js": `export const de = "` + strings.Repeat("x", 20_000) + `";`}
	for first, want := range map[string]string{"import { z }": "zod's messages in other languages: write import * as z from \"zod\" in b.js and main.js", "import * as z": ""} {
		files["main.js"] = strings.Replace(files["main.js"], "import { z }", first, 1)
		var said bytes.Buffer
		if _, err := Build(folder(t, files), Options{Said: &said}); err != nil {
			t.Fatalf("%v\n%s", err, &said)
		}
		files["main.js"] = strings.Replace(files["main.js"], first, "import { z }", 1)
		if want == "" && said.Len() > 0 || !strings.Contains(said.String(), want) {
			t.Errorf("with %s from zod: %q", first, &said)
		}
	}
}

// Build warns of a large bundle and refuses a larger one. Both name the largest file.
func TestBuildLarge(t *testing.T) {
	data, err := json.Marshal(strings.Repeat("x", largeBundle))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"main.js": `import a from "./a.json"; console.log(a);`, "a.json": string(data)}
	var said bytes.Buffer
	if _, err := Build(folder(t, files), Options{Said: &said}); err != nil || !strings.Contains(said.String(), "warning: the bundle has 1") || !strings.Contains(said.String(), "a.json") {
		t.Errorf("%v\n%s", err, &said)
	}
	files["a.json"] = `"` + strings.Repeat("x", maxBundle) + `"`
	if _, err := Build(folder(t, files), Options{Said: &said}); err == nil || !strings.Contains(err.Error(), "at most 8388608 are allowed") || !strings.Contains(err.Error(), "a.json") {
		t.Errorf("%v", err)
	}
}

// A package of node_modules that has the name of a module of Node is used.
func TestInstalledPackage(t *testing.T) {
	dir := folder(t, map[string]string{"main.js": `import { x } from "events"; console.log(x);`,
		"node_modules/events/package.json": `{"main": "e.js"}`, "node_modules/events/e.js": `exports.x = "from npm";`})
	var said bytes.Buffer
	if module, err := Build(dir, Options{Said: &said}); err != nil || !bytes.Contains(module, []byte("from npm")) {
		t.Errorf("%v\n%s", err, &said)
	}
}

// The programs of the SDK's page build.
func TestPage(t *testing.T) {
	page, err := sdk.Source.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```ts\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the page has no programs")
	}
	for _, block := range blocks {
		program, _, _ := strings.Cut(block, "```")
		var said bytes.Buffer
		if _, err := Build(folder(t, map[string]string{"main.ts": program}), Options{Said: &said}); err != nil {
			t.Errorf("%v\n%s\n%s", err, &said, program)
		}
	}
}
