package fair

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// thing is what waits in the tests.
type thing struct {
	tenant string
	n      uint64
}

func newQueue(tokens int) *Queue[thing] {
	q := &Queue[thing]{}
	q.Init(tokens, func(string) int { return 0 })
	return q
}

func nobody(string) bool { return false }

func item(tenant string, n uint64) Item[thing] {
	return Item[thing]{Of: thing{tenant, n}, Place: Place{Class: New}}
}

func TestATenantsAttemptsStartInOrder(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(3000) {
		q.Push("a", item("a", i))
	}
	for i := range uint64(3000) {
		it, ok := q.Pop(nobody)
		if !ok || it.Of.n != i {
			t.Fatalf("pop %d gave %+v, %v", i, it, ok)
		}
		if _, ok := q.Pop(nobody); ok {
			t.Fatal("more guests than tokens")
		}
		q.end("a", 1_000_000)
	}
	if len(q.tenants) != 0 {
		t.Fatal("an idle tenant with nothing to remember stays")
	}
}

// end charges what a run burnt and gives its token back.
func (q *Queue[thing]) end(tenant string, units uint64) {
	q.Charge(tenant, units)
	q.Release(tenant)
}

// A tenant with a long queue of long steps gets its share and no more: one that
// comes with short steps waits for one of them at most.
func TestTokensAreSharedByUnits(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(10_000) {
		q.Push("noisy", item("noisy", i))
		q.Push("quiet", item("quiet", i))
	}
	burnt := map[string]int{}
	cost := map[string]uint64{"noisy": 10_000_000, "quiet": 1_000_000}
	for range 5_000 {
		it, ok := q.Pop(nobody)
		if !ok {
			t.Fatal("a token is idle while attempts are ready")
		}
		tenant := it.Of.tenant
		burnt[tenant] += int(cost[tenant]) + StartCost
		q.end(tenant, cost[tenant])
		if d := burnt["noisy"] - burnt["quiet"]; d > 10_000_000+StartCost || d < -10_000_000-StartCost {
			t.Fatalf("shares are %d units apart", d)
		}
	}
}

func TestNobodySavesUpIdleness(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(1000) {
		q.Push("busy", item("busy", i))
	}
	for range 500 {
		q.Pop(nobody)
		q.end("busy", 1_000_000)
	}
	for i := range uint64(100) {
		q.Push("late", item("late", i))
	}
	var order []string
	for range 20 {
		it, _ := q.Pop(nobody)
		order = append(order, it.Of.tenant)
		q.end(it.Of.tenant, 1_000_000)
	}
	if n := len(slices.DeleteFunc(order, func(s string) bool { return s == "late" })); n < 9 {
		t.Fatalf("a tenant that was idle took %d of 20 turns in a row", 20-n)
	}
}

func TestDueSaysWhenAnotherTenantIsATurnBehind(t *testing.T) {
	q := newQueue(1)
	q.Push("a", item("a", 1))
	q.Pop(nobody)
	q.Charge("a", 1e9)
	if q.Due("a", nobody) {
		t.Fatal("nobody waits")
	}
	q.Push("a", item("a", 2))
	if q.Due("a", nobody) {
		t.Fatal("a tenant does not give way to itself")
	}
	q.Push("b", item("b", 1))
	if q.Charge("a", Turn-1); q.Due("a", nobody) {
		t.Fatal("b came just now, and is less than a turn behind")
	}
	if q.Charge("a", 1); !q.Due("a", nobody) {
		t.Fatal("b is a turn behind and waits")
	}
	if q.Due("a", func(tenant string) bool { return tenant == "b" }) {
		t.Fatal("b could do nothing with a token")
	}
	if q.Hold("b"); q.Due("a", nobody) {
		t.Fatal("b is held")
	}
}

// A guest that gave its token up goes on before its tenant begins another.
func TestBegunGuestsGoFirst(t *testing.T) {
	q := newQueue(1)
	q.Push("a", item("a", 1))
	q.Push("a", item("a", 2))
	begun, _ := q.Pop(nobody)
	begun.Resume = make(chan struct{})
	q.Push("a", begun)
	q.Release("a")
	if it, ok := q.Pop(nobody); !ok || it.Resume != begun.Resume {
		t.Fatalf("popped %+v, %v", it, ok)
	}
}

