package host

import (
	"context"

	"github.com/weftrun/weft/abi"
)

// KVSpace names the data that a resource of kind kv keeps for a tenant.
type KVSpace struct {
	Tenant   string
	Resource string
	// Made is when the tenant created the definition ([ResourceRecord.Created]), so that
	// a definition that is deleted and created again begins empty; 0: the operator's
	// definition.
	Made int64
}

// KVItem is a key with its value.
type KVItem struct {
	Key string
	// Version is the number of the write that stored the value. It is unique within the
	// space.
	Version uint64
	Value   abi.Raw // one encoded value, not modified; nil: not requested
}

// Size returns how many of a resource's bytes the item uses.
func (i *KVItem) Size() int64 { return int64(len(i.Key) + len(i.Value)) }

// KVTotals are the totals of a space.
type KVTotals struct {
	Last  uint64 // the newest version so far
	Keys  int64
	Bytes int64 // of keys and encoded values
}

// KVWrite stores an item in a space, or deletes it.
type KVWrite struct {
	Space  KVSpace
	Item   KVItem   // Value nil: delete the key
	Totals KVTotals // of the space after the write
	Growth int64    // change of the space's bytes
	Keys   int      // change of the space's keys
}

// KVQuery selects items of a space, in the order of their keys' bytes.
type KVQuery struct {
	Prefix string
	After  string // the key after which the page begins; "": the first
	Limit  int    // at least 1
	Values bool   // return the values
	// Bytes ends a page after this many bytes of keys and values; a page has at least one
	// item.
	Bytes int64
}

// KVData is a space as a call sees it: with all writes that precede the call in the
// journal, durable or not, and no others. It is valid during the call.
type KVData interface {
	Get(key string) (item KVItem, found bool, err error)
	// List returns a page; more says whether others follow.
	List(q KVQuery) (items []KVItem, more bool, err error)
	Totals() KVTotals
	// Next returns the version that a write of this call will have.
	Next() uint64
}

// KVAnswer is the answer to a call of a resource of kind kv.
type KVAnswer struct {
	Value abi.Raw
	Err   *abi.Error // nil: Value is the answer
	// Write is the change that the call makes, together with the answer or not at all.
	// nil: no change. Its Item has the key and the value.
	Write *KVItem
}

// KVStore is the part of a [Store] that keeps the data of resources of kind kv. Only
// batches write it; reads return durable data.
type KVStore interface {
	// KVItem reads an item. ErrNotFound.
	KVItem(ctx context.Context, space KVSpace, key string) (KVItem, error)
	// KVItems reads a page; more says whether others follow.
	KVItems(ctx context.Context, space KVSpace, q KVQuery) (items []KVItem, more bool, err error)
	// KVTotals reads the totals of a space; zero if it was never written.
	KVTotals(ctx context.Context, space KVSpace) (KVTotals, error)
}
