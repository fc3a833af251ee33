// Package kv has the words for the data that resources of kind kv keep.
//
// It does not depend on how the data is stored, or who may change it.
package kv

import (
	"context"

	"github.com/weftrun/weft/abi"
)

// Space names the data that a resource of kind kv keeps for a tenant.
type Space struct {
	Tenant   string
	Resource string
	// Made is when the tenant created the definition (host.ResourceRecord.Created), so that
	// a definition that is deleted and created again begins empty; 0: the operator's
	// definition.
	Made int64
}

// Item is a key with its value.
type Item struct {
	Key string
	// Version is the number of the write that stored the value. It is unique within the
	// space.
	Version uint64
	Value   abi.Raw // one encoded value, not modified; nil: not requested
}

// Size returns how many of a resource's bytes the item uses.
func (i *Item) Size() int64 { return int64(len(i.Key) + len(i.Value)) }

// Totals are the totals of a space.
type Totals struct {
	Last  uint64 // the newest version so far
	Keys  int64
	Bytes int64 // of keys and encoded values
}

// Write stores an item in a space, or deletes it.
type Write struct {
	Space  Space
	Item   Item   // Value nil: delete the key
	Totals Totals // of the space after the write
	Growth int64  // change of the space's bytes
	Keys   int    // change of the space's keys
}

// Query selects items of a space, in the order of their keys' bytes.
type Query struct {
	Prefix string
	After  string // the key after which the page begins; "": the first
	Limit  int    // at least 1
	Values bool   // return the values
	// Bytes ends a page after this many bytes of keys and values; a page has at least one
	// item.
	Bytes int64
}

// Data is a space as a call sees it: with all writes that precede the call in the
// journal, durable or not, and no others. It is valid during the call.
type Data interface {
	Get(key string) (item Item, found bool, err error)
	// List returns a page; more says whether others follow.
	List(q Query) (items []Item, more bool, err error)
	Totals() Totals
	// Next returns the version that a write of this call will have.
	Next() uint64
}

// Answer is the answer to a call of a resource of kind kv.
type Answer struct {
	Value abi.Raw
	Err   *abi.Error // nil: Value is the answer
	// Write is the change that the call makes, together with the answer or not at all.
	// nil: no change. Its Item has the key and the value.
	Write *Item
}

// Store is the part of a host.Store that keeps the data of resources of kind kv. Only
// batches write it; reads return durable data.
type Store interface {
	// KVItem reads an item. ErrNotFound.
	KVItem(ctx context.Context, space Space, key string) (Item, error)
	// KVItems reads a page; more says whether others follow.
	KVItems(ctx context.Context, space Space, q Query) (items []Item, more bool, err error)
	// KVTotals reads the totals of a space; zero if it was never written.
	KVTotals(ctx context.Context, space Space) (Totals, error)
}

// Page is a page of the data that a resource keeps.
type Page struct {
	Items  []Item
	More   bool // others follow
	Totals Totals
}
