package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
)

// ResourceKey is a key that a resource of the kind kv keeps.
type ResourceKey struct {
	Key     string          `json:"key"`
	Version uint64          `json:"version"` // of its value
	Value   json.RawMessage `json:"value"`   // if it was asked for
}

// ResourceKeys is a part of what a resource keeps.
type ResourceKeys struct {
	Keys []ResourceKey `json:"keys"`
	Next string        `json:"next_cursor"` // "": that is all
	// Keys and bytes, of keys and encoded values, in all.
	TotalKeys  int64 `json:"total_keys"`
	TotalBytes int64 `json:"total_bytes"`
}

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
