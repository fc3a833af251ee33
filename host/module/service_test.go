package module

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/sandbox"
	"github.com/weftrun/weft/host/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenantA, tenantB = "a", "b"

// paper is a sandbox whose modules are their own manifests.
type paper struct {
	host.Sandbox
	mu        sync.Mutex
	problems  []host.Problem // of Inspect
	described int
}

func (p *paper) Inspect(context.Context, []byte, host.Limits) ([]string, []host.Problem) {
	return []string{"weft:v1.output"}, p.problems
}

func (p *paper) Describe(_ context.Context, digest string, wasm []byte, _ host.Limits) (host.Description, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.described++
	return host.Description{Manifest: wasm, ImageHash: "image of " + digest, Rewritten: "rewritten " + digest}, nil
}

// bed is a service over a memory store.
type bed struct {
	*Service
	store host.Store
	paper *paper
}

func newBed(t *testing.T, edit func(*Config)) bed {
	t.Helper()
	b := bed{store: memory.New(), paper: &paper{}}
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Service = b.open(t, edit)
	return b
}

// open makes a service over the store as it is.
func (b bed) open(t *testing.T, edit func(*Config)) *Service {
	t.Helper()
	c := Config{Store: b.store, Sandbox: b.paper, Now: func() time.Time { return time.Unix(1_800_000_000, 5) }}
	if edit != nil {
		edit(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// manifest is the manifest of a workflow with one step; edit may change it.
func manifest(t *testing.T, workflow string, edit func(*abi.Manifest)) []byte {
	t.Helper()
	m := abi.Manifest{
		ABI: abi.Version, Workflow: workflow, Description: "does " + workflow,
		Steps:  []abi.StepDecl{{Name: "run", Accepts: []abi.Slot{{Types: []string{abi.TypeStart}}}, Emits: []abi.Emit{{Types: []string{abi.TypeStop}}}}},
		Events: map[string]abi.EventDecl{},
	}
	if edit != nil {
		edit(&m)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// declares gives an event type a schema.
func declares(t *testing.T, typ string, kind abi.EventKind, extends, schema string) func(*abi.Manifest) {
	return func(m *abi.Manifest) {
		decl := abi.EventDecl{Kind: kind, Extends: extends}
		if schema != "" {
			decl.Schema = fromJSON(t, schema)
		}
		m.Events[typ] = decl
	}
}

func (b bed) put(t *testing.T, tenant, name string, wasm []byte) host.PluginInfo {
	t.Helper()
	info, _, err := b.Put(t.Context(), tenant, name, wasm)
	if err != nil {
		t.Fatalf("Put: %v: %+v", err, problemsOf(err))
	}
	return info
}

// replace is put of a version that makes another workflow than the one before.
func (b bed) replace(t *testing.T, tenant, name string, wasm []byte) {
	t.Helper()
	if _, _, err := b.Put(behalf.ReplacingWorkflow(t.Context()), tenant, name, wasm); err != nil {
		t.Fatalf("Put: %v: %+v", err, problemsOf(err))
	}
}

func problemsOf(err error) []host.Problem {
	var e *host.Error
	if errors.As(err, &e) {
		return e.Problems
	}
	return nil
}

func wantCode(t *testing.T, err error, code host.Code, parts ...string) {
	t.Helper()
	if err == nil || host.CodeOf(err) != code {
		t.Fatalf("error = %v, want %s", err, code)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error = %q, want %q in it", err, part)
		}
	}
}

func TestPut(t *testing.T) {
	b := newBed(t, nil)
	first, second := manifest(t, "w", nil), manifest(t, "w", func(m *abi.Manifest) { m.Version = "2" })
	info, created, err := b.Put(t.Context(), tenantA, "p", first)
	if err != nil || !created {
		t.Fatalf("Put = %+v, %v, %v", info, created, err)
	}
	if info.Name != "p" || info.Workflow != "w" || info.Version != 1 || info.Size != len(first) || len(info.SHA256) != 64 ||
		info.RewrittenSHA256 != "rewritten "+info.SHA256 || !bytes.Equal(info.Manifest, first) ||
		!slices.Equal(info.Imports, []string{"weft:v1.output"}) || !info.Created.Equal(time.Unix(1_800_000_000, 5)) {
		t.Errorf("info = %+v", info)
	}
	if again, created, err := b.Put(t.Context(), tenantA, "p", first); err != nil || created || again.Version != 1 {
		t.Errorf("the same bytes: %+v, %v, %v", again, created, err)
	}
	if b.paper.described != 1 {
		t.Errorf("described %d times, want once", b.paper.described)
	}
	if next, created, err := b.Put(t.Context(), tenantA, "p", second); err != nil || !created || next.Version != 2 {
		t.Errorf("other bytes: %+v, %v, %v", next, created, err)
	}
	if back, created, err := b.Put(t.Context(), tenantA, "p", first); err != nil || !created || back.Version != 3 {
		t.Errorf("older bytes again: %+v, %v, %v", back, created, err)
	}
	versions, err := b.Versions(t.Context(), tenantA, "p")
	if err != nil || len(versions) != 3 || versions[0].SHA256 != info.SHA256 || versions[1].Version != 2 {
		t.Errorf("versions = %+v, %v", versions, err)
	}
}

// TestDryRun: a dry run says what an upload would be and what is wrong with it, and stores
// nothing.
func TestDryRun(t *testing.T) {
	b := newBed(t, nil)
	dry := behalf.DryRun(t.Context())
	first, second := manifest(t, "w", nil), manifest(t, "w", func(m *abi.Manifest) { m.Version = "2" })
	try := func(wasm []byte, version int, created bool) {
		t.Helper()
		info, is, err := b.Put(dry, tenantA, "p", wasm)
		if err != nil || is != created || info.Version != version || info.Workflow != "w" || !bytes.Equal(info.Manifest, wasm) {
			t.Errorf("dry run = %+v, %v, %v", info, is, err)
		}
	}
	try(first, 1, true)
	if _, err := b.Plugin(t.Context(), tenantA, "p"); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("after a dry run: %v", err)
	}
	b.put(t, tenantA, "p", first)
	try(first, 1, false)
	try(second, 2, true)
	b.Service = b.open(t, nil) // of what is stored
	if versions, err := b.Versions(t.Context(), tenantA, "p"); err != nil || len(versions) != 1 {
		t.Errorf("versions = %+v, %v", versions, err)
	}
	_, _, err := b.Put(dry, tenantA, "q", first)
	wantCode(t, err, host.CodeConflict, "workflow w belongs to plugin p")
	_, _, err = b.Put(dry, tenantA, "p", manifest(t, "other", nil))
	wantCode(t, err, host.CodeConflict, "--replace-workflow")
}

func TestPutRefuses(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits = limit.NewTable(host.Limits{ModuleBytes: 5000}) })
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	for _, name := range []string{"", "P", "-a", "a b", "../a", strings.Repeat("a", 129), "a\n"} {
		_, _, err := b.Put(t.Context(), tenantA, name, manifest(t, "x", nil))
		wantCode(t, err, host.CodeInvalidArgument, "not a name for a plugin")
	}
	_, _, err := b.Put(t.Context(), tenantA, "q", make([]byte, 5001))
	wantCode(t, err, host.CodeTooLarge, "5001", "5000")
	_, _, err = b.Put(t.Context(), tenantA, "q", manifest(t, "w", nil))
	wantCode(t, err, host.CodeConflict, "workflow w belongs to plugin p")
	_, _, err = b.Put(t.Context(), tenantA, "q", []byte{0xff})
	wantCode(t, err, host.CodeInvalidPlugin, "manifest")
	if list, err := b.List(t.Context(), tenantA); err != nil || len(list) != 1 {
		t.Errorf("after refusals: %+v, %v", list, err)
	}
	// Another tenant has its own names.
	b.put(t, tenantB, "q", manifest(t, "w", nil))
}

// How long a module may be depends on its tenant and its name; what was taken
// stays, and can be run.
func TestPutHasTheLimitsOfTenantAndPlugin(t *testing.T) {
	limits, err := limit.Parse([]byte(`{"defaults": {"module_bytes": 2000}, "plugins": {"long": {"module_bytes": 4000}},
		"tenants": {"b": {"module_bytes": 3000, "plugins": {"long": {"module_bytes": 5000}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, func(c *Config) { c.Limits = limits })
	for _, c := range []struct {
		tenant, name string
		limit        int
	}{{tenantA, "p", 2000}, {tenantA, "long", 4000}, {tenantB, "p", 3000}, {tenantB, "long", 5000}} {
		const field = 16 // at most: a field's name, and the head of its text
		padded := func(size int) []byte {
			short := len(manifest(t, "w-"+c.name, nil))
			return manifest(t, "w-"+c.name, func(m *abi.Manifest) { m.Version = strings.Repeat("v", size-short-field) })
		}
		good := padded(c.limit)
		if len(good) > c.limit || len(good) < c.limit-field {
			t.Fatalf("%d bytes, for a limit of %d", len(good), c.limit)
		}
		b.put(t, c.tenant, c.name, good)
		_, _, err := b.Put(t.Context(), c.tenant, c.name, make([]byte, c.limit+1))
		wantCode(t, err, host.CodeTooLarge, strconv.Itoa(c.limit), "module_bytes")
	}
	tight := b.open(t, func(c *Config) { c.Limits = limit.NewTable(host.Limits{ModuleBytes: 1}) })
	if v, err := tight.Newest(tenantB, "w-long"); err != nil || v.Plugin != "long" {
		t.Errorf("%+v, %v", v, err)
	}
}

// All problems of what is declared come together, each with its event.
func TestPutListsAllProblems(t *testing.T) {
	b := newBed(t, nil)
	_, _, err := b.Put(t.Context(), tenantA, "p", manifest(t, "w", func(m *abi.Manifest) {
		declares(t, abi.TypeStart, "", "", `{"type":"objekt"}`)(m)
		declares(t, "Odd", "", "", `{"properties":{"n":{"pattern":"("}}}`)(m)
		m.Steps = append(m.Steps, m.Steps[0]) // a duplicate
	}))
	wantCode(t, err, host.CodeInvalidPlugin)
	found := map[string]bool{}
	for _, p := range problemsOf(err) {
		t.Logf("%+v", p)
		found[p.Code+" "+p.Event+p.Step] = true
	}
	for _, want := range []string{"duplicate_step run", "invalid_schema StartEvent", "invalid_schema Odd"} {
		if !found[want] {
			t.Errorf("no problem %q", want)
		}
	}
	b.paper.problems = []host.Problem{{Code: "x", Message: "first"}, {Code: "y", Message: "second"}}
	_, _, err = b.Put(t.Context(), tenantA, "p", manifest(t, "w", nil))
	wantCode(t, err, host.CodeInvalidPlugin, "2 problems")
	if !slices.Equal(problemsOf(err), b.paper.problems) {
		t.Errorf("problems = %+v", problemsOf(err))
	}
}

// What the server could not look at is no invalid plugin.
func TestUploadThatCannotBeChecked(t *testing.T) {
	b := newBed(t, nil)
	b.paper.problems = []host.Problem{{Code: string(host.CodeUnavailable), Message: "the disk is full"}}
	_, _, err := b.Put(t.Context(), tenantA, "p", manifest(t, "w", nil))
	wantCode(t, err, host.CodeUnavailable, "the disk is full")
}

// A version that makes another workflow is refused unless that is meant.
func TestNewVersionMayRenameItsWorkflow(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "p", manifest(t, "old", nil))
	_, _, err := b.Put(t.Context(), tenantA, "p", manifest(t, "new", nil))
	wantCode(t, err, host.CodeConflict, "plugin p makes the workflow old, and this version makes the workflow new", "--replace-workflow")
	if names, err := b.Workflows(t.Context(), tenantA); err != nil || !slices.Equal(names, []string{"old"}) {
		t.Errorf("workflows after the refusal = %v, %v", names, err)
	}
	if _, _, err := b.Put(behalf.ReplacingWorkflow(t.Context()), tenantA, "p", manifest(t, "new", nil)); err != nil {
		t.Fatal(err)
	}
	if names, err := b.Workflows(t.Context(), tenantA); err != nil || !slices.Equal(names, []string{"new"}) {
		t.Errorf("workflows = %v, %v", names, err)
	}
	b.put(t, tenantA, "q", manifest(t, "old", nil))
}

func TestPluginsAreKeptOverARestart(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	second := b.put(t, tenantA, "p", manifest(t, "w", func(m *abi.Manifest) { m.Version = "2" }))
	b.put(t, tenantA, "a", manifest(t, "v", nil))
	b.put(t, tenantB, "p", manifest(t, "z", nil))
	b.Service = b.open(t, nil)
	list, err := b.List(t.Context(), tenantA)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].SHA256 != second.SHA256 {
		t.Errorf("list = %+v, %v", list, err)
	}
	v, err := b.Newest(tenantA, "w")
	if err != nil || v.Digest != second.SHA256 || v.Number != 2 || v.Plugin != "p" || v.ImageHash != "image of "+v.Digest ||
		v.Rewritten != second.RewrittenSHA256 || v.Graph.Workflow() != "w" {
		t.Errorf("newest = %+v, %v", v, err)
	}
	if old, err := b.ByDigest(v.Digest); err != nil || old.ImageHash != v.ImageHash || old.Graph != v.Graph || old.Steps != nil {
		t.Errorf("by digest = %+v, %v, want %+v", old, err, v)
	}
	wasm, err := b.Wasm(t.Context(), v.Digest)
	if err != nil || len(wasm) != second.Size {
		t.Errorf("wasm has %d bytes, %v", len(wasm), err)
	}
	names, err := b.Workflows(t.Context(), tenantA)
	if err != nil || !slices.Equal(names, []string{"v", "w"}) {
		t.Errorf("workflows = %v, %v", names, err)
	}
}

func TestUnknownNames(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	none := strings.Repeat("0", 64)
	_, err := b.Newest(tenantB, "w")
	wantCode(t, err, host.CodeNotFound, "Workflow not found")
	_, err = b.Newest(tenantA, "x")
	wantCode(t, err, host.CodeNotFound, "Workflow not found")
	_, err = b.Workflow(t.Context(), tenantB, "w")
	wantCode(t, err, host.CodeNotFound, "Workflow not found")
	_, err = b.Plugin(t.Context(), tenantB, "p")
	wantCode(t, err, host.CodeNotFound)
	_, err = b.Versions(t.Context(), tenantB, "p")
	wantCode(t, err, host.CodeNotFound)
	wantCode(t, b.Delete(t.Context(), tenantB, "p"), host.CodeNotFound)
	_, err = b.ByDigest(none)
	wantCode(t, err, host.CodeNotFound)
	_, err = b.Wasm(t.Context(), none)
	wantCode(t, err, host.CodeNotFound)
	if err := b.CheckEvent(none, "E", abi.EmptyMap); err == nil || err.Code != host.CodeNotFound {
		t.Errorf("CheckEvent = %v", err)
	}
	if list, err := b.List(t.Context(), tenantB); err != nil || len(list) != 0 {
		t.Errorf("list = %v, %v", list, err)
	}
	if names, err := b.Workflows(t.Context(), tenantB); err != nil || len(names) != 0 {
		t.Errorf("workflows = %v, %v", names, err)
	}
}

// running stores a run of the newest version of a workflow, with its first entry.
func (b bed) running(t *testing.T, workflow string) host.Run {
	t.Helper()
	v, err := b.Newest(tenantA, workflow)
	if err != nil {
		t.Fatal(err)
	}
	return b.runningOn(t, workflow, v.Digest)
}

// runningOn is running, of any version.
func (b bed) runningOn(t *testing.T, workflow, digest string) host.Run {
	t.Helper()
	run := host.Run{Tenant: tenantA, HandlerID: "h", RunID: "r", SessionID: "h", Workflow: workflow, Version: digest,
		Status: host.StatusRunning, Started: 1, Updated: 1}
	part := host.SessionBatch{First: 1, Last: 1, Data: []byte{1}, Runs: []host.Run{run}, Started: []string{"r"}}
	if digest != "" {
		part.Versions = []host.VersionUse{{Digest: digest, Seq: 1}}
	}
	b.append(t, part)
	return run
}

// end ends the run, and purge deletes it.
func (b bed) end(t *testing.T, run host.Run) {
	t.Helper()
	run.Status, run.Completed = host.StatusCompleted, 2
	b.append(t, host.SessionBatch{First: 2, Last: 2, Data: []byte{2}, Runs: []host.Run{run}})
}

func (b bed) purge(t *testing.T) {
	t.Helper()
	b.append(t, host.SessionBatch{Purge: []string{"h"}})
}

func (b bed) append(t *testing.T, part host.SessionBatch) {
	t.Helper()
	epoch, err := b.store.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part.Key, part.WakeAt = host.SessionKey{Tenant: tenantA, Session: "h"}, host.WakeNever
	if err := b.store.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{part}}); err != nil {
		t.Fatal(err)
	}
}

func TestDelete(t *testing.T) {
	b := newBed(t, nil)
	info := b.put(t, tenantA, "p", manifest(t, "w", nil))
	run := b.running(t, "w")
	if info, err := b.Plugin(t.Context(), tenantA, "p"); err != nil || info.Runs != 1 {
		t.Errorf("plugin = %+v, %v, want one run", info, err)
	}
	wantCode(t, b.Delete(t.Context(), tenantA, "p"), host.CodeConflict, "1 run holds plugin p: cancel them, or let them end")
	if _, err := b.Newest(tenantA, "w"); err != nil {
		t.Errorf("after a refused deletion: %v", err)
	}
	b.end(t, run)
	if err := b.Delete(t.Context(), tenantA, "p"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Newest(tenantA, "w")
	wantCode(t, err, host.CodeNotFound)
	wantCode(t, b.Delete(t.Context(), tenantA, "p"), host.CodeNotFound)
	if _, err = b.Wasm(t.Context(), info.SHA256); err != nil {
		t.Errorf("the journal of a run that has ended needs its module: %v", err)
	}
	b.purge(t)
	_, err = b.Wasm(t.Context(), info.SHA256)
	wantCode(t, err, host.CodeNotFound)
	if again := b.put(t, tenantA, "p", manifest(t, "w", nil)); again.Version != 1 {
		t.Errorf("uploaded again: version %d", again.Version)
	}
}

func TestConcurrentUploads(t *testing.T) {
	b := newBed(t, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := []string{"p", "q"}[i%2]
			_, _, err := b.Put(t.Context(), tenantA, name, manifest(t, "w", nil))
			if err != nil && host.CodeOf(err) != host.CodeConflict {
				t.Errorf("Put = %v", err)
			}
		})
	}
	wg.Wait()
	list, err := b.List(t.Context(), tenantA)
	if err != nil || len(list) != 1 || list[0].Version != 1 {
		t.Errorf("list = %+v, %v, want one version of one plugin", list, err)
	}
}

func TestPrepareEvent(t *testing.T) {
	b := newBed(t, nil)
	info := b.put(t, tenantA, "p", manifest(t, "w", func(m *abi.Manifest) {
		declares(t, abi.TypeStart, "", "", `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":["string","null"]},"any":{},"l":{"items":{"type":"string"}}},"required":["n"]}`)(m)
		declares(t, "Parent", "", "", `{"properties":{"q":{"type":"string"}}}`)(m)
		declares(t, "Child", "", "Parent", "")(m)
		declares(t, "Free", "", "", "")(m)
		m.Steps = append(m.Steps, abi.StepDecl{Name: "more", Accepts: []abi.Slot{{Kind: abi.SlotAny, Types: []string{"Child", "Parent", "Free"}}}, Emits: m.Steps[0].Emits})
		m.Steps[0].Emits = append(m.Steps[0].Emits, abi.Emit{Types: []string{"Child"}}, abi.Emit{Types: []string{"Parent"}}, abi.Emit{Types: []string{"Free"}})
	}))
	tests := []struct{ typ, body, want string }{
		{abi.TypeStart, `{"n":3}`, `{"n":3}`},
		{abi.TypeStart, `{"n":3.0}`, `{"n":3.0}`},
		{abi.TypeStart, `{"n":"3"}`, `start_event.n: must be an integer, got a string`},
		{abi.TypeStart, `{}`, `start_event.n: is required`},
		{abi.TypeStart, `{"n":null}`, `start_event.n: must be an integer, got null`},
		{abi.TypeStart, `{"n":1,"l":[1,"x",2]}`, `start_event.l[0]: must be a string, got 1; start_event.l[2]: must be a string, got 2`},
		{abi.TypeStart, `{"n":1,"s":null,"any":null,"other":null}`, `{"n":1,"s":null,"any":null,"other":null}`},
		{"Parent", `{"q":null,"x":1}`, `{"x":1}`},
		{"Child", `{"q":null}`, `{}`},
		{"Child", `{"q":1}`, `event.q: must be a string, got 1`},
		{"Free", `{"q":null}`, `{"q":null}`},
		{"Unknown", `{"q":null}`, `{"q":null}`},
	}
	for _, tt := range tests {
		body := fromJSON(t, tt.body)
		out, err := b.PrepareEvent(nil, info.SHA256, tt.typ, body)
		check := b.CheckEvent(info.SHA256, tt.typ, body)
		if (err == nil) != (check == nil) {
			t.Errorf("%s %s: PrepareEvent says %v, CheckEvent %v", tt.typ, tt.body, err, check)
		}
		if err != nil {
			if host.CodeOf(err) != host.CodeInvalidArgument || host.MessageOf(err) != tt.want {
				t.Errorf("%s %s: %v, want %s", tt.typ, tt.body, err, tt.want)
			}
			continue
		}
		if want := fromJSON(t, tt.want); !bytes.Equal(out, want) {
			t.Errorf("%s %s: % x, want %s", tt.typ, tt.body, out, tt.want)
		}
	}
	if _, err := b.PrepareEvent(nil, info.SHA256, abi.TypeStart, abi.Raw{0x01}); err == nil {
		t.Error("a number was taken as an event")
	}
}

