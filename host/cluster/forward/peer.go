package forward

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/host/cluster"
)

// Times of connections between nodes.
const (
	dialTimeout = 3 * time.Second
	pingAfter   = 2 * time.Second // of silence
	pingTimeout = 3 * time.Second
	headerWait  = 10 * time.Second
	idleConn    = 2 * time.Minute
	mostStreams = 20_000 // of one connection at a time
	// What is received before it is read: of a body, of all bodies of a connection (a body that
	// no host reads must not stop the others), and of an answer.
	streamBody   = 128 << 10
	connBodies   = 4<<20 - 1 // the most that net/http takes
	streamAnswer = 256 << 10
	certificates = 100 * 365 * 24 * time.Hour
	lookTimeout  = time.Second
	// openingWait is how long a request of another node waits for the host of this node,
	// which is being opened.
	openingWait = 5 * time.Second
)

// lookPath is a request of a node to look at the table of nodes.
const lookPath = "/-/look"

// NewCertificate makes the certificate of a node, and the key by which other nodes know it.
// Nothing but the key counts: who is a node, the table of nodes says.
func NewCertificate() (certificate tls.Certificate, key []byte, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weft node"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(certificates),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return certificate, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, keyOf(public), nil
}

func keyOf(public ed25519.PublicKey) []byte {
	sum := sha256.Sum256(public)
	return sum[:]
}

// peerKey returns the key of the other end of a connection. TLS has verified that the other
// end has the private key.
func peerKey(state *tls.ConnectionState) ([]byte, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil, errors.New("the other end has no certificate")
	}
	public, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the certificate of the other end has no Ed25519 key")
	}
	return keyOf(public), nil
}

// peer is the connection to another node.
type peer struct{ *http.Transport }

// peer returns the connection to a node. Those to nodes that are no longer in the table are
// closed.
func (f *Forwarder) peer(target cluster.Target) *peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.peers[target.Epoch]; p != nil {
		return p
	}
	p := &peer{f.transport(target.Info)}
	f.peers[target.Epoch] = p
	context.AfterFunc(target.Tenure, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.peers, target.Epoch)
		p.CloseIdleConnections()
	})
	return p
}

// transport connects to one node, which must have its key.
func (f *Forwarder) transport(node cluster.Info) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{f.cfg.Certificate},
			InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the key; a node has no name
			VerifyConnection: func(state tls.ConnectionState) error {
				key, err := peerKey(&state)
				if err == nil && string(key) != string(node.Key) {
					err = fmt.Errorf("what answers at %s is not the node %q", node.URL, node.Name)
				}
				return err
			},
		},
		ForceAttemptHTTP2: true, DisableCompression: true, IdleConnTimeout: idleConn, MaxIdleConnsPerHost: 2,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamAnswer, SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// splitList yields the elements of a header's list.
func splitList(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(list, ",") {
			if part = strings.TrimSpace(part); part != "" && !yield(part) {
				return
			}
		}
	}
}

// Server returns the server for other nodes. It serves on a listener by ServeTLS.
func (f *Forwarder) Server() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(f.inner),
		ReadHeaderTimeout: headerWait,
		IdleTimeout:       idleConn,
		ErrorLog:          slog.NewLogLogger(f.cfg.Log.Handler(), slog.LevelDebug),
		MaxHeaderBytes:    80 << 10, // what a client may send, and the headers between nodes
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostStreams, MaxReceiveBufferPerStream: streamBody, MaxReceiveBufferPerConnection: connBodies,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{f.cfg.Certificate}, ClientAuth: tls.RequireAnyClientCert,
			VerifyConnection: func(state tls.ConnectionState) error {
				_, err := peerKey(&state)
				return err
			},
		},
	}
}

// inner answers the request of another node.
func (f *Forwarder) inner(w http.ResponseWriter, r *http.Request) {
	key, err := peerKey(r.TLS)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if !f.cfg.Nodes.Known(key) {
		f.cfg.Nodes.Hurry() // the other end may have joined a moment ago, and asks again
		moved(w)
		return
	}
	if r.Method == http.MethodPost && r.URL.Path == lookPath {
		f.cfg.Nodes.Hurry()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	epoch, err := strconv.ParseUint(r.Header.Get(headerEpoch), 10, 64)
	if err != nil || !isAddress(r.Header.Get(headerClient)) {
		http.Error(w, "the request has no valid "+headerEpoch+" and "+headerClient, http.StatusBadRequest)
		return
	}
	r.RemoteAddr = r.Header.Get(headerClient)
	if r.Header.Get(headerSecure) == "" {
		r.TLS = nil // as the client has sent it
	}
	for name := range r.Header {
		if strings.HasPrefix(name, headerPrefix) {
			delete(r.Header, name)
		}
	}
	within, cancel := context.WithTimeout(r.Context(), openingWait)
	target, err := f.cfg.Nodes.Find(within, 0)
	cancel()
	if err != nil || !target.Here || target.Epoch != epoch {
		moved(w)
		return
	}
	g := &guarded{ResponseWriter: w, r: r, nodes: f.cfg.Nodes, tenure: target.Tenure, failed: f.cfg.Failed}
	f.serve(g, r)
	switch g.outcome() {
	case notDone:
		moved(w)
	case unknown, lapsed:
		w.Header().Set(headerMoved, "1")
		if g.lapsed {
			w.Header().Set(headerMoved, movedLapsed)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	case cut:
		panic(http.ErrAbortHandler)
	}
}

// isAddress reports whether a header is the address of a client.
func isAddress(s string) bool {
	_, err := netip.ParseAddrPort(s)
	return err == nil
}

// moved says that this node has done nothing, because it does not own the sessions.
func moved(w http.ResponseWriter) {
	clear(w.Header())
	w.Header().Set(headerMoved, "1")
	w.WriteHeader(http.StatusMisdirectedRequest)
}

// Announce asks all other nodes to look at the table of nodes.
func (f *Forwarder) Announce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	nodes := f.cfg.Nodes.View().Nodes
	done := make(chan struct{}, len(nodes))
	for i := range nodes {
		go func() {
			defer func() { done <- struct{}{} }()
			if !nodes[i].Open() || string(nodes[i].Key) == string(f.ownKey()) {
				return
			}
			t := f.transport(nodes[i])
			defer t.CloseIdleConnections()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, nodes[i].URL+lookPath, http.NoBody)
			if err != nil {
				return
			}
			if answer, err := t.RoundTrip(r); err == nil { // a node that does not answer sees the change at its next beat
				_ = answer.Body.Close()
			}
		}()
	}
	for range nodes {
		<-done
	}
}

func (f *Forwarder) ownKey() []byte {
	private, _ := f.cfg.Certificate.PrivateKey.(ed25519.PrivateKey)
	public, _ := private.Public().(ed25519.PublicKey)
	return keyOf(public)
}
