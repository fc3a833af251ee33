// Package storetest tests what every store must do: one suite for all stores, one for
// durable stores, one for several handles on one database, and one that compares two
// stores.
//
// It is linked into tests only. The package does not know how a store works, and uses
// only a [host.Store].
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Run runs the suite. open returns a new, empty store and closes it when t ends.
func Run(t *testing.T, open func(t *testing.T) host.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T) host.Store)
	}{
		{"Claim", testClaim},
		{"Fencing", testFencing},
		{"ClaimsAtOnce", testClaimsAtOnce},
		{"Positions", testPositions},
		{"Refusals", testRefusals},
		{"AllOrNothing", testAllOrNothing},
		{"EndedContext", testEndedContext},
		{"Sessions", testSessions},
		{"Ownership", testOwnership},
		{"Due", testDue},
		{"History", testHistory},
		{"Records", testRecords},
		{"Restart", testRestart},
		{"List", testList},
		{"ListFilters", testListFilters},
		{"ListWhileStarting", testListWhileStarting},
		{"ListsEnd", testListsEnd},
		{"Rows", testRows},
		{"RunCounts", testRunCounts},
		{"Search", testSearch},
		{"SearchFilters", testSearchFilters},
		{"SearchOfChanges", testSearchOfChanges},
		{"SearchWhileStarting", testSearchWhileStarting},
		{"CountRuns", testCountRuns},
		{"Stream", testStream},
		{"StreamOfManyEvents", testStreamOfManyEvents},
		{"StreamOfLargeEvents", testStreamOfLargeEvents},
		{"StreamEnd", testStreamEnd},
		{"PurgePrivate", testPurgePrivate},
		{"PurgeNamed", testPurgeNamed},
		{"PurgeInItsBatch", testPurgeInItsBatch},
		{"Ended", testEnded},
		{"DropPrivate", testDropPrivate},
		{"DropNamed", testDropNamed},
		{"DropNot", testDropNot},
		{"OddNames", testOddNames},
		{"SessionInfo", testSessionInfo},
		{"Erase", testErase},
		{"Modules", testModules},
		{"Plugins", testPlugins},
		{"DeletePlugin", testDeletePlugin},
		{"Compositions", testCompositions},
		{"RemadeCompositions", testRemadeCompositions},
		{"DeleteComposition", testDeleteComposition},
		{"SessionVersions", testSessionVersions},
		{"ReleasedModules", testReleasedModules},
		{"ReleasedCompositions", testReleasedCompositions},
		{"DeletePluginVersion", testDeletePluginVersion},
		{"Repeats", testRepeats},
		{"Access", testAccess},
		{"Audit", testAudit},
		{"TenantUsage", testTenantUsage},
		{"ClearTenant", testClearTenant},
		{"Spent", testSpent},
		{"Held", testHeld},
		{"Resources", testResources},
		{"KV", testKV},
		{"KVDefined", testKVDefined},
		{"Meta", testMeta},
		{"Stats", testStats},
		{"Close", testClose},
		{"Concurrency", testConcurrency},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

// tenant is the tenant of most tests.
const tenant = host.DefaultTenant

// fixture is a store with an owner that knows the last position of each session.
type fixture struct {
	host.Store
	t     *testing.T
	ctx   context.Context
	epoch uint64
	last  map[host.SessionKey]uint64
}

// claimed opens a store and claims it.
func claimed(t *testing.T, open func(t *testing.T) host.Store) *fixture {
	t.Helper()
	f := &fixture{Store: open(t), t: t, ctx: t.Context(), last: map[host.SessionKey]uint64{}}
	epoch, err := f.Claim(f.ctx)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	f.epoch = epoch
	return f
}

// part returns the next part of a session: one row with n new entries and nothing else.
func (f *fixture) part(session string, n int) host.SessionBatch {
	return f.partOf(host.SessionKey{Tenant: tenant, Session: session}, n)
}

func (f *fixture) partOf(key host.SessionKey, n int) host.SessionBatch {
	first := f.last[key] + 1
	return host.SessionBatch{
		Key: key, First: first, Last: first + uint64(n) - 1, WakeAt: host.WakeNever,
		Data: fmt.Appendf(nil, "%s %d+%d", key.Session, first, n),
	}
}

// try appends the parts as one batch.
func (f *fixture) try(parts ...host.SessionBatch) error {
	return f.Append(f.ctx, host.Batch{Epoch: f.epoch, Sessions: parts})
}

// append appends the parts as one batch and records the new ends of sessions.
func (f *fixture) append(parts ...host.SessionBatch) {
	f.t.Helper()
	if err := f.try(parts...); err != nil {
		f.t.Fatalf("Append: %v", err)
	}
	for _, p := range parts {
		if p.First > 0 {
			f.last[p.Key] = p.Last
		}
	}
}

// refused appends the parts and expects a permanent refusal.
func (f *fixture) refused(parts ...host.SessionBatch) {
	f.t.Helper()
	switch err := f.try(parts...); {
	case err == nil:
		f.t.Fatal("Append took a batch that it has to refuse")
	case errors.Is(err, host.ErrNotCommitted), errors.Is(err, host.ErrFenced):
		f.t.Fatalf("Append = %v; it is neither a matter of time nor of the owner", err)
	}
}

// start appends a part that starts one run with an empty stream.
func (f *fixture) start(r host.Run) {
	f.t.Helper()
	p := f.partOf(host.SessionKey{Tenant: r.Tenant, Session: r.SessionID}, 1)
	p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
	f.append(p)
}

// running returns a run that has just been started. With session "" its handler has a
// private session.
func running(handler, session string, started int64) host.Run {
	if session == "" {
		session = handler
	}
	return host.Run{
		Tenant: tenant, HandlerID: handler, RunID: fmt.Sprintf("%s@%d", handler, started), SessionID: session,
		Workflow: "flow", Version: "0123abcd", Status: host.StatusRunning, Started: started, Updated: started,
	}
}

// events returns consecutive stream events of a run, numbered from first on.
func events(r host.Run, first, n int) host.StreamRow {
	row := host.StreamRow{HandlerID: r.HandlerID, RunID: r.RunID}
	for seq := first; seq < first+n; seq++ {
		row.Events = append(row.Events, event(r, seq))
	}
	return row
}

func event(r host.Run, seq int) host.StreamEvent {
	body, err := abi.EncodeValue(map[string]any{"n": int64(seq), "run": r.RunID})
	if err != nil {
		panic(err) // plain values only
	}
	return host.StreamEvent{Seq: uint64(seq), RunID: r.RunID, Type: "Progress", Workflow: r.Workflow, Body: body}
}

// missing expects the error for a row that does not exist.
func missing(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, host.ErrNotFound) {
		t.Errorf("%s: error = %v, want ErrNotFound", what, err)
	}
}

