package module

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// partOf is the manifest of a part in JSON, without what all have.
func partOf(t *testing.T, body string) []byte {
	t.Helper()
	raw := fromJSON(t, `{"abi": 1, "workflow": "no-name", "part": true, `+body+`}`)
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Two parts that make a workflow together, greet | shout.
const (
	greetPart = `"events": {"Greeting": {"schema": {"type": "object", "properties": {"text": {"type": "string"}}}}},
		"steps": [{"name": "greet", "accepts": ["StartEvent"], "emits": ["Greeting"]}]`
	shoutPart = `"events": {"Greeting": {}},
		"steps": [{"name": "shout", "accepts": ["Greeting"], "emits": ["StopEvent"]}]`
)

func (b bed) compose(t *testing.T, name string, c host.Composition) host.WorkflowInfo {
	t.Helper()
	info, changed, err := b.Compose(t.Context(), tenantA, name, c)
	if err != nil || !changed {
		t.Fatalf("Compose: changed %v, %v: %+v", changed, err, problemsOf(err))
	}
	return info
}

func of(plugins ...string) host.Composition { return host.Composition{Plugins: plugins} }

func greetShout(t *testing.T) bed {
	t.Helper()
	b := newBed(t, nil)
	b.put(t, tenantA, "greet", partOf(t, greetPart))
	b.put(t, tenantA, "shout", partOf(t, shoutPart))
	return b
}

// A part makes no workflow by itself, and its name for one clashes with none.
func TestParts(t *testing.T) {
	b := greetShout(t)
	if names, err := b.Workflows(t.Context(), tenantA); err != nil || len(names) != 0 {
		t.Errorf("workflows = %v, %v", names, err)
	}
	_, err := b.Newest(tenantA, "no-name")
	wantCode(t, err, host.CodeNotFound)
	info, err := b.Plugin(t.Context(), tenantA, "greet")
	if err != nil || info.Workflow != "" || info.ComposedIn != nil {
		t.Errorf("part = %+v, %v", info, err)
	}
	b.put(t, tenantA, "whole", manifest(t, "no-name", nil))
	b.running(t, "no-name")
	if list, err := b.List(t.Context(), tenantA); err != nil || list[0].Runs != 0 || list[2].Runs != 1 {
		t.Errorf("list = %+v, %v", list, err)
	}
	if err := b.Delete(t.Context(), tenantA, "greet"); err != nil {
		t.Error(err)
	}
	_, _, err = b.Put(t.Context(), tenantA, "bad", partOf(t, `"events": {}, "steps": [{"name": "a", "accepts": ["Nope"]}]`))
	wantCode(t, err, host.CodeInvalidPlugin, "Nope")
}

func TestCompose(t *testing.T) {
	b := greetShout(t)
	timeout := 90 * time.Second
	given := host.Composition{Plugins: []string{"greet", "shout"}, Settings: host.WorkflowSettings{
		Timeout: &timeout, Description: "says it loud", Config: map[string]abi.Raw{"shout": fromJSON(t, `{"mark": "!"}`)},
	}}
	info := b.compose(t, "hello", given)
	if info.Name != "hello" || !slices.Equal(info.Plugins, given.Plugins) || !info.Composed || !reflect.DeepEqual(info.Settings, given.Settings) ||
		info.Description != "says it loud" || info.StartType != abi.TypeStart || len(info.Graph.Nodes) < 5 || len(info.Digest) != 64 {
		t.Errorf("workflow = %+v", info)
	}
	if i := slices.IndexFunc(info.Events, func(e host.EventInfo) bool { return e.Type == "Greeting" }); !strings.Contains(string(info.Events[i].Schema), "text") {
		t.Errorf("the fuller declaration is not shown: %x", info.Events[i].Schema)
	}
	again, changed, err := b.Compose(t.Context(), tenantA, "hello", given)
	if err != nil || changed || again.Digest != info.Digest {
		t.Errorf("again: %v, %v", changed, err)
	}
	check := func(s *Service) {
		t.Helper()
		v, err := s.Newest(tenantA, "hello")
		if err != nil {
			t.Fatal(err)
		}
		greet, _ := s.newest(tenantA, "greet")
		shout, _ := s.newest(tenantA, "shout")
		want := map[string]Step{
			"greet": {Digest: greet.Digest, ImageHash: "image of " + greet.Digest},
			"shout": {Digest: shout.Digest, ImageHash: "image of " + shout.Digest, Config: given.Settings.Config["shout"]},
		}
		if v.Digest != info.Digest || v.Plugin != "" || v.Number != 1 || v.ImageHash != "" || !reflect.DeepEqual(v.Steps, want) || !slices.Equal(v.Plugins, given.Plugins) {
			t.Errorf("newest = %+v", v)
		}
		if d, set := v.Graph.Timeout(); !set || d != timeout || v.Graph.Workflow() != "hello" {
			t.Errorf("timeout %v %v of %s", d, set, v.Graph.Workflow())
		}
		if err := s.CheckEvent(v.Digest, "Greeting", fromJSON(t, `{"text": 1}`)); err == nil {
			t.Error("an event that breaks the schema is taken")
		}
		if names, err := s.Workflows(t.Context(), tenantA); err != nil || !slices.Equal(names, []string{"hello"}) {
			t.Errorf("workflows = %v, %v", names, err)
		}
	}
	check(b.Service)
	check(b.open(t, nil)) // as stored
	_, err = b.Newest(tenantB, "hello")
	wantCode(t, err, host.CodeNotFound)
}

// Settings can be given to a plugin's own workflow, and go before its manifest.
func TestSettingsOfAPluginsOwnWorkflow(t *testing.T) {
	b := newBed(t, nil)
	own := b.put(t, tenantA, "p", manifest(t, "w", func(m *abi.Manifest) { d := time.Hour; m.Timeout = &d }))
	none := time.Duration(0)
	info := b.compose(t, "w", host.Composition{Settings: host.WorkflowSettings{Timeout: &none, Config: map[string]abi.Raw{"run": fromJSON(t, `{}`)}}})
	v, err := b.open(t, nil).Newest(tenantA, "w")
	if err != nil || v.Plugin != "p" || v.Digest != info.Digest || v.Steps["run"].Digest != own.SHA256 || !slices.Equal(info.Plugins, []string{"p"}) {
		t.Fatalf("newest = %+v, %v", v, err)
	}
	if d, set := v.Graph.Timeout(); !set || d != 0 || info.Description != "does w" {
		t.Errorf("timeout %v, %v, description %q", d, set, info.Description)
	}
	if info, err := b.Plugin(t.Context(), tenantA, "p"); err != nil || info.Workflow != "w" || !slices.Equal(info.ComposedIn, []string{"w"}) {
		t.Errorf("plugin = %+v, %v", info, err)
	}
	if info = b.compose(t, "w", host.Composition{}); info.Settings.Timeout != nil || info.Digest == v.Digest {
		t.Errorf("without settings = %+v", info)
	}
	if err := b.Decompose(t.Context(), tenantA, "w"); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Newest(tenantA, "w"); err != nil || v.Digest != own.SHA256 || v.Steps != nil {
		t.Errorf("the plugin's own = %+v, %v", v, err)
	}
	if _, err := b.ByDigest(info.Digest); err != nil { // still in memory, as a run may need it
		t.Error(err)
	}
	wantCode(t, b.Decompose(t.Context(), tenantA, "w"), host.CodeNotFound, "plugin's own")
	wantCode(t, b.Decompose(t.Context(), tenantA, "x"), host.CodeNotFound)
}

func TestTimeoutsOfPlugins(t *testing.T) {
	timed := func(d int) string { return fmt.Sprintf(`"timeout": %d, `, d) }
	for _, tt := range []struct {
		greet, shout string
		want         time.Duration
		set          bool
	}{{"", "", 0, false}, {timed(5), "", 5, true}, {"", timed(0), 0, true}, {timed(7), timed(7), 7, true}, {timed(5), timed(7), 0, false}} {
		b := newBed(t, nil)
		b.put(t, tenantA, "greet", partOf(t, tt.greet+greetPart))
		b.put(t, tenantA, "shout", partOf(t, tt.shout+shoutPart))
		b.compose(t, "w", of("greet", "shout"))
		v, err := b.Newest(tenantA, "w")
		if err != nil {
			t.Fatal(err)
		}
		if d, set := v.Graph.Timeout(); d != tt.want || set != tt.set {
			t.Errorf("%s| %s: %v %v", tt.greet, tt.shout, d, set)
		}
	}
}

// All that is wrong with a composition comes together, in words that name the
// plugins.
func TestComposeListsAllProblems(t *testing.T) {
	const end = `{"name": "end", "accepts": ["A"], "emits": ["StopEvent"]}`
	for _, tt := range []struct {
		name  string
		a, b  string // parts
		extra host.Composition
		want  []string // CODE STEP EVENT: parts of the message
	}{
		{"duplicate step", greetPart, strings.Replace(shoutPart, "shout", "greet", 1), host.Composition{}, []string{"duplicate_step greet : plugins a and b both have a step greet"}},
		{"kinds", `"events": {"A": {}}, "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}]`,
			`"events": {"A": {"kind": "human_response"}}, "steps": [` + end + `]`, host.Composition{}, []string{"event_clash  A: plugins a and b declare the kind (plain and human_response) of event type A"}},
		{"inherited kinds agree", `"events": {"A": {"extends": "B"}, "B": {"kind": "human_response"}}, "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}]`,
			`"events": {"A": {"kind": "human_response"}}, "steps": [` + end + `]`, host.Composition{}, nil},
		{"schemas", greetPart, strings.Replace(shoutPart, "{}", `{"schema": {"type": "object"}}`, 1), host.Composition{},
			[]string{"event_clash  Greeting: plugins a and b declare the schema of event type Greeting differently"}},
		{"extends", `"events": {"A": {"extends": "B"}, "B": {}}, "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}]`,
			`"events": {"A": {"schema": {"type": "object"}}}, "steps": [` + end + `]`, host.Composition{}, []string{"event_clash  A: what is extended"}},
		{"several starts", `"events": {"Go": {"kind": "start"}, "A": {}}, "steps": [{"name": "go", "accepts": ["Go"], "emits": ["A"]}]`,
			`"events": {"A": {}}, "steps": [` + end + `, {"name": "s", "accepts": ["StartEvent"], "emits": ["A"]}]`, host.Composition{},
			[]string{"several_starts  StartEvent: (step go is of plugin a, step s is of plugin b)"}},
		{"several catchers", greetPart + `, "description": "x"`, `"events": {"Greeting": {}}, "steps": [{"name": "shout", "accepts": ["Greeting"], "emits": ["StopEvent"]},
			{"name": "k", "accepts": ["StepFailedEvent"], "catches": ["greet"], "emits": ["StopEvent"]}, {"name": "l", "accepts": ["StepFailedEvent"], "catches": ["greet"], "emits": ["StopEvent"]}]`,
			host.Composition{}, []string{"several_catchers l : step k is of plugin b, step l is of plugin b"}},
		{"the whole graph", `"events": {"A": {}, "B": {}}, "steps": [{"name": "s", "accepts": ["B"], "emits": ["A"]}]`,
			`"events": {"A": {}}, "steps": [` + end + `, {"name": "k", "accepts": ["StepFailedEvent"], "catches": ["nobody"], "emits": ["StopEvent"]}]`, host.Composition{}, []string{
				"never_produced s B: (step s is of plugin a)", "no_start  :", "unknown_catch_target k : nobody", "unreachable_step end :"}},
		{"resources", greetPart + `, "resources": [{"name": "r", "kind": "http"}]`, shoutPart + `, "resources": [{"name": "r", "kind": "sql"}]`, host.Composition{},
			[]string{"resource_clash  : plugins a and b ask for resource r as different kinds, http and sql"}},
		{"state", greetPart + `, "state": {"schema": {"properties": {"n": {"type": "integer"}}}, "default": {"n": 1}}`,
			shoutPart + `, "state": {"schema": {"properties": {"n": {"type": "number"}}, "additionalProperties": false}, "default": {"n": 2}}`, host.Composition{}, []string{
				`state_clash  : differ in "additionalProperties"`, `state_clash  : plugins a and b give the state's property "n" different schemas`, `state_clash  : "n" different defaults`}},
		{"config", greetPart, shoutPart, host.Composition{Settings: host.WorkflowSettings{Config: map[string]abi.Raw{"shuot": fromJSON(t, "{}")}}},
			[]string{"unknown_step shuot : name one of greet, shout"}},
		{"unknown plugins", greetPart, strings.Replace(shoutPart, "shout", "greet", 1), of("a", "none", "b", "a"), []string{
			"duplicate_plugin  : plugin a is named twice", "duplicate_step greet :", "unknown_plugin  : there is no plugin none"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, nil)
			b.put(t, tenantA, "a", partOf(t, tt.a))
			b.put(t, tenantA, "b", partOf(t, tt.b))
			if tt.extra.Plugins == nil {
				tt.extra.Plugins = []string{"a", "b"}
			}
			_, changed, err := b.Compose(t.Context(), tenantA, "w", tt.extra)
			if tt.want == nil {
				if err != nil || !changed {
					t.Errorf("Compose: %v %+v", err, problemsOf(err))
				}
				return
			}
			wantCode(t, err, host.CodeInvalidPlugin, "the workflow has")
			problems := problemsOf(err)
			slices.SortStableFunc(problems, func(a, b host.Problem) int { return strings.Compare(a.Code, b.Code) })
			for i, p := range problems {
				t.Logf("%+v", p)
				if i < len(tt.want) {
					place, message, _ := strings.Cut(tt.want[i], ":")
					if got := p.Code + " " + p.Step + " " + p.Event; got != place || !strings.Contains(p.Message, strings.TrimSpace(message)) {
						t.Errorf("problem %s: %s\nwant %s", got, p.Message, tt.want[i])
					}
				}
			}
			if len(problems) != len(tt.want) {
				t.Errorf("%d problems, want %d", len(problems), len(tt.want))
			}
			if _, err := b.Newest(tenantA, "w"); host.CodeOf(err) != host.CodeNotFound {
				t.Errorf("a refused workflow is there: %v", err)
			}
		})
	}
}

