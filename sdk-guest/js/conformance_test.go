package js_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/cmd/weft/guest/script"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// foreignTests is the folder of tests that others have written, which .ci/jstests fetches.
func foreignTests(t *testing.T, folder string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cmp.Or(os.Getenv("WEFT_ENGINES"), filepath.Join(cache, "weft-engines")), "tests-1", folder)
	if _, err := os.Stat(dir); err != nil {
		suite.Missing(t, "needs the tests that .ci/jstests fetches")
	}
	return dir
}

// listed runs a script on a file of cases and checks that none fails.
func listed(t *testing.T, file, script string) {
	t.Helper()
	cases, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, failed := onSDK(t, &calls{}, "const all = "+string(cases)+";\n"+script)
	if failed != nil {
		t.Fatal(failed, dataOf(failed))
	}
	var got struct {
		Result struct {
			Ran    int
			Failed []string
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cases", got.Result.Ran)
	if got.Result.Ran < 200 {
		t.Errorf("only %d cases", got.Result.Ran)
	}
	for _, name := range got.Result.Failed {
		t.Errorf("fails: %s", name)
	}
}

func TestURLsOfWPT(t *testing.T) {
	listed(t, filepath.Join(foreignTests(t, "url"), "urltestdata.json"), `
const failed = []; let ran = 0;
for (const c of all) {
  if (typeof c === "string" || c.input.includes("^_")) continue; // a path encodes ^ since 2024
  ran++;
  let u = null;
  try { u = c.base == null ? new URL(c.input) : new URL(c.input, c.base); } catch (e) { if (!(e instanceof TypeError)) failed.push(String(e)); }
  const name = JSON.stringify([c.input, c.base]);
  if (c.failure ? u !== null || URL.canParse(c.input, c.base ?? undefined) : u === null) { failed.push(name + (u ? " gives " + u.href : " is refused")); continue; }
  if (c.failure) continue;
  for (const k of ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash", "searchParams"])
    if (k in c && String(u[k]) !== c[k]) failed.push(name + " " + k + " " + u[k] + " not " + c[k]);
}
return { ran, failed };`)
}

func TestSettersOfURLsOfWPT(t *testing.T) {
	listed(t, filepath.Join(foreignTests(t, "url"), "setters_tests.json"), `
const failed = []; let ran = 0;
for (const [field, list] of Object.entries(all)) {
  if (field === "comment") continue;
  for (const c of list) {
    if (c.href.includes("space ") || c.new_value.includes("^_")) continue; // an opaque path encodes its last space since 2025, a path ^ since 2024
    ran++;
    const u = new URL(c.href);
    u[field] = c.new_value;
    for (const [k, v] of Object.entries(c.expected)) if (u[k] !== v) failed.push([c.href, field, c.new_value, k, u[k], "not", v].join(" "));
  }
}
return { ran, failed };`)
}

// The tests of QuickJS-ng that need no more than the language run while a module is
// described.
func TestScriptsOfQuickJS(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(foreignTests(t, "quickjs"))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.js"))
	if err != nil {
		t.Fatal(err)
	}
	// What QuickJS's own shell has.
	shell := "export const gc = () => {}; Object.assign(globalThis, { print() {}, gc });"
	if err := os.WriteFile(filepath.Join(dir, "shell.ts"), []byte(shell), 0o666); err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, module := range []string{"std", "os", "bjson"} {
			text = bytes.ReplaceAll(text, []byte(`"qjs:`+module+`"`), []byte(`"./shell"`))
		}
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".js")
		t.Run(name, func(t *testing.T) {
			main := `import { result, startEvent, step, Stop, workflow } from "weft";
import "./shell";
import "./shell";
import "./` + name + `.js";
export default workflow("probe", {}, [step("run", startEvent("StartEvent"), Stop, () => result(1))]);`
			if err := os.WriteFile(filepath.Join(dir, "main.ts"), []byte(main), 0o666); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			wasm, err := script.Build(dir, script.Options{Language: "ts", Said: &said})
			if err == nil {
				_, _, err = describe(wasm)
			}
			failed[name] = err != nil
			switch why := failsInAStep[name]; {
			case err != nil && why == "":
				t.Error(problems(err), said.String())
			case err == nil && why != "":
				t.Errorf("passes, although it fails for %q", why)
			}
		})
	}
	if len(failed) < 100 || len(failsInAStep) > 40 {
		t.Errorf("%d tests, %d of them fail", len(failed), len(failsInAStep))
	}
}

// failsInAStep says why tests of QuickJS-ng do not pass.
var failsInAStep = map[string]string{
	"array-fromasync-enumerable":       "it is a module with await or imports at run time",
	"bug1795":                          "it is a module with await or imports at run time",
	"bug832":                           "it is a module with await or imports at run time",
	"dynamic_import_rejection_handled": "it is a module with await or imports at run time",
	"for-await-normal-close":           "it is a module with await or imports at run time",
	"import-attributes-identity":       "it is a module with await or imports at run time",
	"reexport-error-module":            "it is a module with await or imports at run time",
	"test_dynamic_import_line_numbers": "it is a module with await or imports at run time",
	"fixture_reexport_missing":         "it is a module with await or imports at run time",
	"microbench":                       "it uses modules of QuickJS's shell",
	"test_bjson":                       "it uses modules of QuickJS's shell",
	"test_std":                         "it uses modules of QuickJS's shell",
	"test_worker":                      "it uses modules of QuickJS's shell",
	"test_worker_module":               "it uses modules of QuickJS's shell",
	"atomics-store-leak":               "it uses Atomics",
	"bug1301":                          "it uses Atomics",
	"bug1302":                          "it uses Atomics",
	"bug1354":                          "it is meant to throw",
	"bug1661":                          "it is meant to throw",
	"bug648":                           "it is meant to throw",
	"bug775":                           "it is meant to throw",
	"bug776":                           "it is meant to throw",
	"fixture_throwing_module":          "it is meant to throw",
	"bug858":                           "it looks at places in its own file",
	"test_for_of_line_numbers":         "it looks at places in its own file",
	"function_source":                  "it looks at places in its own file",
	"test_builtin":                     "it needs a script that is not strict or has not been bundled",
	"test_closure":                     "it needs a script that is not strict or has not been bundled",
	"test_domexception":                "it needs a script that is not strict or has not been bundled",
}
