package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// maxPage is the greatest and the default number of records of a listing.
const maxPage = 1000

// flushSize is how much of a long answer is gathered before it is written, in
// bytes.
const flushSize = 256 << 10

// getHandler answers the record of a handler's latest run, or of a run.
func (s *Server) getHandler(c echo.Context) error { return s.answerRun(c, false) }

// getResult answers the same with the bare result.
func (s *Server) getResult(c echo.Context) error { return s.answerRun(c, true) }

func (s *Server) answerRun(c echo.Context, bare bool) error {
	run, err := s.cfg.Runs.Get(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	about(c, &run)
	return s.answerJSON(c, recordStatus(&run), func(dst []byte) ([]byte, error) {
		return appendRecord(dst, &run, bare)
	})
}

// cancelHandler ends a run, or with purge deletes its handler.
func (s *Server) cancelHandler(c echo.Context) error {
	purge := isTrue(c.QueryParams(), "purge", false)
	deleted, err := s.cfg.Runs.Cancel(c.Request().Context(), tenantOf(c), param(c, "id"), purge)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	if deleted {
		return s.sendJSON(c, http.StatusOK, []byte(`{"status":"deleted"}`))
	}
	return s.sendJSON(c, http.StatusOK, []byte(`{"status":"cancelled"}`))
}

// pauseHandler and resumeHandler answer the run's record.
func (s *Server) pauseHandler(c echo.Context) error { return s.steer(c, s.cfg.Runs.Pause) }

func (s *Server) resumeHandler(c echo.Context) error { return s.steer(c, s.cfg.Runs.Resume) }

func (s *Server) steer(c echo.Context, do func(ctx context.Context, tenant, id string) (host.Run, error)) error {
	run, err := do(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return s.sendRecord(c, http.StatusOK, &run)
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
		return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
			return appendPage(dst, runs, more, &q, func(b []byte) ([]byte, error) { return b, nil })
		})
	}
	if len(runs)*leastRecord >= minGzip && takesGzip(c.Request()) {
		return packPage(c, runs, more, &q)
	}
	return streamPage(c, runs, more, &q)
}

// streamPage writes a page piece by piece: a thousand records may hold much.
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

// appendPage appends a listing. spill is called after each record, with what
// there is, and returns the buffer to go on with.
func appendPage(dst []byte, runs []host.Run, more bool, q *host.RunQuery, spill func([]byte) ([]byte, error)) ([]byte, error) {
	dst = append(dst, `{"handlers":[`...)
	for i := range runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendRecord(dst, &runs[i], false); err != nil {
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
	dst = append(dst, '"')
	dst = append(dst, makeCursor(q, last.Started, last.HandlerID)...)
	return append(dst, `"}`...), nil
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
		Limit:     maxPage,
	}
	if q.Version = strings.ToLower(v.Get("version")); q.Version != "" && !versionFilter.MatchString(q.Version) {
		return q, invalid("Invalid version: '%s'. It is the digest of a version, or at least its first 8 digits", clip(v.Get("version")))
	}
	var err error
	if q.Search, err = search.Parse(strings.Join(v["q"], " ")); err != nil {
		return q, err
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return q, invalid("Invalid limit: '%s'. It is a number from 1 to %d", clip(text), maxPage)
		}
		q.Limit = n
	}
	if text := v.Get("since"); text != "" {
		if q.Since, err = parseSince(text); err != nil {
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

// versionFilter is a SHA-256 in hexadecimal, or so much of its beginning that it
// hardly is that of another.
var versionFilter = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// filterOf gives the values of a filter without blanks around them, each once and
// sorted. Empty ones do not filter.
func filterOf(values []string) []string {
	values = slices.Clone(values)
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	values = slices.DeleteFunc(values, func(s string) bool { return s == "" })
	slices.Sort(values)
	return slices.Compact(values)
}

// parseSince reads a time as Unix nanoseconds; one beyond their range is their
// nearest end. A space stands for the plus that an unescaped query loses.
func parseSince(text string) (int64, error) {
	t, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "+", 1))
	if err != nil {
		return 0, invalid("Invalid since: '%s'. It is a time like 2026-11-21T02:47:31Z", clip(text))
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

// A cursor is the hash of the filter it belongs to and the position behind
// which the next page begins. Clients take it for opaque.
const (
	cursorHash = 8
	cursorID   = 256 // bytes of a handler id, the longest
)

func makeCursor(q *host.RunQuery, started int64, handler string) string {
	b := filterHash(q)
	b = binary.BigEndian.AppendUint64(b, uint64(started))
	return base64.RawURLEncoding.EncodeToString(append(b, handler...))
}

// readCursor sets the position of a query that has its filters already.
func readCursor(text string, q *host.RunQuery) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= cursorHash+8 || len(b) > cursorHash+8+cursorID {
		return invalid("Invalid cursor: '%s'", clip(text))
	}
	if string(b[:cursorHash]) != string(filterHash(q)) {
		return invalid("The cursor belongs to a listing with other filters")
	}
	q.AfterStarted = int64(binary.BigEndian.Uint64(b[cursorHash:]))
	q.AfterHandler = string(b[cursorHash+8:])
	return nil
}

// filterHash identifies a query's filters; the limit is none.
func filterHash(q *host.RunQuery) []byte {
	h := sha256.New()
	put := func(list []string) {
		var n [8]byte
		for _, s := range append([]string{strconv.Itoa(len(list))}, list...) {
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			h.Write(n[:])
			h.Write([]byte(s))
		}
	}
	put(q.Statuses)
	put(q.Workflows)
	put(termTexts(q.Search))
	put([]string{q.Tenant, q.Version, q.Session, strconv.FormatInt(q.Since, 10), strconv.FormatBool(q.Blocked), q.ErrorCode})
	return h.Sum(nil)[:cursorHash]
}

// termTexts are terms as they are written.
func termTexts(terms []host.SearchTerm) []string {
	texts := make([]string, len(terms))
	for i, t := range terms {
		if texts[i] = t.Word; t.Prefix {
			texts[i] += "*"
		}
	}
	return texts
}
