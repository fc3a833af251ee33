package forward_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/cluster/forward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town is a cluster without a store: the test says who owns the sessions.
type town struct {
	t *testing.T

	mu      sync.Mutex // guards the fields below
	view    cluster.View
	tenure  context.Context
	end     context.CancelFunc
	changed chan struct{}
	nodes   []*node
}

// node is a node with its two servers and a host that the test replaces.
type node struct {
	town    *town
	forward *forward.Forwarder
	info    cluster.Info
	public  *httptest.Server
	host    atomic.Pointer[http.Handler] // nil: there is none
	failed  atomic.Bool
	lease   atomic.Bool // the lease has lapsed
	hurried atomic.Int64
}

func newTown(t *testing.T, count int) *town {
	w := &town{t: t, changed: make(chan struct{})}
	w.tenure, w.end = context.WithCancel(context.Background())
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end()
	})
	for range count {
		w.join()
	}
	return w
}

func (w *town) join() *node {
	certificate, key, err := forward.NewCertificate()
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{town: w}
	n.forward = forward.New(forward.Config{Nodes: n, Certificate: certificate, Timeout: 2 * time.Second, Failed: n.failed.Load, Local: n.local()})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	inner := n.forward.Server()
	go func() { _ = inner.ServeTLS(l, "", "") }()
	n.public = httptest.NewServer(n.forward)
	w.t.Cleanup(func() {
		n.public.Close()
		_ = inner.Close()
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	epoch := uint64(len(w.nodes) + 1)
	n.info = cluster.Info{Place: cluster.Place{Epoch: epoch}, Self: cluster.Self{Name: fmt.Sprint("n", epoch), URL: "https://" + l.Addr().String(), Key: key}, State: cluster.Live}
	w.nodes = append(w.nodes, n)
	w.view.Nodes = append(w.view.Nodes, n.info)
	return n
}

// local answers by the host of the node, if there is one.
func (n *node) local() http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if h := n.host.Load(); h != nil {
			(*h).ServeHTTP(rw, r)
			return
		}
		forward.Absent(rw, r)
	})
}

// own makes a node with a host the owner; nil: nobody is.
func (w *town) own(n *node, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave()
	if n != nil {
		handler := http.Handler(h)
		n.host.Store(&handler)
		w.view.Owner = n.info.Epoch
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// leave takes the owner away. mu is held.
func (w *town) leave() {
	for _, n := range w.nodes {
		if n.info.Epoch == w.view.Owner {
			n.host.Store(nil)
		}
	}
	w.view.Owner = 0
	w.end()
	w.tenure, w.end = context.WithCancel(context.Background())
}

func (n *node) Find(ctx context.Context, not uint64) (cluster.Target, error) {
	for {
		n.town.mu.Lock()
		owner, tenure, changed := n.town.view.Node(n.town.view.Owner), n.town.tenure, n.town.changed
		n.town.mu.Unlock()
		if owner != nil && owner.Epoch != not {
			return cluster.Target{Info: *owner, Here: owner.Epoch == n.info.Epoch, Tenure: tenure}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cluster.Target{}, ctx.Err()
		}
	}
}

func (n *node) Lease(context.Context) error {
	if n.lease.Load() {
		return &host.Error{Code: host.CodeUnavailable, Message: "no lease"}
	}
	return nil
}

func (n *node) Known(key []byte) bool {
	for _, i := range n.View().Nodes {
		if i.Open() && bytes.Equal(i.Key, key) {
			return true
		}
	}
	return false
}

func (n *node) Ready() error {
	if n.View().Owner == 0 {
		return errors.New("no node owns the sessions")
	}
	return nil
}

func (n *node) Hurry() { n.hurried.Add(1) }

func (n *node) View() cluster.View {
	n.town.mu.Lock()
	defer n.town.mu.Unlock()
	v := n.town.view
	v.Nodes = append([]cluster.Info(nil), v.Nodes...)
	return v
}

// ask sends a request to a node and returns its answer.
func (n *node) ask(t *testing.T, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.public.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := n.public.Client().Do(r)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, res.Header, err.Error()
	}
	return res.StatusCode, res.Header, string(out)
}

// A request reaches the owner whole, by whichever node, with the client's address and host,
// and without headers that only nodes may send.
func TestForward(t *testing.T) {
	w := newTown(t, 2)
	owner, other := w.nodes[0], w.nodes[1]
	w.own(owner, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Answer", "yes")
		rw.WriteHeader(http.StatusTeapot)
		_ = json.NewEncoder(rw).Encode(map[string]any{"method": r.Method, "path": r.URL.RequestURI(), "body": string(body), "host": r.Host,
			"tls": r.TLS != nil, "header": r.Header, "address": r.RemoteAddr})
	})
	for _, n := range w.nodes {
		status, header, out := n.ask(t, http.MethodPost, "/a%2Fb?q=1&q=2", "hello", "X-Own", "1", "Weft-Node-Client", "6.6.6.6:6", "Weft-Node-Epoch", "9")
		var got struct {
			Method, Path, Body, Host, Address string
			TLS                               bool
			Header                            http.Header
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%d %s: %v", status, out, err)
		}
		if status != http.StatusTeapot || header.Get("X-Answer") != "yes" || got.Method != http.MethodPost || got.Path != "/a%2Fb?q=1&q=2" || got.Body != "hello" ||
			"http://"+got.Host != n.public.URL || got.TLS || got.Header.Get("X-Own") != "1" || !strings.HasPrefix(got.Address, "127.0.0.1:") {
			t.Errorf("%d %v %+v", status, header, got)
		}
		for name := range got.Header {
			if strings.HasPrefix(name, "Weft-Node-") {
				t.Errorf("the host sees the header %s", name)
			}
		}
	}
	if s := other.forward.Stats(); s.Forwarded != 1 || s.Repeated != 0 {
		t.Errorf("counts %+v", s)
	}
}

