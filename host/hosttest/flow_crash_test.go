package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// cutStore is a store that fails after some commits: before it writes a commit, or after
// it has written one whose result nobody receives.
type cutStore struct {
	host.Store
	left  *atomic.Int64 // commits still acknowledged
	after bool
}

var errCut = errors.New("the power is gone")

// Append implements host.Store.
func (s cutStore) Append(ctx context.Context, b host.Batch) error {
	if s.left.Add(-1) >= 0 {
		return s.Store.Append(ctx, b)
	}
	if s.after {
		_ = s.Store.Append(ctx, b)
	}
	return errCut
}

// crashFlow has an effect in each node, and reports all effects at its end.
const crashFlow = `{"session_state": {"items": ["first"]}, "steps": [
	{"name": "one", "function": "kit.count"},
	{"name": "both", "type": "parallel", "steps": [
		{"name": "left", "type": "steps", "steps": [{"name": "x", "function": "kit.count"}, {"name": "y", "function": "kit.count"}]},
		{"name": "right", "function": "kit.remember"}]},
	{"name": "if", "type": "condition", "evaluator": "session_state.count == 3", "steps": [{"name": "z", "function": "kit.count"}]},
	{"name": "which", "type": "router", "selector": "\"b\"", "choices": [{"name": "a", "function": "kit.fail"}, {"name": "b", "function": "kit.count"}]},
	{"name": "again", "type": "loop", "max_iterations": 4, "end_condition": "kit.enough", "steps": [{"name": "n", "function": "kit.count"}]},
	{"name": "bad", "function": "kit.fail", "retries": 1, "on_error": "skip"},
	{"name": "nested", "workflow": "crash-inner"},
	{"name": "items", "function": "kit.recall"},
	{"name": "all", "function": "kit.names"}]}`

// TestFlowOverCrashes cuts the power at commits of a flow's run, one for each host call,
// before or after the commit is written. After any number of crashes, each function's
// effects exist once, each node is reported once, and the result is the same.
func TestFlowOverCrashes(t *testing.T) {
	data := t.TempDir()
	h := openCut(t, data, nil)
	kit := hosttest.BuildPlugin(t, "flowkit")
	if _, _, err := h.Plugins.Put(t.Context(), host.DefaultTenant, "kit", kit); err != nil {
		t.Fatal(err)
	}
	composeFlow(t, h, "crash-inner", `{"steps": [{"name": "k", "function": "kit.count"}]}`)
	composeFlow(t, h, "crash", crashFlow)
	want, wantEvents := playCut(t, h, "whole")
	if !strings.Contains(want, "nested=7") || !strings.Contains(want, "items=first+1") {
		t.Fatalf("the flow came to %s", want)
	}
	closeCut(t, h)
	const stride = 4 // of the commits; which ones is random
	cuts := 0
	for n := int64(seed(t).IntN(stride)); ; n += stride {
		left, after := &atomic.Int64{}, n/stride%2 == 1
		left.Store(1 << 40)
		h := openCut(t, data, func(s host.Store) host.Store { return cutStore{s, left, after} })
		session := fmt.Sprint("cut-", n)
		left.Store(n)
		ctx, cancel := context.WithCancel(t.Context())
		dead := h.Dead() // the goroutine may begin when h is the next host
		go func() {
			<-dead
			cancel()
		}()
		_, cut := startCut(ctx, h, session)
		closeCut(t, h)
		h = openCut(t, data, nil)
		got, events := playCut(t, h, session)
		if got != want || events != wantEvents {
			t.Errorf("cut at commit %d (written: %v): it came to %s\nwant %s\nevents %s\nwant %s", n, after, got, want, events, wantEvents)
		}
		closeCut(t, h)
		if cut == nil {
			break
		}
		cuts++
	}
	t.Logf("%d cuts", cuts)
	if cuts < 15 {
		t.Errorf("%d cuts are too few to prove anything", cuts)
	}
}

// stepped makes each host call wait until its effect is durable, so that each call has a
// commit.
type stepped struct {
	host.Sandbox
	of     **wire.Host
	opened <-chan struct{} // closed when the next host is open; earlier calls may begin before
}

// Invoke implements host.Sandbox.
func (s stepped) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	inv.Calls = steppedCalls{inv.Calls, func() {
		<-s.opened
		_ = (*s.of).Journal.Wait(ctx, (*s.of).Journal.Stats().Position)
	}}
	return s.Sandbox.Invoke(ctx, inv)
}

type steppedCalls struct {
	host.Calls
	wait func()
}

// Call implements host.Calls.
func (c steppedCalls) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	resp, status, now, err := c.Calls.Call(im, req, clock)
	c.wait()
	return resp, status, now, err
}

// Replaying implements host.Replayer.
func (c steppedCalls) Replaying() bool { return c.Calls.(host.Replayer).Replaying() }

func openCut(t *testing.T, data string, wrap func(host.Store) host.Store) *wire.Host {
	t.Helper()
	var h *wire.Host
	opened := make(chan struct{})
	h, err := wire.Open(t.Context(), wire.Config{Data: data, Code: hosttest.Code, Compiler: hosttest.Compiler, WrapStore: wrap, Log: slog.New(slog.DiscardHandler),
		Around: func(s host.Sandbox) host.Sandbox { return stepped{s, &h, opened} }})
	if err != nil {
		t.Fatal(err)
	}
	close(opened)
	return h
}

func closeCut(t *testing.T, h *wire.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suite.Hang)
	defer cancel()
	if err := h.Close(ctx); err != nil && !errors.Is(err, errCut) {
		t.Errorf("close: %v", err)
	}
}

func composeFlow(t *testing.T, h *wire.Host, name, flow string) {
	t.Helper()
	if _, _, err := h.Plugins.Compose(t.Context(), host.DefaultTenant, name, host.Composition{Flow: rawJSON(t, flow)}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// startCut starts a run and waits for it. It makes the same request each time.
func startCut(ctx context.Context, h *wire.Host, session string) (host.Run, error) {
	body, err := abi.EncodeValue(map[string]any{"input": "x"})
	if err != nil {
		return host.Run{}, err
	}
	return h.Runs.Start(ctx, host.StartRequest{
		Tenant: host.DefaultTenant, Workflow: "crash", HandlerID: session, SessionID: session, Wait: true, Event: abi.Event{Body: body},
		Once: host.Once{Route: "run", Key: session, Hash: "h"},
	})
}

// playCut runs a run to its end, and returns its result and the nodes that it reported.
func playCut(t *testing.T, h *wire.Host, session string) (result, events string) {
	t.Helper()
	run, err := startCut(t.Context(), h, session)
	if err != nil {
		t.Fatalf("%s: %v", session, err)
	}
	if run.Status != host.StatusCompleted {
		t.Fatalf("%s: %s: %s", session, run.Status, run.Error)
	}
	v, err := abi.DecodeValue(run.Result.Body)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	stream, err := h.Runs.Events(t.Context(), host.DefaultTenant, session, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for over := false; !over; {
		batch, err := stream.Next(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range batch {
			body, _ := abi.DecodeValue(ev.Body)
			if m, ok := body.(map[string]any); ok && m["node"] != nil {
				counts[fmt.Sprint(ev.Type, " ", m["node"])]++
			}
			over = over || ev.Terminal && ev.RunID == run.RunID
		}
	}
	return fmt.Sprint(v.(map[string]any)["result"]), fmt.Sprint(counts)
}