// What parts say of the state and of resources is joined.
func TestComposeJoinsStateAndResources(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "a", partOf(t, greetPart+`, "resources": [{"name": "r", "kind": "http", "optional": true}, {"name": "q", "kind": "sql", "optional": true}],
		"state": {"schema": {"title": "A", "properties": {"n": {"type": "integer"}, "both": {}}, "required": ["n"]}, "default": {"n": 1, "both": [1]}}`))
	b.put(t, tenantA, "b", partOf(t, shoutPart+`, "resources": [{"name": "r", "kind": "http", "description": "web"}],
		"state": {"schema": {"type": "object", "properties": {"s": {"type": "string"}, "both": {}}, "required": ["s"]}, "default": {"s": "x", "both": [1]}}`))
	b.compose(t, "w", of("a", "b"))
	v, err := b.Newest(tenantA, "w")
	if err != nil {
		t.Fatal(err)
	}
	m := v.Graph.Manifest()
	schema, err := abi.ToJSON(m.State.Schema)
	if want := `{"type":"object","required":["n","s"],"properties":{"n":{"type":"integer"},"s":{"type":"string"},"both":{}}}`; err != nil || string(schema) != want {
		t.Errorf("schema = %s, %v", schema, err)
	}
	defaults, err := abi.ToJSON(m.State.Default)
	if want := `{"n":1,"s":"x","both":[1]}`; err != nil || string(defaults) != want {
		t.Errorf("defaults = %s, %v", defaults, err)
	}
	if want := []abi.ResourceDecl{{Name: "r", Kind: "http", Description: "web"}, {Name: "q", Kind: "sql", Optional: true}}; !slices.Equal(m.Resources, want) {
		t.Errorf("resources = %+v", m.Resources)
	}
}

