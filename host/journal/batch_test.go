package journal

import (
	"reflect"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/usage"
)

// TestSpentByTenantAndMonth: a batch adds up what its items have used by tenant and month,
// also of items without an entry.
func TestSpentByTenantAndMonth(t *testing.T) {
	used := func(tenant string, month time.Month, fuel uint64) queued {
		at := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		return queued{JournalItem: host.JournalItem{Key: host.SessionKey{Tenant: tenant, Session: "s"}, At: at, Spent: usage.Spent{Fuel: fuel}}}
	}
	got := spent([]queued{used("a", 1, 1), used("b", 1, 10), used("a", 2, 100), used("a", 1, 1000), used("b", 1, 0)})
	want := []usage.MonthSpent{}
	for _, w := range []struct {
		tenant string
		month  time.Month
		fuel   uint64
	}{{"a", 1, 1001}, {"b", 1, 10}, {"a", 2, 100}} {
		month := usage.MonthOf(time.Date(2026, w.month, 1, 0, 0, 0, 0, time.UTC).UnixNano())
		want = append(want, usage.MonthSpent{Tenant: w.tenant, Month: month, Spent: usage.Spent{Fuel: w.fuel}})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("spent:\n%+v, want\n%+v", got, want)
	}
}

// TestNewestWriteOfEachKey: of several writes to one key of a space the last is written,
// with the growth of all. The same key of another space or tenant is another key.
func TestNewestWriteOfEachKey(t *testing.T) {
	write := func(tenant, resource, key string, version uint64, growth int64) kv.Write {
		w := kv.Write{Space: kv.Space{Tenant: tenant, Resource: resource}, Growth: growth, Keys: 1}
		w.Item.Key, w.Item.Version = key, version
		return w
	}
	items := []queued{
		{JournalItem: host.JournalItem{KV: []kv.Write{write("a", "x", "k", 1, 5), write("a", "y", "k", 1, 7)}}},
		{JournalItem: host.JournalItem{KV: []kv.Write{write("b", "x", "k", 1, 9), write("a", "x", "k", 2, -3)}}},
	}
	last := write("a", "x", "k", 2, 2)
	last.Keys = 2
	want := []kv.Write{write("a", "y", "k", 1, 7), write("b", "x", "k", 1, 9), last}
	if got := newest(items); !reflect.DeepEqual(got, want) {
		t.Errorf("writes:\n%+v, want\n%+v", got, want)
	}
}

// TestVersionsAreNeededUntilTheirLastEntry: a version that several entries of a batch need
// is kept with the last of them, in whatever order they name the version.
func TestVersionsAreNeededUntilTheirLastEntry(t *testing.T) {
	var p part
	for _, seq := range []uint64{3, 7, 5} {
		p.use([]host.VersionUse{{Digest: "v", Seq: seq}})
	}
	p.use([]host.VersionUse{{Digest: "w", Seq: 4}})
	if want := []host.VersionUse{{Digest: "v", Seq: 7}, {Digest: "w", Seq: 4}}; !reflect.DeepEqual(p.Versions, want) {
		t.Errorf("versions %+v, want %+v", p.Versions, want)
	}
}

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
