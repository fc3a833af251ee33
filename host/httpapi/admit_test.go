package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi"
)

// fullHost refuses starts, or records the requests for admission.
type fullHost struct {
	full     bool
	asked    host.StartAsk
	released int
}

func (f *fullHost) AskStart(_ context.Context, ask host.StartAsk) (func(), error) {
	f.asked = ask
	if f.full {
		return nil, &host.Error{Code: host.CodeOverloaded, RetryAfter: 7 * time.Second, Message: "full"}
	}
	return func() { f.released++ }, nil
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a refused start is read")
	return 0, io.EOF
}

// A start is admitted by its path, key and length before its body is read, and the
// admission is released, even if the body is invalid.
func TestStartsAreAskedFirst(t *testing.T) {
	f, full := newFake(t), &fullHost{}
	h := newServer(t, f, func(c *httpapi.Config) { c.Admission = full }).Handler()
	if w := call(t, h, "POST", "/workflows/plain/run", `{}`, "Idempotency-Key", "k"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if a := full.asked; a.Workflow != "plain" || !a.Wait || a.Once.Key != "k" || a.Once.Route != "POST /workflows/plain/run" || a.Bytes != 2 || a.RequestID == "" {
		t.Errorf("asked %+v", a)
	}
	if w := call(t, h, "POST", "/workflows/plain/run-nowait", `{`); w.Code != http.StatusBadRequest || full.asked.Wait {
		t.Errorf("%d %s, asked %+v", w.Code, w.Body, full.asked)
	}
	if full.released < 2 {
		t.Errorf("%d of 2 starts were given back", full.released)
	}
	full.full = true
	for _, path := range []string{"run", "run-nowait"} {
		w := call(t, h, "POST", "/workflows/plain/"+path, `{}`)
		if wantError(t, w, http.StatusServiceUnavailable, host.CodeOverloaded); w.Header().Get("Retry-After") != "7" || w.Header().Get("Connection") != "" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	if w := call(t, h, "POST", "/workflows/none/run", `{}`); w.Code != http.StatusNotFound {
		t.Errorf("an unknown workflow: %d", w.Code)
	}
	if w := call(t, h, "GET", "/handlers", ""); w.Code != http.StatusOK {
		t.Errorf("a listing: %d", w.Code)
	}
	req, _ := http.NewRequest("POST", "http://localhost/workflows/plain/run", unread{t})
	req.ContentLength = 1 << 20
	req.Host = "localhost"
	rec := &headers{head: http.Header{}}
	h.ServeHTTP(rec, req)
	if rec.status != http.StatusServiceUnavailable || rec.head.Get("Connection") != "close" {
		t.Errorf("a long body: %d %v", rec.status, rec.head)
	}
}

// headers is a writer that records the header of an answer.
type headers struct {
	head   http.Header
	status int
}

func (h *headers) Header() http.Header         { return h.head }
func (h *headers) Write(b []byte) (int, error) { return len(b), nil }
func (h *headers) WriteHeader(status int)      { h.status = status }

// With four places, idle connections make room for others, and no more than four are open
// at a time.
func TestConnectionsAreBounded(t *testing.T) {
	s := newServer(t, newFake(t), func(c *httpapi.Config) { c.MaxConnections = 4 })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingListener{Listener: l, most: make(chan int, 100)}
	served := make(chan error, 1)
	go func() { served <- s.Serve(counted) }()
	ask := func(c net.Conn) string {
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err.Error()
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return line
	}
	for i := range 20 { // each stays open as long as the server allows
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // all data has been sent
		if line := ask(c); !strings.Contains(line, "200") {
			t.Fatalf("connection %d: %s", i, line)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	for len(counted.most) > 0 {
		if n := <-counted.most; n > 4 {
			t.Errorf("%d connections were open", n)
		}
	}
}

// Connections stay open between requests as long as no other connection waits for a
// place.
func TestConnectionsOfAFullServerAreKept(t *testing.T) {
	s := newServer(t, newFake(t), func(c *httpapi.Config) { c.MaxConnections = 3 })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	var open [2]*bufio.ReadWriter
	for i := range open {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // all data has been sent
		open[i] = bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
	}
	for round := range 10 {
		for i, c := range open {
			_, _ = c.WriteString("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") // Flush reports its error
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(c.Reader, nil)
			if err != nil {
				t.Fatalf("request %d of connection %d: %v", round, i, err)
			}
			_, err = io.Copy(io.Discard, res.Body)
			if err = errors.Join(err, res.Body.Close()); err != nil || res.Close {
				t.Fatalf("request %d of connection %d: last %v, %v", round, i, res.Close, err)
			}
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// countingListener reports how many of its connections are open, whenever one is opened.
type countingListener struct {
	net.Listener
	open atomic.Int64
	most chan int
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.most <- int(l.open.Add(1))
	return &countedConn{Conn: c, of: l}, nil
}

type countedConn struct {
	net.Conn
	of   *countingListener
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}
