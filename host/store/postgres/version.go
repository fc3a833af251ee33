package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
)

// Versions that no name refers to any more are released. A sweep deletes released
// versions in the same transaction in which the last journal that needs them is deleted
// or cut. It must not fail because of the data it finds, since the batch would fail with
// it. So each statement checks by itself that nothing refers to the rows it deletes. A
// sweep deletes nothing while the needs of some session are not known.

// needed is a condition: a journal needs the version whose digest is in column digest of
// table r, or what some journal needs is not known. PostgreSQL would turn an EXISTS into a
// hash of all needs of all journals.
const needed = `(coalesce((SELECT true FROM versions v JOIN session_versions n ON n.version = v.id WHERE v.digest = r.digest LIMIT 1), false)
	OR EXISTS (SELECT FROM sessions WHERE unlisted > 0))`

// sweeps delete released versions that nothing needs. Compositions come first, because
// they need modules. A module that has a name again stays.
var sweeps = [...]string{
	`DELETE FROM released_compositions AS r WHERE NOT ` + needed,
	`DELETE FROM released AS r WHERE EXISTS (SELECT FROM plugins WHERE digest = r.digest)
		OR EXISTS (SELECT FROM composition_modules WHERE module = r.digest)`,
	`DELETE FROM modules AS r WHERE digest = ANY (ARRAY(SELECT digest FROM released))
		AND NOT EXISTS (SELECT FROM released_modules WHERE module = r.digest) AND NOT ` + needed,
	`DELETE FROM released AS r WHERE NOT EXISTS (SELECT FROM modules WHERE digest = r.digest)`,
}

func sweep(ctx context.Context, tx pgx.Tx) error {
	for _, statement := range sweeps {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// release records that no run can begin with the modules any more, unless another name
// refers to them. It then sweeps. The digests are in their stored form.
func release(ctx context.Context, tx pgx.Tx, digests []string) error {
	_, err := tx.Exec(ctx, `INSERT INTO released (digest) SELECT DISTINCT d FROM unnest($1::text[]) d
		WHERE NOT EXISTS (SELECT FROM plugins WHERE digest = d)
		AND NOT EXISTS (SELECT FROM composition_modules WHERE module = d) ON CONFLICT DO NOTHING`, digests)
	if err != nil {
		return err
	}
	return sweep(ctx, tx)
}

// releaseCompositions copy all versions of a composed workflow to the tables without
// names, within the transaction that deletes them from the table with names.
var releaseCompositions = []string{
	`INSERT INTO released_compositions (digest, tenant, name, version, created, record)
		SELECT digest, tenant, name, version, created, record FROM compositions WHERE tenant = $1 AND name = $2 ON CONFLICT DO NOTHING`,
	`INSERT INTO released_modules (digest, place, module) SELECT c.digest, m.place, m.module
		FROM compositions c JOIN composition_modules m USING (tenant, name, version) WHERE c.tenant = $1 AND c.name = $2 ON CONFLICT DO NOTHING`,
}

// SessionVersions implements [host.Store].
func (s *Store) SessionVersions(ctx context.Context, key host.SessionKey) ([]host.VersionUse, error) {
	type row struct {
		digest *string
		last   *int64
	}
	what := "session " + key.Session
	rows, err := list(ctx, s, what, `SELECT v.digest, n.last FROM sessions s
			LEFT JOIN session_versions n ON n.sid = s.id LEFT JOIN versions v ON v.id = n.version
		WHERE s.tenant = $1 AND s.session = $2 AND s.last > 0 ORDER BY v.digest`, []any{text(key.Tenant), text(key.Session)},
		fields(func(r *row) []any { return []any{&r.digest, &r.last} }))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, notFound(pgx.ErrNoRows, what)
	}
	var uses []host.VersionUse
	for _, r := range rows {
		if r.digest == nil {
			continue // the session needs no version
		}
		digest, err := name(*r.digest)
		if err != nil {
			return nil, notFound(err, what)
		}
		uses = append(uses, host.VersionUse{Digest: digest, Seq: uint64(*r.last)})
	}
	return uses, nil
}
