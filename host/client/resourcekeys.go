package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/weftrun/weft/host/apiwire"
)

// ResourceKey is a key that a resource of kind kv keeps. Its Value is nil unless the
// query asked for values.
type ResourceKey = apiwire.ResourceKey

// ResourceKeys is a page of the data that a resource keeps. NextCursor is "" on the last
// page. The totals count all keys, and the bytes of keys and encoded values.
type ResourceKeys = apiwire.ResourceKeys

// ResourceKeyQuery selects keys. The zero value selects the first hundred.
type ResourceKeyQuery struct {
	Prefix string
	Values bool
	Limit  int    // at most 1000; 0: 100
	Cursor string // Next of the previous page, for the same Prefix
}

// ResourceKeys reads the keys of a resource of kind kv. CodeNotFound, CodeInvalidArgument
// for a resource of another kind.
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
