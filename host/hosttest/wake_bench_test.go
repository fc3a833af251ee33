package hosttest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
)

// manyWaiting returns the number of waiting runs in the large directory; few with -short.
func manyWaiting() int {
	if testing.Short() {
		return 10_000
	}
	return 1_000_000
}

// day is the sleep of runs that must not be due during the measurement.
const day = 24 * time.Hour

// fewWaiting is the number of waiting runs in the small directory, in addition to the
// woken ones.
const fewWaiting, woken = 100, 200

// BenchmarkWake measures the time from sending an event until the client has seen the end
// of the run that waited for the event, alternately with a hundred and with a million
// other waiting runs. None of them is in memory: the run is loaded, folded, run and
// committed. One call does everything, whatever b.N is.
func BenchmarkWake(b *testing.B) {
	seed := uint64(time.Now().UnixNano())
	b.Logf("seed %d", seed)
	type store struct {
		name  string
		h     *hosttest.Host
		ids   []string
		times []time.Duration
	}
	var stores []*store
	for _, n := range []int{fewWaiting + woken*100/waitHuman, manyWaiting()} {
		s := &store{name: fmt.Sprintf("waiting=%d", n), h: hosttest.New(b, hosttest.Config{Data: waitingDir(b, n, day)})}
		s.ids = waitingIDs(b, s.h, rand.New(rand.NewPCG(seed, 0)), n, "human", woken)
		stores = append(stores, s)
	}
	for i := range woken {
		for _, s := range stores {
			s.times = append(s.times, wake(b, s.h, s.ids[i]))
		}
	}
	for _, s := range stores {
		slices.Sort(s.times)
	}
	for i, s := range stores {
		b.Run(s.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(s.times[woken/2].Microseconds())/1e3, "p50-ms")
			b.ReportMetric(float64(s.times[woken*99/100].Microseconds())/1e3, "p99-ms")
			if i > 0 {
				b.ReportMetric(float64(s.times[woken/2])/float64(stores[0].times[woken/2]), "of-few-p50")
			}
		})
	}
	checkWaits(b, stores[1].h, rand.New(rand.NewPCG(seed, 1)), manyWaiting())
}

// BenchmarkWakeOverdue measures the same while a restarted server catches up with
// thousands of overdue sleeps. One call does everything, whatever b.N is.
func BenchmarkWakeOverdue(b *testing.B) {
	n := min(manyWaiting(), 100_000)
	data := waitingDir(b, n, time.Second)
	<-time.After(20 * time.Second) // until the last sleep is due, by the wall clock
	began := time.Now()
	h := hosttest.New(b, hosttest.Config{Data: data})
	due := func() bool {
		keys, _, err := h.Store.Due(b.Context(), time.Now().UnixNano(), 1)
		if err != nil {
			b.Fatal(err)
		}
		return len(keys) > 0
	}
	ids := waitingIDs(b, h, rand.New(rand.NewPCG(uint64(began.UnixNano()), 0)), n, "human", 1000)
	var times []time.Duration
	for ; due() && len(ids) > 0; ids = ids[1:] {
		times = append(times, wake(b, h, ids[0]))
	}
	took := time.Since(began)
	if len(times) == 0 {
		b.Skip("all were over before the first could be woken")
	}
	slices.Sort(times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n/100*(100-waitHuman-waitApproval)), "overdue")
	b.ReportMetric(took.Seconds(), "caught-up-s")
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(times[len(times)-1].Microseconds())/1e3, "max-ms")
}

// waitingIDs chooses distinct runs of a workflow that still wait.
func waitingIDs(b *testing.B, h *hosttest.Host, rnd *rand.Rand, n int, workflow string, count int) []string {
	b.Helper()
	var out []string
	seen := map[int]bool{}
	for len(out) < count {
		if len(seen) > n*9/10 {
			b.Fatalf("hardly any of %d runs of %s waits", n, workflow)
		}
		i := rnd.IntN(n)
		again := seen[i]
		if seen[i] = true; again || waitingKind(i) != workflow {
			continue
		}
		handler, err := h.Store.Handler(b.Context(), host.DefaultTenant, waitingID(i))
		if err != nil {
			b.Fatal(err)
		}
		if handler.Run.Status == host.StatusRunning {
			out = append(out, waitingID(i))
		}
	}
	return out
}

// wake answers the question of a run of human, and returns the time until the run has
// ended.
func wake(b *testing.B, h *hosttest.Host, id string) time.Duration {
	b.Helper()
	res, err := http.Get(h.URL + "/events/" + id + "?sse=false")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		b.Fatalf("the events of %s: status %d", id, res.StatusCode)
	}
	began := time.Now()
	send(b, h, id, `{"response":"yes"}`)
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			b.Fatalf("the events of %s end early: %v", id, err)
		}
		if bytes.Contains(line, []byte(`"StopEvent"`)) {
			took := time.Since(began)
			if !bytes.Contains(line, []byte(`"result":"yes"`)) {
				b.Fatalf("run %s ended so: %s", id, line)
			}
			_, _ = io.Copy(io.Discard, lines) // so that the connection can be used again
			return took
		}
	}
}

func send(b *testing.B, h *hosttest.Host, id, response string) {
	b.Helper()
	status, out := h.Do(b, http.MethodPost, "/events/"+id, `{"event":{"type":"HumanResponseEvent","value":`+response+`}}`)
	if status != http.StatusOK {
		b.Fatalf("the answer for %s: %d %s", id, status, out)
	}
}

// checkWaits checks some random copies: a waiting step continues in its middle, and a
// sleeping run sleeps until its time.
func checkWaits(b *testing.B, h *hosttest.Host, rnd *rand.Rand, n int) {
	b.Helper()
	for _, id := range waitingIDs(b, h, rnd, n, "approval", 10) {
		send(b, h, id, `{"role":"manager","approved":true}`)
		send(b, h, id, `{"role":"finance","approved":false}`)
		events := h.Events(b, id, "", nil)
		_, out := h.Do(b, http.MethodGet, "/handlers/"+id, nil)
		var r hosttest.Record
		if err := json.Unmarshal(out, &r); err != nil || r.Status != "completed" || len(events) != 3 ||
			string(r.Result.Value.Result) != `{"by":["manager","finance"],"calls":1,"approved":false}` {
			b.Fatalf("approval %s: %v %s", id, events, out)
		}
	}
	for _, id := range waitingIDs(b, h, rnd, n, "sleeper", 10) {
		status, out := h.Do(b, http.MethodGet, "/handlers/"+id, nil)
		if status != http.StatusAccepted || !strings.Contains(string(out), `"until":"`) {
			b.Fatalf("sleeper %s: %d %s", id, status, out)
		}
	}
}
