package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest"
)

// hostCall is a line of the table of calls: what it does, and its names in the SDKs. C
// and Zig have one function for all calls.
type hostCall struct {
	what string
	goes []string // in Go: methods of a context, unless they begin with "weft."
	rust []string
}

// hostCalls describes abi.HostCalls.
var hostCalls = map[abi.Import]hostCall{
	abi.ImportStateGet:    {"reads the state, or a part of it, as it was committed last", []string{"Get", "GetOr", "State"}, []string{"get", "get_or", "state"}},
	abi.ImportStateEdit:   {"makes changes together, or none", []string{"Set", "Delete", "Append", "Increment", "IncrementFloat", "Merge", "Test", "Clear", "Batch"}, []string{"set", "delete", "append", "increment", "increment_float", "merge", "test", "clear", "batch"}},
	abi.ImportStateBegin:  {"opens an edit: gives a value, to be computed with as if alone", []string{"Edit", "weft.EditAt"}, []string{"edit", "edit_at", "try_edit", "try_edit_at"}},
	abi.ImportStateCommit: {"ends the edit with a new value", []string{"Edit", "weft.EditAt"}, []string{"edit", "edit_at", "try_edit", "try_edit_at"}},
	abi.ImportStateAbort:  {"ends the edit, and changes nothing", []string{"Edit", "weft.EditAt"}, []string{"try_edit", "try_edit_at"}},
	abi.ImportSendEvent:   {"sends an event to whoever takes it, or to one step", []string{"Send", "SendTo"}, []string{"send", "send_to"}},
	abi.ImportCollect:     {"keeps events until there is one of each type", []string{"Collect", "CollectIn", "weft.CollectN"}, []string{"collect", "collect_in", "collect_n"}},
	abi.ImportWait:        {"waits for an event from outside, or another step", []string{"weft.Wait"}, []string{"wait_for"}},
	abi.ImportWriteStream: {"writes an event to the run's stream", []string{"Stream"}, []string{"stream"}},
	abi.ImportRunWorkflow: {"runs a workflow as a child, and waits for its stop event", []string{"weft.Run"}, []string{"run_workflow"}},
	abi.ImportResource:    {"calls what the operator has granted, and waits for the answer", []string{"Call", "HTTP", "LLM", "KV"}, []string{"call", "http", "llm", "kv"}},
	abi.ImportSleep:       {"waits for a time", []string{"Sleep"}, []string{"sleep"}},
	abi.ImportNow:         {"tells the time, the same in each replay", []string{"Now"}, []string{"now"}},
	abi.ImportRandom:      {"gives random bytes, the same in each replay", []string{"Random"}, []string{"random"}},
	abi.ImportLog:         {"writes a line to the run's log", []string{"Debug", "Info", "Warn", "Error"}, []string{"debug", "info", "warn", "error", "log"}},
}

// cddl returns the parts of abi.cddl by their titles; the first part has the title "".
func cddl(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hosttest.Root(), "abi", "abi.cddl"))
	if err != nil {
		t.Fatal(err)
	}
	parts, title := map[string]string{}, ""
	heading := regexp.MustCompile(`^; ---- (.*?) -+$`)
	for line := range strings.Lines(string(text)) {
		if found := heading.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			title = found[1]
			continue
		}
		parts[title] += line
	}
	return parts
}

// part formats a part of abi.cddl for a page.
func part(t *testing.T, parts map[string]string, title string) string {
	t.Helper()
	if parts[title] == "" {
		t.Fatalf("abi.cddl has no part %q", title)
	}
	return fenced(strings.TrimSpace(parts[title])) + "\n"
}

