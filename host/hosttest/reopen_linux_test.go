package hosttest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// failDisk makes every write of a process to a file fail beyond the first byte, as on a
// broken disk; healDisk repairs it. The outcome of a commit during the failure is
// unknown.
func failDisk(t *testing.T, p *hosttest.Process) { limitFiles(t, p, "1") }

func healDisk(t *testing.T, p *hosttest.Process) { limitFiles(t, p, "unlimited") }

func limitFiles(t *testing.T, p *hosttest.Process, soft string) {
	t.Helper()
	out, err := exec.Command("prlimit", "--pid", fmt.Sprint(p.PID()), "--fsize="+soft+":unlimited").CombinedOutput()
	if err != nil {
		t.Fatalf("prlimit: %v: %s", err, out)
	}
}

// reopenings counts how often the server's log says that it opened its store again.
func reopenings(p *hosttest.Process) int {
	return strings.Count(p.Log(), "the store is open again")
}

// A disk that fails during a commit leaves the commit's outcome unknown. The same process
// acknowledges nothing more, reports the failure, opens its store again when possible,
// and continues with everything that it had acknowledged and begun.
func TestDiskThatFails(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	put(t, p, "human", hosttest.Plugin(t, "human-tinygo"))
	put(t, p, "crash", hosttest.BuildPlugin(t, "crash"))
	expect(t, p.Result(t, "counter", in("chat", nil)), "1")
	waiting := p.RunNoWait(t, "human", nil)
	computing := p.RunNoWait(t, "crash", in("s", fields{"key": "k", "spins": spins}))
	p.Events(t, computing.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "ProgressEvent" })
	stream := make(chan error, 1)
	opened := make(chan struct{})
	go func() {
		stream <- readToEnd(t.Context(), p.URL+"/events/"+waiting.HandlerID+"?after_sequence=-1", opened)
	}()
	<-opened

	failDisk(t, p)
	if status, out := p.Do(t, http.MethodPost, "/workflows/counter/run", in("chat", nil)); status != http.StatusServiceUnavailable {
		t.Errorf("a start on a disk that fails: %d %s", status, out)
	}
	if err := <-stream; err != nil {
		t.Errorf("an open stream: %v", err)
	}
	eventually(t, "the server tells why it does not answer", func() bool {
		_, out := p.Do(t, http.MethodGet, "/health", nil)
		return strings.Contains(string(out), `"status":"unhealthy"`) && strings.Contains(string(out), "is being opened again")
	})
	res, err := http.Post(p.URL+"/workflows/counter/run", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a start while the store is closed: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
	}
	eventually(t, "it tries again in vain", func() bool { return strings.Count(p.Log(), "cannot be opened again yet") >= 2 })
	healDisk(t, p)
	eventually(t, "the same process serves again", func() bool {
		status, _ := p.Do(t, http.MethodGet, "/health", nil)
		return status == http.StatusOK
	})
	if got := p.Result(t, "counter", in("chat", nil)); got != "2" && got != "3" {
		t.Errorf("the session counts %s; one start before was acknowledged, and of one the outcome is open", got)
	}
	p.Events(t, computing.HandlerID, "", nil)
	checkReport(t, p, computing.HandlerID, 1)
	if status, out := p.Do(t, http.MethodGet, "/handlers/"+waiting.HandlerID, nil); status != http.StatusAccepted {
		t.Errorf("the run that waits: %d %s", status, out)
	}
	clean(t, data)
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("Ctrl-C exits with %d:\n%s", code, p.Log())
	}
}

// readToEnd reads a stream until the server ends it.
func readToEnd(ctx context.Context, url string, opened chan<- struct{}) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	close(opened)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	buf := make([]byte, 4096)
	for err == nil {
		_, err = res.Body.Read(buf)
	}
	if err.Error() != "EOF" && !strings.Contains(err.Error(), "unexpected EOF") {
		return err
	}
	return nil
}

// Ctrl-C ends a server that cannot open its store, and the next server has all
// acknowledged data.
func TestStopWhileReopening(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	expect(t, p.Result(t, "counter", in("chat", nil)), "1")
	failDisk(t, p)
	p.Do(t, http.MethodPost, "/workflows/counter/run-nowait", in("chat", nil))
	eventually(t, "it tries in vain", func() bool { return strings.Contains(p.Log(), "cannot be opened again yet") })
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("Ctrl-C exits with %d:\n%s", code, p.Log())
	}
	p = hosttest.Serve(t, data)
	if got := p.Result(t, "counter", in("chat", nil)); got != "2" && got != "3" {
		t.Errorf("the session counts %s", got)
	}
	clean(t, data)
}

// reopenFailures is how often the disk fails in TestStormOfDiskFailures.
const reopenFailures = 6

// The storm of TestStorm with a failing disk instead of kills: one process serves
// everything. The disk fails more often than an attempt may be open at crashes, but no
// failure counts as a crash.
func TestStormOfDiskFailures(t *testing.T) {
	rnd := seed(t)
	s := beginStorm(t, rnd)
	for i := range reopenFailures {
		pause(t, rnd, 600*time.Millisecond)
		failDisk(t, s.p)
		eventually(t, "the server has noticed", func() bool { return strings.Count(s.p.Log(), "leaves open what it wrote") > i })
		pause(t, rnd, 300*time.Millisecond)
		healDisk(t, s.p)
		eventually(t, "the server serves again", func() bool { return reopenings(s.p) > i })
		if t.Failed() {
			t.Fatalf("after %d failures", i+1)
		}
	}
	s.end(s.unblocked)
	s.unblocked()
	s.verify()
	clean(t, s.data)
	t.Logf("%d failures, %d runs, %d requests sent again, %d events seen", reopenFailures, s.runs.Load(), s.again.Load(), s.seen.Load())
}

// A server whose data another server has taken over reports this and ends. The lock of
// the directory prevents this unless somebody deletes it.
func TestTakenOver(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	expect(t, p.Result(t, "counter", in("chat", nil)), "1")
	if err := os.Remove(filepath.Join(data, "weft.lock")); err != nil {
		t.Fatal(err)
	}
	other := hosttest.Serve(t, data)
	if status, out := p.Do(t, http.MethodPost, "/workflows/counter/run", in("chat", nil)); status != http.StatusServiceUnavailable {
		t.Errorf("a start at the old server: %d %s", status, out)
	}
	if code, log := p.Wait(); code != 1 || !strings.Contains(log, "another server has taken over "+data) {
		t.Errorf("the old server ended with exit code %d:\n%s", code, log)
	}
	expect(t, other.Result(t, "counter", in("chat", nil)), "2")
	clean(t, data)
}