// Builds of one type by several languages differ in annotations and order.
func TestSameSchemas(t *testing.T) {
	const base = `{"type": "object", "properties": {"title": {"type": "string"}, "n": {"enum": [{"title": 1}]}}, "required": ["n", "title"]}`
	for other, want := range map[string]bool{
		base: true,
		`{"title": "T", "$schema": "x", "type": "object", "properties": {"title": {"type": "string", "description": "d", "default": ""}, "n": {"enum": [{"title": 1}]}}, "required": ["title", "n"]}`: true,
		`{"type": "object", "properties": {"n": {"enum": [{"title": 1}]}}, "required": ["n", "title"]}`:                                                                                               false,
		`{"type": "object", "properties": {"title": {"type": "string"}, "n": {"enum": [{"title": 2}]}}, "required": ["n", "title"]}`:                                                                  false,
		`{"type": "object", "properties": {"title": {"type": "integer"}, "n": {"enum": [{"title": 1}]}}, "required": ["n", "title"]}`:                                                                 false,
		`{"type": "object", "properties": {"title": {"type": "string"}, "n": {"enum": [{"title": 1}]}}, "required": ["n"]}`:                                                                           false,
	} {
		if got := sameSchemas(fromJSON(t, base), fromJSON(t, other)); got != want {
			t.Errorf("%s: %v", other, got)
		}
	}
}

