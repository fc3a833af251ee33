package storetest

import (
	"fmt"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// testListsEnd walks each list in pages of the greatest size, over as many rows as one
// page and two pages hold, and over one row more. No row is missing or repeated, and the
// last page says that the list ends.
func testListsEnd(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	made := 0
	fill := func(until int) {
		var parts []host.SessionBatch
		var entries []host.AuditEntry
		for ; made < until; made++ {
			r := running(fmt.Sprintf("h%05d", made), "", int64(1000+made))
			r.Status, r.Completed, r.ErrorCode, r.Error = host.StatusFailed, r.Started, "lost", "lost twice"
			if made%2 == 1 {
				r.Workflow = "talk"
			}
			p := f.partOf(host.SessionKey{Tenant: tenant, Session: r.SessionID}, 1)
			p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
			parts = append(parts, p)
			entries = append(entries, host.AuditEntry{Tenant: tenant, Act: "act", Target: r.HandlerID})
		}
		f.append(parts...)
		f.change(host.AccessChange{Audit: entries})
	}
	for _, n := range []int{host.MaxListed, host.MaxListed + 1, 2*host.MaxListed + 1} {
		fill(n)
		for name, list := range f.lists(t) {
			seen := map[string]int{}
			pages := 0
			for more := true; more; pages++ {
				if pages > n {
					t.Fatalf("%s of %d never ends", name, n)
				}
				var page []string
				page, more = list()
				for _, id := range page {
					seen[id]++
				}
				if more && len(page) != host.MaxListed {
					t.Errorf("%s of %d: a page of %d says that others follow", name, n, len(page))
				}
			}
			if want := (n + host.MaxListed - 1) / host.MaxListed; pages != want {
				t.Errorf("%s of %d: %d pages, want %d", name, n, pages, want)
			}
			for i := range n {
				if id := fmt.Sprintf("h%05d", i); seen[id] != 1 {
					t.Fatalf("%s of %d has %s %d times", name, n, id, seen[id])
				}
			}
			if len(seen) != n {
				t.Errorf("%s of %d has %d", name, n, len(seen))
			}
		}
	}
}

// lists returns the lists of a store, each as a function that returns one page after the
// other.
func (f *fixture) lists(t *testing.T) map[string]func() (ids []string, more bool) {
	terms, err := search.Parse("lost")
	ok(t, "ParseSearch", err)
	runs := func(q host.RunQuery) func() ([]string, bool) {
		q.Tenant, q.Limit = tenant, host.MaxListed
		return func() ([]string, bool) {
			page, more, err := f.Runs(f.ctx, q)
			ok(t, "Runs", err)
			end := page[len(page)-1]
			q.AfterStarted, q.AfterHandler = end.Started, end.HandlerID
			return handlerIDs(page), more
		}
	}
	sessions := host.SessionQuery{Tenant: tenant, Limit: 2 * host.MaxListed} // more than the greatest page counts as the greatest
	ended := host.EndedQuery{Tenant: tenant, Until: host.EndedAt{Completed: 1 << 62}, Limit: host.MaxListed}
	audit := host.AuditQuery{Tenant: tenant, Limit: host.MaxListed}
	return map[string]func() ([]string, bool){
		"Runs":              runs(host.RunQuery{}),
		"Runs by workflows": runs(host.RunQuery{Workflows: []string{"flow", "talk"}}),
		"Runs by status":    runs(host.RunQuery{Statuses: []string{"failed"}}),
		"Search":            runs(host.RunQuery{Search: terms}),
		"Sessions": func() (ids []string, more bool) {
			page, more, err := f.Sessions(f.ctx, sessions)
			ok(t, "Sessions", err)
			for _, s := range page {
				ids = append(ids, s.SessionID)
			}
			sessions.Before = page[len(page)-1].Order
			return ids, more
		},
		"Ended": func() (ids []string, more bool) {
			page, more, err := f.Ended(f.ctx, ended)
			ok(t, "Ended", err)
			for _, r := range page {
				ids = append(ids, r.HandlerID)
			}
			ended.After = page[len(page)-1].EndedAt
			return ids, more
		},
		"Audit": func() (ids []string, more bool) {
			page, more, err := f.Audit(f.ctx, audit)
			ok(t, "Audit", err)
			for _, e := range page {
				ids = append(ids, e.Target)
			}
			audit.Before = page[len(page)-1].ID
			return ids, more
		},
	}
}
