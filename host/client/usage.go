package client

import (
	"context"
	"net/url"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// Usage returns what a tenant has stored and used. It omits quotas that this version does
// not know.
func (c *Client) Usage(ctx context.Context, name string) (host.TenantUsage, error) {
	var j apiwire.Usage
	err := c.getJSON(ctx, "/tenants/"+url.PathEscape(name)+"/usage", nil, &j)
	return j.TenantUsage(), err
}
