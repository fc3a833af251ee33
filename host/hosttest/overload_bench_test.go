//go:build unix

package hosttest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// BenchmarkOverload measures a server's throughput when it is offered more than it can
// do. A server in a separate process is offered runs of some milliseconds of CPU at a
// fixed rate, whatever their results: from half to twenty times its capacity. The
// capacity is the throughput with enough clients to keep the server busy, each of which
// waits for its run before it starts another.
//
// The clients run on the same cores as the server, at a lower priority (nice 15), as if
// they ran elsewhere. Otherwise they would take more CPU from the server the more they
// offer. A background process burns the rest of all cores, because two of them may be one
// physical core that does less for each while both are busy. The speed of a core changes
// with other work on the machine, so the capacity is measured anew before and after each
// load.
//
// Each load runs for 3 s before it is measured. The benchmark reports for each load the
// runs that completed per second (ok/s), and per second of the server's CPU time
// (ok/cpu-s); the ratio of ok/s to the present capacity (of-capacity); the cores that the
// server used (cpu); the refused starts; the 99th percentile of the accepted starts; the
// starts that did not complete; and the server's memory. One call runs all loads,
// whatever b.N is.
func BenchmarkOverload(b *testing.B) {
	for _, c := range []struct{ name, limits string }{
		{"2-cores", "export GOMAXPROCS=2"},
		{"60MiB", "export GOMAXPROCS=2 GOMEMLIMIT=60MiB"},
		{"40-descriptors", "export GOMAXPROCS=2; ulimit -n 40"},
	} {
		b.Run(c.name, func(b *testing.B) { benchOverload(b, c.limits) })
	}
}

const (
	overloadLasts   = 15 * time.Second
	overloadWarm    = 3 * time.Second
	overloadClients = 8               // to measure the capacity
	overloadWait    = 2 * time.Second // --start-wait
	overloadMost    = 4000            // concurrent requests of the clients
	overloadConns   = 512             // concurrent connections of the clients
)

func benchOverload(b *testing.B, limits string) {
	data := b.TempDir()
	h := hosttest.New(b, hosttest.Config{Data: data})
	h.Load(b, "tinygo", "wordcount")
	h.Stop(b)
	p := hosttest.ServeBy(b, []string{"sh", "-c", limits + `; exec "$@"`, "sh"}, data, "--start-wait", overloadWait.String())
	o := &offered{url: p.URL + "/workflows/wordcount/run", client: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: overloadConns, MaxConnsPerHost: overloadConns},
	}}
	defer o.client.CloseIdleConnections()
	text, err := json.Marshal(strings.Repeat("the quick brown fox jumps over the lazy dog and runs away\n", 400))
	if err != nil {
		b.Fatal(err)
	}
	o.body = `{"start_event":{"text":` + string(text) + `}}`
	o.server = p.PID()
	yield(b)
	for range runtime.NumCPU() {
		burn := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err := burn.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() {
			_ = burn.Process.Kill() // it burns for ever
			_ = burn.Wait()         // the error only says that it was killed
		}()
	}
	for b.Loop() {
		o.closed(overloadClients, overloadWarm) // from here on the cost of runs and the speed of cores are known
		peak := o.closed(overloadClients, overloadLasts)
		b.ReportMetric(peak.completed, "capacity/s")
		b.ReportMetric(peak.perCPU, "capacity/cpu-s")
		before := peak
		for _, load := range []float64{0.5, 1, 2, 5, 10, 20} {
			r := o.open(load * peak.completed)
			after := o.closed(overloadClients, 2*overloadWarm)
			capacity := (before.completed + after.completed) / 2
			before = after
			unit := func(what string) string { return fmt.Sprintf("%s@%gx", what, load) }
			b.ReportMetric(r.completed, unit("ok/s"))
			b.ReportMetric(r.perCPU, unit("ok/cpu-s"))
			b.ReportMetric(r.completed/capacity, unit("of-capacity"))
			b.ReportMetric(r.cpu, unit("cpu"))
			b.ReportMetric(r.refused, unit("refused/s"))
			b.ReportMetric(r.p99.Seconds(), unit("p99-s"))
			b.ReportMetric(float64(r.failed), unit("failed"))
			b.ReportMetric(float64(r.unsent), unit("unsent"))
			b.ReportMetric(memoryOf(p.PID()), unit("MiB"))
		}
	}
}

