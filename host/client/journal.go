package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weftrun/weft/host"
)

// JournalEntry is one entry of a run's timeline, see host.TimelineEntry.
type JournalEntry struct {
	Seq        uint64    `json:"seq"`
	Time       time.Time `json:"time"`
	RunID      string    `json:"run_id"`
	Kind       string    `json:"kind"`
	Forkable   bool      `json:"forkable"`
	Step       string    `json:"step"`
	Invocation uint64    `json:"invocation"`
	Attempt    uint64    `json:"attempt"`
	Call       uint64    `json:"call"`
	Events     []struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	} `json:"events"`
	List  bool   `json:"list"`
	To    string `json:"to"`
	Edits []struct {
		Path string          `json:"path"`
		Old  json.RawMessage `json:"old"` // nil: nothing was there
		New  json.RawMessage `json:"new"` // nil: it was deleted
	} `json:"edits"`
	Fuel     uint64        `json:"fuel"`
	Duration float64       `json:"duration_seconds"`
	Error    *JournalError `json:"error"`
	RetryAt  *time.Time    `json:"retry_at"`
	Status   host.Status   `json:"status"`
	Blocked  *JournalError `json:"blocked"`
	Timer    string        `json:"timer"`
	Until    *time.Time    `json:"until"`
	Wait     *struct {
		WaiterID string `json:"waiter_id"`
		Type     string `json:"type"`
		Answered bool   `json:"answered"`
	} `json:"wait"`
	Child *struct {
		Workflow  string `json:"workflow_name"`
		RunID     string `json:"run_id"`
		HandlerID string `json:"handler_id"`
	} `json:"child"`
	Called *struct {
		Resource string          `json:"resource"`
		Method   string          `json:"method"`
		Payload  json.RawMessage `json:"payload"` // nil: it is an answer
		Answer   json.RawMessage `json:"answer"`  // nil: it is a call, or has failed
	} `json:"called"`
	Began []struct {
		Step       string `json:"step"`
		Invocation uint64 `json:"invocation"`
		Attempt    uint64 `json:"attempt"`
	} `json:"began"`
	Logs []JournalLog `json:"logs"`
}

// JournalLog is what a step has logged.
type JournalLog struct {
	Time    time.Time       `json:"time"`
	Level   int64           `json:"level"` // -4 debug, 0 info, 4 warning, 8 error, and what lies between
	Message string          `json:"message"`
	Attrs   json.RawMessage `json:"attrs"` // an object; nil: none
}

// JournalError is why an attempt failed, or a run stands still.
type JournalError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// JournalPage is a part of a run's timeline.
type JournalPage struct {
	Entries []JournalEntry `json:"entries"`
	Next    string         `json:"next_cursor"` // "": nothing follows
}

// Journal reads a part of the timeline of a handler's latest run, or of a run by
// its id, from the cursor on ("": from the beginning). limit is 1 to 1000, 0 for
// 1000.
func (c *Client) Journal(ctx context.Context, id, cursor string, limit int) (JournalPage, error) {
	v := url.Values{}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/handlers/" + url.PathEscape(id) + "/journal", query: v})
	if err != nil {
		return JournalPage{}, err
	}
	var page JournalPage
	err = a.decode(&page)
	return page, err
}

// Fork lets a run go on a second time from just after an entry of its journal. It
// gives the record of the new handler, and what was begun anew for it.
func (c *Client) Fork(ctx context.Context, id string, at uint64) (Record, []host.Renewed, error) {
	body := fmt.Appendf(nil, `{"at":%d}`, at)
	return c.forked(ctx, postJSON("/handlers/"+url.PathEscape(id)+"/fork", body))
}

// Retry lets a run go on that has failed or is blocked, with the version that it has
// or with the newest; it gives the record of what goes on, and what was begun anew.
func (c *Client) Retry(ctx context.Context, id string, newest bool) (Record, []host.Renewed, error) {
	return c.forked(ctx, postJSON("/handlers/"+url.PathEscape(id)+"/retry", fmt.Appendf(nil, `{"newest":%t}`, newest)))
}

// forked sends a request whose answer is the record of a run that goes on.
func (c *Client) forked(ctx context.Context, r request) (Record, []host.Renewed, error) {
	a, err := c.want(ctx, http.StatusOK, r)
	if err != nil {
		return Record{}, nil, err
	}
	rec, err := decodeRecord(a.body)
	if err != nil {
		return Record{}, nil, err
	}
	var more struct {
		Anew []struct {
			Kind      string `json:"kind"`
			Step      string `json:"step"`
			Workflow  string `json:"workflow_name"`
			Resource  string `json:"resource"`
			HandlerID string `json:"handler_id"`
			Was       string `json:"was"`
		} `json:"anew"`
	}
	if err := a.decode(&more); err != nil {
		return Record{}, nil, err
	}
	var anew []host.Renewed
	for _, r := range more.Anew {
		anew = append(anew, host.Renewed(r))
	}
	return rec, anew, nil
}

// Snapshot gives all that a run is made of, for [StartRequest.Snapshot].
func (c *Client) Snapshot(ctx context.Context, id string) (json.RawMessage, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/handlers/" + url.PathEscape(id) + "/snapshot"})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
