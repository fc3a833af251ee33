package js_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/guest/script"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
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

// The parser accepts and refuses what Test262's tests for parsers say, of scripts.
func TestParserOfTest262(t *testing.T) {
	dir := filepath.Join(hosttest.NodeModules(t), "test262-parser-tests")
	p := start(t, `const run = ({ script }) => {
  const { SyntaxError } = globalThis;
  try { (0, eval)(script); } catch (e) { return e instanceof SyntaxError; }
  return false;
};`)
	ran := 0
	for folder, refused := range map[string]bool{"pass": false, "fail": true, "early": true} {
		files, err := filepath.Glob(filepath.Join(dir, folder, "*.js"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".module.js") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ran++
			res := p.invoke(t, &calls{}, scriptOf(t, string(text)), func(inv *host.Invocation) { inv.Limits.Fuel = 20_000_000 })
			got := false // a script that does not end has been parsed
			if out, err := abi.DecodeStepOutput(res.Output); res.Err == nil && err == nil && out.Err == nil {
				got = bytes.Contains(out.Events[0].Body, []byte{0xf5})
			}
			name := folder + "/" + filepath.Base(file)
			switch why := test262Deviations[name]; {
			case got != refused && why == "":
				t.Errorf("%s: refused %v, want %v: %s", name, got, refused, text)
			case got == refused && why != "":
				t.Errorf("%s is as it should be: take it out of the list", name)
			}
		}
	}
	if t.Logf("%d scripts", ran); ran < 3000 {
		t.Errorf("only %d scripts", ran)
	}
}

// test262Deviations says of scripts why the result is another.
var test262Deviations = func() map[string]string {
	why := map[string]string{}
	for reason, names := range map[string]string{
		"the language has changed: \\8 and \\9 in sloppy texts":          "fail/0d5e450f1da8a92a fail/748656edbfb2d0bb fail/79f882da06f88c9f fail/92b6af54adef3624",
		"the language has changed: U+2028 and U+2029 in texts":           "fail/647e21f8f157c338 fail/8af69d8f15295ed2",
		"the language has changed: fields of classes":                    "fail/98204d734f8c72b3 fail/ef81b93cf9bdb4ec",
		"annex B: an initial value in for-in":                            "fail/e3fbcf63d7e43ead",
		"annex B: functions of the same name in a block":                 "early/12a74c60f52a60de early/1aff49273f3e3a98 early/be7329119eaa3d47 early/ec31fa5e521c5df4",
		"QuickJS: continue to one of several labels of a loop":           "pass/1f3808cbdfab97e4 pass/7a405ea1fdb6a26e",
		"QuickJS: a rest parameter of a setter":                          "fail/2f95824f19005b11 fail/aae5dc521eff47c4",
		"QuickJS: a comma in the name of a property":                     "fail/3a9fa392421db6dd fail/58707e130fe451a8 fail/ea9e5f218423bd4f fail/ed0332c84e50834c",
		"QuickJS: new super()":                                           "fail/7b876ca5139f1ca8",
		"QuickJS: a default of the pattern of catch":                     "fail/831b4a1caf3c5a06",
		"QuickJS: for (let.a of ...)":                                    "fail/ef2d369cccc5386c",
		"QuickJS: var in for-of with the name of the parameter of catch": "early/0f5f47108da5c34e",
		"QuickJS: a class named eval or arguments":                       "early/4286a88aed2001ee early/84ef3bbaa772075f early/987442878ab414e7 early/f1de9fc3ec4637cc",
		"QuickJS: let or const with the name of a parameter of a pattern": "early/14c149e612ab4111 early/58bb4a3a2d717d4f early/627ae2300901a0b1 early/6bb272e52a903c4c " +
			"early/7a916ef0ccd4ea9c early/93b1547f64fd0370 early/9ef7cc46ec36bb51 early/b01e3a73a92863c5 early/cc23480bdd763207 " +
			"early/d1779a4749085a10 early/d412cecc75edd30d early/e1831477442a7ebf",
	} {
		for _, name := range strings.Fields(names) {
			why[name+".js"] = reason
		}
	}
	return why
}()
