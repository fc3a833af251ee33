package serve

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
)

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	err = errors.Join(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	encrypt, err := encryption(serveOptions{tlsCert: cert, tlsKey: key})
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen(serveOptions{addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{})
	server := httpapi.New(httpapi.Config{Runs: h.Runs, Plugins: h.Plugins, Health: h, Addr: l.Addr().String(), MaxConnections: 2, TLS: encrypt})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		if err := errors.Join(server.Shutdown(t.Context()), <-served); err != nil {
			t.Error(err)
		}
	}()

	ask := func(config *tls.Config) (string, error) {
		config.RootCAs = pool
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+"/workflows", nil)
		if err != nil {
			return "", err
		}
		req.Header.Set("Origin", "https://"+l.Addr().String()) // as a page of the server itself
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	// One connection has a place, and keeps it while it idles and nobody waits.
	idle, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }() // the server may have closed it
	if _, err := io.WriteString(idle, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(idle), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.Close {
		t.Fatalf("the first answer: %v, %+v", err, res)
	}
	if body, err := ask(&tls.Config{}); err != nil || body != `{"workflows":[]}` {
		t.Errorf("by TLS: %s, %v", body, err)
	}
	if _, err := ask(&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("TLS 1.1 is taken")
	}
	if _, err := encryption(serveOptions{tlsCert: key, tlsKey: cert}); err == nil {
		t.Error("a certificate that is none is taken")
	}
}

func TestAdminKey(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tt := range []struct {
		name, env, file, want string
		ok                    bool
	}{
		{"none", "", "", "", true},
		{"with a space", "a key", "", "", false},
		{"by the environment", "a-key", "", "a-key", true},
		{"by a file", "", file(" a-key\n"), "a-key", true},
		{"by both", "a-key", file("a-key"), "", false},
		{"an empty file", "", file("\n"), "", false},
		{"two lines", "", file("a\nb"), "", false},
		{"no file", "", filepath.Join(t.TempDir(), "none"), "", false},
	} {
		t.Setenv(adminKeyVar, tt.env)
		got, err := readAdminKey(tt.file, log)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: key %q, error %v", tt.name, got, err)
		}
		if os.Getenv(adminKeyVar) != "" {
			t.Errorf("%s: the key stays in the environment", tt.name)
		}
	}
}

func TestCheckAddr(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, tt := range []struct {
		addr, key string
		remote    bool
		ok        bool
	}{
		{"127.0.0.1:0", "", false, true}, {"localhost:80", "", false, true}, {"[::1]:80", "", false, true}, {"127.0.0.1:0", "k", false, true},
		{":8080", "", false, false}, {"0.0.0.0:80", "", false, false}, {"weft.example:80", "", false, false}, {"10.0.0.1:80", "", false, false},
		{":8080", "k", false, true}, {"weft.example:80", "k", false, true}, {":8080", "", true, true}, {"nonsense", "k", true, false},
	} {
		if err := checkAddr(serveOptions{addr: tt.addr, allowRemote: tt.remote}, tt.key, log); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
