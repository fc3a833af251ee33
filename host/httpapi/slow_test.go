package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/abi"
)

// pipes is a listener whose connections are pipes within the process. They buffer
// nothing, so a peer that does not read stops the other peer at once, and they work in a
// synctest bubble, in which minutes take no time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// bubble serves a fake host on pipes, in a bubble in which time advances when all wait.
func bubble(t *testing.T, test func(t *testing.T, f *fakeHost, p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s := newServer(t, f)
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(p) }()
		test(t, f, p)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// drip sends a text one byte at a time, one per pause, and returns how long the server
// accepted it: until it closed the connection, or had all. A concurrent reader reads the
// server's answer.
func drip(t *testing.T, conn net.Conn, text string, pause time.Duration) (took time.Duration, answer string) {
	t.Helper()
	said := make(chan string, 1)
	go func() {
		out, _ := io.ReadAll(conn) // it ends in whatever way
		said <- string(out)
	}()
	began := time.Now()
	next := time.NewTicker(pause)
	defer next.Stop()
	for i := range len(text) {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			took = time.Since(began)
			return took, <-said
		}
		<-next.C
	}
	took = time.Since(began)
	_ = conn.Close()
	return took, <-said
}

// TestSlowHeader: a client that sends its header one byte at a time is cut off when the
// header's time is over.
func TestSlowHeader(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		request := "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("a", 1000)
		took, answer := drip(t, p.dial(), request, 500*time.Millisecond)
		if took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it was cut off after %s, want 10s", took)
		}
		if strings.Contains(answer, " 200 ") {
			t.Errorf("answer: %q", answer)
		}
	})
}

// TestSilentClient: a client that connects and sends nothing is cut off, too.
func TestSilentClient(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		conn := p.dial()
		began := time.Now()
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it was cut off after %s, want 10s", took)
		}
	})
}

// TestIdleConnection: a connection without further requests ends.
func TestIdleConnection(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		conn := p.dial()
		go func() { _, _ = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") }()
		began := time.Now()
		out, err := io.ReadAll(conn)
		if took := time.Since(began); err != nil || !strings.Contains(string(out), " 200 ") || took < 2*time.Minute || took > 125*time.Second {
			t.Errorf("it ended after %s: %v %q", took, err, out)
		}
	})
}

// TestSlowBody: a client that sends its body one byte at a time gets a 400 when the
// body's time is over.
func TestSlowBody(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		conn := p.dial()
		body := strings.Repeat(" ", 2000)
		if _, err := fmt.Fprintf(conn, "POST /workflows/plain/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(body)); err != nil {
			t.Fatal(err)
		}
		took, answer := drip(t, conn, body, 500*time.Millisecond)
		if took < 30*time.Second || took > 45*time.Second { // includes the time for the rest
			t.Errorf("it was cut off after %s, want 30s and 10s", took)
		}
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, "could not be read to its end") || !strings.Contains(answer, "Connection: close") {
			t.Errorf("answer: %q", answer)
		}
	})
}

// TestSlowBodyOfARefusedRequest: the server does not wait longer for a body that no
// handler reads.
func TestSlowBodyOfARefusedRequest(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		for _, line := range []string{"POST /made/up", "DELETE /handlers/x", "POST /workflows/nobody/run", "GET /health"} {
			conn := p.dial()
			if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n", line); err != nil {
				t.Fatal(err)
			}
			took, answer := drip(t, conn, strings.Repeat(" ", 2000), 500*time.Millisecond)
			if took > 15*time.Second || !strings.HasPrefix(answer, "HTTP/1.1 ") || !strings.Contains(answer, "Connection: close") {
				t.Errorf("%s was cut off after %s: %q", line, took, answer)
			}
		}
	})
}

// slowly reads one byte per pause until the connection ends, and returns how long that
// took.
func slowly(conn net.Conn, pause time.Duration) time.Duration {
	began := time.Now()
	next := time.NewTicker(pause)
	defer next.Stop()
	for one := make([]byte, 1); ; <-next.C {
		if _, err := conn.Read(one); err != nil {
			return time.Since(began)
		}
	}
}

