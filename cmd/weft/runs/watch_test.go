package runs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// state makes the event of a step's change of state.
func state(t *testing.T, step, state string) host.StreamEvent {
	t.Helper()
	return event(t, host.StreamEvent{Type: abi.TypeStepStateChanged, Internal: true, Base: true},
		map[string]any{"name": step, "step_state": state})
}

func event(t *testing.T, e host.StreamEvent, fields map[string]any) host.StreamEvent {
	t.Helper()
	body, err := abi.EncodeValue(fields)
	if err != nil {
		t.Fatal(err)
	}
	e.Body = body
	return e
}

// aRemote returns a connection for views, whose output goes to the builder.
func aRemote() (*remote.Conn, *strings.Builder) {
	var shown strings.Builder
	return &remote.Conn{Address: remote.DefaultServer, Errs: &shown, Out: &shown}, &shown
}

// The counts are those of a pool of workers with a queue.
func TestProgressCountsInvocations(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var p progress
	queued, running, done := 0, 0, 0
	for range 500 {
		next := "running"
		switch {
		case running > 0 && r.IntN(2) == 0:
			next = "not_running"
			running--
			done++
		case running == 3:
			next = "preparing"
			queued++
		default:
			queued = max(queued-1, 0)
			running++
		}
		e := state(t, "s", next)
		p.apply(&e)
		if s := p.byID["s"]; s.queued != queued || s.running != running || s.done != done {
			t.Fatalf("%s; want %d running, %d done, %d queued", s, running, done, queued)
		}
	}
}

func TestPlainView(t *testing.T) {
	r, shown := aRemote()
	v := newPlainView(r, client.Record{Run: host.Run{Workflow: "w", HandlerID: "h"}})
	clock := time.Unix(0, 0)
	v.now, v.told = func() time.Time { return clock }, clock
	view := func(events ...host.StreamEvent) {
		t.Helper()
		if err := v.Show(events); err != nil {
			t.Fatal(err)
		}
	}
	view(state(t, "a", "running"), state(t, "a", "not_running"))
	view(state(t, "b", "running"), state(t, "b", "preparing"))
	view(event(t, host.StreamEvent{Type: "ProgressEvent"}, map[string]any{"i": int64(1)}))
	clock = clock.Add(plainEvery)
	view()
	clock = clock.Add(plainEvery)
	view()
	view(state(t, "b", "not_running"), state(t, "b", "running"))
	view(event(t, host.StreamEvent{Type: "AskEvent", Types: []string{abi.TypeInputRequired}}, nil))
	view(state(t, "b", "not_running"), event(t, host.StreamEvent{Type: abi.TypeStop, Base: true, Terminal: true}, nil))
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	want := `started w; handler h
step a started
step b started
ProgressEvent {"i":1}
step a: 1 done
step b: 1 running, 1 queued
step b: 1 running, 1 done
AskEvent {}
  answer it with: weft send h HumanResponseEvent key=value
step b: 2 done
`
	if shown.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", shown, want)
	}
}

// TestLiveView plays the output of the view on a screen and checks the final content.
func TestLiveView(t *testing.T) {
	r, shown := aRemote()
	v := newLiveView(r, client.Record{Run: host.Run{Workflow: "w", HandlerID: "h"}})
	clock := time.Unix(0, 0)
	v.now, v.began = func() time.Time { return clock }, clock
	v.size = func() screen.Terminal { return screen.Terminal{Live: true, Cols: 30, Rows: 5} }
	view := func(events ...host.StreamEvent) {
		t.Helper()
		clock = clock.Add(screen.FrameEvery)
		if err := v.Show(events); err != nil {
			t.Fatal(err)
		}
	}
	view(state(t, "first", "running"))
	view(state(t, "first", "not_running"), state(t, "2", "running"))
	view(event(t, host.StreamEvent{Type: "ProgressEvent"}, map[string]any{"i": int64(1)}))
	view()
	if got, want := screenOf(t, shown.String()), "ProgressEvent {\"i\":1}\n⠸ w h  0.4s\n  first  1 done\n  2      1 running\n"; got != want {
		t.Errorf("on the screen:\n%s\nwant:\n%s", got, want)
	}
	for i := range 20 {
		view(state(t, fmt.Sprintf("a-step-with-a-long-name-%d", i), "running"))
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	want := "ProgressEvent {\"i\":1}\n  w h  2.4s\n  first            1 done\n  2                1 running\n  and 20 more\n"
	if got := screenOf(t, shown.String()); got != want {
		t.Errorf("at the end:\n%s\nwant:\n%s", got, want)
	}
}

// screenOf emulates a terminal with only the sequences that the view may use.
func screenOf(t *testing.T, written string) string {
	t.Helper()
	var lines []string
	for written != "" {
		up := 0
		if n, _ := fmt.Sscanf(written, screen.LineStart+screen.UpLines, &up); n == 1 {
			written = strings.TrimPrefix(written, screen.LineStart+fmt.Sprintf(screen.UpLines, up)+screen.ClearBelow)
			if up > len(lines) {
				t.Fatalf("up %d lines of %d", up, len(lines))
			}
			lines = lines[:len(lines)-up]
			continue
		}
		line, rest, whole := strings.Cut(written, "\n")
		if !whole || strings.ContainsAny(line, "\r\x1b") {
			t.Fatalf("unexpected: %q", written)
		}
		lines, written = append(lines, line), rest
	}
	return strings.Join(append(lines, ""), "\n")
}

func TestEnvelopeIsTheAPIs(t *testing.T) {
	e := event(t, host.StreamEvent{Seq: 7, Type: "ProgressEvent", Workflow: "w"}, map[string]any{"text": "<&>\u2028", "x": 1.0})
	got, err := envelope(&e)
	want := `{"value":{"x":1.0,"text":"<&>\u2028"},"qualified_name":"w.ProgressEvent","type":"ProgressEvent","types":null,"sequence":7}` + "\n"
	if err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
