package stream

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// begins is an event of a handler that now waits for a child.
func (w *world) begins(handler, child string) {
	w.t.Helper()
	row := w.row(handler, 2, false)
	row.Events[0].Child = child
	w.write(row)
	w.hub.Publish(tenant, []host.StreamRow{row})
}

func (w *world) family(handler, run string, from position.Family) *Family {
	w.t.Helper()
	f, err := w.hub.SubscribeFamily(w.ctx, tenant, handler, run, from)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(f.Close)
	return f
}

// members returns what a family has now, "HANDLER<PARENT:SEQ" for each event, with the
// positions.
func (w *world) members(f *Family) (got, at []string, err error) {
	for {
		events, err := f.Next(w.ctx, 0)
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s<%s:%d", e.HandlerID, e.ParentID, e.Seq))
			at = append(at, e.Position)
		}
		if len(events) == 0 || err != nil {
			return got, at, err
		}
	}
}

// TestFamily: the events of a child stand between the event that makes the child known
// and what the parent made of them, even if the child becomes durable later than it is
// known. From the position of any event the stream continues without a gap or a
// repetition.
func TestFamily(t *testing.T) {
	w := newWorld(t)
	w.start("p")
	w.emit("p", 1)
	live := w.family("p", "", position.Family{After: position.FromRun})
	var got, at []string
	see := func(want ...string) {
		t.Helper()
		more, positions, err := w.members(live)
		if !slices.Equal(more, want) || err != nil {
			t.Fatalf("%q, %v; want %q", more, err, want)
		}
		got, at = append(got, more...), append(at, positions...)
	}
	see("p<:0")
	w.begins("p", "k") // the child is not there yet
	see("p<:1", "p<:2")
	w.start("k")
	w.emit("k", 1)
	see("k<p:0")
	w.begins("k", "g")
	w.start("g")
	w.emit("g", 2)
	w.begins("p", "l")
	w.start("l")
	w.emit("l", 1)
	see("k<p:1", "g<k:0", "g<k:1", "k<p:2", "p<:3", "l<p:0", "p<:4")
	w.finish("g")
	w.finish("k")
	w.finish("p")
	w.finish("l") // after the end of the run: nobody waits for it
	more, positions, err := w.members(live)
	if got, at = append(got, more...), append(at, positions...); !errors.Is(err, io.EOF) || more[len(more)-1] != "p<:5" || len(got) != 15 {
		t.Fatalf("%q, %v", got, err)
	}
	for i, place := range at {
		from, ok := position.Parse(place)
		if !ok || from.Text("") != place {
			t.Fatalf("position %q reads as %+v, %v", place, from, ok)
		}
		rest, _, err := w.members(w.family("p", "", from))
		want := slices.Clone(got[i+1:])
		slices.Sort(rest)
		slices.Sort(want)
		if !errors.Is(err, io.EOF) || !slices.Equal(rest, want) {
			t.Errorf("from %q of %s: %q, %v; want %q", place, got[i], rest, err, want)
		}
	}
	for _, of := range []string{"p", "k", "g", "l"} { // each member's own events are in order
		own := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, of+"<") })
		if !slices.IsSorted(own) {
			t.Errorf("%q", own)
		}
	}
}

func TestFamilyErrors(t *testing.T) {
	w := newWorld(t)
	w.start("p")
	for _, from := range []position.Family{
		{After: -3},
		{Children: []position.Member{{Handler: "k", Parent: "nobody"}}},
		{Children: []position.Member{{Handler: "k"}, {Handler: "k"}}},
		{Children: []position.Member{{Handler: "p"}}},
	} {
		if _, err := w.hub.SubscribeFamily(w.ctx, tenant, "p", "", from); host.CodeOf(err) != host.CodeInvalidArgument {
			t.Errorf("%+v: %v", from, err)
		}
	}
	if _, err := w.hub.SubscribeFamily(w.ctx, tenant, "x", "", position.Family{}); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("an unknown handler: %v", err)
	}
	for _, text := range []string{"", "x", "-2", "1/", "1/k", "1/k=", "1/k=x", "1/=3", "1/k=-2", "1/:p=3"} {
		if from, ok := position.Parse(text); ok {
			t.Errorf("%q reads as %+v", text, from)
		}
	}
	f := w.family("p", "", position.Family{After: position.FromNow, Children: []position.Member{{Handler: "k", After: -1}}})
	w.hub.Close()
	if _, _, err := w.members(f); host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("of a closed hub: %v", err)
	}
}

// TestRunsOwnEvents: the stream of a run has only the events of that run, wherever it
// begins, and ends with the run's last event.
func TestRunsOwnEvents(t *testing.T) {
	w := newWorld(t)
	var runs []string
	for range 3 { // events 0 to 2, 3 to 5, 6 to 8
		w.start("h")
		runs = append(runs, w.runs["h"].RunID)
		w.emit("h", 2)
		w.finish("h")
	}
	w.start("h") // 9 and on
	runs = append(runs, w.runs["h"].RunID)
	open := func(run int, after int64) *Subscription {
		t.Helper()
		s, err := w.hub.SubscribeRun(w.ctx, tenant, "h", runs[run], after)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	w.want(open(0, position.FromRun), io.EOF, 0, 2)
	w.want(open(1, position.FromRun), io.EOF, 3, 5)
	w.want(open(1, 3), io.EOF, 4, 5)
	w.want(open(1, 0), io.EOF, 3, 5)
	w.want(open(2, position.FromRun), io.EOF, 6, 8)
	for run, after := range map[int]int64{0: 2, 1: 5, 2: position.FromNow} {
		if s := open(run, after); !s.Ended() {
			t.Errorf("run %d from %d has more", run, after)
		}
	}
	latest, now, behind := open(3, position.FromRun), open(3, position.FromNow), open(3, 0)
	w.want(latest, nil, 0, -1)
	w.emit("h", 1)
	w.finish("h")
	w.start("h")
	w.emit("h", 4)
	for _, s := range []*Subscription{latest, now, behind} {
		w.want(s, io.EOF, 9, 10)
	}
}
