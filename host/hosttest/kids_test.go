package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// child returns the id of the child that a run's record says it waits for.
func child(t *testing.T, h *hosttest.Host, handler string) string {
	t.Helper()
	var rec struct {
		WaitingFor []struct{ Step, Child string } `json:"waiting_for"`
	}
	h.Events(t, handler, "&include_internal=true", func(e hosttest.Event) bool { return strings.Contains(string(e.Value), "not_running") })
	for rec.WaitingFor == nil {
		_, out := h.Do(t, http.MethodGet, "/handlers/"+handler, nil)
		if err := json.Unmarshal(out, &rec); err != nil || !strings.Contains(string(out), `"status":"running"`) {
			t.Fatalf("%s (%v)", out, err)
		}
	}
	if rec.WaitingFor[0].Step != "start" || rec.WaitingFor[0].Child == "" {
		t.Fatalf("%+v", rec)
	}
	return rec.WaitingFor[0].Child
}

func reply(t *testing.T, h *hosttest.Host, handler, text string) {
	t.Helper()
	post(t, h, "/events/"+handler, fmt.Sprintf(`{"event":{"type":"HumanResponseEvent","value":{"response":%q}}}`, text), http.StatusOK, "sent")
}

// A step runs workflows as it calls a function.
func TestChildren(t *testing.T) {
	p := hosttest.Serve(t, t.TempDir())
	put(t, p, "kids", hosttest.BuildPlugin(t, "kids"))
	h := &p.Host
	expect(t, h.Result(t, "kids", start(fields{"mode": "many", "n": 30})), `30`)
	expect(t, h.Result(t, "kids", start(fields{"mode": "retry"})), `{"child":1,"attempts":3}`)
	expect(t, h.Result(t, "kids", start(fields{"mode": "deep", "n": 16})), `16`)
	post(t, h, "/workflows/kids/run", start(fields{"mode": "deep", "n": 17}), http.StatusInternalServerError, "limit child_depth")
	failure := h.Result(t, "kids", start(fields{"mode": "fail"}))
	if !regexp.MustCompile(`^\{"code":"boom","message":"run \\"kids\\": the child run \(handler \w+\) failed: asked to fail"\}$`).MatchString(failure) {
		t.Error("a child's failure: " + failure)
	}
	r := h.RunNoWait(t, "kids", start(fields{"mode": "stream", "n": 5}))
	expect(t, streamOf(t, h, r.HandlerID), strings.Repeat("ProgressEvent ", 5)+"StopEvent")
	if events := h.Events(t, r.HandlerID, "", nil); string(events[4].Value) != `{"i":4}` {
		t.Errorf("the last of the child's events is %s", events[4].Value)
	}

	for _, mode := range []string{"ask", "same", "named"} {
		r := h.RunNoWait(t, "kids", start(fields{"mode": mode}))
		kid := child(t, h, r.HandlerID)
		until(t, h, kid, "InputRequiredEvent")
		reply(t, h, kid, mode)
		expect(t, streamOf(t, h, r.HandlerID), "StopEvent")
		rec := show(t, h, r.HandlerID)
		if !strings.Contains(rec, fmt.Sprintf(`"result":%q`, mode)) {
			t.Errorf("%s: %s", mode, rec)
		}

		// Cancelling a run cancels its children before the request is answered.
		r = h.RunNoWait(t, "kids", start(fields{"mode": mode}))
		kid = child(t, h, r.HandlerID)
		post(t, h, "/handlers/"+r.HandlerID+"/cancel", "", http.StatusOK, "cancelled")
		if rec := show(t, h, kid); !strings.Contains(rec, `"status":"cancelled"`) {
			t.Errorf("%s: its parent is cancelled, and the child is %s", mode, rec)
		}

		// A child that a client cancels is an error for its parent.
		r = h.RunNoWait(t, "kids", start(fields{"mode": mode}))
		kid = child(t, h, r.HandlerID)
		until(t, h, kid, "InputRequiredEvent")
		post(t, h, "/handlers/"+kid+"/cancel?purge=true", "", http.StatusOK, "deleted")
		expect(t, streamOf(t, h, r.HandlerID), "WorkflowFailedEvent")
		if rec := show(t, h, r.HandlerID); !strings.Contains(rec, "was cancelled") {
			t.Errorf("%s: %s", mode, rec)
		}
	}
}

