package client

import (
	"context"
	"net/http"
	"net/url"

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

// DrainNode has a node of the cluster give the sessions up to another node, without stopping
// it. The node takes them again only if no other node can, if it starts anew, or after
// [Client.UndrainNode]. The sessions move after the call has returned: see [Client.Nodes]. It
// needs the server's own key.
func (c *Client) DrainNode(ctx context.Context, name string) error {
	return c.drain(ctx, http.MethodPost, name)
}

// UndrainNode lets a drained node take the sessions again when their owner goes.
func (c *Client) UndrainNode(ctx context.Context, name string) error {
	return c.drain(ctx, http.MethodDelete, name)
}

func (c *Client) drain(ctx context.Context, method, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: method, path: "/cluster/" + url.PathEscape(name) + "/drain"})
	return err
}
