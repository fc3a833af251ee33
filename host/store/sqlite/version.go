package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/weftrun/weft/host"
)

// Versions that no name refers to any more are released. A sweep deletes released
// versions in the same transaction in which the last journal that needs them is deleted
// or cut. A sweep must not fail because of the data it finds, since the batch would fail
// with it. So each statement checks by itself that nothing refers to the rows it deletes.

// settleJournal records from where the session is loaded, and releases the versions that
// only cut entries need.
func (s *Store) settleJournal(ctx context.Context, sid int64, p *host.SessionBatch) error {
	if p.Snapshot != 0 {
		if _, err := s.stmts.setSnapshot.ExecContext(ctx, sid, int64(p.First)); err != nil {
			return err
		}
	}
	for _, v := range p.Versions {
		s.needs = append(s.needs, need{sid, v.Digest, int64(v.Seq)})
	}
	if p.Cut == 0 {
		return nil
	}
	if _, err := s.stmts.cutJournal.ExecContext(ctx, sid, int64(p.Cut)); err != nil {
		return err
	}
	s.cuts = append(s.cuts, sid)
	_, err := s.stmts.countJournal.ExecContext(ctx, sid)
	return err
}

// need is a version that a session's journal needs.
type need struct {
	sid    int64
	digest string
	last   int64
}

// MarshalJSON implements json.Marshaler with the form that the statements take.
func (n need) MarshalJSON() ([]byte, error) { return json.Marshal([]any{n.sid, n.digest, n.last}) }

// putNeeds records what the batch's entries need, in one statement. A statement for each
// session would take a seventh of the time of appending one-step runs.
func (s *Store) putNeeds(ctx context.Context) error {
	if len(s.needs) == 0 {
		return nil
	}
	list, err := json.Marshal(s.needs)
	if err != nil {
		return err
	}
	res, err := s.stmts.useVersions.ExecContext(ctx, string(list))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || int(n) == len(s.needs) {
		return err
	}
	// A version is used for the first time.
	if _, err := s.stmts.nameVersions.ExecContext(ctx, string(list)); err != nil {
		return err
	}
	_, err = s.stmts.useVersions.ExecContext(ctx, string(list))
	return err
}

// settleVersions records what a batch needs, and sweeps if the batch has deleted or cut
// journals.
func (s *Store) settleVersions(ctx context.Context, b *host.Batch) error {
	if err := s.putNeeds(ctx); err != nil {
		return err
	}
	for _, sid := range s.cuts {
		if _, err := s.stmts.cutVersions.ExecContext(ctx, sid); err != nil {
			return err
		}
		if _, err := s.stmts.listSession.ExecContext(ctx, sid); err != nil {
			return err
		}
	}
	lets := false
	for i := range b.Sessions {
		p := &b.Sessions[i]
		lets = lets || p.Cut != 0 || len(p.Drop)+len(p.Purge)+p.Erase > 0
	}
	if !lets {
		return nil
	}
	var any bool
	if err := s.stmts.releases.QueryRowContext(ctx).Scan(&any); err != nil || !any {
		return err
	}
	return s.sweep(ctx)
}

// release records, within a transaction, that no run can begin with the modules any more,
// unless another name refers to them. It then sweeps.
func (s *Store) release(ctx context.Context, digests []string) error {
	for _, digest := range digests {
		_, err := s.conn.ExecContext(ctx, `INSERT INTO released (digest) SELECT ?1
			WHERE NOT EXISTS (SELECT 1 FROM plugins WHERE digest = ?1)
			AND NOT EXISTS (SELECT 1 FROM composition_modules WHERE module = ?1) ON CONFLICT DO NOTHING`, digest)
		if err != nil {
			return err
		}
	}
	return s.sweep(ctx)
}

// releaseCompositions copies all versions of a composed workflow to the table without
// names, within the transaction that deletes them from the table with names.
func (s *Store) releaseCompositions(ctx context.Context, tenant, name string) error {
	_, err := s.conn.ExecContext(ctx, `INSERT INTO released_compositions (digest, tenant, name, version, created, record)
		SELECT digest, tenant, name, version, created, record FROM compositions WHERE tenant = ? AND name = ? ON CONFLICT DO NOTHING`, tenant, name)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, `INSERT INTO released_modules (digest, place, module) SELECT c.digest, m.place, m.module
		FROM compositions c JOIN composition_modules m USING (tenant, name, version) WHERE c.tenant = ? AND c.name = ? ON CONFLICT DO NOTHING`, tenant, name)
	return err
}

// needed is a condition: a journal needs the version whose digest is in column digest of
// table r.
const needed = `EXISTS (SELECT 1 FROM versions v JOIN session_versions n ON n.version = v.id WHERE v.digest = r.digest)`

// sweeps delete released versions that nothing needs. Compositions come first, because
// they need modules. A module that has a name again stays.
var sweeps = [...]string{
	`DELETE FROM released_compositions AS r WHERE NOT ` + needed,
	`DELETE FROM released AS r WHERE EXISTS (SELECT 1 FROM plugins WHERE digest = r.digest)
		OR EXISTS (SELECT 1 FROM composition_modules WHERE module = r.digest)`,
	`DELETE FROM modules AS r WHERE digest IN (SELECT digest FROM released)
		AND NOT EXISTS (SELECT 1 FROM released_modules WHERE module = r.digest) AND NOT ` + needed,
	`DELETE FROM released AS r WHERE NOT EXISTS (SELECT 1 FROM modules WHERE digest = r.digest)`,
}

// sweep deletes the released versions that no journal needs, within a transaction. It
// deletes nothing while the needs of some session are not known.
func (s *Store) sweep(ctx context.Context) error {
	var unlisted bool
	err := s.stmts.unlisted.QueryRowContext(ctx).Scan(&unlisted)
	if err != nil || unlisted {
		return err
	}
	for _, statement := range s.stmts.sweeps {
		if _, err := statement.ExecContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// SessionVersions implements [host.Store].
func (s *Store) SessionVersions(ctx context.Context, key host.SessionKey) (_ []host.VersionUse, err error) {
	defer func() { err = notFound(err, "session "+key.Session) }()
	rows, err := s.query.versions.QueryContext(ctx, key.Tenant, key.Session)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []host.VersionUse
	exists := false
	for rows.Next() {
		exists = true
		var digest sql.NullString
		var last sql.NullInt64
		if err := rows.Scan(&digest, &last); err != nil {
			return nil, err
		}
		if digest.Valid { // else the session needs no version
			list = append(list, host.VersionUse{Digest: digest.String, Seq: uint64(last.Int64)})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !exists {
		return nil, sql.ErrNoRows
	}
	return list, nil
}
