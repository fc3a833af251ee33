package hosttest_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// hold starts a run of the tidy plugin that waits for ever, and returns when the run
// holds the resource that it must release.
func hold(t *testing.T, h *hosttest.Host, name string, sleep time.Duration) (handler string) {
	t.Helper()
	r := h.RunNoWait(t, "tidy", in("s", fields{"name": name, "sleep": sleep}))
	until(t, h, r.HandlerID, "HeldEvent")
	return r.HandlerID
}

// until waits for an event of a type.
func until(t *testing.T, h *hosttest.Host, handler, typ string) {
	t.Helper()
	events := h.Events(t, handler, "", func(e hosttest.Event) bool { return e.Type == typ })
	if n := len(events); n == 0 || events[n-1].Type != typ {
		t.Fatalf("no %s: %v", typ, events)
	}
}

// cancelling cancels a run in the background. It returns the answer, or that there is no
// answer because the server is gone.
func cancelling(t *testing.T, h *hosttest.Host, handler string) <-chan string {
	answer := make(chan string, 1)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/handlers/"+handler+"/cancel", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			answer <- "none"
			return
		}
		_ = res.Body.Close()
		answer <- res.Status
	}()
	return answer
}

// post asks for a status and a part of the answer.
func post(t *testing.T, h *hosttest.Host, path string, body any, status int, has string) {
	t.Helper()
	if got, out := h.Do(t, http.MethodPost, path, body); got != status || !strings.Contains(string(out), has) {
		t.Errorf("POST %s: %d %s, want %d with %s", path, got, out, status, has)
	}
}

// show returns a record as text.
func show(t *testing.T, h *hosttest.Host, handler string) string {
	t.Helper()
	_, out := h.Do(t, http.MethodGet, "/handlers/"+handler, nil)
	return string(out)
}

// streamOf returns a finished run's events.
func streamOf(t *testing.T, h *hosttest.Host, handler string) string {
	t.Helper()
	var all []string
	for _, e := range h.Events(t, handler, "", nil) {
		all = append(all, e.Type)
	}
	return strings.Join(all, " ")
}

const response = `{"event":{"type":"HumanResponseEvent","value":{}}}`

func TestCleanUpAfterCancel(t *testing.T) {
	p := hosttest.Serve(t, t.TempDir())
	put(t, p, "tidy", hosttest.BuildPlugin(t, "tidy"))
	h := &p.Host

	first := hold(t, h, "seat 12", 50*time.Millisecond)
	post(t, h, "/handlers/"+first+"/cancel", "", http.StatusOK, `"cancelled"`)
	if text := show(t, h, first); !strings.Contains(text, `"status":"cancelled"`) {
		t.Errorf("it is cancelled, and its record says %s", text)
	}
	expect(t, streamOf(t, h, first), "HeldEvent TidyingEvent TidiedEvent WorkflowCancelledEvent")
	events := h.Events(t, first, "", nil)
	if cause := string(events[1].Value); !strings.HasPrefix(cause, `{"cause":"cancelled","message":"Workflow was cancelled","seconds":`) {
		t.Errorf("the step was told %s", cause)
	}
	expect(t, string(events[2].Value), `{"names":["seat 12"]}`)
	expect(t, h.Result(t, "tidy", in("s", fields{})), `{"held":[],"begun":1,"ended":1,"sleep":50000000}`)
	post(t, h, "/handlers/"+first+"/cancel", "", http.StatusNotFound, "")

	// No other request arrives in this time, except a second cancel.
	second := hold(t, h, "seat 13", time.Hour)
	answer := cancelling(t, h, second)
	until(t, h, second, "TidyingEvent")
	if text := show(t, h, second); !strings.Contains(text, `"status":"running"`) || strings.Contains(text, "waiting_for") {
		t.Errorf("while it cleans up: %s", text)
	}
	post(t, h, "/events/"+second, response, http.StatusConflict, "completed")
	post(t, h, "/handlers/"+second+"/pause", "", http.StatusConflict, "cleaning up")
	post(t, h, "/handlers/"+second+"/cancel?purge=true", "", http.StatusOK, "deleted")
	expect(t, <-answer, "200 OK")
	if status, _ := h.Do(t, http.MethodGet, "/handlers/"+second, nil); status != http.StatusNotFound {
		t.Errorf("after the purge: %d", status)
	}
	expect(t, h.Result(t, "tidy", in("s", fields{})), fmt.Sprintf(`{"held":["seat 13"],"begun":2,"ended":1,"sleep":%d}`, time.Hour))
}

