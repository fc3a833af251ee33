package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// relay stands between a store and PostgreSQL, and breaks connections when a test says so.
type relay struct {
	listener net.Listener
	server   string
	// lose breaks the next connection that brings an answer, before the store has it.
	// block breaks the next connection that brings a request, before PostgreSQL has it.
	lose, block atomic.Bool
	all         sync.WaitGroup
}

// through returns the URL of a relay to the server of a URL.
func through(t *testing.T, address string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, server: u.Host}
	r.all.Go(r.serve)
	t.Cleanup(func() {
		_ = l.Close()
		r.all.Wait()
	})
	u.Host = l.Addr().String()
	return r, u.String()
}

func (r *relay) serve() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.all.Go(func() { pass(server, client, &r.block) })
		r.all.Go(func() { pass(client, server, &r.lose) })
	}
}

// pass copies from one to the other, until the switch is on: then it closes both.
func pass(to, from net.Conn, broken *atomic.Bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && broken.CompareAndSwap(true, false) {
			return
		}
		if _, writeErr := to.Write(buf[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// row is a batch with the next entry of a session.
func row(epoch uint64, n uint64) host.Batch {
	return host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{
		Key: host.SessionKey{Tenant: "t", Session: "s"}, First: n, Last: n, Data: fmt.Append(nil, n), WakeAt: host.WakeNever,
	}}}
}

// wantRows expects the session to have each entry once.
func wantRows(t *testing.T, s *Store, n uint64) {
	t.Helper()
	stored, err := s.LoadSession(t.Context(), host.SessionKey{Tenant: "t", Session: "s"})
	if err != nil || stored.Last != n || len(stored.Rows) != int(n) {
		t.Fatalf("the session is at %d with %d rows, want %d: %v", stored.Last, len(stored.Rows), n, err)
	}
	for i, data := range stored.Rows {
		if string(data) != strconv.Itoa(i+1) {
			t.Fatalf("row %d is %q", i+1, data)
		}
	}
}

// A value is written although the connection breaks before PostgreSQL has a request of the
// transaction, or before the store has an answer.
func TestChangeOfABrokenConnection(t *testing.T) {
	r, address := through(t, newDatabase(t))
	s := mustOpen(t, address)
	for i, broken := range []*atomic.Bool{&r.block, &r.lose, &r.block} {
		value := fmt.Append(nil, i)
		broken.Store(true)
		if err := s.SetMeta(t.Context(), "key", value); err != nil {
			t.Errorf("write %d: %v", i, err)
		}
		if got, err := s.Meta(t.Context(), "key"); err != nil || !bytes.Equal(got, value) {
			t.Errorf("value %d = %q, %v", i, got, err)
		}
	}
}

// A batch whose answer is lost is there once, and a batch that did not arrive is sent
// again: in both cases the append succeeds.
func TestLostAnswers(t *testing.T) {
	relay, url := through(t, newDatabase(t))
	s := mustOpen(t, url)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(12) {
		switch n % 4 {
		case 1:
			relay.lose.Store(true)
		case 3:
			relay.block.Store(true)
		}
		if err := s.Append(t.Context(), row(epoch, n+1)); err != nil {
			t.Fatalf("Append %d: %v", n+1, err)
		}
		relay.lose.Store(false)
		relay.block.Store(false)
		wantRows(t, s, n+1)
	}
	if s.Stalled() {
		t.Error("the store still waits")
	}
}

// An owner that was fenced while the outcome of a batch was unknown gets ErrFenced, if
// the batch was not committed.
func TestFencedWhileUnknown(t *testing.T) {
	database := newDatabase(t)
	relay, url := through(t, database)
	a, b := mustOpen(t, url), mustOpen(t, database)
	epoch, err := a.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay.block.Store(true)
	if err := a.Append(t.Context(), row(epoch, 2)); !errors.Is(err, host.ErrFenced) {
		t.Fatalf("Append = %v, want ErrFenced", err)
	}
	wantRows(t, b, 1)
}

// A number that is behind what was committed shows that PostgreSQL has lost commits.
func TestStoreWentBack(t *testing.T) {
	s := mustOpen(t, newDatabase(t))
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) {
		if err := s.Append(t.Context(), row(epoch, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE pulse SET batch = 1"); err != nil {
		t.Fatal(err)
	}
	err = s.Append(t.Context(), row(epoch, 4))
	if err == nil || errors.Is(err, host.ErrNotCommitted) || errors.Is(err, host.ErrFenced) || !strings.Contains(err.Error(), "lost commits") {
		t.Fatalf("Append = %v", err)
	}
}

// An epoch's number that was given out again, after a failover that lost its first owner,
// is not that owner's: the random mark tells them apart.
func TestEpochOfAnother(t *testing.T) {
	s := mustOpen(t, newDatabase(t))
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE pulse SET mark = mark + 1"); err != nil {
		t.Fatal(err)
	}
	err = s.Append(t.Context(), row(epoch, 2))
	if err == nil || errors.Is(err, host.ErrNotCommitted) || !strings.Contains(err.Error(), "lost commits") {
		t.Fatalf("Append = %v", err)
	}
	wantRows(t, s, 1)
}

// An owner writes only to the partitions that it has.
func TestPartitionOfAnother(t *testing.T) {
	s := mustOpen(t, newDatabase(t))
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE partitions SET epoch = NULL WHERE part = $1", partition("t", "s")); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), row(epoch, 2)); err == nil || codeOf(err) != codePartition {
		t.Fatalf("Append = %v, want %s", err, codePartition)
	}
	wantRows(t, s, 1)
}

// kills is how often TestCrashes kills PostgreSQL.
func kills(t *testing.T) int {
	n := 3
	if text := os.Getenv("WEFT_KILLS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("WEFT_KILLS: %v", err)
		}
	}
	return n
}

// PostgreSQL is killed under a writer: the writer's appends wait and go on, and each batch
// is there once.
func TestCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server of its own")
	}
	server := pgtest.Own(t)
	s := mustOpen(t, server.URL)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var acknowledged atomic.Uint64
	var writer sync.WaitGroup
	some := make(chan struct{}, 1)
	writer.Go(func() {
		defer close(some)
		for n := uint64(1); ; {
			select {
			case <-stop:
				return
			default:
			}
			err := s.Append(t.Context(), row(epoch, n))
			if err != nil && !errors.Is(err, host.ErrNotCommitted) {
				t.Errorf("Append %d: %v", n, err)
				return
			}
			if err == nil {
				acknowledged.Store(n)
				n++
			}
			select {
			case some <- struct{}{}:
			default:
			}
		}
	})
	for i := range kills(t) {
		for before := acknowledged.Load(); acknowledged.Load() < before+20; {
			if _, writing := <-some; !writing {
				break
			}
		}
		if i%3 == 2 {
			server.Down(t)
		} else {
			server.Crash(t)
		}
		server.Again(t)
	}
	close(stop)
	writer.Wait()
	wantRows(t, s, acknowledged.Load())
	t.Logf("%d batches", acknowledged.Load())
}
