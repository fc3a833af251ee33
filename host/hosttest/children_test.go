package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// processed returns accumulator's results for items.
func processed(items []string) []map[string]any {
	results := []map[string]any{}
	for i, item := range items {
		results = append(results, map[string]any{"index": i, "original": item, "processed": "Processed: " + item})
	}
	return results
}

// parent runs accumulator for both halves, in one session.
func parent(t *testing.T, h *hosttest.Host) {
	for n := range 6 {
		items := []string{}
		for i := range n {
			items = append(items, fmt.Sprint("item ", i))
		}
		session := fmt.Sprint("family-", n)
		want, _ := json.Marshal(map[string]any{"children": 2, "results": append(processed(items[:n/2]), processed(items[n/2:])...)})
		expectJSON(t, h.Result(t, "parent", in(session, fields{"items": items})), string(want))

		// The children are runs of the same session.
		_, out := h.Do(t, http.MethodGet, "/handlers?workflow_name=accumulator&session="+session, nil)
		var list struct{ Handlers []hosttest.Record }
		if err := json.Unmarshal(out, &list); err != nil || len(list.Handlers) != 2 {
			t.Fatalf("children in the session: %s (%v)", out, err)
		}
		for _, child := range list.Handlers {
			expect(t, child.Status, "completed")
			expect(t, child.SessionID, session)
		}
	}
	status, out := h.Do(t, http.MethodPost, "/workflows/parent/run", `{"start_event":{"items":"a"}}`)
	if status != http.StatusBadRequest || !strings.Contains(string(out), "items") {
		t.Errorf("items that are no list: %d %s", status, out)
	}
}
