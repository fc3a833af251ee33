// Shout-part is the second of two parts of a workflow for tests: it makes a
// greeting loud, and asks before if it is configured to. The tags second and
// broken build another version of it, and one that no greeting reaches.
package main

import (
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// HumanResponseEvent says that it may be loud.
type HumanResponseEvent struct {
	weft.HumanResponse
	Role     string
	Approved bool
}

// InputRequiredEvent asks for that.
type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

// Config is what the step can be configured with.
type Config struct {
	Mark string `default:"!"`
	Ask  bool   `default:"false"`
}

func shout(ctx *weft.Context[weft.Untyped], text string) (weft.Stop, error) {
	var c Config
	if err := ctx.Config(&c); err != nil {
		return weft.Stop{}, err
	}
	if c.Ask {
		answer, err := weft.Wait[HumanResponseEvent](ctx, weft.For("neighbour"),
			weft.Ask(InputRequiredEvent{Prefix: "neighbour, approve noise?"}))
		if err != nil || !answer.Approved {
			return weft.Result("silence"), err
		}
	}
	return weft.Result(strings.ToUpper(text) + c.Mark + version), nil
}

// settings are those of the step in all versions.
var settings = []weft.StepOption{weft.Waits(HumanResponseEvent{}), weft.Streams(InputRequiredEvent{})}

func main() {}
