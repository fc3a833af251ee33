package runs

import (
	"context"
	"time"

	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// patience is how long 'weft run' retries a server that is overloaded.
const patience = 2 * time.Minute

// patientStart starts a run. While the server is overloaded, and the request has had no
// effect, it waits for as long as the server says and tries again.
func patientStart(ctx context.Context, r *remote.Conn, req client.StartRequest) (client.Record, error) {
	waited := time.Duration(0)
	for {
		rec, err := r.Start(ctx, req)
		if host.CodeOf(err) != host.CodeOverloaded {
			return rec, err
		}
		wait := max(remote.RetryAfter(err), time.Second)
		if waited += wait; waited > patience {
			return rec, err
		}
		r.Note("the server has too much to do: trying again in %s", wait)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return rec, err
		}
	}
}
