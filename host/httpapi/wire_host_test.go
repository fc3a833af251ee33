package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// TestWireReplayByRealHost plays the recorded exchanges to a server in a separate
// process, with the recorded workflows as plugins: the real scheduler, journal and
// sandbox give the same answers as the other server.
func TestWireReplayByRealHost(t *testing.T) {
	replayByHosts(t, hosttest.Serve(t, t.TempDir(), "--cors-origin", "http://example.test"))
}

// Three nodes on one PostgreSQL give the same answers, each to every third request.
func TestWireReplayByNodes(t *testing.T) {
	store := pgtest.Own(t).URL
	var nodes []*hosttest.Process
	for i := range 3 {
		nodes = append(nodes, hosttest.Serve(t, t.TempDir(), "--cors-origin", "http://example.test",
			"--cluster", "--node", fmt.Sprint("n", i), "--cluster-addr", "127.0.0.1:0", "--store", store))
	}
	replayByHosts(t, nodes...)
}

// replayByHosts uploads the recorded workflows and plays the exchanges to the servers in
// turn.
func replayByHosts(t *testing.T, hosts ...*hosttest.Process) {
	t.Helper()
	for _, name := range []string{"hello", "plain", "fail", "slow", "timeout", "human", "waiter"} {
		if status, out := hosts[0].Do(t, http.MethodPut, "/plugins/"+name, hosttest.BuildPlugin(t, "recorded", name)); status != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, status, out)
		}
	}
	var urls []string
	for _, p := range hosts {
		urls = append(urls, p.URL)
	}
	differences := maps.Clone(wireDifferences)
	maps.Copy(differences, hostDifferences)
	replayWire(t, urls, differences)
}

// hostDifferences are intended differences in addition to wireDifferences, or in place of
// some of them.
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

// isRest matches the event of a step that stops running and has returned nothing yet.
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

// plainSchemas removes the titles of the fields of schemas.
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

// noProgress removes the schema of an event that is only for the stream.
func noProgress(v any) any {
	m := v.(map[string]any)
	m["events"] = slices.DeleteFunc(m["events"].([]any), func(e any) bool { return e.(map[string]any)["title"] == "Progress" })
	return m
}