func TestComposeRefusals(t *testing.T) {
	b := greetShout(t)
	b.put(t, tenantA, "own", manifest(t, "taken", nil))
	negative := -time.Second
	for _, tt := range []struct {
		name string
		c    host.Composition
		code host.Code
		say  string
	}{
		{"Hello", of("greet", "shout"), host.CodeInvalidArgument, "not a name for a workflow"},
		{"hello", host.Composition{}, host.CodeInvalidArgument, "name the plugins"},
		{"no-name", host.Composition{}, host.CodeInvalidArgument, "name the plugins"},
		{"taken", of("greet", "shout"), host.CodeConflict, "plugin own makes a workflow taken"},
		{"hello", host.Composition{Settings: host.WorkflowSettings{Timeout: &negative}}, host.CodeInvalidArgument, "negative"},
		{"hello", host.Composition{Settings: host.WorkflowSettings{Config: map[string]abi.Raw{"greet": fromJSON(t, "[]")}}}, host.CodeInvalidArgument, "must be an object"},
		{"hello", host.Composition{Settings: host.WorkflowSettings{Config: map[string]abi.Raw{"greet": {0xff}}}}, host.CodeInvalidArgument, "step greet"},
		{"hello", host.Composition{Plugins: []string{"greet", "shout"}, Settings: host.WorkflowSettings{
			Description: "d", Config: map[string]abi.Raw{"greet": fromJSON(t, `{"x":"`+strings.Repeat("y", maxSettingsBytes-10)+`"}`)}}}, host.CodeTooLarge, "1048576"},
		{"hello", of(strings.Split(strings.Repeat("greet ", 32)+"shout", " ")...), host.CodeInvalidPlugin, "at most"},
	} {
		_, _, err := b.Compose(t.Context(), tenantA, tt.name, tt.c)
		wantCode(t, err, tt.code, tt.say)
	}
	b.compose(t, "hello", of("greet", "shout"))
	_, _, err := b.Put(t.Context(), tenantA, "other", manifest(t, "hello", nil))
	wantCode(t, err, host.CodeConflict, "composed of other plugins (greet, shout)")
	b.compose(t, "taken", of("own"))
	b.replace(t, tenantA, "own", manifest(t, "free", nil)) // the composition stays
	_, _, err = b.Put(t.Context(), tenantA, "other", manifest(t, "taken", nil))
	wantCode(t, err, host.CodeConflict, "composed of other plugins (own)")
}

