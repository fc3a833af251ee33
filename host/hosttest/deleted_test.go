package hosttest_test

import (
	"net/http"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// The numbers of a handler's events continue over its runs, including deleted runs. weft
// check accepts a queued run that has no event yet.
func TestQueuedRunOfAHandlerThatWasPurged(t *testing.T) {
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data})
	h.Load(t, "tinygo", "human", "stream")
	h.RunNoWait(t, "human", map[string]any{"handler_id": "busy", "session": "s"})
	for _, id := range []string{"purged", "kept"} {
		h.Run(t, "stream", map[string]any{"handler_id": id, "session": "s", "start_event": fields{"n": 9}})
	}
	post(t, h, "/handlers/purged/cancel?purge=true", nil, http.StatusOK, "deleted")
	for _, id := range []string{"purged", "kept"} {
		h.RunNoWait(t, "stream", map[string]any{"handler_id": id, "session": "s", "on_busy": "queue", "start_event": fields{"n": 9}})
		post(t, h, "/handlers/"+id+"/cancel", nil, http.StatusOK, "cancelled")
	}
	h.Stop(t)
	if found, sum := faults(t, data); len(found) != 0 || sum.Runs != 4 {
		t.Errorf("%+v, %+v", found, sum)
	}
	execute(t, data, `UPDATE handlers SET first_seq = 3 WHERE handler = 'kept'`)
	if found, _ := faults(t, data); len(found) != 1 || found[0].Code != "stream_differs" {
		t.Errorf("with a wrong beginning: %+v", found)
	}
}
