package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// retryHandler continues a run that has failed or is blocked.
func (s *Server) retryHandler(c echo.Context) error {
	var retry apiwire.Retry
	if err := s.readInto(c, &retry); err != nil {
		return err
	}
	retried, err := s.cfg.Runs.Retry(c.Request().Context(), tenantOf(c), param(c, "id"), retry.Newest)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return answerFork(c, &retried)
}

// migrateWorkflow reports which runs the newest version fits, and with dry_run=false
// moves these runs to it.
func (s *Server) migrateWorkflow(c echo.Context) error {
	req, q, err := s.parseMigrate(c)
	if err != nil {
		return err
	}
	m, err := s.cfg.Runs.Migrate(c.Request().Context(), req)
	if err != nil {
		return err
	}
	shown := showMigration(&m, req.DryRun, &q)
	return answer(c, http.StatusOK, &shown)
}

// parseMigrate reads which runs to move. The second result is a query that identifies the
// listing, for cursors.
func (s *Server) parseMigrate(c echo.Context) (host.MigrateRequest, host.RunQuery, error) {
	req := host.MigrateRequest{Tenant: tenantOf(c), Workflow: param(c, "name")}
	q := migrateQuery(tenantOf(c), req.Workflow)
	v := c.QueryParams()
	var err error
	if req.DryRun, err = flagOf(v, "dry_run", true); err != nil {
		return req, q, err
	}
	if req.Limit, err = limitOf(v, apiwire.MaxMigrated, apiwire.DefaultMigrated); err != nil {
		return req, q, err
	}
	if text := v.Get("cursor"); text != "" {
		at := q
		if err := readCursor(text, &at); err != nil {
			return req, q, err
		}
		req.AfterStarted, req.AfterHandler = at.AfterStarted, at.AfterHandler
	}
	var body apiwire.Migrate
	err = s.readInto(c, &body)
	req.HandlerID = body.HandlerID
	return req, q, err
}

func migrateQuery(tenant, workflow string) host.RunQuery {
	return host.RunQuery{Tenant: tenant, Workflows: []string{workflow}, Statuses: []string{string(host.StatusRunning)}}
}

// showMigration returns the answer for a migration. q identifies the listing.
func showMigration(m *host.Migration, dry bool, q *host.RunQuery) apiwire.Migration {
	out := apiwire.Migration{DryRun: dry}
	if apiwire.Fill(&out, m); m.NextHandler != "" {
		out.NextCursor = apiwire.OrNull(makeCursor(q, m.NextStarted, m.NextHandler))
	}
	return out
}

// checked reports how active runs fit the new versions of an upload: for each workflow
// with a new version, the result of a dry run of a migration.
func (s *Server) checked(c echo.Context, info *host.PluginInfo) ([]apiwire.Migration, error) {
	out := []apiwire.Migration{}
	names := info.ComposedIn
	if info.Workflow != "" {
		names = append([]string{info.Workflow}, names...)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		m, err := s.cfg.Runs.Migrate(c.Request().Context(), host.MigrateRequest{
			Tenant: tenantOf(c), Workflow: name, DryRun: true, Limit: apiwire.MaxMigrated,
		})
		if err != nil {
			return nil, err
		}
		q := migrateQuery(tenantOf(c), name)
		out = append(out, showMigration(&m, true, &q))
	}
	return out, nil
}
