package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/search"
)

// relatives is how many runs each list of a run's details has.
const relatives = 20

// listRuns answers a page of all runs.
func (s *Server) listRuns(c echo.Context) error {
	q, err := parseRows(tenantOf(c), c.QueryParams())
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Runs.Rows(c.Request().Context(), q)
	if err != nil {
		return err
	}
	out := apiwire.Rows{Runs: showRows(rows, time.Now())}
	if n := len(rows); n > 0 {
		if more || q.Back {
			out.NextCursor = rowCursor(&q, &rows[n-1], false)
		}
		if q.From != nil && (more || !q.Back) {
			out.PrevCursor = rowCursor(&q, &rows[0], true)
		}
	}
	return answer(c, http.StatusOK, &out)
}

// countRuns answers how many runs there are.
func (s *Server) countRuns(c echo.Context) error {
	counts, err := s.cfg.Runs.RunCounts(c.Request().Context(), tenantOf(c))
	return answerOr(c, http.StatusOK, &apiwire.PhaseCounts{Counts: apiwire.FillAll[apiwire.PhaseCount](counts)}, err)
}

func showRows(rows []host.RunRow, now time.Time) []apiwire.Row {
	list := make([]apiwire.Row, len(rows))
	for i := range rows {
		list[i].Show(&rows[i], now)
	}
	return list
}

// getDetails answers a run, whatever its status, with the runs that are connected with it.
func (s *Server) getDetails(c echo.Context) error {
	ctx, tenant, now := c.Request().Context(), tenantOf(c), time.Now()
	run, err := s.cfg.Runs.Get(ctx, tenant, param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	about(c, &run)
	var out apiwire.RunDetails
	showRun(&out.Record, &run)
	out.ShowRun(&run, now)
	for _, list := range []struct {
		to *[]apiwire.Row
		of host.RowQuery
	}{
		{&out.Runs, host.RowQuery{Handler: run.HandlerID}},
		{&out.Children, host.RowQuery{Parent: run.RunID}},
		{&out.Forks, host.RowQuery{ForkedFrom: run.RunID}},
	} {
		list.of.Tenant, list.of.Limit = tenant, relatives
		rows, _, err := s.cfg.Runs.Rows(ctx, list.of)
		if err != nil {
			return err
		}
		*list.to = showRows(rows, now)
	}
	return answer(c, http.StatusOK, &out)
}

// parseRows reads the query of a list of all runs.
func parseRows(tenant string, v url.Values) (q host.RowQuery, err error) {
	q = host.RowQuery{
		Tenant: tenant, Workflows: filterOf(v["workflow_name"]), Session: v.Get("session"), Handler: v.Get("handler"),
		Parent: v.Get("parent"), ForkedFrom: v.Get("forked_from"), ID: strings.TrimSpace(v.Get("id")), ErrorCode: v.Get("error_code"),
		Children: isTrue(v, "children", false),
	}
	if q.Phases, err = phasesOf(v); err != nil {
		return q, err
	}
	if n := utf8.RuneCountInString(q.ID); n > 0 && n < apiwire.MinIDPrefix {
		return q, invalid("Invalid id: '%s'. It must have the first %d characters of an id, or more", clip(q.ID), apiwire.MinIDPrefix)
	}
	if q.Version = strings.ToLower(v.Get("version")); q.Version != "" && !versionFilter.MatchString(q.Version) {
		return q, invalid("Invalid version: '%s'. It must be the digest of a version, or at least its first 8 digits", clip(v.Get("version")))
	}
	if q.Search, err = search.Parse(strings.Join(v["q"], " ")); err != nil {
		return q, err
	}
	if q.Limit, err = limitOf(v, apiwire.MaxRows, apiwire.DefaultRows); err != nil {
		return q, err
	}
	for _, bound := range []struct {
		name string
		to   *int64
	}{{"since", &q.Since}, {"until", &q.Until}, {"started_after", &q.StartedAfter}, {"started_before", &q.StartedBefore}} {
		if text := v.Get(bound.name); text != "" {
			if *bound.to, err = parseTime(bound.name, text); err != nil {
				return q, err
			}
		}
	}
	if text := v.Get("cursor"); text != "" {
		return q, readRowCursor(text, &q)
	}
	return q, nil
}

// phasesOf returns the phases that the filters status, phase and blocked leave; nil for
// queries without these filters.
func phasesOf(v url.Values) ([]host.Phase, error) {
	statuses, phases, blocked := filterOf(v["status"]), filterOf(v["phase"]), isTrue(v, "blocked", false)
	if len(statuses)+len(phases) == 0 && !blocked {
		return nil, nil
	}
	for _, s := range statuses {
		if s != string(host.StatusRunning) && !host.Phase(s).Final() {
			return nil, invalid("Invalid status: '%s'. It must be running, completed, failed or cancelled", clip(s))
		}
	}
	for _, p := range phases {
		if !slices.Contains(host.Phases, host.Phase(p)) {
			return nil, invalid("Invalid phase: '%s'. It must be one of %s", clip(p), strings.Trim(fmt.Sprint(host.Phases), "[]"))
		}
	}
	left := []host.Phase{}
	for _, p := range host.Phases {
		status := string(host.StatusRunning)
		if p.Final() {
			status = string(p)
		}
		if (len(statuses) == 0 || slices.Contains(statuses, status)) && (len(phases) == 0 || slices.Contains(phases, string(p))) &&
			(!blocked || p == host.PhaseBlocked) {
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		return []host.Phase{"none"}, nil // the filters exclude each other
	}
	return left, nil
}

// The cursor of a list of all runs has the hash of the filters, the direction, and the
// place behind which the page begins.
const (
	rowsForth byte = 'f'
	rowsBack  byte = 'b'
)

func rowCursor(q *host.RowQuery, row *host.RunRow, back bool) apiwire.OrNull {
	direction := rowsForth
	if back {
		direction = rowsBack
	}
	b := binary.BigEndian.AppendUint64(append(rowsHash(q), direction), uint64(row.Started))
	return apiwire.OrNull(base64.RawURLEncoding.EncodeToString(append(b, row.RunID...)))
}

// readRowCursor sets the place of a query that already has its filters.
func readRowCursor(text string, q *host.RowQuery) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= cursorHash+9 || len(b) > cursorHash+9+cursorID || b[cursorHash] != rowsForth && b[cursorHash] != rowsBack {
		return invalid("Invalid cursor: '%s'", clip(text))
	}
	if string(b[:cursorHash]) != string(rowsHash(q)) {
		return invalid("The cursor belongs to a list with other filters")
	}
	q.Back = b[cursorHash] == rowsBack
	q.From = &host.RowPlace{Started: int64(binary.BigEndian.Uint64(b[cursorHash+1:])), RunID: string(b[cursorHash+9:])}
	return nil
}

// rowsHash identifies a query's filters. The limit does not count as a filter.
func rowsHash(q *host.RowQuery) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "rows %q %q %q %q %t %d %d %d %d", q.Phases, q.Workflows, termTexts(q.Search),
		[]string{q.Tenant, q.Version, q.Session, q.Handler, q.Parent, q.ForkedFrom, q.ID, q.ErrorCode},
		q.Children, q.Since, q.Until, q.StartedAfter, q.StartedBefore)
	return h.Sum(nil)[:cursorHash]
}
