package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

var modelWrite = flag.String("model.write", "", "write random histories to this folder, for the tests of package hosttest (WEFT_STORIES)")

// TestWriteStories writes random plays as histories of testdata/engine that a whole host
// can play. Ticks that the host makes by itself are left out, timers fire when they are
// due, and all runs have the same limits.
func TestWriteStories(t *testing.T) {
	if *modelWrite == "" {
		t.Skip("-model.write names no folder")
	}
	for seed := uint64(1); seed <= *modelSeeds; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := drawWorkflow(rng)
		p, err := newPair(m)
		if err != nil {
			t.Fatal(err)
		}
		w := &storyWriter{t: t, p: p}
		p.mood, p.now = drawMood(rng), 1
		timeout := []int64{0, 60}[rng.IntN(2)]
		for range 10 + rng.IntN(60) {
			w.step(rng, timeout)
			w.due() // a host fires due timers at once
		}
		w.write(seed)
	}
}

type storyWriter struct {
	t    *testing.T
	p    *pair
	want strings.Builder
}

// step draws a tick that can be caused in a host, and plays it.
func (w *storyWriter) step(rng *rand.Rand, timeout int64) {
	p := w.p
	now := p.now
	_, tick := p.drawTick(rng)
	p.now = now
	switch t := tick.(type) {
	case engine.Block, engine.Shift, engine.Extend:
		return
	case engine.StartRun:
		t.RunID, t.Timeout, t.Work, t.Limits = fmt.Sprint("r", p.started), timeout, false, host.Limits{}
		if t.Event.Type != abi.TypeStart {
			return
		}
		w.play(t, fmt.Sprintf("start %s %s StartEvent timeout=%dns", t.RunID, t.HandlerID, timeout))
	case engine.PostEvent:
		w.play(t, fmt.Sprintf("post %s %s%s", t.RunID, text(t.Event), to(t.Step)))
	case engine.Cancel:
		w.play(t, "cancel "+t.RunID)
	case engine.Pause:
		w.play(t, "pause "+t.RunID)
	case engine.Resume:
		w.play(t, "resume "+t.RunID)
	case engine.Timer:
		w.timers(rng)
	case engine.Finish:
		w.finish(t)
	case engine.Call:
		w.call(t)
	}
}

// timers sometimes advances the time to the next timer.
func (w *storyWriter) timers(rng *rand.Rand) {
	p := w.p
	at := p.session.NextTimer()
	if at == host.WakeNever || rng.IntN(3) == 0 {
		return
	}
	p.now = max(p.now, at)
}

// due fires the timers that are due.
func (w *storyWriter) due() {
	for {
		at := w.p.session.NextTimer()
		if at == host.WakeNever || at > w.p.now {
			return
		}
		w.play(engine.Timer{}, "timer")
	}
}

func (w *storyWriter) finish(t engine.Finish) {
	out := ""
	switch o := t.Output; {
	case o.Err != nil:
		out = fmt.Sprintf("error %s %q", o.Err.Code, o.Err.Message)
	case o.List:
		for _, ev := range o.Events {
			out += " " + text(ev)
		}
		out = "[" + strings.TrimSpace(out) + "]"
	case len(o.Events) > 1:
		return // no output can express that
	case len(o.Events) == 0:
		out = "null"
	default:
		out = text(o.Events[0])
	}
	w.play(t, fmt.Sprintf("finish %d %s attempt=%d", t.Invocation, out, t.Attempt))
}