// abiPage describes the messages between host and guest.
func abiPage(t *testing.T) string {
	t.Helper()
	parts := cddl(t)
	var b strings.Builder
	b.WriteString("# The ABI\n\nWhat crosses the boundary between the server and a plugin, version 1. [abi/abi.cddl](../../abi/abi.cddl) is the same for\n" +
		"programs, and [testdata/abi](../../testdata/abi/README.md) has an example of each message. An SDK does all of it; without one,\n" +
		"[the header for C](../../sdk-guest/c/README.md) has 150 lines.\n\n## What a plugin exports\n\n" +
		"| export | type | what |\n|---|---|---|\n" +
		"| `memory` | memory | the only one |\n" +
		"| `_initialize` | `() -> ()` | may be there: called once, before the image is taken |\n" +
		"| `" + abi.ExportDescribe + "` | `() -> ()` | gives [the manifest](manifest.md) by one call of `output` |\n" +
		"| `" + abi.ExportStep + "` | `(i32) -> i32` | runs a step: its input has so many bytes and is read by `input`, its output is given by `output`. " +
		"It returns 0, or 1 if the output is an error |\n")
	fmt.Fprintf(&b, "\n## What it imports\n\nAll from the module `%s`. Only what is used is imported, so that an upload tells what a plugin asks for. Three functions\n"+
		"move bytes, and end the call if they would leave the guest's memory:\n\n| import | type | what |\n|---|---|---|\n"+
		"| `input` | `(to, offset, size: i32)` | copies a part of the invocation's input |\n"+
		"| `response` | `(to, offset, size: i32)` | copies a part of the answer of the last call |\n"+
		"| `output` | `(from, size: i32)` | gives the result |\n", abi.ImportModule)
	b.WriteString("\nThe others ask the host, and have one type: `(from, size: i32) -> i64`, a request in memory. The result's high 32 bits are a\n" +
		"status, 0 or the number of an error; the low ones are the size of the answer. The host never writes where it was not told to.\n\n" +
		"| import | what it does | Go | Rust |\n|---|---|---|---|\n")
	for _, im := range abi.HostCalls {
		c := hostCalls[im]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", im, c.what, functions(c.goes, "ctx."), functions(c.rust, "ctx."))
	}
	b.WriteString("\nIn C each is a function, `weft_state_get(request)` and so on; in Zig all are `weft.call(\"state_get\", request)`.\n" +
		"A wait, a sleep, a child and a resource's answer may take long: the host may drop the instance meanwhile, and run the step again\n" +
		"up to that call, with the answers that it had.\n\n## Requests and answers\n\n" + part(t, parts, "host calls: request -> response") +
		"\n## A step's input and output\n\n" + part(t, parts, "weft_step") + "\n## Values and events\n\n" + part(t, parts, ""))
	return b.String()
}

// functions lists the functions of an SDK.
func functions(names []string, of string) string {
	var list []string
	for _, name := range names {
		if !strings.HasPrefix(name, "weft.") {
			name = of + name
		}
		list = append(list, "`"+name+"`")
	}
	return strings.Join(list, ", ")
}

// manifestPage describes the manifest of a plugin.
func manifestPage(t *testing.T) string {
	t.Helper()
	return "# The manifest\n\nWhat a plugin says of itself: its steps, the types of its events, the state. The SDKs make it of types and options, and\n" +
		"`weft inspect FILE` shows it. It is one message in CBOR, which `weft_describe` gives; see [the ABI](abi.md). An Extism\n" +
		"plugin has [one in JSON](../extism.md).\n\n" + part(t, cddl(t), "weft_describe") +
		"\n## Where it comes from\n\n| in the manifest | in Go | in Rust |\n|---|---|---|\n" + manifestRows() +
		"\nWhat is wrong with a manifest is said at the upload, all of it at once, with the step and the event: [error codes](errors.md).\n"
}