func TestWorkflow(t *testing.T) {
	b := newBed(t, nil)
	info := b.put(t, tenantA, "p", manifest(t, "w", func(m *abi.Manifest) {
		declares(t, "Done", abi.KindStop, "", `{"type":"object","properties":{"n":{"type":"integer"}},"title":"other"}`)(m)
		m.Steps[0].Emits = []abi.Emit{{Types: []string{"Done"}}}
	}))
	w, err := b.Workflow(t.Context(), tenantA, "w")
	if err != nil {
		t.Fatal(err)
	}
	if w.Name != "w" || w.Description != "does w" || !slices.Equal(w.Plugins, []string{"p"}) || w.Digest != info.SHA256 ||
		w.StartType != abi.TypeStart || !slices.Equal(w.StopTypes, []string{"Done"}) || len(w.Graph.Nodes) == 0 {
		t.Errorf("workflow = %+v", w)
	}
	if want := fromJSON(t, `{"title":"StartEvent","type":"object","properties":{}}`); !bytes.Equal(w.StartSchema, want) {
		t.Errorf("start schema = % x", w.StartSchema)
	}
	if want := fromJSON(t, `{"title":"Done","type":"object","properties":{"n":{"type":"integer"}}}`); !bytes.Equal(w.StopSchema, want) {
		t.Errorf("stop schema = % x", w.StopSchema)
	}
	var types []string
	for _, e := range w.Events {
		types = append(types, e.Type)
		if e.Base == (e.Type == "Done") || len(e.Schema) == 0 {
			t.Errorf("event %+v", e)
		}
	}
	if !slices.Contains(types, "Done") || !slices.Contains(types, abi.TypeStart) || !slices.IsSorted(types) {
		t.Errorf("events = %v", types)
	}
}