// A plugin's new version goes into what is composed of it, unless that would
// break. Runs of before keep theirs.
func TestNewVersionRemakesCompositions(t *testing.T) {
	b := greetShout(t)
	b.compose(t, "one", host.Composition{Plugins: []string{"greet", "shout"}, Settings: host.WorkflowSettings{Config: map[string]abi.Raw{"shout": fromJSON(t, "{}")}}})
	b.compose(t, "two", of("shout", "greet"))
	before := map[string]*Version{}
	for _, name := range []string{"one", "two"} {
		v, err := b.Newest(tenantA, name)
		if err != nil {
			t.Fatal(err)
		}
		before[name] = v
	}
	info := b.put(t, tenantA, "shout", partOf(t, shoutPart+`, "version": "2"`))
	if !slices.Equal(info.ComposedIn, []string{"one", "two"}) {
		t.Errorf("composed in %v", info.ComposedIn)
	}
	for _, s := range []*Service{b.Service, b.open(t, nil)} {
		for name, old := range before {
			v, err := s.Newest(tenantA, name)
			if err != nil || v.Number != 2 || v.Digest == old.Digest || v.Steps["shout"].Digest != info.SHA256 || v.Steps["greet"].Digest != old.Steps["greet"].Digest {
				t.Errorf("%s = %+v, %v", name, v, err)
			}
			kept, err := s.ByDigest(old.Digest)
			if err != nil || !reflect.DeepEqual(kept.Steps, old.Steps) {
				t.Errorf("%s of before = %+v, %v", name, kept, err)
			}
		}
	}

	_, _, err := b.Put(t.Context(), tenantA, "shout", partOf(t, strings.Replace(shoutPart, "shout", "yell", 1)))
	wantCode(t, err, host.CodeInvalidPlugin, "plugin shout would break what is composed of it, one", "in workflow one: the settings configure step shout")
	_, _, err = b.Put(t.Context(), tenantA, "shout", partOf(t, strings.ReplaceAll(shoutPart, "Greeting", "Other")))
	wantCode(t, err, host.CodeInvalidPlugin, "one, two", "problems")
	if n := len(problemsOf(err)); n < 4 {
		t.Errorf("%d problems: %+v", n, problemsOf(err))
	}
	if v, err := b.Newest(tenantA, "one"); err != nil || v.Number != 2 {
		t.Errorf("after refusals: %+v, %v", v, err)
	}
	if versions, err := b.Versions(t.Context(), tenantA, "shout"); err != nil || len(versions) != 2 {
		t.Errorf("versions = %+v, %v", versions, err)
	}
}

