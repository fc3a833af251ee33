package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// StartRequest describes the run to start.
type StartRequest struct {
	Workflow string
	// Event is the start event in JSON: its plain fields, or an envelope with type and
	// value. nil means an event without fields.
	Event     json.RawMessage
	HandlerID string      // "": the server generates one
	SessionID string      // "": the handler's private one
	OnBusy    host.OnBusy // "": share
	// Snapshot is nil, or what [Client.Snapshot] returned. The new run continues from it.
	Snapshot json.RawMessage
	// Wait makes Start return when the run has ended. Without it, Start returns when the
	// start is durable.
	Wait bool
}

// Record is the record of a run: decoded, and as the server sent it. Tenant and fuel are
// zero, because the API does not have them.
type Record struct {
	host.Run
	JSON json.RawMessage
	// Remedy says, for people, what to do about a run that failed or is blocked.
	Remedy string
}

// Start starts a run. A run that fails is not an error: its record says why it failed.
func (c *Client) Start(ctx context.Context, r StartRequest) (Record, error) {
	body, err := marshal(apiwire.StartOf[json.RawMessage]{
		Event: r.Event, HandlerID: r.HandlerID, SessionID: r.SessionID, OnBusy: r.OnBusy, Snapshot: r.Snapshot,
	})
	if err != nil {
		return Record{}, &host.Error{Code: host.CodeInvalidArgument, Message: "The start event, or the snapshot, is not JSON", Cause: err}
	}
	path := "/workflows/" + url.PathEscape(r.Workflow) + "/run"
	if !r.Wait {
		path += "-nowait"
	}
	return c.record(ctx, postJSON(path, body))
}

// Get reads the record of a handler's latest run, or of a run by its id.
func (c *Client) Get(ctx context.Context, id string) (Record, error) {
	return c.record(ctx, request{method: http.MethodGet, path: "/handlers/" + url.PathEscape(id)})
}

// marshal is json.Marshal without the escapes for HTML, which make program text much
// longer.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func postJSON(path string, body []byte) request {
	return request{method: http.MethodPost, path: path, contentType: "application/json", body: body}
}

// record sends a request whose answer is a record. The status of the answer depends on
// the run's status, so the answer for a failed run has the status of a failed request.
func (c *Client) record(ctx context.Context, r request) (Record, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return Record{}, err
	}
	switch a.status {
	case http.StatusOK, http.StatusAccepted:
		return decodeRecord(a.body)
	case http.StatusInternalServerError:
		var probe struct {
			HandlerID string `json:"handler_id"`
		}
		if json.Unmarshal(a.body, &probe) == nil && probe.HandlerID != "" {
			return decodeRecord(a.body)
		}
	}
	return Record{}, a.failure()
}

// RowQuery selects runs, also those that are not the latest of their handlers. Empty
// filters do not filter.
type RowQuery struct {
	Phases     []host.Phase
	Workflows  []string
	Version    string // digest of the version that the runs use, or at least its first 8 digits
	Session    string
	Handler    string // all runs of this handler
	Parent     string // children of the run with this run id
	ForkedFrom string // forks of the run with this run id
	ID         string // prefix of a run id or a handler id, 3 characters or more
	ErrorCode  string
	// Since and Until bound the last update, StartedAfter and StartedBefore the start.
	Since, Until                time.Time
	StartedAfter, StartedBefore time.Time
	Children                    bool   // also runs that are children of others
	Text                        string // words that all occur in the error or the result; WORD* matches a prefix
	Limit                       int    // 1 to 200; 0: 50
	Cursor                      string // Next or Previous of another page, with the same filters
}

// Row is a run in a list: decoded, and as the server sent it. Tenant and Result are zero;
// the error may be cut.
type Row struct {
	host.RunRow
	Result string // the beginning of the result as JSON; "": none
	JSON   json.RawMessage
}

// RowPage is a page of a list of runs, newest first.
type RowPage struct {
	Rows           []Row
	Next, Previous string // cursors of the pages after and before; "": none
}

