package memory

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/weftrun/weft/host"
)

// Session implements [host.Store].
func (s *Store) Session(ctx context.Context, key host.SessionKey) (info host.SessionInfo, err error) {
	err = s.view(ctx, func() error {
		found := s.sessions[key]
		if found == nil || found.erasing {
			return notFound("session", key.Session)
		}
		info = s.info(key, found)
		return nil
	})
	return info, err
}

// Sessions implements [host.Store].
func (s *Store) Sessions(ctx context.Context, q host.SessionQuery) (list []host.SessionInfo, more bool, err error) {
	before := q.Before
	if before == 0 {
		before = math.MaxInt64
	}
	err = s.view(ctx, func() error {
		for key, found := range s.sessions {
			if key.Tenant == q.Tenant && !found.erasing && int64(found.order) < before {
				list = append(list, s.info(key, found))
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b host.SessionInfo) int { return -cmp.Compare(a.Order, b.Order) })
	more = len(list) > page(q.Limit)
	return list[:min(len(list), page(q.Limit))], more, err
}

func (s *Store) info(key host.SessionKey, found *session) host.SessionInfo {
	info := host.SessionInfo{Tenant: key.Tenant, SessionID: key.Session, Order: int64(found.order), Created: found.created, Updated: found.updated}
	for _, h := range s.handlers {
		if h.session != key {
			continue
		}
		info.Runs += len(h.runs)
		for _, r := range h.runs {
			if r.Status == host.StatusRunning {
				info.Active++
			}
		}
	}
	return info
}

// erase deletes handlers of a session until they had at least the given number of rows.
// When no handler is left, it deletes the journal, and then the session.
func (c *change) erase(s *session, p *host.SessionBatch) {
	assign(c, &s.erasing, true)
	assign(c, &s.wakeAt, 0)
	left := p.Erase
	for _, key := range slices.SortedFunc(maps.Keys(c.store.handlers), compareIDs) {
		h := c.store.handlers[key]
		if h.session != p.Key {
			continue
		}
		if left <= 0 {
			return
		}
		for _, r := range h.runs {
			set(c, c.store.runs, id{r.Tenant, r.RunID}, nil)
		}
		set(c, c.store.handlers, key, nil)
		assign(c, &s.handlers, s.handlers-1)
		left -= len(h.runs) + len(h.stream)
	}
	if n := min(left, len(s.rows)); n > 0 {
		assign(c, &s.rows, s.rows[n:])
		left -= n
	}
	if left > 0 {
		set(c, c.store.sessions, p.Key, nil)
	}
}

func compareIDs(a, b id) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.name, b.name))
}
