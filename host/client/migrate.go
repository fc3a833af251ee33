package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// MigrateRequest asks for runs of a workflow to be moved to its newest version.
type MigrateRequest struct {
	Workflow  string
	HandlerID string // this run alone; "": all
	DryRun    bool
	Limit     int    // runs to examine, 1 to 1000; 0: 100
	Cursor    string // Next of the previous page
}

// Migration is the result of a page of a [MigrateRequest].
type Migration struct {
	host.Migration
	Next string // the cursor of the next page; "" at the end
}

func migrationOf(j *apiwire.Migration) Migration {
	m := Migration{Next: string(j.NextCursor)}
	apiwire.Fill(&m.Migration, j)
	return m
}

// Migrate moves a page of runs. With DryRun it only reports which runs would move.
func (c *Client) Migrate(ctx context.Context, r MigrateRequest) (Migration, error) {
	v := url.Values{"dry_run": {strconv.FormatBool(r.DryRun)}}
	if r.Limit != 0 {
		v.Set("limit", strconv.Itoa(r.Limit))
	}
	if r.Cursor != "" {
		v.Set("cursor", r.Cursor)
	}
	body, err := marshal(apiwire.Migrate{HandlerID: r.HandlerID})
	if err != nil {
		return Migration{}, err
	}
	req := postJSON("/workflows/"+url.PathEscape(r.Workflow)+"/migrate", body)
	req.query = v
	a, err := c.want(ctx, http.StatusOK, req)
	if err != nil {
		return Migration{}, err
	}
	var j apiwire.Migration
	if err := a.decode(&j); err != nil {
		return Migration{}, err
	}
	return migrationOf(&j), nil
}
