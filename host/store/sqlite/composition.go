package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
)

// PutComposition implements [host.Store]. It refuses a version that is not the next one,
// and a version that names a module that is not stored.
func (s *Store) PutComposition(ctx context.Context, v host.CompositionVersion) error {
	return s.update(ctx, func(ctx context.Context) error { return s.insertComposition(ctx, &v) })
}

// insertComposition writes a version within a transaction.
func (s *Store) insertComposition(ctx context.Context, v *host.CompositionVersion) error {
	err := s.insertVersion(ctx, v)
	if err != nil {
		return fmt.Errorf("storing composition %s: %w", v.Name, err)
	}
	return nil
}

func (s *Store) insertVersion(ctx context.Context, v *host.CompositionVersion) error {
	var newest int
	err := s.conn.QueryRowContext(ctx,
		`SELECT coalesce(max(version), 0) FROM compositions WHERE tenant = ? AND name = ?`, v.Tenant, v.Name).Scan(&newest)
	if err != nil {
		return err
	}
	if v.Version != newest+1 {
		return fmt.Errorf("version %d does not follow version %d", v.Version, newest)
	}
	record := v.Record
	if record == nil {
		record = []byte{} // nil would be NULL
	}
	_, err = s.conn.ExecContext(ctx, `INSERT INTO compositions (tenant, name, version, digest, created, record) VALUES (?, ?, ?, ?, ?, ?)`,
		v.Tenant, v.Name, v.Version, v.Digest, v.Created, record)
	if err != nil {
		return err
	}
	for i, digest := range v.Modules {
		res, err := s.conn.ExecContext(ctx, `INSERT INTO composition_modules (tenant, name, version, place, module)
			SELECT ?, ?, ?, ?, digest FROM modules WHERE digest = ?`, v.Tenant, v.Name, v.Version, i, digest)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(fmt.Errorf("module %s: %w", digest, host.ErrNotFound), err)
		}
	}
	return nil
}

// compositionColumns are the columns of compositions c, and the modules in order as a
// JSON list. One query reads one snapshot.
const compositionColumns = `tenant, name, version, digest, created, record,
	(SELECT json_group_array(module ORDER BY place) FROM composition_modules
		WHERE tenant = c.tenant AND name = c.name AND version = c.version)`

// Compositions implements [host.Store]. Compositions with the same name are in the order
// of their tenants.
func (s *Store) Compositions(ctx context.Context, tenant string) ([]host.CompositionVersion, error) {
	if s.schema < 3 {
		return nil, nil
	}
	return s.compositions(ctx, `SELECT `+compositionColumns+` FROM compositions c WHERE (?1 = '' OR tenant = ?1)
		AND version = (SELECT max(version) FROM compositions WHERE tenant = c.tenant AND name = c.name)
		ORDER BY name, tenant`, tenant)
}

// Composition implements [host.Store]. If several versions have the digest, it returns
// any of them: they differ only in their places in their histories.
func (s *Store) Composition(ctx context.Context, digest string) (host.CompositionVersion, error) {
	query := `SELECT ` + compositionColumns + ` FROM compositions c WHERE digest = ?1`
	switch {
	case s.schema < 3:
		return host.CompositionVersion{}, notFound(sql.ErrNoRows, "composition "+digest)
	case s.schema >= 8:
		query += ` UNION ALL SELECT tenant, name, version, digest, created, record,
			(SELECT json_group_array(module ORDER BY place) FROM released_modules WHERE digest = c.digest)
			FROM released_compositions c WHERE digest = ?1`
	}
	found, err := s.compositions(ctx, query+` LIMIT 1`, digest)
	if err == nil && len(found) == 0 {
		err = notFound(sql.ErrNoRows, "composition "+digest)
	}
	if err != nil {
		return host.CompositionVersion{}, err
	}
	return found[0], nil
}

func (s *Store) compositions(ctx context.Context, query string, arg string) ([]host.CompositionVersion, error) {
	rows, err := s.read.QueryContext(ctx, query, arg)
	if err != nil {
		return nil, notFound(err, "compositions")
	}
	defer func() { _ = rows.Close() }()
	var list []host.CompositionVersion
	for rows.Next() {
		var v host.CompositionVersion
		var modules []byte
		err := rows.Scan(&v.Tenant, &v.Name, &v.Version, &v.Digest, &v.Created, &v.Record, &modules)
		if err == nil {
			err = json.Unmarshal(modules, &v.Modules)
		}
		if err != nil {
			return nil, notFound(err, "compositions")
		}
		list = append(list, v)
	}
	return list, notFound(rows.Err(), "compositions")
}

// DeleteComposition implements [host.Store].
func (s *Store) DeleteComposition(ctx context.Context, tenant, name string) error {
	err := s.update(ctx, func(ctx context.Context) error {
		if err := s.releaseCompositions(ctx, tenant, name); err != nil {
			return err
		}
		rows, err := s.conn.QueryContext(ctx,
			`SELECT DISTINCT module FROM composition_modules WHERE tenant = ? AND name = ?`, tenant, name)
		if err != nil {
			return err
		}
		modules, err := texts(rows)
		if err != nil {
			return err
		}
		res, err := s.conn.ExecContext(ctx, `DELETE FROM compositions WHERE tenant = ? AND name = ?`, tenant, name)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(sql.ErrNoRows, err)
		}
		return s.release(ctx, modules)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(sql.ErrNoRows, "composition "+name)
	}
	if err != nil {
		return fmt.Errorf("deleting composition %s: %w", name, err)
	}
	return nil
}