// What becomes of a request when the owner goes: before it has answered, after the request
// had its effect.
func TestOwnerGoes(t *testing.T) {
	tests := []struct {
		method, path string
		header       []string
		repeated     bool
	}{
		{"GET", "/runs", nil, true},
		{"HEAD", "/runs", nil, true},
		{"POST", "/workflows/w/run", nil, true},
		{"POST", "/workflows/w/run-nowait", []string{"Idempotency-Key", "mine"}, true},
		{"POST", "/events/h", nil, false},
		{"POST", "/events/h", []string{"Idempotency-Key", "mine"}, true},
		{"POST", "/handlers/h/cancel", nil, true},
		{"DELETE", "/cluster/n/drain", nil, true},
		{"POST", "/handlers/h/retry", nil, false},
		{"POST", "/handlers/h/retry", []string{"Idempotency-Key", "mine"}, false}, // the host does not look at the key there
		{"POST", "/keys", []string{"Idempotency-Key", "mine"}, false},
		{"PUT", "/plugins/p", nil, true},
		{"PUT", "/workflows/w", nil, false},
		{"PATCH", "/sessions/s/state", nil, false},
		{"PATCH", "/sessions/s/state", []string{"If-Match", `"1"`}, true},
		{"DELETE", "/plugins/p", nil, false},
	}
	for _, here := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprint(tt.method, tt.path, tt.header, " at the owner ", here), func(t *testing.T) {
				w := newTown(t, 3)
				asked := w.nodes[2]
				if here {
					asked = w.nodes[0]
				}
				began, keys := make(chan struct{}), make(chan string, 2)
				w.own(w.nodes[0], func(rw http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					keys <- r.Header.Get("Idempotency-Key") + string(body)
					gone := w.goneOf()
					close(began)
					<-gone // the host is taken away
					rw.WriteHeader(http.StatusServiceUnavailable)
				})
				go func() {
					<-began
					w.own(w.nodes[1], func(rw http.ResponseWriter, r *http.Request) {
						body, _ := io.ReadAll(r.Body)
						keys <- r.Header.Get("Idempotency-Key") + string(body)
						rw.WriteHeader(http.StatusCreated)
					})
				}()
				status, header, out := asked.ask(t, tt.method, tt.path, "body", tt.header...)
				if !tt.repeated {
					if status != http.StatusServiceUnavailable || header.Get("Weft-Outcome") != "unknown" || header.Get("Retry-After") == "" && !here {
						t.Errorf("%d %v %s", status, header, out)
					}
					return
				}
				if status != http.StatusCreated {
					t.Fatalf("%d %v %s", status, header, out)
				}
				first, second := <-keys, <-keys
				if first != second || strings.HasSuffix(tt.path, "/run") && len(first) < 20 {
					t.Errorf("the repetition differs: %q, %q", first, second)
				}
			})
		}
	}
}

