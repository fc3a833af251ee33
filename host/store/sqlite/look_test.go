package sqlite

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/sqlite/wal"
)

// files are the files of a data directory that hold data.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{fileName, fileName + "-wal", wal.MarkName} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[name] = b
	}
	return all
}

// filesOf returns the files of an open store, between two commits.
func filesOf(t *testing.T, s *Store) map[string][]byte {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return files(t, s.dir)
}

// put creates a directory with these files.
func put(t *testing.T, all map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range all {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sums(all map[string][]byte) string {
	var list []string
	for name, b := range all {
		list = append(list, fmt.Sprintf("%s %d %x", name, len(b), sha256.Sum256(b)))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// lives are the files of a data directory at several moments, each with the number of
// batches acknowledged by then.
type life struct {
	files map[string][]byte
	acked uint64
}

// makeLives appends to a store, and copies its files as a process that dies leaves them,
// and as one that closes does. newest is what a box would know at each.
func makeLives(t *testing.T) (first, dead, closed life, box uint64) {
	t.Helper()
	dir := t.TempDir()
	known := &memoryBox{}
	s, err := OpenWith(dir, Options{Acknowledged: known})
	if err != nil {
		t.Fatal(err)
	}
	epoch := mustClaim(t, s)
	append := func(until uint64, l *life) {
		for l.acked < until {
			l.acked++
			if err := s.Append(t.Context(), crashBatch(epoch, l.acked)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var now life
	append(3, &now)
	if err := s.marker.Flush(); err != nil { // as every few seconds
		t.Fatal(err)
	}
	first = life{filesOf(t, s), now.acked}
	append(12, &now)
	if err := s.marker.Flush(); err != nil {
		t.Fatal(err)
	}
	dead = life{filesOf(t, s), now.acked}
	box = known.newest
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closed = life{files(t, dir), now.acked}
	return first, dead, closed, box
}

// memoryBox is an Acknowledged that outlives the store.
type memoryBox struct {
	newest uint64
	known  bool
}

func (b *memoryBox) Before([16]byte) (uint64, bool)  { return b.newest, b.known }
func (b *memoryBox) Note(_ [16]byte, commits uint64) { b.newest = commits }

// with returns a changed copy of files.
func with(all map[string][]byte, changes map[string][]byte) map[string][]byte {
	out := maps.Clone(all)
	for name, b := range changes {
		if out[name] = b; b == nil {
			delete(out, name)
		}
	}
	return out
}

// Any file is removed, emptied, cut, exchanged or replaced by an older one, after a death
// and after a close. A start then either has everything that was acknowledged, or refuses
// with a clear error and changes no byte. With --accept-loss it continues with what is
// there.
func TestMissingFiles(t *testing.T) {
	first, dead, closed, box := makeLives(t)
	_, _, other, _ := makeLives(t)
	logName := fileName + "-wal"
	cut := func(b []byte, n int) []byte { return slices.Clone(b[:len(b)-n]) }
	flipped := slices.Clone(dead.files[logName])
	flipped[len(flipped)/2] ^= 1
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		want  string // code; "": it opens
		has   uint64 // batches, if it opens
		box   uint64 // what the box knows; 0: nothing
	}{
		{name: "death", files: dead.files, has: 12, box: box},
		{name: "closed", files: closed.files, has: 12, box: box},
		{name: "death, no mark", files: with(dead.files, map[string][]byte{wal.MarkName: nil}), has: 12},
		{name: "death, an older mark", files: with(dead.files, map[string][]byte{wal.MarkName: first.files[wal.MarkName]}), has: 12},
		{name: "death, a mark of zeros", files: with(dead.files, map[string][]byte{wal.MarkName: make([]byte, 1024)}), has: 12},
		{name: "closed, no mark", files: with(closed.files, map[string][]byte{wal.MarkName: nil}), has: 12},

		{name: "death, no database", files: with(dead.files, map[string][]byte{fileName: nil}), want: DatabaseMissing},
		{name: "death, an empty database", files: with(dead.files, map[string][]byte{fileName: {}}), want: DatabaseMissing},
		{name: "death, only the log", files: map[string][]byte{logName: dead.files[logName]}, want: DatabaseMissing},
		{name: "closed, no database", files: with(closed.files, map[string][]byte{fileName: nil}), want: DatabaseMissing},
		{name: "closed, an empty database", files: with(closed.files, map[string][]byte{fileName: {}}), want: DatabaseMissing},

		{name: "death, no log", files: with(dead.files, map[string][]byte{logName: nil}), want: LogMissing},
		{name: "death, an empty log", files: with(dead.files, map[string][]byte{logName: {}}), want: LogMissing},
		{name: "death, another's log", files: with(dead.files, map[string][]byte{logName: otherLog(t)}), want: LogMissing},
		{name: "death, the log is cut", files: with(dead.files, map[string][]byte{logName: cut(dead.files[logName], 1)}), want: CommitsMissing},
		{name: "death, the log is cut in the middle", files: with(dead.files, map[string][]byte{logName: cut(dead.files[logName], len(dead.files[logName])/2)}), want: CommitsMissing},
		{name: "death, a bit of the log is another", files: with(dead.files, map[string][]byte{logName: flipped}), want: CommitsMissing},
		{name: "death, an older log", files: with(dead.files, map[string][]byte{logName: first.files[logName]}), want: CommitsMissing},
		{name: "death, older log and mark, the box knows", files: first.files, want: CommitsMissing, box: box},

		{name: "closed, an older database", files: with(closed.files, map[string][]byte{fileName: first.files[fileName]}), want: DatabaseBehind},
		{name: "closed, another database", files: with(closed.files, map[string][]byte{fileName: other.files[fileName]}), want: DatabaseBehind},
		{name: "death, another database", files: with(dead.files, map[string][]byte{fileName: other.files[fileName]}), want: DatabaseBehind},
		{name: "a backup alone", files: map[string][]byte{fileName: closed.files[fileName]}, has: 12},
		{name: "death, the closed database in its place", files: with(closed.files, map[string][]byte{wal.MarkName: dead.files[wal.MarkName]}), has: 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := put(t, tt.files)
			o := Options{Acknowledged: &memoryBox{newest: tt.box, known: tt.box > 0}}
			s, err := OpenWith(dir, o)
			var m *Missing
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want == "":
				if last := checkHistory(t, s); last != tt.has {
					t.Errorf("%d batches are there, want %d", last, tt.has)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return
			case !errors.As(err, &m) || m.Code != tt.want:
				if err == nil {
					_ = s.Close()
				}
				t.Fatalf("it opens with %v, want %s", err, tt.want)
			}
			for _, text := range []string{dir, tt.want, "--accept-loss"} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if after := files(t, dir); sums(after) != sums(tt.files) {
				t.Errorf("the refusal has changed\n%s\nto\n%s", sums(tt.files), sums(after))
			}
			acceptLoss(t, dir, tt.files, tt.want, o.Acknowledged)
		})
	}
}

// acceptLoss opens a directory with a missing part.
func acceptLoss(t *testing.T, dir string, before map[string][]byte, code string, known Acknowledged) {
	t.Helper()
	var lost []string
	s, err := OpenWith(dir, Options{AcceptLoss: true, Acknowledged: known, Lost: func(m *Missing) { lost = append(lost, m.Code) }})
	if err != nil {
		t.Fatalf("with the loss accepted: %v", err)
	}
	if len(lost) == 0 || lost[0] != code {
		t.Errorf("%q are lost, want %s", lost, code)
	}
	log, _, err := s.Audit(t.Context(), host.AuditQuery{All: true, Limit: 10})
	if err != nil || len(log) != 1 || log[0].Act != "store.accept_loss" || log[0].Target != code {
		t.Errorf("the audit log has %+v, %v", log, err)
	}
	mustClaim(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, dir).Close(); err != nil {
		t.Errorf("the next start: %v", err)
	}
	if code != DatabaseMissing && code != DatabaseBehind {
		return
	}
	aside, err := filepath.Glob(filepath.Join(dir, "*.lost-*"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range before {
		if name == fileName {
			continue
		}
		kept := slices.ContainsFunc(aside, func(path string) bool {
			c, err := os.ReadFile(path)
			return err == nil && strings.HasPrefix(filepath.Base(path), name+".lost-") && bytes.Equal(c, b)
		})
		if !kept {
			t.Errorf("%s is not aside: %q", name, aside)
		}
	}
}

// otherLog is the log of an unrelated store.
func otherLog(t *testing.T) []byte {
	t.Helper()
	_, dead, _, _ := makeLives(t)
	return dead.files[fileName+"-wal"]
}

// ReadLog counts as many commits as SQLite does, for a log that ends at any frame.
func TestReadLog(t *testing.T) {
	_, dead, _, _ := makeLives(t)
	log := dead.files[fileName+"-wal"]
	const logHead, frame = 32, 24 + 4096
	step := 7
	if testing.Short() {
		step = 70
	}
	for size := logHead; size <= len(log); size += frame * step {
		for _, more := range []int{0, 1, frame - 1} {
			cut := log[:min(size+more, len(log))]
			dir := put(t, map[string][]byte{fileName: dead.files[fileName], fileName + "-wal": cut})
			l, err := wal.ReadLog(filepath.Join(dir, fileName+"-wal"))
			if err != nil || !l.There {
				t.Fatalf("%+v, %v", l, err)
			}
			s, err := Open(dir) // without a mark everything is taken
			if err != nil {
				t.Fatal(err)
			}
			_, base, _ := readPosition(filepath.Join(put(t, map[string][]byte{fileName: dead.files[fileName]}), fileName))
			if s.position != base+l.Commits && l.Commits > 0 {
				t.Errorf("of %d bytes: SQLite has %d commits, the walk %d behind %d", len(cut), s.position, l.Commits, base)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func filling(s *Store) wal.Generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gen
}

// Before the first commit of a new generation of the log is acknowledged, the mark names
// that generation. Without the log, what was acknowledged is there or reported as
// missing.
func TestEveryFillingIsMarked(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	epoch := mustClaim(t, s)
	if _, err := s.conn.ExecContext(t.Context(), "PRAGMA wal_autocheckpoint=60"); err != nil {
		t.Fatal(err)
	}
	fillings, missed := 0, 0
	for n := uint64(1); fillings < 6; n++ {
		if n > 500 {
			t.Fatal("the log is never begun anew")
		}
		before := filling(s)
		if err := s.Append(t.Context(), crashBatch(epoch, n)); err != nil {
			t.Fatal(err)
		}
		if filling(s) == before {
			continue
		}
		fillings++
		now := filesOf(t, s)
		there, err := look(put(t, now), nil)
		if err != nil || there.missing != nil || there.mark.Gen != there.log.Gen {
			t.Fatalf("with the log: %+v, %v", there, err)
		}
		without := put(t, with(now, map[string][]byte{fileName + "-wal": nil}))
		there, err = look(without, nil)
		if err != nil {
			t.Fatal(err)
		}
		if there.missing != nil {
			missed++
			continue
		}
		if last := checkHistory(t, mustOpen(t, without)); last < n {
			t.Errorf("without the log %d of %d batches are there, and nothing is missed", last, n)
		}
	}
	if missed == 0 {
		t.Error("the log was never needed")
	}
}

// appendOne commits a batch.
func appendOne(t *testing.T, s *Store) {
	t.Helper()
	epoch, err := s.Claim(t.Context())
	if err == nil {
		err = s.Append(t.Context(), crashBatch(epoch, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A store that is opened in place of one that failed must be the same store with
// everything that it had acknowledged: not an empty directory in place of a file system
// that is not mounted, not another database, and not an older copy. None of these is
// changed.
func TestOnlyTheSameStoreIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	older := filesOf(t, s)
	appendOne(t, s)
	held := s.Held()
	behind := files(t, dir) // the mark and the log of the store, and no database
	delete(behind, fileName)
	newest := filesOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	appendOne(t, other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"empty", nil, DatabaseMissing},
		{"an empty file", map[string][]byte{fileName: nil}, DatabaseMissing},
		{"another", files(t, other.dir), DatabaseOther},
		{"older", older, CommitsMissing},
		{"without its log", map[string][]byte{fileName: newest[fileName], wal.MarkName: newest[wal.MarkName]}, LogMissing},
		{"no database", behind, DatabaseMissing},
		{"the same", newest, ""},
		{"the same, closed", files(t, dir), ""},
	} {
		at := put(t, tt.files)
		before := sums(files(t, at))
		// A loss may be accepted when a process begins, and never while it runs.
		again, err := OpenWith(at, Options{After: &held, AcceptLoss: true})
		if err == nil {
			err = again.Close()
		}
		var missing *Missing
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (!errors.As(err, &missing) || missing.Code != tt.want):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case tt.want == DatabaseMissing || tt.want == DatabaseOther:
			names, _ := os.ReadDir(at)
			if after := sums(files(t, at)); after != before || len(names) != len(tt.files) {
				t.Errorf("%s: the directory was changed: %s, %d files", tt.name, after, len(names))
			}
		}
	}
}
