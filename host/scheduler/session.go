package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/requests"
	"github.com/weftrun/weft/host/scheduler/tickets"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/traced"
)

// session is a session in memory.
type session struct {
	s      *Scheduler
	key    host.SessionKey
	loaded chan struct{} // closed when eng or err is set
	err    error         // of loading

	pins      int       // guarded by Scheduler.mu
	idleSince time.Time // of its entry in the idle list; guarded by Scheduler.mu
	// unserved counts the time without a core of each run; guarded by Scheduler.mu
	unserved map[string]*fair.Unserved

	mu       sync.Mutex // guards what follows; see the package's protocol
	eng      *engine.Session
	state    atomic.Pointer[state.Node]       // eng.State(), for readers without the mutex
	attempts map[uint64]*attempt              // open ones, by invocation
	ended    map[string][]chan requests.Ended // who waits for a run's end
	versions map[string]string                // active run -> module digest
	needs    map[string]*admission.Run        // active run, if an attempt of it was in memory
	// suspended has the records of invocations that wait or sleep.
	suspended map[uint64]*history.Record
	ledger    *history.Ledger // what the journal has of attempts that have not ended
	tail      tail
	tickets   tickets.Table[*attempt] // write tickets
	lastPos   uint64                  // queue position of the newest entry
	// stateBytes is the size of the state as the newest entry left it; 0: there is none.
	stateBytes int64
	dead       bool // purged: nothing may be appended
}

// empty reports whether nothing ever happened in the session.
func (ss *session) empty() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.eng.Seq() == 0
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

// attempt is an open attempt of an invocation. It pins its session.
type attempt struct {
	ss      *session
	inv     uint64
	view    engine.Invocation
	answers Answers
	replay  bool            // it has a record, or ran before
	traced  *traced.Attempt // for its span; nil: there is none, or it was made

	// Guarded by ss.mu.
	running   bool
	cancel    context.CancelFunc // of the current run
	abandoned bool               // nobody wants it: drop it when its guest is out
	parked    bool               // waits for a write ticket
	unparked  bool               // the ticket came free before the guest was out
	resumed   bool               // what it waits for came before the guest was out
	held      bool               // abandoned while its run is blocked
	backoffs  int                // times in a row that the host could not run it
	kept      uint64             // see deaths.CoreNote
	goesOn    bool               // it is abandoned for now only
	tok       *token             // of the current run
	counts    bool               // as one that is in memory, in the run's demand
	history.Spending

	work *admission.Run // set once; Scheduler.mu guards what is in it
	// waits is how often in a row the attempt waited for its module's code; the
	// goroutine of its run uses it.
	waits   int
	service fair.Service // Scheduler.mu guards it; see unserved.go
}

// serving is what counts the attempt's time without a core; nil: a rehearsal has no attempt.
func (at *attempt) serving() *fair.Service {
	if at == nil {
		return nil
	}
	return &at.service
}

// suspectKey is the attempt's key among the suspects.
func (at *attempt) suspectKey() deaths.CoreKey {
	return deaths.CoreKey{Kind: deaths.CoreRun, Tenant: at.ss.key.Tenant, Session: at.ss.key.Session, Invocation: at.inv, Attempt: at.view.Attempt}
}

// tail is what a session has written since its newest snapshot.
type tail struct {
	entries int
	bytes   int
	last    int // bytes of that snapshot
}

// extras is what goes along with a tick: into its journal item, or into its entry before
// the entry is journaled. The zero value is nothing.
type extras struct {
	repeats []host.Repeat // of the request that makes the tick
	kv      []kv.Write    // of the answer that the tick brings
	places  runs          // that the tenant's quota has counted already
	// attach completes the entry, and gives the fuel that is billed with the entry.
	attach func(*engine.Result) (fuel uint64)
}

// runs counts runs of a session that have begun and not ended, and that wait.
type runs struct{ active, waiting int }

// log writes a line about a session. The names of the tenant and the session come first.
func (ss *session) log(ctx context.Context, level slog.Level, message string, args ...any) {
	ss.s.log.Session(ctx, level, message, ss.key, args)
}

// say writes a line about the attempt.
func (at *attempt) say(level slog.Level, message string, args ...any) {
	log := at.ss.s.cfg.Log
	if !log.Enabled(context.Background(), level) {
		return
	}
	line := []any{
		"tenant", at.ss.key.Tenant, "workflow", at.view.Workflow, "handler", at.view.HandlerID, "run", at.view.RunID, "step", at.view.Step,
	}
	log.Log(context.Background(), level, message, append(line, args...)...)
}
