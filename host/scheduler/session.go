package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/usage"
)

// session is a session in memory.
type session struct {
	s      *Scheduler
	key    host.SessionKey
	loaded chan struct{} // closed when eng or err is set
	err    error         // of loading

	pins      int       // guarded by Scheduler.mu
	idleSince time.Time // of its entry in the idle list; guarded by Scheduler.mu
	taken     bool      // see due.go; guarded by Scheduler.mu
	// unserved counts the time without a core of each run; guarded by Scheduler.mu
	unserved map[string]*unserved

	mu       sync.Mutex // guards what follows; see the package's protocol
	eng      *engine.Session
	state    atomic.Pointer[state.Node] // eng.State(), for readers without the mutex
	attempts map[uint64]*attempt        // open ones, by invocation
	ended    map[string][]chan ended    // who waits for a run's end
	versions map[string]string          // active run -> module digest
	needs    map[string]*admission.Run  // active run, if an attempt of it was in memory
	// suspended has the records of invocations that wait or sleep.
	suspended map[uint64]*history.Record
	ledger    *history.Ledger // what the journal has of attempts that have not ended
	tail      tail
	tickets   []*ticket
	repeats   []host.Repeat  // of the request whose tick is about to be made
	lastPos   uint64         // queue position of the newest entry
	kv        []host.KVWrite // of the answer whose tick is about to be made
	paid      runs           // places that were taken for the tick that is about to be made
	spent     usage.Spent    // by that tick
	// stateBytes is the size of the state as the newest entry left it; 0: there is none.
	stateBytes int64
	dead       bool // purged: nothing may be appended any more
}

// ended is how a run ended, and the queue position at which it did.
type ended struct {
	run host.Run
	pos uint64
}

// errDead is what a tick gets that reaches a session which was purged.
var errDead = &host.Error{Code: host.CodeNotFound, Message: "Handler not found"}

func (s *Scheduler) newSession(key host.SessionKey) *session {
	return &session{s: s, key: key, loaded: make(chan struct{}), attempts: map[uint64]*attempt{},
		ended: map[string][]chan ended{}, unserved: map[string]*unserved{}, versions: map[string]string{}, needs: map[string]*admission.Run{},
		suspended: map[uint64]*history.Record{}, ledger: history.NewLedger()}
}

