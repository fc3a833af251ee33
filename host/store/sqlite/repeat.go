package sqlite

import (
	"context"

	"github.com/weftrun/weft/host"
)

// Repeat implements [host.Store].
func (s *Store) Repeat(ctx context.Context, tenant, route, key string) (host.Repeat, error) {
	r := host.Repeat{Route: route, Key: key}
	err := s.query.repeat.QueryRowContext(ctx, tenant, route, key).Scan(&r.Hash, &r.RunID, &r.Made)
	if err != nil {
		return host.Repeat{}, notFound(err, "request "+key)
	}
	return r, nil
}

// ForgetRepeats implements [host.Store].
func (s *Store) ForgetRepeats(ctx context.Context, before int64, limit int) (n int, err error) {
	err = s.update(ctx, func(ctx context.Context) error {
		res, err := s.conn.ExecContext(ctx, `DELETE FROM repeats WHERE (tenant, route, key) IN
			(SELECT tenant, route, key FROM repeats WHERE made < ? ORDER BY made LIMIT ?)`, before, limit)
		if err != nil {
			return err
		}
		deleted, err := res.RowsAffected()
		n = int(deleted)
		return err
	})
	return n, err
}
