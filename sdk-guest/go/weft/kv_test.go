package weft

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

func TestKV(t *testing.T) {
	host := &recorder{}
	withHost(t, host)
	ctx := &Context[Untyped]{&invocation{step: &step{name: "test"}}}
	kv := ctx.KV("cache")
	asked := func(method string, payload map[string]any) {
		t.Helper()
		var parts []any
		if err := codec.Unmarshal(host.request, &parts); err != nil {
			t.Fatal(err)
		}
		got, _ := parts[2].(map[string]any)
		if parts[0] != "cache" || parts[1] != method || len(got) != len(payload) {
			t.Errorf("asks %v, want %s %v", parts, method, payload)
		}
		for name, v := range payload {
			if got[name] != v {
				t.Errorf("asks %v, want %s %v", parts, method, payload)
			}
		}
	}
	answer := func(v any) { host.response, _ = codec.Append(nil, v) }

	var n int64
	answer(map[string]any{"value": 7, "version": 12})
	if version, err := kv.Get("k", &n); err != nil || version != 12 || n != 7 {
		t.Errorf("get: %d of version %d, %v", n, version, err)
	}
	asked("get", map[string]any{"key": "k"})
	answer(nil)
	if version, err := kv.Get("k", &n); err != nil || version != 0 || n != 7 {
		t.Errorf("get of none: %d of version %d, %v", n, version, err)
	}
	answer(map[string]any{"version": 13})
	if version, err := kv.SetIf("k", 12, "v"); err != nil || version != 13 {
		t.Errorf("set: version %d, %v", version, err)
	}
	asked("set", map[string]any{"key": "k", "value": "v", "if_version": int64(12)})
	answer(map[string]any{"version": 14, "value": 8})
	if sum, err := kv.Increment("k", 1); err != nil || sum != 8 {
		t.Errorf("increment: %d, %v", sum, err)
	}
	asked("increment", map[string]any{"key": "k", "by": int64(1)})
	answer(map[string]any{"deleted": true})
	if deleted, err := kv.Delete("k"); err != nil || !deleted {
		t.Errorf("delete: %v, %v", deleted, err)
	}
	asked("delete", map[string]any{"key": "k"})
	answer(map[string]any{"items": []any{map[string]any{"key": "a", "version": 1, "value": "x"}}, "next": "a"})
	page, err := kv.List(KVQuery{Prefix: "a", Values: true})
	if err != nil || len(page.Items) != 1 || page.Items[0] != (KVItem{"a", 1, "x"}) || page.Next != "a" {
		t.Errorf("list: %+v, %v", page, err)
	}
	asked("list", map[string]any{"prefix": "a", "values": true})
}
