package hosttest_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bare "github.com/labstack/echo/v4"
	_ "modernc.org/sqlite" // the bare database for comparison

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
)

// BenchmarkDurable measures the cost of durability: runs of one and of ten steps over
// HTTP on SQLite on disk, compared with
//
//   - echo: a bare handler on the same HTTP server, which decodes and encodes the same
//     JSON with encoding/json, called by the same client code;
//   - synced, ten-synced: one and ten transactions of one row, each as large as a step's
//     row in the journal, on a bare database with the store's pragmas;
//   - one-kept-nowhere, ten-kept-nowhere: the same host with the store in memory.
//
// All of them take turns in one process for several rounds. The benchmark reports
// medians: of latencies over all rounds, and of rates and ratios over the rounds' values.
// CPU time includes the clients'. If cores are the bottleneck, the ratio of CPU times is
// the ratio of rates on an otherwise idle machine. One call runs all rounds, whatever b.N
// is.
func BenchmarkDurable(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchDurable(b, clients) })
	}
	for _, c := range []struct {
		name  string
		steps int
	}{{"one", 1}, {"ten", 10}} {
		b.Run("file/"+c.name, func(b *testing.B) { benchFile(b, c.steps) })
	}
}

// way is one of the compared ways.
type way struct {
	name string
	// do is one unit of work; several goroutines may call it.
	do     func() error
	single bool // by one client only

	times []time.Duration
	rates []float64 // per second, by round
	done  int
	// commits and bytes count what the way's store wrote.
	store          host.Store
	commits, bytes uint64
	committing     time.Duration
	cpu            time.Duration // of the process, clients included
	steps          int
}

const (
	durableRounds = 10
	durableSlice  = 200 * time.Millisecond // of one way in one round
)

// chainBody is the request for a run of chain with n steps.
func chainBody(steps int) string { return fmt.Sprintf(`{"start_event":{"n":%d}}`, steps-1) }

func benchDurable(b *testing.B, clients int) {
	disk := hosttest.New(b, hosttest.Config{Data: b.TempDir()})
	none := hosttest.New(b, hosttest.Config{})
	client := newBenchClient(b, clients)
	for _, h := range []*hosttest.Host{disk, none} {
		h.Load(b, "tinygo", "chain")
	}
	echoURL := serveEcho(b, disk)
	run := func(name string, h *hosttest.Host, steps int) *way {
		return &way{name: name, store: h.Store, steps: steps, do: client.post(h.URL, chainBody(steps))}
	}
	ways := []*way{
		{name: "echo", do: client.post(echoURL, chainBody(1))},
		run("one", disk, 1),
		run("ten", disk, 10),
		run("one-kept-nowhere", none, 1),
		run("ten-kept-nowhere", none, 10),
	}
	if clients == 1 {
		ways = append(ways, syncedWays(b, ways[1:3])...)
	}
	for _, w := range ways { // warm up
		if _, _, err := w.slice(clients, durableSlice/4); err != nil {
			b.Fatalf("%s: %v", w.name, err)
		}
	}
	for b.Loop() {
		for range durableRounds {
			for _, w := range ways {
				w.round(b, clients)
			}
		}
	}
	reportDurable(b, clients, ways)
}

// round measures one slice of a way.
func (w *way) round(b *testing.B, clients int) {
	runtime.GC() // garbage of the previous slice must not count
	var before host.StoreStats
	if w.store != nil {
		before = w.store.Stats()
	}
	cpu := cpuTime()
	times, took, err := w.slice(clients, durableSlice)
	if err != nil {
		b.Fatalf("%s: %v", w.name, err)
	}
	if w.store != nil {
		after := w.store.Stats()
		w.commits += after.Commits - before.Commits
		w.bytes += after.JournalBytes - before.JournalBytes
		w.committing += after.CommitTime - before.CommitTime
	}
	w.cpu += cpuTime() - cpu
	w.done += len(times)
	w.times = append(w.times, times...)
	w.rates = append(w.rates, float64(len(times))/took.Seconds())
}

