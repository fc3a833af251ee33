package host

import (
	"context"

	"github.com/weftrun/weft/abi"
)

// KVSpace names what a resource of the kind kv keeps for a tenant.
type KVSpace struct {
	Tenant   string
	Resource string
	// Made is when the tenant's definition was made ([ResourceRecord.Created]), so that
	// one that is deleted and made again begins empty; 0: it is the operator's.
	Made int64
}

// KVItem is a key with what is kept under it.
type KVItem struct {
	Key string
	// Version is the number of the write that put it there: no two writes of a space
	// have the same.
	Version uint64
	Value   abi.Raw // one encoded value, not modified; nil: not asked for
}

// Size is how much of a resource's bytes the item takes.
func (i *KVItem) Size() int64 { return int64(len(i.Key) + len(i.Value)) }

// KVTotals is what a space holds in all.
type KVTotals struct {
	Last  uint64 // the newest version ever given
	Keys  int64
	Bytes int64 // of keys and encoded values
}

// KVWrite puts an item into a space, or takes it out.
type KVWrite struct {
	Space  KVSpace
	Item   KVItem   // Value nil: the key goes
	Totals KVTotals // of the space after it
	Growth int64    // of the space's bytes by it
	Keys   int      // likewise, of its keys
}

// KVQuery selects items of a space, in the order of their keys' bytes.
type KVQuery struct {
	Prefix string
	After  string // the key after which the page begins; "": the first
	Limit  int    // at least 1
	Values bool   // with the values
	// Bytes ends a page that holds as many, keys and values; at least one item is given.
	Bytes int64
}

// KVData is a space as a call sees it: with all writes that come before the call in the
// journal, durable or not, and no others. It is valid during the call.
type KVData interface {
	Get(key string) (item KVItem, found bool, err error)
	// List returns a page; more says whether others follow.
	List(q KVQuery) (items []KVItem, more bool, err error)
	Totals() KVTotals
	// Next is the version that a write of this call will have.
	Next() uint64
}

// KVAnswer is what comes of a call of a resource of the kind kv.
type KVAnswer struct {
	Value abi.Raw
	Err   *abi.Error // nil: Value holds
	// Write is what the call changes: it is made together with the answer, or not at
	// all. nil: nothing. Its Item has the key and the value.
	Write *KVItem
}

// KVStore is the part of a [Store] that keeps what resources of the kind kv hold. It is
// written by batches only; what is read is durable.
type KVStore interface {
	// KVItem reads one. ErrNotFound.
	KVItem(ctx context.Context, space KVSpace, key string) (KVItem, error)
	// KVItems reads a page; more says whether others follow.
	KVItems(ctx context.Context, space KVSpace, q KVQuery) (items []KVItem, more bool, err error)
	// KVTotals reads what a space holds in all: nothing, if it was never written.
	KVTotals(ctx context.Context, space KVSpace) (KVTotals, error)
}
