package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// What the fixture does.
func TestModes(t *testing.T) {
	for mode, want := range map[string]any{
		"deep": int64(4), "many": int64(4), "stream": int64(4), "count": int64(1),
	} {
		run, err := wefttest.NewSession().Run(StartEvent{Mode: mode, N: 4})
		if err != nil || !reflect.DeepEqual(run.Result, want) {
			t.Errorf("%s: %v (%v)", mode, run.Result, err)
		}
		if shown := len(run.Stream); mode == "stream" && shown != 4 || mode != "stream" && shown != 0 {
			t.Errorf("%s: stream %v", mode, run.Stream)
		}
	}
	for _, mode := range []string{"ask", "named", "same"} {
		run, err := wefttest.NewSession().Run(StartEvent{Mode: mode})
		if err != nil || run.Ended || len(run.Children) != 1 {
			t.Fatalf("%s: %+v (%v)", mode, run, err)
		}
		if err := run.Children[0].Post("HumanResponseEvent", map[string]any{"response": mode}); err != nil || run.Result != any(mode) {
			t.Errorf("%s: %v (%v)", mode, run.Result, err)
		}
	}
	run, err := wefttest.NewSession().Run(StartEvent{Mode: "fail"})
	if got, _ := run.Result.(map[string]any); err != nil || got["code"] != "boom" || !strings.HasSuffix(fmt.Sprint(got["message"]), ": asked to fail") {
		t.Errorf("fail: %v (%v)", run.Result, err)
	}
	session := wefttest.NewSession()
	run, err = session.Run(StartEvent{Mode: "retry"})
	if err != nil || !run.Ended || session.State()["children"] != int64(1) {
		t.Errorf("retry: %v (%v), state %v", run, err, session.State())
	}
}
