package weft

import "time"

// LLM is a granted resource of the kind "llm": a model that can be asked.
type LLM struct {
	inv  *invocation
	name string
}

// LLM gives the resource of that name, to ask a model. It is asked for by
// weft.Resource{Name: name, Kind: "llm"}.
//
//	answer, err := ctx.LLM("llm").Chat(weft.User("Why is the sky blue?"))
func (inv *invocation) LLM(name string) LLM { return LLM{inv, name} }

// Message is a part of a conversation.
type Message struct {
	Role    string // "system", "user", "assistant" or "tool"
	Content string
}

// System is a message that says how the model is to behave.
func System(text string) Message { return Message{"system", text} }

// User is a message of whom the model answers.
func User(text string) Message { return Message{"user", text} }

// Assistant is a message of the model itself.
func Assistant(text string) Message { return Message{"assistant", text} }

// ChatRequest is what a model is asked. Messages are needed.
type ChatRequest struct {
	Messages []Message
	Model    string `weft:",omitempty"` // "": that of the resource
	// Tools are those that the model may call, each as the service has it; ToolChoice
	// likewise.
	Tools      []any `weft:",omitempty"`
	ToolChoice any   `weft:",omitempty"`
	// Schema is a JSON Schema for the answer, which is then read by
	// [ChatResponse.Value]; nil: the answer is text.
	Schema      map[string]any `weft:",omitempty"`
	Temperature *float64       `weft:",omitempty"`
	MaxTokens   int            `weft:",omitempty"` // 0: the resource's or the service's
	Stop        []string       `weft:",omitempty"`
	// Stream has the answer go to the run's stream while it comes.
	Stream  bool          `weft:",omitempty"`
	Timeout time.Duration `weft:",omitempty"` // 0: that of the resource
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

// ToolCall is a tool that the model wants called; Arguments are JSON.
type ToolCall struct {
	ID        string `weft:"id"`
	Name      string
	Arguments string
}

// Tokens is what an answer has used.
type Tokens struct {
	InputTokens  int
	OutputTokens int
}

// Chat asks the model to go on with a conversation.
func (l LLM) Chat(messages ...Message) (ChatResponse, error) {
	return l.Do(ChatRequest{Messages: messages})
}

// Do asks the model. The answer is kept: a step that is tried again, or goes on after
// a crash, gets it without the model being asked twice. The error says why there is
// none: the operator does not allow it (the code "permission_denied"), the service is
// not there or refuses ("unavailable"), does not answer in time ("timeout").
func (l LLM) Do(r ChatRequest) (ChatResponse, error) {
	var answer ChatResponse
	err := l.inv.Call(l.name, "chat", r, &answer)
	return answer, err
}
