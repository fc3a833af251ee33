package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weftrun/weft/host"
)

// at appends a part with entries only. Its last entry has the given time.
func (f *fixture) at(session string, n int, at int64) {
	f.t.Helper()
	p := f.part(session, n)
	p.At = at
	f.append(p)
}

// testSessionInfo: sessions are listed, newest first, whether runs are in them or not.
func testSessionInfo(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	_, err := f.Session(f.ctx, host.SessionKey{Tenant: tenant, Session: "none"})
	missing(t, "Session", err)
	list, _, err := f.Sessions(f.ctx, host.SessionQuery{Tenant: tenant, Limit: 10})
	if err != nil || len(list) != 0 {
		t.Errorf("Sessions of nobody = %+v, %v", list, err)
	}
	for i := range 7 {
		f.at(fmt.Sprint("s", i), 1+i, int64(100+i))
	}
	theirs := f.partOf(host.SessionKey{Tenant: "them", Session: "s3"}, 1)
	f.append(theirs)
	p := f.part("s2", 1)
	one, two := running("h", "s2", 200), completed("i", "s2", 201, 202)
	p.Runs, p.Started, p.At = []host.Run{one, two}, []string{one.RunID, two.RunID}, 202
	f.append(p)
	f.ran("s2", completed("i", "s2", 203, 204))
	f.at("s2", 3, 300)

	info, err := f.Session(f.ctx, host.SessionKey{Tenant: tenant, Session: "s2"})
	ok(t, "Session", err)
	if info.Order == 0 {
		t.Error("it has no place in the order")
	}
	same(t, "Session", info, host.SessionInfo{Tenant: tenant, SessionID: "s2", Order: info.Order, Created: 102, Updated: 300, Runs: 3, Active: 1})

	for _, limit := range []int{1, 3, 100} {
		q, names := host.SessionQuery{Tenant: tenant, Limit: limit}, ""
		for {
			page, more, err := f.Sessions(f.ctx, q)
			ok(t, "Sessions", err)
			if len(page) > limit {
				t.Fatalf("a page of %d, limit %d", len(page), limit)
			}
			for _, i := range page {
				names += i.SessionID
				if i.SessionID == "s2" {
					same(t, "Sessions", i, info)
				}
			}
			if !more {
				break
			}
			q.Before = page[len(page)-1].Order
		}
		if names != "s6s5s4s3s2s1s0" {
			t.Errorf("sessions %s", names)
		}
	}
}

// testErase: a session is deleted with everything it has, piece by piece, and nothing
// else is deleted. While a part of the session is left, the session cannot be seen or
// begun again.
func testErase(t *testing.T, open func(t *testing.T) host.Store) {
	for _, rows := range []int{1, 3, 1 << 20} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) { erase(t, claimed(t, open), rows) })
	}
}

func erase(t *testing.T, f *fixture, rows int) {
	key := host.SessionKey{Tenant: tenant, Session: "s"}
	for i := range 4 {
		f.ran("s", completed("h", "s", int64(1+i), int64(10+i)))
		f.ran("s", completed(fmt.Sprint("h", i), "s", int64(1+i), int64(10+i)))
	}
	p := f.part("s", 1)
	p.Versions = []host.VersionUse{{Digest: "0123abcd", Seq: p.First}}
	p.Repeats = []host.Repeat{{Route: "r", Key: "k", Hash: "h", RunID: "h@1", Made: 1}}
	f.append(p)
	f.at("s", 5, 50)
	f.ran("other", completed("o", "other", 1, 2))
	before, err := f.Session(f.ctx, host.SessionKey{Tenant: tenant, Session: "other"})
	ok(t, "Session", err)

	steps := 0
	for {
		f.append(host.SessionBatch{Key: key, Erase: rows})
		steps++
		_, err := f.LoadSession(f.ctx, key)
		if errors.Is(err, host.ErrNotFound) {
			break
		}
		if !errors.Is(err, host.ErrErasing) || steps > 1000 {
			t.Fatalf("LoadSession after %d steps: %v", steps, err)
		}
		f.hidden(key)
	}
	if most := map[int]int{1: 1000, 3: 30, 1 << 20: 1}[rows]; steps > most {
		t.Errorf("%d steps", steps)
	}
	f.gone(key, "h", "h0", "h1", "h2", "h3")
	f.append(host.SessionBatch{Key: key, Erase: rows}) // of a session that does not exist

	after, err := f.Session(f.ctx, host.SessionKey{Tenant: tenant, Session: "other"})
	ok(t, "Session", err)
	same(t, "another session", after, before)
	events, err := wholeStream(f.ctx, f, tenant, "o", -1, 10)
	if err != nil || len(events) != 3 {
		t.Errorf("another's stream has %d events, %v", len(events), err)
	}

	f.last[key] = 0
	f.at("s", 2, 70)
	f.ran("s", completed("h", "s", 80, 90))
	info, err := f.Session(f.ctx, key)
	if err != nil || info.Created != 70 || info.Runs != 1 {
		t.Errorf("the next one of the name: %+v, %v", info, err)
	}
	versions, err := f.SessionVersions(f.ctx, key)
	if err != nil || len(versions) != 0 {
		t.Errorf("it needs %v, %v", versions, err)
	}
}

// hidden expects that no method shows a session that is being deleted.
func (f *fixture) hidden(key host.SessionKey) {
	f.t.Helper()
	_, err := f.Session(f.ctx, key)
	missing(f.t, "Session", err)
	_, err = f.History(f.ctx, key, 1<<40, 0, 10)
	missing(f.t, "History", err)
	_, err = f.SessionVersions(f.ctx, key)
	missing(f.t, "SessionVersions", err)
	list, _, err := f.Sessions(f.ctx, host.SessionQuery{Tenant: key.Tenant, Limit: 100})
	ok(f.t, "Sessions", err)
	for _, i := range list {
		if i.SessionID == key.Session {
			f.t.Errorf("it is listed: %+v", i)
		}
	}
	due, _, err := f.Due(f.ctx, 1, 10)
	if err != nil || len(due) != 1 || due[0] != key {
		f.t.Errorf("Due = %v, %v: the owner must finish the deletion that has begun", due, err)
	}
	fresh := f.part(key.Session, 1)
	fresh.First, fresh.Last = 1, 1
	f.refused(fresh)
	f.refused(f.part(key.Session, 1))
}

// gone expects that nothing is left of a session and its handlers.
func (f *fixture) gone(key host.SessionKey, handlers ...string) {
	f.t.Helper()
	_, err := f.Session(f.ctx, key)
	missing(f.t, "Session", err)
	for _, h := range handlers {
		_, err := f.Handler(f.ctx, key.Tenant, h)
		missing(f.t, "Handler", err)
		_, err = f.Stream(f.ctx, key.Tenant, h, -1, 10)
		missing(f.t, "Stream", err)
	}
	for i := range 4 {
		_, err = f.Run(f.ctx, key.Tenant, fmt.Sprintf("h@%d", 1+i))
		missing(f.t, "Run", err)
	}
	due, _, err := f.Due(f.ctx, 1<<62, 10)
	if err != nil || len(due) != 0 {
		f.t.Errorf("Due = %v, %v", due, err)
	}
}
