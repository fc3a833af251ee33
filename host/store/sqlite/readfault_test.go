package sqlite

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/sqlite/faultdisk"
)

// The disk fails at any read, by an error, by ending too early, or by zeros. Reading a
// session then returns what was written, or an error that is neither damage nor absence,
// or different rows, or none where SQLite sees zeros. Reading again on a working disk
// returns what was written.
func TestReadFaults(t *testing.T) {
	dir := t.TempDir()
	s, epoch := history(t, dir, 6)
	want, err := s.LoadSession(t.Context(), crashOne)
	if err != nil || epoch == 0 {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disk := faultdisk.New(t, dir, rand.New(rand.NewPCG(1, 2)))
	for _, kind := range []faultdisk.Kind{faultdisk.IOError, faultdisk.Short, faultdisk.Zeros} {
		failed, differed, absent := 0, 0, 0
		for n, fired := 1, true; fired; n++ {
			s, err := OpenShared(dir)
			if err != nil {
				t.Fatal(err)
			}
			disk.Fail(faultdisk.Fault{Op: faultdisk.Read, Kind: kind, N: n})
			got, err := s.LoadSession(t.Context(), crashOne)
			fired = disk.Heal()
			switch {
			case errors.Is(err, host.ErrNotFound) && kind != faultdisk.IOError:
				absent++ // a page of zeros may have no rows, which only a checksum of pages would tell
			case errors.Is(err, host.ErrUnreadable), errors.Is(err, host.ErrNotFound), errors.Is(err, host.ErrNewer):
				t.Errorf("%s at read %d: %v, as if it could not pass", kind, n, err)
			case err != nil:
				failed++
			case !reflect.DeepEqual(got, want):
				differed++ // which the rows' checksums tell
			}
			if again, err := s.Reread(t.Context(), crashOne); err != nil || !reflect.DeepEqual(again, want) {
				t.Errorf("%s at read %d: read anew: %v", kind, n, err)
			}
			if rows, err := s.RereadHistory(t.Context(), crashOne, 0, 0, 1000); err != nil || len(rows) < len(want.Rows) {
				t.Errorf("%s at read %d: %d rows of the history read anew, %v", kind, n, len(rows), err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if failed+differed == 0 {
			t.Errorf("%s: nothing fails", kind)
		}
		t.Logf("%s: %d reads failed, %d gave something else, %d nothing", kind, failed, differed, absent)
	}
}
