package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// spend appends a batch of spending and the given parts.
func (f *fixture) spend(list []usage.MonthSpent, parts ...host.SessionBatch) {
	f.t.Helper()
	ok(f.t, "Append", f.Append(f.ctx, host.Batch{Epoch: f.epoch, Sessions: parts, Spent: list}))
	for _, p := range parts {
		if p.First > 0 {
			f.last[p.Key] = p.Last
		}
	}
}

func testSpent(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	none, err := f.Spent(f.ctx, "", 0)
	ok(t, "Spent", err)
	same(t, "spent at first", len(none), 0)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	want := map[string]map[usage.Month]usage.Spent{}
	for range 60 {
		var batch []usage.MonthSpent
		for _, tenant := range []string{"a", "b", "c"}[:1+rng.IntN(3)] {
			m := usage.MonthSpent{Tenant: tenant, Month: usage.Month(202610 + rng.IntN(3)),
				Spent: usage.Spent{Runs: uint64(rng.IntN(3)), Fuel: rng.Uint64N(1e15), LogBytes: uint64(rng.IntN(1000))}}
			batch = append(batch, m)
		}
		if rng.IntN(3) == 0 { // a refused batch spends nothing
			bad := f.part("x", 1)
			bad.First, bad.Last = 7, 7
			if err := f.Append(f.ctx, host.Batch{Epoch: f.epoch, Sessions: []host.SessionBatch{bad}, Spent: batch}); err == nil {
				t.Fatal("Append took a gap")
			}
			continue
		}
		f.spend(batch, f.part("chat", 1))
		for _, m := range batch {
			if want[m.Tenant] == nil {
				want[m.Tenant] = map[usage.Month]usage.Spent{}
			}
			sum := want[m.Tenant][m.Month]
			sum.Add(m.Spent)
			want[m.Tenant][m.Month] = sum
		}
	}
	var wanted, since []usage.MonthSpent
	for _, name := range []string{"a", "b", "c"} {
		for month := usage.Month(202610); month <= 202612; month++ {
			if sum, ok := want[name][month]; ok {
				wanted = append(wanted, usage.MonthSpent{Tenant: name, Month: month, Spent: sum})
				if name == "b" && month > 202610 {
					since = append(since, wanted[len(wanted)-1])
				}
			}
		}
	}
	all, err := f.Spent(f.ctx, "", 0)
	ok(t, "Spent", err)
	same(t, "spent", all, wanted)
	some, err := f.Spent(f.ctx, "b", 202611)
	ok(t, "Spent", err)
	same(t, "spent by b since a month", some, since)

	for _, bad := range []usage.MonthSpent{{Month: 202611}, {Tenant: "a"}} {
		if err := f.Append(f.ctx, host.Batch{Epoch: f.epoch, Spent: []usage.MonthSpent{bad}}); err == nil {
			t.Errorf("Append took %+v", bad)
		}
	}

	// The spending is deleted with the tenant, and with nothing else.
	for more := true; more; {
		more, err = f.ClearTenant(f.ctx, "b", 1)
		ok(t, "ClearTenant", err)
	}
	some, err = f.Spent(f.ctx, "b", 0)
	ok(t, "Spent", err)
	same(t, "spent by a tenant that is gone", len(some), 0)
	u, err := f.TenantUsage(f.ctx, "a")
	ok(t, "TenantUsage", err)
	var total usage.Spent
	for _, sum := range want["a"] {
		total.Add(sum)
	}
	same(t, "usage in all", usage.Spent{Runs: u.RunsStarted, Fuel: u.Fuel, LogBytes: u.LogBytes}, total)
	same(t, "months", len(u.Months), len(want["a"]))
	for i := 1; i < len(u.Months); i++ {
		if u.Months[i].Month >= u.Months[i-1].Month {
			t.Errorf("months are not the newest first: %v", u.Months)
		}
	}
}

func testHeld(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	runs := func(want ...usage.RunsHeld) {
		t.Helper()
		got, err := f.RunsHeld(f.ctx)
		ok(t, "RunsHeld", err)
		same(t, "runs", fmt.Sprint(got), fmt.Sprint(want))
	}
	held := func(tenant string, sessions, runs, bytes, wantState int64) {
		t.Helper()
		journal, state, err := f.BytesHeld(f.ctx, tenant)
		ok(t, "BytesHeld", err)
		same(t, "journal of "+tenant, journal, sessions*limit.SessionCharge+runs*limit.RunCharge+bytes)
		same(t, "states of "+tenant, state, wantState)
	}
	runs()
	held("a", 0, 0, 0, 0)

	write := func(tenant, session, data string, state int64, runs []host.Run, started ...string) {
		t.Helper()
		p := f.partOf(host.SessionKey{Tenant: tenant, Session: session}, 1)
		p.Data, p.StateBytes, p.Runs, p.Started = []byte(data), state, runs, started
		f.append(p)
	}
	r := func(tenant, handler string, waiting string) host.Run {
		r := running(handler, "s", 1)
		r.Tenant = tenant
		if waiting != "" {
			r.WaitingFor = []host.Waiting{{Reason: waiting, Since: 1}}
		}
		return r
	}
	a1, a2, a3, b1 := r("a", "h1", ""), r("a", "h2", host.WaitsForTurn), r("a", "h3", host.WaitsForTurn), r("b", "h1", "")
	a1.WaitingFor = []host.Waiting{{Step: "ask", Type: "Answer", Since: 1}} // the run waits, but not for its session's turn
	write("a", "s", "1234567", 100, []host.Run{a1, a2, a3}, a1.RunID, a2.RunID, a3.RunID)
	write("b", "s", "12345", 10, []host.Run{b1}, b1.RunID)
	runs(usage.RunsHeld{Tenant: "a", Active: 1, Waiting: 2}, usage.RunsHeld{Tenant: "b", Active: 1})
	held("a", 1, 3, 7, 100)
	held("b", 1, 1, 5, 10)

	a1.Status, a1.Completed = host.StatusCompleted, 5
	a2.WaitingFor = nil
	write("a", "s", "123", 40, []host.Run{a1, a2})
	write("a", "t", "1", 2, nil)
	runs(usage.RunsHeld{Tenant: "a", Active: 1, Waiting: 1}, usage.RunsHeld{Tenant: "b", Active: 1})
	held("a", 2, 3, 11, 42)

	// A cut frees the rows before a snapshot. A deletion frees everything.
	p := f.partOf(host.SessionKey{Tenant: "a", Session: "s"}, 1)
	p.Data, p.StateBytes, p.Snapshot, p.Cut = []byte("12"), 50, p.First, p.First
	f.append(p)
	held("a", 2, 3, 3, 52)
	f.append(host.SessionBatch{Key: host.SessionKey{Tenant: "a", Session: "t"}, WakeAt: host.WakeNever, Erase: 100})
	held("a", 1, 3, 2, 50)
	held("b", 1, 1, 5, 10)

	versions, bytes, err := f.PluginsHeld(f.ctx, "c")
	ok(t, "PluginsHeld", err)
	same(t, "plugins of nobody", fmt.Sprint(versions, bytes), "0 0")
	f.fill("c")
	versions, bytes, err = f.PluginsHeld(f.ctx, "c")
	ok(t, "PluginsHeld", err)
	same(t, "plugins", fmt.Sprint(versions, bytes), "2 30")
}