// manifestParts say how the SDKs fill the manifest.
var manifestParts = []struct{ key, goes, rust string }{
	{"workflow", `weft.Define("name", ...)`, `workflow!("name", ...)`},
	{"version, description", `weft.Version(text)`, `version = "..."`},
	{"part", `weft.Part()`, `part`},
	{"timeout", `weft.Timeout(d)`, `timeout = "30s"`},
	{"resources", `weft.Resource{Name: "crm", Kind: "http"}`, `resources = [http("crm")]`},
	{"state", "the type in `weft.Context[State]`; `weft.State(initial)`", "`state = State`, and its `Default`"},
	{"events", "the structs that steps take and give, with their tags", "`#[derive(Event)]`, `StartEvent` and so on"},
	{"steps: name", `weft.Step("name", f)`, `#[step]`},
	{"steps: accepts", "the step's argument; `weft.Accepts`, `weft.Take`, `weft.Join`", "the step's argument; `#[derive(Events)]`, `take = n`, a tuple"},
	{"steps: emits", "the step's result; `weft.Emits`, `weft.Streams`", "the step's result; `emits = [A]`, `streams = [A]`"},
	{"steps: workers", `weft.Workers(4)`, `workers = 4`},
	{"steps: retry", `weft.Retry(...)`, `retry = fixed("1s").attempts(3)`},
	{"steps: catches", `weft.Catches("step")`, `catches = [step]`},
	{"steps: max_recoveries", `weft.MaxRecoveries(n)`, `max_recoveries = n`},
	{"steps: waits", `weft.Waits(A{})`, `waits = [A]`},
	{"steps: accept_subtypes", `weft.AcceptSubtypes()`, `accept_subtypes`},
	{"steps: atomic", `weft.Atomic()`, `atomic`},
}

func manifestRows() string {
	var b strings.Builder
	code := func(text string) string {
		if strings.Contains(text, "`") || strings.HasPrefix(text, "the ") {
			return text
		}
		return "`" + text + "`"
	}
	for _, p := range manifestParts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.key, code(p.goes), code(p.rust))
	}
	return b.String()
}

// Every function that the page names exists in its SDK, and every call of the host has a
// function in every SDK.
func TestCallsOfSDKs(t *testing.T) {
	root := hosttest.Root()
	read := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(root, "sdk-guest", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		var all strings.Builder
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	goes, rust := read("go/weft/*.go"), read("rust/weft/src/*.rs")
	has := func(text, pattern, name string) bool {
		return regexp.MustCompile("(?m)" + fmt.Sprintf(pattern, regexp.QuoteMeta(name))).MatchString(text)
	}
	for _, im := range abi.HostCalls {
		c, ok := hostCalls[im]
		if !ok {
			t.Errorf("hostCalls lacks %s", im)
		}
		for _, name := range c.goes {
			plain := strings.TrimPrefix(name, "weft.")
			if pattern := `^func (\(\w+ \*?\w+(\[\w+\])?\) )?%s[\[(]`; !has(goes, pattern, plain) {
				t.Errorf("the SDK for Go has no %s", name)
			}
		}
		for _, name := range c.rust {
			if !has(rust, `^\s*pub fn %s[<(]`, name) {
				t.Errorf("the SDK for Rust has no %s", name)
			}
		}
	}
	for sdk, pattern := range map[string][2]string{
		"Go":   {read("go/internal/boundary/wasm.go"), `//go:wasmimport weft:v1 %s$`},
		"Rust": {read("rust/weft/src/boundary/wasm.rs"), `^    %s;$`},
		"C":    {read("c/weft.h"), `WEFT_CALL\(%s\)`},
	} {
		for _, im := range abi.HostCalls {
			if !has(pattern[0], pattern[1], string(im)) {
				t.Errorf("the SDK for %s does not import %s", sdk, im)
			}
		}
	}
	if !strings.Contains(read("zig/weft.zig"), "pub fn call(comptime name: []const u8") {
		t.Error("the SDK for Zig has no call that takes any name")
	}
	for _, p := range manifestParts {
		for _, name := range regexp.MustCompile(`weft\.([A-Z]\w+)`).FindAllStringSubmatch(p.goes, -1) {
			if !has(goes, `^(func|type) %s\b|^\t%[1]s struct`, name[1]) {
				t.Errorf("the SDK for Go has no weft.%s", name[1])
			}
		}
	}
	if len(hostCalls) != len(abi.HostCalls) || !slices.Contains(abi.HostCalls, abi.ImportLog) {
		t.Errorf("%d calls are described, and there are %d", len(hostCalls), len(abi.HostCalls))
	}
}
