package weft

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

func TestCall(t *testing.T) {
	host := &recorder{}
	withHost(t, host)
	ctx := &Context[Untyped]{&invocation{step: &step{name: "test"}}}
	host.response, _ = codec.Append(nil, map[string]any{
		"status": 200, "body": []byte("hello"), "headers": map[string]any{"content-type": []any{"text/plain"}},
	})
	got, err := ctx.HTTP("crm").Get("things")
	if err != nil || got.Status != 200 || string(got.Body) != "hello" || got.Header("Content-Type") != "text/plain" || got.Header("x") != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for where, want := range map[string]string{"https://a/": "url", "http://a/": "url", "things": "path"} {
		_, _ = ctx.HTTP("crm").Get(where)
		var parts []any
		if err := codec.Unmarshal(host.request, &parts); err != nil {
			t.Fatal(err)
		}
		if payload, _ := parts[2].(map[string]any); payload[want] != where || len(payload) != 1 {
			t.Errorf("Get(%q) asks %v", where, parts)
		}
	}
	var number int
	if err := ctx.Call("crm", "m", nil, &number); CodeOf(err) == "" {
		t.Error("a map is read as a number")
	}
	if err := ctx.Call("crm", "m", func() {}, nil); err == nil {
		t.Error("a function is sent")
	}
}