func TestDeletingWhatIsComposed(t *testing.T) {
	b := greetShout(t)
	b.put(t, tenantA, "yell", partOf(t, strings.Replace(shoutPart, "shout", "yell", 1)))
	first := b.compose(t, "hello", of("greet", "shout"))
	wantCode(t, b.Delete(t.Context(), tenantA, "shout"), host.CodeConflict, "workflow hello has steps of plugin shout")
	run := b.running(t, "hello")
	if info, err := b.Plugin(t.Context(), tenantA, "shout"); err != nil || info.Runs != 1 {
		t.Errorf("plugin = %+v, %v", info, err)
	}
	wantCode(t, b.Decompose(t.Context(), tenantA, "hello"), host.CodeConflict, "1 run holds workflow hello")
	if _, err := b.Newest(tenantA, "hello"); err != nil {
		t.Errorf("after a refused deletion: %v", err)
	}
	// A run stays on the version that has the plugin, though the newest has not.
	b.compose(t, "hello", of("greet", "yell"))
	wantCode(t, b.Delete(t.Context(), tenantA, "shout"), host.CodeConflict, "1 run holds plugin shout")
	if info, err := b.Plugin(t.Context(), tenantA, "yell"); err != nil || info.Runs != 0 {
		t.Errorf("plugin = %+v, %v", info, err)
	}
	// When it has ended the names may go; its journal keeps what it needs.
	b.end(t, run)
	if err := b.Delete(t.Context(), tenantA, "shout"); err != nil {
		t.Fatal(err)
	}
	if err := b.Decompose(t.Context(), tenantA, "hello"); err != nil {
		t.Fatal(err)
	}
	s := b.open(t, nil)
	v, err := s.ByDigest(first.Digest)
	if err != nil || len(v.Steps) != 2 {
		t.Fatalf("the run's version = %+v, %v", v, err)
	}
	if _, err := s.Wasm(t.Context(), v.Steps["shout"].Digest); err != nil {
		t.Error(err)
	}
	b.purge(t)
	s = b.open(t, nil)
	_, err = s.ByDigest(first.Digest)
	wantCode(t, err, host.CodeNotFound)
	_, err = s.Wasm(t.Context(), v.Steps["shout"].Digest)
	wantCode(t, err, host.CodeNotFound)
	if names, err := b.Workflows(t.Context(), tenantA); err != nil || len(names) != 0 {
		t.Errorf("workflows = %v, %v", names, err)
	}
}