func (w *storyWriter) call(t engine.Call) {
	head := func(verb string) string { return fmt.Sprintf("%s %d ", verb, t.Invocation) }
	tail := fmt.Sprintf(" n=%d attempt=%d", t.N, t.Attempt)
	switch req := t.Request.(type) {
	case engine.EditState:
		tail = fmt.Sprintf(" n=%d attempt=%d", t.N, t.Attempt)
		w.play(t, head("edit")+"increment "+req.Edits[0].Path+" 1"+tail)
	case engine.SendEvent:
		w.play(t, head("send")+text(req.Event)+to(req.Step)+tail)
	case engine.WriteStream:
		w.play(t, head("write")+text(req.Event)+tail)
	case engine.CollectEvents:
		expected := strings.Join(req.Expected, ",")
		if expected == "" {
			expected = "-"
		}
		line := head("collect") + text(req.Event) + " " + expected
		if req.Buffer != "" {
			line += " buffer=" + req.Buffer
		}
		w.play(t, line+tail)
	case engine.Sleep:
		w.play(t, fmt.Sprintf("%s%dns%s", head("sleep"), req.Duration, tail))
	case engine.WaitForEvent:
		req.ID = strings.ReplaceAll(req.ID, " ", "-")
		t.Request = req
		line := head("wait") + req.Type + " id=" + req.ID
		if req.Requirements != nil {
			line += " need=" + jsonOf(req.Requirements)
		}
		if req.Ask != nil {
			line += " ask=" + text(*req.Ask)
		}
		if req.Timeout > 0 {
			line += fmt.Sprintf(" for=%dns", req.Timeout)
		}
		if req.Broadcast {
			line += " broadcast=1"
		}
		w.play(t, line+tail)
	}
}

func to(step string) string {
	if step == "" {
		return ""
	}
	return " step=" + step
}

func text(ev abi.Event) string {
	out := ev.Type
	if ev.ID != 0 {
		out += fmt.Sprintf("#%d", ev.ID)
	}
	if ev.Body != nil {
		out += jsonOf(ev.Body)
	}
	return out
}

func jsonOf(raw abi.Raw) string {
	out, err := abi.ToJSON(raw)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// play plays the tick and writes down its outcome as readers of histories see it.
func (w *storyWriter) play(t engine.Tick, line string) {
	p := w.p
	before := len(p.journal)
	fmt.Fprintf(&w.want, "> @%dns %s\n", p.now, line)
	res, err := p.session.Reduce(p.now, t)
	switch refusal := codeOf(err); {
	case refusal == "":
	case refusal == stale || refusal == unknown:
		w.want.WriteString("  error: " + refusal + "\n")
	case strings.HasPrefix(line, "start") || strings.HasPrefix(line, "post") || strings.HasPrefix(line, "resume"):
		w.want.WriteString("  client error: " + refusal + "\n")
	default:
		w.want.WriteString("  guest error: " + refusal + "\n")
	}
	if res.Response.Suspended {
		w.want.WriteString("  suspended\n")
	}
	if res.Entry != nil {
		p.journal = append(p.journal, res.Entry)
		fmt.Fprintf(&w.want, "  entry %d\n", before+1)
	}
	for _, c := range res.Commands {
		if c, ok := c.(engine.Publish); ok {
			w.want.WriteString(showStream(c.HandlerID, c.Event) + "\n")
		}
	}
	p.model.runs = nil // the runs that may be drawn
	for i := uint64(1); i <= p.started; i++ {
		if r, ok := p.session.Record(fmt.Sprint("r", i)); ok && !r.Status.Final() {
			p.model.runs = append(p.model.runs, &modelRun{id: r.RunID, paused: r.Paused})
		}
	}
	p.note(t, codeOf(err), res.Response.Suspended)
}

func showStream(handler string, ev host.StreamEvent) string {
	if ev.Type == abi.TypeStepStateChanged {
		m := decoded(ev.Body).(map[string]any)
		output := "null"
		if text, ok := m["output_event_name"].(string); ok {
			output = text
		}
		return fmt.Sprintf("  %s %d step %s %s %s: %s > %s", handler, ev.Seq, m["name"], m["step_state"], m["worker_id"], m["input_event_name"], output)
	}
	marks := ""
	if len(ev.Types) > 0 {
		marks += " " + strings.Join(ev.Types, "<")
	}
	if ev.Terminal {
		marks += " terminal"
	}
	return fmt.Sprintf("  %s %d %s%s%s", handler, ev.Seq, ev.QualifiedName(), jsonOf(ev.Body), marks)
}

func (w *storyWriter) write(seed uint64) {
	raw, err := w.p.manifest.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	out := fmt.Sprintf("Seed %d.\n-- manifest.json --\n%s\n-- want --\n%s-- dump --\n%s", seed, jsonOf(raw), w.want.String(), w.p.session.Dump())
	if err := os.WriteFile(filepath.Join(*modelWrite, fmt.Sprintf("seed-%d.txtar", seed)), []byte(out), 0o644); err != nil {
		w.t.Fatal(err)
	}
}
