package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/cluster/clustertest"
)

// member is a node with its own connections.
type member struct {
	*Members
	place cluster.Place
	url   string
}

// openShared opens the store of a node, to write by its entry if place is not nil.
func openShared(t *testing.T, url string, place *cluster.Place) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, Options{Shared: true, Place: place})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// join makes a node.
func join(t *testing.T, url, name string) *member {
	t.Helper()
	m := &member{Members: openShared(t, url, nil).Members(), url: url}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	var err error
	if m.place, err = m.Join(t.Context(), selfOf(name)); err != nil {
		t.Fatal(err)
	}
	return m
}

func selfOf(name string) cluster.Self {
	return cluster.Self{Name: name, URL: "https://" + name + ":1", Key: []byte(name), Version: "test", Lease: 2 * time.Second}
}

// seen returns the entry of another node as a node sees it.
func (m *member) seen(t *testing.T, other *member) cluster.Info {
	t.Helper()
	v := m.beats(t)
	i := v.Node(other.place.Epoch)
	if i == nil {
		t.Fatalf("there is no entry %d", other.place.Epoch)
	}
	return *i
}

func (m *member) beats(t *testing.T) cluster.View {
	t.Helper()
	v, err := m.Beat(t.Context(), m.place)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// takes makes the node the owner, and returns its store.
func (m *member) takes(t *testing.T) (*Store, uint64) {
	t.Helper()
	if taken, err := m.Take(t.Context(), m.place); err != nil || !taken {
		t.Fatalf("taken %t, %v", taken, err)
	}
	s := openShared(t, m.url, &m.place)
	epoch, err := s.Claim(t.Context())
	if err != nil || epoch != m.place.Epoch {
		t.Fatalf("epoch %d, %v", epoch, err)
	}
	return s, epoch
}

// closes closes another node as a silent one.
func (m *member) closes(t *testing.T, other *member) {
	t.Helper()
	if fenced, err := m.Fence(t.Context(), m.place, m.seen(t, other)); err != nil || !fenced {
		t.Fatalf("closed %t, %v", fenced, err)
	}
}

// entryOf is a batch with an entry of a session.
func entryOf(epoch, position uint64) host.Batch {
	return host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{
		Key: host.SessionKey{Tenant: "t", Session: "s"}, First: position, Last: position, Data: []byte("entry"), WakeAt: host.WakeNever, At: int64(position)}}}
}

// peer is a node of the suite. It commits entries of sessions of their own.
type peer struct {
	*member
	t      *testing.T
	stores map[cluster.Place]*Store
	commit *atomic.Int64
}

func (p *peer) Commit(ctx context.Context, place cluster.Place) error {
	s := p.stores[place]
	if s == nil {
		s = openShared(p.t, p.url, &place)
		if _, err := s.Claim(ctx); err != nil {
			return err
		}
		p.stores[place] = s
	}
	b := entryOf(place.Epoch, 1)
	b.Sessions[0].Key.Session = fmt.Sprint(p.commit.Add(1))
	return s.Append(ctx, b)
}

func TestMembers(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) func() clustertest.Peer {
		url, commits := newDatabase(t), new(atomic.Int64)
		return func() clustertest.Peer {
			m := openShared(t, url, nil).Members()
			t.Cleanup(func() { must(t, m.Close()) })
			return &peer{&member{Members: m, url: url}, t, map[cluster.Place]*Store{}, commits}
		}
	})
}

