package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// A connection that gets another backend between two statements is refused.
func TestBackendChanges(t *testing.T) {
	database := newDatabase(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	spare, err := pgconn.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	hijacked, err := spare.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	first, err := net.Dial("tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		// The first connection uses a backend of its own until there is a second one.
		one, err := l.Accept()
		if err != nil {
			return
		}
		var changed atomic.Bool
		all.Go(func() { _, _ = io.Copy(one, first) })
		all.Go(func() { _, _ = io.Copy(one, hijacked.Conn) })
		all.Go(func() {
			buf := make([]byte, 64<<10)
			for {
				n, err := one.Read(buf)
				to := first
				if changed.Load() {
					to = hijacked.Conn
				}
				if _, writeErr := to.Write(buf[:n]); err != nil || writeErr != nil {
					_, _ = first.Close(), hijacked.Conn.Close()
					return
				}
			}
		})
		two, err := l.Accept()
		if err != nil {
			return
		}
		changed.Store(true)
		second, err := net.Dial("tcp", server)
		if err != nil {
			_ = two.Close()
			return
		}
		all.Go(func() {
			_, _ = io.Copy(second, two)
			_ = second.Close()
		})
		_, _ = io.Copy(two, second)
		_ = two.Close()
	})
	u.Host = l.Addr().String()
	_ = wantRefused(t, u.String(), "pooler of transactions")
	_ = l.Close()
	all.Wait()
}

// A pooler that gives each transaction another connection is refused, one that keeps a
// connection for a session is not.
func TestPooler(t *testing.T) {
	suite.NotShort(t, "starts a pooler")
	pgbouncer, err := osexec.LookPath("pgbouncer")
	if err != nil {
		if pgbouncer = "/usr/sbin/pgbouncer"; !exists(pgbouncer) {
			suite.Missing(t, "there is no pgbouncer: run make postgres")
		}
	}
	database := newDatabase(t)
	_ = wantRefused(t, pooled(t, pgbouncer, database, "transaction"), "pooler of transactions")
	_ = wantRefused(t, pooled(t, pgbouncer, database, "statement"), "")
	s := mustOpen(t, pooled(t, pgbouncer, database, "session"))
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	wantRows(t, s, 1)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// pooled starts a pooler before a database, and returns its URL.
func pooled(t *testing.T, pgbouncer, database, mode string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	password, _ := u.User.Password()
	settings := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr =
unix_socket_dir = %s
auth_type = scram-sha-256
auth_file = %s/users
pool_mode = %s
default_pool_size = 20
`, u.Hostname(), u.Port(), dir, dir, mode)
	for file, content := range map[string]string{settings: text, filepath.Join(dir, "users"): fmt.Sprintf("%q %q\n", u.User.Username(), password)} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{settings}
	if os.Getuid() == 0 { // it refuses root
		for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o777); err != nil { // its socket lies here
			t.Fatal(err)
		}
		args = append([]string{"-u", "postgres"}, args...)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := osexec.CommandContext(ctx, pgbouncer, args...)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	for {
		conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.6432"))
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-ended:
			t.Fatalf("pgbouncer ended: %s", log.String())
		default:
		}
	}
	u.Host = ""
	u.RawQuery = url.Values{"host": {dir}, "port": {"6432"}}.Encode()
	return u.String()
}
