package hosttest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
)

// BenchmarkHTTP runs workflows over HTTP with SQLite on disk. In addition to ns/op (one
// run, all clients together) it reports the latency that a client sees, runs per second,
// synced transactions, and CPU time per run (server and client together).
func BenchmarkHTTP(b *testing.B) {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 20_000)
	for _, lang := range []string{"tinygo", "go"} {
		for _, c := range []struct{ name, workflow, body string }{
			{"chain1", "chain", `{"start_event":{"n":1}}`},
			{"chain10", "chain", `{"start_event":{"n":10}}`},
			{"wordcount", "wordcount", fmt.Sprintf(`{"start_event":{"text":%q}}`, text)},
		} {
			for _, clients := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/%s/clients=%d", lang, c.name, clients), func(b *testing.B) {
					benchHTTP(b, lang, c.workflow, c.body, clients)
				})
			}
		}
	}
}

// BenchmarkChain runs workflows of 1,000 steps in a host that keeps nothing, without
// HTTP: the cost of a step in the scheduler, the engine, the journal and the sandbox
// together.
func BenchmarkChain(b *testing.B) {
	const steps = 1000
	h := hosttest.New(b, hosttest.Config{})
	h.Load(b, "tinygo", "chain")
	body, err := abi.FromJSON(fmt.Appendf(nil, `{"n":%d}`, steps))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := h.Runs.Start(b.Context(), host.StartRequest{Tenant: host.DefaultTenant, Workflow: "chain", Event: abi.Event{Body: body}, Wait: true})
		if err != nil || r.Status != host.StatusCompleted || r.Steps < steps {
			b.Fatalf("%v: %s after %d steps", err, r.Status, r.Steps)
		}
	}
	b.ReportMetric(steps*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

func benchHTTP(b *testing.B, lang, workflow, body string, clients int) {
	h := hosttest.New(b, hosttest.Config{Data: b.TempDir()})
	benchWorkflow(b, h, lang, workflow, body, clients)
}

// benchWorkflow lets clients run a workflow b.N times.
func benchWorkflow(b *testing.B, h *hosttest.Host, lang, workflow, body string, clients int) {
	h.Load(b, lang, workflow)
	commits, cpu := uint64(0), time.Duration(0)
	begin := func() { commits, cpu = h.Store.Stats().Commits, cpuTime() }
	benchRequests(b, []string{h.URL}, workflow, body, clients, begin)
	n := float64(b.N)
	b.ReportMetric(float64(h.Store.Stats().Commits-commits)/n, "commits/run")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/1e3/n, "cpu-ms/run")
}

// benchRequests runs a workflow on servers, which the clients ask in turn. It calls begin before
// it measures.
func benchRequests(b *testing.B, urls []string, workflow, body string, clients int, begin func()) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	run := func(turn int) error {
		res, err := client.Post(urls[turn%len(urls)]+"/workflows/"+workflow+"/run", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		out, err := io.ReadAll(res.Body)
		if err == nil && (res.StatusCode != http.StatusOK || !bytes.Contains(out, []byte(`"completed"`))) {
			err = fmt.Errorf("status %d: %.200s", res.StatusCode, out)
		}
		return err
	}
	for i := range urls { // warm up
		if err := run(i); err != nil {
			b.Fatal(err)
		}
	}
	begin()
	times := make([][]time.Duration, clients)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for c := range clients {
		wg.Go(func() {
			for turn := left.Add(-1); turn >= 0; turn = left.Add(-1) {
				began := time.Now()
				if err := run(int(turn)); err != nil {
					b.Error(err)
					return
				}
				times[c] = append(times[c], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(times...)
	if len(all) == 0 {
		b.Fatal("no run completed")
	}
	slices.Sort(all)
	n := float64(b.N)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1e3, "p99-ms")
	b.ReportMetric(n/b.Elapsed().Seconds(), "runs/s")
}
