package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/resource"
)

// lists is a host with lists that are longer than two of the largest pages, or longer
// than one page if entries are expensive to make.
type lists struct {
	*hosttest.Host
	long   int    // of most lists
	some   int    // of runs that migrate
	paused string // handler of a run with a long journal
}

// listWorkflow is the workflow whose runs migrate.
const listWorkflow = "approval"

func fillLists(t *testing.T) *lists {
	l := &lists{long: 2*remote.MaxPage + 1, some: remote.MaxPage + 1}
	table, err := resource.ParseFile([]byte(`{"resources": {"shelf": {"kind": "kv", "grants": [{"tenant": "*", "workflow": "*"}]}}}`), resource.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limit.Parse(fmt.Appendf(nil, `{"defaults": {"inbox_events": %d}}`, 2*l.long))
	if err != nil {
		t.Fatal(err)
	}
	l.Host = hosttest.New(t, hosttest.Config{Resources: table, Limits: limits, WrapStore: func(s host.Store) host.Store {
		l.fill(t, s)
		return s
	}})
	wasm := hosttest.Plugin(t, listWorkflow+"-tinygo")
	put := func(wasm []byte) {
		t.Helper()
		if _, _, err := l.Plugins.Put(t.Context(), host.DefaultTenant, listWorkflow, wasm); err != nil {
			t.Fatal(err)
		}
	}
	put(wasm)
	for i := range l.some {
		rec := l.RunNoWait(t, listWorkflow, map[string]any{"handler_id": fmt.Sprintf("w%05d", i), "start_event": map[string]any{"item": "a desk"}})
		l.paused = rec.HandlerID
	}
	if _, err := l.Runs.Pause(t.Context(), host.DefaultTenant, l.paused); err != nil {
		t.Fatal(err)
	}
	body, err := abi.EncodeValue(map[string]any{"role": "nobody", "approved": false})
	if err != nil {
		t.Fatal(err)
	}
	for range l.long {
		if err := l.Runs.Send(t.Context(), host.DefaultTenant, l.paused, abi.Event{Type: "HumanResponseEvent", Body: body}, ""); err != nil {
			t.Fatal(err)
		}
	}
	put(append(bytes.Clone(wasm), 0, 2, 1, 'x')) // another version: with one more custom section
	return l
}

// fill writes rows to a new store before a server opens it.
func (l *lists) fill(t *testing.T, s host.Store) {
	ctx := t.Context()
	epoch, err := s.Claim(ctx)
	b := host.Batch{Epoch: epoch}
	var entries []host.AuditEntry
	space := kv.Space{Tenant: host.DefaultTenant, Resource: "shelf"}
	for i := range l.long {
		name := fmt.Sprintf("h%05d", i)
		b.Sessions = append(b.Sessions, host.SessionBatch{
			Key: host.SessionKey{Tenant: host.DefaultTenant, Session: name}, First: 1, Last: 1, Data: []byte{0}, WakeAt: host.WakeNever,
			Runs: []host.Run{{Tenant: host.DefaultTenant, HandlerID: name, RunID: name + "@1", SessionID: name, Workflow: "gone",
				Status: host.StatusFailed, Started: int64(1 + i), Updated: int64(1 + i), Completed: int64(1 + i), ErrorCode: "lost"}},
			Started: []string{name + "@1"},
		})
		b.KV = append(b.KV, kv.Write{Space: space, Item: kv.Item{Key: name, Version: uint64(i + 1), Value: abi.EmptyMap},
			Totals: kv.Totals{Last: uint64(i + 1), Keys: int64(i + 1), Bytes: int64((i + 1) * (len(name) + 1))}, Growth: int64(len(name) + 1)})
		entries = append(entries, host.AuditEntry{Time: int64(i + 1), Who: "k", Tenant: host.DefaultTenant, Act: "act", Target: name, Outcome: host.AuditOK})
	}
	if err == nil {
		err = s.Append(ctx, b)
	}
	if err == nil {
		err = s.ChangeAccess(ctx, host.AccessChange{Audit: entries})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// apiList is a list of the API: how an entry is identified, and how many entries the
// store has. The test reads the store directly.
type apiList struct {
	path  string // with {} for parameters; /openapi.json has their names
	query string
	name  string // of the list in an answer
	id    func(entry map[string]any) string
	have  func(t *testing.T, l *lists) int
}

func member(name string) func(map[string]any) string {
	return func(e map[string]any) string { return fmt.Sprint(e[name]) }
}

// count reads a list of the store in pages of a different size than those of the API.
func count[T any](t *testing.T, ask func(after T) (page []T, more bool, err error)) (n int) {
	t.Helper()
	var at T
	for more := true; more; {
		var page []T
		var err error
		if page, more, err = ask(at); err != nil {
			t.Fatal(err)
		}
		n += len(page)
		at = page[len(page)-1]
	}
	return n
}

// storePage is how many rows the test requests from the store.
const storePage = 700

func (l *lists) handlers(t *testing.T, q host.RunQuery) int {
	return count(t, func(after host.Run) ([]host.Run, bool, error) {
		q.Tenant, q.Limit, q.AfterStarted, q.AfterHandler = host.DefaultTenant, storePage, after.Started, after.HandlerID
		return l.Store.Runs(t.Context(), q)
	})
}

// apiLists are all lists of the API that have a cursor.
var apiLists = []apiList{
	{"GET /handlers", "limit=1000", "handlers", member("handler_id"), func(t *testing.T, l *lists) int { return l.handlers(t, host.RunQuery{}) }},
	{"GET /sessions", "limit=1000", "sessions", member("session_id"), func(t *testing.T, l *lists) int {
		return count(t, func(after host.SessionInfo) ([]host.SessionInfo, bool, error) {
			return l.Store.Sessions(t.Context(), host.SessionQuery{Tenant: host.DefaultTenant, Before: after.Order, Limit: storePage})
		})
	}},
	{"GET /audit", "limit=1000", "entries", member("id"), func(t *testing.T, l *lists) int {
		return count(t, func(after host.AuditEntry) ([]host.AuditEntry, bool, error) {
			return l.Store.Audit(t.Context(), host.AuditQuery{All: true, Before: after.ID, Limit: storePage})
		})
	}},
	{"GET /resources/{}/keys", "limit=1000", "keys", member("key"), func(t *testing.T, l *lists) int {
		totals, err := l.Store.KVTotals(t.Context(), kv.Space{Tenant: host.DefaultTenant, Resource: "shelf"})
		if err != nil {
			t.Fatal(err)
		}
		return int(totals.Keys)
	}},
	{"GET /handlers/{}/journal", "limit=1000", "entries", member("seq"), func(_ *testing.T, l *lists) int { return l.long }},
	{"GET /runs", "limit=200", "runs", member("run_id"), func(t *testing.T, l *lists) int { return l.handlers(t, host.RunQuery{}) }}, // each has one run
	{"GET /runs/{}/journal", "limit=1000&order=desc", "entries", member("seq"), func(_ *testing.T, l *lists) int { return l.long }},
	{"POST /workflows/{}/migrate", "limit=1000&dry_run=true", "", nil, func(t *testing.T, l *lists) int {
		return l.handlers(t, host.RunQuery{Workflows: []string{listWorkflow}, Statuses: []string{"running"}})
	}},
}

// walk reads a list of the API page by page, and counts its entries. Each entry must
// occur once.
func (l *lists) walk(t *testing.T, list *apiList) (n int) {
	t.Helper()
	method, path, _ := strings.Cut(list.path, " ")
	argument := map[string]string{"/resources/": "shelf", "/handlers/": l.paused, "/runs/": l.paused, "/workflows/": listWorkflow}
	for prefix, a := range argument {
		if strings.HasPrefix(path, prefix) {
			path = strings.ReplaceAll(path, "{}", a)
		}
	}
	var body any
	if method == "POST" {
		body = "{}"
	}
	seen := map[string]bool{}
	for cursor := ""; ; {
		status, out := l.Do(t, method, path+"?"+list.query+cursor, body)
		var page map[string]any
		if err := json.Unmarshal(out, &page); err != nil || status != 200 {
			t.Fatalf("%s: %d %.200s: %v", path, status, out, err)
		}
		if list.id == nil { // the migration only counts the runs that fit
			n += int(page["fit"].(float64))
		} else {
			for _, e := range page[list.name].([]any) {
				id := list.id(e.(map[string]any))
				if seen[id] {
					t.Errorf("%s has %s twice", path, id)
				}
				seen[id] = true
			}
			n = len(seen)
		}
		next, more := page["next_cursor"]
		if !more {
			t.Fatalf("%s: an answer without next_cursor", path)
		}
		if next == nil {
			return n
		}
		cursor = "&cursor=" + url.QueryEscape(next.(string))
	}
}

// cursorRoutes returns the documented routes whose answers have a next_cursor.
func cursorRoutes(t *testing.T, l *lists) (routes []string) {
	t.Helper()
	status, out := l.Do(t, "GET", "/openapi.json", nil)
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
		Components struct{ Schemas map[string]map[string]any }
	}
	if err := json.Unmarshal(out, &doc); err != nil || status != 200 {
		t.Fatalf("/openapi.json: %d: %v", status, err)
	}
	for path, methods := range doc.Paths {
		segments := strings.Split(path, "/")
		for i, s := range segments {
			if strings.HasPrefix(s, "{") {
				segments[i] = "{}"
			}
		}
		for method, route := range methods {
			for _, c := range route.Responses["200"].Content {
				s := c.Schema
				if ref, ok := s["$ref"].(string); ok {
					s = doc.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
				}
				members, _ := s["properties"].(map[string]any)
				if _, ok := members["next_cursor"]; ok {
					routes = append(routes, strings.ToUpper(method)+" "+strings.Join(segments, "/"))
				}
			}
		}
	}
	slices.Sort(routes)
	return slices.Compact(routes)
}

// commandLists are the commands that show a whole list, and how to count their output.
var commandLists = []struct {
	command string
	args    []string
	count   func(out map[string]json.RawMessage) string
	have    string // path of the list in apiLists; "": runs that failed
}{
	{"runs", []string{"--all"}, entriesOf("handlers"), "GET /handlers"},
	{"sessions", []string{"--all"}, entriesOf("sessions"), "GET /sessions"},
	{"audit", []string{"--all"}, entriesOf("entries"), "GET /audit"},
	{"resources keys", []string{"shelf", "--all"}, entriesOf("keys"), "GET /resources/{}/keys"},
	{"retry", []string{"--all", "--dry-run"}, entriesOf("handlers"), ""},
	{"migrate", []string{listWorkflow, "--dry-run"}, func(out map[string]json.RawMessage) string { return string(out["fit"]) }, "POST /workflows/{}/migrate"},
}

func entriesOf(name string) func(map[string]json.RawMessage) string {
	return func(out map[string]json.RawMessage) string {
		var list []json.RawMessage
		if err := json.Unmarshal(out[name], &list); err != nil {
			return err.Error()
		}
		return fmt.Sprint(len(list))
	}
}

// allCommands lists the commands with the flag --all, which commands for lists have.
func allCommands(c *cobra.Command, name string) (found []string) {
	if c.Flags().Lookup("all") != nil {
		found = append(found, name)
	}
	for _, sub := range c.Commands() {
		found = append(found, allCommands(sub, strings.TrimSpace(name+" "+sub.Name()))...)
	}
	return found
}

// Lists are complete. Each list of the API with a cursor, and each command that shows a
// whole list, returns every entry of the store exactly once, even if the list is longer
// than the largest pages.
func TestListsEndWhereTheyEnd(t *testing.T) {
	l := fillLists(t)
	have := map[string]int{}
	var routes []string
	for i := range apiLists {
		list := &apiLists[i]
		routes = append(routes, list.path)
		have[list.path] = list.have(t, l)
		got := l.walk(t, list)
		if list.name == "entries" && list.path != "GET /audit" { // the run's start and pause have their own entries
			if got < have[list.path] {
				t.Errorf("%s lists %d, there are at least %d", list.path, got, have[list.path])
			}
			continue
		}
		if got != have[list.path] || got < l.some {
			t.Errorf("%s lists %d, the store has %d", list.path, got, have[list.path])
		}
	}
	slices.Sort(routes)
	if described := cursorRoutes(t, l); !slices.Equal(described, routes) {
		t.Errorf("routes with a cursor are %q; the table has %q", described, routes)
	}
	have[""] = l.handlers(t, host.RunQuery{Statuses: []string{"failed"}})
	commands := []string{"migrate"} // has no --all: it always reads to the end
	for _, c := range commandLists {
		if c.command != "migrate" {
			commands = append(commands, c.command)
		}
		args := append(strings.Fields(c.command), c.args...)
		out, err := exec.Command("weft", append(args, "--json", "--server", l.URL)...).Output()
		var answer map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(out, &answer)
		}
		if err != nil {
			t.Fatalf("weft %s: %v", c.command, err)
		}
		if got := c.count(answer); got != fmt.Sprint(have[c.have]) {
			t.Errorf("weft %s lists %s, the store has %d", c.command, got, have[c.have])
		}
	}
	all := append(allCommands(newRoot(), ""), "migrate")
	slices.Sort(all)
	slices.Sort(commands)
	if !slices.Equal(all, commands) {
		t.Errorf("commands with --all are %q; the table has %q", all, commands)
	}
}
