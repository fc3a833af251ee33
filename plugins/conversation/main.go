// Conversation talks with a model, and keeps the conversation in the session.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent is the next thing that the user says.
type StartEvent struct {
	weft.Start
	Message string
}

// AskEvent carries the message to the model.
type AskEvent struct{ Message string }

// AnswerEvent is a turn: what was said, and the answer.
type AnswerEvent struct{ Message, Answer string }

// State is the conversation so far.
type State struct {
	Messages  []weft.Message
	TurnCount int `default:"0"`
}

// Response is the run's result.
type Response struct {
	Response     string
	TurnCount    int
	MessageCount int
}

func listen(_ *weft.Context[State], ev StartEvent) (AskEvent, error) {
	if ev.Message == "" {
		return AskEvent{}, weft.Errorf("nothing_said", "message is empty").Final()
	}
	return AskEvent{ev.Message}, nil
}

func ask(ctx *weft.Context[State], ev AskEvent) (AnswerEvent, error) {
	var said []weft.Message
	if err := ctx.GetOr("messages", &said, said); err != nil {
		return AnswerEvent{}, err
	}
	messages := append([]weft.Message{weft.System("You are a helpful assistant.")}, said...)
	answer, err := ctx.LLM("llm").Do(weft.ChatRequest{Messages: append(messages, weft.User(ev.Message)), Stream: true})
	return AnswerEvent{ev.Message, answer.Content}, err
}

func remember(ctx *weft.Context[State], ev AnswerEvent) (weft.Stop, error) {
	out := Response{Response: ev.Answer}
	err := ctx.Edit(func(s *State) error { // both sides of the turn, or neither
		s.Messages = append(s.Messages, weft.User(ev.Message), weft.Assistant(ev.Answer))
		s.TurnCount++
		out.TurnCount, out.MessageCount = s.TurnCount, len(s.Messages)
		return nil
	})
	return weft.Result(out), err
}

func init() {
	weft.Define("conversation",
		weft.Resource{Name: "llm", Kind: "llm", Doc: "the model that answers"},
		weft.Step("listen", listen),
		weft.Step("ask", ask),
		weft.Step("remember", remember))
}

func main() {}