// slice lets the clients work for a while, and returns how long each unit took.
func (w *way) slice(clients int, d time.Duration) ([]time.Duration, time.Duration, error) {
	if w.single {
		clients = 1
	}
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var wg sync.WaitGroup
	began := time.Now()
	for c := range clients {
		wg.Go(func() {
			for at := began; at.Sub(began) < d; {
				if errs[c] = w.do(); errs[c] != nil {
					return
				}
				now := time.Now()
				times[c] = append(times[c], now.Sub(at))
				at = now
			}
		})
	}
	wg.Wait()
	return slices.Concat(times...), time.Since(began), errors.Join(errs...)
}

func (w *way) quantile(q int) time.Duration {
	slices.Sort(w.times)
	return w.times[len(w.times)*q/100]
}

// cpuEach returns the CPU time of one unit of work, in microseconds.
func (w *way) cpuEach() float64 { return float64(w.cpu.Nanoseconds()) / 1e3 / float64(w.done) }

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// of returns the median of the ratios of two ways' rates in the same round.
func (w *way) of(other *way) float64 {
	ratios := make([]float64, len(w.rates))
	for i := range ratios {
		ratios[i] = w.rates[i] / other.rates[i]
	}
	return median(ratios)
}

func reportDurable(b *testing.B, clients int, ways []*way) {
	by := map[string]*way{}
	for _, w := range ways {
		by[w.name] = w
	}
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op") // removes the default
			b.ReportMetric(float64(w.quantile(50).Microseconds())/1e3, "p50-ms")
			b.ReportMetric(float64(w.quantile(99).Microseconds())/1e3, "p99-ms")
			b.ReportMetric(median(w.rates), "per-s")
			b.ReportMetric(w.cpuEach(), "cpu-us")
			if w.steps == 0 {
				return
			}
			b.ReportMetric(w.of(by["echo"]), "of-echo")
			b.ReportMetric(by["echo"].cpuEach()/w.cpuEach(), "of-echo-cpu")
			b.ReportMetric(float64(w.commits)/float64(w.done), "commits/run")
			b.ReportMetric(w.committing.Seconds()*1e3/float64(w.commits), "ms/commit")
			b.ReportMetric(float64(w.bytes)/float64(w.done*w.steps), "journal-B/step")
			if w.steps > 1 {
				one := by[strings.Replace(w.name, "ten", "one", 1)]
				b.ReportMetric(float64(w.quantile(50))/float64(one.quantile(50)), "of-one-p50")
			}
			if clients == 1 && w.name == "one" {
				b.ReportMetric(float64(w.quantile(50))/float64(by["echo"].quantile(50)+by["synced"].quantile(50)), "of-floor")
			}
		})
	}
}

