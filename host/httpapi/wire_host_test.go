package httpapi_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
)

// TestWireReplayByRealHost plays the recorded exchanges to a whole host with the
// recorded workflows as plugins: what the peer's server answered, the real
// scheduler, journal and sandbox answer too.
func TestWireReplayByRealHost(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	for _, name := range []string{"hello", "plain", "fail", "slow", "timeout", "human", "waiter"} {
		if _, _, err := h.Plugins.Put(t.Context(), host.DefaultTenant, name, hosttest.BuildPlugin(t, "recorded", name)); err != nil {
			t.Fatal(err)
		}
	}
	s := httpapi.New(httpapi.Config{Runs: h.Runs, Plugins: h.Plugins, Health: h.Host, CORSOrigins: []string{"http://example.test"}})
	differences := maps.Clone(wireDifferences)
	maps.Copy(differences, hostDifferences)
	replayWire(t, s.Handler(), differences)
}

// hostDifferences are meant too, beside and instead of those of wireDifferences.
var hostDifferences = map[string]difference{
	"003-schema-hello":             {why: "a field has the titles that its plugin gives it", like: plainSchemas},
	"004-events-hello":             {why: "likewise; what a step streams is listed", like: likeAll(plainSchemas, unordered("events"), noProgress)},
	"005-representation-hello":     {why: "likewise; nodes are in order", like: likeAll(plainSchemas, anyGraph)},
	"007-events-human":             {why: "likewise; events are in order of name", like: likeAll(plainSchemas, unordered("events"))},
	"008-representation-human":     {why: "likewise; nodes are in order", like: likeAll(plainSchemas, anyGraph)},
	"078-sse-timed-out-run":        {why: "a step that sleeps is not running", without: isRest},
	"080-sse-live-while-cancelled": {why: "a step that sleeps is not running", without: isRest},
	"111-waiter-sse-live":          {why: "a step asks before it rests", without: isRest},
}

// isRest tells the event of a step that stops running and gives nothing yet.
func isRest(e map[string]any) bool {
	value, _ := e["value"].(map[string]any)
	return e["type"] == "StepStateChanged" && value["step_state"] == "not_running" && value["output_event_name"] == nil
}

func likeAll(changes ...func(any) any) func(any) any {
	return func(v any) any {
		for _, change := range changes {
			v = change(v)
		}
		return v
	}
}

// plainSchemas drops the titles of the fields of schemas.
func plainSchemas(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plainSchemas(v[i])
		}
	case map[string]any:
		for _, member := range v {
			plainSchemas(member)
		}
		fields, _ := v["properties"].(map[string]any)
		for _, field := range fields {
			delete(field.(map[string]any), "title")
		}
	}
	return v
}

// noProgress drops the schema of an event that is for the stream only.
func noProgress(v any) any {
	m := v.(map[string]any)
	m["events"] = slices.DeleteFunc(m["events"].([]any), func(e any) bool { return e.(map[string]any)["title"] == "Progress" })
	return m
}
