package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// RunSame compares two stores. Both get the same batches. They must accept and refuse the
// same ones and give equal answers. open is called often, and the stores are closed after
// use.
func RunSame(t *testing.T, openOne, openOther func(t *testing.T) host.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		one, other := openOne(t), openOther(t)
		defer func() {
			if err := errors.Join(one.Close(), other.Close()); err != nil {
				rt.Error(err)
			}
		}()
		p := &pair{rt: rt, ctx: t.Context(), one: one, other: other,
			last: map[host.SessionKey]uint64{}, seq: map[id]int{}, runs: map[string]host.Run{}}
		p.claim()
		for range rapid.IntRange(1, 25).Draw(rt, "batches") {
			if rare.Draw(rt, "claim") {
				p.claim()
			}
			p.append()
			p.compareVersions()
			p.list()
			p.rows()
			if sometimes.Draw(rt, "names") {
				p.rename()
			}
		}
		for _, tenant := range []string{"t", "u"} {
			for _, session := range []string{"a", "b", "c"} {
				p.compare(host.SessionKey{Tenant: tenant, Session: session})
			}
		}
	})
}

// pair is two stores that get the same batches. Its other fields help to make batches
// that are mostly accepted.
type pair struct {
	rt         *rapid.T
	ctx        context.Context
	one, other host.Store
	epoch      uint64
	last       map[host.SessionKey]uint64
	seq        map[id]int          // the next event of each handler
	runs       map[string]host.Run // by run id, which are unique here
	started    int
}

// id is a name within a tenant.
type id struct{ tenant, name string }

var (
	drawTenant  = rapid.SampledFrom([]string{"t", "u"})
	drawName    = rapid.SampledFrom([]string{"a", "b", "c"})
	drawFlow    = rapid.SampledFrom([]string{"flow", "talk"})
	drawStatus  = rapid.SampledFrom([]host.Status{"running", "running", "completed", "failed", "cancelled"})
	drawWake    = rapid.SampledFrom([]int64{host.WakeNever, 0, 10, 20, 30})
	drawInstant = rapid.Int64Range(1, 8)

	digests         = []string{"m1", "m2", "m3"}
	composedDigests = []string{"c of ", "d of "}
	drawComposed    = rapid.SampledFrom(composedDigests)
	// drawDigest draws a module or a composition, which may be stored.
	drawDigest = rapid.SampledFrom(append(digests, "c of m1", "c of m2", "d of m3"))

	rare      = rapid.Map(rapid.IntRange(0, 39), func(n int) bool { return n == 23 })
	sometimes = rapid.SampledFrom([]bool{false, false, false, true})
)

// handlersOf returns the handlers that run in a session: its own and others.
func handlersOf(session string) []string { return []string{session, session + "1", session + "2"} }

// both expects an operation to succeed on both stores or to fail on both.
func (p *pair) both(what string, op func(s host.Store) error) error {
	one, other := op(p.one), op(p.other)
	for _, kind := range []error{nil, host.ErrNotFound, host.ErrFenced, host.ErrNotCommitted} {
		if errors.Is(one, kind) != errors.Is(other, kind) {
			p.rt.Fatalf("%s: one store answers %v, the other %v", what, one, other)
		}
	}
	return one
}

// ask expects the same answer from both stores.
func ask[A any](p *pair, what string, op func(s host.Store) (A, error)) A {
	var answers []A
	_ = p.both(what, func(s host.Store) error {
		a, err := op(s)
		answers = append(answers, a)
		return err
	})
	if !reflect.DeepEqual(answers[0], answers[1]) {
		p.rt.Fatalf("%s: one store answers\n  %+v, the other\n  %+v", what, answers[0], answers[1])
	}
	return answers[0]
}

func (p *pair) claim() {
	p.epoch = ask(p, "Claim", func(s host.Store) (uint64, error) { return s.Claim(p.ctx) })
}

// append draws a batch of one or two parts, appends it to both stores, and compares
// everything that it touched.
func (p *pair) append() {
	b := host.Batch{Epoch: p.epoch}
	if rare.Draw(p.rt, "stale") {
		b.Epoch--
	}
	runs := maps.Clone(p.runs)
	for range rapid.IntRange(1, 2).Draw(p.rt, "parts") {
		b.Sessions = append(b.Sessions, p.drawPart())
	}
	if err := p.both("Append", func(s host.Store) error { return s.Append(p.ctx, b) }); err != nil {
		p.rt.Logf("both refuse: %v", err)
		p.runs = runs
	}
	for _, part := range b.Sessions {
		p.compare(part.Key)
	}
}

