package httpapi

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/search"
)

// flushSize is the number of bytes of a long answer that are collected before they are
// written.
const flushSize = 256 << 10

// getHandler answers the record of a handler's latest run, or of a run.
func (s *Server) getHandler(c echo.Context) error { return s.getRun(c, answerRecord) }

// getResult answers the same as getHandler, but with the bare result.
func (s *Server) getResult(c echo.Context) error { return s.getRun(c, answerBare) }

func (s *Server) getRun(c echo.Context, with func(c echo.Context, status int, run *host.Run) error) error {
	run, err := s.cfg.Runs.Get(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return with(c, recordStatus(&run), &run)
}

// cancelHandler ends a run, or with purge deletes its handler.
func (s *Server) cancelHandler(c echo.Context) error {
	purge := isTrue(c.QueryParams(), "purge", false)
	deleted, err := s.cfg.Runs.Cancel(c.Request().Context(), tenantOf(c), param(c, "id"), purge)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	done := apiwire.Cancelled{Status: "cancelled"}
	if deleted {
		done.Status = "deleted"
	}
	return answer(c, http.StatusOK, &done)
}

// pauseHandler and resumeHandler answer the run's record.
func (s *Server) pauseHandler(c echo.Context) error { return s.steer(c, s.cfg.Runs.Pause) }

func (s *Server) resumeHandler(c echo.Context) error { return s.steer(c, s.cfg.Runs.Resume) }

func (s *Server) steer(c echo.Context, do func(ctx context.Context, tenant, id string) (host.Run, error)) error {
	run, err := do(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return answerRecord(c, http.StatusOK, &run)
}

// listHandlers answers a page of records.
func (s *Server) listHandlers(c echo.Context) error {
	q, err := parseList(tenantOf(c), c.QueryParams())
	if err != nil {
		return err
	}
	runs, more, err := s.cfg.Runs.List(c.Request().Context(), q)
	if err != nil {
		return err
	}
	if prefersCBOR(c.Request()) {
		return withBuffer(
			func(dst []byte) ([]byte, error) {
				return appendPage(dst, runs, more, &q, func(b []byte) ([]byte, error) { return b, nil })
			},
			func(b []byte) error { return sendJSON(c, http.StatusOK, b) })
	}
	if len(runs)*leastRecord >= minGzip && takesGzip(c.Request()) {
		return packPage(c, runs, more, &q)
	}
	return streamPage(c, runs, more, &q)
}

// streamPage writes a page in pieces, because a thousand records may be long.
func streamPage(c echo.Context, runs []host.Run, more bool, q *host.RunQuery) error {
	write := func(b []byte) ([]byte, error) {
		if len(b) < flushSize {
			return b, nil
		}
		if h := c.Response().Header(); !c.Response().Committed {
			h.Set("Content-Type", echo.MIMEApplicationJSON)
			h.Add("Vary", "Accept-Encoding")
		}
		extendDeadline(c)
		_, err := c.Response().Write(b)
		return b[:0], err
	}
	return withBuffer(
		func(dst []byte) ([]byte, error) { return appendPage(dst, runs, more, q, write) },
		func(rest []byte) error {
			if !c.Response().Committed {
				return send(c, http.StatusOK, echo.MIMEApplicationJSON, rest)
			}
			extendDeadline(c)
			_, err := c.Response().Write(rest)
			return err
		})
}

// appendPage appends an [apiwire.Records] record by record, because a thousand records
// may be long. It calls spill after each record with the bytes so far, and continues with
// the buffer that spill returns.
func appendPage(dst []byte, runs []host.Run, more bool, q *host.RunQuery, spill func([]byte) ([]byte, error)) ([]byte, error) {
	dst = append(dst, `{"handlers":[`...)
	var r apiwire.Record
	for i := range runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		showRun(&r, &runs[i])
		var err error
		if dst, err = apiwire.Append(dst, &r); err != nil {
			return dst, err
		}
		if dst, err = spill(dst); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `],"next_cursor":`...)
	if !more || len(runs) == 0 {
		return append(dst, "null}"...), nil
	}
	last := &runs[len(runs)-1]
	return append(apiwire.AppendString(dst, makeCursor(q, last.Started, last.HandlerID)), '}'), nil
}

// parseList reads the query of a listing.
func parseList(tenant string, v url.Values) (host.RunQuery, error) {
	q := host.RunQuery{
		Tenant:    tenant,
		Statuses:  filterOf(v["status"]),
		Workflows: filterOf(v["workflow_name"]),
		Session:   v.Get("session"),
		ErrorCode: v.Get("error_code"),
		Blocked:   isTrue(v, "blocked", false),
	}
	if q.Version = strings.ToLower(v.Get("version")); q.Version != "" && !versionFilter.MatchString(q.Version) {
		return q, invalid("Invalid version: '%s'. It must be the digest of a version, or at least its first 8 digits", clip(v.Get("version")))
	}
	var err error
	if q.Search, err = search.Parse(strings.Join(v["q"], " ")); err != nil {
		return q, err
	}
	if q.Limit, err = limitOf(v, apiwire.MaxPage, apiwire.MaxPage); err != nil {
		return q, err
	}
	if text := v.Get("since"); text != "" {
		if q.Since, err = parseTime("since", text); err != nil {
			return q, err
		}
	}
	if text := v.Get("cursor"); text != "" {
		if err := readCursor(text, &q); err != nil {
			return q, err
		}
	}
	return q, nil
}

// versionFilter matches a SHA-256 in hexadecimal, or a prefix that is long enough to be
// unique in practice.
var versionFilter = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// filterOf returns the values of a filter, sorted, without duplicates and surrounding
// blanks. Empty values are ignored.
func filterOf(values []string) []string {
	values = slices.Clone(values)
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	values = slices.DeleteFunc(values, func(s string) bool { return s == "" })
	slices.Sort(values)
	return slices.Compact(values)
}

// parseTime reads a time of a query as Unix nanoseconds. A time outside their range becomes the
// nearest limit. A space counts as a plus, because an unescaped query turns plus into a
// space.
func parseTime(name, text string) (int64, error) {
	t, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "+", 1))
	if err != nil {
		return 0, invalid("Invalid %s: '%s'. It must be a time like 2026-11-21T02:47:31Z", name, clip(text))
	}
	switch sec := t.Unix(); {
	case sec < 0:
		return 0, nil
	case sec >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64, nil
	default:
		return t.UnixNano(), nil
	}
}
