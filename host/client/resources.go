package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// Resources lists the resources that the tenant may use, by name.
func (c *Client) Resources(ctx context.Context) ([]host.ResourceInfo, error) {
	var body apiwire.Resources
	if err := c.getJSON(ctx, "/resources", nil, &body); err != nil {
		return nil, err
	}
	list := make([]host.ResourceInfo, len(body.Resources))
	for i := range body.Resources {
		list[i] = body.Resources[i].Info()
	}
	return list, nil
}

// Resource reads a resource. CodeNotFound.
func (c *Client) Resource(ctx context.Context, name string) (host.ResourceInfo, error) {
	var j apiwire.Resource
	err := c.getJSON(ctx, "/resources/"+url.PathEscape(name), nil, &j)
	return j.Info(), err
}

// PutResource defines a resource with its secrets, or replaces its definition, which is
// JSON.
func (c *Client) PutResource(ctx context.Context, name string, definition []byte) (info host.ResourceInfo, created bool, err error) {
	a, err := c.do(ctx, request{method: http.MethodPut, path: "/resources/" + url.PathEscape(name), contentType: "application/json", body: definition})
	if err == nil && a.status != http.StatusOK && a.status != http.StatusCreated {
		err = a.failure()
	}
	if err != nil {
		return host.ResourceInfo{}, false, err
	}
	var j apiwire.Resource
	err = a.decode(&j)
	return j.Info(), a.status == http.StatusCreated, err
}

// DeleteResource removes a resource that the tenant has defined. CodeNotFound,
// CodeConflict.
func (c *Client) DeleteResource(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/resources/" + url.PathEscape(name)})
	return err
}
