package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	tests := []struct {
		name, want, have string
		whole            bool
		paths            string // of the differences
	}{
		{"same", `{"a": [1, "x", null, true]}`, `{"a":[1.0,"x",null,true]}`, true, ""},
		{"numbers of one value", `100`, `1e2`, true, ""},
		{"large numbers", `9007199254740993`, `9007199254740992`, true, "r"},
		{"a number that is not a value to compute", `1e999999999`, `1`, true, "r"},
		{"more keys", `{"a": 1}`, `{"a": 1, "b": 2}`, true, "r.b"},
		{"more keys, of a part", `{"a": 1}`, `{"a": 1, "b": 2}`, false, ""},
		{"fewer keys", `{"a": 1, "b": {"c": 1}}`, `{"a": 1}`, false, "r.b"},
		{"within", `{"b": {"c": [1, 2]}}`, `{"b": {"c": [1, 3]}}`, false, "r.b.c.1"},
		{"a shorter list", `[1, 2]`, `[1]`, false, "r.1"},
		{"a longer list", `[1]`, `[1, 2]`, false, "r.1"},
		{"types", `"1"`, `1`, true, "r"},
		{"an object for a list", `[]`, `{}`, true, "r"},
		{"nothing", `1`, ``, true, "r"},
	}
	for _, tt := range tests {
		var paths []string
		for _, d := range different("r", json.RawMessage(tt.want), json.RawMessage(tt.have), tt.whole) {
			path, _, _ := strings.Cut(d, ":")
			paths = append(paths, path)
		}
		if got := strings.Join(paths, " "); got != tt.paths {
			t.Errorf("%s: differs at %q, want %q", tt.name, got, tt.paths)
		}
	}
	if n := len(different("", json.RawMessage(`[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]`), json.RawMessage(`[]`), true)); n != mostDifferences+1 {
		t.Errorf("%d differences are shown", n)
	}
}

func TestMissingEvents(t *testing.T) {
	event := func(name, fields string) caseEvent {
		return caseEvent{Type: name, Fields: json.RawMessage(fields)}
	}
	came := []caseEvent{event("A", `{"i":1}`), event("B", `{}`), event("A", `{"i":2,"j":0}`)}
	for _, tt := range []struct {
		name string
		want []caseEvent
		text string
	}{
		{"none", nil, ""},
		{"all", came, ""},
		{"some, by some fields", []caseEvent{{Type: "B"}, event("A", `{"i":2}`)}, ""},
		{"the wrong order", []caseEvent{{Type: "B"}, event("A", `{"i":1}`)}, "event 2, A {\"i\":1}, did not come after event 1"},
		{"twice", []caseEvent{{Type: "B"}, {Type: "B"}}, "event 2, B, did not come"},
	} {
		got := strings.Join(missing(tt.want, came), "\n")
		if (got == "") != (tt.text == "") || !strings.Contains(got, tt.text) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestSplitFields(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                nil,
		"name=Ada":                        {"name=Ada"},
		"  a=1   b:=[1,2] ":               {"a=1", "b:=[1,2]"},
		`items='["milk", "bread"]' n=2`:   {`items=["milk", "bread"]`, "n=2"},
		`name="Ada Lovelace"`:             {"name=Ada Lovelace"},
		"--session mine message=it's":     {"--session", "mine", "message=it's"},
		"message='what is not closed yet": {"message=what is not closed yet"},
	} {
		if got := splitFields(line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestPanicsArePlaced(t *testing.T) {
	const stack = "panic: boom\ngoroutine 1 [running]:\nruntime/debug.Stack()\n\truntime/debug/stack.go:26 +0xa\n" +
		"github.com/weftrun/weft/sdk-guest/go/weft.guard.func1()\n\tgithub.com/weftrun/weft/sdk-guest/go/weft/guard_go.go:11 +0x5\n" +
		"panic({0x26a40, 0x264000})\n\truntime/panic.go:860 +0x1c\nmain.boom(...)\n\texample.com/p/main.go:10\n" +
		"main.play(0x200068, {{}, 0x5})\n\texample.com/p/main.go:13 +0x9\nexample.com/p/words.Split({0x1, 0x2})\n\texample.com/p/words/split.go:7 +0x1"
	for module, want := range map[string]string{
		"example.com/p": "  step s: panic: boom\n    main.go:10 in boom\n    main.go:13 in play\n    words/split.go:7 in example.com/p/words.Split\n  step s: next\n",
		"":              "  step s: panic: boom\n  step s: next\n",
	} {
		var out strings.Builder
		l := &devLog{r: &remote{errs: &out}, module: module}
		for line := range strings.SplitSeq(stack+"\nnext", "\n") {
			text, err := json.Marshal(map[string]string{"level": "INFO", "step": "s", "msg": line})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = l.Write(append(text, '\n')) // never fails
		}
		if out.String() != want {
			t.Errorf("of module %q:\n%s", module, out.String())
		}
	}
}
