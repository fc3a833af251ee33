package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/store/record"
)

// Queries for faults that `weft check` reports: see [loose].
const (
	loosePlaces = `SELECT tenant, '', 'what the resource ' || resource || ' keeps is of no definition' FROM kv_spaces
		WHERE made <> 0 AND NOT EXISTS (SELECT 1 FROM resources r
			WHERE r.tenant = kv_spaces.tenant AND r.name = kv_spaces.resource AND r.created = kv_spaces.made)`
	wrongTotals = `SELECT s.tenant, '', 'the resource ' || s.resource || ' keeps ' || count(k.key) || ' keys of '
			|| coalesce(sum(length(CAST(k.key AS BLOB)) + length(k.value)), 0) || ' bytes, and not ' || s.keys || ' of ' || s.bytes
		FROM kv_spaces s LEFT JOIN kv k ON k.space = s.id GROUP BY s.id
		HAVING count(k.key) <> s.keys OR coalesce(sum(length(CAST(k.key AS BLOB)) + length(k.value)), 0) <> s.bytes
			OR coalesce(max(k.version), 0) > s.last`
)

// putKV performs writes to resources of kind kv, within the batch's transaction.
func (s *Store) putKV(ctx context.Context, list []kv.Write) error {
	for i := range list {
		w := &list[i]
		if w.Space.Tenant == "" || w.Space.Resource == "" || w.Item.Key == "" || w.Item.Version == 0 || w.Totals.Keys < 0 || w.Totals.Bytes < 0 {
			return record.Refuse("a write of the key %q to the resource %q of tenant %q, of version %d", w.Item.Key, w.Space.Resource, w.Space.Tenant, w.Item.Version)
		}
		var id int64
		err := s.stmts.putSpace.QueryRowContext(ctx, w.Space.Tenant, w.Space.Resource, w.Space.Made,
			int64(w.Totals.Last), w.Totals.Keys, w.Totals.Bytes).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			continue // the definition has been deleted
		}
		if err == nil && w.Item.Value == nil {
			_, err = s.stmts.dropItem.ExecContext(ctx, id, w.Item.Key)
		} else if err == nil {
			_, err = s.stmts.putItem.ExecContext(ctx, id, w.Item.Key, int64(w.Item.Version), []byte(w.Item.Value))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const ofSpace = `(SELECT id FROM kv_spaces WHERE tenant = ?1 AND resource = ?2 AND made = ?3)`

// KVItem implements [kv.Store].
func (s *Store) KVItem(ctx context.Context, space kv.Space, key string) (kv.Item, error) {
	item := kv.Item{Key: key}
	err := s.query.kvItem.QueryRowContext(ctx, space.Tenant, space.Resource, space.Made, key).Scan(&item.Version, (*[]byte)(&item.Value))
	return item, notFound(err, "key "+key)
}

// KVItems implements [kv.Store].
func (s *Store) KVItems(ctx context.Context, space kv.Space, q kv.Query) (items []kv.Item, more bool, err error) {
	rows, err := s.query.kvItems.QueryContext(ctx, space.Tenant, space.Resource, space.Made, q.After, q.Prefix, behind(q.Prefix), max(q.Limit, 1)+1, q.Values)
	if err != nil {
		return nil, false, notFound(err, "keys")
	}
	defer func() { _ = rows.Close() }()
	var size int64
	for rows.Next() {
		var item kv.Item
		if err := rows.Scan(&item.Key, &item.Version, (*[]byte)(&item.Value)); err != nil {
			return nil, false, notFound(err, "keys")
		}
		if len(items) >= max(q.Limit, 1) || len(items) > 0 && size >= q.Bytes {
			return items, true, nil
		}
		items = append(items, item)
		size += item.Size()
	}
	return items, false, notFound(rows.Err(), "keys")
}

// behind returns the upper bound of the keys with a prefix: all such keys are below it,
// and all greater keys without the prefix are not. The byte 0xff does not occur in UTF-8.
func behind(prefix string) string {
	if prefix == "" {
		return "\xff"
	}
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] + 1})
}

// KVTotals implements [kv.Store].
func (s *Store) KVTotals(ctx context.Context, space kv.Space) (t kv.Totals, err error) {
	err = s.query.kvTotals.QueryRowContext(ctx, space.Tenant, space.Resource, space.Made).Scan(&t.Last, &t.Keys, &t.Bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return kv.Totals{}, nil
	}
	return t, notFound(err, "totals")
}
