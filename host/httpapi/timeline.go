package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
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
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) { return appendTimeline(dst, &t) })
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

func appendTimeline(dst []byte, t *host.Timeline) ([]byte, error) {
	dst = append(dst, `{"entries":[`...)
	for i := range t.Entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendEntry(dst, &t.Entries[i]); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `],"next_cursor":`...)
	if t.Next == 0 || len(t.Entries) == 0 {
		return append(dst, "null}"...), nil
	}
	cursor := binary.BigEndian.AppendUint64([]byte(runHash(t.Entries[0].RunID)), t.Next)
	dst = appendString(dst, base64.RawURLEncoding.EncodeToString(cursor))
	return append(dst, '}'), nil
}

// fields appends the members of a JSON object, those that say something.
type fields struct {
	b   []byte
	err error
}

func (f *fields) name(name string) {
	if n := len(f.b); f.b[n-1] != '{' {
		f.b = append(f.b, ',')
	}
	f.b = append(appendString(f.b, name), ':')
}

func (f *fields) text(name, value string) {
	if value != "" {
		f.name(name)
		f.b = appendString(f.b, value)
	}
}

func (f *fields) number(name string, n uint64) {
	if n != 0 {
		f.name(name)
		f.b = strconv.AppendUint(f.b, n, 10)
	}
}

func (f *fields) flag(name string, set bool) {
	if set {
		f.name(name)
		f.b = append(f.b, "true"...)
	}
}

// stamp appends a time with nanoseconds.
func (f *fields) stamp(name string, nanos int64) {
	if nanos != 0 {
		f.name(name)
		f.b = append(f.b, '"')
		f.b = time.Unix(0, nanos).UTC().AppendFormat(f.b, "2006-01-02T15:04:05.000000000Z07:00")
		f.b = append(f.b, '"')
	}
}

// value appends an encoded value; nil is left out.
func (f *fields) value(name string, raw abi.Raw) {
	if raw == nil || f.err != nil {
		return
	}
	f.name(name)
	f.b, f.err = appendRaw(f.b, raw)
}

func (f *fields) object(name string, fill func()) {
	f.name(name)
	f.b = append(f.b, '{')
	fill()
	f.b = append(f.b, '}')
}

// list appends a list of n objects; none is left out.
func (f *fields) list(name string, n int, fill func(i int)) {
	if n == 0 {
		return
	}
	f.name(name)
	f.b = append(f.b, '[')
	for i := range n {
		if i > 0 {
			f.b = append(f.b, ',')
		}
		f.b = append(f.b, '{')
		fill(i)
		f.b = append(f.b, '}')
	}
	f.b = append(f.b, ']')
}

func appendEntry(dst []byte, e *host.TimelineEntry) ([]byte, error) {
	f := &fields{b: append(dst, '{')}
	f.number("seq", e.Seq)
	f.stamp("time", e.At)
	f.text("run_id", e.RunID)
	f.text("kind", e.Kind)
	f.name("forkable")
	f.b = strconv.AppendBool(f.b, e.Forkable)
	f.text("step", e.Step)
	f.number("invocation", e.Invocation)
	f.number("attempt", e.Attempt)
	f.number("call", e.Call)
	f.list("events", len(e.Events), func(i int) {
		f.text("type", e.Events[i].Type)
		f.value("value", e.Events[i].Body)
	})
	f.flag("list", e.List)
	f.text("to", e.To)
	f.list("edits", len(e.Edits), func(i int) {
		f.name("path")
		f.b = appendString(f.b, e.Edits[i].Path)
		f.value("old", e.Edits[i].Old)
		f.value("new", e.Edits[i].New)
	})
	f.outcome(e)
	f.waits(e)
	f.list("began", len(e.Began), func(i int) {
		f.text("step", e.Began[i].Step)
		f.number("invocation", e.Began[i].Invocation)
		f.number("attempt", e.Began[i].Attempt)
	})
	f.list("logs", len(e.Logs), func(i int) {
		l := &e.Logs[i]
		f.stamp("time", l.At)
		f.name("level")
		f.b = strconv.AppendInt(f.b, l.Level, 10)
		f.name("message")
		f.b = appendString(f.b, l.Message)
		f.value("attrs", l.Attrs)
	})
	return append(f.b, '}'), f.err
}

// outcome appends how an attempt, or the run, ended.
func (f *fields) outcome(e *host.TimelineEntry) {
	f.number("fuel", e.Fuel)
	if e.Duration != 0 {
		f.name("duration_seconds")
		f.b = strconv.AppendFloat(f.b, time.Duration(e.Duration).Seconds(), 'f', -1, 64)
	}
	if e.Err != nil {
		f.object("error", func() {
			f.text("code", e.Err.Code)
			f.text("message", e.Err.Message)
		})
	}
	f.stamp("retry_at", e.RetryAt)
	f.text("status", string(e.Status))
	if e.Block != nil {
		f.object("blocked", func() {
			f.text("code", e.Block.Code)
			f.text("message", e.Block.Message)
		})
	}
}

// waits appends what a step waits for, or has waited for.
func (f *fields) waits(e *host.TimelineEntry) {
	f.text("timer", e.Timer)
	f.stamp("until", e.Until)
	if w := e.Wait; w != nil {
		f.object("wait", func() {
			f.text("waiter_id", w.ID)
			f.text("type", w.Type)
			f.value("requirements", w.Requirements)
			f.flag("broadcast", w.Broadcast)
			f.flag("answered", w.Answered != 0)
		})
	}
	if ch := e.Child; ch != nil {
		f.object("child", func() {
			f.text("workflow_name", ch.Workflow)
			f.text("run_id", ch.RunID)
			f.text("handler_id", ch.HandlerID)
			f.text("session_id", ch.SessionID)
		})
	}
	if call := e.Called; call != nil {
		f.object("called", func() {
			f.text("resource", call.Resource)
			f.text("method", call.Method)
			f.value("payload", call.Payload)
			f.value("answer", call.Answer)
		})
	}
}
