package copy_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/host"
	storecopy "github.com/weftrun/weft/host/store/copy"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// identified is a store that a copy can be made of.
type identified interface {
	host.Store
	Identity(ctx context.Context) (store, content string, err error)
}

// inspected calls fn with the rows of a store.
func inspected(t *testing.T, s host.Store, fn func(record.Source) error) error {
	t.Helper()
	var rows record.Source
	var end func() error
	switch s := s.(type) {
	case *sqlite.Store:
		i, err := s.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, end = i, i.Close
	case *postgres.Store:
		i, err := s.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, end = i, i.Close
	}
	return errors.Join(fn(rows), end())
}

// copied makes a copy of a store. It does not publish the copy.
func copied(t *testing.T, s identified, to storecopy.Target) (sum storecopy.Summary, err error) {
	t.Helper()
	family, identity, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = inspected(t, s, func(rows record.Source) (err error) {
		sum, err = storecopy.Run(t.Context(), storecopy.Config{From: rows, To: to, Family: family, Identity: identity, Again: true})
		return err
	})
	return sum, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openFiles(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(dir)
	must(t, err)
	return s
}

func openDatabase(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, postgres.Options{Exclusive: true})
	must(t, err)
	return s
}

// toDatabase copies a directory into a database, and publishes the copy.
func toDatabase(t *testing.T, dir, url string) storecopy.Summary {
	t.Helper()
	s := openFiles(t, dir)
	l, err := postgres.Load(t.Context(), url)
	must(t, err)
	sum, err := copied(t, s, l)
	must(t, err)
	must(t, l.Publish(t.Context()))
	must(t, errors.Join(l.Close(), s.Close()))
	return sum
}

// toFiles copies a database into a directory, and publishes the copy.
func toFiles(t *testing.T, url, dir string) storecopy.Summary {
	t.Helper()
	s := openDatabase(t, url)
	l, err := sqlite.LoadDirectory(t.Context(), dir)
	must(t, err)
	sum, err := copied(t, s, l)
	must(t, err)
	must(t, l.Publish(t.Context(), nil))
	must(t, errors.Join(l.Close(), s.Close()))
	return sum
}

// Everything that a directory has comes back equal from PostgreSQL, row by row. WEFT_ROWS
// is the number of rows.
func TestThereAndBack(t *testing.T) {
	first, last := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "last")
	sessions := rows(t) / rowsPerSession
	url := pgtest.Shared(t).Database(t, "")
	s := openFiles(t, first)
	fill(t, s, sessions)
	must(t, inspected(t, s, func(r record.Source) error {
		for _, table := range record.Tables {
			if n, err := r.Count(t.Context(), table); err != nil || n == 0 {
				t.Errorf("the test has no row of the table %s: %v", table.Name, err)
			}
		}
		return nil
	}))
	must(t, s.Close())
	there := timed(t, "to PostgreSQL", func() storecopy.Summary { return toDatabase(t, first, url) })
	back := timed(t, "to SQLite", func() storecopy.Summary { return toFiles(t, url, last) })
	if there.Rows != back.Rows || there.Rows < int64(sessions*rowsPerSession) || there.Continued != 0 {
		t.Errorf("copied %+v, and back %+v", there, back)
	}
	wantEqual(t, first, last)

	// A server writes to the copy as to any other store, and finds the old runs.
	for _, s := range []identified{openFiles(t, last), openDatabase(t, url)} {
		extend(t, s, sessions)
		must(t, s.Close())
	}
}

// failing is a target whose n-th page is not written.
type failing struct {
	storecopy.Target
	left int
}

var errKilled = errors.New("the copy is interrupted")

func (f *failing) Load(ctx context.Context, t *record.Table, rows [][]any, state []byte) error {
	if f.left == 0 {
		return errKilled
	}
	f.left--
	return f.Target.Load(ctx, t, rows, state)
}

