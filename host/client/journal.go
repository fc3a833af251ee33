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

// Journal reads a page of the timeline of a handler's latest run, or of a run by its id,
// from the cursor on; "" begins at the first entry. limit is 1 to 1000; 0 means 1000.
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

// Fork continues a run a second time, from just after an entry of its journal. It returns
// the record of the new handler, and the work that was started again for it.
func (c *Client) Fork(ctx context.Context, id string, at uint64) (Record, []host.Renewed, error) {
	return c.forked(ctx, "/handlers/"+url.PathEscape(id)+"/fork", apiwire.ForkAt{At: at})
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
