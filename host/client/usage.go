package client

import (
	"context"
	"net/url"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// usageJSON is what a tenant has and has used, as the API writes it.
type usageJSON struct {
	Runs         map[host.Status]int `json:"runs"`
	Steps        uint64              `json:"steps"`
	Handlers     int                 `json:"handlers"`
	Sessions     int                 `json:"sessions"`
	Plugins      int                 `json:"plugins"`
	Versions     int                 `json:"plugin_versions"`
	PluginBytes  int64               `json:"plugin_bytes"`
	JournalBytes int64               `json:"journal_bytes"`
	StreamBytes  int64               `json:"stream_bytes"`
	spentJSON
	Months []struct {
		Month string `json:"month"`
		spentJSON
	} `json:"months"`
	Quotas []struct {
		Name  string `json:"name"`
		Limit int64  `json:"limit"` // null: 0
		Used  int64  `json:"used"`
	} `json:"quotas"`
}

type spentJSON struct {
	Runs     uint64 `json:"runs_started"`
	Fuel     uint64 `json:"fuel"`
	LogBytes uint64 `json:"log_bytes"`
}

// Usage tells what a tenant has stored and used. Quotas that this version does not
// know are left out.
func (c *Client) Usage(ctx context.Context, name string) (host.TenantUsage, error) {
	var j usageJSON
	err := c.getJSON(ctx, "/tenants/"+url.PathEscape(name)+"/usage", nil, &j)
	u := host.TenantUsage{
		Runs: j.Runs, Steps: j.Steps, Handlers: j.Handlers, Sessions: j.Sessions, Plugins: j.Plugins, Versions: j.Versions,
		PluginBytes: j.PluginBytes, JournalBytes: j.JournalBytes, StreamBytes: j.StreamBytes,
		RunsStarted: j.spentJSON.Runs, Fuel: j.Fuel, LogBytes: j.LogBytes,
	}
	for _, m := range j.Months {
		if month, ok := usage.ParseMonth(m.Month); ok {
			u.Months = append(u.Months, usage.MonthSpent{Tenant: name, Month: month, Spent: usage.Spent(m.spentJSON)})
		}
	}
	for _, q := range j.Quotas {
		if quota, ok := limit.ParseQuota(q.Name); ok {
			u.Quotas = append(u.Quotas, limit.Use{Quota: quota, Limit: q.Limit, Used: q.Used})
		}
	}
	return u, err
}
