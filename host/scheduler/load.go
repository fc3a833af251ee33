package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/requests"
)

// load folds the session's entries, and is noted for as long: they may be what ends
// the process.
func (ss *session) load(ctx context.Context, barrier uint64) {
	note := deaths.CoreNote{Kind: deaths.CoreLoad, Tenant: ss.key.Tenant, Session: ss.key.Session}
	slot := ss.s.cfg.Notes.Enter(&note)
	defer ss.s.suspicion.cameBack(note.Key())
	defer ss.s.cfg.Notes.Leave(slot)
	if err := ss.s.cfg.Journal.Wait(ctx, barrier); err != nil {
		ss.err = host.Unavailable(err)
		return
	}
	eng, l, work, err := ss.foldAll(ctx)
	// The session is being deleted: this load finishes the deletion, and gets a new session.
	for errors.Is(err, host.ErrErasing) {
		if err = ss.eraseMore(ctx); err == nil {
			eng, l, work, err = ss.foldAll(ctx)
		}
	}
	ss.s.mu.Lock()
	ss.s.cores.queue.Owe(ss.key.Tenant, work)
	ss.s.mu.Unlock()
	ss.s.reads.Note(ss.s.now(), err != nil && !history.Unfolds(err) && !errors.Is(err, host.ErrNotFound))
	switch {
	case err == nil:
	// Before the look at what was not found: that may be a module that the journal names.
	case history.Unfolds(err):
		ss.err = ss.s.table.isolate(ss.key, err)
		return
	case !errors.Is(err, host.ErrNotFound):
		ss.log(ctx, slog.LevelError, "a session cannot be loaded", "error", err)
		ss.err = ss.s.table.unread(ss.key, err)
		return
	}
	ss.eng, ss.ledger = eng, l
	if eng.Seq() > 0 {
		ss.stateBytes = int64(eng.State().Bytes())
	}
	ss.state.Store(eng.State())
	ss.s.mu.Lock()
	_ = ss.s.table.quarantine.Release(ss.key)
	if err == nil {
		ss.s.counters.Loaded++
	}
	ss.s.mu.Unlock()
	if err == nil {
		ss.recover(l.Copies())
	}
}

// What a tenant's clock advances by when a session of it is loaded, besides each byte
// of its journal as one: about what guests burn in the time that it takes. It is
// counted, not measured.
const (
	loadCost = 100_000 // to ask the store
	foldCost = 16_000  // an entry
)

// foldAll folds what the store has of the session. work is what that took, in units.
func (ss *session) foldAll(ctx context.Context) (eng *engine.Session, l *history.Ledger, work uint64, err error) {
	eng, l, work = engine.New(ss.key, ss.s.cfg.graph), history.NewLedger(), loadCost
	last, err := ss.s.cfg.Journal.Load(ctx, ss.key, func(array []byte) error {
		entries, err := history.Decode(array)
		if err != nil {
			return err
		}
		work += uint64(len(array) + foldCost*len(entries))
		for i := range entries {
			if eng.Skips(&entries[i]) {
				continue
			}
			if err := ss.foldStored(eng, &entries[i], l); err != nil {
				return &history.Unfoldable{Cause: err}
			}
		}
		return nil
	})
	// The store would refuse the next entry of the session, and with it the whole batch.
	if err == nil && eng.Seq() != last {
		err = &history.Unfoldable{Cause: fmt.Errorf("the journal ends at entry %d, its session says %d", eng.Seq(), last)}
	}
	return eng, l, work, err
}

func (ss *session) foldStored(eng *engine.Session, e *engine.Entry, l *history.Ledger) error {
	cmds, err := eng.Fold(e)
	if err != nil {
		return err
	}
	ss.follow(eng, e)
	l.Follow(eng, e, cmds)
	ss.adopted(eng, e)
	for _, c := range cmds {
		if over, ok := c.(engine.RunEnded); ok {
			delete(ss.versions, over.RunID)
		}
	}
	return nil
}

// adopted counts a stored entry towards the next snapshot, and takes what stands
// with one.
func (ss *session) adopted(eng *engine.Session, e *engine.Entry) {
	ss.tail.entries++
	ss.tail.bytes += history.SizeOf(e)
	if e.Snapshot == nil {
		return
	}
	ss.tail = tail{last: len(e.Snapshot)}
	ss.versions = eng.Versions()
}

// recover continues a session that was just folded: it accounts for the time in which
// the server was down, opens the attempts that were open, and begins queued runs whose turn
// has come. Nobody else uses the session yet.
func (ss *session) recover(records map[uint64]*history.Record) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.s
	// Messages may be left of runs that have ended, too.
	for _, to := range ss.eng.MailTo() {
		s.mailer.Post(ss.key, to)
	}
	if ss.eng.Active() == 0 {
		return
	}
	// The session may have left memory in this life of the server: then nothing was down.
	last := ss.eng.Now()
	if last < s.boot {
		if _, _, err := ss.tick(engine.Shift{Lost: ss.lostTo(s.boot)}, extras{}); err != nil {
			ss.log(context.Background(), slog.LevelError, "a session cannot account for the time down", "error", err)
		}
	}
	for _, inv := range ss.eng.Open() {
		// The tick before may have begun a queued run, and opened its attempts.
		if ss.attempts[inv] == nil {
			ss.open(inv, records[inv], max(last, s.boot))
		}
		delete(records, inv)
	}
	// What is left are attempts that wait or sleep, if their runs are alive still.
	maps.DeleteFunc(records, func(inv uint64, _ *history.Record) bool { _, ok := ss.eng.Invocation(inv); return !ok })
	ss.suspended = records
	ss.takeTurns()
	// Calls that are not known here were left open by the previous server.
	for _, inv := range ss.eng.OutCalls() {
		ss.callOut(inv, true)
	}
	s.dues.SetTimer(ss.key, ss.eng.NextTimer())
}

// lostTo returns how far timeouts move because the session was not served between its
// newest entry and the boot. If an attempt was open, the server does not know how long it
// had no core, and counts none of the time.
func (ss *session) lostTo(boot int64) int64 {
	last := ss.eng.Now()
	if len(ss.eng.Open()) > 0 {
		return boot - last
	}
	return ss.s.life.down.Since(last)
}

// holders is a session as its write tickets see it.
type holders struct{ *session }

// Wanted implements tickets.Holders.
func (holders) Wanted(at *attempt) bool { return !at.abandoned }

// Granted implements tickets.Holders.
func (h holders) Granted(at *attempt) {
	// A guest that is still on the way out is run again by at.end.
	if !at.parked {
		at.unparked = true
		return
	}
	at.parked = false
	h.s.cores.ready(at)
}

func (t *table) newSession(key host.SessionKey) *session {
	ss := &session{s: t.s, key: key, loaded: make(chan struct{}), attempts: map[uint64]*attempt{},
		ended: map[string][]chan requests.Ended{}, unserved: map[string]*fair.Unserved{}, versions: map[string]string{}, needs: map[string]*admission.Run{},
		suspended: map[uint64]*history.Record{}, ledger: history.NewLedger()}
	ss.tickets.Init(holders{ss})
	return ss
}
