package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
)

// Retry implements host.Runs for any run; the version shows the argument.
func (f *fakeHost) Retry(_ context.Context, _, id string, newest bool) (host.Fork, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, r, err := f.find(id)
	if err != nil {
		return host.Fork{}, host.Errorf(host.CodeNotFound, "no run %q", id)
	}
	out := host.Fork{Run: *r, Anew: []host.Renewed{{Kind: host.RenewedResource, Step: "s", Resource: "web"}}}
	out.Run.RunID = fmt.Sprintf("retried-%t", newest)
	return out, nil
}

// Migrate implements host.Runs: it records the request, and returns one of each kind.
func (f *fakeHost) Migrate(_ context.Context, req host.MigrateRequest) (host.Migration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastMigrate = append(f.lastMigrate, req)
	if req.Workflow == "nothing" {
		return host.Migration{}, host.Errorf(host.CodeNotFound, "Workflow not found")
	}
	return host.Migration{
		Workflow: req.Workflow, Version: "digest", Checked: 3, Fit: 1, Running: []string{"r"},
		Departed:    []host.Departure{{HandlerID: "h", RunID: "run", Version: "old", Code: host.BlockedReplayMismatch, Message: "it departs", Step: "s", Call: 7, Import: "sleep"}},
		NextStarted: 5, NextHandler: "next",
	}, nil
}

// TestRetry: requests, answers and refusals.
func TestRetry(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	if w := call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id":"h"}`); w.Code != http.StatusOK {
		t.Fatalf("start: %d %s", w.Code, w.Body)
	}
	for body, want := range map[string]string{``: "retried-false", `{}`: "retried-false", `{"newest": true}`: "retried-true", `{"newest": null}`: "retried-false"} {
		w := call(t, h, "POST", "/handlers/h/retry", body)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"run_id":"`+want+`"`) ||
			!strings.HasSuffix(w.Body.String(), `,"anew":[{"kind":"resource","step":"s","resource":"web"}]}`) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("retry %s: %d %s", body, w.Code, w.Body)
		}
	}
	for _, bad := range []string{`{"newest": 1}`, `{"newest": "true"}`, `{"new": true}`, `[]`} {
		wantError(t, call(t, h, "POST", "/handlers/h/retry", bad), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "POST", "/handlers/nobody/retry", ``), http.StatusNotFound, host.CodeNotFound)
}

// TestMigrate: requests, answers and refusals.
func TestMigrate(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	w := call(t, h, "POST", "/workflows/plain/migrate", ``)
	var got struct {
		Next string `json:"next_cursor"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	want := `{"workflow":"plain","version":"digest","dry_run":true,"checked":3,"fit":1,"moved":0,"departed":[{"handler_id":"h","run_id":"run","version":"old",` +
		`"code":"replay_mismatch","message":"it departs","step":"s","call":7,"import":"sleep"}],"running":["r"],"next_cursor":"` + got.Next + `"}`
	if w.Body.String() != want || got.Next == "" {
		t.Errorf("answer %s, want %s", w.Body, want)
	}
	w = call(t, h, "POST", "/workflows/plain/migrate?dry_run=false&limit=7&cursor="+got.Next, `{"handler_id":"h"}`)
	last := f.lastMigrate[len(f.lastMigrate)-1]
	if w.Code != http.StatusOK || last.DryRun || last.Limit != 7 || last.HandlerID != "h" || last.AfterStarted != 5 || last.AfterHandler != "next" {
		t.Errorf("%d %s: %+v", w.Code, w.Body, last)
	}
	for _, bad := range []string{"?limit=0", "?limit=1001", "?dry_run=perhaps", "?cursor=x", "?limit=x"} {
		wantError(t, call(t, h, "POST", "/workflows/plain/migrate"+bad, ``), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "POST", "/workflows/other/migrate?cursor="+got.Next, ``), http.StatusBadRequest, host.CodeInvalidArgument)
	wantError(t, call(t, h, "POST", "/workflows/plain/migrate", `{"handler_id": 7}`), http.StatusBadRequest, host.CodeInvalidArgument)
	wantError(t, call(t, h, "POST", "/workflows/plain/migrate", `{"all": true}`), http.StatusBadRequest, host.CodeInvalidArgument)
	wantError(t, call(t, h, "POST", "/workflows/nothing/migrate", ``), http.StatusNotFound, host.CodeNotFound)
}

// TestUploadChecked: an upload answers with the check if the request asks for it.
func TestUploadChecked(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	if w := call(t, h, "PUT", "/plugins/p", "wasm", "Content-Type", "application/wasm"); w.Code != http.StatusCreated || strings.Contains(w.Body.String(), `"check"`) || len(f.lastMigrate) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := call(t, h, "PUT", "/plugins/p?check=true", "wasm2", "Content-Type", "application/wasm")
	if w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), `,"check":[{"workflow":"`) || !json.Valid(w.Body.Bytes()) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, req := range f.lastMigrate {
		if !req.DryRun || req.Limit != 1000 {
			t.Errorf("%+v", req)
		}
	}
	wantError(t, call(t, h, "PUT", "/plugins/p?check=maybe", "wasm", "Content-Type", "application/wasm"), http.StatusBadRequest, host.CodeInvalidArgument)
}
