package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/host"
)

func newQueue(tokens int) *fairQueue {
	q := &fairQueue{}
	q.init(tokens, func(string) int { return 0 })
	return q
}

func nobody(string) bool { return false }

func item(tenant string, n uint64) readyItem {
	return readyItem{at: &attempt{ss: &session{key: host.SessionKey{Tenant: tenant}}, inv: n}}
}

func TestATenantsAttemptsStartInOrder(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(3000) {
		q.push("a", item("a", i))
	}
	for i := range uint64(3000) {
		it, ok := q.pop(nobody)
		if !ok || it.at.inv != i {
			t.Fatalf("pop %d gave %+v, %v", i, it, ok)
		}
		if _, ok := q.pop(nobody); ok {
			t.Fatal("more guests than tokens")
		}
		q.end("a", 1_000_000)
	}
	if len(q.tenants) != 0 {
		t.Fatal("an idle tenant with nothing to remember stays")
	}
}

// end charges what a run burnt and gives its token back.
func (q *fairQueue) end(tenant string, units uint64) {
	q.charge(tenant, units)
	q.release(tenant)
}

// A tenant with a long queue of long steps gets its share and no more: one that
// comes with short steps waits for one of them at most.
func TestTokensAreSharedByUnits(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(10_000) {
		q.push("noisy", item("noisy", i))
		q.push("quiet", item("quiet", i))
	}
	burnt := map[string]int{}
	cost := map[string]uint64{"noisy": 10_000_000, "quiet": 1_000_000}
	for range 5_000 {
		it, ok := q.pop(nobody)
		if !ok {
			t.Fatal("a token is idle while attempts are ready")
		}
		tenant := it.at.ss.key.Tenant
		burnt[tenant] += int(cost[tenant]) + startCost
		q.end(tenant, cost[tenant])
		if d := burnt["noisy"] - burnt["quiet"]; d > 10_000_000+startCost || d < -10_000_000-startCost {
			t.Fatalf("shares are %d units apart", d)
		}
	}
}

func TestNobodySavesUpIdleness(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(1000) {
		q.push("busy", item("busy", i))
	}
	for range 500 {
		q.pop(nobody)
		q.end("busy", 1_000_000)
	}
	for i := range uint64(100) {
		q.push("late", item("late", i))
	}
	var order []string
	for range 20 {
		it, _ := q.pop(nobody)
		order = append(order, it.at.ss.key.Tenant)
		q.end(it.at.ss.key.Tenant, 1_000_000)
	}
	if n := len(slices.DeleteFunc(order, func(s string) bool { return s == "late" })); n < 9 {
		t.Fatalf("a tenant that was idle took %d of 20 turns in a row", 20-n)
	}
}

func TestDueSaysWhenAnotherTenantIsATurnBehind(t *testing.T) {
	q := newQueue(1)
	q.push("a", item("a", 1))
	q.pop(nobody)
	q.charge("a", 1e9)
	if q.due("a", nobody) {
		t.Fatal("nobody waits")
	}
	q.push("a", item("a", 2))
	if q.due("a", nobody) {
		t.Fatal("a tenant does not give way to itself")
	}
	q.push("b", item("b", 1))
	if q.charge("a", turn-1); q.due("a", nobody) {
		t.Fatal("b came just now, and is less than a turn behind")
	}
	if q.charge("a", 1); !q.due("a", nobody) {
		t.Fatal("b is a turn behind and waits")
	}
	if q.due("a", func(tenant string) bool { return tenant == "b" }) {
		t.Fatal("b could do nothing with a token")
	}
	if q.hold("b"); q.due("a", nobody) {
		t.Fatal("b is held")
	}
}

// A guest that gave its token up goes on before its tenant begins another.
func TestBegunGuestsGoFirst(t *testing.T) {
	q := newQueue(1)
	q.push("a", item("a", 1))
	q.push("a", item("a", 2))
	begun, _ := q.pop(nobody)
	begun.resume = make(chan struct{})
	q.push("a", begun)
	q.release("a")
	if it, ok := q.pop(nobody); !ok || it.resume != begun.resume {
		t.Fatalf("popped %+v, %v", it, ok)
	}
}

