package main

import (
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// What a flow can ask of a function, a test can.
func TestFunctions(t *testing.T) {
	for _, tt := range []struct {
		function string
		in       any
		want     any
		emitted  []string
	}{
		{"a", weft.StepInput{Input: "x"}, "x" + letter, []string{"StepOutput"}},
		{"previous", map[string]any{"input": 1, "previous_step_content": 2}, int64(2), []string{"StepOutput"}},
		{"stop", weft.StepInput{Input: "x"}, "stopped at x", []string{"StepOutput"}},
		{"yes", nil, true, []string{"StepOutput"}},
		{"hand", weft.StepInput{Input: "x"}, "x1taken", []string{"Handed", "StepOutput"}},
		{"hand_to", weft.StepInput{Input: "x"}, "x2taken", []string{"StepOutput"}},
		{"slow", weft.StepInput{Input: 30}, "late", []string{"StepOutput"}},
	} {
		run, err := wefttest.NewSession().Function(tt.function, tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.function, err)
			continue
		}
		var emitted []string
		for _, ev := range run.Emitted {
			emitted = append(emitted, ev.Type)
		}
		if !run.Ended || run.Result != tt.want || strings.Join(emitted, " ") != strings.Join(tt.emitted, " ") {
			t.Errorf("%s gives %v (ended: %t), and emits %q", tt.function, run.Result, run.Ended, emitted)
		}
	}
}

func TestWhatTheOutputSays(t *testing.T) {
	run, err := wefttest.NewSession().Function("stop", nil)
	if err != nil {
		t.Fatal(err)
	}
	if out := run.Emitted[0].Body; out["stop"] != true {
		t.Errorf("the output is %v", out)
	}
}

func TestFunctionsThatFail(t *testing.T) {
	session := wefttest.NewSession()
	for function, want := range map[string]string{
		"fail":   "asked to fail",
		"absent": "the plugin has no function absent: it has a, b, c, echo,",
		"take":   "the plugin has no function take: it has a,", // a step, which no flow can call
	} {
		if _, err := session.Function(function, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", function, err, want)
		}
	}
	if _, err := session.Function("hand", weft.StepInput{Input: "bad"}); err == nil || !strings.Contains(err.Error(), "handed on and failed") {
		t.Errorf("hand: %v", err)
	}
	if _, err := session.Function("a", 7); err == nil || !strings.Contains(err.Error(), "a struct or a map") {
		t.Errorf("a number as input: %v", err)
	}
	if _, err := session.Run(nil); err == nil || !strings.Contains(err.Error(), "Session.Function") {
		t.Errorf("run as a workflow: %v", err)
	}
}
