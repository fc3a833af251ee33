package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// A call of a resource of the kind kv is made inside: its write enters the journal's
// queue in the very item that has its answer, so both are durable in one commit, or
// neither. It needs no key, and is never made twice.
//
// Calls of a space are made one after the other, by the lane of the space. What they
// have written and is not durable yet stands in the lane, over what the store has: so
// a call sees all that comes before it in the queue. If that commit fails, the answer
// is behind it in the queue and fails as well; what leaves the host waits for it.
//
// The order of locks: a lane's turn, a session's mu, Scheduler.mu or lanes.mu. Nobody
// who holds a session's mu waits for a turn.

// lanes are the spaces that are in use, or have writes that are not durable.
type lanes struct {
	mu   sync.Mutex // guards what follows, in lanes too; no I/O under it
	open map[host.KVSpace]*lane
}

// lane is a space in use.
type lane struct {
	space host.KVSpace
	turn  sync.Mutex // held by the call that is made

	users  int // calls that are made or wait for their turn
	known  bool
	totals host.KVTotals // if known
	fresh  map[string]freshItem
	order  []freshKey // of fresh, and of those before them, the oldest first
}

// freshItem is an item as a write left it that was not durable when last looked at.
type freshItem struct {
	host.KVItem // Value nil: the key is gone
	pos         uint64
}

type freshKey struct {
	key string
	pos uint64
}

// enter waits for the turn of a call in a space.
func (l *lanes) enter(space host.KVSpace) *lane {
	l.mu.Lock()
	ln := l.open[space]
	if ln == nil {
		if l.open == nil {
			l.open = map[host.KVSpace]*lane{}
		}
		ln = &lane{space: space, fresh: map[string]freshItem{}}
		l.open[space] = ln
	}
	ln.users++
	l.mu.Unlock()
	ln.turn.Lock()
	return ln
}

func (l *lanes) leave(ln *lane) {
	ln.turn.Unlock()
	l.mu.Lock()
	ln.users--
	l.drop(ln)
	l.mu.Unlock()
}

// drop lets go of a lane that nobody needs: the store has all of it. Called with mu held.
func (l *lanes) drop(ln *lane) {
	if ln.users == 0 && len(ln.order) == 0 {
		delete(l.open, ln.space)
	}
}

// settle forgets what is durable by now.
func (l *lanes) settle(durable uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.open {
		n := 0
		for n < len(ln.order) && ln.order[n].pos <= durable {
			if k := ln.order[n]; ln.fresh[k.key].pos == k.pos {
				delete(ln.fresh, k.key)
			}
			n++
		}
		if ln.order = ln.order[n:]; len(ln.order) == 0 {
			ln.order = nil
		}
		l.drop(ln)
	}
}

// wrote notes a write that is in the queue at a position.
func (l *lanes) wrote(ln *lane, w *host.KVWrite, pos uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.totals = w.Totals
	ln.fresh[w.Item.Key] = freshItem{w.Item, pos}
	ln.order = append(ln.order, freshKey{w.Item.Key, pos})
}

// kvData is a space as the call sees it whose turn it is: it implements host.KVData.
type kvData struct {
	ctx   context.Context
	store Store
	lanes *lanes
	lane  *lane
	away  error // of the store: what was worked out without it does not count
}

// begin has the totals known. Versions of a new space begin at the time, in
// microseconds, so that they never repeat those of an older space of the same name.
func (d *kvData) begin(now int64) error {
	if d.lane.known {
		return nil
	}
	totals, err := d.store.KVTotals(d.ctx, d.lane.space)
	if err != nil {
		return err
	}
	if totals.Last == 0 {
		totals.Last = uint64(max(now/1000, 0))
	}
	d.lane.totals, d.lane.known = totals, true
	return nil
}

// Totals implements host.KVData.
func (d *kvData) Totals() host.KVTotals { return d.lane.totals }

// Next implements host.KVData.
func (d *kvData) Next() uint64 { return d.lane.totals.Last + 1 }

// Get implements host.KVData. What is not fresh is durable, and the store is asked
// after that was seen.
func (d *kvData) Get(key string) (host.KVItem, bool, error) {
	d.lanes.mu.Lock()
	f, ok := d.lane.fresh[key]
	d.lanes.mu.Unlock()
	if ok {
		return f.KVItem, f.Value != nil, nil
	}
	item, err := d.store.KVItem(d.ctx, d.lane.space, key)
	if errors.Is(err, host.ErrNotFound) {
		return host.KVItem{}, false, nil
	}
	if err != nil {
		d.away = err
	}
	return item, err == nil, err
}

// List implements host.KVData.
func (d *kvData) List(q host.KVQuery) (items []host.KVItem, more bool, err error) {
	fresh := d.fresh(q)
	var size int64
	full := func() bool { return len(items) >= q.Limit || len(items) > 0 && size >= q.Bytes }
	take := func(i host.KVItem) {
		if !q.Values {
			i.Value = nil
		}
		size += i.Size()
		items = append(items, i)
	}
	for page, rest := q, true; rest; {
		var stored []host.KVItem
		if stored, rest, err = d.store.KVItems(d.ctx, d.lane.space, page); err != nil {
			d.away = err
			return nil, false, err
		}
		for len(stored) > 0 || len(fresh) > 0 && !rest {
			if full() {
				return items, true, nil
			}
			switch {
			case len(stored) == 0 || len(fresh) > 0 && fresh[0].Key < stored[0].Key:
				if fresh[0].Value != nil {
					take(fresh[0])
				}
				fresh = fresh[1:]
				continue
			case len(fresh) > 0 && fresh[0].Key == stored[0].Key:
				if fresh[0].Value != nil {
					take(fresh[0])
				}
				fresh = fresh[1:]
			default:
				take(stored[0])
			}
			page.After, stored = stored[0].Key, stored[1:]
		}
	}
	return items, false, nil
}

