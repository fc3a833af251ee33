package httpapi_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestSlowStreamReaderResumes: a reader that was cut off reconnects after the last
// complete event, and misses nothing.
func TestSlowStreamReaderResumes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeHost, p *pipes) {
		h := newServer(t, f).Handler()
		call(t, h, "POST", "/workflows/hello/run", `{"handler_id":"s","start_event":{"name":"`+strings.Repeat("x", 5000)+`"}}`)
		whole := call(t, h, "GET", "/events/s?after_sequence=-1&include_internal=true", "").Body.String()
		conn := p.dial()
		if _, err := io.WriteString(conn, "GET /events/s?after_sequence=-1&include_internal=true HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		got, took := sips(conn)
		if took < 2*time.Minute || took > 4*time.Minute { // of the header, and of the first events
			t.Errorf("it was cut off after %s, want 2m each for the header and the events", took)
		}
		_, body, _ := strings.Cut(got, "\r\n\r\n")
		end := strings.LastIndex(body, "\n\n") + len("\n\n")
		had := body[:max(end, 0)]
		last := had[strings.LastIndex(had, "id: ")+len("id: "):]
		last, _, _ = strings.Cut(last, "\n")
		if last == "" || len(had) == len(whole) {
			t.Fatalf("it had %q", body)
		}
		rest := call(t, h, "GET", "/events/s?include_internal=true", "", "Last-Event-ID", last).Body.String()
		if had+rest != whole {
			t.Errorf("it had %d bytes, up to event %s, and then %d; all are %d", len(had), last, len(rest), len(whole))
		}
	})
}

// sips reads ten bytes a second until the connection ends.
func sips(conn net.Conn) (got string, took time.Duration) {
	began := time.Now()
	next := time.NewTicker(time.Second)
	defer next.Stop()
	var text strings.Builder
	for sip := make([]byte, 10); ; <-next.C {
		n, err := io.ReadFull(conn, sip)
		text.Write(sip[:n])
		if err != nil {
			return text.String(), time.Since(began)
		}
	}
}
