package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/sqlite/faultdisk"
)

// powerLives is the number of lives of the host in TestPowerLoss.
const powerLives = 8

// A whole host runs on a failing disk. In turn, a write or a sync fails and the store is
// opened again in the same process, and the power fails and the files contain what was
// synced and some of the rest. Clients count in separate sessions, and repeat unanswered
// requests. Answered counts are kept, everything is counted once, and a check finds
// nothing after each life.
func TestPowerLoss(t *testing.T) {
	rnd := seed(t)
	p := &powerLoss{t: t, rnd: rnd, data: t.TempDir()}
	p.disk = faultdisk.New(t, p.data, rand.New(rand.NewPCG(rnd.Uint64(), 1)))
	p.open(nil)
	if _, _, err := p.h.Plugins.Put(t.Context(), host.DefaultTenant, "counter", hosttest.Plugin(t, "counter-tinygo")); err != nil {
		t.Fatal(err)
	}
	clients := make([]*powerClient, 4)
	for i := range clients {
		clients[i] = &powerClient{session: fmt.Sprint("s", i)}
	}
	for life := range powerLives {
		before := p.h
		p.live(clients)
		if p.disk.Cut(); life%2 == 0 {
			p.disk.Revive() // a write or a sync has failed; the power is on
		}
		if err := p.h.Close(context.WithoutCancel(t.Context())); err == nil {
			t.Error("a host whose disk failed closes cleanly")
		}
		if life%2 == 1 {
			before = nil // the process ended too
			p.disk.Restore()
		}
		p.disk.Revive()
		if found, sum := faults(t, p.data); len(found) > 0 {
			t.Fatalf("after life %d: %+v: %+v", life, sum, found)
		}
		p.open(before)
	}
	answered := 0
	done := p.help()
	for _, c := range clients {
		if err := c.count(t.Context(), p.h); err != nil {
			t.Error(err)
		}
		answered += c.n
	}
	done()
	if err := p.h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d runs over %d lives", answered, powerLives)
}

type powerLoss struct {
	t    *testing.T
	rnd  *rand.Rand
	data string
	disk *faultdisk.Disk
	h    *wire.Host
}

func (p *powerLoss) open(after *wire.Host) {
	p.t.Helper()
	var err error
	p.h, err = wire.Open(p.t.Context(), wire.Config{Data: p.data, Code: hosttest.Code, Compiler: hosttest.Compiler, After: after, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.t.Fatal(err)
	}
}

// help unblocks runs, which are blocked because they ran during three crashes, until the
// returned function is called.
func (p *powerLoss) help() (done func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for ctx.Err() == nil {
			blocked, _, err := p.h.Runs.List(ctx, host.RunQuery{Tenant: host.DefaultTenant, Blocked: true, Limit: 100})
			for i := range blocked {
				if _, err = p.h.Runs.Resume(ctx, host.DefaultTenant, blocked[i].RunID); err != nil && host.CodeOf(err) != host.CodeConflict {
					break
				}
			}
			if err != nil && ctx.Err() == nil && host.CodeOf(err) != host.CodeConflict {
				p.t.Errorf("help: %v", err)
				return
			}
			select {
			case <-look.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// live lets the clients count until the disk fails.
func (p *powerLoss) live(clients []*powerClient) {
	op := []faultdisk.Op{faultdisk.Write, faultdisk.Sync}[p.rnd.IntN(2)]
	p.disk.Fail(faultdisk.Fault{Op: op, Kind: faultdisk.IOError, N: 1 + p.rnd.IntN(60), Lasting: true})
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	dead := p.h.Dead() // the goroutine may begin after the next life has
	go func() {
		select {
		case <-dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := c.count(ctx, p.h); err != nil {
					if host.CodeOf(err) != host.CodeUnavailable && !errors.Is(err, context.Canceled) {
						p.t.Error(err)
						cancel()
					}
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case <-p.h.Dead():
	case <-time.After(suite.Hang):
		p.t.Fatal("the disk failed, and the host does not know")
	}
	if !p.disk.Heal() {
		p.t.Error("no operation failed")
	}
}

// powerClient counts in its own session.
type powerClient struct {
	session string
	n       int // answered
}

// count counts one further. It repeats the same request until the request is answered.
func (c *powerClient) count(ctx context.Context, h *wire.Host) error {
	run, err := h.Runs.Start(ctx, host.StartRequest{
		Tenant: host.DefaultTenant, Workflow: "counter", SessionID: c.session, Wait: true, Event: abi.Event{Body: abi.EmptyMap},
		Once: host.Once{Route: "run", Key: fmt.Sprint(c.session, "-", c.n), Hash: "h"},
	})
	if err != nil {
		return err
	}
	c.n++
	got, err := abi.ToJSON(run.Result.Body)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`{"result":%d}`, c.n); string(got) != want {
		return fmt.Errorf("session %s counts %s, want %s", c.session, got, want)
	}
	return nil
}
