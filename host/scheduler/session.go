package scheduler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/requests"
	"github.com/weftrun/weft/host/scheduler/tickets"
	"github.com/weftrun/weft/host/state"
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
	unserved map[string]*unserved

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
