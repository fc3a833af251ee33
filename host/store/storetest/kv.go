package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/limit"
)

// keeper writes to a space like its owner: it knows the contents of the space.
type keeper struct {
	*fixture
	space  kv.Space
	totals kv.Totals
	sizes  map[string]int64
}

func (f *fixture) keeper(space kv.Space) *keeper {
	return &keeper{fixture: f, space: space, sizes: map[string]int64{}}
}

// write returns the write of a text under a key. "" deletes the key.
func (k *keeper) write(key, text string) kv.Write {
	k.t.Helper()
	w := kv.Write{Space: k.space, Item: kv.Item{Key: key}}
	if old, ok := k.sizes[key]; ok {
		w.Growth -= old
		k.totals.Keys--
		delete(k.sizes, key)
	}
	if text != "" {
		var err error
		w.Item.Value, err = abi.EncodeValue(text)
		ok(k.t, "EncodeValue", err)
		w.Growth += w.Item.Size()
		k.totals.Keys++
		k.sizes[key] = w.Item.Size()
	}
	k.totals.Last++
	k.totals.Bytes += w.Growth
	w.Item.Version, w.Totals = k.totals.Last, k.totals
	return w
}

func (f *fixture) keep(writes ...kv.Write) {
	f.t.Helper()
	ok(f.t, "Append", f.Append(f.ctx, host.Batch{Epoch: f.epoch, KV: writes}))
}

// list reads all keys of a prefix by pages, each with its version.
func (k *keeper) list(prefix string, limit int) string {
	k.t.Helper()
	var all []string
	q := kv.Query{Prefix: prefix, Limit: limit, Bytes: 1 << 20}
	for {
		items, more, err := k.KVItems(k.ctx, k.space, q)
		ok(k.t, "KVItems", err)
		for _, i := range items {
			if i.Value != nil {
				k.t.Errorf("the key %s comes with its value", i.Key)
			}
			all = append(all, fmt.Sprintf("%s@%d", i.Key, i.Version))
			q.After = i.Key
		}
		if !more {
			return strings.Join(all, " ")
		}
		if len(items) == 0 {
			k.t.Fatal("an empty page, and others follow")
		}
	}
}

func testKV(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	k := f.keeper(kv.Space{Tenant: tenant, Resource: "cache"})
	other := f.keeper(kv.Space{Tenant: "other", Resource: "cache"})
	totals := func(k *keeper) {
		t.Helper()
		got, err := f.KVTotals(f.ctx, k.space)
		ok(t, "KVTotals", err)
		same(t, "totals", got, k.totals)
	}
	totals(k)
	_, err := f.KVItem(f.ctx, k.space, "a")
	missing(t, "KVItem", err)
	// As UTF-8 has it: \U0010ffff is the last rune, and "b\U0010ffffx" has the prefix b.
	f.keep(k.write("b", "1"), k.write("a", "2"), k.write("b\U0010ffffx", "3"), k.write("c", "4"), k.write("ü", "5"), k.write("b/1", "6"), other.write("a", "7"))
	totals(k)
	totals(other)
	for _, limit := range []int{1, 2, 100} {
		same(t, "all keys", k.list("", limit), "a@2 b@1 b/1@6 b\U0010ffffx@3 c@4 ü@5")
		same(t, "keys of b", k.list("b", limit), "b@1 b/1@6 b\U0010ffffx@3")
		same(t, "keys of ü", k.list("ü", limit), "ü@5")
		same(t, "keys of the other", other.list("", limit), "a@1")
		same(t, "no keys", k.list("x", limit), "")
	}
	item, err := f.KVItem(f.ctx, k.space, "a")
	ok(t, "KVItem", err)
	v, err := abi.DecodeValue(item.Value)
	ok(t, "DecodeValue", err)
	same(t, "value", v, "2")
	items, more, err := f.KVItems(f.ctx, k.space, kv.Query{After: "b", Limit: 9, Values: true, Bytes: 1})
	ok(t, "KVItems", err)
	if len(items) != 1 || !more || len(items[0].Value) == 0 {
		t.Errorf("a page of a byte has %d items, others follow: %v", len(items), more)
	}

	f.keep(k.write("b/1", "again"), k.write("a", ""), k.write("none", ""))
	same(t, "keys", k.list("", 9), "b@1 b/1@7 b\U0010ffffx@3 c@4 ü@5")
	totals(k)
	testKVAllOrNothing(f, k)

	journal, state, err := f.BytesHeld(f.ctx, tenant)
	ok(t, "BytesHeld", err)
	if want := k.totals.Bytes + limit.KeyCharge*k.totals.Keys; journal == 0 || state != want {
		t.Errorf("the tenant holds %d bytes, not %d", state, want)
	}
	for more := true; more; { // the data of a space is deleted with the tenant
		more, err = f.ClearTenant(f.ctx, tenant, 2)
		ok(t, "ClearTenant", err)
	}
	same(t, "keys", k.list("", 9), "")
	same(t, "keys of the other", other.list("", 9), "a@1")
}