// goneOf is closed when the present owner goes.
func (w *town) goneOf() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tenure.Done()
}

// A repetition that is refused because the request was done before is not an answer to the
// request.
func TestRepetitionIsRefused(t *testing.T) {
	for _, next := range []int{1, 2} { // 2: the node that is asked is the next owner
		w := newTown(t, 3)
		began := make(chan struct{})
		w.own(w.nodes[0], func(http.ResponseWriter, *http.Request) {
			gone := w.goneOf()
			close(began)
			<-gone
			panic(http.ErrAbortHandler)
		})
		go func() {
			<-began
			w.own(w.nodes[next], func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusConflict) })
		}()
		status, header, out := w.nodes[2].ask(t, http.MethodPost, "/handlers/h/cancel", "")
		if status != http.StatusServiceUnavailable || header.Get("Weft-Outcome") != "unknown" {
			t.Errorf("%d %v %s", status, header, out)
		}
	}
}

// Requests wait for an owner, and are refused if there is none for too long.
func TestNoOwner(t *testing.T) {
	w := newTown(t, 2)
	if status, _, out := w.nodes[0].ask(t, http.MethodGet, "/ready", ""); status != http.StatusServiceUnavailable || !strings.Contains(out, "no node owns") {
		t.Errorf("%d %s", status, out)
	}
	if status, _, _ := w.nodes[0].ask(t, http.MethodGet, "/health", ""); status != http.StatusOK {
		t.Errorf("health %d", status)
	}
	asked := make(chan int, 1)
	go func() {
		status, _, _ := w.nodes[0].ask(t, http.MethodPost, "/keys", "body")
		asked <- status
	}()
	w.own(w.nodes[1], func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusCreated) })
	if status := <-asked; status != http.StatusCreated {
		t.Errorf("status %d", status)
	}
	w.own(nil, nil)
	status, header, out := w.nodes[0].ask(t, http.MethodGet, "/runs", "")
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") != "1" || !strings.Contains(out, `"code":"unavailable"`) {
		t.Errorf("%d %v %s", status, header, out)
	}
}

// An answer that the host has read from its memory is written only under the lease, which is
// looked at afterwards. A stream breaks where the lease lapses, without its end.
func TestLease(t *testing.T) {
	w := newTown(t, 2)
	owner := w.nodes[0]
	w.own(owner, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/memory":
			owner.lease.Store(true) // between the reading and the answer
			_, _ = io.WriteString(rw, "old")
		case "/stream":
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(rw, "one")
			_ = http.NewResponseController(rw).Flush()
			owner.lease.Store(true)
			_, _ = io.WriteString(rw, "two")
		}
	})
	for _, n := range w.nodes {
		owner.lease.Store(false)
		// The host may have changed something, so the client must not take this for a refusal.
		if status, header, out := n.ask(t, http.MethodPost, "/memory", ""); status != http.StatusServiceUnavailable || strings.Contains(out, "old") || header.Get("Weft-Outcome") != "unknown" {
			t.Errorf("%d %v %s", status, header, out)
		}
		owner.lease.Store(false)
		if status, header, out := n.ask(t, http.MethodGet, "/memory", ""); status != http.StatusServiceUnavailable || strings.Contains(out, "old") || header.Get("Weft-Outcome") != "" {
			t.Errorf("%d %v %s", status, header, out)
		}
		owner.lease.Store(false)
		if status, _, out := n.ask(t, http.MethodGet, "/stream", ""); status != http.StatusOK || strings.Contains(out, "two") || out == "one" {
			t.Errorf("%d %s", status, out)
		}
	}
}

