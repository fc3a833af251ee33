package wefttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	kvkind "github.com/weftrun/weft/host/resource"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Values holds the values of a resource of the kind "kv" in memory. Sessions that use the
// same Values share them. The zero value is empty. The methods may be called from any
// goroutine.
type Values struct {
	mu    sync.Mutex // guards the fields below
	last  uint64
	items map[string]kv.Item
}

// KV grants a resource of the kind "kv" to the session, with the limits of a definition
// without settings. The server's own code answers the calls.
//
//	var shelf wefttest.Values
//	run, err := wefttest.NewSession(wefttest.KV("shelf", &shelf)).Run(StartEvent{})
func KV(name string, values *Values) Option {
	return func(s *Session) {
		s.world.kept[name] = true
		s.world.resources[name] = values.call
	}
}

// Set sets the value of a key, as a step would.
func (v *Values) Set(key string, value any) error {
	raw, err := encodeValue(map[string]any{"key": key, "value": value})
	if err == nil {
		_, err = v.call(kvkind.MethodSet, raw)
	}
	return err
}

// Get reads the value of a key to *value, and reports whether the key has a value.
func (v *Values) Get(key string, value any) (found bool, err error) {
	v.mu.Lock()
	item, found := v.items[key]
	v.mu.Unlock()
	if !found {
		return false, nil
	}
	if err := codec.Unmarshal(item.Value, value); err != nil {
		return true, fmt.Errorf("the value of %q: %w", key, err)
	}
	return true, nil
}

// Keys lists the keys, in order.
func (v *Values) Keys() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.items))
}

// call answers a call, and performs its write.
func (v *Values) call(method string, payload abi.Raw) (any, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	answer := kvkind.OperateKV(host.ResourceCall{Method: method, Payload: payload}, kvData{v})
	if answer.Err != nil {
		failure := &Failure{Code: answer.Err.Code, Message: answer.Err.Message}
		if answer.Err.Retryable != nil {
			failure.Fields = map[string]any{"retryable": *answer.Err.Retryable}
		}
		return nil, failure
	}
	if w := answer.Write; w != nil {
		v.last++
		if v.items == nil {
			v.items = map[string]kv.Item{}
		}
		v.items[w.Key] = kv.Item{Key: w.Key, Version: v.last, Value: w.Value}
		if w.Value == nil {
			delete(v.items, w.Key)
		}
	}
	return codec.Raw(answer.Value), nil
}

// kvData presents the values to a call; it implements kv.Data.
type kvData struct{ *Values }

func (d kvData) Get(key string) (kv.Item, bool, error) {
	item, ok := d.items[key]
	return item, ok, nil
}

func (d kvData) List(q kv.Query) (items []kv.Item, more bool, err error) {
	var size int64
	for _, key := range slices.Sorted(maps.Keys(d.items)) {
		if key <= q.After || !strings.HasPrefix(key, q.Prefix) {
			continue
		}
		if len(items) >= q.Limit || len(items) > 0 && size >= q.Bytes {
			return items, true, nil
		}
		item := d.items[key]
		if !q.Values {
			item.Value = nil
		}
		items = append(items, item)
		size += item.Size()
	}
	return items, false, nil
}

func (d kvData) Totals() kv.Totals {
	t := kv.Totals{Last: d.last, Keys: int64(len(d.items))}
	for _, item := range d.items {
		t.Bytes += item.Size()
	}
	return t
}

func (d kvData) Next() uint64 { return d.last + 1 }

// modeOf returns how a method of a resource is called. A method that only reads does not
// keep an answer that a write has made stale.
func (w *world) modeOf(name, method string) host.ResourceMode {
	if w.kept[name] && (method == kvkind.MethodGet || method == kvkind.MethodList) {
		return host.ResourceReadOnly
	}
	return host.ResourceRepeat
}