// testKVAllOrNothing: writes are a part of their batch.
func testKVAllOrNothing(f *fixture, k *keeper) {
	f.t.Helper()
	before := *k
	bad := f.part("s", 1)
	bad.First, bad.Last = 7, 7
	if err := f.Append(f.ctx, host.Batch{Epoch: f.epoch, Sessions: []host.SessionBatch{bad}, KV: []kv.Write{k.write("c", "x")}}); err == nil {
		f.t.Error("a batch with a hole was taken")
	}
	for _, w := range []kv.Write{
		{Item: kv.Item{Key: "k", Version: 1}}, {Space: k.space, Item: kv.Item{Version: 1}}, {Space: k.space, Item: kv.Item{Key: "k"}},
	} {
		if err := f.Append(f.ctx, host.Batch{Epoch: f.epoch, KV: []kv.Write{k.write("c", "y"), w}}); err == nil {
			f.t.Errorf("%+v was taken", w)
		}
	}
	k.totals = before.totals
	got, err := f.KVTotals(f.ctx, k.space)
	ok(f.t, "KVTotals", err)
	same(f.t, "totals", got, k.totals)
	good := f.part("s", 1)
	ok(f.t, "Append", f.Append(f.ctx, host.Batch{Epoch: f.epoch, Sessions: []host.SessionBatch{good}, KV: []kv.Write{k.write("c", "z")}}))
	item, err := f.KVItem(f.ctx, k.space, "c")
	ok(f.t, "KVItem", err)
	same(f.t, "version", item.Version, k.totals.Last)
}

// testKVDefined: the data of a tenant's definition is deleted with the definition, and
// later writes have no effect.
func testKVDefined(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	ok(t, "PutResource", f.PutResource(f.ctx, host.ResourceRecord{Tenant: tenant, Name: "cache", Definition: []byte(`{}`), Created: 5, Updated: 5}))
	first := f.keeper(kv.Space{Tenant: tenant, Resource: "cache", Made: 5})
	file := f.keeper(kv.Space{Tenant: tenant, Resource: "cache"})
	f.keep(first.write("a", "1"), file.write("a", "2"))
	same(t, "keys", first.list("", 9)+" "+file.list("", 9), "a@1 a@1")
	ok(t, "DeleteResource", f.DeleteResource(f.ctx, tenant, "cache"))
	f.keep(first.write("b", "3"))
	same(t, "keys of one that is gone", first.list("", 9), "")
	ok(t, "PutResource", f.PutResource(f.ctx, host.ResourceRecord{Tenant: tenant, Name: "cache", Definition: []byte(`{}`), Created: 6, Updated: 6}))
	second := f.keeper(kv.Space{Tenant: tenant, Resource: "cache", Made: 6})
	f.keep(first.write("b", "4"), second.write("c", "5"))
	same(t, "keys", first.list("", 9)+second.list("", 9)+" "+file.list("", 9), "c@1 a@1")
	if _, err := f.KVItem(f.ctx, first.space, "b"); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("a key of one that is gone: %v", err)
	}
}