// Parts of a stream arrive when they are written. A stream whose owner goes breaks without
// its end.
func TestStream(t *testing.T) {
	w := newTown(t, 2)
	next := make(chan string)
	w.own(w.nodes[0], func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case part := <-next:
				_, _ = io.WriteString(rw, part)
				_ = http.NewResponseController(rw).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.nodes[1].public.URL+"/events/h", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { next <- "first" }()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	buffer := make([]byte, 16)
	for _, part := range []string{"first", "second"} {
		if part != "first" {
			next <- part
		}
		if n, err := io.ReadFull(res.Body, buffer[:len(part)]); err != nil || string(buffer[:n]) != part {
			t.Fatalf("%q, %v", buffer[:n], err)
		}
	}
	w.own(nil, nil)
	if n, err := res.Body.Read(buffer); err == nil || err == io.EOF {
		t.Errorf("the stream ends as if the run had ended: %q, %v", buffer[:n], err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Only nodes of the table reach the inner listener.
func TestStrangers(t *testing.T) {
	w := newTown(t, 3)
	owner, closed := w.nodes[0], w.nodes[2]
	reached := false
	w.own(owner, func(http.ResponseWriter, *http.Request) { reached = true })
	stranger, _, err := forward.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "a foreign key": {stranger}} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, ForceAttemptHTTP2: true}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, owner.info.URL+"/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Weft-Node-Client", "127.0.0.1:1")
		r.Header.Set("Weft-Node-Epoch", "1")
		res, err := transport.RoundTrip(r)
		if err == nil {
			_ = res.Body.Close()
		}
		if err == nil && res.StatusCode < 400 || reached {
			t.Errorf("%s: %v, %v", name, res, err)
		}
		transport.CloseIdleConnections()
	}
	w.mu.Lock()
	w.view.Nodes[2].State = cluster.Fenced
	w.mu.Unlock()
	if status, _, out := closed.ask(t, http.MethodGet, "/runs", ""); status != http.StatusServiceUnavailable || reached {
		t.Errorf("a closed node: %d %s", status, out)
	}
	// What answers at the owner's address must have the owner's key.
	w.mu.Lock()
	w.view.Nodes[0].Key = []byte("another")
	w.mu.Unlock()
	if status, _, out := w.nodes[1].ask(t, http.MethodGet, "/runs", ""); status != http.StatusServiceUnavailable || reached {
		t.Errorf("a node with another key: %d %s", status, out)
	}
}

// A large body goes through in parts, and is not kept.
func TestLargeBody(t *testing.T) {
	w := newTown(t, 2)
	w.own(w.nodes[0], func(rw http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(rw, n, err)
	})
	const size = 20 << 20
	for _, n := range w.nodes {
		if status, _, out := n.ask(t, http.MethodPut, "/plugins/p", strings.Repeat("x", size)); status != http.StatusOK || out != fmt.Sprint(size, nil) {
			t.Errorf("%d %s", status, out)
		}
	}
}

// Other nodes look at the table when a node announces that it has left.
func TestAnnounce(t *testing.T) {
	w := newTown(t, 3)
	w.nodes[0].forward.Announce(t.Context())
	for i, n := range w.nodes {
		if got := n.hurried.Load(); got != min(1, int64(i)) {
			t.Errorf("node %d was asked %d times to look", i, got)
		}
	}
}

// No request that can be repeated fails over many changes of the owner, and each has its
// effect once.
func TestManyHandovers(t *testing.T) {
	w := newTown(t, 3)
	var mu sync.Mutex
	done := map[string]int{} // by key, as the store has it
	serve := func(rw http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		gone := w.goneOf()
		mu.Lock()
		if _, there := done[key]; !there {
			done[key] = len(done)
		}
		number := done[key]
		mu.Unlock()
		select {
		case <-gone:
			rw.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = fmt.Fprint(rw, number)
		}
	}
	w.own(w.nodes[0], serve)
	const clients, requests, handovers = 8, 1250, 20
	answers := make(chan string, clients*requests)
	var asking sync.WaitGroup
	for c := range clients {
		asking.Go(func() {
			for i := range requests {
				status, _, out := w.nodes[(c+i)%3].ask(t, http.MethodPost, "/workflows/w/run", "{}")
				if status != http.StatusOK {
					t.Errorf("%d %s", status, out)
					return
				}
				answers <- out
			}
		})
	}
	for i := range handovers {
		for range clients * requests / handovers / 2 {
			<-answers
		}
		w.own(w.nodes[(i+1)%3], serve)
	}
	asking.Wait()
	if len(done) != clients*requests {
		t.Errorf("%d effects of %d requests", len(done), clients*requests)
	}
}