// A held tenant gets no token, and its being held saves it nothing up: whoever
// comes meanwhile, or is there, is not behind it afterwards, nor far ahead.
func TestHeldTenants(t *testing.T) {
	q := newQueue(1)
	for i := range uint64(200) {
		q.Push("held", item("held", i))
	}
	q.Pop(nobody)
	q.Charge("held", 1e12) // it was alone for long
	q.Hold("held")
	q.Release("held")
	if it, ok := q.Pop(nobody); ok {
		t.Fatalf("a held tenant got a token: %+v", it)
	}
	for i := range uint64(200) {
		q.Push("late", item("late", i))
	}
	for range 100 { // late has all cores to itself
		if it, ok := q.Pop(nobody); !ok || it.Of.tenant != "late" {
			t.Fatalf("popped %+v, %v", it, ok)
		}
		q.end("late", 1_000_000)
	}
	q.Admit("held")
	turns := map[string]int{}
	for range 50 {
		it, _ := q.Pop(nobody)
		turns[it.Of.tenant]++
		q.end(it.Of.tenant, 1_000_000)
	}
	if d := turns["held"] - turns["late"]; d < -1 || d > 1 {
		t.Fatalf("turns: %v", turns)
	}
	q.Hold("nobody")
	q.Admit("nobody")
	if len(q.held) != 0 {
		t.Fatalf("held: %v", q.held)
	}
}

// A tenant that may have one token at a time has one, and what it is behind
// meanwhile gives neither it nor one that comes from idling an advantage.
func TestTokensOfATenantAreBounded(t *testing.T) {
	q := &Queue[thing]{}
	q.Init(3, func(tenant string) int { return map[string]int{"held to one": 1}[tenant] })
	for i := range uint64(100) {
		q.Push("held to one", item("held to one", i))
		q.Push("busy", item("busy", i))
	}
	running := map[string]int{}
	take := func(n int) {
		for range n {
			if it, ok := q.Pop(nobody); ok {
				running[it.Of.tenant]++
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
		if q.Due("held to one", nobody) {
			t.Fatal("due, though a token is free")
		}
		take(1)
		if running["held to one"] != 1 || running["busy"] != 2 {
			t.Fatalf("running: %v", running)
		}
	}
	q.Push("late", item("late", 0))
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
	q.Push("a", item("a", 1))
	q.Push("b", item("b", 1))
	it, ok := q.Pop(func(tenant string) bool { return tenant == "a" })
	if !ok || it.Of.tenant != "b" {
		t.Fatalf("got %+v", it)
	}
	if _, ok := q.Pop(func(string) bool { return true }); ok {
		t.Fatal("popped a skipped tenant")
	}
	if it, ok := q.Pop(nobody); !ok || it.Of.tenant != "a" {
		t.Fatal("a lost its place")
	}
}

func TestTimersGiveTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Timers[string]
		model := map[string]int64{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))
			at := rapid.Int64Range(-1, 20).Draw(t, "at")
			h.Set(key, at)
			if at == int64(-1) {
				delete(model, key)
			} else {
				model[key] = at
			}
			least := int64(-1)
			for _, v := range model {
				if least == int64(-1) || v < least {
					least = v
				}
			}
			key, got, ok := h.First()
			if ok != (len(model) > 0) || ok && (got != least || model[key] != got) {
				t.Fatalf("first gives %v at %d, want %d", key, got, least)
			}
		}
	})
}

// Work is about to end soon unless it waits behind guests of its own tenant that
// compute for long on all the cores.
func TestWorkThatEndsSoon(t *testing.T) {
	q := &Queue[thing]{}
	q.Init(2, func(string) int { return 0 })
	for range 4 {
		q.Push("long", Item[thing]{Place: Place{Class: New}})
	}
	nobody := func(string) bool { return false }
	for long, want := range []bool{true, true, false} {
		if got := q.Soon(); got != want {
			t.Errorf("behind %d guests that compute for long: %v", long, got)
		}
		if _, ok := q.Pop(nobody); ok {
			q.tenants["long"].long++
		}
	}
	q.Push("short", Item[thing]{Place: Place{Class: New}})
	if !q.Soon() {
		t.Error("another tenant's turn comes soon")
	}
}

// What the host does to load a session counts, counted in entries and bytes, as long
// as there is somebody to be ahead of.
func TestLoadingCounts(t *testing.T) {
	q := newQueue(1)
	if q.Owe("a", 1000); len(q.tenants) != 0 {
		t.Error("nobody is busy, and a is ahead of nobody")
	}
	q.Push("b", item("b", 1))
	q.Push("b", item("b", 2))
	q.Owe("a", 1000)
	q.Push("a", item("a", 1))
	var order []string
	for range 3 {
		it, _ := q.Pop(nobody)
		order = append(order, it.Of.tenant)
		q.Release(it.Of.tenant)
	}
	if fmt.Sprint(order) != "[b a b]" || len(q.tenants) != 0 {
		t.Errorf("%v, then %v", order, q.tenants)
	}
}
