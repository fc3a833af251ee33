// Package history reads what is stored of runs and sessions: their records and lists,
// their streams, the timeline of a run, and a session as it was at a position of its
// journal.
//
// It must not depend on the sessions in memory, tokens or timers: a store, a journal and the
// graph of each workflow version are all that it needs. What it returns is durable, as it
// comes from the store.
package history

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/position"
)

// Journal is the part of the journal that is read.
type Journal interface {
	// History reads a session's durable entries in order, from where a position can be
	// folded from. decode gets arrays of them, until it wants no more.
	History(ctx context.Context, key host.SessionKey, position uint64, decode func(array []byte) (more bool, err error)) error
}

// Store is the part of host.Store that is read.
type Store interface {
	Handler(ctx context.Context, tenant, id string) (host.Handler, error)
	Run(ctx context.Context, tenant, runID string) (host.Run, error)
	Runs(ctx context.Context, q host.RunQuery) (runs []host.Run, more bool, err error)
	Rows(ctx context.Context, q host.RowQuery) (rows []host.RunRow, more bool, err error)
	RunCounts(ctx context.Context, tenant string) ([]host.RunCount, error)
	Session(ctx context.Context, key host.SessionKey) (host.SessionInfo, error)
	Sessions(ctx context.Context, q host.SessionQuery) (list []host.SessionInfo, more bool, err error)
}

// Streams opens subscriptions to durable events.
type Streams interface {
	Subscribe(ctx context.Context, tenant, handlerID string, after int64) (host.Stream, error)
	// SubscribeRun gives the events of one run of the handler alone.
	SubscribeRun(ctx context.Context, tenant, handlerID, runID string, after int64) (host.Stream, error)
	// SubscribeFamily gives the events of the children too; runID "" is all runs.
	SubscribeFamily(ctx context.Context, tenant, handlerID, runID string, from position.Family) (host.FamilyStream, error)
}

// Config says what a reader reads. All fields must be set.
type Config struct {
	Journal Journal
	Store   Store
	Streams Streams
	// Graph gives the graph of a workflow version.
	Graph func(version string) (*engine.Graph, error)
	// Clocked is called on the goroutine that begins a search of a tenant, and done on
	// the same goroutine at the end of the search: the time is on the tenant's clock.
	Clocked func(tenant string) (done func())
}

// Reader answers questions about runs and sessions from what is stored. Its methods may be
// called from any goroutine. Together with a scheduler it implements [host.Runs] and
// [host.Sessions].
type Reader struct{ cfg Config }

// New makes a reader.
func New(cfg Config) *Reader { return &Reader{cfg} }

// The errors for a handler and a session that the store does not have.
var (
	ErrNoHandler = &host.Error{Code: host.CodeNotFound, Message: "Handler not found"}
	ErrNoSession = &host.Error{Code: host.CodeNotFound, Message: "Session not found"}
)

// Get reads the latest run of a handler, or any run by its id; see [host.Runs].
func (r *Reader) Get(ctx context.Context, tenant, id string) (host.Run, error) {
	h, err := r.cfg.Store.Handler(ctx, tenant, id)
	if err == nil {
		return h.Run, nil
	}
	if !errors.Is(err, host.ErrNotFound) {
		return host.Run{}, host.Unavailable(err)
	}
	// The id of a run works wherever the id of a handler does.
	return r.RunOf(ctx, tenant, id)
}

// RunOf reads a run by its id. Errors: [ErrNoHandler], CodeUnavailable.
func (r *Reader) RunOf(ctx context.Context, tenant, runID string) (host.Run, error) {
	run, err := r.cfg.Store.Run(ctx, tenant, runID)
	if errors.Is(err, host.ErrNotFound) {
		return host.Run{}, ErrNoHandler
	}
	if err != nil {
		return host.Run{}, host.Unavailable(err)
	}
	return run, nil
}

