package hosttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// residentRounds is how often each server is started.
const residentRounds = 3

// BenchmarkResident measures the cost of waiting runs for a server in a separate process:
// its resident memory (after unused memory is returned to the system) with a million
// waiting runs and with none; and the time from the start of the process until it is
// ready, and until it has answered the first run. The two servers alternate; the
// benchmark reports medians. One call does everything, whatever b.N is.
func BenchmarkResident(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("the memory of processes is read from /proc")
	}
	b.Setenv("WEFT_BIN", buildMeasured(b))
	n := manyWaiting()
	servers := []*resident{{name: "waiting=0", data: emptyDir(b)}, {name: fmt.Sprintf("waiting=%d", n), data: waitingDir(b, n, day), waiting: n}}
	for range residentRounds {
		for _, s := range servers {
			s.start(b)
		}
	}
	for _, s := range servers {
		b.Run(s.name, func(b *testing.B) { s.report(b, servers[0]) })
	}
}

// resident is a server that is started again and again.
type resident struct {
	name, data string
	waiting    int

	ready, first, rss, heap []float64
}

// emptyDir makes a data directory with the same plugins and no runs.
func emptyDir(b *testing.B) string {
	data := b.TempDir()
	h := hosttest.New(b, hosttest.Config{Data: data})
	h.Load(b, "tinygo", "human", "approval", "sleeper")
	h.Stop(b)
	return data
}

// buildMeasured builds the server with the file that returns unused memory.
func buildMeasured(b *testing.B) string {
	b.Helper()
	dir, root := b.TempDir(), hosttest.Root()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "cmd", "weft", "memory_measured.go"): filepath.Join(root, "host", "hosttest", "testdata", "memory.go"),
	}})
	if err != nil {
		b.Fatal(err)
	}
	file, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "weft")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", file, "-o", bin, "./cmd/weft")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build the server: %v\n%s", err, out)
	}
	return bin
}

// start starts the server, measures it and kills it.
func (s *resident) start(b *testing.B) {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "s") // socket names must be short
	b.Setenv("WEFT_MEMORY_SOCKET", socket)
	began := time.Now()
	p := hosttest.Serve(b, s.data)
	if status, out := p.Do(b, http.MethodGet, "/ready", nil); status != http.StatusOK {
		b.Fatalf("ready: %d %s", status, out)
	}
	s.ready = append(s.ready, time.Since(began).Seconds())
	if s.waiting > 0 {
		rnd := rand.New(rand.NewPCG(uint64(began.UnixNano()), 0))
		s.answer(b, p, rnd)
	} else {
		id := p.RunNoWait(b, "human", map[string]any{}).HandlerID
		s.finish(b, p, id)
	}
	s.first = append(s.first, time.Since(began).Seconds())
	s.heap = append(s.heap, giveBack(b, socket))
	s.rss = append(s.rss, rss(b, p.PID()))
	if status, out := p.Do(b, http.MethodGet, "/ready", nil); status != http.StatusOK {
		b.Fatalf("no longer ready: %d %s", status, out)
	}
	p.Interrupt(b)
}

// answer answers one of the waiting runs.
func (s *resident) answer(b *testing.B, p *hosttest.Process, rnd *rand.Rand) {
	b.Helper()
	for {
		i := rnd.IntN(s.waiting)
		if waitingKind(i) != "human" {
			continue
		}
		if status, _ := p.Do(b, http.MethodGet, "/handlers/"+waitingID(i), nil); status == http.StatusAccepted {
			s.finish(b, p, waitingID(i))
			return
		}
	}
}

// finish answers a run of human and waits for its end.
func (s *resident) finish(b *testing.B, p *hosttest.Process, id string) {
	b.Helper()
	send(b, &p.Host, id, `{"response":"yes"}`)
	p.Events(b, id, "", nil)
	if status, out := p.Do(b, http.MethodGet, "/handlers/"+id, nil); status != http.StatusOK || !bytes.Contains(out, []byte(`"result":"yes"`)) {
		b.Fatalf("run %s: %d %s", id, status, out)
	}
}

// giveBack makes the server return unused memory, and returns the size of its heap in
// bytes.
func giveBack(b *testing.B, socket string) float64 {
	b.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	out, err := io.ReadAll(c)
	if err != nil {
		b.Fatal(err)
	}
	heap, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return heap
}

// rss returns the resident memory of a process in bytes.
func rss(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb * 1024
		}
	}
	b.Fatalf("process %d has no memory", pid)
	return 0
}

func (s *resident) report(b *testing.B, empty *resident) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(s.ready)*1e3, "ready-ms")
	b.ReportMetric(median(s.first)*1e3, "first-answer-ms")
	b.ReportMetric(median(s.rss)/1e6, "RSS-MB")
	b.ReportMetric(median(s.heap)/1e6, "heap-MB")
	if s.waiting == 0 {
		return
	}
	more := median(s.rss) - median(empty.rss)
	b.ReportMetric(more/1e6, "more-RSS-MB")
	b.ReportMetric(more/float64(s.waiting), "RSS-B/waiting")
	info, err := os.Stat(filepath.Join(s.data, "weft.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(s.waiting), "file-B/waiting")
}
