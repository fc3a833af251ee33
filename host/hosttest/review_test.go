package hosttest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// The example flow: a person says yes, no, or nothing within the flow's minute. The test
// controls the clock, so nobody waits that long.
func TestReview(t *testing.T) {
	flow, err := os.ReadFile(filepath.Join(hosttest.Root(), "plugins", "review", "flow.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range languages("tinygo", "go") {
		t.Run(lang, func(t *testing.T) {
			var ahead atomic.Int64 // added to the wall clock
			h := hosttest.New(t, hosttest.Config{
				IdleAfter: time.Hour, // keeps waiting runs in memory, which this test does not concern
				Now:       func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			})
			h.Load(t, lang, "review")
			putFlow(t, h, "review", json.RawMessage(flow))
			for _, tt := range []struct {
				name   string
				answer fields // nil: the minute passes
				want   string
			}{
				{"no", fields{"approved": false}, "Not published: buy tea"},
				{"yes", fields{"approved": true}, "Published: buy tea (1 in all)"},
				{"silence", nil, "Not published: buy tea"},
				{"yes again", fields{"approved": true}, "Published: buy tea (2 in all)"},
			} {
				run := h.RunNoWait(t, "review", in("s", fields{"input": " buy  tea "}))
				asked := question(t, h, run.HandlerID, 1)
				if asked["prefix"] != "publish it?" || asked["node"] != "publish" || asked["kind"] != "confirm" {
					t.Errorf("%s: asked %v", tt.name, asked)
				}
				if tt.answer != nil {
					says(t, h, run.HandlerID, asked, tt.answer)
				} else {
					ahead.Add(int64(59 * time.Second))
					h.Run(t, "review", in("other", fields{"input": ""})) // the run fails, and the scheduler has read its clock
					_, out := h.Do(t, "GET", "/handlers/"+run.HandlerID, nil)
					if rec := record(t, out); rec.Status != "running" {
						t.Errorf("after 59 seconds it is %s", rec.Status)
					}
					ahead.Add(int64(2 * time.Second))
					h.Run(t, "review", in("other", fields{"input": ""}))
				}
				h.Events(t, run.HandlerID, "", nil)
				_, out := h.Do(t, "GET", "/handlers/"+run.HandlerID, nil)
				want, _ := json.Marshal(tt.want)
				if rec := record(t, out); rec.Status != "completed" || string(rec.Result.Value.Result) != string(want) {
					t.Errorf("%s: %s\nwant %s", tt.name, out, want)
				}
			}
			if run := h.Run(t, "review", in("s", fields{"input": " "})); !strings.Contains(run.Error, "node draft: input is not a text") {
				t.Errorf("nothing to publish: %+v", run)
			}
		})
	}
}
