package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi"
)

// fronted serves a fake host behind a front.
func fronted(t *testing.T) (front *httpapi.Front, put func() *fakeHost, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front = httpapi.NewFront(httpapi.Config{})
	served := make(chan error, 1)
	go func() { served <- front.Serve(l) }()
	t.Cleanup(func() {
		if err := front.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	put = func() *fakeHost {
		f := newFake(t)
		front.Put(newServer(t, f))
		return f
	}
	return front, put, "http://" + l.Addr().String()
}

// ask returns the answer's status, header and body.
func ask(t *testing.T, method, url string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(out)
}

// Without a server behind it, a front answers with the reason. Waiting requests also
// receive it, streams end, and the next server answers on the same listener.
func TestFront(t *testing.T) {
	front, put, url := fronted(t)
	put()
	waits := make(chan string, 1)
	streams := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		status, header, out := ask(t, http.MethodPost, url+"/workflows/human/run")
		waits <- fmt.Sprint(status, " ", header.Get("Retry-After"), " ", out)
	}()
	status, _, out := ask(t, http.MethodPost, url+"/workflows/human/run-nowait")
	if status != http.StatusOK {
		t.Fatalf("a start: %d %s", status, out)
	}
	id := out[strings.Index(out, `"handler_id":"`)+len(`"handler_id":"`):]
	id = id[:strings.IndexByte(id, '"')]
	go func() {
		res, err := http.Get(url + "/events/" + id + "?after_sequence=-1")
		close(began)
		if err == nil {
			_, err = io.Copy(io.Discard, bufio.NewReader(res.Body))
			_ = res.Body.Close()
		}
		streams <- err
	}()
	<-began
	for { // until the run of the waiting request exists
		if _, _, out := ask(t, http.MethodGet, url+"/handlers"); strings.Count(out, `"handler_id"`) == 2 {
			break
		}
	}
	why := &host.Error{Code: host.CodeUnavailable, Message: "the store is away", RetryAfter: 1500 * time.Millisecond}
	if err := front.Take(t.Context(), why); err != nil {
		t.Fatal(err)
	}
	if got := <-waits; !strings.HasPrefix(got, "503 2 ") || !strings.Contains(got, "the store is away") {
		t.Errorf("the request that waited: %s", got)
	}
	if err := <-streams; !errors.Is(err, io.ErrUnexpectedEOF) { // its run continues
		t.Errorf("the stream: %v", err)
	}
	for _, path := range []string{"/health", "/ready", "/handlers"} {
		status, header, out := ask(t, http.MethodGet, url+path)
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") != "2" || !strings.Contains(out, `"detail":"the store is away","code":"unavailable"`) {
			t.Errorf("%s: %d %s", path, status, out)
		}
		if unhealthy := strings.Contains(out, `"status":"unhealthy"`); unhealthy != (path != "/handlers") {
			t.Errorf("%s: %s", path, out)
		}
	}
	if err := front.Take(t.Context(), why); err != nil {
		t.Errorf("taken twice: %v", err)
	}
	put()
	if status, _, out := ask(t, http.MethodGet, url+"/health"); status != http.StatusOK {
		t.Errorf("with another server: %d %s", status, out)
	}
}

// The page of an allowed origin reads why there is no server, and no other page does.
func TestPageReadsWhyThereIsNoServer(t *testing.T) {
	front := httpapi.NewFront(httpapi.Config{CORSOrigins: []string{"http://example.test"}})
	for origin, want := range map[string]string{"http://example.test": "http://example.test", "http://other.test": ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/workflows", http.NoBody)
		r.Header.Set("Origin", origin)
		front.ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != http.StatusServiceUnavailable || got != want {
			t.Errorf("the page of %s gets %d, allowed: %q", origin, w.Code, got)
		}
		if w.Header().Get("X-Request-Id") == "" || w.Header().Get("Vary") != "Origin" {
			t.Errorf("the headers are %v", w.Header())
		}
	}
}