// source breaks the circle of sandbox and service.
type source struct{ s *Service }

func (s *source) Wasm(ctx context.Context, digest string) ([]byte, error) {
	return s.s.Wasm(ctx, digest)
}

// A real plugin goes through all stages, and a module that cannot describe
// itself is refused.
func TestPutWithTheRealSandbox(t *testing.T) {
	from := &source{}
	box, err := sandbox.New(t.Context(), sandbox.Config{Source: from, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b := newBed(t, func(c *Config) { c.Sandbox = box })
	from.s = b.Service
	wasm := read(t, pluginPath(t, "wordcount-tinygo"))
	info := b.put(t, tenantA, "wordcount", wasm)
	described, err := box.Describe(t.Context(), info.SHA256, wasm, host.Limits{})
	if err != nil || info.RewrittenSHA256 != described.Rewritten {
		t.Errorf("rewritten digest = %s, want the sandbox's, %s (%v)", info.RewrittenSHA256, described.Rewritten, err)
	}
	bad := b.CheckEvent(info.SHA256, abi.TypeStart, fromJSON(t, `{"text":1,"chunk_lines":0}`))
	if bad == nil || !strings.Contains(bad.Message, "start_event.text: must be a string, got 1") {
		t.Errorf("CheckEvent = %v", bad)
	}
	if err := b.CheckEvent(info.SHA256, abi.TypeStart, fromJSON(t, `{"text":"a b"}`)); err != nil {
		t.Errorf("CheckEvent = %v", err)
	}
	for name, code := range map[string]string{
		"describe_garbage": "invalid_manifest", "describe_trap": "describe_trap", "command": "command_module", "good": "",
	} {
		_, _, err := b.Put(t.Context(), tenantA, "p", read(t, filepath.Join("..", "..", "testdata", "hostile", name+".wasm")))
		if code == "" {
			if err != nil {
				t.Errorf("%s: %v: %+v", name, err, problemsOf(err))
			}
			continue
		}
		wantCode(t, err, host.CodeInvalidPlugin)
		if !slices.ContainsFunc(problemsOf(err), func(p host.Problem) bool { return p.Code == code }) {
			t.Errorf("%s: problems %+v, want %s", name, problemsOf(err), code)
		}
	}
}

func pluginPath(t *testing.T, name string) string {
	t.Helper()
	suite.Plugin(t, name) // is there
	return filepath.Join(suite.Plugins(), name+".wasm")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// CheckEvent is PrepareEvent for the verdict alone, without a bound.
func (s *Service) CheckEvent(digest, typ string, body abi.Raw) *host.Error {
	if _, err := s.PrepareEvent(nil, digest, typ, body); err != nil {
		return asHostError(err)
	}
	return nil
}
