package calls

import (
	"context"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

func call(n uint64) *Call {
	return &Call{Key: Key{host.SessionKey{Tenant: "t", Session: "s"}, n}, Attempt: 1, N: 1, Pos: n}
}

// begin begins what may begin, and gives its contexts.
func begin(b *Book, durable uint64) map[*Call]context.Context {
	out := map[*Call]context.Context{}
	b.Ready(durable, func(c *Call) { out[c] = b.Begin(c) })
	return out
}

// A call begins when its intent is durable and its grant has room, in the order in which
// the calls came; what is over leaves nothing behind.
func TestCallsBeginInOrderAndWithinTheirGrant(t *testing.T) {
	var b Book
	b.Init()
	grant := host.ResourceGrant{Pool: "p", InFlight: 2}
	list := []*Call{call(1), call(2), call(3)}
	for _, c := range list {
		b.Add(c, grant)
	}
	if got := begin(&b, 0); len(got) != 0 {
		t.Fatalf("%d calls begin before their intents are durable", len(got))
	}
	got := begin(&b, 9)
	if len(got) != 2 || got[list[0]] == nil || got[list[1]] == nil || !list[2].Queued() {
		t.Fatalf("%d calls begin, want the first two", len(got))
	}
	if b.Drop(list[0]); got[list[0]].Err() == nil || b.Find(list[0].Key) != nil {
		t.Error("a call that is dropped goes on")
	}
	if got := begin(&b, 9); len(got) != 0 {
		t.Error("a call that is dropped gives its place back before it is out")
	}
	b.End(list[0])
	if got := begin(&b, 9); len(got) != 1 || got[list[2]] == nil {
		t.Error("the third does not begin")
	}
	for _, c := range list[1:] {
		b.End(c)
		b.Remove(c)
	}
	begin(&b, 9)
	if open, pools, late := b.Left(); open+pools+late != 0 {
		t.Errorf("left: %d open, %d pools, %d late", open, pools, late)
	}
}

// A call that could not be made is made again when it is due, unless another is in its
// place by then; answers that are kept come when they are due.
func TestLateCalls(t *testing.T) {
	var b Book
	b.Init()
	now := time.Unix(1_800_000_000, 0)
	again, replaced := call(1), call(2)
	for _, c := range []*Call{again, replaced} {
		b.Add(c, host.ResourceGrant{Pool: "p", InFlight: 2})
	}
	begin(&b, 9)
	for i, c := range []*Call{again, replaced} {
		b.End(c)
		b.Later(Late{Call: c, Due: now.Add(time.Duration(i+1) * time.Second), Again: true})
	}
	b.Remove(replaced)
	b.Hold(call(2))
	b.Later(Late{Call: again, Due: now.Add(3 * time.Second)})
	if due, next := b.Due(now); len(due) != 0 || !next.Equal(now.Add(time.Second)) {
		t.Errorf("%d are due, the next at %s", len(due), next)
	}
	if due, next := b.Due(now.Add(2 * time.Second)); len(due) != 0 || !again.Queued() || replaced.Queued() || !next.Equal(now.Add(3*time.Second)) {
		t.Errorf("%d are due, queued %t and %t, the next at %s", len(due), again.Queued(), replaced.Queued(), next)
	}
	if due, next := b.Due(now.Add(3 * time.Second)); len(due) != 1 || due[0].Call != again || !next.IsZero() {
		t.Errorf("%d are due, the next at %s", len(due), next)
	}
}