// same expects two values to be deeply equal.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s =\n  %+v, want\n  %+v", what, got, want)
	}
}

// ok fails the test on an error.
func ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wholeStream reads a stream to its end, in pages.
func wholeStream(ctx context.Context, s host.Store, tenant, handler string, after int64, page int) ([]host.StreamEvent, error) {
	var all []host.StreamEvent
	for {
		got, err := s.Stream(ctx, tenant, handler, after, page)
		if err != nil || len(got) == 0 {
			return all, err
		}
		all = append(all, got...)
		after = int64(got[len(got)-1].Seq)
	}
}

// handlerIDs returns the handlers of a listing, in its order.
func handlerIDs(runs []host.Run) []string {
	ids := []string{}
	for _, r := range runs {
		ids = append(ids, r.HandlerID)
	}
	return ids
}

// listed reads a listing to its end, in pages.
func listed(ctx context.Context, s host.Store, q host.RunQuery) ([]host.Run, error) {
	var all []host.Run
	for {
		page, more, err := s.Runs(ctx, q)
		if err != nil {
			return all, err
		}
		if len(page) > q.Limit {
			return all, fmt.Errorf("a page of %d runs, limit %d", len(page), q.Limit)
		}
		all = append(all, page...)
		if !more {
			return all, nil
		}
		end := page[len(page)-1]
		q.AfterStarted, q.AfterHandler = end.Started, end.HandlerID
	}
}

// wantIDs expects a query to list these handlers, for every page size.
func (f *fixture) wantIDs(q host.RunQuery, want ...string) {
	f.t.Helper()
	for _, limit := range []int{1, 2, 1000} {
		q.Limit = limit
		runs, err := listed(f.ctx, f, q)
		if err != nil {
			f.t.Fatalf("Runs(%+v): %v", q, err)
		}
		if got := handlerIDs(runs); !slices.Equal(got, want) {
			f.t.Errorf("Runs(%+v) lists %q, want %q", q, got, want)
		}
	}
}
