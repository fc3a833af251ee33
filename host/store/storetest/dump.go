package storetest

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
)

// contents is what a store holds of the sessions of a fixture.
type contents struct {
	Sessions map[host.SessionKey]host.StoredSession
	Versions map[host.SessionKey][]host.VersionUse
	Due      []host.SessionKey
	Next     int64
	Runs     []host.Run // the latest of each handler
	Handlers []host.Handler
	Streams  map[string][]host.StreamEvent // by tenant/handler
	Ends     map[string][2]int64
	Counts   map[string][]host.VersionRuns // by tenant
}

// dump reads the contents of a fixture's store through every method.
func dump(f *fixture) contents {
	f.t.Helper()
	c := contents{
		Sessions: map[host.SessionKey]host.StoredSession{},
		Streams:  map[string][]host.StreamEvent{},
		Ends:     map[string][2]int64{},
		Counts:   map[string][]host.VersionRuns{},
		Versions: map[host.SessionKey][]host.VersionUse{},
	}
	tenants := map[string]bool{tenant: true}
	for key := range f.last {
		tenants[key.Tenant] = true
		stored, err := f.LoadSession(f.ctx, key)
		if errors.Is(err, host.ErrNotFound) {
			continue
		}
		ok(f.t, "LoadSession", err)
		c.Sessions[key] = stored
		c.Versions[key], err = f.SessionVersions(f.ctx, key)
		ok(f.t, "SessionVersions", err)
	}
	var err error
	c.Due, c.Next, err = f.Due(f.ctx, math.MaxInt64, math.MaxInt32)
	ok(f.t, "Due", err)
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		f.dumpTenant(&c, tenant)
	}
	return c
}

func (f *fixture) dumpTenant(c *contents, tenant string) {
	f.t.Helper()
	counts, err := f.CountRuns(f.ctx, tenant)
	ok(f.t, "CountRuns", err)
	c.Counts[tenant] = counts
	runs, err := listed(f.ctx, f, host.RunQuery{Tenant: tenant, Limit: 3})
	ok(f.t, "Runs", err)
	c.Runs = append(c.Runs, runs...)
	for _, r := range runs {
		h, err := f.Handler(f.ctx, tenant, r.HandlerID)
		ok(f.t, "Handler", err)
		c.Handlers = append(c.Handlers, h)
		name := strings.Join([]string{tenant, r.HandlerID}, "/")
		c.Streams[name], err = wholeStream(f.ctx, f, tenant, r.HandlerID, -1, 3)
		ok(f.t, "Stream", err)
		last, first, err := f.StreamEnd(f.ctx, tenant, r.HandlerID)
		ok(f.t, "StreamEnd", err)
		c.Ends[name] = [2]int64{last, first}
	}
}
