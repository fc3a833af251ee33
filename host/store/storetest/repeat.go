package storetest

import (
	"fmt"
	"testing"

	"github.com/weftrun/weft/host"
)

func testRepeats(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	_, err := f.Repeat(f.ctx, tenant, "r", "k")
	missing(t, "request", err)
	for i := range 5 {
		p := f.partOf(host.SessionKey{Tenant: tenant, Session: fmt.Sprint("s", i)}, 1)
		p.Repeats = []host.Repeat{{Route: "r", Key: fmt.Sprint("k", i), Hash: "h", RunID: fmt.Sprint("run", i), Made: int64(10 * i)}}
		f.append(p)
	}
	other := f.partOf(host.SessionKey{Tenant: "other", Session: "s"}, 1)
	other.Repeats = []host.Repeat{{Route: "r", Key: "k0", RunID: "theirs", Made: 100}, {Route: "q", Key: "k0", RunID: "elsewhere", Made: 100}}
	f.append(other)
	for i := range 5 {
		got, err := f.Repeat(f.ctx, tenant, "r", fmt.Sprint("k", i))
		ok(t, "Repeat", err)
		same(t, "Repeat", got, host.Repeat{Route: "r", Key: fmt.Sprint("k", i), Hash: "h", RunID: fmt.Sprint("run", i), Made: int64(10 * i)})
	}
	got, err := f.Repeat(f.ctx, "other", "q", "k0")
	ok(t, "Repeat", err)
	same(t, "Repeat of another route", got.RunID, "elsewhere")
	for _, name := range [][3]string{{tenant, "q", "k0"}, {tenant, "r", "K0"}, {"nobody", "r", "k0"}} {
		_, err := f.Repeat(f.ctx, name[0], name[1], name[2])
		missing(t, fmt.Sprint("request ", name), err)
	}

	// A later request with the same key replaces the earlier one. A refused batch leaves
	// nothing.
	p := f.part("s0", 1)
	p.Repeats = []host.Repeat{{Route: "r", Key: "k0", Hash: "new", RunID: "later", Made: 50}}
	f.append(p)
	p = f.part("s0", 1)
	p.Repeats = []host.Repeat{{Route: "r", Key: "k1", RunID: "never"}}
	p.Started = []string{"unknown"}
	f.refused(p)
	got, err = f.Repeat(f.ctx, tenant, "r", "k0")
	ok(t, "Repeat", err)
	same(t, "Repeat", got, host.Repeat{Route: "r", Key: "k0", Hash: "new", RunID: "later", Made: 50})
	got, err = f.Repeat(f.ctx, tenant, "r", "k1")
	ok(t, "Repeat", err)
	same(t, "Repeat", got.RunID, "run1")

	for _, c := range []struct {
		before int64
		limit  int
		want   int
	}{{10, 10, 0}, {40, 2, 2}, {40, 2, 1}, {40, 2, 0}} {
		n, err := f.ForgetRepeats(f.ctx, c.before, c.limit)
		ok(t, "ForgetRepeats", err)
		same(t, fmt.Sprintf("ForgetRepeats(%d, %d)", c.before, c.limit), n, c.want)
	}
	_, err = f.Repeat(f.ctx, tenant, "r", "k2")
	missing(t, "request", err)
	_, err = f.Repeat(f.ctx, tenant, "r", "k4")
	ok(t, "Repeat", err)
}