// fresh are the items of a query that are not durable, those that are gone included, by
// key.
func (d *kvData) fresh(q host.KVQuery) (list []host.KVItem) {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	for key, f := range d.lane.fresh {
		if key > q.After && strings.HasPrefix(key, q.Prefix) {
			list = append(list, f.KVItem)
		}
	}
	slices.SortFunc(list, func(a, b host.KVItem) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// write is what an item changes in the space.
func (d *kvData) write(item host.KVItem) (w host.KVWrite, err error) {
	old, found, err := d.Get(item.Key)
	if err != nil {
		return w, err
	}
	item.Version = d.Next()
	w = host.KVWrite{Space: d.lane.space, Item: item, Totals: d.lane.totals}
	w.Totals.Last = item.Version
	if found {
		w.Growth -= old.Size()
		w.Keys--
	}
	if item.Value != nil {
		w.Growth += item.Size()
		w.Keys++
	}
	w.Totals.Bytes += w.Growth
	w.Totals.Keys += int64(w.Keys)
	return w, nil
}

// operate makes a call of a resource that is kept with the journal, and brings its
// answer. The error says why the call was not made and is to be made later: what the
// store cannot do at the moment is no answer.
func (s *Scheduler) operate(ctx context.Context, o *outcall) (away error) {
	ss, err := s.acquire(ctx, o.key.session, false)
	if err != nil && host.CodeOf(err) != host.CodeNotFound && ctx.Err() == nil {
		return err
	}
	if err != nil { // nobody wants it
		s.mu.Lock()
		s.calls.remove(o)
		s.mu.Unlock()
		return nil
	}
	defer ss.release()
	ln := s.lanes.enter(o.space)
	defer s.lanes.leave(ln)
	ss.mu.Lock()
	call, ok := ss.eng.OutCall(o.key.invocation)
	span := ss.tracedCall(&call)
	ss.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	if ok && call.Attempt == o.attempt && call.N == o.n {
		s.count(&s.counters.Calls)
		noted := s.noteCall(o, call.Version, call.Step)
		answer, write, err := s.ask(ctx, o, ln, callOf(o, &call))
		noted.leave()
		if ctx.Err() != nil {
			return nil
		}
		s.reads.note(s.now(), err != nil)
		if err != nil {
			ss.log(ctx, slog.LevelError, "a call of a resource is put off: the store cannot be read", "resource", call.Resource, "error", err)
			return err
		}
		if span != nil {
			span.Ended, span.Code = s.now(), host.FailureCode(answer.Err)
			s.cfg.Tracer.Called(span)
		}
		ss.answerKV(o, ln, &answer, write)
	}
	s.mu.Lock()
	s.calls.remove(o)
	s.mu.Unlock()
	return nil
}

// ask has a call answered in its turn, and says what it writes; nil: nothing. The error
// is the store's: there is no answer, and the lane is as it was.
func (s *Scheduler) ask(ctx context.Context, o *outcall, ln *lane, call host.ResourceCall) (host.KVAnswer, *host.KVWrite, error) {
	data := &kvData{ctx: ctx, store: s.cfg.Store, lanes: &s.lanes, lane: ln}
	if err := data.begin(s.now()); err != nil {
		return host.KVAnswer{}, nil, err
	}
	answer := s.cfg.Resources.Operate(call, o.space, data)
	if data.away != nil {
		return host.KVAnswer{}, nil, data.away
	}
	if answer.Err != nil || answer.Write == nil {
		return answer, nil, nil
	}
	w, err := data.write(*answer.Write)
	if err == nil && w.Growth > 0 {
		err = s.cfg.Quotas.Grow(ctx, o.space.Tenant)
	}
	if err != nil {
		if host.CodeOf(err) == host.CodeLimitExceeded {
			return host.KVAnswer{Err: guestError(err)}, nil, nil
		}
		return host.KVAnswer{}, nil, err
	}
	return answer, &w, nil
}

// answerKV brings an answer and its write to the session, both or none of them.
func (ss *session) answerKV(o *outcall, ln *lane, answer *host.KVAnswer, write *host.KVWrite) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if write != nil {
		ss.kv = []host.KVWrite{*write}
	}
	_, pos, err := ss.tick(engine.ResourceAnswered{Invocation: o.key.invocation, Attempt: o.attempt, N: o.n, Value: answer.Value, Err: answer.Err}, nil)
	ss.kv = nil
	switch {
	case err == nil && write != nil:
		ss.s.lanes.wrote(ln, write, pos)
	case err != nil && !tooLate(err):
		ss.log(context.Background(), slog.LevelError, "the answer of a resource is refused", "error", err)
	}
}
