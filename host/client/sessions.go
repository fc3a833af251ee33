package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// Session describes a session: decoded, and as the server sent it. Tenant and order are
// zero, because the API does not have them.
type Session struct {
	host.SessionInfo
	JSON json.RawMessage
}

// SessionPage is a page of a listing, newest first.
type SessionPage struct {
	Sessions []Session
	Next     string // the cursor of the next page; "" at the end
}

// StateValue is a value of a session's state.
type StateValue struct {
	JSON json.RawMessage
	// Tag is the value's entity tag, quotes included, for [EditOptions].
	Tag string
}

// EditOptions are the conditions of an edit of a state. With the zero value, the edit has
// no condition and no idempotency key.
type EditOptions struct {
	// Path is the path of the value to edit; "" is the whole state. Tag is the tag of
	// this value, and the answer has this value. PutSession does not use Path.
	Path string
	// Tag is the expected tag of the value. If the value has a different tag, the edit is
	// refused. "": any tag.
	Tag string
	// Key is the idempotency key: an edit that is sent again with the same key and body
	// takes effect once. "": none.
	Key string
}

// Session reads the description of a session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: sessionPath(id)})
	if err != nil {
		return Session{}, err
	}
	return decodeSession(a.body)
}

func sessionPath(id string) string { return "/sessions/" + url.PathEscape(id) }

func decodeSession(text []byte) (Session, error) {
	var j apiwire.Session
	a := answer{body: text}
	err := a.decode(&j)
	s := Session{JSON: text}
	apiwire.Fill(&s.SessionInfo, &j)
	return s, err
}

// Sessions lists up to limit sessions (1 to 1000; 0: 1000) after a cursor. The cursor is
// "" or comes from the previous page.
func (c *Client) Sessions(ctx context.Context, limit int, cursor string) (SessionPage, error) {
	v := url.Values{}
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	var list struct {
		Sessions []json.RawMessage `json:"sessions"`
		Next     string            `json:"next_cursor"`
	}
	if err := c.getJSON(ctx, "/sessions", v, &list); err != nil {
		return SessionPage{}, err
	}
	p := SessionPage{Next: list.Next}
	for _, text := range list.Sessions {
		s, err := decodeSession(text)
		if err != nil {
			return SessionPage{}, err
		}
		p.Sessions = append(p.Sessions, s)
	}
	return p, nil
}

// PutSession creates a session if it does not exist. state is nil or a JSON object that
// replaces the session's state. created reports whether the session was created. With the
// Tag "*" the session must exist.
func (c *Client) PutSession(ctx context.Context, id string, state json.RawMessage, o EditOptions) (s Session, created bool, err error) {
	body, err := marshal(apiwire.PutSessionOf[json.RawMessage]{State: state})
	if err != nil {
		return Session{}, false, &host.Error{Code: host.CodeInvalidArgument, Message: "The state is not JSON", Cause: err}
	}
	r := request{method: http.MethodPut, path: sessionPath(id), contentType: "application/json", body: body, header: map[string]string{}}
	if o.Tag != "" {
		r.header["If-Match"] = o.Tag
	}
	if o.Key != "" {
		r.header[apiwire.HeaderOnce] = o.Key
	}
	a, err := c.do(ctx, r)
	if err == nil && a.status != http.StatusOK && a.status != http.StatusCreated {
		err = a.failure()
	}
	if err != nil {
		return Session{}, false, err
	}
	s, err = decodeSession(a.body)
	return s, a.status == http.StatusCreated, err
}

// DeleteSession deletes a session with its state, its journal and all its runs.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: sessionPath(id)})
	return err
}

// ReleaseSession takes a session out of quarantine and makes the server load it. The
// error says why the session cannot be loaded.
func (c *Client) ReleaseSession(ctx context.Context, id string) (Session, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodPost, path: sessionPath(id) + "/release"})
	if err != nil {
		return Session{}, err
	}
	return decodeSession(a.body)
}

// State reads the value at a dotted path of a session's state; "" is the whole state.
func (c *Client) State(ctx context.Context, id, path string) (StateValue, error) {
	v := url.Values{}
	if path != "" {
		v.Set("path", path)
	}
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: sessionPath(id) + "/state", query: v})
	return StateValue{JSON: a.body, Tag: a.header.Get("ETag")}, err
}

// StateAt reads the value at a dotted path of the state that the session of a run had just
// after the entry at a position of its journal. id is a run or a handler, "" as path is
// the whole state.
func (c *Client) StateAt(ctx context.Context, id string, at uint64, path string) (StateValue, error) {
	v := url.Values{"at": {strconv.FormatUint(at, 10)}}
	if path != "" {
		v.Set("path", path)
	}
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id) + "/state", query: v})
	return StateValue{JSON: a.body, Tag: a.header.Get("ETag")}, err
}

// PatchState merges a JSON object into a session's state, or into the value at the path
// of the options, by RFC 7396: null deletes. It returns the merged value.
func (c *Client) PatchState(ctx context.Context, id string, patch json.RawMessage, o EditOptions) (StateValue, error) {
	return c.patch(ctx, id, apiwire.TypeMergePatch, patch, o)
}

// EditState applies all edits to a session's state, or none. It returns the new state, or
// the new value at the path of the options. The paths of the edits are relative to that
// path.
func (c *Client) EditState(ctx context.Context, id string, edits []abi.Edit, o EditOptions) (StateValue, error) {
	raw, err := abi.EncodeEdits(edits)
	var body []byte
	if err == nil {
		body, err = abi.ToJSON(raw)
	}
	if err != nil {
		return StateValue{}, &host.Error{Code: host.CodeInvalidArgument, Message: "The edits are not valid: " + strings.TrimSpace(err.Error()), Cause: err}
	}
	return c.patch(ctx, id, apiwire.TypeEdits, body, o)
}

func (c *Client) patch(ctx context.Context, id, kind string, body []byte, o EditOptions) (StateValue, error) {
	r := request{method: http.MethodPatch, path: sessionPath(id) + "/state", contentType: kind, body: body, header: map[string]string{}}
	if o.Path != "" {
		r.query = url.Values{"path": {o.Path}}
	}
	if o.Tag != "" {
		r.header["If-Match"] = o.Tag
	}
	if o.Key != "" {
		r.header[apiwire.HeaderOnce] = o.Key
	}
	a, err := c.want(ctx, http.StatusOK, r)
	return StateValue{JSON: a.body, Tag: a.header.Get("ETag")}, err
}