// benchFile measures how much the database file grows per step.
func benchFile(b *testing.B, steps int) {
	const runs = 1000
	fill := func(runs int) int64 {
		data := b.TempDir()
		h := hosttest.New(b, hosttest.Config{Data: data})
		h.Load(b, "tinygo", "chain")
		do := newBenchClient(b, 16).post(h.URL, chainBody(steps))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range runs / 16 {
					if err := do(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		h.Stop(b) // the write-ahead log is in the file now
		info, err := os.Stat(filepath.Join(data, "weft.db"))
		if err != nil {
			b.Fatal(err)
		}
		return info.Size()
	}
	empty := fill(0)
	for b.Loop() {
		grown := float64(fill(runs) - empty)
		b.ReportMetric(grown/float64(runs/16*16), "file-B/run")
		b.ReportMetric(grown/float64(runs/16*16*steps), "file-B/step")
	}
	b.ReportMetric(0, "ns/op")
}

// benchClient is the client of all ways over HTTP.
type benchClient struct{ *http.Client }

func newBenchClient(b *testing.B, clients int) benchClient {
	c := benchClient{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	b.Cleanup(c.CloseIdleConnections)
	return c
}

// post returns a function that starts a run of chain and waits for it.
func (c benchClient) post(host, body string) func() error {
	return func() error {
		out, err := c.ask(host+"/workflows/chain/run", body)
		if err == nil && !bytes.Contains(out, []byte(`"completed"`)) {
			err = fmt.Errorf("it did not complete: %.200s", out)
		}
		return err
	}
}

func (c benchClient) ask(url, body string) ([]byte, error) {
	res, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", res.StatusCode, out)
	}
	return out, err
}

// echoRecord is a run's record, as the API answers it.
type echoRecord struct {
	HandlerID    string  `json:"handler_id"`
	WorkflowName string  `json:"workflow_name"`
	RunID        string  `json:"run_id"`
	Error        *string `json:"error"`
	Result       *struct {
		Value         map[string]any `json:"value"`
		QualifiedName string         `json:"qualified_name"`
		Type          string         `json:"type"`
		Types         []string       `json:"types"`
	} `json:"result"`
	ResultUnreadable bool   `json:"result_unreadable"`
	Status           string `json:"status"`
	StartedAt        string `json:"started_at"`
	UpdatedAt        string `json:"updated_at"`
	CompletedAt      string `json:"completed_at"`
	SessionID        string `json:"session_id"`
	Version          string `json:"version"`
	Paused           bool   `json:"paused"`
	Steps            uint64 `json:"steps"`
}

// The bare handler gives the same answer as the server, so that the comparison is valid.
func TestBareEcho(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	h.Load(t, "tinygo", "chain")
	serveEcho(t, h)
}

// serveEcho serves a bare handler that reads the same JSON and gives the same answer,
// with the settings of the real server (see package httpapi). It returns the handler's
// URL.
func serveEcho(tb testing.TB, h *hosttest.Host) string {
	tb.Helper()
	answer, err := benchClient{http.DefaultClient}.ask(h.URL+"/workflows/chain/run", chainBody(1))
	if err != nil {
		tb.Fatal(err)
	}
	var record echoRecord
	if err := json.Unmarshal(answer, &record); err != nil {
		tb.Fatal(err)
	}
	checkSame(tb, answer, record)
	e := bare.New()
	e.POST("/workflows/:name/run", func(c bare.Context) error {
		var req struct {
			StartEvent map[string]any `json:"start_event"`
		}
		if err := c.Bind(&req); err != nil {
			return err
		}
		answer := record
		answer.WorkflowName = c.Param("name")
		return c.JSON(http.StatusOK, &answer)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	tb.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// checkSame compares the encoded record with the answer that it was read from.
func checkSame(tb testing.TB, answer []byte, record echoRecord) {
	tb.Helper()
	encoded, err := json.Marshal(record)
	if err != nil {
		tb.Fatal(err)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(answer, &want), json.Unmarshal(encoded, &got)); err != nil {
		tb.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		tb.Fatalf("the bare handler would not answer the same:\n%s\n%s", encoded, answer)
	}
}

// syncedWays returns ways that make transactions of a bare database, one for each step of
// the runs.
func syncedWays(b *testing.B, runs []*way) []*way {
	b.Helper()
	var out []*way
	for i, w := range runs {
		before := w.store.Stats().JournalBytes
		if err := w.do(); err != nil {
			b.Fatal(err)
		}
		row := make([]byte, int(w.store.Stats().JournalBytes-before)/w.steps)
		insert := openBare(b)
		out = append(out, &way{name: []string{"synced", "ten-synced"}[i], single: true, do: func() error {
			for range w.steps {
				if _, err := insert.ExecContext(context.Background(), row); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return out
}

// openBare opens a database with the pragmas of the store's writer, and returns a
// statement that inserts a row in its own transaction.
func openBare(b *testing.B) *sql.Stmt {
	b.Helper()
	query := url.Values{"_pragma": {"foreign_keys(1)", "temp_store(MEMORY)", "trusted_schema(0)", "journal_mode(WAL)",
		"synchronous(FULL)", "wal_autocheckpoint(4096)", "journal_size_limit(67108864)", "cache_size(-32768)"}}
	dsn := url.URL{Scheme: "file", Path: filepath.Join(b.TempDir(), "bare.db"), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE steps (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.PrepareContext(b.Context(), "INSERT INTO steps (data) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	return insert
}
