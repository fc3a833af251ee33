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

// StartRequest asks for a run.
type StartRequest struct {
	Workflow string
	// Event is the start event in JSON: its plain fields, or an envelope with
	// type and value. nil is an event without fields.
	Event     json.RawMessage
	HandlerID string      // "": the server makes one
	SessionID string      // "": the handler's private one
	OnBusy    host.OnBusy // "": share
	// Snapshot is nil, or what [Client.Snapshot] gave: the run goes on from it.
	Snapshot json.RawMessage
	// Wait makes Start return when the run has ended, else when its start is
	// durable.
	Wait bool
}

// Record is the record of a run: decoded, and as the server sent it. The API
// carries no tenant and fuel; those are zero.
type Record struct {
	host.Run
	JSON json.RawMessage
	// Remedy says, for people, what to do about a run that failed or is blocked.
	Remedy string
}

// Start begins a run. A run that fails is no error: its record says so.
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

// marshal is json.Marshal without the escapes for HTML, which make program text
// much longer.
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

// record sends a request whose answer is a record. The status tells how the
// run stands, so that of a failed run is the one of a failed request.
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

// ListQuery selects handlers by their latest runs. Empty filters do not filter.
type ListQuery struct {
	Statuses  []string
	Workflows []string
	Version   string // digest that the runs are on, or at least its first 8 digits
	Session   string
	ErrorCode string    // of those that failed or were cancelled
	Since     time.Time // updated at or after
	Blocked   bool      // only blocked ones
	Text      string    // words of the error or the result, which all occur; WORD* begins one
	Limit     int       // 1 to 1000; 0: 1000
	Cursor    string    // Next of the page before, with the same filters
}

// Page is a part of a listing, newest first.
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

// Send gives an event to a running run: to the step if one is named, else to
// all that accept it. fields is a JSON object, nil is {}. It says what became of the
// event, if the server says so.
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

// Pause lets a running run begin no steps until [Client.Resume], and gives its
// record.
func (c *Client) Pause(ctx context.Context, id string) (Record, error) {
	return c.steer(ctx, id, "pause")
}

// Resume lets a run that is paused or blocked go on, and gives its record.
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

// Cancel ends a running run; with purge it deletes the handler, running or
// not, and deleted is true.
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
