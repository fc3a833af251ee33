package weft

import "time"

// LLM is a granted resource of the kind "llm": a model that can be asked.
type LLM struct {
	inv  *invocation
	name string
}

// LLM returns the resource with the given name. The workflow declares it by
// weft.Resource{Name: name, Kind: "llm"}.
//
//	answer, err := ctx.LLM("llm").Chat(weft.User("Why is the sky blue?"))
func (inv *invocation) LLM(name string) LLM { return LLM{inv, name} }

// Message is a part of a conversation.
type Message struct {
	Role    string // "system", "user", "assistant" or "tool"
	Content string
}

// System returns a message that tells the model how to behave.
func System(text string) Message { return Message{"system", text} }

// User returns a message of the user.
func User(text string) Message { return Message{"user", text} }

// Assistant returns a message of the model.
func Assistant(text string) Message { return Message{"assistant", text} }

// ChatRequest is a request to a model. Messages is required.
type ChatRequest struct {
	Messages []Message
	Model    string `weft:",omitempty"` // "": the resource's model
	// Tools are the tools that the model may call, and ToolChoice its choice, both in the
	// format of the service.
	Tools      []any `weft:",omitempty"`
	ToolChoice any   `weft:",omitempty"`
	// Schema is a JSON Schema for the answer, which [ChatResponse.Value] then holds
	// decoded; nil: the answer is text.
	Schema      map[string]any `weft:",omitempty"`
	Temperature *float64       `weft:",omitempty"`
	MaxTokens   int            `weft:",omitempty"` // 0: the resource's or the service's
	Stop        []string       `weft:",omitempty"`
	// Stream writes the answer to the run's stream as it arrives.
	Stream  bool          `weft:",omitempty"`
	Timeout time.Duration `weft:",omitempty"` // 0: the resource's timeout
}

// ChatResponse is a model's answer.
type ChatResponse struct {
	Content      string
	Value        any    `weft:",omitempty"` // if a Schema was given
	Refusal      string `weft:",omitempty"`
	ToolCalls    []ToolCall
	FinishReason string
	Model        string
	Usage        Tokens
}

// ToolCall is a tool call that the model requests; Arguments are JSON.
type ToolCall struct {
	ID        string `weft:"id"`
	Name      string
	Arguments string
}

// Tokens is the number of tokens that an answer used.
type Tokens struct {
	InputTokens  int
	OutputTokens int
}

// Chat sends a conversation to the model and returns its answer.
func (l LLM) Chat(messages ...Message) (ChatResponse, error) {
	return l.Do(ChatRequest{Messages: messages})
}

// Do sends a request to the model. The answer is recorded: a step that is retried, or
// that continues after a crash, gets the recorded answer and does not call the model
// again. The code of an error says why there is no answer: the operator does not allow
// the call ("permission_denied"), the service is not reachable or refuses
// ("unavailable"), or the service does not answer in time ("timeout").
func (l LLM) Do(r ChatRequest) (ChatResponse, error) {
	var answer ChatResponse
	err := l.inv.Call(l.name, "chat", r, &answer)
	return answer, err
}
