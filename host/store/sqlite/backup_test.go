package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
)

// history is a store with so many batches of the children's history.
func history(t *testing.T, dir string, n uint64) (s *Store, epoch uint64) {
	t.Helper()
	s = mustOpen(t, dir)
	epoch = mustClaim(t, s)
	for i := uint64(1); i <= n; i++ {
		if err := s.Append(t.Context(), crashBatch(epoch, i)); err != nil {
			t.Fatal(err)
		}
	}
	return s, epoch
}

// wantFiles expects a directory to hold exactly these files.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%s holds %q, want %q", dir, names, want)
	}
}

// TestBackupWhileWriting: copies made while batches are written hold a prefix of the
// history, with all batches that were acknowledged when the copy began.
func TestBackupWhileWriting(t *testing.T) {
	dir, copies := t.TempDir(), t.TempDir()
	s, epoch := history(t, dir, 20)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	written := uint64(20)
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := uint64(21); ctx.Err() == nil && n < 2000; n++ {
			if err := s.Append(t.Context(), crashBatch(epoch, n)); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			written = n
			mu.Unlock()
		}
	})
	defer writer.Wait()
	defer stop()
	for i := range 5 {
		reader, err := OpenShared(dir)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		acknowledged := written
		mu.Unlock()
		file := filepath.Join(copies, "copy.db") // each replaces the one before
		var last uint64
		verify := func(name string) error {
			sealed, err := OpenFile(name)
			if err != nil {
				return err
			}
			last = checkHistory(t, sealed)
			return sealed.Close()
		}
		if err := reader.Backup(t.Context(), file, nil, verify); err != nil {
			t.Fatal(err)
		}
		if last < acknowledged {
			t.Errorf("copy %d has %d batches, %d were acknowledged before", i, last, acknowledged)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantFiles(t, copies, "copy.db")
}

// TestBackupThatFails: a failed backup leaves nothing behind, and changes nothing.
func TestBackupThatFails(t *testing.T) {
	s, _ := history(t, t.TempDir(), 5)
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	if err := os.WriteFile(file, []byte("the one before"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("not good")
	if err := s.Backup(t.Context(), file, nil, func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("Backup = %v, want the error of the check", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	progress := func(int, int) { cancel() }
	if err := s.Backup(ended, file, progress, nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Backup = %v", err)
	}
	if err := s.Backup(ended, file, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup = %v, want the context's error", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(dir, "no", "copy.db"), nil, nil); err == nil {
		t.Error("Backup into a directory that is not there succeeds")
	}
	wantFiles(t, dir, "copy.db")
}

func TestRestore(t *testing.T) {
	source, files := t.TempDir(), t.TempDir()
	s, _ := history(t, source, 30)
	file := filepath.Join(files, "copy.db")
	if err := s.Backup(t.Context(), file, nil, nil); err != nil {
		t.Fatal(err)
	}

	dir := filepath.Join(t.TempDir(), "new")
	if err := Restore(t.Context(), file, dir, nil, nil); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, fileName, datadir.LockName)
	restored := mustOpen(t, dir)
	if last := checkHistory(t, restored); last != 30 {
		t.Errorf("%d batches are there, want 30", last)
	}
	if err := Restore(t.Context(), file, dir, nil, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("Restore into a directory with a database = %v", err)
	}

	refused := errors.New("not good")
	other := t.TempDir()
	if err := Restore(t.Context(), file, other, nil, func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("Restore = %v, want the error of the check", err)
	}
	wantFiles(t, other, datadir.LockName)
	if err := Restore(t.Context(), filepath.Join(source, fileName), other, nil, nil); err == nil || !strings.Contains(err.Error(), "not a backup") {
		t.Errorf("Restore from under a server = %v", err)
	}
	lock, err := datadir.Lock(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), file, other, nil, nil); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("Restore into a directory in use = %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreOfOtherVersions: an older schema is migrated, and a newer one is refused
// with a clear error.
func TestRestoreOfOtherVersions(t *testing.T) {
	source := t.TempDir()
	s, _ := history(t, source, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, source, schemaTwo)
	file := filepath.Join(source, fileName)
	old, err := OpenToCopy(source)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "copy.db")
	if err := errors.Join(old.Backup(t.Context(), file, nil, nil), old.Close()); err != nil {
		t.Fatal(err)
	}
	current, err := OpenCurrent(t.Context(), file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if has, newest := current.Schemas(); has != newest {
		t.Errorf("OpenCurrent opens schema %d, want %d", has, newest)
	}
	rows, err := current.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range record.Tables { // every column is there
		if err := rows.Rows(t.Context(), table, nil, func([]any) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(rows.Close(), current.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Restore(t.Context(), file, dir, nil, nil); err != nil {
		t.Fatal(err)
	}
	restored := mustOpen(t, dir)
	if last := checkHistory(t, restored); last != 3 {
		t.Errorf("%d batches are there, want 3", last)
	}
	if _, _, err := restored.Ended(t.Context(), host.EndedQuery{Tenant: "t"}); err != nil {
		t.Errorf("the newest schema is not there: %v", err)
	}

	execute(t, source, "UPDATE store SET schema = 99")
	file = filepath.Join(source, fileName)
	other := t.TempDir()
	for _, err := range []error{
		Restore(t.Context(), file, other, nil, nil),
		func() error { _, err := OpenFile(file); return err }(),
		func() error { _, err := OpenToCopy(source); return err }(),
	} {
		if !errors.Is(err, host.ErrNewer) || !strings.Contains(err.Error(), "99") {
			t.Errorf("a newer schema = %v, want ErrNewer", err)
		}
	}
	wantFiles(t, other)
}

// TestReaders: a store that was opened for reading cannot be written.
func TestReaders(t *testing.T) {
	dir := t.TempDir()
	s, epoch := history(t, dir, 2)
	if _, err := OpenOffline(dir); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("OpenOffline under a server = %v, want ErrInUse", err)
	}
	shared, err := OpenShared(dir)
	if err != nil {
		t.Fatal(err)
	}
	if last := checkHistory(t, shared); last != 2 {
		t.Errorf("%d batches, want 2", last)
	}
	for what, err := range map[string]error{
		"Append":  shared.Append(t.Context(), crashBatch(epoch, 3)),
		"SetMeta": shared.SetMeta(t.Context(), "k", nil),
		"Claim":   func() error { _, err := shared.Claim(t.Context()); return err }(),
		"Compact": func() error { _, _, err := shared.Compact(t.Context(), func(string, int, int) {}); return err }(),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s = %v, want that it only reads", what, err)
		}
	}
	if err := errors.Join(shared.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	offline, err := OpenOffline(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("Open while the directory is checked = %v, want ErrInUse", err)
	}
	if err := offline.Close(); err != nil {
		t.Fatal(err)
	}
	for _, empty := range []string{t.TempDir(), filepath.Join(dir, "none")} {
		if _, err := OpenShared(empty); err == nil || !strings.Contains(err.Error(), "there is no database") {
			t.Errorf("OpenShared(%s) = %v", empty, err)
		}
	}
}

// TestCompact: compaction removes the pages that deletions have left, and nothing else.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s, epoch := history(t, dir, 100)
	key := host.SessionKey{Tenant: host.DefaultTenant, Session: "bulk"}
	r := host.Run{Tenant: key.Tenant, HandlerID: "bulk", RunID: "bulk", SessionID: "bulk", Workflow: "flow",
		Status: host.StatusCompleted, Started: 1, Completed: 2}
	err := errors.Join(
		s.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{Key: key, First: 1, Last: 1, Data: make([]byte, 8<<20),
			WakeAt: host.WakeNever, Runs: []host.Run{r}, Started: []string{r.RunID}}}}),
		s.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{Key: key, Drop: []string{"bulk"}}}}))
	if err != nil {
		t.Fatal(err)
	}
	before, after, err := s.Compact(t.Context(), func(string, int, int) {})
	if err != nil || before-after < 8<<20 {
		t.Errorf("Compact: %d bytes before, %d after, %v; want 8 MiB less", before, after, err)
	}
	if last := checkHistory(t, s); last != 100 {
		t.Errorf("%d batches are there, want 100", last)
	}
}
