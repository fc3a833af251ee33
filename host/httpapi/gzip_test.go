package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// unpack returns the decompressed body of an answer.
func unpack(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
		t.Errorf("Content-Length = %s of %d bytes", got, w.Body.Len())
	}
	if w.Header().Get("Content-Encoding") == "" {
		return w.Body.String()
	}
	r, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestGzip: answers of 1 KiB and more are compressed for clients that accept it, and
// their content is the same as for others.
func TestGzip(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for i := range 40 {
		call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"h%02d"}`, i))
	}
	for _, tt := range []struct {
		name, path, accept, takes string
		packed                    bool
	}{
		{"a page", "/handlers", "", "gzip", true},
		{"a page as CBOR", "/handlers", "application/cbor", "gzip", true},
		{"among others", "/handlers", "", "br;q=1.0, GZIP;q=0.5", true},
		{"anything", "/handlers", "", "*", true},
		{"nothing said", "/handlers", "", "", false},
		{"something else", "/handlers", "", "br, zstd", false},
		{"not gzip", "/handlers", "", "*, gzip;q=0", false},
		{"nothing of the kind", "/handlers", "", "*;q=0.0", false},
		{"a short page", "/handlers?limit=1", "", "gzip", false},
		{"a short answer", "/health", "", "gzip", false},
		{"an error", "/handlers/nobody", "", "gzip", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain := call(t, h, "GET", tt.path, "", "Accept", tt.accept)
			w := call(t, h, "GET", tt.path, "", "Accept", tt.accept, "Accept-Encoding", tt.takes)
			if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != tt.packed {
				t.Errorf("compressed: %v; %d bytes, plain %d", packed, w.Body.Len(), plain.Body.Len())
			}
			if got := unpack(t, w); got != plain.Body.String() {
				t.Errorf("%q\nplain %q", got, plain.Body)
			}
			vary := slices.Contains(w.Header().Values("Vary"), "Accept-Encoding")
			if vary != (plain.Body.Len() >= 1024) || !slices.Equal(w.Header().Values("Vary"), plain.Header().Values("Vary")) {
				t.Errorf("Vary = %q, plain %q", w.Header().Values("Vary"), plain.Header().Values("Vary"))
			}
			if w.Header().Get("Content-Type") != plain.Header().Get("Content-Type") {
				t.Errorf("Content-Type = %q", w.Header().Get("Content-Type"))
			}
		})
	}
}

// TestGzipOfALongPage: a page that is written in pieces is compressed as a whole.
func TestGzipOfALongPage(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for i := range 900 {
		call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"h%03d"}`, i))
	}
	plain := call(t, h, "GET", "/handlers", "")
	if plain.Body.Len() < 256<<10 || plain.Header().Get("Content-Length") != "" {
		t.Fatalf("%d bytes are no long page", plain.Body.Len())
	}
	w := call(t, h, "GET", "/handlers", "", "Accept-Encoding", "gzip")
	if got := unpack(t, w); got != plain.Body.String() || w.Body.Len() > plain.Body.Len()/4 {
		t.Errorf("%d bytes, compressed %d, plain %d", len(got), w.Body.Len(), plain.Body.Len())
	}
}

// TestGzipLeavesTags: a body with a strong tag stays one sequence of bytes.
func TestGzipLeavesTags(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	f.sessions.state = f.raw(map[string]any{"a": strings.Repeat("x", 5000)})
	w := call(t, h, "GET", "/sessions/s/state", "", "Accept-Encoding", "gzip")
	if w.Code != http.StatusOK || w.Header().Get("ETag") == "" || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// TestGzipNotOfStreams: events are not compressed, whatever the client accepts.
func TestGzipNotOfStreams(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(newServer(t, f).Handler())
	defer s.Close()
	call(t, s.Config.Handler, "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`)
	for _, query := range []string{"", "&sse=false"} {
		resp, err := s.Client().Get(s.URL + "/events/s?after_sequence=-1" + query) // the client accepts gzip
		if err != nil {
			t.Fatal(err)
		}
		if resp.Uncompressed || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%v", resp.Header)
		}
		_ = resp.Body.Close()
	}
}

// TestGzipAtOnce: more clients than compressors each get their own answer.
func TestGzipAtOnce(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for i := range 20 {
		call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"h%02d"}`, i))
	}
	want := call(t, h, "GET", "/handlers", "").Body.String()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 5 {
				if got := unpack(t, call(t, h, "GET", "/handlers", "", "Accept-Encoding", "gzip")); got != want {
					t.Errorf("%q", got)
					return
				}
			}
		})
	}
	all.Wait()
}
