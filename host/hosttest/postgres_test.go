package hosttest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// A server on PostgreSQL keeps what clients have seen over kills of the server, stalls
// while the database is away, and continues in the same process when it is back.
func TestServerOnPostgres(t *testing.T) {
	database := pgtest.Own(t)
	data, store := t.TempDir(), []string{"--store", database.URL}
	p := hosttest.Serve(t, data, store...)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	put(t, p, "human", hosttest.Plugin(t, "human-tinygo"))
	waiting := p.RunNoWait(t, "human", fields{})
	for i := 1; i <= 3; i++ {
		expect(t, p.Result(t, "counter", in("s", nil)), fmt.Sprint(i))
		p = kill(t, p, data, store...)
	}
	ready := func(want int) func() bool {
		return func() bool {
			status, _ := p.Do(t, http.MethodGet, "/ready", nil)
			return status == want
		}
	}
	database.Crash(t)
	eventually(t, "the server reports that it cannot commit", ready(http.StatusServiceUnavailable))
	if status, out := p.Do(t, http.MethodPost, "/workflows/counter/run", in("s", nil)); status != http.StatusServiceUnavailable {
		t.Errorf("a start without the database: %d %s", status, out)
	}
	database.Again(t)
	eventually(t, "the server continues", ready(http.StatusOK))
	expect(t, p.Result(t, "counter", in("s", nil)), "4")
	if status, out := p.Do(t, http.MethodPost, "/events/"+waiting.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`); status != http.StatusOK {
		t.Fatalf("answer: %d %s", status, out)
	}
	events := p.Events(t, waiting.HandlerID, "", nil)
	if len(events) != 2 || events[1].Type != "StopEvent" {
		t.Errorf("events %v", events)
	}
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("Ctrl-C exits with %d", code)
	}
}