// The grace period is the limit cleanup_time; a timeout also leads to a clean-up.
func TestCleanUpAfterTimeout(t *testing.T) {
	for _, tt := range []struct {
		name         string
		grace        string // the maximum, or a value that the clean-up certainly exceeds
		sleep        time.Duration
		stream, left string
	}{
		{"in time", "10m", 0, "HeldEvent TidyingEvent TidiedEvent WorkflowTimedOutEvent", `"held":[],"begun":1,"ended":1,"sleep":0`},
		{"over the grace", "300ms", time.Hour, "HeldEvent TidyingEvent WorkflowTimedOutEvent", `"begun":1,"ended":0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := t.TempDir()
			limits := filepath.Join(data, "limits.json")
			write(t, limits, fmt.Sprintf(`{"defaults": {"cleanup_time": %q, "wall_time": "24h"}}`, tt.grace))
			p := hosttest.Serve(t, data, "--limits", limits)
			put(t, p, "tidy", hosttest.BuildPlugin(t, "tidy"))
			h := &p.Host
			// The run must hold the seat before it times out. The server's default
			// timeout would not count its wait.
			if status, out := h.Do(t, http.MethodPut, "/workflows/tidy", `{"settings":{"timeout":4}}`); status != http.StatusCreated {
				t.Fatalf("%d %s", status, out)
			}
			id := hold(t, h, "seat", tt.sleep)
			expect(t, streamOf(t, h, id), tt.stream)
			events := h.Events(t, id, "", nil)
			expect(t, string(events[len(events)-1].Value), `{"timeout":4.0,"active_steps":["hold"]}`)
			if text := show(t, h, id); !strings.Contains(text, `"status":"failed"`) || !strings.Contains(text, "timed out after 4.0s") {
				t.Error(text)
			}
			if got := h.Result(t, "tidy", in("s", fields{})); !strings.Contains(got, tt.left) {
				t.Errorf("it left %s, want %s", got, tt.left)
			}
		})
	}
}

// The server is killed while a step cleans up, more than once. The clean-up continues,
// each of its effects happens once, and the run ends as cancelled.
func TestKilledWhileCleaningUp(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "tidy", hosttest.BuildPlugin(t, "tidy"))
	id := hold(t, &p.Host, "seat 12", 1500*time.Millisecond)
	answer := cancelling(t, &p.Host, id)
	until(t, &p.Host, id, "TidyingEvent")
	for range 2 {
		pause(t, rnd, 300*time.Millisecond)
		p = kill(t, p, data)
	}
	expect(t, <-answer, "none")
	expect(t, streamOf(t, &p.Host, id), "HeldEvent TidyingEvent TidiedEvent WorkflowCancelledEvent")
	if text := show(t, &p.Host, id); !strings.Contains(text, `"status":"cancelled"`) {
		t.Error(text)
	}
	expect(t, p.Result(t, "tidy", in("s", fields{})), `{"held":[],"begun":1,"ended":1,"sleep":1500000000}`)
}

// Queued starts wait until earlier runs have ended, over kills of the server too.
func TestQueuedStarts(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "tidy", hosttest.BuildPlugin(t, "tidy"))
	queue := func(handler string) {
		t.Helper()
		body := in("s", fields{"name": handler})
		body["handler_id"], body["on_busy"] = handler, "queue"
		post(t, &p.Host, "/workflows/tidy/run-nowait", body, http.StatusOK, `"status":"running"`)
	}
	for _, handler := range []string{"first", "second", "third", "fourth"} {
		queue(handler)
	}
	until(t, &p.Host, "first", "HeldEvent")
	p = kill(t, p, data)
	h := &p.Host
	if text := show(t, h, "second"); !strings.Contains(text, `"waiting_for":[{"reason":"session","since":"`) {
		t.Errorf("a queued run: %s", text)
	}
	post(t, h, "/events/second", response, http.StatusConflict, "has not begun")
	post(t, h, "/handlers/second/pause", "", http.StatusConflict, "has not begun")
	post(t, h, "/workflows/tidy/run-nowait", fields{"handler_id": "second"}, http.StatusConflict, "already running")
	post(t, h, "/workflows/tidy/run-nowait", fields{"session": "s", "on_busy": "reject"}, http.StatusConflict, "busy")
	post(t, h, "/workflows/tidy/run-nowait", fields{"session": "s", "on_busy": "hurry"}, http.StatusBadRequest, "share, queue or reject")
	post(t, h, "/handlers/third/cancel", "", http.StatusOK, "cancelled")
	expect(t, streamOf(t, h, "third"), "WorkflowCancelledEvent")
	post(t, h, "/events/first", response, http.StatusOK, "")
	until(t, h, "second", "HeldEvent")
	p = kill(t, p, data)
	post(t, &p.Host, "/events/second", response, http.StatusOK, "")
	until(t, &p.Host, "fourth", "HeldEvent")
	expect(t, p.Result(t, "tidy", in("s", fields{})), `{"held":["first","second","fourth"],"begun":0,"ended":0,"sleep":0}`)
}