func (p *pair) drawPart() host.SessionBatch {
	key := host.SessionKey{Tenant: drawTenant.Draw(p.rt, "tenant"), Session: drawName.Draw(p.rt, "session")}
	part := host.SessionBatch{Key: key, WakeAt: drawWake.Draw(p.rt, "wake")}
	if sometimes.Draw(p.rt, "purge") {
		part.Purge = rapid.SliceOfN(p.handler(key), 1, 3).Draw(p.rt, "purged")
	}
	if known := slices.Sorted(maps.Keys(p.runs)); len(known) > 0 && sometimes.Draw(p.rt, "drop") {
		part.Drop = rapid.SliceOfN(rapid.SampledFrom(known), 1, 4).Draw(p.rt, "dropped")
	}
	if rare.Draw(p.rt, "erase") {
		part.Erase = 1 << 20 // all at once: stores differ in how much they erase at a time
	}
	if part.Purge == nil && part.Drop == nil && part.Erase == 0 || rapid.Bool().Draw(p.rt, "write") {
		part.First = p.last[key] + 1
		if rare.Draw(p.rt, "misplaced") {
			part.First = rapid.Uint64Range(0, 3).Draw(p.rt, "first")
		}
		part.Last = part.First + rapid.Uint64Range(0, 2).Draw(p.rt, "entries")
		part.At = drawInstant.Draw(p.rt, "at")
		part.Data = rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(p.rt, "data")
		p.drawRuns(&part)
		p.drawStream(&part)
		p.drawVersions(&part)
		p.last[key] = part.Last
	}
	for _, name := range part.Purge {
		p.seq[id{key.Tenant, name}] = 0
	}
	return part
}

// drawVersions draws what the part's entries need, and sometimes a snapshot and a cut.
func (p *pair) drawVersions(part *host.SessionBatch) {
	at := rapid.Uint64Range(part.First, part.Last)
	for range rapid.IntRange(0, 2).Draw(p.rt, "needs") {
		part.Versions = append(part.Versions, host.VersionUse{Digest: drawDigest.Draw(p.rt, "needed"), Seq: at.Draw(p.rt, "by")})
	}
	if sometimes.Draw(p.rt, "snapshot") && part.First > 0 {
		part.Snapshot = at.Draw(p.rt, "snapshot at")
	}
	if sometimes.Draw(p.rt, "cut") {
		part.Cut = rapid.Uint64Range(0, part.Last).Draw(p.rt, "cut at")
	}
}

// rename adds or removes a name of a plugin or a composition.
func (p *pair) rename() {
	digest, name, number := drawDigest.Draw(p.rt, "digest"), drawName.Draw(p.rt, "plugin"), rapid.IntRange(1, 3).Draw(p.rt, "version")
	var what string
	var op func(s host.Store) error
	switch rapid.IntRange(0, 4).Draw(p.rt, "rename") {
	case 0, 1:
		what = "PutPlugin"
		op = func(s host.Store) error {
			if err := s.PutModule(p.ctx, module(digest)); err != nil {
				return err
			}
			return s.PutPlugin(p.ctx, plugin("t", name, number, digest))
		}
	case 2:
		what, number = "DeletePlugin", number%2
		op = func(s host.Store) error { return s.DeletePlugin(p.ctx, "t", name, number) }
	case 3:
		c := composition("t", "w", number, digest, drawDigest.Draw(p.rt, "other"))
		c.Digest = drawComposed.Draw(p.rt, "composed") + digest
		what, op = "PutComposition", func(s host.Store) error { return s.PutComposition(p.ctx, c) }
	case 4:
		what, op = "DeleteComposition", func(s host.Store) error { return s.DeleteComposition(p.ctx, "t", "w") }
	}
	_ = p.both(what, op)
	p.compareVersions()
}

