package httpapi

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// runJournal answers a page of a run's timeline.
func (s *Server) runJournal(c echo.Context) error {
	page, err := parseTimeline(c.QueryParams())
	if err != nil {
		return err
	}
	page.Tenant, page.ID = tenantOf(c), param(c, "id")
	t, err := s.cfg.Runs.Timeline(c.Request().Context(), page.TimelineQuery)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	if page.run != "" && len(t.Entries) > 0 && runHash(t.Entries[0].RunID) != page.run {
		return invalid("The cursor belongs to the journal of another run")
	}
	var out apiwire.Journal
	if apiwire.Fill(&out, &t); t.Next != 0 && len(t.Entries) > 0 {
		out.NextCursor = apiwire.OrNull(numberCursor(runHash(t.Entries[0].RunID), t.Next))
	}
	return answer(c, http.StatusOK, &out)
}

// runEntry answers one entry of a run's timeline.
func (s *Server) runEntry(c echo.Context) error {
	seq, err := strconv.ParseUint(param(c, "seq"), 10, 63)
	if err != nil || seq == 0 {
		return invalid("Invalid seq: '%s'. It must be the seq of an entry of a journal", clip(param(c, "seq")))
	}
	q := host.TimelineQuery{Tenant: tenantOf(c), ID: param(c, "id"), After: seq - 1, Before: seq + 1, Limit: 1}
	t, err := s.cfg.Runs.Timeline(c.Request().Context(), q)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	if len(t.Entries) == 0 {
		return host.Errorf(host.CodeNotFound, "The run's journal has no entry %d", seq)
	}
	var out apiwire.Entry
	apiwire.Fill(&out, &t.Entries[0])
	return answer(c, http.StatusOK, &out)
}

// timelinePage is the page that the query of a journal asks for.
type timelinePage struct {
	host.TimelineQuery
	run string // hash of the run that the cursor belongs to; "": there is no cursor
}

// Bounds of the parameter cut, in bytes.
const (
	leastCut = 16
	mostCut  = 1 << 20
)

func parseTimeline(v url.Values) (page timelinePage, err error) {
	page.Kinds, page.Steps = v["kind"], v["step"]
	if page.Limit, err = limitOf(v, host.MaxTimeline, host.MaxTimeline); err != nil {
		return page, err
	}
	if page.After, err = positionOf(v, "after"); err != nil {
		return page, err
	}
	if page.Before, err = positionOf(v, "before"); err != nil {
		return page, err
	}
	if len(page.Kinds) > maxFilters || len(page.Steps) > maxFilters {
		return page, invalid("At most %d kinds and %d steps can be given", maxFilters, maxFilters)
	}
	switch order := v.Get("order"); order {
	case "", "asc":
	case "desc":
		page.Newest = true
	default:
		return page, invalid("Invalid order: '%s'. It must be asc or desc", clip(order))
	}
	if text := v.Get("cut"); text != "" {
		if page.Cut, err = strconv.Atoi(text); err != nil || page.Cut < leastCut || page.Cut > mostCut {
			return page, invalid("Invalid cut: '%s'. It must be a number from %d to %d", clip(text), leastCut, mostCut)
		}
	}
	text := v.Get("cursor")
	if text == "" {
		return page, nil
	}
	var at uint64
	if page.run, at, err = readNumberCursor(text); err != nil {
		return page, err
	}
	if page.Newest {
		page.Before = at
	} else {
		page.After = at
	}
	return page, nil
}

// maxFilters limits the values of a filter of a journal.
const maxFilters = 100

func runHash(runID string) string {
	sum := sha256.Sum256([]byte(runID))
	return string(sum[:cursorHash])
}
