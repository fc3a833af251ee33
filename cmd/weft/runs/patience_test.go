package runs

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// busyServer answers the first starts with 503 and a Retry-After, then normally.
type busyServer struct {
	refusals, after int
	starts          []time.Time
}

func (b *busyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, ProtoMajor: 1, ProtoMinor: 1}
	body := `{"handler_id":"h","workflow_name":"w","run_id":"r","status":"running","started_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`
	if strings.HasSuffix(req.URL.Path, "/run-nowait") || strings.HasSuffix(req.URL.Path, "/run") {
		b.starts = append(b.starts, time.Now())
		if len(b.starts) <= b.refusals {
			res.StatusCode, body = http.StatusServiceUnavailable, `{"detail":"too much to do","code":"overloaded"}`
			res.Header.Set("Retry-After", strconv.Itoa(b.after))
		}
	}
	if req.Body != nil {
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	res.Body = io.NopCloser(strings.NewReader(body))
	return res, nil
}

// 'weft run' waits for as long as an overloaded server says, reports this, and gives up
// after two minutes.
func TestRunIsPatient(t *testing.T) {
	for _, tt := range []struct {
		name            string
		refusals, after int
		starts          int
		code            host.Code
	}{
		{"at once", 0, 0, 1, ""},
		{"after two refusals", 2, 7, 3, ""},
		{"never", 1000, 50, 3, host.CodeOverloaded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busyServer{refusals: tt.refusals, after: tt.after}
				c, err := client.New("http://127.0.0.1:1", client.Options{HTTP: &http.Client{Transport: b}})
				if err != nil {
					t.Fatal(err)
				}
				var said bytes.Buffer
				_, err = patientStart(t.Context(), &remote.Conn{Client: c, Errs: &said}, client.StartRequest{Workflow: "w"})
				if host.CodeOf(err) != tt.code && (err != nil || tt.code != "") {
					t.Errorf("the answer is %v, want code %q", err, tt.code)
				}
				if len(b.starts) != tt.starts {
					t.Fatalf("%d starts were sent, want %d", len(b.starts), tt.starts)
				}
				for i := 1; i < len(b.starts); i++ {
					if d := b.starts[i].Sub(b.starts[i-1]); d != time.Duration(tt.after)*time.Second {
						t.Errorf("start %d came %s after the one before, Retry-After is %d s", i, d, tt.after)
					}
				}
				if n := strings.Count(said.String(), "too much to do"); n != tt.starts-1 {
					t.Errorf("%d waits are told in %q", n, said.String())
				}
			})
		})
	}
}
