package hosttest_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
)

// BenchmarkNeighbour measures how much a tenant that uses everything slows another
// tenant. A real server, in a separate process, has two tenants. One tenant makes runs of
// chain over HTTP, by one client and by eight clients, and records how long each takes.
// The other tenant does nothing (quiet); has 10,000 runs that compute without end
// (spins); uploads unknown modules, eight concurrently without a pause (uploads); has 200
// runs of flows with expensive expressions (expressions); or has 200 runs of guests with
// expensive host calls (calls).
//
// Each turn of a noise follows a quiet turn, which begins after a second in which the
// effects of the previous noise end. The benchmark reports p50 and p99 of all rounds.
// Because the machine drifts, it also reports the medians of the ratios of each turn to
// the preceding quiet turn. One call runs all rounds, whatever b.N is.
func BenchmarkNeighbour(b *testing.B) {
	n := newNeighbours(b)
	for range neighbourRounds {
		for _, noise := range n.noises {
			for _, q := range n.quiet {
				if err := cmp.Or(n.settle(q), noise.before.measure(q)); err != nil {
					b.Fatal(err)
				}
			}
			stop := noise.begin(b)
			for _, q := range n.quiet {
				if err := noise.measure(q); err != nil {
					b.Fatal(err)
				}
			}
			stop()
		}
	}
	for _, q := range n.quiet {
		for _, noise := range n.noises {
			b.Run(fmt.Sprintf("%s/clients=%d", noise.name, q.clients), func(b *testing.B) { noise.report(b, q.clients) })
		}
	}
}

// settle waits until the effects of the last noise are over.
func (n *neighbours) settle(q quietClients) error {
	_, _, err := q.way.slice(q.clients, neighbourTurn)
	return err
}

const (
	neighbourRounds = 3
	neighbourTurn   = time.Second // for one number of clients in one round
	neighbourSpins  = 10_000
)

// neighbours are two tenants of a server.
type neighbours struct {
	p          *hosttest.Process
	calm, loud string // keys
	client     *http.Client
	quiet      []quietClients
	noises     []*noise
	uploads    atomic.Uint64 // modules that differ
}

// quietClients are the measured clients.
type quietClients struct {
	clients int
	way     *way
}

// noise is what the other tenant does.
type noise struct {
	name   string
	begin  func(tb testing.TB) (stop func())
	turns        // during the noise
	before turns // quiet turns, each just before a turn of the noise
}

// turns are the measured values.
type turns struct {
	p50, p99 map[int][]time.Duration // of each round, by number of clients
	all      map[int][]time.Duration
}

func newTurns() turns {
	return turns{map[int][]time.Duration{}, map[int][]time.Duration{}, map[int][]time.Duration{}}
}

