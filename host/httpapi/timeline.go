package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// handlerJournal answers a part of a run's timeline.
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
		cursor := binary.BigEndian.AppendUint64([]byte(runHash(t.Entries[0].RunID)), t.Next)
		out.NextCursor = apiwire.OrNull(base64.RawURLEncoding.EncodeToString(cursor))
	}
	return answer(c, http.StatusOK, &out)
}

// timelinePage is what the query of a journal asks for.
type timelinePage struct {
	after uint64
	run   string // hash of the run that the cursor is of; "": from the beginning
	limit int
}

func parseTimeline(v url.Values) (timelinePage, error) {
	page := timelinePage{limit: host.MaxTimeline}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > host.MaxTimeline {
			return page, invalid("Invalid limit: '%s'. It is a number from 1 to %d", clip(text), host.MaxTimeline)
		}
		page.limit = n
	}
	text := v.Get("cursor")
	if text == "" {
		return page, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != cursorHash+8 {
		return page, invalid("Invalid cursor: '%s'", clip(text))
	}
	page.run, page.after = string(b[:cursorHash]), binary.BigEndian.Uint64(b[cursorHash:])
	return page, nil
}

func runHash(runID string) string {
	sum := sha256.Sum256([]byte(runID))
	return string(sum[:cursorHash])
}