// TestSlowReader: a client that reads its answer one byte at a time is cut off.
func TestSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeHost, p *pipes) {
		h := newServer(t, f).Handler()
		for i := range 40 {
			call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"h%02d"}`, i))
		}
		conn := p.dial()
		if _, err := io.WriteString(conn, "GET /handlers HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := slowly(conn, 500*time.Millisecond); took < 2*time.Minute || took > 125*time.Second {
			t.Errorf("it was cut off after %s, want 2m", took)
		}
	})
}

// TestSlowStreamReader: a client that reads its events that slowly is cut off, too.
func TestSlowStreamReader(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeHost, p *pipes) {
		call(t, newServer(t, f).Handler(), "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)
		conn := p.dial()
		if _, err := io.WriteString(conn, "GET /events/s?after_sequence=-1&include_internal=true HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := slowly(conn, time.Second); took < 2*time.Minute || took > 125*time.Second {
			t.Errorf("it was cut off after %s, want 2m", took)
		}
	})
}

// raw sends bytes unchanged and returns the status of the answer.
func raw(t *testing.T, p *pipes, request string) int {
	t.Helper()
	conn := p.dial()
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.WriteString(conn, request) }() // the server may stop to read
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Errorf("%.60q: %v", request, err)
	}
	return resp.StatusCode
}

// TestLongHeader: a header may have 64 KiB, in one line or in many.
func TestLongHeader(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		const get = "GET /health HTTP/1.1\r\nHost: localhost\r\n"
		many := func(n int) string { return strings.Repeat("X-Many: "+strings.Repeat("a", 54)+"\r\n", n>>6) }
		for _, tt := range []struct {
			name, request string
			want          int
		}{
			{"60 KiB", get + "X-Long: " + strings.Repeat("a", 60<<10) + "\r\n\r\n", http.StatusOK},
			{"70 KiB", get + "X-Long: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
			{"60 KiB of lines", get + many(60<<10) + "\r\n", http.StatusOK},
			{"70 KiB of lines", get + many(70<<10) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
			{"a long path", "GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		} {
			if got := raw(t, p, tt.request); got != tt.want {
				t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
			}
		}
	})
}

// TestMalformedRequests: an invalid HTTP/1.1 request is a 400, and reaches no handler.
func TestMalformedRequests(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeHost, p *pipes) {
		const post = "POST /workflows/plain/run HTTP/1.1\r\nHost: localhost\r\n"
		for _, request := range []string{
			"GET\r\n\r\n",
			"GET /health\r\n\r\n",
			"GET /health HTTP/1.1 extra\r\nHost: localhost\r\n\r\n",
			"G ET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"GET health HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"GET /health HTTP/1.1\r\n\r\n",                                             // no Host
			"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",                       // two
			"GET /health HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",              // no field
			"GET /health HTTP/1.1\r\nHost: localhost\r\nX Y: 1\r\n\r\n",                // no field's name
			"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",             // no field's value
			post + "Content-Length: x\r\n\r\n",                                         // no number
			post + "Content-Length: -1\r\n\r\n",                                        // no length
			post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",                  // two lengths
			post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",           // no chunk
			"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03aaaaaaaaaaaaaaaaaaaa\r\n\r\n", // TLS
		} {
			if got := raw(t, p, request); got != http.StatusBadRequest {
				t.Errorf("%.70q: status %d, want 400", request, got)
			}
		}
	})
}

// TestDeepBodies: a value that nests too deep is refused with a 400 wherever a body is
// read, even if it is far too deep: recursion does not depend on a client's data.
func TestDeepBodies(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	call(t, h, "POST", "/workflows/human/run-nowait", `{"handler_id":"h"}`)
	for _, depth := range []int{abi.MaxValueDepth + 10, 1_000_000} {
		for _, kind := range []struct{ open, end string }{{"[", "]"}, {`{"a":`, "}"}} {
			deep := strings.Repeat(kind.open, depth) + "1" + strings.Repeat(kind.end, depth)
			for _, c := range []struct{ method, path, body string }{
				{"POST", "/workflows/plain/run", deep},
				{"POST", "/workflows/plain/run", `{"start_event":{"a":` + deep + `}}`},
				{"POST", "/workflows/plain/run", `{"context":` + deep + `}`},
				{"POST", "/events/h", `{"event":{"type":"HumanResponseEvent","value":{"a":` + deep + `}}}`},
				{"PATCH", "/sessions/h/state", `{"a":` + deep + `}`},
				{"PUT", "/workflows/both", `{"settings":` + deep + `}`},
			} {
				w := call(t, h, c.method, c.path, c.body, "Content-Type", "application/json")
				if w.Code != http.StatusBadRequest {
					t.Errorf("%s %s, %d deep: %d %s", c.method, c.path, depth, w.Code, w.Body)
				}
			}
		}
	}
}
