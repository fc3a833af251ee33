package clustertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/cluster/clustertest"
)

// peer commits without a pause.
type peer struct{ *clustertest.Members }

func (p peer) Commit(_ context.Context, place cluster.Place) error {
	c, err := p.Begin(place)
	if err != nil {
		return err
	}
	return c.End()
}

// watchFor is how long the memory's table watches an entry: long enough for one of many beats.
const watchFor = 200 * time.Millisecond

func TestMemory(t *testing.T) {
	clustertest.Run(t, func(*testing.T) func() clustertest.Peer {
		m := clustertest.NewMemory()
		m.Watch = func(ctx context.Context) error {
			select {
			case <-time.After(watchFor):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return func() clustertest.Peer { return peer{m.Members()} }
	})
}