// offered offers starts that wait for their runs.
type offered struct {
	url, body string
	client    *http.Client
	server    int // its process
}

// start starts a run. It returns the status of the answer, 0 if there is none, and the
// time since there was a connection.
func (o *offered) start() (status int, took time.Duration) {
	sent := time.Now()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = time.Now() }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, strings.NewReader(o.body))
	if err != nil {
		return 0, 0
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := o.client.Do(req)
	if err != nil {
		return 0, 0
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, 0
	}
	return res.StatusCode, time.Since(sent)
}

// closed lets the given number of clients start runs. Each waits for its run before it
// starts another.
func (o *offered) closed(clients int, lasts time.Duration) (c curve) {
	var mu sync.Mutex // guards done
	done := 0
	began, cpu := time.Now(), cpuOf(o.server)
	end := began.Add(lasts)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for time.Now().Before(end) {
				if status, _ := o.start(); status == http.StatusOK {
					mu.Lock()
					done++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	c.count(done, time.Since(began), cpuOf(o.server)-cpu)
	return c
}

// curve is a point of the curve.
type curve struct {
	completed, refused float64 // per second
	cpu                float64 // cores that the server used
	perCPU             float64 // completed per second of its CPU time
	p99                time.Duration
	failed, unsent     int
}

// count computes a point from the completed runs, the time passed, and the server's CPU
// time.
func (c *curve) count(completed int, passed, cpu time.Duration) {
	c.completed, c.cpu = float64(completed)/passed.Seconds(), cpu.Seconds()/passed.Seconds()
	if cpu > 0 {
		c.perCPU = float64(completed) / cpu.Seconds()
	}
}

// open offers starts at a rate per second, whatever their results.
func (o *offered) open(rate float64) (c curve) {
	var mu sync.Mutex // guards the variables below
	var took []time.Duration
	completed, refused, under := 0, 0, 0
	began, tick := time.Now(), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var cpu time.Duration
	var inTime, refusedInTime int // counts at the beginning of the measurement
	var wg sync.WaitGroup
	measured := false
	for n := 0; ; {
		passed := time.Since(began)
		if passed >= overloadWarm && !measured {
			measured = true
			mu.Lock()
			inTime, refusedInTime, cpu = completed, refused, cpuOf(o.server)
			mu.Unlock()
		}
		if passed >= overloadWarm+overloadLasts {
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
				status, lasted := o.start()
				mu.Lock()
				defer mu.Unlock()
				under--
				switch status {
				case http.StatusOK:
					took = append(took, lasted)
					completed++
				case http.StatusServiceUnavailable:
					refused++
				default:
					c.failed++
				}
			})
		}
		<-tick.C
	}
	mu.Lock()
	inTime, refusedInTime, cpu = completed-inTime, refused-refusedInTime, cpuOf(o.server)-cpu
	mu.Unlock()
	wg.Wait()
	c.count(inTime, overloadLasts, cpu)
	c.refused = float64(refusedInTime) / overloadLasts.Seconds()
	if slices.Sort(took); len(took) > 0 {
		c.p99 = took[len(took)*99/100]
	}
	return c
}

// yield lowers the priority of this process below the server's, which runs already, until
// the benchmark ends. Threads that the process starts later inherit the priority.
func yield(b *testing.B) {
	b.Helper()
	set := func(nice int) error {
		threads, err := os.ReadDir("/proc/self/task")
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name()) // the kernel writes numbers
			err = cmp.Or(err, syscall.Setpriority(syscall.PRIO_PROCESS, id, nice))
		}
		return err
	}
	if err := set(15); err != nil {
		b.Logf("the clients compete with the server: %v", err)
	}
	b.Cleanup(func() {
		if err := set(0); err != nil {
			b.Logf("the next server starts at a low priority; run one benchmark at a time, or as root: %v", err)
		}
	})
}

// cpuOf returns the CPU time of a process; 0 where the system does not report it.
func cpuOf(pid int) time.Duration { return cpuIn(pid, 11, 13) } // by the user and by the system

// cpuIn adds up times of /proc/PID/stat, by the numbers of their fields after the name.
func cpuIn(pid, from, to int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks time.Duration
	for _, field := range fields[from:to] {
		n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
}

// memoryOf returns the memory of a process in MiB; 0 where the system does not report it.
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
