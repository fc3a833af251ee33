package server_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/server"
	"github.com/weftrun/weft/host/store/sqlite"
)

// failing is a store whose next append fails with an unknown outcome.
type failing struct {
	host.Store
	fail *atomic.Bool
}

// Append implements host.Store.
func (f failing) Append(ctx context.Context, b host.Batch) error {
	if f.fail.Swap(false) {
		return errDisk
	}
	return f.Store.Append(ctx, b)
}

// quietFront is a front without clients.
type quietFront struct{}

func (quietFront) Take(context.Context, *host.Error) error { return nil }
func (quietFront) Shutdown(context.Context) error          { return nil }

// A directory that has another store, or none, after a failure is not accepted as the
// earlier store. The server waits for that store, and then has everything that it had
// acknowledged.
func TestAnotherStoreIsNotOpened(t *testing.T) {
	ctx := t.Context()
	data, aside, other := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "aside"), filepath.Join(t.TempDir(), "other")
	stranger, err := sqlite.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Error(err)
		}
	}
	var fail atomic.Bool
	var refused []string
	hosts, attempt := make(chan *wire.Host, 2), 0
	s, err := server.Open(ctx, server.Config[*wire.Host]{
		Open: func(ctx context.Context, failed *wire.Host) (*wire.Host, error) {
			switch attempt++; attempt {
			case 2:
				move(data, aside)
				move(other, data)
			case 3:
				move(data, other)
			case 4:
				move(aside, data)
			}
			h, err := wire.Open(ctx, wire.Config{Data: data, After: failed, WrapStore: func(s host.Store) host.Store { return failing{s, &fail} }})
			var missing *sqlite.Missing
			if errors.As(err, &missing) {
				refused = append(refused, missing.Code)
			} else if err != nil {
				t.Error(err)
			}
			return h, err
		},
		Put:   func(h *wire.Host) { hosts <- h },
		Front: quietFront{}, Store: data, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	edit := func(h *wire.Host, session string) error {
		_, _, err := h.Runs.EditState(ctx, host.SessionEdit{Tenant: host.DefaultTenant, Session: session, Make: true, State: abi.Raw{0xa0}})
		return err
	}
	first := <-hosts
	if err := edit(first, "kept"); err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running, nil) }()
	fail.Store(true)
	if err := edit(first, "open"); err == nil {
		t.Error("an edit is acknowledged whose commit failed")
	}
	select {
	case second := <-hosts:
		if _, err := second.Runs.Session(ctx, host.DefaultTenant, "kept"); err != nil {
			t.Errorf("what was acknowledged: %v", err)
		}
	case err := <-ended:
		t.Fatalf("the server ended: %v", err)
	}
	if len(refused) != 2 || refused[0] != sqlite.DatabaseOther || refused[1] != sqlite.DatabaseMissing {
		t.Errorf("refused: %q", refused)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}
