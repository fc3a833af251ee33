package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/memory"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/storetest"
)

func TestMain(m *testing.M) {
	// Some tests run this binary again, to kill it or to take its disk away.
	if child, ok := children[os.Getenv(childVariable)]; ok {
		child(os.Getenv(dirVariable))
		return
	}
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) host.Store { return mustOpen(t, t.TempDir()) })
}

func TestDurableStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, dir string) host.Store { return mustOpen(t, dir) })
}

// The directory's lock keeps others out, unless somebody deletes it: then the epoch
// does.
func TestPeers(t *testing.T) {
	storetest.RunPeers(t, func(t *testing.T) func() host.Store {
		dir := t.TempDir()
		return func() host.Store {
			if err := os.Remove(filepath.Join(dir, datadir.LockName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return mustOpen(t, dir)
		}
	})
}

func TestSameAsMemory(t *testing.T) {
	storetest.RunSame(t,
		func(t *testing.T) host.Store { return mustOpen(t, t.TempDir()) },
		func(*testing.T) host.Store { return memory.New() })
}

// mustOpen opens a store that is closed when tb ends.
func mustOpen(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(dir)
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

// mustClaim makes the caller the store's owner.
func mustClaim(tb testing.TB, s *Store) (epoch uint64) {
	tb.Helper()
	epoch, err := s.Claim(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return epoch
}
