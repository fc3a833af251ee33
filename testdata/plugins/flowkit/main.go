// Flowkit is a plugin of functions for tests of flows. Each has a twin of the same
// meaning in testdata/flows/peer.py.
package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

type (
	ctx = weft.Context[weft.Untyped]
	in  = weft.StepInput
	out = weft.StepOutput
)

// said is what a function works on: the content before it, or the input.
func said(i in) string {
	if i.PreviousStepContent != nil {
		return fmt.Sprint(i.PreviousStepContent)
	}
	if i.Input == nil {
		return ""
	}
	return fmt.Sprint(i.Input)
}

// adds makes a function that adds a text to what was said.
func adds(text string) func(*ctx, in) (out, error) {
	return func(_ *ctx, i in) (out, error) { return weft.Content(said(i) + text), nil }
}

func echo(_ *ctx, i in) (out, error)     { return weft.Content(i.Input), nil }
func previous(_ *ctx, i in) (out, error) { return weft.Content(i.PreviousStepContent), nil }
func wrap(_ *ctx, i in) (out, error) {
	return weft.Content(map[string]any{"said": said(i), "n": 1}), nil
}
func upper(_ *ctx, i in) (out, error) { return weft.Content(strings.ToUpper(said(i))), nil }
func stop(_ *ctx, i in) (out, error)  { return weft.StopWith("stopped at " + said(i)), nil }
func soft(*ctx, in) (out, error) {
	no := false
	return out{Content: "soft", Success: &no, Error: "it said so"}, nil
}
func fail(*ctx, in) (out, error) { return out{}, &weft.Error{Code: "boom", Message: "asked to fail"} }
func yes(*ctx, in) (out, error)  { return weft.Content(true), nil }
func no(*ctx, in) (out, error)   { return weft.Content(false), nil }
func says(_ *ctx, i in) (out, error) {
	return weft.Content(said(i) == "yes"), nil
}
func user(_ *ctx, i in) (out, error) { return weft.Content(i.AdditionalData["user_input"]), nil }
func data(_ *ctx, i in) (out, error) { return weft.Content(i.AdditionalData["key"]), nil }

// names lists the outputs before it, with their contents.
func names(_ *ctx, i in) (out, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(i.PreviousStepOutputs)) {
		all = append(all, name+"="+fmt.Sprint(i.PreviousStepOutputs[name].Content))
	}
	return weft.Content(strings.Join(all, ",")), nil
}

// pick chooses what the input says, several behind commas.
func pick(_ *ctx, i in) (out, error) {
	list := strings.Split(fmt.Sprint(i.Input), ",")
	if len(list) == 1 {
		return weft.Content(list[0]), nil
	}
	return weft.Content(list), nil
}

// pickByState chooses by the session's state.
func pickByState(c *ctx, _ in) (out, error) {
	var mode string
	if err := c.Get("mode", &mode); err != nil {
		return out{}, err
	}
	return weft.Content(mode), nil
}

func count(c *ctx, _ in) (out, error) {
	n, err := c.Increment("count", 1)
	return weft.Content(n), err
}

// remember adds what was said to a list.
func remember(c *ctx, i in) (out, error) {
	_, err := c.Append("items", said(i))
	return weft.Content(said(i)), err
}

// set puts the input, a map, into the state.
func set(c *ctx, i in) (out, error) {
	return weft.Content("set"), c.Merge("", i.Input)
}

func forget(c *ctx, _ in) (out, error) {
	_, err := c.Delete("items")
	return weft.Content("forgotten"), err
}

func recall(c *ctx, _ in) (out, error) {
	var items []string
	if err := c.Get("items", &items); err != nil {
		return out{}, err
	}
	return weft.Content(strings.Join(items, "+")), nil
}

func enough(c *ctx, _ in) (out, error) {
	var n int
	err := c.Get("count", &n)
	return weft.Content(n >= 3), err
}

// unsteady fails until it has been called three times.
func unsteady(c *ctx, _ in) (out, error) {
	n, err := c.Increment("tries", 1)
	if err == nil && n < 3 {
		err = &weft.Error{Code: "unsteady", Message: "not yet"}
	}
	return weft.Content("steady"), err
}

// many edits the state as often as the input says.
func many(c *ctx, i in) (out, error) {
	n, _ := i.Input.(int64)
	for range n {
		if _, err := c.Increment("count", 1); err != nil {
			return out{}, err
		}
	}
	return weft.Content(n), nil
}

// slow answers after the input's number of seconds.
func slow(c *ctx, i in) (out, error) {
	n, _ := i.Input.(int64)
	err := c.Sleep(time.Duration(n) * time.Second)
	return weft.Content("late"), err
}

// spin computes for ever.
func spin(*ctx, in) (out, error) {
	for n := 0; ; n++ {
		if n < 0 {
			return out{}, nil
		}
	}
}

// Handed is work that one step hands to another.
type Handed struct{ Text string }

// hand lets another step answer.
func hand(_ *ctx, i in) (Handed, error) { return Handed{said(i) + "1"}, nil }

// handTo does so by name.
func handTo(c *ctx, i in) (weft.Nothing, error) {
	return weft.Nothing{}, c.SendTo("take", Handed{said(i) + "2"})
}

func take(_ *ctx, ev Handed) (out, error) {
	if strings.HasPrefix(ev.Text, "bad") {
		return out{}, &weft.Error{Code: "boom", Message: "handed on and failed"}
	}
	return weft.Content(ev.Text + "taken"), nil
}

// silent says nothing at all.
func silent(*ctx, in) (*out, error) { return nil, nil }

func init() {
	f := weft.Function[weft.Untyped]
	weft.Define("flowkit",
		f("a", adds(letter)), f("b", adds("b")), f("c", adds("c")),
		f("echo", echo), f("previous", previous), f("wrap", wrap), f("upper", upper), f("stop", stop), f("soft", soft), f("fail", fail),
		f("yes", yes), f("no", no), f("says", says), f("data", data), f("user", user), f("names", names), f("pick", pick), f("pick_by_state", pickByState),
		f("count", count), f("remember", remember), f("set", set), f("forget", forget), f("recall", recall), f("enough", enough),
		f("unsteady", unsteady), f("many", many), f("slow", slow),
		f("spin", spin), f("stubborn", fail, weft.Retry(weft.Fixed(time.Hour), weft.Attempts(3))),
		f("alone", slow, weft.Workers(1)),
		f("atomic", count, weft.Atomic()),
		weft.Step("hand", hand), weft.Step("hand_to", handTo, weft.Emits(Handed{})), weft.Step("take", take),
		weft.Step("silent", silent))
}

func main() {}
