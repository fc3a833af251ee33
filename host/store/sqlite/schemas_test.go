package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/inspect"
	"github.com/weftrun/weft/host/store/sqlite/schema"
)

// olderFile makes a database as the version of weft with a schema left it, with a session,
// a handler, a run, an event and a plugin.
func olderFile(t *testing.T, number int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	do := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatalf("schema %d: %v", number, err)
		}
	}
	do("PRAGMA journal_mode=WAL")
	for _, step := range schema.Older(number) {
		do(step)
	}
	do("UPDATE store SET schema = ?", number)
	do("INSERT INTO sessions (id, tenant, session, last, wake_at, private) VALUES (1, 'default', 's', 2, NULL, 0)")
	do("INSERT INTO journal (sid, first, data) VALUES (1, 1, x'01'), (1, 2, x'02')")
	do("INSERT INTO handlers (id, tenant, handler, sid, first_seq) VALUES (1, 'default', 'h', 1, 0)")
	do(`INSERT INTO runs (hid, sid, latest, tenant, handler, run, session, workflow, status, started, updated, completed, paused, steps, fuel, error, error_code)
		VALUES (1, 1, 1, 'default', 'h', 'r', 's', 'flow', 'running', 5, 6, 0, 0, 1, 2, '', '')`)
	do("INSERT INTO modules (digest, rewritten, image_hash, imports) VALUES ('d', 'd', '', x'80')")
	do("INSERT INTO module_bytes (digest, bytes) VALUES ('d', x'00')")
	do("INSERT INTO plugins (tenant, name, version, workflow, digest, size, created) VALUES ('default', 'p', 1, 'flow', 'd', 1, 1)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A check reads a database of every schema that there was, whole, and leaves every byte
// as it is; and a start brings each up to date.
func TestEverySchema(t *testing.T) {
	for number := 1; number <= schema.Newest; number++ {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			dir := olderFile(t, number)
			before := sums(files(t, dir))
			s, err := OpenOffline(dir)
			if err != nil {
				t.Fatal(err)
			}
			if has, newest := s.Schemas(); has != number || newest != schema.Newest {
				t.Errorf("schema %d of %d", has, newest)
			}
			inspectAll(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if after := sums(files(t, dir)); after != before {
				t.Errorf("the check has changed\n%s\nto\n%s", before, after)
			}
			served := mustOpen(t, dir)
			if run, err := served.Run(t.Context(), host.DefaultTenant, "r"); err != nil || run.Steps != 1 {
				t.Errorf("after a start: %+v, %v", run, err)
			}
			mustClaim(t, served)
		})
	}
}

// inspectAll reads everything that a check reads, and counts it.
func inspectAll(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	i, err := s.Inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	count := map[string]int{}
	note := func(what string) { count[what]++ }
	problem := func(text string) error { return fmt.Errorf("the file: %s", text) }
	sessions, err := i.Sessions(ctx, 0, 10)
	for _, err := range []error{
		err,
		i.Integrity(ctx, problem),
		i.Loose(ctx, func(r inspect.Loose) error { return problem(r.What) }),
		i.Modules(ctx, func(host.ModuleRecord) error { note("module"); return nil }),
		i.Journal(ctx, 1, func(host.JournalRow) error { note("row"); return nil }),
		i.Versions(ctx, 1, func(host.VersionUse) error { note("version"); return nil }),
		i.Handlers(ctx, 1, func(inspect.Handler) error { note("handler"); return nil }),
		i.Stream(ctx, 1, func(inspect.Events) error { note("events"); return nil }),
		i.Runs(ctx, 1, func(r inspect.Run) error { note("run " + r.Run.RunID + string(r.Run.Status)); return nil }),
		readCatalog(ctx, s),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if n, err := i.CountSessions(ctx); n != 1 || err != nil || len(sessions) != 1 || sessions[0].Last != 2 {
		t.Errorf("sessions %+v, %d, %v", sessions, n, err)
	}
	if got := fmt.Sprint(count); got != "map[handler:1 module:1 row:2 run rrunning:1]" {
		t.Errorf("it has %s", got)
	}
}

// readCatalog reads what the graphs of versions are made of.
func readCatalog(ctx context.Context, s *Store) error {
	plugins, err := s.Plugins(ctx, "")
	if err == nil && len(plugins) != 1 {
		err = fmt.Errorf("plugins %+v", plugins)
	}
	if err != nil {
		return err
	}
	if _, err := s.Compositions(ctx, ""); err != nil {
		return err
	}
	_, err = s.Module(ctx, "d")
	return err
}
