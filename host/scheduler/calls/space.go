package calls

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// A call of a resource of the kind kv is made inside: its write enters the journal's
// queue in the very item that has its answer, so both are durable in one commit, or
// neither. It needs no key, and is never made twice.
//
// Calls of a space are made one after the other: [Spaces] hands out the turns. What the
// calls have written and is not durable yet stands in the space, over what the store has:
// so a call sees all that comes before it in the queue. If that commit fails, the answer
// is behind it in the queue and fails as well; what leaves the host waits for it.
//
// The order of locks: a space's turn, a session's mutex, the scheduler's mutex or the mutex
// of [Spaces]. A goroutine that holds a session's mutex must not wait for a turn.

// Spaces are the spaces that are in use, or have writes that are not durable. It has a
// mutex of its own; its methods may be called from any goroutine.
type Spaces struct {
	cfg  SpacesConfig
	mu   sync.Mutex // guards what follows, and what Space says; no I/O under it
	open map[kv.Space]*Space
}

// SpacesConfig says what calls inside are made with. All fields must be set.
type SpacesConfig struct {
	Store     kv.Store
	Resources host.Resources
	// Grow refuses what would be too much for a tenant.
	Grow func(ctx context.Context, tenant string) error
}

// Space is a space in use.
type Space struct {
	space kv.Space
	turn  sync.Mutex // held by the call that is made

	users  int // calls that are made or wait for their turn
	known  bool
	totals kv.Totals // if known
	fresh  map[string]freshItem
	order  []freshKey // of fresh, and of those before them, the oldest first
}

// freshItem is an item as a write left it that was not durable when last looked at.
type freshItem struct {
	kv.Item // Value nil: the key is gone
	pos     uint64
}

type freshKey struct {
	key string
	pos uint64
}

// Init begins without spaces.
func (l *Spaces) Init(cfg SpacesConfig) { l.cfg, l.open = cfg, map[kv.Space]*Space{} }

// Enter waits for the turn of a call in a space.
func (l *Spaces) Enter(space kv.Space) *Space {
	l.mu.Lock()
	sp := l.open[space]
	if sp == nil {
		sp = &Space{space: space, fresh: map[string]freshItem{}}
		l.open[space] = sp
	}
	sp.users++
	l.mu.Unlock()
	sp.turn.Lock()
	return sp
}

// Leave ends the turn of a call.
func (l *Spaces) Leave(sp *Space) {
	sp.turn.Unlock()
	l.mu.Lock()
	sp.users--
	l.drop(sp)
	l.mu.Unlock()
}

// drop forgets a space that has no users and no writes that are not durable. The caller holds mu.
func (l *Spaces) drop(sp *Space) {
	if sp.users == 0 && len(sp.order) == 0 {
		delete(l.open, sp.space)
	}
}

// Settle forgets what is durable by now.
func (l *Spaces) Settle(durable uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sp := range l.open {
		n := 0
		for n < len(sp.order) && sp.order[n].pos <= durable {
			if k := sp.order[n]; sp.fresh[k.key].pos == k.pos {
				delete(sp.fresh, k.key)
			}
			n++
		}
		if sp.order = sp.order[n:]; len(sp.order) == 0 {
			sp.order = nil
		}
		l.drop(sp)
	}
}

// Wrote notes a write that is in the queue at a position.
func (l *Spaces) Wrote(sp *Space, w *kv.Write, pos uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sp.totals = w.Totals
	sp.fresh[w.Item.Key] = freshItem{w.Item, pos}
	sp.order = append(sp.order, freshKey{w.Item.Key, pos})
}

// data is a space as the call sees it whose turn it is: it implements kv.Data.
type data struct {
	ctx    context.Context
	store  kv.Store
	spaces *Spaces
	space  *Space
	away   error // of the store: what was worked out without it does not count
}

// begin has the totals known. Versions of a new space begin at the time, in
// microseconds, so that they never repeat those of an older space of the same name.
func (d *data) begin(now int64) error {
	if d.space.known {
		return nil
	}
	totals, err := d.store.KVTotals(d.ctx, d.space.space)
	if err != nil {
		return err
	}
	if totals.Last == 0 {
		totals.Last = uint64(max(now/1000, 0))
	}
	d.space.totals, d.space.known = totals, true
	return nil
}

// Totals implements kv.Data.
func (d *data) Totals() kv.Totals { return d.space.totals }

// Next implements kv.Data.
func (d *data) Next() uint64 { return d.space.totals.Last + 1 }

// Get implements kv.Data. What is not fresh is durable, and the store is asked
// after that was seen.
func (d *data) Get(key string) (kv.Item, bool, error) {
	d.spaces.mu.Lock()
	f, ok := d.space.fresh[key]
	d.spaces.mu.Unlock()
	if ok {
		return f.Item, f.Value != nil, nil
	}
	item, err := d.store.KVItem(d.ctx, d.space.space, key)
	if errors.Is(err, host.ErrNotFound) {
		return kv.Item{}, false, nil
	}
	if err != nil {
		d.away = err
	}
	return item, err == nil, err
}

// List implements kv.Data.
func (d *data) List(q kv.Query) (items []kv.Item, more bool, err error) {
	fresh := d.fresh(q)
	var size int64
	full := func() bool { return len(items) >= q.Limit || len(items) > 0 && size >= q.Bytes }
	take := func(i kv.Item) {
		if !q.Values {
			i.Value = nil
		}
		size += i.Size()
		items = append(items, i)
	}
	for page, rest := q, true; rest; {
		var stored []kv.Item
		if stored, rest, err = d.store.KVItems(d.ctx, d.space.space, page); err != nil {
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
func (d *data) fresh(q kv.Query) (list []kv.Item) {
	d.spaces.mu.Lock()
	defer d.spaces.mu.Unlock()
	for key, f := range d.space.fresh {
		if key > q.After && strings.HasPrefix(key, q.Prefix) {
			list = append(list, f.Item)
		}
	}
	slices.SortFunc(list, func(a, b kv.Item) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// write is what an item changes in the space.
func (d *data) write(item kv.Item) (w kv.Write, err error) {
	old, found, err := d.Get(item.Key)
	if err != nil {
		return w, err
	}
	item.Version = d.Next()
	w = kv.Write{Space: d.space.space, Item: item, Totals: d.space.totals}
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

// Answer has a call answered in its turn, at a time in Unix nanoseconds, and says what the
// call writes; nil: nothing. The error is the store's: there is no answer, and the space is
// as it was.
func (l *Spaces) Answer(ctx context.Context, sp *Space, call host.ResourceCall, now int64) (kv.Answer, *kv.Write, error) {
	data := &data{ctx: ctx, store: l.cfg.Store, spaces: l, space: sp}
	if err := data.begin(now); err != nil {
		return kv.Answer{}, nil, err
	}
	answer := l.cfg.Resources.Operate(call, sp.space, data)
	if data.away != nil {
		return kv.Answer{}, nil, data.away
	}
	if answer.Err != nil || answer.Write == nil {
		return answer, nil, nil
	}
	w, err := data.write(*answer.Write)
	if err == nil && w.Growth > 0 {
		err = l.cfg.Grow(ctx, sp.space.Tenant)
	}
	if err != nil {
		if host.CodeOf(err) == host.CodeLimitExceeded {
			return kv.Answer{Err: &abi.Error{Code: string(host.CodeLimitExceeded), Message: host.MessageOf(err)}}, nil, nil
		}
		return kv.Answer{}, nil, err
	}
	return answer, &w, nil
}
