package dev

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/cmd/weft/remote"
)

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
		if got := SplitFields(line); !slices.Equal(got, want) {
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
		l := &devLog{r: &remote.Conn{Errs: &out}, module: module}
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
