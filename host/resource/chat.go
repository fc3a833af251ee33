package resource

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
)

// chat is a request of the method chat.
type chat struct {
	model   string
	body    []byte // of the request
	stream  bool
	schema  bool          // the answer's content must be JSON
	timeout time.Duration // 0: the resource's
}

// maxMessages bounds the messages, and the tools, of a call.
const maxMessages = 10_000

// passed are the fields of a payload that are copied to the request unchanged.
var passed = map[string]bool{
	"messages": true, "tools": true, "tool_choice": true, "temperature": true, "top_p": true, "max_tokens": true, "stop": true, "seed": true, "model": true,
}

const chatForm = "{messages, model?, tools?, tool_choice?, schema?, temperature?, top_p?, max_tokens?, stop?, seed?, stream?, timeout?}"

// decodeChat reads a payload.
func (k *llmKind) decodeChat(payload abi.Raw) (*chat, error) {
	v, err := abi.DecodeValue(payload)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the payload must be a map: %s", chatForm)
	}
	c := &chat{model: k.settings.model}
	body := map[string]any{}
	for name, v := range m {
		if v == nil {
			continue
		}
		if err := c.field(body, name, v); err != nil {
			return nil, err
		}
	}
	messages, _ := body["messages"].([]any)
	if len(messages) == 0 || len(messages) > maxMessages {
		return nil, fmt.Errorf("messages must be a list of 1 to %d", maxMessages)
	}
	body["model"] = c.model
	if most := k.settings.maxTokens; most > 0 {
		if n, ok := body["max_tokens"].(int64); !ok || n > int64(most) || n < 1 {
			body["max_tokens"] = most
		}
	}
	if c.stream {
		body["stream"] = true
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	if c.body, err = json.Marshal(body); err != nil {
		return nil, fmt.Errorf("the payload is not JSON: %w", err)
	}
	return c, nil
}

func (c *chat) field(body map[string]any, name string, v any) (err error) {
	var ok bool
	switch name {
	case "model":
		if c.model, ok = v.(string); !ok {
			return fmt.Errorf("model must be a text")
		}
	case "messages":
		list, _ := v.([]any)
		for i := range list {
			if m, ok := list[i].(map[string]any); !ok || m["role"] == nil {
				return fmt.Errorf("messages[%d] must be a map with a role", i)
			}
		}
		body[name] = v
	case "stream":
		if c.stream, ok = v.(bool); !ok {
			return fmt.Errorf("stream must be true or false")
		}
	case "schema":
		if _, ok := v.(map[string]any); !ok {
			return fmt.Errorf("schema must be a JSON Schema")
		}
		c.schema = true
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": v}}
	case "timeout":
		n, ok := v.(int64)
		if !ok || n <= 0 {
			return fmt.Errorf("timeout must be a number of nanoseconds above 0")
		}
		c.timeout = time.Duration(n)
	default:
		if !passed[name] {
			return fmt.Errorf("the payload has the unknown name %q: %s", clip(name), chatForm)
		}
		body[name] = v
	}
	return nil
}

// wireAnswer is an answer, or a part of a streamed answer, in the format of the services.
// It has only the fields that are used.
type wireAnswer struct {
	Model   string `json:"model"`
	Choices []struct {
		Message      wireMessage `json:"message"`
		Delta        wireMessage `json:"delta"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Input  uint64 `json:"prompt_tokens"`
		Output uint64 `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type wireMessage struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	ToolCalls []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// completion is an answer for the guest.
type completion struct {
	content       string
	refusal       string
	tools         []toolCall
	finish, model string
	input, output uint64 // tokens
}

type toolCall struct{ id, name, arguments string }

func (a *wireAnswer) completion() *completion {
	m := &a.Choices[0].Message
	c := &completion{content: m.Content, refusal: m.Refusal, finish: a.Choices[0].FinishReason, model: a.Model}
	for _, t := range m.ToolCalls {
		c.tools = append(c.tools, toolCall{t.ID, t.Function.Name, t.Function.Arguments})
	}
	c.use(a)
	return c
}

func (c *completion) use(a *wireAnswer) {
	if a.Usage != nil {
		c.input, c.output = a.Usage.Input, a.Usage.Output
	}
}

// encode returns the answer for the guest: {content, value?, tool_calls, finish_reason,
// model, usage: {input_tokens, output_tokens}, refusal?}.
func (c *completion) encode(asked *chat) (abi.Raw, *abi.Error) {
	tools := make([]any, len(c.tools))
	for i, t := range c.tools {
		tools[i] = map[string]any{"id": valid(t.id), "name": valid(t.name), "arguments": valid(t.arguments)}
	}
	out := map[string]any{
		"content": valid(c.content), "tool_calls": tools, "finish_reason": valid(c.finish), "model": valid(c.model),
		"usage": map[string]any{"input_tokens": int64(c.input & maxCount), "output_tokens": int64(c.output & maxCount)},
	}
	if c.refusal != "" {
		out["refusal"] = valid(c.refusal)
	}
	if asked.schema && c.refusal == "" && len(tools) == 0 {
		raw, err := abi.FromJSON([]byte(c.content))
		if err != nil {
			return nil, &abi.Error{Code: abi.StatusInvalidMessage.Code(), Message: "the model was asked for JSON and answers something else: " + clip(c.content)}
		}
		v, err := abi.DecodeValue(raw)
		if err != nil {
			return nil, &abi.Error{Code: abi.StatusInvalidMessage.Code(), Message: "the model's JSON cannot be read: " + err.Error()}
		}
		out["value"] = v
	}
	raw, err := abi.EncodeValue(out)
	if err != nil {
		return nil, final(abi.StatusInvalidMessage, "the answer cannot be encoded: %s", err)
	}
	return raw, nil
}

// maxCount bounds a service's counts, so that sums fit an int64.
const maxCount = 1<<53 - 1

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// tokensOf returns the tokens that an answer of the kind llm reports as used, and 0 for
// any other answer.
func tokensOf(answer abi.Raw) (input, output uint64) {
	v, err := abi.DecodeValue(answer)
	if err != nil {
		return 0, 0
	}
	m, _ := v.(map[string]any)
	usage, _ := m["usage"].(map[string]any)
	in, _ := usage["input_tokens"].(int64)
	out, _ := usage["output_tokens"].(int64)
	return uint64(max(in, 0)), uint64(max(out, 0))
}
