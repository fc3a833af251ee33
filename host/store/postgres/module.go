package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

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
	return s.update(ctx, "storing module "+m.Digest, func(tx pgx.Tx) error {
		digest := text(m.Digest)
		// A version is about to name the module, so a sweep must not delete it until then.
		if _, err := tx.Exec(ctx, `DELETE FROM released WHERE digest = $1`, digest); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO modules (digest, rewritten, image_hash, manifest, imports) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING`, digest, text(m.Rewritten), text(m.ImageHash), []byte(m.Manifest), imports)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			_, err = tx.Exec(ctx, `UPDATE modules SET image_hash = $2 WHERE digest = $1 AND image_hash = ''`, digest, text(m.ImageHash))
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO module_bytes (digest, bytes) VALUES ($1, $2)`, digest, content)
		return err
	})
}

// Module implements [host.Store].
func (s *Store) Module(ctx context.Context, digest string) (host.ModuleRecord, error) {
	m := host.ModuleRecord{Digest: digest}
	var manifest, imports []byte
	err := s.one(ctx, "module "+digest, `SELECT m.rewritten, m.image_hash, m.manifest, m.imports, b.bytes
		FROM modules m JOIN module_bytes b ON b.digest = m.digest WHERE m.digest = $1`, []any{text(digest)},
		nameTo{&m.Rewritten}, nameTo{&m.ImageHash}, &manifest, &imports, &m.Bytes)
	if err != nil {
		return host.ModuleRecord{}, err
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
	return s.update(ctx, "storing plugin "+v.Name, func(tx pgx.Tx) error {
		var newest, modules int
		err := tx.QueryRow(ctx, `SELECT (SELECT coalesce(max(version), 0) FROM plugins WHERE tenant = $1 AND name = $2),
				(SELECT count(*) FROM modules WHERE digest = $3)`, text(v.Tenant), text(v.Name), text(v.Digest)).Scan(&newest, &modules)
		switch {
		case err != nil:
			return err
		case modules == 0:
			return fmt.Errorf("module %s: %w", v.Digest, host.ErrNotFound)
		case v.Version != newest+1:
			return fmt.Errorf("version %d does not follow version %d", v.Version, newest)
		}
		_, err = tx.Exec(ctx, `INSERT INTO plugins (tenant, name, version, workflow, digest, size, created) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			text(v.Tenant), text(v.Name), v.Version, text(v.Workflow), text(v.Digest), v.Size, v.Created)
		for i := 0; i < len(remade) && err == nil; i++ {
			err = insertComposition(ctx, tx, &remade[i])
		}
		return err
	})
}

const pluginFields = `tenant, name, workflow, version, digest, size, created`

func pluginTo(v *host.PluginVersion) []any {
	return []any{nameTo{&v.Tenant}, nameTo{&v.Name}, nameTo{&v.Workflow}, &v.Version, nameTo{&v.Digest}, &v.Size, &v.Created}
}

// Plugins implements [host.Store]. Plugins with the same name are in the order of their
// tenants.
func (s *Store) Plugins(ctx context.Context, tenant string) ([]host.PluginVersion, error) {
	return list(ctx, s, "plugins", `SELECT `+pluginFields+` FROM plugins p WHERE ($1 = '' OR tenant = $1)
		AND version = (SELECT max(version) FROM plugins WHERE tenant = p.tenant AND name = p.name)
		ORDER BY name, tenant`, []any{text(tenant)}, fields(pluginTo))
}

// NewestPlugins returns the newest versions of at most n plugins of all tenants, which are
// those that were uploaded last.
func (s *Store) NewestPlugins(ctx context.Context, n int) ([]host.PluginVersion, error) {
	return list(ctx, s, "plugins", `SELECT `+pluginFields+` FROM plugins p
		WHERE version = (SELECT max(version) FROM plugins WHERE tenant = p.tenant AND name = p.name)
		ORDER BY created DESC, tenant, name LIMIT $1`, []any{n}, fields(pluginTo))
}

// PluginVersions implements [host.Store].
func (s *Store) PluginVersions(ctx context.Context, tenant, name string) ([]host.PluginVersion, error) {
	versions, err := list(ctx, s, "plugins", `SELECT `+pluginFields+` FROM plugins
		WHERE tenant = $1 AND name = $2 ORDER BY version`, []any{text(tenant), text(name)}, fields(pluginTo))
	if err == nil && len(versions) == 0 {
		err = notFound(pgx.ErrNoRows, "plugin "+name)
	}
	return versions, err
}

// DeletePlugin implements [host.Store]. A module that no version has ever named stays,
// because its upload may be in progress.
func (s *Store) DeletePlugin(ctx context.Context, tenant, name string, version int) error {
	return s.update(ctx, "deleting plugin "+name, func(tx pgx.Tx) error {
		var newest int
		err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM plugins WHERE tenant = $1 AND name = $2`, text(tenant), text(name)).Scan(&newest)
		if err != nil {
			return err
		}
		if version != 0 && version == newest {
			return fmt.Errorf("version %d is the newest", version)
		}
		digests, err := collectRows(ctx, tx, `DELETE FROM plugins WHERE tenant = $1 AND name = $2 AND ($3 = 0 OR version = $3) RETURNING digest`,
			[]any{text(tenant), text(name), version}, fields(func(d *string) []any { return []any{d} }))
		if err != nil {
			return err
		}
		if len(digests) == 0 {
			return notFound(pgx.ErrNoRows, "plugin "+name)
		}
		return release(ctx, tx, digests)
	})
}

// insertComposition writes a version within a transaction. It refuses a version that is not
// the next one, and a version that names a module that is not stored.
func insertComposition(ctx context.Context, tx pgx.Tx, v *host.CompositionVersion) error {
	var newest int
	err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM compositions WHERE tenant = $1 AND name = $2`,
		text(v.Tenant), text(v.Name)).Scan(&newest)
	if err == nil && v.Version != newest+1 {
		err = fmt.Errorf("version %d does not follow version %d", v.Version, newest)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO compositions (tenant, name, version, digest, created, record) VALUES ($1, $2, $3, $4, $5, $6)`,
			text(v.Tenant), text(v.Name), v.Version, text(v.Digest), v.Created, blob(v.Record))
	}
	for i := 0; i < len(v.Modules) && err == nil; i++ {
		tag, execErr := tx.Exec(ctx, `INSERT INTO composition_modules (tenant, name, version, place, module)
			SELECT $1, $2, $3, $4, digest FROM modules WHERE digest = $5`, text(v.Tenant), text(v.Name), v.Version, i, text(v.Modules[i]))
		if err = execErr; err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("module %s: %w", v.Modules[i], host.ErrNotFound)
		}
	}
	if err != nil {
		return fmt.Errorf("storing composition %s: %w", v.Name, err)
	}
	return nil
}

