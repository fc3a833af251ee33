// Package pgtest gives tests a PostgreSQL of their own, made by .ci/postgres. It is linked
// into tests only.
//
// A test process has one server, which ends with the process. Tests that need more, such
// as a server that they may kill, start another.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// Variable names the environment variable with the URL of a server to test with, in place
// of a throwaway one. Its user must be able to create databases.
const Variable = "WEFT_POSTGRES"

// Server is a PostgreSQL server.
type Server struct {
	URL string // of a database, as the user that may do everything
	dir string // of a throwaway server; "": it is not ours

	mu    sync.Mutex
	count int
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns the process's server. Without PostgreSQL on the machine it skips the
// test, or fails it where tests must be complete.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	need(tb)
	shared.once.Do(func() {
		if address := os.Getenv(Variable); address != "" {
			shared.server = &Server{URL: address}
			return
		}
		shared.server, shared.err = start(context.Background())
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

// Own starts a server for one test, which may kill it. It ends with the test.
func Own(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	need(tb)
	s, err := start(tb.Context(), settings...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := script(context.Background(), "stop", s.dir); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// need skips the test if there is no PostgreSQL.
func need(tb testing.TB) {
	tb.Helper()
	if os.Getenv(Variable) != "" {
		return
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		tb.Fatal(err)
	}
	if _, lookErr := exec.LookPath("initdb"); len(found) > 0 || lookErr == nil {
		return
	}
	suite.Missing(tb, "there is no PostgreSQL on this machine, and %s names none (.ci/postgres install)", Variable)
}

// Replica starts a streaming replica of a server. As a synchronous one its name is replica.
// It ends with the test.
func (s *Server) Replica(tb testing.TB) *Server {
	tb.Helper()
	r, err := begin(tb.Context(), "replica", s.dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := script(context.Background(), "stop", r.dir); err != nil {
			tb.Error(err)
		}
	})
	return r
}

func start(ctx context.Context, settings ...string) (*Server, error) {
	return begin(ctx, "start", "", settings...)
}

// begin starts a server, or a replica of the server in a directory.
func begin(ctx context.Context, command, of string, settings ...string) (*Server, error) {
	args := []string{command}
	if of != "" {
		args = append(args, of)
	}
	args = append(args, "--for", fmt.Sprint(os.Getpid()))
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	out, err := script(ctx, args...)
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(out)
	if len(lines) != 2 {
		return nil, fmt.Errorf(".ci/postgres %s printed %q", command, out)
	}
	return &Server{URL: lines[0], dir: lines[1]}, nil
}

// script runs .ci/postgres.
func script(ctx context.Context, args ...string) (string, error) {
	var problems bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(suite.Root(), ".ci", "postgres"), args...)
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf(".ci/postgres %s: %w\n%s", strings.Join(args, " "), err, problems.Bytes())
	}
	return string(out), err
}

// Crash kills the server's processes, as a crash does.
func (s *Server) Crash(tb testing.TB) { s.script(tb, "crash") }

// Again starts a server that was killed or stopped, on the same port.
func (s *Server) Again(tb testing.TB) { s.script(tb, "again") }

// Promote makes a replica the primary.
func (s *Server) Promote(tb testing.TB) { s.script(tb, "promote") }

// Down stops the server in order.
func (s *Server) Down(tb testing.TB) { s.script(tb, "down") }

func (s *Server) script(tb testing.TB, command string) {
	tb.Helper()
	if _, err := script(context.Background(), command, s.dir); err != nil {
		tb.Fatal(err)
	}
}

// CPU returns the CPU time of the server's processes so far, or 0 where it is not known: the
// server is not ours, or the system has no /proc.
func (s *Server) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	if s.dir == "" || runtime.GOOS != "linux" {
		return 0
	}
	out, err := script(context.Background(), "pid", s.dir)
	if err != nil {
		tb.Fatal(err)
	}
	postmaster := strings.TrimSpace(out)
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		tb.Fatal(err)
	}
	ticks := 0
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(after) // state, parent, ...
		if len(f) < 15 || f[1] != postmaster && filepath.Base(filepath.Dir(file)) != postmaster {
			continue
		}
		for _, field := range f[11:15] { // user and system time, also of children that have ended
			n, err := strconv.Atoi(field)
			if err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 on all machines that Go supports
}

// Exec executes statements, as the user that may do everything.
func (s *Server) Exec(tb testing.TB, address string, statements ...string) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			tb.Fatal(err)
		}
	}
}

// Hold executes a statement in a transaction that stays open, with its locks, until release
// is called.
func (s *Server) Hold(tb testing.TB, address, statement string) (release func()) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		tb.Fatal(err)
	}
	for _, text := range []string{"BEGIN", statement} {
		if _, err := conn.Exec(ctx, text); err != nil {
			_ = conn.Close(ctx)
			tb.Fatal(err)
		}
	}
	return sync.OnceFunc(func() { _ = conn.Close(ctx) })
}

// Query returns the one value, as text, that a query returns. The query is executed as the
// user that may do everything.
func (s *Server) Query(tb testing.TB, address, query string) string {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var value string
	if err := conn.QueryRow(ctx, "SELECT ("+query+")::text").Scan(&value); err != nil {
		tb.Fatal(err)
	}
	return value
}

// Database creates a database as a copy of another, "" for an empty one, and returns its
// URL. The database stays until the server ends, or the test if the server is not ours.
func (s *Server) Database(tb testing.TB, template string) string {
	tb.Helper()
	s.mu.Lock()
	s.count++
	name := fmt.Sprintf("weft_test_%d_%d", os.Getpid(), s.count)
	s.mu.Unlock()
	if template == "" {
		template = "template0"
	}
	s.Exec(tb, s.URL, fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s`, name, template))
	if s.dir == "" {
		tb.Cleanup(func() { s.Exec(tb, s.URL, "DROP DATABASE "+name+" WITH (FORCE)") })
	}
	return with(tb, s.URL, name)
}

// with returns the URL with another database.
func with(tb testing.TB, address, database string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

// Name returns the name of a URL's database.
func Name(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}
