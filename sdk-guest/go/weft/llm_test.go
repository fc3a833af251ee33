package weft

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

func TestChat(t *testing.T) {
	host := &recorder{}
	withHost(t, host)
	ctx := &Context[Untyped]{&invocation{step: &step{name: "test"}}}
	host.response, _ = codec.Append(nil, map[string]any{
		"content": "because", "finish_reason": "stop", "model": "m", "usage": map[string]any{"input_tokens": 7, "output_tokens": 3},
		"tool_calls": []any{map[string]any{"id": "1", "name": "look", "arguments": "{}"}},
	})
	got, err := ctx.LLM("llm").Chat(System("short"), User("why?"))
	if err != nil || got.Content != "because" || got.Usage != (Tokens{7, 3}) || len(got.ToolCalls) != 1 || got.ToolCalls[0] != (ToolCall{"1", "look", "{}"}) {
		t.Errorf("%+v, %v", got, err)
	}
	var parts []any
	if err := codec.Unmarshal(host.request, &parts); err != nil {
		t.Fatal(err)
	}
	payload, _ := parts[2].(map[string]any)
	messages, _ := payload["messages"].([]any)
	if len(payload) != 1 || len(messages) != 2 || messages[1].(map[string]any)["role"] != "user" || parts[1] != "chat" {
		t.Errorf("asks %v", parts)
	}
}
