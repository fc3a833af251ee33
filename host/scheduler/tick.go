package scheduler

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// tick reduces a tick, journals its entry and carries out the commands. It
// returns the entry's queue position. The caller holds mu.
func (ss *session) tick(t engine.Tick, with extras) (engine.Result, uint64, error) {
	if ss.dead {
		return engine.Result{}, 0, refusal.ErrGone
	}
	now, before := ss.s.cfg.Now(), ss.runs()
	res, err := ss.eng.Reduce(ss.s.now(), t)
	ss.worked(ss.eng.Own()) // also if it is refused: the work is done
	if err != nil {
		return engine.Result{}, 0, err
	}
	ss.countRuns(before, with.places)
	var fuel uint64
	if with.attach != nil {
		fuel = with.attach(&res)
	}
	// A tick that changes nothing is durable when the entry before it is.
	if res.Entry == nil {
		return res, ss.lastPos, nil
	}
	ss.follow(ss.eng, res.Entry)
	ss.ledger.Follow(ss.eng, res.Entry, res.Commands)
	it := ss.item(res, &with)
	ss.account(&it, res.Entry, fuel)
	ss.observe(&it)
	ss.lastPos = ss.s.cfg.Journal.Append(now, it)
	pos := ss.lastPos // the ticks that follow here move lastPos on
	// Readers need no mutex: they see what is in the queue already.
	ss.state.Store(ss.eng.State())
	// A run that was begun by takeTurns and ends at once must not begin the next one here:
	// takeTurns begins the next one by itself. Otherwise the stack would grow with the queue.
	if over := ss.carryOut(res.Commands); over && res.Entry.Kind != engine.EntryBegin {
		ss.takeTurns()
	}
	ss.wrote(res.Entry)
	return res, pos, nil
}

// worked puts work that a tick did by itself on the tenant's clock. The caller holds mu.
func (ss *session) worked(own uint64) {
	if own == 0 {
		return
	}
	s := ss.s
	s.mu.Lock()
	s.cores.queue.Owe(ss.key.Tenant, own)
	s.counters.OwnMost = max(s.counters.OwnMost, own)
	s.mu.Unlock()
}

// item is what the journal needs of a reduced tick.
func (ss *session) item(res engine.Result, with *extras) host.JournalItem {
	e := res.Entry
	it := host.JournalItem{
		Key: ss.key, Seq: e.Seq, Entry: history.Entry{Entry: e},
		Invocation: e.Invocation, Attempt: e.Attempt, Finish: e.Finish != nil,
		WakeAt: ss.eng.WakeAt(), At: e.At, Size: history.SizeOf(e), Repeats: with.repeats, KV: with.kv,
	}
	for i := range it.KV {
		it.Size += int(it.KV[i].Item.Size()) + 128
	}
	if runID, start := e.Begins(); start != nil {
		it.Started = []string{runID}
	}
	for _, digest := range ss.eng.Needs(e) {
		it.Versions = append(it.Versions, host.VersionUse{Digest: digest, Seq: e.Seq})
	}
	// Nothing before the snapshot is needed to load the session; what is kept of it serves
	// timelines and forks.
	if it.Snapshot = e.Snapshot != nil; it.Snapshot && ss.s.cfg.KeepEntries > 0 && e.Seq > ss.s.cfg.KeepEntries {
		it.Cut = e.Seq - ss.s.cfg.KeepEntries
	}
	for _, c := range res.Commands {
		switch c := c.(type) {
		case engine.Publish:
			// Events of one run that follow each other are one row.
			it.Size += len(c.Event.Body) + 64
			if n := len(it.Stream); n > 0 && it.Stream[n-1].HandlerID == c.HandlerID && it.Stream[n-1].RunID == c.Event.RunID {
				it.Stream[n-1].Events = append(it.Stream[n-1].Events, c.Event)
				continue
			}
			it.Stream = append(it.Stream, host.StreamRow{HandlerID: c.HandlerID, RunID: c.Event.RunID, Events: []host.StreamEvent{c.Event}})
		case engine.RunChanged:
			it.Runs = append(it.Runs, c.Run)
			// Their entries begin runs by a snapshot, in which Begins finds none.
			if e.Kind == engine.EntryFork || e.Kind == engine.EntryRetry {
				it.Started = append(it.Started, c.Run.RunID)
			}
		}
	}
	return it
}

// observe reports the runs that began and ended by a tick to the log, the tracer and the
// observer.
func (ss *session) observe(it *host.JournalItem) {
	o, t := ss.s.cfg.Observer, ss.s.cfg.Tracer
	for i := range it.Runs {
		r := &it.Runs[i]
		if !r.Status.Final() {
			continue
		}
		ss.s.log.Ended(r)
		if t != nil {
			t.Ran(r)
		}
	}
	if o == nil {
		return
	}
	for range it.Started {
		o.Started(ss.key.Tenant)
	}
	for i := range it.Runs {
		if r := &it.Runs[i]; r.Status.Final() {
			o.Ended(r)
		}
	}
}

// Now and then a session writes a snapshot of itself into its journal, so that it
// is loaded by that and a bounded tail: when enough entries have been written since
// the last one, and at least as many bytes as that one had, so that snapshots of a
// large state are no more than half of what is written.

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

// maxSnapshot bounds the snapshot of a session in its journal, in bytes: with the
// batch around it, it has to fit into a row that can be read again. A session that
// holds more is loaded from further back.
const maxSnapshot = 32 << 20

// note makes a tick for which it is well if it comes too late. The caller holds mu.
func (ss *session) note(t engine.Tick) {
	_, _, err := ss.tick(t, extras{})
	if err != nil && !refusal.TooLate(err) {
		ss.log(context.Background(), slog.LevelError, "a message's tick is refused", "error", err)
	}
}