// Children and the runs that wait for them survive kills of the server, whatever session
// they use.
func TestKilledWhileChildrenWait(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "kids", hosttest.BuildPlugin(t, "kids"))
	parents, kids := map[string]string{}, map[string]string{}
	for _, mode := range []string{"ask", "same", "named"} {
		parents[mode] = p.RunNoWait(t, "kids", start(fields{"mode": mode})).HandlerID
		kids[mode] = child(t, &p.Host, parents[mode])
	}
	for range 4 {
		for _, kid := range kids {
			until(t, &p.Host, kid, "InputRequiredEvent")
		}
		p = kill(t, p, data)
	}
	for mode, id := range kids {
		reply(t, &p.Host, id, mode)
	}
	p = kill(t, p, data)
	for mode, id := range parents {
		expect(t, streamOf(t, &p.Host, id), "StopEvent")
		if rec := show(t, &p.Host, id); !strings.Contains(rec, fmt.Sprintf(`"result":%q`, mode)) {
			t.Errorf("%s: %s", mode, rec)
		}
	}
}

// Children run one after the other, and the server is killed at random times in between:
// each child runs once.
func TestKilledBetweenChildren(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "kids", hosttest.BuildPlugin(t, "kids"))
	const children = 300
	many := p.RunNoWait(t, "kids", start(fields{"mode": "many", "n": children})).HandlerID
	for range 2 { // a step that runs during three crashes is blocked
		pause(t, rnd, 300*time.Millisecond)
		p = kill(t, p, data)
	}
	expect(t, streamOf(t, &p.Host, many), "StopEvent")
	if rec := show(t, &p.Host, many); !strings.Contains(rec, fmt.Sprintf(`"result":%d`, children)) {
		t.Error(rec)
	}
	_, out := p.Do(t, http.MethodGet, "/handlers?limit=1000", nil)
	if n := strings.Count(string(out), `"handler_id"`); n != 1+children {
		t.Errorf("%d handlers, want %d", n, 1+children)
	}
}

// Atomic steps that read and write account by account, eight concurrently, lose nothing:
// not to each other, not to failures in the middle, not to kills.
func TestAtomicTransfers(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "ledger", hosttest.BuildPlugin(t, "ledger"))
	const accounts, transfers = 5, 400
	type result struct {
		Balances            []int
		Made, Sent, Bounced int
	}
	check := func(handler string, bounced int) {
		t.Helper()
		var rec hosttest.Record
		var got result
		_, out := p.Do(t, http.MethodGet, "/handlers/"+handler, nil)
		if err := json.Unmarshal(out, &rec); err != nil || rec.Status != "completed" {
			t.Fatalf("%s (%v)", out, err)
		}
		if err := json.Unmarshal(rec.Result.Value.Result, &got); err != nil {
			t.Fatal(err)
		}
		sum, made := 0, transfers-bounced
		for _, b := range got.Balances {
			sum += b
		}
		if sum != 100*accounts || got.Made != made || got.Sent != made || got.Bounced != bounced {
			t.Errorf("sum %d, %+v; want the sum %d, %d made and %d bounced", sum, got, 100*accounts, made, bounced)
		}
		notes := 0
		for _, ev := range p.Events(t, handler, "", nil) {
			if ev.Type == "NoteEvent" {
				notes++
			}
		}
		if notes != made {
			t.Errorf("%d notes, want %d", notes, made)
		}
	}
	first := p.RunNoWait(t, "ledger", start(fields{"accounts": accounts, "transfers": transfers}))
	second := p.RunNoWait(t, "ledger", start(fields{"accounts": accounts, "transfers": transfers, "fail": 10}))
	for range 2 { // a step that runs during three crashes is blocked
		pause(t, rnd, 200*time.Millisecond)
		p = kill(t, p, data)
	}
	for _, r := range []hosttest.Record{first, second} {
		p.Events(t, r.HandlerID, "", nil)
	}
	check(first.HandlerID, 0)
	check(second.HandlerID, transfers/10)
}
