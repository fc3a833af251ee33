package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/httpapi"
)

// waits returns a channel that receives a value whenever a stream or a waiting start
// begins to wait.
func waits(f *fakeHost) <-chan struct{} {
	c := make(chan struct{}, 100)
	f.onNext = func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	return c
}

// open opens a stream of events, which caches must not store. The body is closed at the
// end of the test.
func open(t *testing.T, s *httptest.Server, target string) io.ReadCloser {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suite.Hang)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if got := resp.Header.Get("Cache-Control"); resp.StatusCode != http.StatusOK || got != "no-cache" {
		t.Errorf("status %d, Cache-Control = %q", resp.StatusCode, got)
	}
	return resp.Body
}

func readLines(t *testing.T, r *bufio.Reader, n int) string {
	t.Helper()
	var b strings.Builder
	for range n {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestStreamIsLive(t *testing.T) {
	f := newFake(t)
	waiting := waits(f)
	s := httptest.NewServer(newServer(t, f).Handler())
	defer s.Close()
	call(t, s.Config.Handler, "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)

	r := bufio.NewReader(open(t, s, "/events/s"))
	<-waiting
	f.publish("s", host.StreamEvent{Type: "Progress"}, map[string]any{"pct": 2})
	want := "id: 2\ndata: {\"value\":{\"pct\":2},\"qualified_name\":\"slow.Progress\",\"type\":\"Progress\",\"types\":null}\n\n"
	if got := readLines(t, r, 3); got != want {
		t.Errorf("event = %q, want %q", got, want)
	}
	f.publish("s", host.StreamEvent{Type: "StepStateChanged", Base: true, Internal: true}, map[string]any{})
	f.publish("s", host.StreamEvent{Type: "Progress"}, map[string]any{"text": "a\u2028b\u2029c\u0085d\ne", "f": 1.0})
	want = "id: 4\ndata: {\"value\":{\"f\":1.0,\"text\":\"a\\u2028b\\u2029c\\u0085d\\ne\"},\"qualified_name\":\"slow.Progress\",\"type\":\"Progress\",\"types\":null}\n\n"
	if got := readLines(t, r, 3); got != want {
		t.Errorf("event = %q, want %q", got, want)
	}
	f.finish("s", "done")
	if got := readLines(t, r, 3); !strings.HasPrefix(got, "id: 5\ndata: {\"value\":{\"result\":\"done\"}") {
		t.Errorf("event = %q", got)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after the terminal event: %q, %v", rest, err)
	}
}

func TestStreamHeartbeat(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(newServer(t, f, func(c *httpapi.Config) { c.Heartbeat = 10 * time.Millisecond }).Handler())
	defer s.Close()
	call(t, s.Config.Handler, "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)
	r := bufio.NewReader(open(t, s, "/events/s"))
	if got := readLines(t, r, 4); got != ": heartbeat\n\n: heartbeat\n\n" {
		t.Errorf("silence = %q", got)
	}
	// NDJSON has no comments: the next line is an event.
	lines := bufio.NewReader(open(t, s, "/events/s?sse=false&after_sequence=0"))
	if got := readLines(t, lines, 1); !strings.HasPrefix(got, `{"value":{"pct":1}`) {
		t.Errorf("line = %q", got)
	}
	readLines(t, r, 4)
	f.finish("s", nil)
	if got := readLines(t, lines, 1); !strings.HasPrefix(got, `{"value":{"result":null}`) {
		t.Errorf("line = %q", got)
	}
}

func TestStreamPositions(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for range 2 {
		if w := call(t, h, "POST", "/workflows/hello/run", `{"handler_id":"h","start_event":{"name":"x"}}`); w.Code != 200 {
			t.Fatal(w.Body)
		}
	}
	tests := []struct {
		query, lastID string
		want          string // ids
	}{
		{"after_sequence=-1", "", "8 11 13"},
		{"after_sequence=-7", "", "8 11 13"},
		{"after_sequence=0", "", "1 4 6 8 11 13"},
		{"after_sequence=8", "", "11 13"},
		{"after_sequence=+8", "", "11 13"},
		{"after_sequence=-1", "11", "13"},
		{"after_sequence=-1", "13", "204"},
		{"after_sequence=-1", "", "8 11 13"},
		{"", "8", "11 13"},
		{"", "-1", "8 11 13"},
		{"", "", "204"},
		{"", "abc", "204"},
		{"after_sequence=now", "", "204"},
		{"after_sequence=99999999999999999999999", "", "204"},
		{"after_sequence=10&include_internal=TRUE", "", "11 12 13"},
		{"after_sequence=10&include_internal=1&include_children=true", "", "11 13"},
		{"after_sequence=", "", "400"},
		{"after_sequence=abc", "5", "400"},
		{"after_sequence=1.5", "", "400"},
		{"after_sequence=NOW", "", "204"},
		{"after_sequence=Now", "8", "11 13"},
	}
	for _, tt := range tests {
		t.Run(tt.query+" "+tt.lastID, func(t *testing.T) {
			w := call(t, h, "GET", "/events/h?"+tt.query, "", "Last-Event-ID", tt.lastID)
			got := ""
			if w.Code == 200 {
				for _, e := range readSSE(t, w.Body.Bytes(), true) {
					got += fmt.Sprint(" ", e.id)
				}
			} else {
				got = fmt.Sprint(" ", w.Code)
			}
			if got != " "+tt.want {
				t.Errorf("events %s, want %s", got, tt.want)
			}
		})
	}
}

func TestStreamOfAnEndedRunLeavesTheConnectionUsable(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(newServer(t, f).Handler())
	defer s.Close()
	call(t, s.Config.Handler, "POST", "/workflows/plain/run", `{"handler_id":"p"}`)
	for i := range 3 {
		reused := false
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, s.URL+"/events/p", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 204 || len(body) > 0 || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("answer = %d %q %v %v", resp.StatusCode, body, resp.Header, err)
		}
		if reused != (i > 0) {
			t.Errorf("request %d: connection reused = %v", i, reused)
		}
	}
}

func TestStreamEndsWhenPurged(t *testing.T) {
	f := newFake(t)
	waiting := waits(f)
	s := httptest.NewServer(newServer(t, f).Handler())
	defer s.Close()
	call(t, s.Config.Handler, "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)
	body := open(t, s, "/events/s")
	<-waiting
	if w := call(t, s.Config.Handler, "POST", "/handlers/s/cancel?purge=True", ""); w.Body.String() != `{"status":"deleted"}` {
		t.Fatalf("cancel = %s", w.Body)
	}
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("rest = %q, %v", rest, err)
	}
}

// closeSignal reports when a stream is closed.
type closeSignal struct {
	host.Runs
	closed chan struct{}
}

type signalStream struct {
	host.Stream
	once   *sync.Once
	closed chan struct{}
}

func (r closeSignal) Events(ctx context.Context, tenant, id string, after int64) (host.Stream, error) {
	s, err := r.Runs.Events(ctx, tenant, id, after)
	return signalStream{s, new(sync.Once), r.closed}, err
}

func (s signalStream) Close() { s.once.Do(func() { close(s.closed) }) }

func TestStreamIsClosedWhenTheClientGoes(t *testing.T) {
	f := newFake(t)
	waiting := waits(f)
	closed := make(chan struct{})
	s := httptest.NewServer(newServer(t, f, func(c *httpapi.Config) { c.Runs = closeSignal{f, closed} }).Handler())
	defer s.Close()
	call(t, s.Config.Handler, "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)
	body := open(t, s, "/events/s")
	<-waiting
	_ = body.Close()
	<-closed
}

// brokenStream returns an event that cannot be shown.
type brokenStream struct{ host.Runs }

func (brokenStream) Next(context.Context, time.Duration) ([]host.StreamEvent, error) {
	return []host.StreamEvent{{Type: "X", Body: abi.Raw{0xff}}}, nil
}
func (brokenStream) Ended() bool { return false }
func (brokenStream) Close()      {}

func (b brokenStream) Events(context.Context, string, string, int64) (host.Stream, error) {
	return b, nil
}

func TestBrokenStreamIsCutOff(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(newServer(t, f, func(c *httpapi.Config) { c.Runs = brokenStream{f} }).Handler())
	defer s.Close()
	if rest, err := io.ReadAll(open(t, s, "/events/x")); err == nil {
		t.Errorf("a whole stream: %q", rest)
	}
}

func TestShutdown(t *testing.T) {
	f := newFake(t)
	waiting := waits(f)
	server := newServer(t, f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	url := "http://" + l.Addr().String()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()

	call(t, server.Handler(), "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)
	stream, err := client.Get(url + "/events/s?after_sequence=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	<-waiting
	type answer struct {
		status int
		err    error
	}
	waited := make(chan answer, 1)
	go func() {
		resp, err := client.Post(url+"/workflows/slow/run", "application/json", strings.NewReader(`{"handler_id":"t"}`))
		if err != nil {
			waited <- answer{err: err}
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		waited <- answer{resp.StatusCode, err}
	}()
	<-waiting

	ctx, cancel := context.WithTimeout(t.Context(), suite.Hang)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := <-waited; got != (answer{503, nil}) {
		t.Errorf("waiting start = %+v", got)
	}
	body, err := io.ReadAll(stream.Body)
	// A stream that ends cleanly would mean that its run has ended.
	if events := readSSE(t, body, true); !errors.Is(err, io.ErrUnexpectedEOF) || len(events) != 1 {
		t.Errorf("stream = %q, %v", body, err)
	}
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("second Shutdown: %v", err)
	}
	// The runs continue.
	if w := call(t, server.Handler(), "GET", "/handlers/t", ""); w.Code != http.StatusAccepted {
		t.Errorf("run = %d %s", w.Code, w.Body)
	}
}

// TestShutdownOfSlowClients: a client that does not finish its request cannot prevent the
// server from stopping, and does not cause an error of the server.
func TestShutdownOfSlowClients(t *testing.T) {
	server := newServer(t, newFake(t), func(c *httpapi.Config) { c.Grace = time.Millisecond })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// A client with Expect receives 100 Continue when the handler reads.
	const head = "POST /workflows/plain/run HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("answer to the headers = %v, %v", resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), suite.Hang)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
