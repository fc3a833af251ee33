package extism

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// MaxManifest bounds a manifest, in bytes of JSON.
const MaxManifest = 256 << 10

// Codes of the problems of a manifest.
const (
	problemManifest  = "invalid_manifest"
	problemSteps     = "missing_manifest"
	problemExport    = "unknown_export"
	problemSignature = "wrong_signature"
	problemForm      = "unknown_form"
	problemSelf      = "describes_itself"
)

// Defaults of a manifest.
const (
	DefaultVars     = "extism.vars"
	DefaultResource = "http"
	defaultLevel    = "info"
	resultField     = "result"
)

// levels are the names of the log levels of a plugin, indexed by Extism's numbers; off
// disables all.
var levels = []string{"trace", "debug", "info", "warn", "error", "off"}

// Plugin is what the host must know to run an Extism plugin. It is kept with the compiled
// module, as JSON.
type Plugin struct {
	Manifest []byte          // as weft_describe of other modules returns it
	Steps    map[string]Step // by name
	Config   map[string]string
	Vars     string   // path in the session's state under which variables are kept
	Resource string   // resource of kind http for http_request
	Level    int      // index in levels: lines below it are dropped
	Start    []string // exports to call once when an instance is made, in order
}

// Step is one step of a plugin.
type Step struct {
	Export string
	Input  Form
	Output Form
	Emits  string // the type of event that it emits; "": none, or the output contains the type
	Into   string // field of the event for the output; "": "result", or a map becomes the body
}

// Function is an export of a module. Params and Results have one byte for each value.
type Function struct{ Name, Params, Results string }

// callable reports whether an export's type allows the export to be a step.
func (f *Function) callable() bool { return f.Params == "" && len(f.Results) <= 1 }

// own are the exports of language runtimes.
var own = []string{
	"_start", "_initialize", "__wasm_call_ctors", "hs_init", "hs_exit", "malloc", "free", "calloc", "realloc",
	"__main_void", "__original_main", "main", "_exit", "cabi_realloc",
}

