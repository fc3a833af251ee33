package httpapi

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// maxMigrated is how many runs one request looks at, by default and at most: each
// may have its records played.
const (
	defaultMigrated = 100
	maxMigrated     = 1000
)

// retryHandler lets a run go on that has failed, or is blocked.
func (s *Server) retryHandler(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	fields, err := body.only("newest")
	if err != nil {
		return err
	}
	newest := false
	if v := fields["newest"]; v.raw != nil && !v.null() {
		decoded, err := v.decode()
		if err != nil {
			return err
		}
		is := false
		if newest, is = decoded.(bool); !is {
			return invalid("'newest' must be true or false")
		}
	}
	retried, err := s.cfg.Runs.Retry(c.Request().Context(), tenantOf(c), param(c, "id"), newest)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) { return appendFork(dst, &retried) })
}

// migrateWorkflow says which runs the newest version fits, and with dry_run=false
// moves these to it.
func (s *Server) migrateWorkflow(c echo.Context) error {
	req, q, err := s.parseMigrate(c)
	if err != nil {
		return err
	}
	m, err := s.cfg.Runs.Migrate(c.Request().Context(), req)
	if err != nil {
		return err
	}
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) { return appendMigration(dst, &m, req.DryRun, &q) })
}

// parseMigrate reads which runs are to be moved. The query that the second result is
// identifies the listing, for cursors.
func (s *Server) parseMigrate(c echo.Context) (host.MigrateRequest, host.RunQuery, error) {
	req := host.MigrateRequest{Tenant: tenantOf(c), Workflow: param(c, "name"), Limit: defaultMigrated}
	q := migrateQuery(tenantOf(c), req.Workflow)
	v := c.QueryParams()
	var err error
	if req.DryRun, err = flagOf(v, "dry_run", true); err != nil {
		return req, q, err
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxMigrated {
			return req, q, invalid("Invalid limit: '%s'. It is a number from 1 to %d", clip(text), maxMigrated)
		}
		req.Limit = n
	}
	if text := v.Get("cursor"); text != "" {
		at := q
		if err := readCursor(text, &at); err != nil {
			return req, q, err
		}
		req.AfterStarted, req.AfterHandler = at.AfterStarted, at.AfterHandler
	}
	body, err := s.readValue(c)
	if err != nil {
		return req, q, err
	}
	fields, err := body.only("handler_id")
	if err != nil {
		return req, q, err
	}
	req.HandlerID, err = fields["handler_id"].optionalText()
	return req, q, err
}

func migrateQuery(tenant, workflow string) host.RunQuery {
	return host.RunQuery{Tenant: tenant, Workflows: []string{workflow}, Statuses: []string{string(host.StatusRunning)}}
}

// flagOf reads a boolean of the query that must not be taken for another; absent is
// what an empty or missing one means.
func flagOf(v url.Values, name string, absent bool) (bool, error) {
	text := v.Get(name)
	if text == "" {
		return absent, nil
	}
	set, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid("Invalid %s: '%s'. It is true or false", name, clip(text))
	}
	return set, nil
}

// appendMigration appends what came of a migration.
func appendMigration(dst []byte, m *host.Migration, dry bool, q *host.RunQuery) ([]byte, error) {
	f := &fields{b: append(dst, '{')}
	f.text("workflow", m.Workflow)
	f.text("version", m.Version)
	count := func(name string, n int) {
		f.name(name)
		f.b = strconv.AppendInt(f.b, int64(n), 10)
	}
	f.name("dry_run")
	f.b = strconv.AppendBool(f.b, dry)
	count("checked", m.Checked)
	count("fit", m.Fit)
	count("moved", m.Moved)
	f.name("departed")
	f.b = append(f.b, '[')
	for i := range m.Departed {
		if i > 0 {
			f.b = append(f.b, ',')
		}
		d := &m.Departed[i]
		f.b = append(f.b, '{')
		f.text("handler_id", d.HandlerID)
		f.text("run_id", d.RunID)
		f.text("version", d.Version)
		f.text("code", d.Code)
		f.text("message", d.Message)
		f.text("step", d.Step)
		f.number("call", d.Call)
		f.text("import", d.Import)
		f.b = append(f.b, '}')
	}
	f.b = append(f.b, ']')
	f.name("running")
	f.b = appendStrings(f.b, m.Running)
	f.name("next_cursor")
	if m.NextHandler == "" {
		f.b = append(f.b, "null"...)
	} else {
		f.b = appendString(f.b, makeCursor(q, m.NextStarted, m.NextHandler))
	}
	return append(f.b, '}'), f.err
}

// checked says what the versions that an upload has made are for runs under way: for
// each workflow that has it, what a dry run of a migration says.
func (s *Server) checked(c echo.Context, info *host.PluginInfo) ([]host.Migration, error) {
	var out []host.Migration
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
			Tenant: tenantOf(c), Workflow: name, DryRun: true, Limit: maxMigrated,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func appendChecks(dst []byte, tenant string, checks []host.Migration) ([]byte, error) {
	dst = append(dst, `,"check":[`...)
	for i := range checks {
		if i > 0 {
			dst = append(dst, ',')
		}
		q := migrateQuery(tenant, checks[i].Workflow)
		var err error
		if dst, err = appendMigration(dst, &checks[i], true, &q); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}
