package wire

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox"
	"github.com/weftrun/weft/host/store/postgres"
)

// Standby is what a node of a cluster has ready for a host before it owns the sessions: the
// connections to the store, and the code of plugins. A host that is opened with it takes the
// sessions over sooner.
type Standby struct {
	cfg     Config
	store   *postgres.Store
	sandbox *sandbox.Sandbox
	ready   map[host.PluginVersion]bool // whose code was prepared
}

// Bounds of a standby.
const (
	// standbyEvery is the time between two looks for new plugins, and between two uses of
	// the connections.
	standbyEvery = 10 * time.Second
	// standbyPlugins is how many plugins have their code ready: those with the newest
	// versions.
	standbyPlugins = 64
)

// Prepare opens what a host needs for an entry among the nodes, which need not own the
// sessions. The caller closes the result, or opens a host with it, which then closes it.
// Config must have a StoreURL and a Place.
func Prepare(ctx context.Context, cfg Config) (*Standby, error) {
	s := &Standby{cfg: cfg, ready: map[host.PluginVersion]bool{}}
	var err error
	if s.store, err = openPostgres(ctx, cfg); err != nil {
		return nil, err
	}
	if s.sandbox, err = newSandbox(ctx, cfg, s.store); err == nil {
		err = s.store.Ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Keep keeps the connections and prepares the code of plugins, also of those that are
// uploaded meanwhile, until ctx ends.
func (s *Standby) Keep(ctx context.Context) {
	for {
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug("this node cannot prepare itself for the sessions at the moment", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(standbyEvery):
		}
	}
}

// Refresh uses the connections, and prepares the code of plugins that are new. It is for one
// goroutine at a time.
func (s *Standby) Refresh(ctx context.Context) error {
	if err := s.store.Ready(ctx); err != nil {
		return err
	}
	list, err := s.store.NewestPlugins(ctx, standbyPlugins)
	if err != nil {
		return err
	}
	for _, v := range list {
		if s.ready[v] {
			continue
		}
		inv := host.Invocation{Tenant: v.Tenant, Digest: v.Digest, Limits: s.cfg.Limits.Limits(v.Tenant, v.Name)}
		if _, err := s.sandbox.Prepare(ctx, &inv); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug("the code of a plugin cannot be prepared", "tenant", v.Tenant, "plugin", v.Name, "error", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.ready[v] = true // or it cannot be
	}
	return nil
}

// Close closes a standby that no host was opened with.
func (s *Standby) Close(ctx context.Context) error {
	var err error
	if s.sandbox != nil {
		err = s.sandbox.Close(ctx)
	}
	return errors.Join(err, s.store.Close())
}

// openPostgres opens the store at StoreURL.
func openPostgres(ctx context.Context, cfg Config) (*postgres.Store, error) {
	return postgres.Open(ctx, cfg.StoreURL, postgres.Options{Exclusive: cfg.Place == nil, Shared: cfg.Place != nil, Place: cfg.Place, Wait: storeWait,
		Replica: cfg.StoreReplica, Log: cfg.Log})
}

// newSandbox opens the sandbox of a host that keeps its modules in a store.
func newSandbox(ctx context.Context, cfg Config, store host.Store) (*sandbox.Sandbox, error) {
	cache, compiler := cfg.Code, cfg.Compiler
	if cache == "" && cfg.Data != InMemory {
		cache = filepath.Join(cfg.Data, "cache")
	}
	var err error
	if cache == "" {
		compiler = nil
	} else if cache, err = filepath.Abs(cache); err != nil { // the compiler runs in another folder
		return nil, fmt.Errorf("find the folder of compiled code: %w", err)
	}
	s, err := sandbox.New(ctx, sandbox.Config{
		CacheDir: cache, CacheBytes: cfg.CacheBytes, Compiler: compiler, Source: source{store}, Limits: cfg.Limits.Greatest(), SourceLines: cfg.SourceLines, Log: cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return s, nil
}
