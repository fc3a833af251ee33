package scheduler_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// asking is a workflow whose one step waits for two answers and sleeps between.
const asking = `{"abi": 1, "workflow": "two", "timeout": 0,
  "events": {"Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}},
  "steps": [{"name": "ask", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]}]}`

// asker counts each of its effects once, however often it runs.
func asker(runs *int) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, g *call) (abi.StepOutput, error) {
		*runs++
		got := []abi.Raw{}
		for _, c := range []struct {
			im  abi.Import
			req any
		}{
			{abi.ImportStateEdit, []any{[]any{"increment", "n", 1}}},
			{abi.ImportWait, map[string]any{"type": "Answer", "waiter_event": []any{"Ask", map[string]any{"who": "a"}}}},
			{abi.ImportStateEdit, []any{[]any{"increment", "n", 10}}},
			{abi.ImportSleep, []any{int64(time.Hour)}},
			{abi.ImportStateEdit, []any{[]any{"increment", "n", 100}}},
			{abi.ImportWait, map[string]any{"type": "Answer", "waiter_event": []any{"Ask", map[string]any{"who": "b"}}}},
			{abi.ImportStateGet, []any{"n"}},
		} {
			resp, err := g.do(c.im, c.req)
			if err != nil {
				return abi.StepOutput{}, err
			}
			got = append(got, resp)
		}
		body := append([]byte{0xa1, 0x66}, "result\x83"...)
		for _, i := range []int{1, 5, 6} {
			body = append(body, got[i]...)
		}
		return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: body}}}, nil
	}
}

// A step that waits and sleeps goes on where it was, whether its session stayed
// in memory, left it, or the server was another one meanwhile; and each of its
// effects is made once.
func TestWaitsAndSleeps(t *testing.T) {
	for name, between := range map[string]func(*bench){
		"in memory":      func(*bench) {},
		"evicted":        func(b *bench) { b.advance(time.Second); b.rest(); b.advance(time.Second); b.rest() },
		"another server": func(b *bench) { b.open(b.t) },
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
			b.guest = asker(&runs)
			b.open(t)
			run := b.start("h", "s")
			send := func(text string) {
				t.Helper()
				ev := abi.Event{Type: "Answer", Body: append([]byte{0xa1, 0x61, 'x', 0x61}, text...)}
				_, err := await(b, func() (struct{}, error) { return struct{}{}, b.sched.Send(t.Context(), "t", "h", ev, "") })
				if err != nil {
					t.Fatal(err)
				}
			}
			b.rest()
			between(b)
			send("1")
			between(b)
			b.advance(time.Hour)
			b.rest()
			between(b)
			if b.status(run.RunID) != host.StatusRunning {
				t.Fatal("it does not wait for the second answer")
			}
			send("2")
			b.rest()
			stored, err := b.store.Run(t.Context(), "t", run.RunID)
			if err != nil || stored.Status != host.StatusCompleted {
				t.Fatalf("%+v, %v", stored, err)
			}
			text, err := abi.ToJSON(stored.Result.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`{"x":"1"}`, `{"x":"2"}`, `111]`} {
				if !strings.Contains(string(text), want) {
					t.Errorf("result %s, want %s in it", text, want)
				}
			}
			if runs != 4 {
				t.Errorf("the guest ran %d times, want 4", runs)
			}
		})
	}
}

// Whoever sends an event hears what became of it, and a repetition nothing of it.
func TestDelivery(t *testing.T) {
	runs := 0
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
	b.guest = asker(&runs)
	b.open(t)
	b.start("h", "s")
	b.rest()
	send := func(once host.Once) host.Delivery {
		t.Helper()
		ev := abi.Event{Type: "Answer", Body: append([]byte{0xa1, 0x61, 'x', 0x61}, '1')}
		d, err := await(b, func() (host.Delivery, error) { return b.sched.SendOnce(t.Context(), "t", "h", ev, "", once) })
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	once := onceKey("k", "h")
	if d := send(once); d.How != host.DeliveredWaiter || !slices.Equal(d.To, []string{"ask"}) {
		t.Errorf("%+v", d)
	}
	if d := send(once); d.How != "" {
		t.Errorf("a repetition: %+v", d)
	}
	if d := send(host.Once{}); d.How != host.DeliveredKept || d.To != nil { // it sleeps
		t.Errorf("%+v", d)
	}
	run, err := b.sched.History().Get(t.Context(), "t", "h")
	if err != nil || !slices.Equal(run.Kept, []host.Kept{{Type: "Answer"}}) {
		t.Errorf("%+v, %v", run.Kept, err)
	}
}

// What comes while a guest is still on its way out of a wait is not lost.
func TestAnswerBeforeTheGuestIsOut(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
	first := true
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		resp, err := g.do(abi.ImportWait, map[string]any{"type": "Answer"})
		if first {
			first = false
			b.commit() // else nobody knows the run yet
			ev := abi.Event{Type: "Answer", Body: abi.EmptyMap}
			sent := make(chan error, 1)
			go func() { sent <- b.sched.Send(t.Context(), "t", "h", ev, "") }()
			for done := false; !done; {
				select {
				case err := <-sent:
					if err != nil {
						t.Error(err)
					}
					done = true
				default:
					b.commit()
				}
			}
		}
		if err != nil || resp == nil {
			return abi.StepOutput{}, err
		}
		return stopEvent(), nil
	}
	b.open(t)
	run := b.start("h", "s")
	b.rest()
	if status := b.status(run.RunID); status != host.StatusCompleted {
		t.Errorf("the run is %s", status)
	}
}
