package hosttest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// seed prints its seed, so that a failing schedule of kills can be repeated with
// WEFT_SEED.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("WEFT_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s = n
	}
	t.Logf("WEFT_SEED=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

func put(t testing.TB, p *hosttest.Process, name string, wasm []byte) {
	t.Helper()
	if status, out := p.Do(t, http.MethodPut, "/plugins/"+name, wasm); status != http.StatusCreated {
		t.Fatalf("upload %s: %d %s", name, status, out)
	}
}

// kill stops the server with SIGKILL and starts it again on the same data.
func kill(t *testing.T, p *hosttest.Process, data string, args ...string) *hosttest.Process {
	t.Helper()
	p.Kill(t)
	return hosttest.Serve(t, data, args...)
}

// spins makes the crash plugin's step compute for a second or more, so that a
// kill finds it computing.
const spins = 60_000_000

// report is the crash plugin's result.
type report struct {
	Read []struct {
		Key   string
		Phase int
	}
	A, B, C int64
}

// The step reads, edits, sends, streams and edits again, then computes. The server is
// killed while the step computes, more than once. Each effect exists once, and the reads
// keep their results.
func TestKilledStepGoesOnWithItsEffectsOnce(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "crash", hosttest.BuildPlugin(t, "crash"))
	for round := 1; round <= 2; round++ {
		key := fmt.Sprint("run ", round)
		r := p.RunNoWait(t, "crash", in("s", fields{"key": key, "spins": spins}))
		for range 2 {
			p.Events(t, r.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "ProgressEvent" })
			pause(t, rnd, 300*time.Millisecond)
			p = kill(t, p, data)
		}
		events := p.Events(t, r.HandlerID, "", nil)
		if n := len(events); n != 2 || events[0].Type != "ProgressEvent" || events[1].Type != "StopEvent" {
			t.Errorf("stream after the kills: %v", events)
		}
		checkReport(t, p, r.HandlerID, round)
	}
	clean(t, data)
}

// clean checks that weft check finds nothing while the server runs.
func clean(t *testing.T, data string) {
	t.Helper()
	if code, out := weft(t, "check", "--data", data, "--online"); code != 0 {
		t.Errorf("check: exit code %d: %s", code, out)
	}
}

func checkReport(t *testing.T, p *hosttest.Process, id string, round int) {
	t.Helper()
	_, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil)
	r := record(t, out)
	if r.Status != "completed" {
		t.Fatalf("the run ended as %s", out)
	}
	var rep report
	if err := json.Unmarshal(r.Result.Value.Result, &rep); err != nil {
		t.Fatal(err)
	}
	n := int64(round)
	if rep.A != n || rep.B != n || rep.C != n || len(rep.Read) != round-1 {
		t.Errorf("after round %d: %+v", round, rep)
	}
}

// pause lets the server work for a random time, so that chance decides what a kill
// interrupts.
func pause(t *testing.T, rnd *rand.Rand, most time.Duration) {
	t.Helper()
	timer := time.NewTimer(time.Duration(rnd.Int64N(int64(most))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// A kill inside an edit region undoes the region and nothing else.
func TestKilledInsideAnEditRegion(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	// The region must be long enough to be killed in.
	limits := filepath.Join(data, "limits.json")
	if err := os.WriteFile(limits, []byte(`{"defaults": {"region_fuel": 100000000000}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := hosttest.Serve(t, data, "--limits", limits)
	put(t, p, "crash", hosttest.BuildPlugin(t, "crash"))
	r := p.RunNoWait(t, "crash", in("s", fields{"key": "k", "spins": spins, "region": true}))
	for range 2 {
		p.Events(t, r.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "ProgressEvent" })
		pause(t, rnd, 300*time.Millisecond)
		p = kill(t, p, data, "--limits", limits)
	}
	p.Events(t, r.HandlerID, "", nil)
	checkReport(t, p, r.HandlerID, 1)
	clean(t, data)
}

// A fan-out is killed again and again while it runs.
func TestKilledFanOut(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "fan", hosttest.BuildPlugin(t, "fan"))
	const n = 300
	r := p.RunNoWait(t, "fan", in("s", fields{"n": n, "spins": 400_000}))
	for range 3 {
		pause(t, rnd, 700*time.Millisecond)
		p = kill(t, p, data)
	}
	p.Events(t, r.HandlerID, "", nil)
	_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
	got := record(t, out)
	if got.Status != "completed" {
		t.Fatalf("the run ended as %s", out)
	}
	expectJSON(t, string(got.Result.Value.Result), fmt.Sprintf(`{"count":%d,"sum":%d}`, n, n*(n-1)/2))
	clean(t, data)
}

// Acknowledged data survives a kill; a clean stop and start continue too.
func TestAcknowledgedSurvives(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	put(t, p, "human", hosttest.Plugin(t, "human-tinygo"))
	waiting := p.RunNoWait(t, "human", fields{})
	for i := 1; i <= 12; i++ {
		expect(t, p.Result(t, "counter", in("s", nil)), fmt.Sprint(i))
		switch i % 4 {
		case 1:
			p = kill(t, p, data)
		case 3:
			if code := p.Interrupt(t); code != 0 {
				t.Errorf("Ctrl-C exits with %d", code)
			}
			p = hosttest.Serve(t, data)
		}
	}
	if status, out := p.Do(t, http.MethodPost, "/events/"+waiting.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`); status != http.StatusOK {
		t.Fatalf("answer: %d %s", status, out)
	}
	events := p.Events(t, waiting.HandlerID, "", nil)
	if len(events) != 2 || events[1].Type != "StopEvent" {
		t.Errorf("events %v", events)
	}
}

// Forty runs of one step wait or run during three kills. None of them caused a kill: none
// is blocked, and all finish.
func TestKilledWhileManyWait(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "crash", hosttest.BuildPlugin(t, "crash"))
	var handlers []string
	for i := range 40 {
		handlers = append(handlers, p.RunNoWait(t, "crash", in(fmt.Sprint("s", i), fields{"key": "k", "spins": spins / 20})).HandlerID)
	}
	for range 3 {
		pause(t, rnd, 200*time.Millisecond)
		p = kill(t, p, data)
		if _, out := p.Do(t, http.MethodGet, "/handlers?blocked=true", nil); !strings.HasPrefix(string(out), `{"handlers":[]`) {
			t.Errorf("blocked are: %s", out)
		}
	}
	for _, h := range handlers {
		p.Events(t, h, "", nil)
		checkReport(t, p, h, 1)
	}
	clean(t, data)
}
