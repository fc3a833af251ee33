package hosttest_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/hosttest"
)

// wantStatus makes a request and wants a status and a text in the answer.
func wantStatus(t *testing.T, h *hosttest.Host, method, path string, body any, want int, text string) []byte {
	t.Helper()
	status, out := h.Do(t, method, path, body)
	if status != want || !strings.Contains(string(out), text) {
		t.Errorf("%s %s: %d %s, want %d %q", method, path, status, out, want, text)
	}
	return out
}

// pluginDigest returns the digest of a plugin's newest version.
func pluginDigest(t *testing.T, h *hosttest.Host, name string) string {
	t.Helper()
	info, err := h.Client.Plugin(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info.SHA256
}

// Sessions outlive the plugins whose runs they had. They load, their runs can be
// inspected and forked, and the runs continue when the plugin is back.
func TestSessionOfADeletedPlugin(t *testing.T) {
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data})
	h.Load(t, "tinygo", "counter", "human")
	h.Result(t, "counter", in("chat", nil))
	h.Run(t, "counter", map[string]any{"handler_id": "own"})
	digest := pluginDigest(t, h, "counter")
	wantStatus(t, h, http.MethodDelete, "/plugins/counter", nil, http.StatusNoContent, "")
	wantStatus(t, h, http.MethodGet, "/plugins/counter", nil, http.StatusNotFound, "")
	wantStatus(t, h, http.MethodPost, "/workflows/counter/run", nil, http.StatusNotFound, "Workflow not found")
	h.Stop(t)

	h = hosttest.New(t, hosttest.Config{Data: data, IdleAfter: time.Millisecond}) // this host has not compiled the module
	waiting := h.RunNoWait(t, "human", in("chat", nil))
	wantStatus(t, h, http.MethodDelete, "/plugins/human", nil, http.StatusConflict, "1 run holds plugin human")
	wantStatus(t, h, http.MethodGet, "/handlers/own/journal", nil, http.StatusOK, `"start"`)
	wantStatus(t, h, http.MethodGet, "/handlers/own/snapshot", nil, http.StatusOK, "")
	wantStatus(t, h, http.MethodPost, "/handlers/own/fork?at=1", map[string]any{"at": 1}, http.StatusOK, `"handler_id"`)
	wantStatus(t, h, http.MethodPost, "/handlers/"+waiting.HandlerID+"/cancel", nil, http.StatusOK, "")
	wantStatus(t, h, http.MethodDelete, "/plugins/human", nil, http.StatusNoContent, "")
	h.Stop(t)
	if found, _ := faults(t, data); len(found) > 0 {
		t.Errorf("faults %+v", found)
	}

	h = hosttest.New(t, hosttest.Config{Data: data})
	h.Load(t, "tinygo", "counter")
	if got := h.Result(t, "counter", in("chat", nil)); got != "2" {
		t.Errorf("with the plugin back, the session counts %s", got)
	}
	if again := pluginDigest(t, h, "counter"); again != digest {
		t.Errorf("the digest is %s, was %s", again, digest)
	}
}

