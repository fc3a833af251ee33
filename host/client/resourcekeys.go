package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/weftrun/weft/host/apiwire"
)

// ResourceKey is a key that a resource of the kind kv keeps; its Value is nil unless it
// was asked for.
type ResourceKey = apiwire.ResourceKey

// ResourceKeys is a part of what a resource keeps. NextCursor "" says that nothing
// follows; the totals count all keys, and the bytes of keys and encoded values.
type ResourceKeys = apiwire.ResourceKeys

// ResourceKeyQuery selects keys. The zero value is the first hundred.
type ResourceKeyQuery struct {
	Prefix string
	Values bool
	Limit  int    // at most 1000; 0: 100
	Cursor string // Next of the page before, of the same Prefix
}

// ResourceKeys reads what a resource of the kind kv keeps. CodeNotFound,
// CodeInvalidArgument (it is of another kind).
func (c *Client) ResourceKeys(ctx context.Context, name string, q ResourceKeyQuery) (ResourceKeys, error) {
	v := url.Values{}
	for key, text := range map[string]string{"prefix": q.Prefix, "cursor": q.Cursor} {
		if text != "" {
			v.Set(key, text)
		}
	}
	if q.Values {
		v.Set("values", "true")
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	var page ResourceKeys
	err := c.getJSON(ctx, "/resources/"+url.PathEscape(name)+"/keys", v, &page)
	return page, err
}