// begin pins a session that nobody can know yet, as its id was drawn just now:
// the store need not be asked for it. nil: the id was drawn before.
func (s *Scheduler) begin(key host.SessionKey) *session {
	ss := s.newSession(key)
	ss.pins = 1
	ss.eng = engine.New(key, ss.s.graph)
	ss.state.Store(ss.eng.State())
	close(ss.loaded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[key] != nil {
		return nil
	}
	s.sessions[key] = ss
	return ss
}

// acquire pins a session, loading it if need be; with create it is made if the
// store has none.
func (s *Scheduler) acquire(ctx context.Context, key host.SessionKey, create bool) (*session, error) {
	s.mu.Lock()
	if _, ok := s.sessions[key]; !ok {
		err := s.isolated(key)
		if err == nil {
			err = s.suspicion.afterTrials(ctx, key)
		}
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
	}
	ss, ok := s.sessions[key]
	if !ok {
		ss = s.newSession(key)
		s.sessions[key] = ss
	}
	ss.pins++
	barrier := s.barriers[key]
	s.mu.Unlock()

	if !ok {
		// Not bound to this caller's context: others may wait for the same.
		ss.load(context.WithoutCancel(ctx), barrier)
		close(ss.loaded)
	}
	select {
	case <-ss.loaded:
	case <-ctx.Done():
		ss.release()
		return nil, ctx.Err()
	}
	err := ss.err
	if err == nil && !create && ss.empty() {
		err = &host.Error{Code: host.CodeNotFound, Message: "Session not found"}
	}
	if err != nil {
		ss.release()
		return nil, err
	}
	return ss, nil
}

// release gives back a pin. Errors of loading do not stay in memory.
func (ss *session) release() {
	s := ss.s
	s.mu.Lock()
	defer s.mu.Unlock()
	ss.pins--
	if ss.pins > 0 {
		return
	}
	select {
	case <-ss.loaded:
	default:
		return
	}
	if ss.err != nil || ss.eng == nil {
		if s.sessions[ss.key] == ss {
			delete(s.sessions, ss.key)
		}
		return
	}
	if s.sessions[ss.key] == ss {
		ss.idleSince = s.cfg.Now()
		s.idle = append(s.idle, idleSession{ss.key, ss.idleSince})
		s.signal()
	}
}

// empty reports whether nothing ever happened in the session.
func (ss *session) empty() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.eng.Seq() == 0
}

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
	for errors.Is(err, host.ErrErasing) {
		if err = ss.eraseMore(ctx); err == nil {
			eng, l, work, err = ss.foldAll(ctx)
		}
	}
	ss.s.mu.Lock()
	ss.s.queue.Owe(ss.key.Tenant, work)
	ss.s.mu.Unlock()
	ss.s.reads.note(ss.s.now(), err != nil && !history.Unfolds(err) && !errors.Is(err, host.ErrNotFound))
	switch {
	case err == nil:
	case history.Unfolds(err): // first: a module may be what was not found
		ss.err = ss.s.isolate(ss.key, err)
		return
	case !errors.Is(err, host.ErrNotFound):
		ss.log(ctx, slog.LevelError, "a session cannot be loaded", "error", err)
		ss.err = ss.s.unread(ss.key, err)
		return
	}
	ss.eng, ss.ledger = eng, l
	if eng.Seq() > 0 {
		ss.stateBytes = int64(eng.State().Bytes())
	}
	ss.state.Store(eng.State())
	ss.s.mu.Lock()
	delete(ss.s.quarantine, ss.key)
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
	eng, l, work = engine.New(ss.key, ss.s.graph), history.NewLedger(), loadCost
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
	if err == nil && eng.Seq() != last { // the store would refuse what follows, and with it everybody's
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
		switch c := c.(type) {
		case engine.RunEnded:
			delete(ss.versions, c.RunID)
		}
	}
	return nil
}