// A module that only journals need is deleted with the last of these journals.
func TestModulesGoWithTheirJournals(t *testing.T) {
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data})
	for _, part := range []string{"greet-part", "shout-part"} {
		wantStatus(t, h, http.MethodPut, "/plugins/"+part, hosttest.BuildPlugin(t, part), http.StatusCreated, "")
	}
	composed := wantStatus(t, h, http.MethodPut, "/workflows/hello", `{"plugins": ["greet-part", "shout-part"]}`, http.StatusCreated, "")
	h.Load(t, "tinygo", "counter")
	digests := []string{pluginDigest(t, h, "counter"), pluginDigest(t, h, "greet-part"), pluginDigest(t, h, "shout-part")}
	for _, id := range []string{"a", "b"} {
		h.Run(t, "hello", map[string]any{"handler_id": "hello " + id, "start_event": fields{"name": "Ada"}})
		h.Run(t, "counter", map[string]any{"handler_id": "counter " + id})
	}
	for _, path := range []string{"/workflows/hello", "/plugins/greet-part", "/plugins/shout-part", "/plugins/counter"} {
		wantStatus(t, h, http.MethodDelete, path, nil, http.StatusNoContent, "")
	}
	h.Stop(t)
	h = hosttest.New(t, hosttest.Config{Data: data})
	stored := func(want ...bool) {
		t.Helper()
		for i, digest := range append(digests, digestOf(t, composed)) {
			_, err := h.Store.Module(t.Context(), digest)
			if i == len(digests) {
				_, err = h.Store.Composition(t.Context(), digest)
			}
			if there := err == nil; there != want[min(i, len(want)-1)] || !there && !errors.Is(err, host.ErrNotFound) {
				t.Errorf("version %d: %v", i, err)
			}
		}
	}
	purge := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			wantStatus(t, h, http.MethodPost, "/handlers/"+strings.ReplaceAll(id, " ", "%20")+"/cancel?purge=true", nil, http.StatusOK, "")
		}
	}
	wantStatus(t, h, http.MethodGet, "/handlers/hello%20a/journal", nil, http.StatusOK, `"start"`)
	purge("hello a", "counter a")
	stored(true)
	purge("counter b")
	stored(false, true)
	purge("hello b")
	stored(false)
}

// Versions report how many runs use them, and these runs can be listed. An old version is
// deleted when no run uses it.
func TestRunsByVersion(t *testing.T) {
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data})
	puts := func(tags ...string) string {
		wantStatus(t, h, http.MethodPut, "/plugins/shout-part", hosttest.BuildPlugin(t, "shout-part", tags...), http.StatusCreated, "")
		return pluginDigest(t, h, "shout-part")
	}
	wantStatus(t, h, http.MethodPut, "/plugins/greet-part", hosttest.BuildPlugin(t, "greet-part"), http.StatusCreated, "")
	first := puts()
	one := digestOf(t, wantStatus(t, h, http.MethodPut, "/workflows/hello", `{"plugins": ["greet-part", "shout-part"],
		"settings": {"config": {"shout": {"ask": true}}}}`, http.StatusCreated, ""))
	begin := map[string]any{"start_event": fields{"name": "Ada"}}
	old := h.RunNoWait(t, "hello", begin)
	second := puts("second")
	for range 2 {
		h.RunNoWait(t, "hello", begin)
	}
	versions, err := h.Client.Versions(t.Context(), "shout-part")
	if err != nil || len(versions) != 2 || versions[0].Runs != 1 || versions[1].Runs != 2 || versions[0].SHA256 != first || versions[1].SHA256 != second {
		t.Errorf("versions = %+v, %v", versions, err)
	}
	if list, err := h.Client.Plugins(t.Context()); err != nil || len(list) != 2 || list[0].Runs != 3 || list[1].Runs != 3 {
		t.Errorf("plugins = %+v, %v", list, err)
	}
	for _, version := range []string{one, one[:8]} {
		page, err := h.Client.List(t.Context(), client.ListQuery{Version: version, Statuses: []string{"running"}})
		if err != nil || len(page.Records) != 1 || page.Records[0].HandlerID != old.HandlerID || page.Records[0].Version != one {
			t.Errorf("runs of %s: %+v, %v", version, page, err)
		}
	}
	for path, text := range map[string]string{
		"?version=1": "1 run holds version 1 of plugin shout-part", "?version=2": "version 2 is the newest", "": "workflow hello has steps of plugin shout-part",
	} {
		wantStatus(t, h, http.MethodDelete, "/plugins/shout-part"+path, nil, http.StatusConflict, text)
	}
	wantStatus(t, h, http.MethodDelete, "/plugins/shout-part?version=3", nil, http.StatusNotFound, "has no version 3")
	wantStatus(t, h, http.MethodDelete, "/plugins/shout-part?version=", nil, http.StatusBadRequest, "Invalid version")
	wantStatus(t, h, http.MethodPost, "/handlers/"+old.HandlerID+"/cancel", nil, http.StatusOK, "")
	wantStatus(t, h, http.MethodDelete, "/plugins/shout-part?version=1", nil, http.StatusNoContent, "")
	wantStatus(t, h, http.MethodGet, "/handlers/"+old.HandlerID+"/journal", nil, http.StatusOK, "")
}

