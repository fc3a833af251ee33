package postgres

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/memory"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
	"github.com/weftrun/weft/host/store/sqlite"
	"github.com/weftrun/weft/host/store/storetest"
)

func TestMain(m *testing.M) {
	if !suite.Soak() {
		// A comparison of random batches takes a second of CPU time for ten of them.
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// template is a database with the schema, which others are copies of.
var template struct {
	once sync.Once
	name string
}

// newDatabase returns the URL of a database with the schema and no rows.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	server := pgtest.Shared(tb)
	if os.Getenv(pgtest.Variable) != "" {
		return server.Database(tb, "")
	}
	template.once.Do(func() {
		url := server.Database(tb, "")
		s, err := Open(tb.Context(), url, Options{})
		if err != nil {
			tb.Fatal(err)
		}
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
		template.name = pgtest.Name(url)
	})
	return server.Database(tb, template.name)
}

// mustOpen opens a store that is closed when tb ends.
func mustOpen(tb testing.TB, url string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), url, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) host.Store { return mustOpen(t, newDatabase(t)) })
}

// A directory stands for a database.
func TestDurableStore(t *testing.T) {
	urls := map[string]string{}
	storetest.RunDurable(t, func(t *testing.T, dir string) host.Store {
		if urls[dir] == "" {
			urls[dir] = newDatabase(t)
		}
		return mustOpen(t, urls[dir])
	})
}

func TestPeers(t *testing.T) {
	storetest.RunPeers(t, func(t *testing.T) func() host.Store {
		url := newDatabase(t)
		return func() host.Store { return mustOpen(t, url) }
	})
}

// reused is a store that is emptied instead of being closed, as tests of random batches
// need many empty stores.
type reused struct {
	*Store
	tb   testing.TB
	free chan *Store
}

func (r *reused) Close() error {
	empty(r.tb, r.Store)
	r.free <- r.Store
	return nil
}

// empty deletes all rows. The versions stay, as a store remembers their numbers.
func empty(tb testing.TB, s *Store) {
	tb.Helper()
	tables := strings.Fields(`meta nodes pulse sessions journal handlers runs stream unread run_words repeats spent kv_spaces kv
		plugins composition_modules compositions released_modules released_compositions released session_versions
		module_bytes modules tenants keys access_audit resources resource_use`)
	var all strings.Builder
	for _, table := range tables {
		all.WriteString("DELETE FROM " + table + ";")
	}
	all.WriteString("ALTER TABLE nodes ALTER epoch RESTART; UPDATE partitions SET epoch = NULL")
	s.reading.Lock() // the words of runs are not written meanwhile
	defer s.reading.Unlock()
	if _, err := s.pool.Exec(tb.Context(), "DO $$ BEGIN "+all.String()+"; END $$"); err != nil {
		tb.Fatal(err)
	}
}

// reuse opens stores that are emptied when they are closed.
func reuse(t *testing.T) func(t *testing.T) host.Store {
	free := make(chan *Store, 1)
	free <- mustOpen(t, newDatabase(t))
	return func(t *testing.T) host.Store { return &reused{<-free, t, free} }
}

func TestSameAsMemory(t *testing.T) {
	storetest.RunSame(t, reuse(t), func(*testing.T) host.Store { return memory.New() })
}

func TestSameAsSQLite(t *testing.T) {
	storetest.RunSame(t, reuse(t), func(t *testing.T) host.Store {
		s, err := sqlite.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
