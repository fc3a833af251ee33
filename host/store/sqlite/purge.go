package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/weftrun/weft/host"
)

// drop deletes the part's old runs with their events, then handlers without runs, and
// then a private session without handlers.
func (s *Store) drop(ctx context.Context, sid int64, p *host.SessionBatch) error {
	if len(p.Drop) == 0 {
		return nil
	}
	for _, id := range p.Drop {
		var hid int64
		err := s.stmts.dropRun.QueryRowContext(ctx, p.Key.Tenant, id, sid).Scan(&hid)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			_, err = s.stmts.dropEvents.ExecContext(ctx, hid, id)
		}
		if err == nil {
			_, err = s.stmts.dropHandler.ExecContext(ctx, hid)
		}
		if err != nil {
			return err
		}
	}
	return s.leave(ctx, sid)
}

// purge deletes the part's handlers with their runs and streams. A private session is
// deleted with its last handler, and the journal with the session.
func (s *Store) purge(ctx context.Context, sid int64, p *host.SessionBatch) error {
	if len(p.Purge) == 0 {
		return nil
	}
	for _, id := range p.Purge {
		if _, err := s.stmts.deleteHandler.ExecContext(ctx, p.Key.Tenant, id, sid); err != nil {
			return err
		}
	}
	return s.leave(ctx, sid)
}

// leave deletes a private session that has no handler left. It also forgets what the
// batch's entries need, because a session that the batch creates later may get the same
// id.
func (s *Store) leave(ctx context.Context, sid int64) error {
	res, err := s.stmts.deleteSession.ExecContext(ctx, sid)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if n > 0 {
		s.needs = slices.DeleteFunc(s.needs, func(n need) bool { return n.sid == sid })
	}
	return err
}
