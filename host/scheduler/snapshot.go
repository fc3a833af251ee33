package scheduler

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// Now and then a session writes a snapshot of itself into its journal, so that it
// is loaded by that and a bounded tail: when enough entries have been written since
// the last one, and at least as many bytes as that one had, so that snapshots of a
// large state are no more than half of what is written.

// maxSnapshot bounds the snapshot of a session in its journal, in bytes: with the
// batch around it, it has to fit into a row that can be read again. A session that
// holds more is loaded from further back.
const maxSnapshot = 32 << 20

// tail is what a session has written since its newest snapshot.
type tail struct {
	entries int
	bytes   int
	last    int // bytes of that snapshot
}

// wrote counts an entry and, if it is time, writes a snapshot behind it. The caller
// holds mu.
func (ss *session) wrote(e *engine.Entry) {
	t, cfg := &ss.tail, &ss.s.cfg
	if e.Snapshot != nil {
		*t = tail{last: len(e.Snapshot)}
		return
	}
	t.entries++
	t.bytes += history.SizeOf(e)
	if t.entries < cfg.SnapshotEntries && t.bytes < cfg.SnapshotBytes || t.bytes < t.last {
		return
	}
	var res engine.Result
	var err error
	held := ss.ledger.Held()
	if most := maxSnapshot - history.SizeOfHeld(held); most > ss.eng.State().Bytes() {
		res, _, err = ss.tick(engine.TakeSnapshot{Held: held, Most: most}, extras{})
	}
	if err != nil {
		// Nothing is lost by it: the journal is whole without.
		ss.log(context.Background(), slog.LevelError, "a session gives no snapshot", "error", err)
	}
	// The session is too large. Perhaps it is smaller when as much again has been written.
	if res.Entry == nil {
		*t = tail{last: maxSnapshot}
	}
}
