package journal

import (
	"testing"

	"github.com/weftrun/weft/host"
)

// TestStreamRowsMerge: consecutive rows of one stream become one row. The items' arrays
// are not changed, and the number of copies does not grow with the number of rows.
func TestStreamRowsMerge(t *testing.T) {
	const rows = 10_000
	p := &part{runs: map[string]int{}}
	first := make([]host.StreamEvent, 1, 8) // has room that belongs to the item
	copies := 0
	var array *host.StreamEvent
	for i := range rows {
		events := first
		if i > 0 {
			events = []host.StreamEvent{{Seq: uint64(i)}}
		}
		item := &host.JournalItem{Stream: []host.StreamRow{{HandlerID: "h", RunID: "r", Events: events}}}
		if err := p.add(item, true); err != nil {
			t.Fatal(err)
		}
		if now := &p.Stream[0].Events[0]; now != array {
			array = now
			copies++
		}
	}
	if len(p.Stream) != 1 || len(p.Stream[0].Events) != rows {
		t.Fatalf("%d rows, the first with %d events, want one with %d", len(p.Stream), len(p.Stream[0].Events), rows)
	}
	for i, e := range p.Stream[0].Events {
		if e.Seq != uint64(i) {
			t.Fatalf("event %d has number %d", i, e.Seq)
		}
	}
	if spare := first[:2]; spare[1].Seq != 0 {
		t.Errorf("the item's array was written to: %+v", spare[1])
	}
	if copies > 60 {
		t.Errorf("the events were copied %d times", copies)
	}
}
