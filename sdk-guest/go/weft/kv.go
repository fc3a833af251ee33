package weft

import "github.com/weftrun/weft/sdk-guest/go/internal/codec"

// KV is a granted resource of the kind "kv": values by key that all runs of the tenant
// share, beyond their sessions.
//
// What is written is there once, together with the step's own progress: a call that was
// answered is not made again, after a crash or by the next attempt of the step, and
// needs no key. A fork, or an attempt that fails, takes nothing back.
type KV struct {
	inv  *invocation
	name string
}

// KV gives the resource of that name. It is asked for by
// weft.Resource{Name: name, Kind: "kv"}.
//
//	var rate float64
//	version, err := ctx.KV("cache").Get("eur/usd", &rate)
//	if err == nil && version == 0 { // nobody has put it there
func (inv *invocation) KV(name string) KV { return KV{inv, name} }

// kvEntry is what is under a key.
type kvEntry struct {
	Value   codec.Raw
	Version int64
}

// Get reads what is under a key to *v, and gives its version; 0: there is nothing, and
// *v is left as it is.
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

// Set puts a value, any that an event may hold, under a key, and gives its version: no
// other value of the resource has or had it.
func (kv KV) Set(key string, v any) (version int64, err error) {
	return kv.set(map[string]any{"key": key, "value": v})
}

// SetIf puts a value under a key that has this version still; 0: that is not there.
// Else the error has the code "conflict": read again and decide anew, as [UpdateKey]
// does. A step that fails of it reads anew when it is tried again.
func (kv KV) SetIf(key string, version int64, v any) (next int64, err error) {
	return kv.set(map[string]any{"key": key, "value": v, "if_version": version})
}

func (kv KV) set(payload map[string]any) (int64, error) {
	var answer struct{ Version int64 }
	err := kv.inv.Call(kv.name, "set", payload, &answer)
	return answer.Version, err
}

// Increment adds to the whole number under a key, of which none counts as 0, and gives
// the sum.
func (kv KV) Increment(key string, by int64) (sum int64, err error) {
	var answer struct{ Value int64 }
	err = kv.inv.Call(kv.name, "increment", map[string]any{"key": key, "by": by}, &answer)
	return answer.Value, err
}

// Delete takes a key out, and says whether it was there.
func (kv KV) Delete(key string) (deleted bool, err error) {
	return kv.remove(map[string]any{"key": key})
}

// DeleteIf takes a key out that has this version still; else the error has the code
// "conflict".
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
	After  string `weft:",omitempty"` // the key behind which to go on: Next of the page before
	Limit  int    `weft:",omitempty"` // of a page, at most 1000; 0: 100
	Values bool   `weft:",omitempty"` // with the values
}

// KVItem is a key, with its value if that was asked for.
type KVItem struct {
	Key     string
	Version int64
	Value   any `weft:",omitempty"`
}

// KVPage is some keys, in the order of their bytes.
type KVPage struct {
	Items []KVItem
	// Next is where to go on, "" at the end.
	Next string `weft:",omitempty"`
}

// List gives a page of the keys.
func (kv KV) List(q KVQuery) (KVPage, error) {
	var page KVPage
	err := kv.inv.Call(kv.name, "list", q, &page)
	return page, err
}

// maxUpdates is how often UpdateKey tries, so that a step ends whatever others do.
const maxUpdates = 100

// UpdateKey changes the value under a key as if alone, and gives what it is then: change
// gets what is there, or the zero value, and is called again if somebody else was first.
// An error of it changes nothing.
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