// Rows lists runs.
func (c *Client) Rows(ctx context.Context, q RowQuery) (RowPage, error) {
	v := url.Values{"workflow_name": q.Workflows}
	for _, p := range q.Phases {
		v.Add("phase", string(p))
	}
	for name, value := range map[string]string{
		"version": q.Version, "session": q.Session, "handler": q.Handler, "parent": q.Parent, "forked_from": q.ForkedFrom, "id": q.ID,
		"error_code": q.ErrorCode, "q": q.Text, "cursor": q.Cursor,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until, "started_after": q.StartedAfter, "started_before": q.StartedBefore} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Children {
		v.Set("children", "true")
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	var list struct {
		Runs       []json.RawMessage `json:"runs"`
		NextCursor string            `json:"next_cursor"`
		PrevCursor string            `json:"prev_cursor"`
	}
	if err := c.getJSON(ctx, "/runs", v, &list); err != nil {
		return RowPage{}, err
	}
	p := RowPage{Next: list.NextCursor, Previous: list.PrevCursor, Rows: make([]Row, len(list.Runs))}
	for i, text := range list.Runs {
		var row apiwire.Row
		if err := json.Unmarshal(text, &row); err != nil {
			return RowPage{}, host.Errorf(host.CodeInvalidMessage, "The server's list of runs is not understood: %v", err)
		}
		p.Rows[i] = Row{RunRow: row.RunRow(), Result: string(row.Result), JSON: text}
	}
	return p, nil
}

// RunCounts counts all runs, by workflow and phase, without zeros.
func (c *Client) RunCounts(ctx context.Context) ([]host.RunCount, error) {
	var body apiwire.PhaseCounts
	if err := c.getJSON(ctx, "/runs/counts", nil, &body); err != nil {
		return nil, err
	}
	return apiwire.FillAll[host.RunCount](body.Counts), nil
}

// Details is a run with the runs that are connected with it; see [Client.Details].
type Details struct {
	Record
	Runs, Children, Forks []host.RunRow // newest 20 each, in the form of a [Row]
}

// Details reads a run, or the latest run of a handler, with all runs of the handler, its
// children and its forks.
func (c *Client) Details(ctx context.Context, id string) (Details, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id)})
	if err != nil {
		return Details{}, err
	}
	rec, err := decodeRecord(a.body)
	if err != nil {
		return Details{}, err
	}
	var body apiwire.RunDetails
	if err := json.Unmarshal(a.body, &body); err != nil {
		return Details{}, host.Errorf(host.CodeInvalidMessage, "The server's run is not understood: %v", err)
	}
	d := Details{Record: rec}
	d.Fuel, d.RetriedFrom = body.Fuel, body.RetriedFrom
	if body.Parent != nil {
		d.ParentRun, d.ParentStep = body.Parent.RunID, body.Parent.Step
	}
	if body.ForkedFrom != nil {
		d.ForkedFrom, d.ForkedAt = body.ForkedFrom.RunID, body.ForkedFrom.At
	}
	for _, list := range []struct {
		to   *[]host.RunRow
		from []apiwire.Row
	}{{&d.Runs, body.Runs}, {&d.Children, body.Children}, {&d.Forks, body.Forks}} {
		for i := range list.from {
			*list.to = append(*list.to, list.from[i].RunRow())
		}
	}
	return d, nil
}

// ListQuery selects handlers by their latest runs. Empty filters do not filter.
type ListQuery struct {
	Statuses  []string
	Workflows []string
	Version   string // digest of the version that the runs use, or at least its first 8 digits
	Session   string
	ErrorCode string    // code of the error that ended the run
	Since     time.Time // updated at or after
	Blocked   bool      // only blocked ones
	Text      string    // words that all occur in the error or the result; WORD* matches a prefix
	Limit     int       // 1 to 1000; 0: 1000
	Cursor    string    // Next of the previous page, with the same filters
}

// Page is a page of a listing, newest first.
type Page struct {
	Records []Record
	Next    string // the cursor of the next page; "" at the end
}

// List lists handlers' latest runs.
func (c *Client) List(ctx context.Context, q ListQuery) (Page, error) {
	v := url.Values{"status": q.Statuses, "workflow_name": q.Workflows}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("version", q.Version)
	set("session", q.Session)
	set("error_code", q.ErrorCode)
	set("q", q.Text)
	set("cursor", q.Cursor)
	if !q.Since.IsZero() {
		set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Blocked {
		set("blocked", "true")
	}
	if q.Limit != 0 {
		set("limit", strconv.Itoa(q.Limit))
	}
	var list struct {
		Handlers   []json.RawMessage `json:"handlers"`
		NextCursor string            `json:"next_cursor"`
	}
	if err := c.getJSON(ctx, "/handlers", v, &list); err != nil {
		return Page{}, err
	}
	p := Page{Next: list.NextCursor, Records: make([]Record, len(list.Handlers))}
	for i, text := range list.Handlers {
		var err error
		if p.Records[i], err = decodeRecord(text); err != nil {
			return Page{}, err
		}
	}
	return p, nil
}

// Send sends an event to a running run: to the named step, or to all steps that accept
// the event. fields is a JSON object; nil means {}. Send returns what the server did with
// the event, if the server reports it.
func (c *Client) Send(ctx context.Context, id, eventType string, fields json.RawMessage, step string) (host.Delivery, error) {
	if fields == nil {
		fields = json.RawMessage("{}")
	}
	type envelope struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	body, err := marshal(apiwire.SendOf[envelope]{Event: envelope{eventType, fields}, Step: step})
	if err != nil {
		return host.Delivery{}, &host.Error{Code: host.CodeInvalidArgument, Message: "The event is not JSON", Cause: err}
	}
	a, err := c.want(ctx, http.StatusOK, postJSON("/events/"+url.PathEscape(id), body))
	if err != nil {
		return host.Delivery{}, err
	}
	var sent apiwire.Sent
	var d host.Delivery
	err = a.decode(&sent)
	apiwire.Fill(&d, &sent)
	return d, err
}

// Pause stops a running run from starting steps until [Client.Resume], and returns its
// record.
func (c *Client) Pause(ctx context.Context, id string) (Record, error) {
	return c.steer(ctx, id, "pause")
}

// Resume continues a run that is paused or blocked, and returns its record.
func (c *Client) Resume(ctx context.Context, id string) (Record, error) {
	return c.steer(ctx, id, "resume")
}

func (c *Client) steer(ctx context.Context, id, verb string) (Record, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodPost, path: "/handlers/" + url.PathEscape(id) + "/" + verb})
	if err != nil {
		return Record{}, err
	}
	return decodeRecord(a.body)
}

// Cancel cancels a running run. With purge it deletes the handler, running or not; then
// deleted is true.
func (c *Client) Cancel(ctx context.Context, id string, purge bool) (deleted bool, err error) {
	a, err := c.want(ctx, http.StatusOK, request{
		method: http.MethodPost, path: "/handlers/" + url.PathEscape(id) + "/cancel",
		query: url.Values{"purge": {strconv.FormatBool(purge)}},
	})
	if err != nil {
		return false, err
	}
	var result apiwire.Cancelled
	err = a.decode(&result)
	return result.Status == "deleted", err
}