// PutComposition implements [host.Store].
func (s *Store) PutComposition(ctx context.Context, v host.CompositionVersion) error {
	return s.update(ctx, "storing a version", func(tx pgx.Tx) error { return insertComposition(ctx, tx, &v) })
}

// compositionFields are the columns of compositions c, and the modules in order.
const compositionFields = `tenant, name, version, digest, created, record,
	(SELECT coalesce(array_agg(module ORDER BY place), '{}') FROM composition_modules
		WHERE tenant = c.tenant AND name = c.name AND version = c.version)`

func compositionOf(row pgx.Rows) (v host.CompositionVersion, err error) {
	var modules []string
	err = row.Scan(nameTo{&v.Tenant}, nameTo{&v.Name}, &v.Version, nameTo{&v.Digest}, &v.Created, &v.Record, &modules)
	v.Modules = make([]string, len(modules))
	for i := 0; i < len(modules) && err == nil; i++ {
		v.Modules[i], err = name(modules[i])
	}
	return v, err
}

// Compositions implements [host.Store]. Compositions with the same name are in the order
// of their tenants.
func (s *Store) Compositions(ctx context.Context, tenant string) ([]host.CompositionVersion, error) {
	return list(ctx, s, "compositions", `SELECT `+compositionFields+` FROM compositions c WHERE ($1 = '' OR tenant = $1)
		AND version = (SELECT max(version) FROM compositions WHERE tenant = c.tenant AND name = c.name)
		ORDER BY name, tenant`, []any{text(tenant)}, compositionOf)
}

// Composition implements [host.Store]. If several versions have the digest, it returns
// any of them: they differ only in their places in their histories.
func (s *Store) Composition(ctx context.Context, digest string) (host.CompositionVersion, error) {
	found, err := list(ctx, s, "compositions", `SELECT `+compositionFields+` FROM compositions c WHERE digest = $1
		UNION ALL SELECT tenant, name, version, digest, created, record,
			(SELECT coalesce(array_agg(module ORDER BY place), '{}') FROM released_modules WHERE digest = c.digest)
			FROM released_compositions c WHERE digest = $1 LIMIT 1`, []any{text(digest)}, compositionOf)
	if err == nil && len(found) == 0 {
		err = notFound(pgx.ErrNoRows, "composition "+digest)
	}
	if err != nil {
		return host.CompositionVersion{}, err
	}
	return found[0], nil
}

// DeleteComposition implements [host.Store].
func (s *Store) DeleteComposition(ctx context.Context, tenant, name string) error {
	return s.update(ctx, "deleting composition "+name, func(tx pgx.Tx) error {
		args := []any{text(tenant), text(name)}
		for _, statement := range releaseCompositions {
			if _, err := tx.Exec(ctx, statement, args...); err != nil {
				return err
			}
		}
		modules, err := collectRows(ctx, tx, `SELECT DISTINCT module FROM composition_modules WHERE tenant = $1 AND name = $2`, args,
			fields(func(d *string) []any { return []any{d} }))
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM compositions WHERE tenant = $1 AND name = $2`, args...)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return notFound(pgx.ErrNoRows, "composition "+name)
		}
		return release(ctx, tx, modules)
	})
}
