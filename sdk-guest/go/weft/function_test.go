package weft

import "testing"

// A function is a step of a part, which takes and gives what flows do.
func TestFunction(t *testing.T) {
	w := &workflow{name: "w"}
	f := Function("f", func(*Context[Untyped], StepInput) (StepOutput, error) { return Content(1), nil }, Workers(2))
	if err := f.applyWorkflow(w); err != nil {
		t.Fatal(err)
	}
	m, err := w.manifest()
	if err != nil {
		t.Fatal(err)
	}
	step := m["steps"].([]any)[0].(object)
	if m["part"] != true || step["workers"] != 2 || step["accepts"].([]any)[0] != "StepInput" || step["emits"].([]any)[0] != "StepOutput" {
		t.Errorf("manifest %v", m)
	}
}

func TestOutputs(t *testing.T) {
	no := false
	for _, tt := range []struct {
		out  StepOutput
		ok   bool
		text string
	}{
		{Content("x"), true, "x"},
		{StopWith("y"), true, "y"},
		{StepOutput{Content: 7}, true, ""},
		{StepOutput{Error: "why"}, false, ""},
		{StepOutput{Success: &no}, false, ""},
	} {
		if tt.out.OK() != tt.ok || tt.out.Text() != tt.text {
			t.Errorf("%+v: OK %v, text %q", tt.out, tt.out.OK(), tt.out.Text())
		}
	}
	in := StepInput{Input: "a", PreviousStepContent: 3}
	if in.Text() != "a" || in.PreviousText() != "" {
		t.Errorf("texts %q, %q", in.Text(), in.PreviousText())
	}
}
