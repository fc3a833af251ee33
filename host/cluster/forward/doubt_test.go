package forward_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/cluster/forward"
)

// wantOutcome checks whether an error says that nobody knows what became of the request.
func wantOutcome(t *testing.T, status int, header http.Header, out string, unknown bool) {
	t.Helper()
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || (header.Get("Weft-Outcome") == "unknown") != unknown {
		t.Errorf("%d, %v, %s; unknown is to be %v", status, header, out, unknown)
	}
}

// If the owner goes after it has got a request and no owner follows, the error says that the
// request may have taken effect: without that a client begins its run a second time.
func TestNoOwnerFollows(t *testing.T) {
	tests := []struct {
		method, path string
		unknown      bool
	}{
		{"POST", "/workflows/w/run-nowait", true},
		{"POST", "/handlers/h/cancel", true},
		{"PUT", "/plugins/p", true},
		{"GET", "/runs", false},
	}
	for _, tt := range tests {
		for number, place := range []string{"owner", "other"} {
			t.Run(tt.method+tt.path+" at the "+place, func(t *testing.T) {
				t.Parallel()
				w := newTown(t, 2)
				began := make(chan struct{})
				w.own(w.nodes[0], func(rw http.ResponseWriter, _ *http.Request) {
					gone := w.goneOf()
					close(began)
					<-gone
					rw.WriteHeader(http.StatusServiceUnavailable)
				})
				go func() {
					<-began
					w.own(nil, nil)
				}()
				status, header, out := w.nodes[number].ask(t, tt.method, tt.path, "{}")
				wantOutcome(t, status, header, out, tt.unknown)
			})
		}
	}
}

// The next owner may be the node that was asked. Its refusal of the repetition is not an
// answer either.
func TestRepetitionIsRefusedHere(t *testing.T) {
	w := newTown(t, 2)
	began := make(chan struct{})
	w.own(w.nodes[0], func(http.ResponseWriter, *http.Request) {
		gone := w.goneOf()
		close(began)
		<-gone
		panic(http.ErrAbortHandler)
	})
	go func() {
		<-began
		w.own(w.nodes[1], func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusConflict) })
	}()
	status, header, out := w.nodes[1].ask(t, http.MethodPost, "/handlers/h/cancel", "")
	wantOutcome(t, status, header, out, true)
	if n := w.nodes[1].forward.Stats().Unknown; n != 1 {
		t.Errorf("%d outcomes count as unknown", n)
	}
}

// When the lease lapses while the host works on a request that changes something, the change
// may be there. A host that writes nothing answers under the lease too.
func TestLeaseLapsesAfterAChange(t *testing.T) {
	w := newTown(t, 2)
	owner := w.nodes[0]
	w.own(owner, func(rw http.ResponseWriter, r *http.Request) {
		owner.lease.Store(true)
		if r.URL.Path == "/keys" {
			rw.WriteHeader(http.StatusCreated)
		}
	})
	for _, n := range w.nodes {
		for _, path := range []string{"/keys", "/nothing"} {
			owner.lease.Store(false)
			status, header, out := n.ask(t, http.MethodPost, path, "{}")
			wantOutcome(t, status, header, out, true)
		}
	}
}

// A body that is not kept and was not read by a node that has no host yet goes to the next
// owner. One that was read, of a request that was not done, is refused without doubt.
func TestLargeBodyIsNotRead(t *testing.T) {
	body := strings.Repeat("x", 9<<20)
	w := newTown(t, 2)
	w.own(w.nodes[0], nil)
	absent := make(chan struct{})
	var once sync.Once
	opening := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(absent) })
		forward.Absent(rw, r)
	}))
	w.nodes[0].host.Store(&opening)
	go func() {
		<-absent
		ready := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		w.nodes[0].host.Store(&ready)
	}()
	if status, header, out := w.nodes[0].ask(t, http.MethodPost, "/keys", body); status != http.StatusOK {
		t.Errorf("%d %v %s", status, header, out)
	}
	reads := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		forward.Absent(rw, r)
	}))
	w.nodes[0].host.Store(&reads)
	status, header, out := w.nodes[0].ask(t, http.MethodPost, "/keys", body)
	wantOutcome(t, status, header, out, false)
}

