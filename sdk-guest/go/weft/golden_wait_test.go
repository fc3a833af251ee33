package weft

import (
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
)

type askEvent struct {
	InputRequired `weft:"InputRequiredEvent"`
	Prefix        string
}

type responseEvent struct {
	HumanResponse `weft:"HumanResponseEvent"`
	Role          string
}

// The requests of long calls equal the vectors of the same names.
func TestVectorsOfLongCalls(t *testing.T) {
	host := &recorder{}
	withHost(t, host)
	s := &step{name: "test"}
	for _, option := range []StepOption{Waits(responseEvent{}), Streams(askEvent{})} {
		if err := option.applyStep(s); err != nil {
			t.Fatal(err)
		}
	}
	ctx := &Context[Untyped]{&invocation{step: s}}
	for name, call := range map[string]func(){
		"wait_for_event-minimal": func() { _, _ = Wait[responseEvent](ctx) },
		"wait_for_event-full": func() {
			_, _ = Wait[responseEvent](ctx, For("manager"), Where("role", "manager"), Broadcast(), Timeout(24*time.Hour),
				Ask(askEvent{Prefix: "manager, approve it?"}))
		},
		"call_resource-map":  func() { _ = ctx.Call("llm", "POST", map[string]any{"prompt": "a joke", "n": 1}, nil) },
		"call_resource-null": func() { _ = ctx.Call("clock", "", nil, nil) },
		"call_resource-http": func() {
			_, _ = ctx.HTTP("crm").Do(HTTPRequest{Method: "POST", Path: "things", Query: map[string]string{"q": "a b"},
				Headers: map[string]string{"Accept": "text/plain"}, Body: []byte("a,b"), Timeout: 5 * time.Second, ExpectSuccess: true})
		},
		"sleep-day":            func() { _ = ctx.Sleep(24 * time.Hour) },
		"run_workflow-minimal": func() { _, _ = Run[any](ctx, "accumulator", nil) },
		"run_workflow-shared":  func() { _, _ = Run[any](ctx, "a", map[string]any{}, SameSession()) },
		"run_workflow-full": func() {
			_, _ = Run[any](ctx, "accumulator", struct{}{}, As("first-half"), WithStream(), func(c *child) error {
				c.session, c.shared = "s-2", true // which no option of the SDK gives together
				return nil
			})
		},
	} {
		host.name, host.request, host.response = "", nil, []byte{cbor.Null}
		call()
		if want, _, _ := strings.Cut(name, "-"); host.name != want {
			t.Errorf("%s: the SDK calls %q", name, host.name)
		}
		same(t, name, host.request)
	}
}