func newNeighbours(b *testing.B) *neighbours {
	const admin = "the-servers-own-key-of-a-benchmark"
	file := filepath.Join(b.TempDir(), "key")
	if err := os.WriteFile(file, []byte(admin), 0o600); err != nil {
		b.Fatal(err)
	}
	n := &neighbours{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	b.Cleanup(n.client.CloseIdleConnections)
	n.p = hosttest.Serve(b, b.TempDir(), "--admin-key-file", file, "--run-timeout", "1h", "--log-level", "error")
	keys := map[string]string{}
	for _, tenant := range []string{"calm", "loud"} {
		n.p.NewTenant(b, admin, tenant)
		keys[tenant] = n.p.NewKey(b, admin, tenant, host.RoleDeploy).Key
	}
	n.calm, n.loud = keys["calm"], keys["loud"]
	n.p.LoadAs(b, n.calm, "chain-tinygo", "chain")
	n.p.LoadAs(b, n.loud, "spin-tinygo", "spin")
	run := &way{do: func() error {
		var record struct{ Status string }
		err := n.ask(n.calm, http.MethodPost, "/workflows/chain/run", chainBody(2), &record)
		if err == nil && record.Status != "completed" {
			err = fmt.Errorf("it did not complete: %+v", record)
		}
		return err
	}}
	n.quiet = []quietClients{{1, run}, {8, run}}
	if _, _, err := run.slice(8, neighbourTurn/4); err != nil { // warm up
		b.Fatal(err)
	}
	if err := n.ask(n.loud, http.MethodPut, "/plugins/caller", string(puppet(b, callerManifest)), nil); err != nil {
		b.Fatal(err)
	}
	for _, of := range []struct {
		name  string
		begin func(testing.TB) func()
	}{{"quiet", n.silence}, {"spins", n.spin}, {"uploads", n.upload}, {"expressions", n.expressions}, {"calls", n.calls}} {
		n.noises = append(n.noises, &noise{name: of.name, begin: of.begin, turns: newTurns(), before: newTurns()})
	}
	return n
}

// ask makes a request that must succeed, and reads its answer.
func (n *neighbours) ask(key, method, path, body string, v any) error {
	req, err := http.NewRequest(method, n.p.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := n.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: status %d: %.200s", method, path, res.StatusCode, out)
	}
	if err == nil && v != nil {
		err = json.Unmarshal(out, v)
	}
	return err
}

// each makes count requests, several concurrently.
func (n *neighbours) each(tb testing.TB, count int, do func(i int) error) {
	tb.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func (n *neighbours) silence(testing.TB) func() { return func() {} }

// spin starts runs that compute without end, many more than there are cores.
func (n *neighbours) spin(tb testing.TB) func() { return n.start(tb, "spin", "", neighbourSpins) }

// expressions starts flows in which the host works for a long time: each merges a large
// state, and then tests it with patterns and in nested macros, again and again.
func (n *neighbours) expressions(tb testing.TB) func() {
	list := strings.TrimSuffix(strings.Repeat("7,", 3_000), ",")
	text := strings.Repeat("a", 60_000)
	flow := fmt.Sprintf(`{"flow": {"session_state": {"list": [%s], "text": "%s", "expr": "(a?){200}b"}, "steps": [
		{"name": "again", "type": "loop", "max_iterations": 1000, "end_condition":
			"session_state.text.matches(session_state.expr) || session_state.list.exists(x, session_state.list.exists(y, y < 0 && session_state.text == 'x'))",
		 "steps": [{"name": "none", "type": "condition", "evaluator": "false", "steps": [{"name": "never", "workflow": "spin"}]}]}]}}`, list, text)
	if err := n.ask(n.loud, http.MethodPut, "/workflows/dear", flow, nil); err != nil {
		tb.Fatal(err)
	}
	return n.start(tb, "dear", fmt.Sprintf(`{"start_event": {"session_state": {"more": [%s]}}}`, list), 200)
}

const callerManifest = `{"abi": 1, "workflow": "caller", "timeout": 0, "events": {},
  "steps": [{"name": "start", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`

// calls starts guests with expensive host calls: each reads, tests and changes a large
// state, again and again.
func (n *neighbours) calls(tb testing.TB) func() {
	list := "[" + strings.TrimSuffix(strings.Repeat("7,", 20_000), ",") + "]"
	body := fmt.Sprintf(`{"start_event": {"type": "StartEvent", "value": {"ops": [["state_edit", [["set", "list", %s]]], %s["output", [0, []]]]}}}`, list,
		strings.Repeat(`["state_get", ["list"]], ["state_edit", [["append", "list", 7]]], ["state_edit", [["test", "list", 7]]], `, 300))
	return n.start(tb, "caller", body, 200)
}

// start starts runs of the loud tenant; stop cancels them.
func (n *neighbours) start(tb testing.TB, workflow, body string, count int) (stop func()) {
	ids := make([]string, count)
	n.each(tb, len(ids), func(i int) error {
		var record struct {
			ID string `json:"handler_id"`
		}
		err := n.ask(n.loud, http.MethodPost, "/workflows/"+workflow+"/run-nowait", body, &record)
		ids[i] = record.ID
		return err
	})
	return func() {
		n.each(tb, len(ids), func(i int) error {
			err := n.ask(n.loud, http.MethodPost, "/handlers/"+ids[i]+"/cancel", "", nil)
			if err != nil && strings.Contains(err.Error(), "status 404") { // it burnt all its fuel
				return nil
			}
			return err
		})
	}
}

// upload uploads modules for compilation without a pause.
func (n *neighbours) upload(tb testing.TB) func() {
	ctx, cancel := context.WithCancel(tb.Context())
	wasm := string(hosttest.Plugin(tb, "wordcount-go"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := n.ask(n.loud, http.MethodPut, fmt.Sprintf("/plugins/storm-%d", i), n.unseen(wasm), nil); err != nil && !strings.Contains(err.Error(), "belongs to plugin") {
					tb.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// unseen returns the module with a new custom section.
func (n *neighbours) unseen(wasm string) string {
	section := binary.BigEndian.AppendUint64([]byte{0, 10, 1, 'n'}, n.uploads.Add(1))
	return wasm + string(section)
}

// measure measures one turn.
func (n *turns) measure(q quietClients) error {
	times, _, err := q.way.slice(q.clients, neighbourTurn)
	if err != nil {
		return err
	}
	slices.Sort(times)
	n.p50[q.clients] = append(n.p50[q.clients], times[len(times)/2])
	n.p99[q.clients] = append(n.p99[q.clients], times[len(times)*99/100])
	n.all[q.clients] = append(n.all[q.clients], times...)
	return nil
}

func (n *noise) report(b *testing.B, clients int) {
	ratio := func(here, there []time.Duration) float64 {
		ratios := make([]float64, len(here))
		for i := range here {
			ratios[i] = float64(here[i]) / float64(there[i])
		}
		return median(ratios)
	}
	all := n.all[clients]
	slices.Sort(all)
	b.ReportMetric(0, "ns/op") // removes the default
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1e3, "p99-ms")
	b.ReportMetric(float64(len(all))/(neighbourRounds*neighbourTurn.Seconds()), "runs/s")
	b.ReportMetric(ratio(n.p50[clients], n.before.p50[clients]), "p50-of-quiet")
	b.ReportMetric(ratio(n.p99[clients], n.before.p99[clients]), "p99-of-quiet")
}
