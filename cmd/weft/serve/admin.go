package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/weftrun/weft/cmd/weft/cli"
)

// adminKeyVar has the server's own admin key itself; the flag names a file.
const adminKeyVar = "WEFT_ADMIN_KEY"

// Bounds of the server's own admin key in characters. A key shorter than shortKey could
// be guessed.
const (
	shortKey   = 32
	maxKeyText = 512
)

// readAdminKey returns the server's own admin key, "" if it has none. It removes the key
// from the environment, because processes that the server starts do not need it.
func readAdminKey(file string, log *slog.Logger) (string, error) {
	key, set := os.LookupEnv(adminKeyVar)
	if err := os.Unsetenv(adminKeyVar); err != nil {
		return "", fmt.Errorf("take %s out of the environment: %w", adminKeyVar, err)
	}
	switch {
	case set && key != "" && file != "":
		return "", cli.Usage("--admin-key-file and %s are both given: one admin key is enough", adminKeyVar)
	case key == "":
		return readKeyFile(file, log)
	}
	return checkKey(key, log)
}

// readKeyFile returns the key in a file, "" if no file is named.
func readKeyFile(file string, log *slog.Logger) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others on this machine may read the key", "file", file, "mode", info.Mode().Perm().String())
	}
	return checkKey(string(text), log)
}

// checkKey trims a key and refuses a key that cannot be sent in a header.
func checkKey(key string, log *slog.Logger) (string, error) {
	key = strings.TrimSpace(key)
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if key == "" || len(key) > maxKeyText || strings.ContainsFunc(key, unfit) {
		return "", cli.Usage("a key is one line of 1 to %d visible ASCII characters: 'openssl rand -base64 32' makes a good one", maxKeyText)
	}
	if len(key) < shortKey {
		log.Warn("the key is short: somebody could guess it", "characters", len(key), "better", shortKey)
	}
	return key, nil
}

// checkAddr refuses an address that other machines can reach if the server asks for no
// key, unless a flag allows it.
func checkAddr(o serveOptions, adminKey string, log *slog.Logger) error {
	local, err := isLocal("--addr", o.addr)
	if err != nil || local {
		return err
	}
	if adminKey != "" {
		if o.tlsCert == "" {
			log.Warn("keys are sent in plain text: use --tls-cert and --tls-key, or a proxy that encrypts them", "addr", o.addr)
		}
		return nil
	}
	if o.allowRemote {
		return nil
	}
	return cli.Usage("--addr %q can be reached from other machines, and this server needs no keys: everybody who reaches it can do everything; "+
		"give it an admin key (--admin-key-file FILE, or %s), listen on 127.0.0.1, "+
		"or add --allow-remote (and --allowed-host NAME) if a proxy protects it", o.addr, adminKeyVar)
}

// isLocal reports whether only this machine can reach the address of a flag.
func isLocal(flag, addr string) (bool, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, cli.Usage("%s %q is not a HOST:PORT, such as %s", flag, addr, cli.DefaultAddr)
	}
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback(), nil
}

// encryption reads the certificate. It returns nil if the server has none.
func encryption(o serveOptions) (*tls.Config, error) {
	if o.tlsCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// listen listens at the address.
func listen(o serveOptions) (net.Listener, error) {
	l, err := net.Listen("tcp", o.addr) //nolint:noctx // it takes no time
	if o.orAnyPort && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(o.addr)                 // check has validated it
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0")) //nolint:noctx // the same
	}
	if err != nil {
		return nil, listenError(o.addr, err)
	}
	return l, nil
}

// scheme is the scheme of the server's URL.
func (o serveOptions) scheme() string {
	if o.tlsCert != "" {
		return "https"
	}
	return "http"
}