// compareVersions expects both stores to have the same modules and compositions.
func (p *pair) compareVersions() {
	for _, digest := range digests {
		_ = p.both("Module "+digest, func(s host.Store) error { _, err := s.Module(p.ctx, digest); return err })
		for _, composed := range composedDigests {
			_ = p.both("Composition", func(s host.Store) error { _, err := s.Composition(p.ctx, composed+digest); return err })
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		ask(p, "PluginVersions", func(s host.Store) ([]host.PluginVersion, error) { return s.PluginVersions(p.ctx, "t", name) })
	}
}

// handler draws a handler of the session, or rarely of another session.
func (p *pair) handler(key host.SessionKey) *rapid.Generator[string] {
	session := key.Session
	if rare.Draw(p.rt, "foreign") {
		session = drawName.Draw(p.rt, "session")
	}
	return rapid.SampledFrom(handlersOf(session))
}

func (p *pair) drawRuns(part *host.SessionBatch) {
	for _, runID := range slices.Sorted(maps.Keys(p.runs)) {
		r := p.runs[runID]
		if r.Tenant == part.Key.Tenant && r.SessionID == part.Key.Session && sometimes.Draw(p.rt, "change") {
			p.putRun(part, r)
		}
	}
	for range rapid.IntRange(0, 2).Draw(p.rt, "starts") {
		p.started++
		r := host.Run{
			Tenant: part.Key.Tenant, SessionID: part.Key.Session, RunID: fmt.Sprintf("run%03d", p.started),
			HandlerID: p.handler(part.Key).Draw(p.rt, "handler"), Workflow: drawFlow.Draw(p.rt, "workflow"),
			Started: drawInstant.Draw(p.rt, "started"),
		}
		if sometimes.Draw(p.rt, "child") {
			r.ParentRun, r.ParentStep = "run001", "s"
		} else if sometimes.Draw(p.rt, "fork") {
			r.ForkedFrom, r.ForkedAt, r.RetriedFrom = "run002", 3, "run001"
		}
		p.putRun(part, r)
		if !rare.Draw(p.rt, "unannounced") {
			part.Started = append(part.Started, r.RunID)
		}
	}
}

// putRun puts a run in a new state into the part.
func (p *pair) putRun(part *host.SessionBatch, r host.Run) {
	r.Status = drawStatus.Draw(p.rt, "status")
	r.Version = rapid.SampledFrom([]string{"", "v1a", "v1b", "v2"}).Draw(p.rt, "version")
	r.Updated = drawInstant.Draw(p.rt, "updated")
	r.Steps = rapid.Uint64().Draw(p.rt, "steps")
	r.Blocked, r.Result, r.Completed, r.WaitingFor = nil, nil, 0, nil
	if !r.Status.Final() && sometimes.Draw(p.rt, "waits") {
		r.WaitingFor = []host.Waiting{rapid.SampledFrom([]host.Waiting{{Type: "Answer"}, {Until: 9}, {Reason: host.WaitsForTurn}}).Draw(p.rt, "wait")}
	}
	r.Paused = !r.Status.Final() && sometimes.Draw(p.rt, "paused")
	if r.Status.Final() {
		r.Completed = drawInstant.Draw(p.rt, "completed")
	}
	if sometimes.Draw(p.rt, "blocked") {
		r.Blocked = &host.Blocked{Code: "code", Message: "message"}
	}
	if r.Status == host.StatusCompleted {
		e := event(r, 3)
		r.Result = &e
	}
	r.Error = rapid.SampledFrom([]string{"", "bad input", "No such INPUT"}).Draw(p.rt, "error")
	p.runs[r.RunID] = r
	part.Runs = append(part.Runs, r)
}

func (p *pair) drawStream(part *host.SessionBatch) {
	for _, r := range part.Runs {
		n := rapid.IntRange(0, 3).Draw(p.rt, "events")
		if n == 0 {
			continue
		}
		handler := id{r.Tenant, r.HandlerID}
		first := p.seq[handler]
		if rare.Draw(p.rt, "misnumbered") {
			first = rapid.IntRange(0, 5).Draw(p.rt, "first event")
		}
		part.Stream = append(part.Stream, events(r, first, n))
		p.seq[handler] = first + n
	}
}

// list asks both stores for a random listing.
func (p *pair) list() {
	q := host.RunQuery{
		Tenant:    drawTenant.Draw(p.rt, "tenant"),
		Workflows: rapid.SliceOfN(drawFlow, 0, 2).Draw(p.rt, "workflows"),
		Version:   rapid.SampledFrom([]string{"", "", "v1", "v1a", "x"}).Draw(p.rt, "version"),
		Since:     rapid.Int64Range(0, 8).Draw(p.rt, "since"),
		Blocked:   sometimes.Draw(p.rt, "blocked"),
		Limit:     rapid.IntRange(1, 5).Draw(p.rt, "limit"),
	}
	for range rapid.IntRange(0, 2).Draw(p.rt, "statuses") {
		q.Statuses = append(q.Statuses, string(drawStatus.Draw(p.rt, "status")))
	}
	if sometimes.Draw(p.rt, "of a session") {
		q.Session = drawName.Draw(p.rt, "session")
	}
	if sometimes.Draw(p.rt, "search") {
		terms, err := search.Parse(rapid.SampledFrom([]string{"bad", "input", "inp*", "NO such", "such inp*", "7", "flow"}).Draw(p.rt, "text"))
		if err != nil {
			p.rt.Fatal(err)
		}
		q.Search = terms
	}
	if sometimes.Draw(p.rt, "further") {
		q.AfterStarted, q.AfterHandler = drawInstant.Draw(p.rt, "after"), drawName.Draw(p.rt, "after handler")
	}
	ask(p, fmt.Sprintf("Runs(%+v)", q), func(s host.Store) (paged[host.Run], error) { return pagedOf(s.Runs(p.ctx, q)) })
	ask(p, "Tenants", func(s host.Store) ([]string, error) { return s.Tenants(p.ctx) })
	e := host.EndedQuery{Tenant: q.Tenant, Limit: q.Limit,
		After: host.EndedAt{Completed: drawInstant.Draw(p.rt, "after") - 1, RunID: "run003"},
		Until: host.EndedAt{Completed: drawInstant.Draw(p.rt, "until"), RunID: "run006"}}
	ask(p, fmt.Sprintf("Ended(%+v)", e), func(s host.Store) (paged[host.EndedRun], error) { return pagedOf(s.Ended(p.ctx, e)) })
	newer := rapid.IntRange(0, 4).Draw(p.rt, "newer")
	ask(p, "EndedBehind", func(s host.Store) (host.EndedAt, error) { return s.EndedBehind(p.ctx, q.Tenant, newer) })
}

// paged is a page of a list, and whether more rows follow.
type paged[T any] struct {
	Rows []T
	More bool
}

func pagedOf[T any](rows []T, more bool, err error) (paged[T], error) {
	return paged[T]{rows, more}, err
}

// compare expects both stores to have the same data of a session, and records its
// position.
func (p *pair) compare(key host.SessionKey) {
	type due struct {
		Keys []host.SessionKey
		Next int64
	}
	ask(p, "Due", func(s host.Store) (due, error) {
		keys, next, err := s.Due(p.ctx, 20, 100)
		slices.SortFunc(keys, func(a, b host.SessionKey) int { // sessions due at the same time have no order
			return slices.Compare([]string{a.Tenant, a.Session}, []string{b.Tenant, b.Session})
		})
		return due{keys, next}, err
	})
	ask(p, "CountRuns", func(s host.Store) ([]host.VersionRuns, error) { return s.CountRuns(p.ctx, key.Tenant) })
	stored := ask(p, "LoadSession", func(s host.Store) (host.StoredSession, error) { return s.LoadSession(p.ctx, key) })
	p.last[key] = stored.Last
	ask(p, "Session", func(s host.Store) (host.SessionInfo, error) {
		info, err := s.Session(p.ctx, key)
		info.Order = 0 // stores number sessions differently
		return info, err
	})
	ask(p, "Sessions", func(s host.Store) (string, error) {
		list, more, err := s.Sessions(p.ctx, host.SessionQuery{Tenant: key.Tenant, Limit: 2})
		names := fmt.Sprint(more)
		for _, i := range list {
			names += i.SessionID
		}
		return names, err
	})
	ask(p, "SessionVersions", func(s host.Store) ([]host.VersionUse, error) { return s.SessionVersions(p.ctx, key) })
	for _, name := range handlersOf(key.Session) {
		p.compareHandler(id{key.Tenant, name})
	}
	for runID, r := range p.runs {
		if r.Tenant != key.Tenant || r.SessionID != key.Session {
			continue
		}
		stored := ask(p, "Run", func(s host.Store) (host.Run, error) { return s.Run(p.ctx, r.Tenant, runID) })
		if stored.RunID == "" {
			delete(p.runs, runID) // the run was purged or dropped
		}
	}
}

func (p *pair) compareHandler(h id) {
	ask(p, "Handler", func(s host.Store) (host.Handler, error) { return s.Handler(p.ctx, h.tenant, h.name) })
	ask(p, "StreamEnd", func(s host.Store) ([2]int64, error) {
		last, first, err := s.StreamEnd(p.ctx, h.tenant, h.name)
		return [2]int64{last, first}, err
	})
	stream := ask(p, "Stream", func(s host.Store) ([]host.StreamEvent, error) {
		return wholeStream(p.ctx, s, h.tenant, h.name, -1, 2)
	})
	p.seq[h] = 0
	if len(stream) > 0 {
		p.seq[h] = int(stream[len(stream)-1].Seq) + 1
	}
}
