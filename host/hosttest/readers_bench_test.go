package hosttest_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// idleReaders is the number of open streams.
const idleReaders = 10_000

// BenchmarkIdleReaders measures the cost of idle event streams. A server in a separate
// process has 10,000 readers over TCP, each of a waiting run. The benchmark reports by
// how much the server's resident memory and heap grow per reader (after unused memory is
// returned to the system, without the kernel's memory for connections), and how long a
// run takes meanwhile. One call does everything, whatever b.N is.
func BenchmarkIdleReaders(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("the memory of processes is read from /proc")
	}
	b.Setenv("WEFT_BIN", buildMeasured(b))
	socket := filepath.Join(b.TempDir(), "s")
	b.Setenv("WEFT_MEMORY_SOCKET", socket)
	p := hosttest.Serve(b, emptyDir(b), "--log-level", "error")
	id := p.RunNoWait(b, "human", map[string]any{}).HandlerID
	heap := giveBack(b, socket)
	resident := rss(b, p.PID())
	open := openReaders(b, strings.TrimPrefix(p.URL, "http://"), id)
	for range 3 { // stacks shrink by half at each collection
		giveBack(b, socket)
	}
	moreHeap := giveBack(b, socket) - heap
	more := rss(b, p.PID()) - resident
	began := time.Now()
	other := p.RunNoWait(b, "human", map[string]any{}).HandlerID
	if status, out := p.Do(b, http.MethodPost, "/handlers/"+other+"/cancel", nil); status != http.StatusOK {
		b.Fatalf("%d %s", status, out)
	}
	took := time.Since(began)
	send(b, &p.Host, id, `{"response":"yes"}`)
	began = time.Now()
	for _, r := range open {
		if err := r.ended(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // removes the default
	b.ReportMetric(more/idleReaders, "RSS-B/reader")
	b.ReportMetric(moreHeap/idleReaders, "heap-B/reader")
	b.ReportMetric(float64(took.Microseconds())/1e3, "run-ms")
	b.ReportMetric(time.Since(began).Seconds(), "all-told-s")
	p.Interrupt(b)
}

// reader is an open stream.
type reader struct {
	conn net.Conn
	in   *bufio.Reader
}

// openReaders opens the streams, and returns when all of them have received their header.
func openReaders(b *testing.B, addr, id string) []*reader {
	b.Helper()
	open := make([]*reader, idleReaders)
	var wg sync.WaitGroup
	const atOnce = 50
	for first := range atOnce {
		wg.Go(func() {
			for i := first; i < len(open); i += atOnce {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					b.Error(err)
					return
				}
				r := &reader{conn, bufio.NewReaderSize(conn, 512)}
				open[i] = r
				if _, err := fmt.Fprintf(conn, "GET /events/%s HTTP/1.1\r\nHost: localhost\r\n\r\n", id); err != nil {
					b.Error(err)
					return
				}
				if line, err := r.in.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
					b.Errorf("%q %v", line, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.Cleanup(func() {
		for _, r := range open {
			if r != nil {
				_ = r.conn.Close()
			}
		}
	})
	if b.Failed() {
		b.FailNow()
	}
	return open
}

// ended reads to the run's last event.
func (r *reader) ended() error {
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.Contains(line, `"StopEvent"`) {
			return nil
		}
	}
}