// List lists handlers' latest runs; see [host.Runs].
func (r *Reader) List(ctx context.Context, q host.RunQuery) ([]host.Run, bool, error) {
	if len(q.Search) > 0 {
		// A search takes as long as the client's words make it.
		defer r.cfg.Clocked(q.Tenant)()
	}
	runs, more, err := r.cfg.Store.Runs(ctx, q)
	if err != nil {
		return nil, false, host.Unavailable(err)
	}
	return runs, more, nil
}

// Rows lists runs; see [host.Runs].
func (r *Reader) Rows(ctx context.Context, q host.RowQuery) ([]host.RunRow, bool, error) {
	if len(q.Search) > 0 {
		// A search takes as long as the client's words make it.
		defer r.cfg.Clocked(q.Tenant)()
	}
	rows, more, err := r.cfg.Store.Rows(ctx, q)
	if err != nil {
		return nil, false, host.Unavailable(err)
	}
	return rows, more, nil
}

// RunCounts counts all runs of a tenant; see [host.Runs].
func (r *Reader) RunCounts(ctx context.Context, tenant string) ([]host.RunCount, error) {
	counts, err := r.cfg.Store.RunCounts(ctx, tenant)
	if err != nil {
		return nil, host.Unavailable(err)
	}
	return counts, nil
}

// Session gives what is known of a session; see [host.Sessions].
func (r *Reader) Session(ctx context.Context, tenant, id string) (host.SessionInfo, error) {
	info, err := r.cfg.Store.Session(ctx, host.SessionKey{Tenant: tenant, Session: id})
	if errors.Is(err, host.ErrNotFound) {
		return info, ErrNoSession
	}
	if err != nil {
		return info, host.Unavailable(err)
	}
	return info, nil
}

// ListSessions lists sessions; see [host.Sessions].
func (r *Reader) ListSessions(ctx context.Context, q host.SessionQuery) ([]host.SessionInfo, bool, error) {
	list, more, err := r.cfg.Store.Sessions(ctx, q)
	if err != nil {
		return nil, false, host.Unavailable(err)
	}
	return list, more, nil
}

// Events opens a handler's stream; see [host.Runs].
func (r *Reader) Events(ctx context.Context, tenant, id string, after int64) (host.Stream, error) {
	run, err := r.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	// A client that names a run must not see the events of the handler's other runs.
	if id != run.HandlerID {
		return r.cfg.Streams.SubscribeRun(ctx, tenant, run.HandlerID, run.RunID, after)
	}
	return r.cfg.Streams.Subscribe(ctx, tenant, run.HandlerID, after)
}

// FamilyEvents opens the stream of a run and its children; see [host.Runs].
func (r *Reader) FamilyEvents(ctx context.Context, tenant, id string, from position.Family) (host.FamilyStream, error) {
	run, err := r.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	runID := run.RunID
	if id == run.HandlerID {
		runID = ""
	}
	if from.Children == nil && from.After != position.FromRun {
		if from.Children, err = r.underWay(ctx, &run, "", from.After); err != nil {
			return nil, err
		}
	}
	return r.cfg.Streams.SubscribeFamily(ctx, tenant, run.HandlerID, runID, from)
}

// underWay gives the children that a run waits for, and the children that they wait for.
func (r *Reader) underWay(ctx context.Context, run *host.Run, parent string, after int64) ([]position.Member, error) {
	if after >= 0 {
		after = position.FromRun // numbers are those of the run's own events
	}
	var out []position.Member
	for _, w := range run.WaitingFor {
		if w.Child == "" {
			continue
		}
		child, err := r.Get(ctx, run.Tenant, w.Child)
		if host.CodeOf(err) == host.CodeNotFound {
			continue // it has not begun
		}
		if err != nil {
			return nil, err
		}
		out = append(out, position.Member{Handler: w.Child, Parent: parent, After: after})
		below, err := r.underWay(ctx, &child, w.Child, after)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}
