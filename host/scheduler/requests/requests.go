// Package requests carries out what clients ask of runs and sessions: it checks a request,
// waits for its tenant's turn, has a session do one thing, and answers when that is durable.
//
// It must not depend on how sessions are loaded and ticked, or how guests run.
package requests

import (
	"context"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/edits"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/versions"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// Session is a session in memory. It is pinned until Release. Each method takes the
// session's mutex. If the session was purged, the error is [refusal.ErrGone]. pos is the
// queue position of what was done; rows are the records of the request's key, which become
// durable with it.
type Session interface {
	continuation.Session

	// Start begins the run of t as req asks.
	Start(ctx context.Context, t engine.StartRun, req *host.StartRequest, rows []host.Repeat) (Begun, error)
	// Import begins an empty session by what was imported.
	Import(imp *continuation.Imported, wait bool, rows []host.Repeat) (Begun, error)
	// EndOf returns what gets the end of a run that has not ended; nil: it has ended. Forget
	// takes that back.
	EndOf(runID string) (end <-chan Ended, pos uint64)
	Forget(runID string, end <-chan Ended)
	// Takes returns the version of a run that takes events; false: the run has ended, or ends.
	Takes(runID string) (version string, ok bool)
	// Post gives an event to a run.
	Post(ctx context.Context, t engine.PostEvent, rows []host.Repeat) (d host.Delivery, pos uint64, err error)
	// Cancel cancels a run; end gets its end. With purge it deletes the run's handler, whose
	// latest run may be a newer one, as soon as the handler has no run: end is nil then. The
	// error is ErrMail while the session has messages to deliver.
	Cancel(run host.Run, purge bool) (pos uint64, end <-chan Ended, err error)
	// Pause, Resume and ResumeAnew tick a run, and return its record. ResumeAnew continues a
	// blocked run without the records of the attempts that were cut off.
	Pause(runID string) (rec host.Run, pos uint64, err error)
	Resume(runID string) (rec host.Run, pos uint64, err error)
	ResumeAnew(runID string) (rec host.Run, pos uint64, err error)
	// Root returns the state.
	Root() (root *state.Node, pos uint64)
}

// Begun is a run that a request has begun.
type Begun struct {
	Run host.Run
	End <-chan Ended // gets the run's end if the request waits for it, else nil
	Pos uint64       // queue position of the run's first entry
}

// Ended is how a run ended, and the queue position at which it did.
type Ended struct {
	Run host.Run
	Pos uint64
}

// Edited is a session whose state is edited, and the result.
type Edited interface {
	// Pin pins the session for package edits.
	Pin(ctx context.Context, key host.SessionKey, create bool) (edits.Session, error)
	// Result returns the state after the edit, the position of the edit's entry, or of the
	// newest entry if the edit changed nothing, and whether the edit created the session. The
	// position is 0 if the edit was refused.
	Result() (root *state.Node, pos uint64, created bool)
}

// Sessions has the sessions in memory. Its methods may be called from any goroutine.
type Sessions interface {
	// Pin pins a session, and loads it if need be. With create, a session that does not exist
	// is made.
	Pin(ctx context.Context, key host.SessionKey, create bool) (Session, error)
	// New pins a session whose id was drawn just now; nil: the id is taken.
	New(key host.SessionKey) Session
	// Edited returns a session to edit, which is not pinned yet.
	Edited(rows []host.Repeat) Edited
	// Erase begins to delete a session. The error is ErrMail while it has messages to deliver.
	Erase(ctx context.Context, key host.SessionKey) error
	// PurgeQuarantined deletes the handler of a run whose session did not load for the given
	// error. Errors that say nothing of the session are returned.
	PurgeQuarantined(run host.Run, loading error) (pos uint64, err error)
}

// Quotas is the part of the tenants' quotas that requests ask before they reach a session.
type Quotas interface {
	// Ready refuses a run that exceeds the quotas of a tenant, and asks the store if need be.
	Ready(ctx context.Context, tenant string) error
	// Grow refuses what a client would add to a session.
	Grow(ctx context.Context, tenant string) error
}

// Config says what a [Service] works with. All fields must be set.
type Config struct {
	Sessions  Sessions
	Past      *history.Reader
	Store     handlers.Store
	Journal   continuation.Journal
	Modules   versions.Source
	Resources host.Resources
	Limits    *limit.Table
	Quotas    Quotas
	Keys      *idempotency.Keys
	Reserved  *handlers.Reservations
	Gate      *admission.Gate
	// Timeout of runs whose manifest names none; below 0: they have none.
	Timeout time.Duration
	// Graph returns the graph of a version, and Readable brings a version into memory.
	Graph    func(version string) (*engine.Graph, error)
	Readable func(version string) error
	// Accepting refuses requests while the server stops or its store is down, and Taking
	// also those that would add to a journal that cannot keep up. Stopped is closed when the
	// server begins to stop.
	Accepting func() error
	Taking    func(tenant string) error
	Stopped   <-chan struct{}
	// AskStart admits a run; see host.Admission.
	AskStart func(ctx context.Context, ask host.StartAsk) (release func(), err error)
	// Work begins work of at most so many units for a request, on its tenant's clock; 0:
	// any number. The caller calls done at the end of the work.
	Work func(ctx context.Context, tenant string, most uint64) (m *work.Meter, done func())
	// Settle delivers the messages of a session, and returns the position at which they are
	// delivered.
	Settle func(ctx context.Context, key host.SessionKey) (pos uint64, err error)
	// Rehearse and Play: see continuation.Config.
	Rehearse func(open engine.AttemptOpen, record []engine.CallRecord, pending *engine.Pending) continuation.Rehearsal
	Play     func(ctx context.Context, inv host.Invocation) (host.InvocationResult, error)
	// Trace returns the trace of a run that continues the run was; nil: a new run.
	Trace   func(ctx context.Context, was *host.Run) *host.Trace
	Now     func() int64   // Unix nanoseconds
	Entropy func(p []byte) // fills p with random bytes
	// MaxSnapshot bounds what a session can begin with, in bytes.
	MaxSnapshot int
}

// Service carries out requests. Its methods may be called from any goroutine. The caller
// must hold no mutex.
type Service struct {
	*continuation.Continuer // forks, retries, exports, imports and migrates runs

	cfg   Config
	edits *edits.Editor
}

// New returns a service.
func New(cfg Config) *Service {
	s := &Service{cfg: cfg}
	s.edits = edits.New(edits.Config{Work: cfg.Work, Readable: cfg.Readable, Grow: cfg.Quotas.Grow, Limits: cfg.Limits, Gone: refusal.ErrGone})
	s.Continuer = continuation.New(continuation.Config{
		Sessions: pins{cfg.Sessions}, Past: cfg.Past, Store: cfg.Store, Journal: cfg.Journal, Modules: cfg.Modules,
		Resources: cfg.Resources, Limits: cfg.Limits, Edits: s.edits, Reserved: cfg.Reserved, Graph: cfg.Graph,
		Accepting: cfg.Accepting, Taking: cfg.Taking, AskStart: cfg.AskStart, Ready: cfg.Quotas.Ready, Event: s.postedEvent,
		Anew: s.resumeAnew, Rehearse: cfg.Rehearse, Play: cfg.Play, Trace: cfg.Trace, Now: cfg.Now, Entropy: cfg.Entropy,
		MaxSnapshot: cfg.MaxSnapshot,
	})
	return s
}

// pins are the sessions as package continuation sees them.
type pins struct{ Sessions }

// Existing implements continuation.Sessions.
func (p pins) Existing(ctx context.Context, key host.SessionKey) (continuation.Session, error) {
	return p.Pin(ctx, key, false)
}

// New implements continuation.Sessions.
func (p pins) New(key host.SessionKey) continuation.Session {
	if ss := p.Sessions.New(key); ss != nil {
		return ss
	}
	return nil // not ss: an interface with a nil interface in it is not nil
}

// checkUnits is how much the check of an event of n bytes may take, in units: beyond,
// the event is refused.
func checkUnits(n int) uint64 { return 60_000_000 + 200*uint64(n) }

// startEvent checks the start event of a request and gives it its type.
func (s *Service) startEvent(ctx context.Context, tenant string, mod *versions.Module, ev abi.Event) (abi.Event, error) {
	m, done := s.cfg.Work(ctx, tenant, checkUnits(len(ev.Body)))
	defer done()
	return mod.StartEvent(m, s.cfg.Modules, ev)
}

// postedEvent checks an event that is posted to a run of a version.
func (s *Service) postedEvent(ctx context.Context, tenant, version string, ev abi.Event) (abi.Event, error) {
	if ev.Body == nil {
		ev.Body = abi.EmptyMap
	}
	m, done := s.cfg.Work(ctx, tenant, checkUnits(len(ev.Body)))
	defer done()
	body, err := s.cfg.Modules.PrepareEvent(m, version, ev.Type, ev.Body)
	ev.Body = body
	return ev, err
}
