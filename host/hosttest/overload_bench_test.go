package hosttest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// BenchmarkOverload: what a server gets done when it is offered more than it can do. A
// server in a process of its own is offered runs of some milliseconds of a core, at a
// fixed rate whatever comes of them: from half to twenty times of what it does for
// clients that wait for each other. Reported are the runs that completed in a second
// while the load went on, those refused, the 99th percentile of those accepted, and what
// did not complete. The clients take their part of the same cores. One call is all
// loads, whatever b.N.
func BenchmarkOverload(b *testing.B) {
	for _, c := range []struct{ name, limits string }{
		{"2-cores", "export GOMAXPROCS=2"},
		{"2-cores-60MiB-40-descriptors", "export GOMAXPROCS=2 GOMEMLIMIT=60MiB; ulimit -n 40"},
	} {
		b.Run(c.name, func(b *testing.B) { benchOverload(b, c.limits) })
	}
}

const (
	overloadLasts = 6 * time.Second
	overloadWait  = 2 * time.Second // --start-wait
	overloadMost  = 4000            // requests under way, of the client
)

func benchOverload(b *testing.B, limits string) {
	p := hosttest.ServeBy(b, []string{"sh", "-c", limits + `; exec "$@"`, "sh"}, b.TempDir(), "--start-wait", overloadWait.String())
	p.Load(b, "tinygo", "wordcount")
	o := &offered{url: p.URL + "/workflows/wordcount/run", client: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 512},
	}}
	defer o.client.CloseIdleConnections()
	text, err := json.Marshal(strings.Repeat("the quick brown fox jumps over the lazy dog and runs away\n", 400))
	if err != nil {
		b.Fatal(err)
	}
	o.body = `{"start_event":{"text":` + string(text) + `}}`
	for b.Loop() {
		peak := o.closed(4, overloadLasts)
		b.ReportMetric(peak, "capacity/s")
		for _, load := range []float64{0.5, 1, 2, 5, 10, 20} {
			r := o.open(load * peak)
			unit := func(what string) string { return fmt.Sprintf("%s@%gx", what, load) }
			b.ReportMetric(r.completed, unit("ok/s"))
			b.ReportMetric(r.refused, unit("refused/s"))
			b.ReportMetric(r.p99.Seconds(), unit("p99-s"))
			b.ReportMetric(float64(r.failed), unit("failed"))
			b.ReportMetric(float64(r.unsent), unit("unsent"))
			b.ReportMetric(memoryOf(p.PID()), unit("MiB"))
		}
	}
}

// offered is a load of starts that wait for their runs.
type offered struct {
	url, body string
	client    *http.Client
}

// start starts a run, and gives the status of the answer, 0 if there is none.
func (o *offered) start() int {
	res, err := o.client.Post(o.url, "application/json", strings.NewReader(o.body))
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0
	}
	return res.StatusCode
}

// closed is how many runs a second complete for so many clients, each of which waits for
// its run before it starts another.
func (o *offered) closed(clients int, lasts time.Duration) float64 {
	var mu sync.Mutex // guards done
	done := 0
	end := time.Now().Add(lasts)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for time.Now().Before(end) {
				if o.start() == http.StatusOK {
					mu.Lock()
					done++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return float64(done) / lasts.Seconds()
}

// curve is a point of the curve.
type curve struct {
	completed, refused float64 // a second
	p99                time.Duration
	failed, unsent     int
}

// open offers so many starts a second, whatever comes of them.
func (o *offered) open(rate float64) (c curve) {
	var mu sync.Mutex // guards what follows
	var took []time.Duration
	completed, refused, under := 0, 0, 0
	began, tick := time.Now(), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var wg sync.WaitGroup
	for n := 0; ; {
		passed := time.Since(began)
		if passed >= overloadLasts {
			break
		}
		for ; float64(n) < rate*passed.Seconds(); n++ {
			mu.Lock()
			room := under < overloadMost
			if room {
				under++
			} else {
				c.unsent++
			}
			mu.Unlock()
			if !room {
				continue
			}
			wg.Go(func() {
				sent := time.Now()
				status := o.start()
				mu.Lock()
				defer mu.Unlock()
				under--
				switch status {
				case http.StatusOK:
					took = append(took, time.Since(sent))
					if time.Since(began) < overloadLasts {
						completed++
					}
				case http.StatusServiceUnavailable:
					refused++
				default:
					c.failed++
				}
			})
		}
		<-tick.C
	}
	wg.Wait()
	c.completed, c.refused = float64(completed)/overloadLasts.Seconds(), float64(refused)/overloadLasts.Seconds()
	if slices.Sort(took); len(took) > 0 {
		c.p99 = took[len(took)*99/100]
	}
	return c
}

// memoryOf is the memory of a process in MiB; 0 where the system does not say.
func memoryOf(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}
