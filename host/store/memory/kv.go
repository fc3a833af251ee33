package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/host/kv"
)

// space holds the data of a tenant's resource of kind kv.
type space struct {
	totals kv.Totals
	items  map[string]*kv.Item
}

// putKV performs a write, unless the definition that it is for has been deleted.
func (c *change) putKV(w *kv.Write) error {
	if w.Space.Tenant == "" || w.Space.Resource == "" || w.Item.Key == "" || w.Item.Version == 0 || w.Totals.Keys < 0 || w.Totals.Bytes < 0 {
		return fmt.Errorf("a write of the key %q to the resource %q of tenant %q, of version %d", w.Item.Key, w.Space.Resource, w.Space.Tenant, w.Item.Version)
	}
	if w.Space.Made != 0 {
		r, ok := c.store.resources.defined[resourceKey{w.Space.Tenant, w.Space.Resource}]
		if !ok || r.Created != w.Space.Made {
			return nil
		}
	}
	sp := c.store.kv[w.Space]
	if sp == nil {
		sp = &space{items: map[string]*kv.Item{}}
		set(c, c.store.kv, w.Space, sp)
	}
	assign(c, &sp.totals, w.Totals)
	if w.Item.Value == nil {
		set(c, sp.items, w.Item.Key, nil)
		return nil
	}
	item := w.Item
	item.Value = slices.Clone(item.Value)
	set(c, sp.items, item.Key, &item)
	return nil
}

// KVItem implements [kv.Store].
func (s *Store) KVItem(ctx context.Context, of kv.Space, key string) (item kv.Item, err error) {
	err = s.view(ctx, func() error {
		sp := s.kv[of]
		if sp == nil || sp.items[key] == nil {
			return notFound("key", key)
		}
		item = *sp.items[key]
		item.Value = slices.Clone(item.Value)
		return nil
	})
	return item, err
}

// KVItems implements [kv.Store].
func (s *Store) KVItems(ctx context.Context, of kv.Space, q kv.Query) (items []kv.Item, more bool, err error) {
	err = s.view(ctx, func() error {
		sp := s.kv[of]
		if sp == nil {
			return nil
		}
		var size int64
		for _, key := range slices.Sorted(maps.Keys(sp.items)) {
			if key <= q.After || !strings.HasPrefix(key, q.Prefix) {
				continue
			}
			if more = len(items) >= max(q.Limit, 1) || len(items) > 0 && size >= q.Bytes; more {
				return nil
			}
			item := *sp.items[key]
			if item.Value = slices.Clone(item.Value); !q.Values {
				item.Value = nil
			}
			items = append(items, item)
			size += item.Size()
		}
		return nil
	})
	return items, more, err
}

// KVTotals implements [kv.Store].
func (s *Store) KVTotals(ctx context.Context, of kv.Space) (t kv.Totals, err error) {
	err = s.view(ctx, func() error {
		if sp := s.kv[of]; sp != nil {
			t = sp.totals
		}
		return nil
	})
	return t, err
}
