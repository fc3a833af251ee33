// Package hosttest opens a whole host in the test's process: the production wiring, a
// real HTTP server on a free loopback port, and the example plugins.
//
// It is imported only by tests.
package hosttest

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/metrics"
	"github.com/weftrun/weft/host/resource"
)

// Host is a running host with its server.
type Host struct {
	*wire.Host
	URL    string
	Client *client.Client

	server *httpapi.Server
	served chan error
}

// Config configures a host. The zero value is a host in memory.
type Config struct {
	// Data is the directory to keep data in. Default: wire.InMemory.
	Data string
	// StoreURL: see wire.Config.
	StoreURL string
	// IdleAfter: see scheduler.Config.
	IdleAfter time.Duration
	Tokens    int
	// Timeout: see wire.Config. Default: suite.RunTimeout.
	Timeout time.Duration
	// Limits: see wire.Config. Default: suite.Limits.
	Limits *limit.Table
	// Resources: see wire.Config.
	Resources *resource.Table
	// ResourceKeys: see wire.Config.
	ResourceKeys *resource.Keys
	// AdminKey: see wire.Config.
	AdminKey string
	// WrapStore: see wire.Config.
	WrapStore func(host.Store) host.Store
	// Now: see wire.Config.
	Now func() time.Time
	// MaxRequests and MaxRequestBytes: see httpapi.Config.
	MaxRequests     int
	MaxRequestBytes int64
	// Log writes the server's log to the test's.
	Log bool
}

// Code is the folder in which the hosts of a test process share compiled code, and
// Compiler is the command that compiles it: see [ShareCode].
var (
	Code     string
	Compiler []string
)

// New opens a host that closes with the test.
func New(tb testing.TB, cfg Config) *Host {
	tb.Helper()
	if cfg.Data == "" {
		cfg.Data = wire.InMemory
	}
	if cfg.Limits == nil {
		cfg.Limits = limit.NewTable(suite.Limits())
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, suite.RunTimeout)
	log := slog.New(slog.DiscardHandler)
	if cfg.Log {
		log = slog.New(slog.NewTextHandler(tb.Output(), nil))
	}
	w, err := wire.Open(tb.Context(), wire.Config{
		Data: cfg.Data, StoreURL: cfg.StoreURL, IdleAfter: cfg.IdleAfter, Tokens: cfg.Tokens, Timeout: cfg.Timeout, Limits: cfg.Limits, Resources: cfg.Resources, ResourceKeys: cfg.ResourceKeys,
		WrapStore: cfg.WrapStore, AdminKey: cfg.AdminKey, Now: cfg.Now, Log: log, Code: Code, Compiler: Compiler,
	})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h := &Host{Host: w, URL: "http://" + l.Addr().String(), served: make(chan error, 1)}
	h.server = httpapi.New(httpapi.Config{Runs: w.Runs, Sessions: w.Runs, Plugins: w.Plugins, Health: w, Access: w.Access, Quotas: w.Quotas, Resources: w.Resources, Admission: w.Runs, Log: log, Addr: l.Addr().String(),
		MaxPlugin: int64(cfg.Limits.Greatest().ModuleBytes), Version: "test", MaxRequests: cfg.MaxRequests, MaxRequestBytes: cfg.MaxRequestBytes, Metrics: metrics.New().Handler()})
	go func() { h.served <- h.server.Serve(l) }()
	if h.Client, err = client.New(h.URL, client.Options{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		h.Client.Close()
		h.Stop(tb)
	})
	return h
}

// Stop closes the host. The end of the test also does. Stop may be called twice.
func (h *Host) Stop(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suite.Hang)
	defer cancel()
	if err := h.server.Shutdown(ctx); err != nil {
		tb.Errorf("stop the server: %v", err)
	}
	if err := h.Close(ctx); err != nil {
		tb.Errorf("close the host: %v", err)
	}
}

// Root is the project's top folder.
func Root() string {
	return suite.Root()
}

// Plugin reads a built example, such as "counter-tinygo". `make plugins`
// builds them.
func Plugin(tb testing.TB, build string) []byte {
	tb.Helper()
	return suite.Plugin(tb, build)
}

// Load uploads built examples under their names: "counter-tinygo" as counter.
func (h *Host) Load(tb testing.TB, lang string, names ...string) {
	tb.Helper()
	for _, name := range names {
		if _, _, err := h.Plugins.Put(tb.Context(), host.DefaultTenant, name, Plugin(tb, name+"-"+lang)); err != nil {
			tb.Fatalf("plugin %s-%s: %v", name, lang, err)
		}
	}
}

// Routes returns the server's routes.
func (h *Host) Routes() []httpapi.Route { return h.server.Routes() }
