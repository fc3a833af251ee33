package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

func tenantOf(j *apiwire.Tenant) (t host.TenantRecord) {
	apiwire.Fill(&t, j)
	return t
}

func keyOf(j *apiwire.Key) (k host.KeyRecord) {
	apiwire.Fill(&k, j)
	return k
}

// WhoAmI returns who the server takes the client for, and what the client may do.
func (c *Client) WhoAmI(ctx context.Context) (me host.Identity, err error) {
	var body apiwire.Identity
	if err := c.getJSON(ctx, "/whoami", nil, &body); err != nil {
		return me, err
	}
	apiwire.Fill(&me, &body)
	return me, nil
}

// Tenants lists the tenants that the key may see, by name.
func (c *Client) Tenants(ctx context.Context) ([]host.TenantRecord, error) {
	var body apiwire.Tenants
	if err := c.getJSON(ctx, "/tenants", nil, &body); err != nil {
		return nil, err
	}
	list := make([]host.TenantRecord, len(body.Tenants))
	for i := range body.Tenants {
		list[i] = tenantOf(&body.Tenants[i])
	}
	return list, nil
}

// CreateTenant creates a tenant. It needs the server's own key.
func (c *Client) CreateTenant(ctx context.Context, name string) (host.TenantRecord, error) {
	var j apiwire.Tenant
	err := c.post(ctx, http.StatusCreated, "/tenants", apiwire.NewTenant{Name: name}, &j)
	return tenantOf(&j), err
}

// DeleteTenant removes a tenant with all its data. It needs the server's own key. The
// error is CodeConflict while runs of the tenant are active.
func (c *Client) DeleteTenant(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/tenants/" + url.PathEscape(name)})
	return err
}

// Keys lists the keys that the key may see, including revoked keys.
func (c *Client) Keys(ctx context.Context) ([]host.KeyRecord, error) {
	var body apiwire.Keys
	if err := c.getJSON(ctx, "/keys", nil, &body); err != nil {
		return nil, err
	}
	list := make([]host.KeyRecord, len(body.Keys))
	for i := range body.Keys {
		list[i] = keyOf(&body.Keys[i])
	}
	return list, nil
}

// CreateKey creates a key. The secret is the key itself; the server returns it only this
// once.
func (c *Client) CreateKey(ctx context.Context, req host.KeyRequest) (key host.KeyRecord, secret string, err error) {
	body := apiwire.KeyRequest{Role: req.Role, Tenant: req.Tenant, Name: req.Name}
	if req.Expires != 0 {
		body.Expires = time.Unix(0, req.Expires).UTC().Format(time.RFC3339Nano)
	}
	var j apiwire.NewKey
	err = c.post(ctx, http.StatusCreated, "/keys", body, &j)
	return keyOf(&j.Key), j.Secret, err
}

// RevokeKey revokes a key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/keys/" + url.PathEscape(id)})
	return err
}

// RotateKey gives a key a new secret. The old secret remains valid for the duration
// grace.
func (c *Client) RotateKey(ctx context.Context, id string, grace time.Duration) (key host.KeyRecord, secret string, err error) {
	var j apiwire.NewKey
	span := apiwire.Seconds(grace)
	err = c.post(ctx, http.StatusOK, "/keys/"+url.PathEscape(id)+"/rotate", apiwire.Rotate{Grace: &span}, &j)
	return keyOf(&j.Key), j.Secret, err
}

// post sends a JSON body and reads the answer into v. status is the expected status.
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

// AuditEntry is an entry of the audit log: decoded, and as the server sent it.
type AuditEntry struct {
	host.AuditEntry
	JSON json.RawMessage
}

// AuditPage is a page of the audit log, newest entry first.
type AuditPage struct {
	Entries []AuditEntry
	Next    string // the cursor of the next page; "" at the end
}

// Audit reads a page of the audit log that the key may see, from the cursor on; "" begins
// at the newest entry. limit is 1 to 1000; 0 means 1000.
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
		var j apiwire.Act
		if err := json.Unmarshal(text, &j); err != nil {
			return AuditPage{}, &host.Error{Code: host.CodeInternal, Message: "The server's answer is not understood", Cause: err}
		}
		page.Entries[i].JSON = text
		apiwire.Fill(&page.Entries[i].AuditEntry, &j)
	}
	return page, nil
}
