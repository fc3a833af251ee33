package scheduler

import (
	"context"
	"log/slog"
	"maps"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/requests"
)

// extras is what goes along with a tick: into its journal item, or into its entry before
// the entry is journaled. The zero value is nothing.
type extras struct {
	repeats []host.Repeat  // of the request that makes the tick
	kv      []host.KVWrite // of the answer that the tick brings
	places  runs           // that the tenant's quota has counted already
	// attach completes the entry, and gives the fuel that is billed with the entry.
	attach func(*engine.Result) (fuel uint64)
}

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
		ss.s.log.ended(r)
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