// What a part catches elsewhere can clash very often; the answer stays short.
func TestProblemsAreBounded(t *testing.T) {
	b := greetShout(t)
	catches := strings.Repeat(`"greet",`, 50_000) + `"greet"`
	b.put(t, tenantA, "catch", partOf(t, fmt.Sprintf(`"events": {}, "steps": [{"name": "k", "accepts": ["StepFailedEvent"], "catches": ["greet"]},
		{"name": "l", "accepts": ["StepFailedEvent"], "catches": [%s]}]`, catches)))
	_, _, err := b.Compose(t.Context(), tenantA, "w", of("greet", "shout", "catch"))
	wantCode(t, err, host.CodeInvalidPlugin, "50001 problems")
	problems := problemsOf(err)
	if n := len(problems); n != mostProblems+1 || problems[n-1].Code != "more_problems" || !strings.Contains(problems[n-1].Message, "49001 problems more") {
		t.Errorf("%d problems, the last %+v", n, problems[n-1])
	}
	if !strings.HasSuffix(problems[0].Message, "(step k is of plugin catch, step l is of plugin catch)") {
		t.Errorf("problem %+v", problems[0])
	}
}

// Whoever comes first: in the end a composition has the newest versions.
func TestConcurrentCompositions(t *testing.T) {
	b := greetShout(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, _, err := b.Compose(t.Context(), tenantA, "w"+strconv.Itoa(i%2), of("greet", "shout")); err != nil {
				t.Errorf("Compose = %v", err)
			}
		})
		wg.Go(func() {
			if _, _, err := b.Put(t.Context(), tenantA, "shout", partOf(t, fmt.Sprintf(`%s, "version": "%d"`, shoutPart, i))); err != nil {
				t.Errorf("Put = %v", err)
			}
			if _, err := b.Workflows(t.Context(), tenantA); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	shout, _ := b.newest(tenantA, "shout")
	for _, s := range []*Service{b.Service, b.open(t, nil)} {
		for _, name := range []string{"w0", "w1"} {
			if v, err := s.Newest(tenantA, name); err != nil || v.Steps["shout"].Digest != shout.Digest {
				t.Errorf("%s = %+v, %v", name, v, err)
			}
		}
	}
}