// A run that moved to another version does not hold the old version; its journal needs
// it.
func TestOldVersionOfAMigratedRun(t *testing.T) {
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data})
	wantStatus(t, h, http.MethodPut, "/plugins/greet-part", hosttest.BuildPlugin(t, "greet-part"), http.StatusCreated, "")
	wantStatus(t, h, http.MethodPut, "/plugins/shout-part", hosttest.BuildPlugin(t, "shout-part"), http.StatusCreated, "")
	wantStatus(t, h, http.MethodPut, "/workflows/hello", `{"plugins": ["greet-part", "shout-part"],
		"settings": {"config": {"shout": {"ask": true}}}}`, http.StatusCreated, "")
	run := h.RunNoWait(t, "hello", map[string]any{"handler_id": "moved", "start_event": fields{"name": "Ada"}})
	h.Events(t, run.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "InputRequiredEvent" })
	wantStatus(t, h, http.MethodPut, "/plugins/shout-part", hosttest.BuildPlugin(t, "shout-part", "second"), http.StatusCreated, "")
	wantStatus(t, h, http.MethodDelete, "/plugins/shout-part?version=1", nil, http.StatusConflict, "1 run holds version 1")
	wantStatus(t, h, http.MethodPost, "/workflows/hello/migrate?dry_run=false", nil, http.StatusOK, run.HandlerID)
	wantStatus(t, h, http.MethodDelete, "/plugins/shout-part?version=1", nil, http.StatusNoContent, "")
	h.Stop(t)
	if found, _ := faults(t, data); len(found) > 0 {
		t.Errorf("faults %+v", found)
	}
	h = hosttest.New(t, hosttest.Config{Data: data})
	respond(t, h, run.HandlerID, "neighbour", true)
	h.Events(t, run.HandlerID, "", nil)
	_, out := h.Do(t, http.MethodGet, "/handlers/"+run.HandlerID, nil)
	expect(t, string(record(t, out).Result.Value.Result), `"HELLO, ADA! (second)"`)
	for _, path := range []string{"/workflows/hello", "/plugins/shout-part", "/plugins/greet-part"} {
		wantStatus(t, h, http.MethodDelete, path, nil, http.StatusNoContent, "")
	}
	h.Stop(t)
	h = hosttest.New(t, hosttest.Config{Data: data})
	wantStatus(t, h, http.MethodGet, "/handlers/moved/journal", nil, http.StatusOK, `"migrate"`)
}

// Concurrent starts and deletions: each run is either refused, or its version stays,
// whatever comes first.
func TestDeletionsUnderLoad(t *testing.T) {
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data, IdleAfter: time.Millisecond})
	wasm := hosttest.Plugin(t, "counter-tinygo")
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				status, out := h.Do(t, http.MethodPost, "/workflows/counter/run", in(fmt.Sprintf("s%d-%d", i, n%5), nil))
				if status != http.StatusOK && status != http.StatusNotFound {
					t.Errorf("a start: %d %s", status, out)
					return
				}
			}
		})
	}
	for deleted := 0; deleted < 15; {
		if status, out := h.Do(t, http.MethodPut, "/plugins/counter", wasm); status != http.StatusOK && status != http.StatusCreated {
			t.Fatalf("put: %d %s", status, out)
		}
		switch status, out := h.Do(t, http.MethodDelete, "/plugins/counter", nil); status {
		case http.StatusNoContent:
			deleted++
		case http.StatusConflict:
		default:
			t.Fatalf("delete: %d %s", status, out)
		}
	}
	close(stop)
	clients.Wait()
	h.Stop(t)
	if found, sum := faults(t, data); len(found) > 0 || sum.Runs == 0 {
		t.Errorf("%+v, faults %+v", sum, found)
	}
}
