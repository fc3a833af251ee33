package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/sqlite/wal"
)

// wantOpenError expects Open to fail with one line that contains all of these texts.
func wantOpenError(t *testing.T, dir string, say ...string) {
	t.Helper()
	s, err := Open(dir)
	if err == nil {
		_ = s.Close()
		t.Fatalf("Open(%s) succeeds", dir)
	}
	for _, text := range append(say, dir) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("Open: %q does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("Open: %q is more than one line", err)
	}
}

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	wantOpenError(t, dir, "in use by another weft server")
	// The attempt has not harmed the owner.
	mustClaim(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, mustOpen(t, dir))
}

func TestOpenMakesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b", "50% #1")
	s := mustOpen(t, dir)
	mustClaim(t, s)
	wantMode := func(path string, want fs.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	wantMode(dir, 0o700)
	wantMode(filepath.Dir(dir), 0o700)
	for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm", datadir.LockName, wal.MarkName} {
		wantMode(filepath.Join(dir, name), 0o600)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("after Close the directory holds %v, %v, want the database, the lock and the mark", entries, err)
	}
}

func TestOpenNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, file, "is not a directory")
	wantOpenError(t, filepath.Join(file, "below"), "is not a directory")
}

func TestOpenForeignFiles(t *testing.T) {
	t.Run("no database", func(t *testing.T) {
		dir := t.TempDir()
		text := strings.Repeat("these are notes, and no database. ", 100)
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantOpenError(t, dir, "is not a SQLite database")
		got, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil || string(got) != text {
			t.Error("the file was changed")
		}
	})
	t.Run("another database", func(t *testing.T) {
		dir := t.TempDir()
		execute(t, dir, "CREATE TABLE notes (text TEXT)")
		wantOpenError(t, dir, "not one of weft")
	})
	t.Run("newer schema", func(t *testing.T) {
		dir := t.TempDir()
		if err := mustOpen(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
		execute(t, dir, "UPDATE store SET schema = 99")
		wantOpenError(t, dir, "newer version of weft", "99")
	})
}

// execute runs a statement on the database file in dir behind the store's back.
func execute(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, wal.MarkName)); err != nil && !errors.Is(err, fs.ErrNotExist) { // an older version made none
		t.Fatal(err)
	}
}

// TestDirErrors: a test that may run as root, who can write everywhere, can hardly make a
// file system refuse. So it only checks the sentences.
func TestDirErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{syscall.EROFS, "is not writable"},
		{syscall.EACCES, "is not writable"},
		{syscall.EPERM, "is not writable"},
		{syscall.ENOTDIR, "is not a directory"},
		{syscall.ENOSPC, "has no space left"},
		{syscall.EIO, "cannot be used"},
	} {
		err := datadir.Error("/data", &fs.PathError{Op: "open", Path: "/data/weft.lock", Err: test.err})
		if !strings.Contains(err.Error(), "data directory /data "+test.want) || !errors.Is(err, test.err) {
			t.Errorf("dirError(%v) = %q, want %q", test.err, err, test.want)
		}
	}
}

// TestFull: a batch without room is certainly not written, and the same batch is written
// when there is room.
func TestFull(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	epoch := mustClaim(t, s)
	setPages := func(n int) {
		t.Helper()
		if _, err := s.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	setPages(300)
	n, err := uint64(0), error(nil)
	for err == nil {
		n++
		err = s.Append(t.Context(), crashBatch(epoch, n))
	}
	if !errors.Is(err, host.ErrNotCommitted) {
		t.Fatalf("Append without room = %v, want ErrNotCommitted", err)
	}
	if err := s.Append(t.Context(), crashBatch(epoch, n)); !errors.Is(err, host.ErrNotCommitted) {
		t.Fatalf("Append again = %v, want ErrNotCommitted", err)
	}
	if last := checkHistory(t, s); last != n-1 {
		t.Fatalf("%d batches are there, want %d", last, n-1)
	}
	setPages(1_000_000)
	if err := s.Append(t.Context(), crashBatch(epoch, n)); err != nil {
		t.Fatalf("Append with room = %v", err)
	}
	if last := checkHistory(t, s); last != n {
		t.Errorf("%d batches are there, want %d", last, n)
	}
}

// TestBusy: while another program locks the file, a batch is certainly not written.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	epoch := mustClaim(t, s)
	if _, err := s.conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, statement := range []string{"BEGIN IMMEDIATE", "ROLLBACK"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		err := s.Append(t.Context(), crashBatch(epoch, 1))
		if statement == "ROLLBACK" {
			if err != nil {
				t.Errorf("Append of a free file = %v", err)
			}
		} else if !errors.Is(err, host.ErrNotCommitted) {
			t.Errorf("Append of a locked file = %v, want ErrNotCommitted", err)
		}
	}
}

