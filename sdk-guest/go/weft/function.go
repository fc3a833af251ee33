package weft

// StepInput is what a flow hands to a function: the run's input, and what the
// nodes before it came to.
type StepInput struct {
	Input               Value                 `weft:",omitempty"`
	PreviousStepContent Value                 `weft:",omitempty"`
	PreviousStepOutputs map[string]StepOutput `weft:",omitempty"`
	AdditionalData      map[string]any        `weft:",omitempty"`

	// StepChoices are the names that a router's selector may choose.
	StepChoices []string `weft:",omitempty"`
	// CurrentIteration, from 1, and MaxIterations are those of the loop whose end
	// condition is asked for.
	CurrentIteration int `weft:",omitempty"`
	MaxIterations    int `weft:",omitempty"`
}

// Text is the input as text, "" if it is none.
func (in *StepInput) Text() string {
	text, _ := in.Input.(string)
	return text
}

// PreviousText is the content of the node before as text, "" if it is none.
func (in *StepInput) PreviousText() string {
	text, _ := in.PreviousStepContent.(string)
	return text
}

// StepOutput is what a function gives back to its flow: content of any kind; a bool
// if it decides a condition or the end of a loop, a name or a list of names if it
// selects for a router.
type StepOutput struct {
	StepName string `weft:",omitempty"` // of a node before; the flow sets it
	Content  any
	// Success says whether it succeeded; nil: if Error is empty. A function that
	// returns an error has failed, and its node with it; one that returns this has
	// only said so, and the flow goes on.
	Success *bool  `weft:",omitempty"`
	Error   string `weft:",omitempty"`
	// Stop ends the whole flow, successfully, with this as its last output.
	Stop bool `weft:",omitempty"`
	// Steps are the outputs within that of a node that has others in it.
	Steps []any `weft:",omitempty"`
}

// OK reports whether what gave the output succeeded.
func (out *StepOutput) OK() bool {
	if out.Success != nil {
		return *out.Success
	}
	return out.Error == ""
}

// Text is the content as text, "" if it is none.
func (out *StepOutput) Text() string {
	text, _ := out.Content.(string)
	return text
}

// Content gives an output with a content.
func Content(content any) StepOutput { return StepOutput{Content: content} }

// StopWith gives an output that ends the flow with a content.
func StopWith(content any) StepOutput { return StepOutput{Content: content, Stop: true} }

// Function makes a function of the plugin one that flows can call, as
// PLUGIN.NAME. The plugin is a [Part]: the flow is the workflow. Options are those
// of a [Step].
//
//	func shout(ctx *weft.Context[weft.Untyped], in weft.StepInput) (weft.StepOutput, error) {
//		return weft.Content(strings.ToUpper(in.Text())), nil
//	}
func Function[S any](name string, fn func(ctx *Context[S], in StepInput) (StepOutput, error), options ...StepOption) Option {
	return function{Step(name, fn, options...)}
}

// function is a step of a plugin that is a part.
type function struct{ Option }

func (f function) applyWorkflow(w *workflow) error {
	w.part = true
	return f.Option.applyWorkflow(w)
}
