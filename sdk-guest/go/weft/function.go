package weft

// StepInput is what a flow passes to a function: the run's input and the outputs of
// earlier nodes.
type StepInput struct {
	Input               Value                 `weft:",omitempty"`
	PreviousStepContent Value                 `weft:",omitempty"`
	PreviousStepOutputs map[string]StepOutput `weft:",omitempty"`
	AdditionalData      map[string]any        `weft:",omitempty"`

	// StepChoices are the names that a router's selector may choose from.
	StepChoices []string `weft:",omitempty"`
	// CurrentIteration (from 1) and MaxIterations belong to the loop whose end condition
	// is evaluated.
	CurrentIteration int `weft:",omitempty"`
	MaxIterations    int `weft:",omitempty"`
}

// Text returns the input as text, or "" if it is not text.
func (in *StepInput) Text() string {
	text, _ := in.Input.(string)
	return text
}

// PreviousText returns the content of the previous node as text, or "" if it is not text.
func (in *StepInput) PreviousText() string {
	text, _ := in.PreviousStepContent.(string)
	return text
}

// StepOutput is what a function returns to its flow. Content may be of any type. A
// function that decides a condition or the end of a loop sets a bool. A router's selector
// sets a name or a list of names.
type StepOutput struct {
	StepName string `weft:",omitempty"` // name of the node; set by the flow
	Content  any
	// Success reports whether the node succeeded; nil means that Error is empty. A
	// function that returns an error fails, and its node fails too. A function that
	// returns a StepOutput with Success false only reports a failure, and the flow
	// continues.
	Success *bool  `weft:",omitempty"`
	Error   string `weft:",omitempty"`
	// Stop ends the whole flow successfully, with this output as its last.
	Stop bool `weft:",omitempty"`
	// Steps are the outputs of nested nodes.
	Steps []any `weft:",omitempty"`
}

// OK reports whether the node that produced the output succeeded.
func (out *StepOutput) OK() bool {
	if out.Success != nil {
		return *out.Success
	}
	return out.Error == ""
}

// Text returns the content as text, or "" if it is not text.
func (out *StepOutput) Text() string {
	text, _ := out.Content.(string)
	return text
}

// Content returns an output with the given content.
func Content(content any) StepOutput { return StepOutput{Content: content} }

// StopWith returns an output that ends the flow with the given content.
func StopWith(content any) StepOutput { return StepOutput{Content: content, Stop: true} }

// Function declares a function that flows can call as PLUGIN.NAME. The plugin is a
// [Part]: the flow is the workflow. The options are those of a [Step].
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
