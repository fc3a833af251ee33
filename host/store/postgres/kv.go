package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/kv"
)

const ofSpace = `(SELECT id FROM kv_spaces WHERE tenant = $1 AND resource = $2 AND made = $3)`

// valueTo scans an encoded value.
func valueTo(v *abi.Raw) *[]byte { return (*[]byte)(v) }

// KVItem implements [kv.Store].
func (s *Store) KVItem(ctx context.Context, space kv.Space, key string) (kv.Item, error) {
	item := kv.Item{Key: key}
	err := s.one(ctx, "key "+key, `SELECT version, value FROM kv WHERE space = `+ofSpace+` AND key = $4`,
		[]any{text(space.Tenant), text(space.Resource), space.Made, []byte(key)}, &item.Version, valueTo(&item.Value))
	return item, err
}

// KVItems implements [kv.Store].
func (s *Store) KVItems(ctx context.Context, space kv.Space, q kv.Query) (items []kv.Item, more bool, err error) {
	limit := max(q.Limit, 1)
	items, err = list(ctx, s, "keys", `SELECT key, version, CASE WHEN $8 THEN value END FROM
			(SELECT *, sum(octet_length(key) + octet_length(value)) OVER (ORDER BY key) - octet_length(key) - octet_length(value) AS before
				FROM (SELECT * FROM kv WHERE space = `+ofSpace+` AND key > $4 AND key >= $5 AND ($6::bytea IS NULL OR key < $6) ORDER BY key LIMIT $7) s) k
			WHERE before <= $9 OR NOT $8 ORDER BY key`,
		[]any{text(space.Tenant), text(space.Resource), space.Made, []byte(q.After), []byte(q.Prefix), behind(q.Prefix), limit + 1, q.Values,
			max(q.Bytes, 0) + abi.MaxRecord},
		fields(func(i *kv.Item) []any { return []any{bytesTo{&i.Key}, &i.Version, valueTo(&i.Value)} }))
	if err != nil {
		return nil, false, err
	}
	var size int64
	for i := range items {
		if i >= limit || i > 0 && size >= q.Bytes {
			return items[:i], true, nil
		}
		size += items[i].Size()
	}
	return items, false, nil
}

// behind returns the upper bound of the keys with a prefix, or nil if there is none.
func behind(prefix string) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] != 0xff {
			bound := []byte(prefix[:n])
			bound[n-1]++
			return bound
		}
	}
	return nil
}

// KVTotals implements [kv.Store].
func (s *Store) KVTotals(ctx context.Context, space kv.Space) (t kv.Totals, err error) {
	err = s.read(ctx, func(q querier) error {
		return q.QueryRow(ctx, `SELECT last, keys, bytes FROM kv_spaces WHERE tenant = $1 AND resource = $2 AND made = $3`,
			text(space.Tenant), text(space.Resource), space.Made).Scan(&t.Last, &t.Keys, &t.Bytes)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return kv.Totals{}, nil
	}
	return t, notFound(err, "totals")
}
