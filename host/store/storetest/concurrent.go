package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weftrun/weft/host"
)

// testConcurrency: while one goroutine appends, the others read and see whole batches in
// order. Modules and values are written meanwhile.
func testConcurrency(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	f.start(running("h", "", 10))
	var others sync.WaitGroup
	for _, fn := range []func(ctx context.Context, s host.Store, round int) error{
		watchSession, watchStream, watchList, writeAside,
	} {
		others.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				if err := fn(ctx, f, round); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	r := running("h", "", 10)
	for n := range 100 {
		r.Steps = uint64(n + 1)
		p := f.part("h", 1)
		p.Runs, p.Stream = []host.Run{r}, []host.StreamRow{events(r, n, 1)}
		extra := running(fmt.Sprintf("h%d", n), "", int64(100+n))
		q := f.part(extra.HandlerID, 1)
		q.Runs, q.Started = []host.Run{extra}, []string{extra.RunID}
		f.append(p, q)
	}
	stop()
	others.Wait()
	epoch, err := f.Claim(f.ctx)
	ok(t, "Claim", err)
	if epoch <= f.epoch {
		t.Errorf("Claim = %d, want more than %d", epoch, f.epoch)
	}
}

// watchSession: a session has as many rows as its position says.
func watchSession(ctx context.Context, s host.Store, _ int) error {
	stored, err := s.LoadSession(ctx, host.SessionKey{Tenant: tenant, Session: "h"})
	if err == nil && uint64(len(stored.Rows)) != stored.Last {
		return fmt.Errorf("a session at %d has %d rows", stored.Last, len(stored.Rows))
	}
	return err
}

// watchStream: a run that has taken n steps has n events.
func watchStream(ctx context.Context, s host.Store, _ int) error {
	h, err := s.Handler(ctx, tenant, "h")
	if err != nil {
		return err
	}
	last, _, err := s.StreamEnd(ctx, tenant, "h")
	if err != nil {
		return err
	}
	if last+1 < int64(h.Run.Steps) {
		return fmt.Errorf("a run of %d steps whose stream ends at %d", h.Run.Steps, last)
	}
	got, err := wholeStream(ctx, s, tenant, "h", -1, 7)
	if err != nil {
		return err
	}
	if int64(len(got)) <= last {
		return fmt.Errorf("a stream that ended at %d has %d events later", last, len(got))
	}
	for i := range got {
		if got[i].Seq != uint64(i) {
			return fmt.Errorf("event %d of the stream has number %d", i, got[i].Seq)
		}
	}
	return nil
}

// watchList: a run that was started together with an event is listed with it.
func watchList(ctx context.Context, s host.Store, _ int) error {
	last, _, err := s.StreamEnd(ctx, tenant, "h")
	if err != nil {
		return err
	}
	counts, err := s.CountRuns(ctx, tenant)
	if err != nil {
		return err
	}
	counted := 0
	for _, n := range counts {
		if n.Workflow == "flow" {
			counted += n.Runs
		}
	}
	if int64(counted) < last+2 {
		return fmt.Errorf("%d running runs at event %d", counted, last)
	}
	runs, err := listed(ctx, s, host.RunQuery{Tenant: tenant, Statuses: []string{"running", "failed"}, Limit: 1000})
	if err == nil && len(runs) < counted {
		err = fmt.Errorf("%d runs listed after %d were counted", len(runs), counted)
	}
	return err
}

// writeAside writes data outside any batch.
func writeAside(ctx context.Context, s host.Store, round int) error {
	name := fmt.Sprintf("m%d", round%10)
	if err := s.PutModule(ctx, module(name)); err != nil {
		return err
	}
	if err := s.SetMeta(ctx, "round", []byte(name)); err != nil {
		return err
	}
	_, err := s.Module(ctx, name)
	return err
}