// Only the owner commits. A node that was closed commits nothing more, neither entries nor
// names, whatever it believes, and cannot close others.
func TestClosedNodeWritesNothing(t *testing.T) {
	url := newDatabase(t)
	a, b := join(t, url, "a"), join(t, url, "b")
	ctx := t.Context()
	s, epoch := a.takes(t)
	if err := s.Append(ctx, entryOf(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.SetMeta(ctx, "name", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if taken, err := b.Take(ctx, b.place); err != nil || taken {
		t.Fatalf("a second owner: %t, %v", taken, err)
	}
	stranger := openShared(t, url, &b.place)
	if _, err := stranger.Claim(ctx); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a node that does not own the sessions claims them: %v", err)
	}
	b.closes(t, a)
	if err := s.Append(ctx, entryOf(epoch, 2)); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a closed node appends: %v", err)
	}
	if err := s.SetMeta(ctx, "name", []byte("again a")); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a closed node changes names: %v", err)
	}
	if _, err := a.Beat(ctx, a.place); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a closed node beats: %v", err)
	}
	if _, err := a.Fence(ctx, a.place, b.seen(t, b)); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a closed node closes another: %v", err)
	}
	if _, err := a.Take(ctx, a.place); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a closed node takes the sessions: %v", err)
	}
	next, epoch := b.takes(t)
	if err := next.Append(ctx, entryOf(epoch, 2)); err != nil {
		t.Error(err)
	}
	if v := b.beats(t); v.Owner != epoch || v.Free() || len(v.Nodes) != 1 {
		t.Errorf("the table is %+v", v)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The lock of the beats' connection says whether the connection stands.
func TestConnected(t *testing.T) {
	url := newDatabase(t)
	a, b := join(t, url, "a"), join(t, url, "b")
	a.beats(t)
	if !b.seen(t, a).Connected {
		t.Error("a connection that stands is not seen")
	}
	must(t, a.Close())
	for b.seen(t, a).Connected { // PostgreSQL notices the end a moment later
	}
	a.beats(t)
	if !b.seen(t, a).Connected {
		t.Error("a new connection is not seen")
	}
}

// A node that was stopped in the middle of a transaction holds rows that others need. It is
// closed all the same, and its transaction is not committed.
func TestStoppedNodeIsClosed(t *testing.T) {
	url := newDatabase(t)
	a, b := join(t, url, "a"), join(t, url, "b")
	s, _ := a.takes(t)
	ctx := t.Context()
	for name, hold := range map[string]string{
		"in a commit":          `UPDATE pulse SET batch = batch + 1 WHERE epoch = $1`,
		"in a change of names": `UPDATE store SET map = map WHERE $1::bigint > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			if owner := b.beats(t).Owner; owner != a.place.Epoch {
				var err error
				b.closesOwner(t, owner)
				a.place, err = a.Join(ctx, selfOf("a"))
				must(t, err)
				s, _ = a.takes(t)
			}
			tx, err := s.pool.Begin(ctx)
			must(t, err)
			_, err = tx.Exec(ctx, hold, int64(a.place.Epoch))
			must(t, err)
			b.closes(t, a)
			if err := tx.Commit(context.WithoutCancel(ctx)); err == nil {
				t.Error("the transaction of the closed node was committed")
			}
			b.takes(t)
			if v := b.beats(t); v.Owner != b.place.Epoch {
				t.Errorf("the owner is %d", v.Owner)
			}
		})
	}
}

// closesOwner gives the own sessions up, if the node has them.
func (m *member) closesOwner(t *testing.T, owner uint64) {
	t.Helper()
	if owner == m.place.Epoch {
		must(t, m.Release(t.Context(), m.place))
	}
}

// Nodes see the settings of other nodes. Of a node whose entry holds none that can be read,
// they see none.
func TestSettingsOfNodes(t *testing.T) {
	url := newDatabase(t)
	a := join(t, url, "a")
	self := selfOf("b")
	self.Settings = map[string]string{"--limits": "1234abcd", "--resources": "00000000"}
	b := openShared(t, url, nil)
	members := b.Members()
	t.Cleanup(func() { _ = members.Close() })
	place, err := members.Join(t.Context(), self)
	must(t, err)
	find := func() *cluster.Info {
		v := a.beats(t)
		return v.Node(place.Epoch)
	}
	if got := find(); got == nil || !maps.Equal(got.Settings, self.Settings) {
		t.Errorf("the entry is %+v", got)
	}
	for _, damaged := range []string{"", "{", `[1]`, `{"--limits": 7}`} {
		_, err := b.pool.Exec(t.Context(), `UPDATE nodes SET settings = $1 WHERE epoch = $2`, damaged, int64(place.Epoch))
		must(t, err)
		if got := find(); got == nil || got.Settings != nil {
			t.Errorf("of %q the entry is %+v", damaged, got)
		}
	}
}

// A server that has the store to itself and nodes of a cluster keep each other away.
func TestExclusiveServerBesideNodes(t *testing.T) {
	url := newDatabase(t)
	alone, err := Open(t.Context(), url, Options{Exclusive: true})
	must(t, err)
	if _, err := Open(t.Context(), url, Options{Shared: true}); !errors.Is(err, ErrInUse) {
		t.Errorf("a node beside a server that has the store to itself: %v", err)
	}
	_, err = alone.Claim(t.Context())
	must(t, err)
	must(t, alone.Close())
	a := join(t, url, "a") // also closes the entry of the server that is gone
	if _, err := Open(t.Context(), url, Options{Exclusive: true}); !errors.Is(err, ErrInUse) {
		t.Errorf("a server that would have the store to itself beside a node: %v", err)
	}
	a.takes(t)
}

// A node is drained if another one is left that is not. It is so under a new entry too, until
// it takes the sessions, or the operator takes it back.
func TestDrainedNode(t *testing.T) {
	url := newDatabase(t)
	a := join(t, url, "a")
	wantCode := func(err error, want host.Code) {
		t.Helper()
		if host.CodeOf(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	wantDrained := func(want bool) {
		t.Helper()
		v := a.beats(t)
		if i := v.Node(a.place.Epoch); i == nil || i.Drained != want {
			t.Errorf("entry %+v, want drained %t", i, want)
		}
	}
	ctx := t.Context()
	wantCode(a.Drain(ctx, a.place, "a", true), host.CodeFailedPrecondition)
	wantDrained(false)
	b := join(t, url, "b")
	wantCode(b.Drain(ctx, b.place, "c", true), host.CodeNotFound)
	must(t, b.Drain(ctx, b.place, "a", true))
	wantDrained(true)
	wantCode(b.Drain(ctx, b.place, "b", true), host.CodeFailedPrecondition)
	must(t, b.Drain(ctx, b.place, "a", false))
	wantDrained(false)
	must(t, a.Leave(ctx, a.place))
	wantCode(b.Drain(ctx, b.place, "a", true), host.CodeNotFound)
	if err := a.Drain(ctx, a.place, "b", true); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a node without an entry drains another: %v", err)
	}
	self := selfOf("a")
	self.Drained = true
	var err error
	a.place, err = a.Join(ctx, self)
	must(t, err)
	wantDrained(true)
	a.takes(t)
	wantDrained(false)
}

// Entries that have ended do not pile up.
func TestTableIsSmall(t *testing.T) {
	url := newDatabase(t)
	m := join(t, url, "a")
	for range keptEpochs + 20 {
		must(t, m.Leave(t.Context(), m.place))
		var err error
		m.place, err = m.Join(t.Context(), selfOf("a"))
		must(t, err)
	}
	var nodes, pulses int
	must(t, pgx.BeginFunc(t.Context(), m.store.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM pulse)`).Scan(&nodes, &pulses)
	}))
	if nodes > keptEpochs+5 || pulses > keptEpochs+5 {
		t.Errorf("%d nodes and %d pulses are kept", nodes, pulses)
	}
}
