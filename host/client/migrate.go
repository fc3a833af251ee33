package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weftrun/weft/host"
)

// MigrateRequest asks for runs of a workflow to be moved to its newest version.
type MigrateRequest struct {
	Workflow  string
	HandlerID string // this run alone; "": all
	DryRun    bool
	Limit     int    // runs to look at, 1 to 1000; 0: 100
	Cursor    string // Next of the page before
}

// Migration is what came of a page of a [MigrateRequest].
type Migration struct {
	host.Migration
	Next string // the cursor of the next page; "" at the end
}

// migrationJSON is a migration as the API has it.
type migrationJSON struct {
	Workflow string `json:"workflow"`
	Version  string `json:"version"`
	Checked  int    `json:"checked"`
	Fit      int    `json:"fit"`
	Moved    int    `json:"moved"`
	Departed []struct {
		HandlerID string `json:"handler_id"`
		RunID     string `json:"run_id"`
		Version   string `json:"version"`
		Code      string `json:"code"`
		Message   string `json:"message"`
		Step      string `json:"step"`
		Call      uint64 `json:"call"`
		Import    string `json:"import"`
	} `json:"departed"`
	Running []string `json:"running"`
	Next    string   `json:"next_cursor"`
}

func (j *migrationJSON) migration() Migration {
	m := Migration{Next: j.Next, Migration: host.Migration{
		Workflow: j.Workflow, Version: j.Version, Checked: j.Checked, Fit: j.Fit, Moved: j.Moved, Running: j.Running,
	}}
	for _, d := range j.Departed {
		m.Departed = append(m.Departed, host.Departure(d))
	}
	return m
}

// Migrate moves a page of runs, or with DryRun says which would move.
func (c *Client) Migrate(ctx context.Context, r MigrateRequest) (Migration, error) {
	v := url.Values{"dry_run": {strconv.FormatBool(r.DryRun)}}
	if r.Limit != 0 {
		v.Set("limit", strconv.Itoa(r.Limit))
	}
	if r.Cursor != "" {
		v.Set("cursor", r.Cursor)
	}
	body := []byte("{}")
	if r.HandlerID != "" {
		id, err := marshal(r.HandlerID)
		if err != nil {
			return Migration{}, err
		}
		body = fmt.Appendf(nil, `{"handler_id":%s}`, id)
	}
	req := postJSON("/workflows/"+url.PathEscape(r.Workflow)+"/migrate", body)
	req.query = v
	a, err := c.want(ctx, http.StatusOK, req)
	if err != nil {
		return Migration{}, err
	}
	var j migrationJSON
	if err := a.decode(&j); err != nil {
		return Migration{}, err
	}
	return j.migration(), nil
}