// A held tenant gets no token, and its being held saves it nothing up: whoever
// comes meanwhile, or is there, is not behind it afterwards, nor far ahead.
func TestHeldTenants(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(200) {
		q.push("held", item("held", i))
	}
	q.pop(nobody)
	q.charge("held", 1e12) // it was alone for long
	q.hold("held")
	q.release("held")
	if it, ok := q.pop(nobody); ok {
		t.Fatalf("a held tenant got a token: %+v", it)
	}
	for i := range uint64(200) {
		q.push("late", item("late", i))
	}
	for range 100 { // late has all cores to itself
		if it, ok := q.pop(nobody); !ok || it.at.ss.key.Tenant != "late" {
			t.Fatalf("popped %+v, %v", it, ok)
		}
		q.end("late", 1_000_000)
	}
	q.admit("held")
	turns := map[string]int{}
	for range 50 {
		it, _ := q.pop(nobody)
		turns[it.at.ss.key.Tenant]++
		q.end(it.at.ss.key.Tenant, 1_000_000)
	}
	if d := turns["held"] - turns["late"]; d < -1 || d > 1 {
		t.Fatalf("turns: %v", turns)
	}
	q.hold("nobody")
	q.admit("nobody")
	if len(q.held) != 0 {
		t.Fatalf("held: %v", q.held)
	}
}

// A tenant that may have one token at a time has one, and what it is behind
// meanwhile gives neither it nor one that comes from idling an advantage.
func TestTokensOfATenantAreBounded(t *testing.T) {
	q := &fairQueue{}
	q.init(3, func(tenant string) int { return map[string]int{"held to one": 1}[tenant] })
	for i := range uint64(100) {
		q.push("held to one", item("held to one", i))
		q.push("busy", item("busy", i))
	}
	running := map[string]int{}
	take := func(n int) {
		for range n {
			if it, ok := q.pop(nobody); ok {
				running[it.at.ss.key.Tenant]++
			}
		}
	}
	take(5)
	if running["held to one"] != 1 || running["busy"] != 2 {
		t.Fatalf("running: %v", running)
	}
	for range 20 {
		q.end("busy", 10_000_000)
		running["busy"]--
		if q.due("held to one", nobody) {
			t.Fatal("due, though a token is free")
		}
		take(1)
		if running["held to one"] != 1 || running["busy"] != 2 {
			t.Fatalf("running: %v", running)
		}
	}
	q.push("late", item("late", 0))
	if late, busy := q.tenants["late"].virtual, q.tenants["busy"].virtual; late != busy {
		t.Errorf("one that comes from idling is at %d, the busy one at %d", late, busy)
	}
	q.end("held to one", 1_000)
	if own, busy := q.tenants["held to one"].virtual, q.tenants["busy"].virtual; own != busy {
		t.Errorf("the bounded tenant is at %d, the busy one at %d", own, busy)
	}
}

func TestSkippedTenantsKeepTheirPlace(t *testing.T) {
	q := newQueue(2)
	q.push("a", item("a", 1))
	q.push("b", item("b", 1))
	it, ok := q.pop(func(tenant string) bool { return tenant == "a" })
	if !ok || it.at.ss.key.Tenant != "b" {
		t.Fatalf("got %+v", it)
	}
	if _, ok := q.pop(func(string) bool { return true }); ok {
		t.Fatal("popped a skipped tenant")
	}
	if it, ok := q.pop(nobody); !ok || it.at.ss.key.Tenant != "a" {
		t.Fatal("a lost its place")
	}
}

func TestTimersGiveTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h timerHeap
		model := map[host.SessionKey]int64{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			key := host.SessionKey{Session: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))}
			at := rapid.Int64Range(-1, 20).Draw(t, "at")
			h.set(key, at)
			if at == host.WakeNever {
				delete(model, key)
			} else {
				model[key] = at
			}
			least := host.WakeNever
			for _, v := range model {
				if least == host.WakeNever || v < least {
					least = v
				}
			}
			key, got, ok := h.first()
			if ok != (len(model) > 0) || ok && (got != least || model[key] != got) {
				t.Fatalf("first gives %v at %d, want %d", key, got, least)
			}
		}
	})
}

func TestDownSinceCountsOverlapsOnly(t *testing.T) {
	s := &Scheduler{down: []interval{{10, 20}, {30, 35}, {50, 60}}}
	for from, want := range map[int64]int64{0: 25, 10: 25, 15: 20, 20: 15, 32: 13, 40: 10, 55: 5, 60: 0, 99: 0} {
		if got := s.downSince(from); got != want {
			t.Errorf("down since %d: %d, want %d", from, got, want)
		}
	}
}

// Work is about to end soon unless it waits behind guests of its own tenant that
// compute for long on all the cores.
func TestWorkThatEndsSoon(t *testing.T) {
	q := &fairQueue{}
	q.init(2, func(string) int { return 0 })
	for range 4 {
		q.push("long", readyItem{at: &attempt{}})
	}
	nobody := func(string) bool { return false }
	for long, want := range []bool{true, true, false} {
		if got := q.soon(); got != want {
			t.Errorf("behind %d guests that compute for long: %v", long, got)
		}
		if _, ok := q.pop(nobody); ok {
			q.tenants["long"].long++
		}
	}
	q.push("short", readyItem{at: &attempt{}})
	if !q.soon() {
		t.Error("another tenant's turn comes soon")
	}
}
