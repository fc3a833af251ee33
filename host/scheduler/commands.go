package scheduler

import (
	"context"
	"log/slog"
	"maps"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/requests"
)

// carryOut does what a tick's commands want, and says whether a run ended. The caller
// holds mu.
func (ss *session) carryOut(cmds []engine.Command) (over bool) {
	var changed map[string]host.Run
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.StartAttempt:
			ss.open(c.Invocation, ss.suspended[c.Invocation], ss.s.now())
			delete(ss.suspended, c.Invocation)
		case engine.Abandon:
			// The bill and the span come first: both need the record, which goes then.
			ss.settleSuspended(c.Invocation)
			ss.tellSuspended(c)
			delete(ss.suspended, c.Invocation)
			ss.abandon(c.Invocation, c.Held)
			ss.s.calls.TakeBack(ss.key, c.Invocation)
		case engine.CallOut:
			ss.callOut(c.Invocation, false)
		case engine.RunChanged:
			// The end of the run follows, and needs the record.
			if c.Run.Status.Final() {
				if changed == nil {
					changed = map[string]host.Run{}
				}
				changed[c.Run.RunID] = c.Run
			}
		case engine.Mail:
			ss.s.mailer.Post(ss.key, c.To)
		case engine.RunEnded:
			delete(ss.versions, c.RunID)
			ss.met(c.RunID, changed[c.RunID].Status)
			ss.s.mu.Lock()
			delete(ss.unserved, c.RunID)
			ss.s.mu.Unlock()
			for _, w := range ss.ended[c.RunID] {
				w <- requests.Ended{Run: changed[c.RunID], Pos: ss.lastPos}
			}
			delete(ss.ended, c.RunID)
			over = true
		}
	}
	// Invocations that waited for a worker end with their run, and no command says so.
	if over {
		for inv := range ss.suspended {
			ss.settleSuspended(inv)
		}
		gone := func(inv uint64, _ *history.Record) bool { _, ok := ss.eng.Invocation(inv); return !ok }
		maps.DeleteFunc(ss.suspended, gone)
	}
	ss.s.dues.SetTimer(ss.key, ss.eng.NextTimer())
	return over
}

// takeTurns begins the queued runs of the session whose turn has come. The caller holds
// mu.
func (ss *session) takeTurns() {
	for !ss.dead && ss.eng.TurnDue() {
		if _, _, err := ss.tick(engine.BeginRun{}, extras{}); err != nil {
			ss.log(context.Background(), slog.LevelError, "a queued run cannot begin", "error", err)
			return
		}
	}
}
