// Approval asks two people, one after the other, in one step that reads from top
// to bottom.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says what needs approval.
type StartEvent struct {
	weft.Start
	Item string `doc:"what is to be approved"`
}

// InputRequiredEvent asks. Every client that follows the run sees it.
type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

// HumanResponseEvent is an answer.
type HumanResponseEvent struct {
	weft.HumanResponse
	Role     string `doc:"manager or finance"`
	Approved bool
}

// State belongs to the session.
type State struct {
	Calls int `default:"0" doc:"how often somebody's approval was asked for"`
}

// Outcome is the result.
type Outcome struct {
	Approved bool     `weft:"approved"`
	By       []string `weft:"by"`
	Calls    int      `weft:"calls"`
}

var roles = []string{"manager", "finance"}

// approve runs again from its start after each answer, but does nothing twice: earlier
// calls, including the edit, return their recorded answers.
func approve(ctx *weft.Context[State], ev StartEvent) (weft.Stop, error) {
	out := Outcome{Approved: true, By: roles}
	err := ctx.Edit(func(s *State) error {
		s.Calls++
		out.Calls = s.Calls
		return nil
	})
	if err != nil {
		return weft.Stop{}, err
	}
	for _, role := range roles {
		answer, err := weft.Wait[HumanResponseEvent](ctx,
			weft.For(role),
			weft.Ask(InputRequiredEvent{Prefix: role + ", approve " + ev.Item + "?"}),
			weft.Where("role", role))
		if err != nil {
			return weft.Stop{}, err
		}
		out.Approved = out.Approved && answer.Approved
	}
	return weft.Result(out), nil
}

func init() {
	weft.Define("approval",
		weft.Timeout(0), // people need time to answer
		weft.Step("approve", approve,
			weft.Waits(HumanResponseEvent{}),
			weft.Streams(InputRequiredEvent{})))
}

func main() {}
