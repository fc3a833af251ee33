package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// tell writes a timeline down, a line an entry.
func tell(t *testing.T, entries []host.TimelineEntry) string {
	t.Helper()
	text := func(raw abi.Raw) string {
		if raw == nil {
			return "-"
		}
		b, err := abi.ToJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%d %s", e.Seq, e.Kind)
		if e.Step != "" {
			fmt.Fprintf(&b, " %s %d/%d call %d", e.Step, e.Invocation, e.Attempt, e.Call)
		}
		for _, ev := range e.Events {
			fmt.Fprintf(&b, " %s%s", ev.Type, text(ev.Body))
		}
		for _, edit := range e.Edits {
			fmt.Fprintf(&b, " %s: %s>%s", edit.Path, text(edit.Old), text(edit.New))
		}
		if e.Timer != "" {
			fmt.Fprintf(&b, " %s", e.Timer)
		}
		if e.Wait != nil {
			fmt.Fprintf(&b, " for %s", e.Wait.Type)
		}
		for _, a := range e.Began {
			fmt.Fprintf(&b, " begins %s %d/%d", a.Step, a.Invocation, a.Attempt)
		}
		if e.Duration != 0 {
			fmt.Fprintf(&b, " took %s", time.Duration(e.Duration))
		}
		if e.Forkable {
			b.WriteString(" forkable")
		}
		if e.Status != "" {
			fmt.Fprintf(&b, " %s", e.Status)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (b *bench) timeline(t *testing.T, id string, after uint64, limit int) host.Timeline {
	t.Helper()
	tl, err := b.sched.History().Timeline(t.Context(), "t", id, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// TestTimeline: a run's entries, and no others of its session, in pages.
func TestTimeline(t *testing.T) {
	runs := 0
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
	b.guest = asker(&runs)
	b.open(t)
	b.start("h", "s")
	send := func() {
		t.Helper()
		ev := abi.Event{Type: "Answer", Body: abi.EmptyMap}
		if _, err := await(b, func() (struct{}, error) { return struct{}{}, b.sched.Send(t.Context(), "t", "h", ev, "") }); err != nil {
			t.Fatal(err)
		}
	}
	b.rest()
	other := b.start("other", "s")
	b.rest()
	send()
	b.rest()
	b.advance(time.Hour)
	b.rest()
	send()
	b.rest()
	want := `1 start StartEvent{} begins ask 1/1 forkable
2 edit ask 1/1 call 1 n: ->1 forkable
3 wait ask 1/1 call 2 Ask{"who":"a"} for Answer forkable
7 post Answer{} begins ask 1/1 forkable
8 edit ask 1/1 call 3 n: 2>12 forkable
9 sleep ask 1/1 call 4 forkable
10 timer ask 1/1 call 0 sleep begins ask 1/1 forkable
11 edit ask 1/1 call 5 n: 12>112 forkable
12 wait ask 1/1 call 6 Ask{"who":"b"} for Answer forkable
13 post Answer{} begins ask 1/1 forkable
14 finish ask 1/1 call 0 StopEvent{"result":[["Answer",{},3],["Answer",{},4],112]} took 1h0m0s completed
`
	whole := b.timeline(t, "h", 0, 1000)
	if got := tell(t, whole.Entries); got != want || whole.Next != 0 {
		t.Errorf("the timeline is\n%s\nwant\n%s", got, want)
	}
	var parts []host.TimelineEntry
	for after := uint64(0); ; {
		part := b.timeline(t, "h", after, 3)
		parts = append(parts, part.Entries...)
		if after = part.Next; after == 0 {
			break
		}
		if len(part.Entries) != 3 {
			t.Errorf("a page of %d entries", len(part.Entries))
		}
	}
	if got := tell(t, parts); got != want {
		t.Errorf("in pages it is\n%s", got)
	}
	if got := b.timeline(t, other.RunID, 0, 1); len(got.Entries) != 1 || got.Entries[0].Seq != 4 || got.Entries[0].RunID != other.RunID || got.Next != 4 {
		t.Errorf("the other run's: %+v", got)
	}
	for _, who := range [][2]string{{"t", "nobody"}, {"u", "h"}} {
		if _, err := b.sched.History().Timeline(t.Context(), who[0], who[1], 0, 10); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("%v: %v", who, err)
		}
	}
}