// A request whose body the host does not read stops no other request between two nodes.
func TestUnreadBody(t *testing.T) {
	w := newTown(t, 2)
	held, release := make(chan struct{}), make(chan struct{})
	w.own(w.nodes[0], func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(held)
			<-release
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	var asking sync.WaitGroup
	asking.Go(func() {
		if status, _, out := w.nodes[1].ask(t, http.MethodPost, "/held", strings.Repeat("x", 4<<20)); status != http.StatusOK {
			t.Errorf("%d %s", status, out)
		}
	})
	<-held
	for range 20 {
		if status, _, out := w.nodes[1].ask(t, http.MethodPost, "/other", strings.Repeat("y", 100<<10)); status != http.StatusOK {
			t.Errorf("%d %s", status, out)
		}
	}
	close(release)
	asking.Wait()
}

// Bodies of unknown length count by what they have. Those beyond the bound go through, and
// nothing counts afterwards.
func TestKeptBodies(t *testing.T) {
	w := newTown(t, 1)
	const clients = 40
	all, release := make(chan struct{}, clients), make(chan struct{})
	w.own(w.nodes[0], func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		all <- struct{}{}
		<-release
	})
	var asking sync.WaitGroup
	for range clients {
		asking.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.nodes[0].public.URL+"/keys", io.MultiReader(bytes.NewReader([]byte("short"))))
			if err != nil {
				t.Error(err)
				return
			}
			res, err := w.nodes[0].public.Client().Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_ = res.Body.Close()
		})
	}
	for range clients {
		<-all
	}
	if kept := w.nodes[0].forward.Kept(); kept != clients*int64(len("short")) {
		t.Errorf("%d bytes count as kept", kept)
	}
	close(release)
	asking.Wait()
	w.nodes[0].public.Close() // waits for the handlers
	if kept := w.nodes[0].forward.Kept(); kept != 0 {
		t.Errorf("%d bytes count as kept after all requests", kept)
	}
}

// FuzzInner sends whatever another node may send in the headers between nodes: the host sees
// none of them, an address, and only requests for its own term.
func FuzzInner(f *testing.F) {
	for _, seed := range [][3]string{{"1", "127.0.0.1:1", "1"}, {"1", "[::1]:5", ""}, {"2", "127.0.0.1:1", ""}, {"", "", ""}, {"01", "[fe80::1%e]:1", "0"}, {"18446744073709551616", "a:b", "x"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	certificate, key, err := forward.NewCertificate()
	if err != nil {
		f.Fatal(err)
	}
	leaf := leafOf(f, certificate)
	f.Fuzz(func(t *testing.T, epoch, client, secure string) {
		w := &town{t: t, changed: make(chan struct{})}
		w.tenure, w.end = context.WithCancel(context.Background())
		defer w.end()
		n := w.bare(certificate, key)
		served := false
		w.own(n, func(_ http.ResponseWriter, r *http.Request) {
			served = true
			for name := range r.Header {
				if strings.HasPrefix(name, "Weft-Node-") {
					t.Errorf("the host sees %s", name)
				}
			}
			if r.RemoteAddr != client || !strings.Contains(client, ":") || (r.TLS != nil) != (secure != "") {
				t.Errorf("address %q, TLS %v", r.RemoteAddr, r.TLS != nil)
			}
		})
		answer := httptest.NewRecorder()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/runs", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Weft-Node-Epoch": {epoch}, "Weft-Node-Client": {client}, "Weft-Node-Secure": {secure}, "Weft-Node-Other": {"1"}}
		r.TLS = &tls.ConnectionState{PeerCertificates: leaf}
		n.forward.Server().Handler.ServeHTTP(answer, r)
		if served != (answer.Code == http.StatusOK) || !served && answer.Code != http.StatusMisdirectedRequest && answer.Code != http.StatusBadRequest {
			t.Errorf("served %v, status %d", served, answer.Code)
		}
	})
}

func leafOf(f *testing.F, certificate tls.Certificate) []*x509.Certificate {
	f.Helper()
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		f.Fatal(err)
	}
	return []*x509.Certificate{leaf}
}

// bare adds a node without servers.
func (w *town) bare(certificate tls.Certificate, key []byte) *node {
	n := &node{town: w}
	n.forward = forward.New(forward.Config{Nodes: n, Certificate: certificate, Failed: n.failed.Load, Local: n.local()})
	n.info = cluster.Info{Place: cluster.Place{Epoch: 1}, Self: cluster.Self{Name: "n1", Key: key}, State: cluster.Live}
	w.nodes = append(w.nodes, n)
	w.view.Nodes = append(w.view.Nodes, n.info)
	return n
}
