package httpapi

import (
	"crypto/sha256"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// handlerJournal answers a page of a run's timeline.
func (s *Server) handlerJournal(c echo.Context) error {
	page, err := parseTimeline(c.QueryParams())
	if err != nil {
		return err
	}
	t, err := s.cfg.Runs.Timeline(c.Request().Context(), tenantOf(c), param(c, "id"), page.after, page.limit)
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

// timelinePage is the page that the query of a journal asks for.
type timelinePage struct {
	after uint64
	run   string // hash of the run that the cursor belongs to; "": from the beginning
	limit int
}

func parseTimeline(v url.Values) (page timelinePage, err error) {
	if page.limit, err = limitOf(v, host.MaxTimeline, host.MaxTimeline); err != nil {
		return page, err
	}
	if text := v.Get("cursor"); text != "" {
		page.run, page.after, err = readNumberCursor(text)
	}
	return page, err
}

func runHash(runID string) string {
	sum := sha256.Sum256([]byte(runID))
	return string(sum[:cursorHash])
}
