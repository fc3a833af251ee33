package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// JournalEntry is one entry of a run's timeline, see [host.TimelineEntry].
type JournalEntry = apiwire.Entry

// JournalPage is a page of a run's timeline. NextCursor is "" on the last page.
type JournalPage = apiwire.Journal

// JournalOptions selects entries of a run's timeline. Zero fields select everything.
type JournalOptions struct {
	Cursor        string // NextCursor of the page before, with the same options
	Limit         int    // 1 to 1000; 0: 1000
	After, Before uint64 // positions, which are excluded
	Newest        bool   // the newest entries first
	Kinds, Steps  []string
	Cut           int // longer values are cut to so many bytes, 16 to 1 MiB; 0: none is
}

func (o *JournalOptions) query() url.Values {
	v := url.Values{"kind": o.Kinds, "step": o.Steps}
	for name, n := range map[string]uint64{"limit": uint64(max(o.Limit, 0)), "after": o.After, "before": o.Before, "cut": uint64(max(o.Cut, 0))} {
		if n != 0 {
			v.Set(name, strconv.FormatUint(n, 10))
		}
	}
	if o.Cursor != "" {
		v.Set("cursor", o.Cursor)
	}
	if o.Newest {
		v.Set("order", "desc")
	}
	return v
}

// Journal reads a page of the timeline of a handler's latest run, or of a run by its id.
func (c *Client) Journal(ctx context.Context, id string, o JournalOptions) (JournalPage, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/handlers/" + url.PathEscape(id) + "/journal", query: o.query()})
	if err != nil {
		return JournalPage{}, err
	}
	var page JournalPage
	err = a.decode(&page)
	return page, err
}

// ForkOptions says from where a fork continues, and what it changes.
type ForkOptions struct {
	At uint64 // position of the entry after which it continues
	// At most one of them changes the state: the whole state, a merge patch (RFC 7396), or a
	// JSON list of edits.
	State, Patch, Edits json.RawMessage
	// AnswerType is the type of an event that the fork gets before it continues; "": none.
	// Answer has its fields, and Step is the step that gets it; "": all that accept it.
	AnswerType string
	Answer     json.RawMessage
	Step       string
	Paused     bool // it waits until it is resumed
	DryRun     bool // everything is checked, and nothing begins
}

// Fork continues a run a second time, from just after an entry of its journal. It returns
// the record of the new handler, and the work that was started again for it. Of a dry run,
// the ids are those of nobody. If no fork can begin there, the error is CodeConflict, and
// its Nearest names the entries where one can.
func (c *Client) Fork(ctx context.Context, id string, o ForkOptions) (Record, []host.Renewed, error) {
	body := apiwire.ForkAtOf[json.RawMessage]{At: o.At, State: o.State, Patch: o.Patch, Edits: o.Edits, Step: o.Step, Paused: o.Paused, DryRun: o.DryRun}
	if o.AnswerType != "" {
		if o.Answer == nil {
			o.Answer = json.RawMessage("{}")
		}
		var err error
		if body.Answer, err = marshal(map[string]any{"type": o.AnswerType, "value": o.Answer}); err != nil {
			return Record{}, nil, &host.Error{Code: host.CodeInvalidArgument, Message: "The answer is not JSON", Cause: err}
		}
	}
	return c.forked(ctx, "/handlers/"+url.PathEscape(id)+"/fork", body)
}

// Retry continues a run that has failed or is blocked, with its own version or with the
// newest version. It returns the record of the continued run, and the work that was
// started again.
func (c *Client) Retry(ctx context.Context, id string, newest bool) (Record, []host.Renewed, error) {
	return c.forked(ctx, "/handlers/"+url.PathEscape(id)+"/retry", apiwire.Retry{Newest: newest})
}

// forked sends a request whose answer is the record of a run that continues.
func (c *Client) forked(ctx context.Context, path string, body any) (Record, []host.Renewed, error) {
	text, err := marshal(body)
	if err != nil {
		return Record{}, nil, err
	}
	a, err := c.want(ctx, http.StatusOK, postJSON(path, text))
	if err != nil {
		return Record{}, nil, err
	}
	var fork apiwire.Fork
	if err := a.decode(&fork); err != nil {
		return Record{}, nil, err
	}
	anew := make([]host.Renewed, len(fork.Anew))
	for i := range anew {
		apiwire.Fill(&anew[i], &fork.Anew[i])
	}
	run, err := apiwire.Run(&fork.Record)
	return Record{JSON: a.body, Remedy: fork.Remedy, Run: run}, anew, err
}

// Snapshot returns all data of a run, for [StartRequest.Snapshot].
func (c *Client) Snapshot(ctx context.Context, id string) (json.RawMessage, error) {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/handlers/" + url.PathEscape(id) + "/snapshot"})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
