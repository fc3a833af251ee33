package host

import "slices"

// Phase says what a run does: its status, where a run that has not ended is in one of six
// phases.
type Phase string

// The phases of a run that has not ended. A run that has ended is in the phase with the
// name of its status.
const (
	PhaseQueued   Phase = "queued"   // has not begun: it waits for other runs of its session
	PhaseRunning  Phase = "running"  // waits for nothing
	PhaseWaiting  Phase = "waiting"  // a step waits for an event, a child or a resource, or the run for a person
	PhaseSleeping Phase = "sleeping" // all that it waits for is times
	PhasePaused   Phase = "paused"
	PhaseBlocked  Phase = "blocked" // cannot continue without help
)

// Phases are all phases, those of runs that have not ended first.
var Phases = []Phase{PhaseQueued, PhaseRunning, PhaseWaiting, PhaseSleeping, PhasePaused, PhaseBlocked,
	Phase(StatusCompleted), Phase(StatusFailed), Phase(StatusCancelled)}

// Final reports whether runs in this phase have ended.
func (p Phase) Final() bool {
	return p == Phase(StatusCompleted) || p == Phase(StatusFailed) || p == Phase(StatusCancelled)
}

// Phase returns the phase of a run. Steps of a run that waits may be running.
func (r *Run) Phase() Phase {
	switch {
	case r.Status.Final():
		return Phase(r.Status)
	case r.Blocked != nil:
		return PhaseBlocked
	case r.Paused:
		return PhasePaused
	case len(r.WaitingFor) == 0:
		return PhaseRunning
	case slices.ContainsFunc(r.WaitingFor, func(w Waiting) bool { return w.Reason == WaitsForTurn }):
		return PhaseQueued
	case slices.ContainsFunc(r.WaitingFor, func(w Waiting) bool { return w.Child != "" || w.Resource != "" || w.Until == 0 }):
		return PhaseWaiting
	}
	return PhaseSleeping
}

// RunCount counts the runs of a workflow in a phase.
type RunCount struct {
	Workflow string
	Phase    Phase
	Runs     int64
	Children int64 // of these: children of other runs
}

// MaxRowResult is the size of the largest result that a [RunRow] has, in bytes as a store
// encodes it.
const MaxRowResult = 16 << 10

// RunRow is a run in a list of all runs.
type RunRow struct {
	Run   // its Result is nil if it is longer than MaxRowResult
	Phase Phase
	// LongResult says that the run has a result that the row leaves out.
	LongResult bool
}

// RowQuery selects runs. Empty filters do not filter. The order is by start, newest first,
// ties by run id descending.
type RowQuery struct {
	Tenant     string
	Phases     []Phase
	Workflows  []string
	Version    string // digest of a version, or a prefix of it
	Session    string
	Handler    string // runs of this handler
	Parent     string // children of this run
	ForkedFrom string // forks of this run
	ID         string // prefix of a run id or a handler id
	ErrorCode  string
	// Since and Until bound Updated, StartedAfter and StartedBefore bound Started: at or
	// after the one, before the other; Unix nanoseconds, 0: no bound.
	Since, Until                int64
	StartedAfter, StartedBefore int64
	// Search keeps runs that have ended and in whose text all of these occur.
	Search []SearchTerm
	// Children selects runs that are children of others, too. With Parent, Handler,
	// Session, ID or ForkedFrom they are always selected.
	Children bool
	Limit    int // 1 to MaxListed
	// From continues behind a run; nil is the top. With Back, the rows are those just
	// before it, in the same order.
	From *RowPlace
	Back bool
}

// RowPlace is the place of a run in a list of rows.
type RowPlace struct {
	Started int64
	RunID   string
}

// WithChildren reports whether the query selects runs that are children of others.
func (q *RowQuery) WithChildren() bool {
	return q.Children || q.Parent != "" || q.Handler != "" || q.Session != "" || q.ID != "" || q.ForkedFrom != ""
}