// TestPlans: listings walk along an index and stop. None sorts or reads all rows.
func TestPlans(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	for _, q := range []host.RunQuery{
		{},
		{Since: 5},
		{AfterStarted: 5, AfterHandler: "h"},
		{Session: "s", Statuses: []string{"running"}},
		{Blocked: true, AfterStarted: 5},
		{Statuses: []string{"running"}, AfterStarted: 5},
		{Statuses: []string{"running", "failed"}, Since: 5},
		{Workflows: []string{"flow", "talk"}, Statuses: []string{"running"}},
	} {
		for _, l := range listings(q) {
			plan := explain(t, s, l.statement(), append(l.args, 10)...)
			if !strings.Contains(plan, "SEARCH runs USING INDEX "+l.index) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("plan of %+v: %s", q, plan)
			}
		}
	}
}

// TestEndedPlans: the queries for deleting old runs walk along the index of ended runs,
// from where they stopped.
func TestEndedPlans(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	for query, args := range map[string][]any{
		endedQuery:       {"t", 1, "r", 9, "r", 10},
		endedBehindQuery: {"t", 10},
	} {
		plan := explain(t, s, query, args...)
		if !strings.Contains(plan, "SEARCH runs USING") || !strings.Contains(plan, "INDEX runs_ended") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("plan of %s: %s", query, plan)
		}
		t.Log(plan)
	}
}

func explain(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "; ")
}

// TestOpenOlderSchema: a file of an older version is migrated.
func TestOpenOlderSchema(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpen(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, schemaTwo)
	s := mustOpen(t, dir)
	want := host.CompositionVersion{Tenant: "t", Name: "w", Version: 1, Digest: "d", Record: []byte{1}, Modules: []string{"m"}}
	if err := s.PutModule(t.Context(), host.ModuleRecord{Digest: "m"}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutComposition(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Composition(t.Context(), "d"); err != nil || got.Modules[0] != "m" {
		t.Errorf("Composition = %+v, %v", got, err)
	}
}

// schemaTwo removes from a database what the schemas after the second added, newest
// first.
const schemaTwo = undoRows + "ALTER TABLE store DROP COLUMN id; ALTER TABLE store DROP COLUMN commits; DROP TABLE kv; DROP TABLE kv_spaces; DROP TABLE resources; DROP TABLE resource_use; DROP TRIGGER runs_words; DROP TABLE run_words; DROP TABLE unread; " +
	"DROP INDEX runs_turn; DROP TABLE spent; ALTER TABLE sessions DROP COLUMN bytes; ALTER TABLE sessions DROP COLUMN state; " +
	"DROP INDEX sessions_tenant; ALTER TABLE sessions DROP COLUMN created; ALTER TABLE sessions DROP COLUMN updated; " +
	"DROP TABLE access_audit; DROP TABLE keys; DROP TABLE tenants; DROP TABLE released_modules; DROP TABLE released_compositions; DROP TABLE released; " +
	"DROP INDEX sessions_unlisted; ALTER TABLE sessions DROP COLUMN unlisted; DROP TABLE session_versions; DROP TABLE versions; " +
	"DROP INDEX runs_running; CREATE INDEX runs_running ON runs (tenant, workflow) WHERE status = 'running'; " +
	"ALTER TABLE runs DROP COLUMN version; DROP INDEX journal_snapshot; ALTER TABLE journal DROP COLUMN snapshot; ALTER TABLE sessions DROP COLUMN snapshot; DROP INDEX runs_ended; DROP TABLE repeats; DROP TABLE composition_modules; DROP TABLE compositions; UPDATE store SET schema = 2"

// undoRows removes what the schema of the rows added.
const undoRows = "DROP TRIGGER runs_counted; DROP TRIGGER runs_recounted; DROP TRIGGER runs_uncounted; DROP TABLE run_counts; DROP INDEX runs_all; DROP INDEX runs_phase; DROP INDEX runs_parent; DROP INDEX runs_forked; ALTER TABLE runs DROP COLUMN phase; " +
	"ALTER TABLE runs DROP COLUMN parent; ALTER TABLE runs DROP COLUMN parent_step; ALTER TABLE runs DROP COLUMN forked_from; " +
	"ALTER TABLE runs DROP COLUMN forked_at; ALTER TABLE runs DROP COLUMN retried_from; "