// follow keeps the versions of the runs that have not ended.
func (ss *session) follow(eng *engine.Session, e *engine.Entry) {
	switch e.Kind {
	case engine.EntryFork, engine.EntryRetry, engine.EntryMigrate:
		ss.versions = eng.Versions()
		return
	}
	if runID, start := e.Begins(); start != nil {
		ss.versions[runID] = start.Version
	}
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

// tick reduces a tick, journals its entry and carries out the commands. It
// returns the entry's queue position. attach may complete the entry. Called
// with mu held.
func (ss *session) tick(t engine.Tick, attach func(*engine.Result)) (engine.Result, uint64, error) {
	if ss.dead {
		return engine.Result{}, 0, errDead
	}
	now, before := ss.s.cfg.Now(), ss.runs()
	res, err := ss.eng.Reduce(ss.s.now(), t)
	ss.worked(ss.eng.Own())
	if err != nil {
		return engine.Result{}, 0, err
	}
	ss.countRuns(before)
	if attach != nil {
		attach(&res)
	}
	if res.Entry == nil {
		return res, ss.lastPos, nil
	}
	ss.follow(ss.eng, res.Entry)
	ss.ledger.Follow(ss.eng, res.Entry, res.Commands)
	it := ss.item(res)
	ss.account(&it, res.Entry)
	ss.observe(&it)
	ss.lastPos = ss.s.cfg.Journal.Append(now, it)
	pos := ss.lastPos
	ss.state.Store(ss.eng.State())                                                      // readers need no mutex: they see what is in the queue already
	if over := ss.carryOut(res.Commands); over && res.Entry.Kind != engine.EntryBegin { // else takeTurns goes on itself
		ss.takeTurns()
	}
	ss.wrote(res.Entry)
	return res, pos, nil
}

// worked puts work that a tick did by itself on the tenant's clock. Called with mu held.
func (ss *session) worked(own uint64) {
	if own == 0 {
		return
	}
	s := ss.s
	s.mu.Lock()
	s.queue.Owe(ss.key.Tenant, own)
	s.counters.OwnMost = max(s.counters.OwnMost, own)
	s.mu.Unlock()
}

// item is what the journal needs of a reduced tick.
func (ss *session) item(res engine.Result) host.JournalItem {
	e := res.Entry
	it := host.JournalItem{
		Key: ss.key, Seq: e.Seq, Entry: history.Entry{Entry: e},
		Invocation: e.Invocation, Attempt: e.Attempt, Finish: e.Finish != nil,
		WakeAt: ss.eng.WakeAt(), At: e.At, Size: history.SizeOf(e), Repeats: ss.repeats, KV: ss.kv,
	}
	ss.repeats, ss.kv = nil, nil
	for i := range it.KV {
		it.Size += int(it.KV[i].Item.Size()) + 128
	}
	if runID, start := e.Begins(); start != nil {
		it.Started = []string{runID}
	}
	for _, digest := range ss.eng.Needs(e) {
		it.Versions = append(it.Versions, host.VersionUse{Digest: digest, Seq: e.Seq})
	}
	if it.Snapshot = e.Snapshot != nil; it.Snapshot && ss.s.cfg.KeepEntries > 0 && e.Seq > ss.s.cfg.KeepEntries {
		it.Cut = e.Seq - ss.s.cfg.KeepEntries
	}
	for _, c := range res.Commands {
		switch c := c.(type) {
		case engine.Publish:
			it.Size += len(c.Event.Body) + 64
			if n := len(it.Stream); n > 0 && it.Stream[n-1].HandlerID == c.HandlerID && it.Stream[n-1].RunID == c.Event.RunID {
				it.Stream[n-1].Events = append(it.Stream[n-1].Events, c.Event)
				continue
			}
			it.Stream = append(it.Stream, host.StreamRow{HandlerID: c.HandlerID, RunID: c.Event.RunID, Events: []host.StreamEvent{c.Event}})
		case engine.RunChanged:
			it.Runs = append(it.Runs, c.Run)
			if e.Kind == engine.EntryFork || e.Kind == engine.EntryRetry {
				it.Started = append(it.Started, c.Run.RunID)
			}
		}
	}
	return it
}

// observe tells of the runs that began and ended by a tick.
func (ss *session) observe(it *host.JournalItem) {
	o, t := ss.s.cfg.Observer, ss.s.cfg.Tracer
	for i := range it.Runs {
		r := &it.Runs[i]
		if !r.Status.Final() {
			continue
		}
		ss.s.logEnded(r)
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

// carryOut does what a tick's commands want, and says whether a run ended. Called
// with mu held.
func (ss *session) carryOut(cmds []engine.Command) (over bool) {
	var changed map[string]host.Run
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.StartAttempt:
			ss.open(c.Invocation, ss.suspended[c.Invocation], ss.s.now())
			delete(ss.suspended, c.Invocation)
		case engine.Abandon:
			ss.settleSuspended(c.Invocation)
			ss.tellSuspended(c)
			delete(ss.suspended, c.Invocation)
			ss.abandon(c.Invocation, c.Held)
			ss.s.calls.takeBack(ss.key, c.Invocation)
		case engine.CallOut:
			ss.callOut(c.Invocation, false)
		case engine.RunChanged:
			if c.Run.Status.Final() {
				if changed == nil {
					changed = map[string]host.Run{}
				}
				changed[c.Run.RunID] = c.Run
			}
		case engine.Mail:
			ss.s.mail(route{ss.key, c.To}, time.Time{})
		case engine.RunEnded:
			delete(ss.versions, c.RunID)
			ss.met(c.RunID, changed[c.RunID].Status)
			ss.s.mu.Lock()
			delete(ss.unserved, c.RunID)
			ss.s.mu.Unlock()
			for _, w := range ss.ended[c.RunID] {
				w <- ended{run: changed[c.RunID], pos: ss.lastPos}
			}
			delete(ss.ended, c.RunID)
			over = true
		}
	}
	if over { // what waited for a worker was not abandoned
		for inv := range ss.suspended {
			ss.settleSuspended(inv)
		}
		gone := func(inv uint64, _ *history.Record) bool { _, ok := ss.eng.Invocation(inv); return !ok }
		maps.DeleteFunc(ss.suspended, gone)
	}
	ss.s.setTimer(ss.key, ss.eng.NextTimer())
	return over
}
