package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// PutModule implements [host.Store].
func (s *Store) PutModule(ctx context.Context, m host.ModuleRecord) error {
	imports, err := abi.Marshal(m.Imports)
	if err != nil {
		return fmt.Errorf("storing module %s: %w", m.Digest, err)
	}
	content, err := record.PackModule(m.Bytes)
	if err != nil {
		return fmt.Errorf("storing module %s: %w", m.Digest, err)
	}
	err = s.update(ctx, func(ctx context.Context) error {
		// A version is about to name the module, so a sweep must not delete it until
		// then.
		if _, err := s.conn.ExecContext(ctx, `DELETE FROM released WHERE digest = ?`, m.Digest); err != nil {
			return err
		}
		res, err := s.conn.ExecContext(ctx,
			`INSERT INTO modules (digest, rewritten, image_hash, manifest, imports) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, m.Digest, m.Rewritten, m.ImageHash, []byte(m.Manifest), imports)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		if n == 0 {
			_, err = s.conn.ExecContext(ctx,
				`UPDATE modules SET image_hash = ?2 WHERE digest = ?1 AND image_hash = ''`, m.Digest, m.ImageHash)
			return err
		}
		_, err = s.conn.ExecContext(ctx,
			`INSERT INTO module_bytes (digest, bytes) VALUES (?, ?)`, m.Digest, content)
		return err
	})
	if err != nil {
		return fmt.Errorf("storing module %s: %w", m.Digest, err)
	}
	return nil
}

// Module implements [host.Store].
func (s *Store) Module(ctx context.Context, digest string) (host.ModuleRecord, error) {
	m := host.ModuleRecord{Digest: digest}
	var manifest, imports []byte
	err := s.query.module.QueryRowContext(ctx, digest).Scan(&m.Rewritten, &m.ImageHash, &manifest, &imports, &m.Bytes)
	if err != nil {
		return host.ModuleRecord{}, notFound(err, "module "+digest)
	}
	m.Manifest = manifest
	if m.Bytes, err = record.UnpackModule(m.Bytes); err != nil {
		return host.ModuleRecord{}, fmt.Errorf("module %s: %w", digest, err)
	}
	if err := abi.Unmarshal(imports, &m.Imports); err != nil {
		return host.ModuleRecord{}, fmt.Errorf("imports of module %s: %w", digest, err)
	}
	return m, nil
}

// PutPlugin implements [host.Store]. It refuses a version that is not the next one, and a
// version of a module that is not stored.
func (s *Store) PutPlugin(ctx context.Context, v host.PluginVersion, remade ...host.CompositionVersion) error {
	err := s.update(ctx, func(ctx context.Context) error {
		var newest, modules int
		err := s.conn.QueryRowContext(ctx,
			`SELECT (SELECT coalesce(max(version), 0) FROM plugins WHERE tenant = ?1 AND name = ?2),
				(SELECT count(*) FROM modules WHERE digest = ?3)`, v.Tenant, v.Name, v.Digest).Scan(&newest, &modules)
		switch {
		case err != nil:
			return err
		case modules == 0:
			return fmt.Errorf("module %s: %w", v.Digest, host.ErrNotFound)
		case v.Version != newest+1:
			return fmt.Errorf("version %d does not follow version %d", v.Version, newest)
		}
		_, err = s.conn.ExecContext(ctx,
			`INSERT INTO plugins (tenant, name, version, workflow, digest, size, created) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			v.Tenant, v.Name, v.Version, v.Workflow, v.Digest, v.Size, v.Created)
		for i := 0; i < len(remade) && err == nil; i++ {
			err = s.insertComposition(ctx, &remade[i])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("storing plugin %s: %w", v.Name, err)
	}
	return nil
}

const pluginColumns = `tenant, name, workflow, version, digest, size, created`

// Plugins implements [host.Store]. Plugins with the same name are in the order of their
// tenants.
func (s *Store) Plugins(ctx context.Context, tenant string) ([]host.PluginVersion, error) {
	return s.plugins(ctx, `SELECT `+pluginColumns+` FROM plugins p WHERE (?1 = '' OR tenant = ?1)
		AND version = (SELECT max(version) FROM plugins WHERE tenant = p.tenant AND name = p.name)
		ORDER BY name, tenant`, tenant)
}

// PluginVersions implements [host.Store].
func (s *Store) PluginVersions(ctx context.Context, tenant, name string) ([]host.PluginVersion, error) {
	versions, err := s.plugins(ctx, `SELECT `+pluginColumns+` FROM plugins
		WHERE tenant = ? AND name = ? ORDER BY version`, tenant, name)
	if err == nil && len(versions) == 0 {
		err = notFound(sql.ErrNoRows, "plugin "+name)
	}
	return versions, err
}

func (s *Store) plugins(ctx context.Context, query string, args ...any) ([]host.PluginVersion, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, notFound(err, "plugins")
	}
	defer func() { _ = rows.Close() }()
	var versions []host.PluginVersion
	for rows.Next() {
		var v host.PluginVersion
		if err := rows.Scan(&v.Tenant, &v.Name, &v.Workflow, &v.Version, &v.Digest, &v.Size, &v.Created); err != nil {
			return nil, notFound(err, "plugins")
		}
		versions = append(versions, v)
	}
	return versions, notFound(rows.Err(), "plugins")
}

// DeletePlugin implements [host.Store]. A module that no version has ever named stays,
// because its upload may be in progress.
func (s *Store) DeletePlugin(ctx context.Context, tenant, name string, version int) error {
	err := s.update(ctx, func(ctx context.Context) error {
		digests, err := s.deleteVersions(ctx, tenant, name, version)
		if err != nil {
			return err
		}
		return s.release(ctx, digests)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(err, "plugin "+name)
	}
	if err != nil {
		return fmt.Errorf("deleting plugin %s: %w", name, err)
	}
	return nil
}

// deleteVersions deletes one version of a plugin, or all with version 0, and returns the
// digests of their modules. It returns sql.ErrNoRows if there were none.
func (s *Store) deleteVersions(ctx context.Context, tenant, name string, version int) ([]string, error) {
	var newest int
	err := s.conn.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM plugins WHERE tenant = ? AND name = ?`, tenant, name).Scan(&newest)
	if err != nil {
		return nil, err
	}
	if version != 0 && version == newest {
		return nil, fmt.Errorf("version %d is the newest", version)
	}
	rows, err := s.conn.QueryContext(ctx,
		`DELETE FROM plugins WHERE tenant = ?1 AND name = ?2 AND ?3 IN (0, version) RETURNING digest`, tenant, name, version)
	if err != nil {
		return nil, err
	}
	digests, err := texts(rows)
	if err == nil && len(digests) == 0 {
		err = sql.ErrNoRows
	}
	return digests, err
}

// texts reads rows of one text each, and closes them.
func texts(rows *sql.Rows) ([]string, error) {
	defer func() { _ = rows.Close() }()
	var list []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}