// Candidates returns the exports that can be steps. It returns exports of a runtime only
// if there are no others.
func Candidates(functions []Function) (names []string) {
	command := false
	for i := range functions {
		f := &functions[i]
		switch {
		case !f.callable():
		case f.Name == "_start":
			command = true
		case !slices.Contains(own, f.Name) && !strings.HasPrefix(f.Name, "asyncify_") && !strings.HasPrefix(f.Name, "__"):
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 && command {
		return []string{"_start"}
	}
	return names
}

// reading is the state of reading a manifest.
type reading struct {
	functions []Function
	problems  []host.Problem
	plugin    Plugin
	types     []string // of events that steps accept and emit
	// atomic is the default for steps that do not say. Steps that update variables and
	// wait for nothing are atomic, so that they do not lose each other's updates.
	atomic bool
}

func (r *reading) add(code, step, format string, args ...any) {
	r.problems = append(r.problems, host.Problem{Code: code, Step: step, Message: fmt.Sprintf(format, args...)})
}

// Read describes an Extism plugin from a module, its function exports, and the functions
// of Extism that it imports. It reports all problems together, unless one hides another.
func Read(wasm []byte, functions []Function, imported []string) (*Plugin, []host.Problem) {
	r := &reading{functions: functions}
	all, _ := sections(wasm)
	manifests := given(all)
	text := []byte("{}")
	for i, other := range manifests {
		if i > 0 && !bytes.Equal(other, text) {
			r.add(problemManifest, "", "the module has a manifest already, and a second one was given: leave it out, or build the module without one (its custom section %s)", abi.SectionManifest)
			return nil, r.problems
		}
		text = other
	}
	if slices.ContainsFunc(functions, func(f Function) bool { return f.Name == abi.ExportDescribe }) {
		r.add(problemSelf, "", "the module exports %s, and so describes itself: only plugins made for Extism take a manifest", abi.ExportDescribe)
		return nil, r.problems
	}
	m, ok := r.object(text)
	if !ok {
		return nil, r.problems
	}
	has := func(name string) bool { return slices.Contains(imported, name) }
	r.atomic = has("var_get") && has("var_set") && !has("http_request")
	r.settings(m)
	r.steps(m)
	r.resources(m, imported)
	r.events(m)
	r.startup()
	r.finish(m)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return &r.plugin, nil
}

func (r *reading) object(text []byte) (map[string]any, bool) {
	if len(text) > MaxManifest {
		r.add(problemManifest, "", "the manifest has %d bytes, at most %d are allowed", len(text), MaxManifest)
		return nil, false
	}
	raw, err := abi.FromJSON(text)
	if err != nil {
		r.add(problemManifest, "", "the manifest is not JSON: %v", err)
		return nil, false
	}
	v, err := abi.DecodeValue(raw)
	if err != nil {
		r.add(problemManifest, "", "the manifest: %v", err)
		return nil, false
	}
	m, ok := v.(map[string]any)
	if !ok {
		r.add(problemManifest, "", "the manifest must be a JSON object")
	}
	return m, ok
}

// take removes a field that is not part of a module's own manifest from a map, and
// returns its text. absent is the default.
func (r *reading) take(m map[string]any, step, field, absent string) string {
	v, there := m[field]
	delete(m, field)
	if !there {
		return absent
	}
	s, ok := v.(string)
	if !ok || s == "" {
		r.add(problemManifest, step, "%s must be a text that is not empty", field)
		return absent
	}
	return s
}

// settings reads the fields of the whole plugin.
func (r *reading) settings(m map[string]any) {
	r.plugin.Vars = r.take(m, "", "vars", DefaultVars)
	if fault := pathFault(r.plugin.Vars); fault != "" {
		r.add(problemManifest, "", "vars must be a path in the state, such as %s: %s", DefaultVars, fault)
	}
	r.plugin.Resource = r.take(m, "", "http", DefaultResource)
	level := r.take(m, "", "log_level", defaultLevel)
	if r.plugin.Level = slices.Index(levels, level); r.plugin.Level < 0 {
		r.add(problemManifest, "", "log_level must be one of %s, not %q", strings.Join(levels, ", "), clip(level))
	}
	config := m["config"]
	delete(m, "config")
	values, ok := config.(map[string]any)
	if config != nil && !ok {
		r.add(problemManifest, "", "config must be an object of texts")
	}
	r.plugin.Config = map[string]string{}
	for name, v := range values {
		text, ok := v.(string)
		if !ok {
			r.add(problemManifest, "", "config %q must be a text", clip(name))
		}
		r.plugin.Config[name] = text
	}
	if _, ok := m["abi"]; !ok {
		m["abi"] = abi.Version
	}
	r.durations(m, "", "timeout")
}

// pathFault returns what is wrong with a path for variables, or "".
func pathFault(path string) string {
	switch {
	case len(path) > abi.MaxPath/2:
		return "it is too long"
	case !utf8.ValidString(path):
		return "it is not UTF-8"
	case strings.Contains("."+path+".", ".."):
		return "it has an empty segment"
	}
	return ""
}

// durations allows the named fields to be texts such as 30s.
func (r *reading) durations(m map[string]any, step string, fields ...string) {
	for _, field := range fields {
		text, ok := m[field].(string)
		if !ok {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			r.add(problemManifest, step, "%s must be a time such as 30s, or a number of nanoseconds, not %q", field, clip(text))
			d = 0
		}
		m[field] = int64(d)
	}
}

// resources adds the resource that http_request uses.
func (r *reading) resources(m map[string]any, imported []string) {
	if !slices.Contains(imported, "http_request") {
		return
	}
	list, ok := m["resources"].([]any)
	if _, there := m["resources"]; there && !ok {
		return // finish reports this
	}
	for _, v := range list {
		if decl, ok := v.(map[string]any); ok && decl["name"] == r.plugin.Resource {
			return
		}
	}
	m["resources"] = append(list, map[string]any{"name": r.plugin.Resource, "kind": "http"})
}

// events declares the event types that have no declaration.
func (r *reading) events(m map[string]any) {
	decls, ok := m["events"].(map[string]any)
	if _, there := m["events"]; there && !ok {
		return // finish reports this
	}
	if decls == nil {
		decls = map[string]any{}
	}
	for _, typ := range r.types {
		if _, base := abi.BaseKinds[typ]; !base && decls[typ] == nil {
			decls[typ] = map[string]any{}
		}
	}
	m["events"] = decls
}

// startup finds the exports that Extism's hosts call before the first function.
func (r *reading) startup() {
	for _, s := range r.plugin.Steps {
		if s.Export == "_start" || s.Export == "_initialize" {
			return // the sandbox calls them itself
		}
	}
	plain := func(name string) bool {
		return slices.ContainsFunc(r.functions, func(f Function) bool { return f.Name == name && f.Params == "" })
	}
	switch {
	case slices.ContainsFunc(r.functions, func(f Function) bool { return f.Name == "hs_init" && len(f.Params) == 2 && f.Results == "" }):
		if plain("_initialize") {
			r.plugin.Start = append(r.plugin.Start, "_initialize")
		}
		r.plugin.Start = append(r.plugin.Start, "hs_init")
	case plain("_initialize"):
		r.plugin.Start = []string{"_initialize"}
	case plain("__wasm_call_ctors"):
		r.plugin.Start = []string{"__wasm_call_ctors"}
	}
}

// finish checks the rest as a module's own manifest is checked.
func (r *reading) finish(m map[string]any) {
	if len(r.problems) > 0 {
		return
	}
	raw, err := abi.EncodeValue(m)
	if err == nil {
		_, err = abi.DecodeManifest(raw)
	}
	if err != nil {
		r.add(problemManifest, "", "the manifest: %v", err)
		return
	}
	r.plugin.Manifest = raw
}

// clip bounds a name in a message.
func clip(s string) string { return abi.Clip(s, 80) }
