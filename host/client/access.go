package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weftrun/weft/host"
)

// tenantJSON is a tenant as the API writes it.
type tenantJSON struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created_at"`
}

func (j *tenantJSON) record() host.TenantRecord {
	return host.TenantRecord{Name: j.Name, Created: j.Created.UnixNano()}
}

// keyJSON is a key as the API writes it.
type keyJSON struct {
	ID             string     `json:"id"`
	Key            string     `json:"key"`
	Prefix         string     `json:"prefix"`
	Tenant         string     `json:"tenant"`
	Role           host.Role  `json:"role"`
	Name           string     `json:"name"`
	Created        time.Time  `json:"created_at"`
	Expires        *time.Time `json:"expires_at"`
	LastUsed       *time.Time `json:"last_used_at"`
	Revoked        *time.Time `json:"revoked_at"`
	PreviousPrefix string     `json:"previous_prefix"`
	PreviousUntil  *time.Time `json:"previous_until"`
}

func (j *keyJSON) record() host.KeyRecord {
	nanos := func(t *time.Time) int64 {
		if t == nil {
			return 0
		}
		return t.UnixNano()
	}
	return host.KeyRecord{
		ID: j.ID, Tenant: j.Tenant, Role: j.Role, Name: j.Name, Prefix: j.Prefix, PreviousPrefix: j.PreviousPrefix,
		PreviousUntil: nanos(j.PreviousUntil), Created: j.Created.UnixNano(), Expires: nanos(j.Expires),
		LastUsed: nanos(j.LastUsed), Revoked: nanos(j.Revoked),
	}
}

// Tenants lists the tenants that the key may see, by name.
func (c *Client) Tenants(ctx context.Context) ([]host.TenantRecord, error) {
	var body struct {
		Tenants []tenantJSON `json:"tenants"`
	}
	if err := c.getJSON(ctx, "/tenants", nil, &body); err != nil {
		return nil, err
	}
	list := make([]host.TenantRecord, len(body.Tenants))
	for i := range body.Tenants {
		list[i] = body.Tenants[i].record()
	}
	return list, nil
}

// CreateTenant makes a tenant; it takes the server's own key.
func (c *Client) CreateTenant(ctx context.Context, name string) (host.TenantRecord, error) {
	var j tenantJSON
	err := c.post(ctx, http.StatusCreated, "/tenants", map[string]string{"name": name}, &j)
	return j.record(), err
}

// DeleteTenant removes a tenant with all that it has; it takes the server's own key.
// CodeConflict while its runs are active.
func (c *Client) DeleteTenant(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/tenants/" + url.PathEscape(name)})
	return err
}

// Keys lists the keys that the key may see, those that are revoked too.
func (c *Client) Keys(ctx context.Context) ([]host.KeyRecord, error) {
	var body struct {
		Keys []keyJSON `json:"keys"`
	}
	if err := c.getJSON(ctx, "/keys", nil, &body); err != nil {
		return nil, err
	}
	list := make([]host.KeyRecord, len(body.Keys))
	for i := range body.Keys {
		list[i] = body.Keys[i].record()
	}
	return list, nil
}

// CreateKey makes a key. The secret is the key itself, which the server gives only
// this once.
func (c *Client) CreateKey(ctx context.Context, req host.KeyRequest) (key host.KeyRecord, secret string, err error) {
	body := map[string]string{"role": string(req.Role), "tenant": req.Tenant, "name": req.Name}
	if req.Expires != 0 {
		body["expires_at"] = time.Unix(0, req.Expires).UTC().Format(time.RFC3339Nano)
	}
	var j keyJSON
	err = c.post(ctx, http.StatusCreated, "/keys", body, &j)
	return j.record(), j.Key, err
}

// RevokeKey ends a key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/keys/" + url.PathEscape(id)})
	return err
}

// RotateKey gives a key another secret; the old one works for as long as grace says.
func (c *Client) RotateKey(ctx context.Context, id string, grace time.Duration) (key host.KeyRecord, secret string, err error) {
	var j keyJSON
	err = c.post(ctx, http.StatusOK, "/keys/"+url.PathEscape(id)+"/rotate", map[string]float64{"grace": grace.Seconds()}, &j)
	return j.record(), j.Key, err
}

// post sends a JSON body and reads the answer, of the given status, into v.
func (c *Client) post(ctx context.Context, status int, path string, body, v any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return &host.Error{Code: host.CodeInvalidArgument, Message: err.Error(), Cause: err}
	}
	a, err := c.want(ctx, status, request{method: http.MethodPost, path: path, contentType: "application/json", body: text})
	if err != nil {
		return err
	}
	return a.decode(v)
}

// AuditEntry is an entry of the audit log: as the API has it, and as the server sent it.
type AuditEntry struct {
	host.AuditEntry
	JSON json.RawMessage
}

// AuditPage is a part of the audit log, the newest entry first.
type AuditPage struct {
	Entries []AuditEntry
	Next    string // the cursor of the next page; "" at the end
}

// Audit reads a part of the audit log that the key may see, from the cursor on ("": from
// the newest entry). limit is 1 to 1000, 0 for 1000.
func (c *Client) Audit(ctx context.Context, cursor string, limit int) (AuditPage, error) {
	v := url.Values{}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	var body struct {
		Entries []json.RawMessage `json:"entries"`
		Next    string            `json:"next_cursor"`
	}
	if err := c.getJSON(ctx, "/audit", v, &body); err != nil {
		return AuditPage{}, err
	}
	page := AuditPage{Next: body.Next, Entries: make([]AuditEntry, len(body.Entries))}
	for i, text := range body.Entries {
		var j struct {
			ID      int64     `json:"id"`
			Time    time.Time `json:"time"`
			Who     string    `json:"who"`
			Tenant  string    `json:"tenant"`
			Act     string    `json:"act"`
			Target  string    `json:"target"`
			Detail  string    `json:"detail"`
			Outcome string    `json:"outcome"`
		}
		if err := json.Unmarshal(text, &j); err != nil {
			return AuditPage{}, &host.Error{Code: host.CodeInternal, Message: "The server's answer is not understood", Cause: err}
		}
		page.Entries[i] = AuditEntry{JSON: text, AuditEntry: host.AuditEntry{
			ID: j.ID, Time: j.Time.UnixNano(), Who: j.Who, Tenant: j.Tenant, Act: j.Act, Target: j.Target, Detail: j.Detail, Outcome: j.Outcome,
		}}
	}
	return page, nil
}
