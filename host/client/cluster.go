package client

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// Nodes lists the nodes of the cluster that the server belongs to; none if the server has its
// store to itself. It needs the server's own key.
func (c *Client) Nodes(ctx context.Context) ([]host.Node, error) {
	var body apiwire.Nodes
	if err := c.getJSON(ctx, "/cluster", nil, &body); err != nil {
		return nil, err
	}
	return apiwire.FillAll[host.Node](body.Nodes), nil
}
