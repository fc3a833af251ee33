package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/weftrun/weft/host"
)

// resourceJSON is a resource as the API writes it.
type resourceJSON struct {
	Name       string          `json:"name"`
	Kind       string          `json:"kind"`
	Source     string          `json:"source"`
	Definition json.RawMessage `json:"definition"`
	KeyID      string          `json:"key_id"`
	Problem    string          `json:"problem"`
	Created    time.Time       `json:"created_at"`
	Updated    time.Time       `json:"updated_at"`
	Usage      []struct {
		Workflow     string `json:"workflow"`
		Calls        uint64 `json:"calls"`
		Failed       uint64 `json:"failed"`
		Sent         uint64 `json:"sent_bytes"`
		Received     uint64 `json:"received_bytes"`
		InputTokens  uint64 `json:"input_tokens"`
		OutputTokens uint64 `json:"output_tokens"`
	} `json:"usage"`
}

func (j *resourceJSON) info() host.ResourceInfo {
	r := host.ResourceInfo{Name: j.Name, Kind: j.Kind, File: j.Source == "file", Definition: j.Definition, KeyID: j.KeyID, Problem: j.Problem}
	if !r.File {
		r.Created, r.Updated = j.Created.UnixNano(), j.Updated.UnixNano()
	}
	for _, u := range j.Usage {
		r.Uses = append(r.Uses, host.ResourceUse{
			Resource: j.Name, Workflow: u.Workflow, Calls: u.Calls, Failed: u.Failed, Sent: u.Sent, Received: u.Received,
			InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		})
	}
	return r
}

// Resources lists the resources that the tenant may use, by name.
func (c *Client) Resources(ctx context.Context) ([]host.ResourceInfo, error) {
	var body struct {
		Resources []resourceJSON `json:"resources"`
	}
	if err := c.getJSON(ctx, "/resources", nil, &body); err != nil {
		return nil, err
	}
	list := make([]host.ResourceInfo, len(body.Resources))
	for i := range body.Resources {
		list[i] = body.Resources[i].info()
	}
	return list, nil
}

// Resource reads one. CodeNotFound.
func (c *Client) Resource(ctx context.Context, name string) (host.ResourceInfo, error) {
	var j resourceJSON
	err := c.getJSON(ctx, "/resources/"+url.PathEscape(name), nil, &j)
	return j.info(), err
}

// PutResource defines a resource, with its secrets, or replaces it. definition is
// JSON.
func (c *Client) PutResource(ctx context.Context, name string, definition []byte) (info host.ResourceInfo, created bool, err error) {
	a, err := c.do(ctx, request{method: http.MethodPut, path: "/resources/" + url.PathEscape(name), contentType: "application/json", body: definition})
	if err == nil && a.status != http.StatusOK && a.status != http.StatusCreated {
		err = a.failure()
	}
	if err != nil {
		return host.ResourceInfo{}, false, err
	}
	var j resourceJSON
	err = a.decode(&j)
	return j.info(), a.status == http.StatusCreated, err
}

// DeleteResource removes one that the tenant has defined. CodeNotFound, CodeConflict.
func (c *Client) DeleteResource(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/resources/" + url.PathEscape(name)})
	return err
}
