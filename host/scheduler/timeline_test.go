package scheduler_test

import (
	"fmt"
	"slices"
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
	tl, err := b.sched.History().Timeline(t.Context(), host.TimelineQuery{Tenant: "t", ID: id, After: after, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// stateAfter gives the state of a session after an entry, as JSON.
func (b *bench) stateAfter(t *testing.T, id string, at uint64, path string) string {
	t.Helper()
	v, err := await(b, func() (host.StateValue, error) { return b.sched.StateAt(t.Context(), "t", id, at, path) })
	if err != nil {
		t.Fatal(err)
	}
	text, err := abi.ToJSON(v.Value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStateAt: the state after each entry is the state that the session had then, also where
// another run or a client made it, and where the journal has snapshots or is read again.
func TestStateAt(t *testing.T) {
	for _, snapshots := range []int{0, 1, 3} {
		runs := 0
		b := &bench{tokens: 1, snapshots: snapshots, modules: newSimModules(t, map[string]string{"two": asking})}
		b.guest = named(&runs)
		b.open(t)
		var now []string // the state at each rest
		look := func() {
			t.Helper()
			v, err := await(b, func() (host.StateValue, error) { return b.sched.State(t.Context(), "t", "s", "") })
			if err != nil {
				t.Fatal(err)
			}
			text, err := abi.ToJSON(v.Value)
			if err != nil {
				t.Fatal(err)
			}
			if s := string(text); len(now) == 0 || now[len(now)-1] != s {
				now = append(now, s)
			}
		}
		b.start("h", "s")
		b.rest()
		look()
		b.start("other", "s")
		b.rest()
		look()
		patch, err := abi.FromJSON([]byte(`{"client":"here"}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := await(b, func() (bool, error) {
			_, made, err := b.sched.EditState(t.Context(), host.SessionEdit{Tenant: "t", Session: "s", Patch: patch})
			return made, err
		}); err != nil {
			t.Fatal(err)
		}
		look()
		b.send(t, "h")
		b.rest()
		look()
		b.open(t)
		b.through(t, "h")
		look()
		entries := b.timeline(t, "h", 0, 1000).Entries
		last := entries[len(entries)-1].Seq
		var met []string
		for at := uint64(1); at <= last; at++ {
			s := b.stateAfter(t, "h", at, "")
			if s != b.stateAfter(t, "other", at, "") {
				t.Errorf("at %d two runs of a session have two states", at)
			}
			met = append(met, s)
		}
		for i, want := range now {
			if at := slices.Index(met, want); at < 0 {
				t.Errorf("snapshots %d: no entry gives state %d, %s", snapshots, i, want)
			} else {
				met = met[at:] // in the order in which they were
			}
		}
		if met[len(met)-1] != now[len(now)-1] {
			t.Errorf("snapshots %d: the last state is %s, not %s", snapshots, met[len(met)-1], now[len(now)-1])
		}
		// Each edit leaves what it says, and found what it says.
		for _, e := range entries {
			for _, edit := range e.Edits {
				for _, side := range []struct {
					at    uint64
					value abi.Raw
				}{{e.Seq - 1, edit.Old}, {e.Seq, edit.New}} {
					if side.value == nil || strings.Contains(edit.Path, ".") {
						continue
					}
					want, err := abi.ToJSON(side.value)
					if err != nil {
						t.Fatal(err)
					}
					if got := b.stateAfter(t, "h", side.at, edit.Path); got != string(want) {
						t.Errorf("%s at %d is %s, not %s", edit.Path, side.at, got, want)
					}
				}
			}
		}
		for _, tt := range []struct {
			tenant, id string
			at         uint64
			path       string
			want       host.Code
		}{
			{"t", "h", 0, "", host.CodeInvalidArgument}, {"t", "h", 1 << 63, "", host.CodeInvalidArgument}, {"t", "h", last + 100, "", host.CodeInvalidArgument},
			{"t", "h", last, "nothing.there", host.CodeNotFound}, {"t", "h", last, "a..b", host.CodeInvalidArgument},
			{"t", "nobody", 1, "", host.CodeNotFound}, {"u", "h", 1, "", host.CodeNotFound},
		} {
			if _, err := await(b, func() (host.StateValue, error) { return b.sched.StateAt(t.Context(), tt.tenant, tt.id, tt.at, tt.path) }); host.CodeOf(err) != tt.want {
				t.Errorf("%+v: %v", tt, err)
			}
		}
	}
}

// TestTimelineQueries: what a query selects, in both orders and any pages, is what is left of
// the whole timeline, whether the journal has snapshots or not.
func TestTimelineQueries(t *testing.T) {
	for _, snapshots := range []int{0, 1, 3} {
		runs := 0
		b := &bench{tokens: 1, snapshots: snapshots, modules: newSimModules(t, map[string]string{"two": asking})}
		b.guest = named(&runs)
		b.open(t)
		b.start("h", "s")
		b.rest()
		b.start("other", "s")
		b.rest()
		b.through(t, "h")
		b.through(t, "other")
		ask := func(q host.TimelineQuery) host.Timeline {
			t.Helper()
			q.Tenant = "t"
			tl, err := b.sched.History().Timeline(t.Context(), q)
			if err != nil {
				t.Fatalf("%+v: %v", q, err)
			}
			return tl
		}
		for _, id := range []string{"h", "other"} {
			whole := ask(host.TimelineQuery{ID: id, Limit: 1000}).Entries
			last := whole[len(whole)-1].Seq
			for _, filter := range []host.TimelineQuery{
				{}, {Kinds: []string{"edit"}}, {Kinds: []string{"edit", "post", "nothing"}}, {Steps: []string{"ask"}}, {Steps: []string{"nobody"}},
				{Kinds: []string{"edit"}, Steps: []string{"ask"}}, {After: 3}, {Before: last}, {After: 4, Before: last - 1}, {After: last}, {Before: 1}, {After: 5, Before: 6},
			} {
				var want []host.TimelineEntry
				for _, e := range whole {
					if e.Seq > filter.After && (filter.Before == 0 || e.Seq < filter.Before) &&
						(filter.Kinds == nil || slices.Contains(filter.Kinds, e.Kind)) && (filter.Steps == nil || slices.Contains(filter.Steps, e.Step)) {
						want = append(want, e)
					}
				}
				for _, newest := range []bool{false, true} {
					for _, limit := range []int{1, 2, 5, 1000} {
						q := filter
						q.ID, q.Limit, q.Newest = id, limit, newest
						var got []host.TimelineEntry
						for pages := 0; ; pages++ {
							part := ask(q)
							if len(part.Entries) > limit || pages > 100 {
								t.Fatalf("%+v gives %d entries on page %d", q, len(part.Entries), pages)
							}
							got = append(got, part.Entries...)
							if part.Next == 0 {
								break
							}
							if newest {
								q.Before = part.Next
							} else {
								q.After = part.Next
							}
						}
						if newest {
							slices.Reverse(got)
						}
						if tell(t, got) != tell(t, want) {
							t.Errorf("snapshots %d, %+v, newest first %t:\n%s\nwant\n%s", snapshots, filter, newest, tell(t, got), tell(t, want))
						}
					}
				}
			}
		}
	}
}

// TestTimelineCut: long values are cut, and short ones are not.
func TestTimelineCut(t *testing.T) {
	runs := 0
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
	b.guest = asker(&runs)
	b.open(t)
	b.start("h", "s")
	b.rest()
	patch, err := abi.FromJSON([]byte(`{"short":"a","long":"` + strings.Repeat("ä", 500) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := await(b, func() (bool, error) {
		_, made, err := b.sched.EditState(t.Context(), host.SessionEdit{Tenant: "t", Session: "s", Patch: patch})
		return made, err
	}); err != nil {
		t.Fatal(err)
	}
	tl, err := b.sched.History().Timeline(t.Context(), host.TimelineQuery{Tenant: "t", ID: "h", Limit: 1000, Kinds: []string{"patch"}, Cut: 20})
	if err != nil {
		t.Fatal(err)
	}
	// The head is of whole characters: a quote, and nine of two bytes.
	want := `patch long: ->{"cut":true,"head":"\"äääääääää","bytes":1002} short: ->"a"`
	if got := tell(t, tl.Entries); !strings.Contains(got, want) {
		t.Errorf("the timeline is\n%s\nwant\n%s", got, want)
	}
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
		if _, err := b.sched.History().Timeline(t.Context(), host.TimelineQuery{Tenant: who[0], ID: who[1], Limit: 10}); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("%v: %v", who, err)
		}
	}
}