// A copy that is interrupted before each of its pages continues, in both directions, and
// no server takes an unfinished copy for a store.
func TestContinue(t *testing.T) {
	first, last := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "last")
	url := pgtest.Shared(t).Database(t, "")
	s := openFiles(t, first)
	fill(t, s, 50)
	pages := 0
	for step := 0; ; step++ {
		l, err := postgres.Load(t.Context(), url)
		must(t, err)
		sum, err := copied(t, s, &failing{l, 1})
		if err == nil {
			if sum.Continued == 0 {
				t.Errorf("the last copy has continued nothing: %+v", sum)
			}
			must(t, errors.Join(l.Publish(t.Context()), l.Close()))
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		must(t, l.Close())
		if pages++; step == 3 {
			if s, err := postgres.Open(t.Context(), url, postgres.Options{}); err == nil || !strings.Contains(err.Error(), "not finished") {
				t.Errorf("an unfinished copy opens: %v, %v", s, err)
			}
		}
	}
	must(t, s.Close())
	if pages < len(record.Tables)-1 {
		t.Errorf("interrupted %d times", pages)
	}
	d := openDatabase(t, url)
	for left := 1; ; left++ {
		l, err := sqlite.LoadDirectory(t.Context(), last)
		must(t, err)
		_, err = copied(t, d, &failing{l, left % 3})
		if err == nil {
			must(t, errors.Join(l.Publish(t.Context(), nil), l.Close()))
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		must(t, l.Close())
		if s, err := sqlite.OpenExisting(last); err == nil {
			t.Fatalf("an unfinished copy is a database: %v", s.Close())
		}
	}
	must(t, d.Close())
	wantEqual(t, first, last)
}

// If the source was used after an interruption, the copy begins anew.
func TestSourceWasUsed(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first")
	url := pgtest.Shared(t).Database(t, "")
	s := openFiles(t, first)
	fill(t, s, 50)
	l, err := postgres.Load(t.Context(), url)
	must(t, err)
	if _, err := copied(t, s, &failing{l, 20}); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	extend(t, s, 50)
	sum, err := copied(t, s, l)
	must(t, err)
	if sum.Continued != 0 {
		t.Errorf("the copy continues with %d rows of an older source", sum.Continued)
	}
	must(t, errors.Join(l.Publish(t.Context()), l.Close(), s.Close()))
	last := filepath.Join(t.TempDir(), "last")
	_ = toFiles(t, url, last)
	wantEqual(t, first, last)
}

// Content that is not a copy of the same store is not replaced.
func TestTargetHasContent(t *testing.T) {
	server := pgtest.Shared(t)
	s := openFiles(t, t.TempDir())
	fill(t, s, 1)
	other := openFiles(t, t.TempDir())
	fill(t, other, 1)

	url := server.Database(t, "")
	l, err := postgres.Load(t.Context(), url)
	must(t, err)
	if _, err := copied(t, other, &failing{l, 3}); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if _, err := copied(t, s, l); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("a copy replaces the copy of another store: %v", err)
	}
	must(t, l.Close())

	url = server.Database(t, "")
	d := openDatabase(t, url)
	must(t, d.SetMeta(t.Context(), "k", nil))
	must(t, d.Close())
	l, err = postgres.Load(t.Context(), url)
	must(t, err)
	if _, err := copied(t, s, l); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a copy replaces the content of a database: %v", err)
	}
	must(t, l.Close())

	dir := t.TempDir()
	f := openFiles(t, dir)
	must(t, f.Close())
	if l, err := sqlite.LoadDirectory(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a copy replaces a database: %v, %v", l, err)
	}
	must(t, errors.Join(s.Close(), other.Close()))
}

// A copy that is not equal to its source is found.
func TestCopyIsCompared(t *testing.T) {
	s := openFiles(t, t.TempDir())
	fill(t, s, 3)
	for _, table := range []string{"journal", "runs", "meta"} {
		l, err := postgres.Load(t.Context(), pgtest.Shared(t).Database(t, ""))
		must(t, err)
		if _, err := copied(t, s, &changing{l, table}); err == nil || !strings.Contains(err.Error(), "not equal") {
			t.Errorf("a change of the table %s is not found: %v", table, err)
		}
		must(t, l.Close())
	}
	must(t, s.Close())
}

// changing is a target that changes the last value of the first row of a table.
type changing struct {
	storecopy.Target
	table string
}

func (c *changing) Load(ctx context.Context, t *record.Table, rows [][]any, state []byte) error {
	if t.Name == c.table {
		rows[0][len(rows[0])-1] = []byte("changed")
	}
	return c.Target.Load(ctx, t, rows, state)
}

// A backup of a database that is being written to has what was committed when it began,
// and nothing of what follows.
func TestBackupIsASnapshot(t *testing.T) {
	url := pgtest.Shared(t).Database(t, "")
	d := openDatabase(t, url)
	fill(t, d, 20)
	before := t.TempDir()
	reader, err := postgres.Open(t.Context(), url, postgres.Options{ReadOnly: true})
	must(t, err)
	for _, name := range []string{"quiet", "written"} {
		err = sqlite.LoadFile(t.Context(), filepath.Join(before, name), func(l *sqlite.Loader) error {
			return inspected(t, reader, func(rows record.Source) error {
				if name == "written" {
					extend(t, d, 20)
				}
				_, err := storecopy.Run(t.Context(), storecopy.Config{From: rows, To: l, Again: true})
				return err
			})
		}, nil)
		must(t, err)
	}
	must(t, errors.Join(reader.Close(), d.Close()))
	wantEqualFiles(t, filepath.Join(before, "quiet"), filepath.Join(before, "written"))
}

// Each table of a store is copied, or is known not to be.
func TestEachTableIsCopied(t *testing.T) {
	wantTables(t, openFilesTables(t), "store", "unread", "run_counts", "run_words", "run_words_config", "run_words_content", "run_words_data", "run_words_idx", "run_words_docsize")
	url := pgtest.Shared(t).Database(t, "")
	must(t, openDatabase(t, url).Close())
	wantTables(t, databaseTables(t, url), "store", "nodes", "pulse", "partitions", "unread", "run_counts", "run_words")
}
