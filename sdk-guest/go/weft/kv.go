package weft

import "github.com/weftrun/weft/sdk-guest/go/internal/codec"

// KV is a granted resource of the kind "kv": values by key that all runs of the tenant
// share, independent of their sessions.
//
// A write happens exactly once, and is committed together with the step's own progress.
// After a crash, or in the step's next attempt, an answered call is not made again. Calls
// therefore need no idempotency key. A fork or a failed attempt does not undo writes.
type KV struct {
	inv  *invocation
	name string
}

// KV returns the resource with the given name. The workflow declares it by
// weft.Resource{Name: name, Kind: "kv"}.
//
//	var rate float64
//	version, err := ctx.KV("cache").Get("eur/usd", &rate)
//	if err == nil && version == 0 { // the key has no value
func (inv *invocation) KV(name string) KV { return KV{inv, name} }

// kvEntry is a key's value and version.
type kvEntry struct {
	Value   codec.Raw
	Version int64
}

// Get reads the value of a key to *v, and returns its version. If the key has no value,
// the version is 0 and *v is unchanged.
func (kv KV) Get(key string, v any) (version int64, err error) {
	var entry *kvEntry
	err = kv.inv.Call(kv.name, "get", map[string]any{"key": key}, &entry)
	if err != nil || entry == nil {
		return 0, err
	}
	if err := codec.Unmarshal(entry.Value, v); err != nil {
		return 0, misuse("call " + quote(kv.name) + ": the value of " + quote(key) + ": " + err.Error())
	}
	return entry.Version, nil
}

// Set sets the value of a key to any value that an event may hold, and returns the new
// version. Versions are unique within the resource.
func (kv KV) Set(key string, v any) (version int64, err error) {
	return kv.set(map[string]any{"key": key, "value": v})
}

// SetIf sets the value of a key if its version is still the given one; version 0 means
// that the key has no value. Otherwise the error has the code "conflict": read again and
// decide anew, as [UpdateKey] does. A step that fails with this error reads anew when it
// is retried.
func (kv KV) SetIf(key string, version int64, v any) (next int64, err error) {
	return kv.set(map[string]any{"key": key, "value": v, "if_version": version})
}

func (kv KV) set(payload map[string]any) (int64, error) {
	var answer struct{ Version int64 }
	err := kv.inv.Call(kv.name, "set", payload, &answer)
	return answer.Version, err
}

// Increment adds to the whole number of a key and returns the sum. A key without a value
// counts as 0.
func (kv KV) Increment(key string, by int64) (sum int64, err error) {
	var answer struct{ Value int64 }
	err = kv.inv.Call(kv.name, "increment", map[string]any{"key": key, "by": by}, &answer)
	return answer.Value, err
}

// Delete removes a key, and reports whether it had a value.
func (kv KV) Delete(key string) (deleted bool, err error) {
	return kv.remove(map[string]any{"key": key})
}

// DeleteIf removes a key if its version is still the given one; otherwise the error has
// the code "conflict".
func (kv KV) DeleteIf(key string, version int64) error {
	_, err := kv.remove(map[string]any{"key": key, "if_version": version})
	return err
}

func (kv KV) remove(payload map[string]any) (bool, error) {
	var answer struct{ Deleted bool }
	err := kv.inv.Call(kv.name, "delete", payload, &answer)
	return answer.Deleted, err
}

// KVQuery selects keys.
type KVQuery struct {
	Prefix string `weft:",omitempty"`
	After  string `weft:",omitempty"` // the page begins after this key: Next of the previous page
	Limit  int    `weft:",omitempty"` // of a page, at most 1000; 0: 100
	Values bool   `weft:",omitempty"` // include the values
}

// KVItem is a key, with its value if the query asked for values.
type KVItem struct {
	Key     string
	Version int64
	Value   any `weft:",omitempty"`
}

// KVPage is a page of keys, in byte order.
type KVPage struct {
	Items []KVItem
	// Next is the query's After for the next page; "" at the end.
	Next string `weft:",omitempty"`
}

// List returns a page of keys.
func (kv KV) List(q KVQuery) (KVPage, error) {
	var page KVPage
	err := kv.inv.Call(kv.name, "list", q, &page)
	return page, err
}

// maxUpdates bounds the attempts of UpdateKey, so that a step ends whatever other runs
// do.
const maxUpdates = 100

// UpdateKey changes the value of a key without interference from others, and returns the
// new value. change receives the present value, or the zero value, and is called again if
// another run changed the key first. If change returns an error, nothing is written.
//
//	stock, err := weft.UpdateKey(ctx.KV("shop"), "tea", func(s *Stock) error {
//		s.Left -= ev.Pounds
//		return nil
//	})
func UpdateKey[T any](kv KV, key string, change func(v *T) error) (T, error) {
	for tries := 1; ; tries++ {
		var v, none T
		version, err := kv.Get(key, &v)
		if err != nil {
			return none, err
		}
		if err := change(&v); err != nil {
			return none, err
		}
		_, err = kv.SetIf(key, version, v)
		if err == nil {
			return v, nil
		}
		if CodeOf(err) != CodeConflict || tries == maxUpdates {
			return none, err
		}
	}
}
