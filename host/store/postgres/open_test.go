package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// wantRefused expects that a store cannot be opened, for the given reason.
func wantRefused(t *testing.T, address, reason string) error {
	t.Helper()
	s, err := Open(t.Context(), address, Options{})
	if err == nil {
		t.Fatalf("the store opens: %v", s.Close())
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("Open = %v, want %q in it", err, reason)
	}
	return err
}

func TestRefusals(t *testing.T) {
	address := newDatabase(t)
	s := mustOpen(t, address)
	t.Run("newer", func(t *testing.T) {
		exec(t, s, `UPDATE store SET needs = 1000`)
		if err := wantRefused(t, address, "needs a release that knows 1000"); !errors.Is(err, host.ErrNewer) {
			t.Errorf("Open = %v, want ErrNewer", err)
		}
		exec(t, s, `UPDATE store SET needs = 1, writes = 1000`)
		_ = wantRefused(t, address, "written by a newer version")
		exec(t, s, `UPDATE store SET writes = 1`)
	})
	t.Run("schema of others", func(t *testing.T) {
		exec(t, s, `CREATE SCHEMA others; CREATE TABLE others.theirs ()`)
		_ = wantRefused(t, address+"&schema=others", "none of weft")
	})
	t.Run("exclusive", func(t *testing.T) {
		first, err := Open(t.Context(), address, Options{Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), address, Options{Exclusive: true}); !errors.Is(err, ErrInUse) {
			t.Errorf("Open = %v, want ErrInUse", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		next, err := Open(t.Context(), address, Options{Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("another schema", func(t *testing.T) {
		other := mustOpen(t, address+"&schema=Another")
		if _, err := other.Claim(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two programs that make the schema at once do so one after the other: each waits for the
// lock of a third.
func TestMigrationsWaitForEachOther(t *testing.T) {
	pg, address := pgtest.Shared(t), newDatabase(t)
	release := pg.Hold(t, address, `SELECT pg_advisory_xact_lock(hashtextextended('weft migrate weft', 0))`)
	defer release()
	const programs = 2
	opened := make(chan error, programs)
	for range programs {
		go func() {
			s, err := Open(t.Context(), address, Options{})
			if err == nil {
				err = s.Close()
			}
			opened <- err
		}()
	}
	for waiting := ""; waiting != "2"; {
		select {
		case err := <-opened:
			t.Fatalf("a program does not wait for the lock: %v", err)
		default:
		}
		waiting = pg.Query(t, address, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	}
	release()
	for range programs {
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
}

func exec(t *testing.T, s *Store, statement string) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), "DO $$ BEGIN "+statement+"; END $$"); err != nil {
		t.Fatal(err)
	}
}

// A server that would lose commits is refused.
func TestUnsafeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers of its own")
	}
	_ = wantRefused(t, pgtest.Own(t, "fsync=off").URL, "fsync = off")
	_ = wantRefused(t, pgtest.Own(t, "full_page_writes=off").URL, "full_page_writes = off")
}

// No error shows the password.
func TestPasswordIsNotShown(t *testing.T) {
	const password = "geheim-7"
	for _, address := range []string{
		"postgres://weft:" + password + "@127.0.0.1:1/weft",
		"postgres://weft:" + password + "@127.0.0.1:x/weft",
		"postgres://weft:" + password + "@127.0.0.1:1/weft?sslmode=perhaps",
		"postgres://we ft:" + password + "@[::1/weft",
		"postgresql:/weft:" + password + "@nowhere",
		"host=127.0.0.1 port=1 user=weft password=" + password + " sslmode=perhaps",
	} {
		s, err := Open(t.Context(), address, Options{})
		if err == nil {
			t.Fatalf("the store opens: %v", s.Close())
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("Open(%q) = %v", address, err)
		}
	}
	u, err := url.Parse(newDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("weft", password)
	if err := wantRefused(t, u.String(), "authentication"); strings.Contains(err.Error(), password) {
		t.Error(err)
	}
}

// Names may have any bytes, and keep their order where they are valid.
func TestNames(t *testing.T) {
	names := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x01", "\x01\x00", "\x01\x03", "\x02", "a", "a\x00", "a\x00b", "a\x01", "a\x02", "ab", "ü"}
	for i, n := range append(names, "\xff", "a\xffb", "\xc3", "\x01\xff") {
		back, err := name(text(n))
		if err != nil || back != n {
			t.Errorf("name(text(%q)) = %q, %v", n, back, err)
		}
		if i > 0 && i < len(names) && text(names[i-1]) >= text(n) {
			t.Errorf("text(%q) is not less than text(%q)", names[i-1], n)
		}
	}
	for _, broken := range []string{"\x01", "a\x01x", "\x01\x03", "\x01\x03f", "\x01\x03gg"} {
		if n, err := name(broken); err == nil {
			t.Errorf("name(%q) = %q", broken, n)
		}
	}
}

// Ids grow, whatever the clock does.
func TestIDs(t *testing.T) {
	var g ids
	g.above(1<<61, 0)
	last := int64(1 << 61)
	for range 3 << idCountBits {
		id := g.next()
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
	}
}
