// Package continuation continues runs elsewhere than where they are: from an earlier position
// (fork), from just before they failed (retry), on another server (export and import), and
// with another version of their workflow (migrate).
//
// It must not depend on how a session is loaded or ticked, or how guests run.
package continuation

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/edits"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/versions"
)

// Session is a session in memory. It is pinned until Release. Each method takes the
// session's mutex. If the session was purged, the error is [refusal.ErrGone].
type Session interface {
	// Copy returns a snapshot of the session as it is now, what the journal has of its
	// attempts that have not ended, and the queue position of both.
	Copy() (snapshot []byte, held []engine.HeldAttempt, pos uint64, err error)
	// Adopt begins an empty session by t, and returns the record of a run in it.
	Adopt(t engine.Adopt, runID string) (run host.Run, pos uint64, err error)
	// Rerun continues a failed run as the run of t. The error is [NotLatest] if the handler has
	// had another run since.
	Rerun(t engine.Rerun, failed *host.Run) (run host.Run, pos uint64, err error)
	// Resting looks at a run that is to move to a version. The error says what does not fit;
	// without a result it says why the run cannot be looked at.
	Resting(runID, version string) (*Resting, error)
	// Move moves a run to a version if the run is as it was when it was looked at. A blocked
	// run continues.
	Move(was *Resting, version string) (pos uint64, moved bool, err error)
	Release()
}

// Resting is a run at a time, as far as a migration needs it.
type Resting struct {
	RunID   string
	Version string
	Busy    bool           // a step of it is at work
	Parts   []history.Part // its attempts that continue
}

// Sessions pins sessions.
type Sessions interface {
	// Existing pins a session that exists.
	Existing(ctx context.Context, key host.SessionKey) (Session, error)
	// New pins a session whose id was drawn just now; nil: the id is taken.
	New(key host.SessionKey) Session
}

// Rehearsal plays a record to a guest; see package hostcall.
type Rehearsal interface {
	host.Calls
	// Departs says where the guest departed from the record, when its run has come
	// to res and err; nil: nowhere. The error is a fault of the host.
	Departs(res host.InvocationResult, err error) (*host.Departure, error)
}

// Journal is the part of the journal that a request waits for.
type Journal interface {
	Wait(ctx context.Context, pos uint64) error
}

// Config says what a [Continuer] works with. All fields must be set.
type Config struct {
	Sessions  Sessions
	Past      *history.Reader
	Store     handlers.Store
	Journal   Journal
	Modules   versions.Source
	Resources host.Resources
	Limits    *limit.Table
	Edits     *edits.Editor // of the state with which a fork begins
	Reserved  *handlers.Reservations
	// Graph returns the graph of a version.
	Graph func(version string) (*engine.Graph, error)
	// Accepting refuses requests while the server stops or its store is down, and Taking
	// also those that would add to a journal that cannot keep up.
	Accepting func() error
	Taking    func(tenant string) error
	// AskStart admits a run; see host.Admission.
	AskStart func(ctx context.Context, ask host.StartAsk) (release func(), err error)
	// Ready refuses a run that exceeds the quotas of a tenant.
	Ready func(ctx context.Context, tenant string) error
	// Event checks an event that is posted to a run of a version.
	Event func(ctx context.Context, tenant, version string, ev abi.Event) (abi.Event, error)
	// Anew continues a blocked run without the records of its attempts.
	Anew func(ctx context.Context, tenant, id string) (host.Run, error)
	// Rehearse makes the calls of a guest that plays a record, and Play runs the guest on a
	// core, in its tenant's turn.
	Rehearse func(open engine.AttemptOpen, record []engine.CallRecord, pending *engine.Pending) Rehearsal
	Play     func(ctx context.Context, inv host.Invocation) (host.InvocationResult, error)
	// Trace returns the trace of a run that continues the run was; nil: a new run.
	Trace   func(ctx context.Context, was *host.Run) *host.Trace
	Now     func() int64   // Unix nanoseconds
	Entropy func(p []byte) // fills p with random bytes
	// MaxSnapshot bounds what a session can begin with, in bytes.
	MaxSnapshot int
}

// Continuer continues runs. Its methods may be called from any goroutine. The caller must
// hold no mutex.
type Continuer struct{ cfg Config }

// New returns a Continuer.
func New(cfg Config) *Continuer { return &Continuer{cfg} }
