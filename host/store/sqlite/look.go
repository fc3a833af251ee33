package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/sqlite/schema"
	"github.com/weftrun/weft/host/store/sqlite/wal"
)

// Codes of what is missing when the store opens.
const (
	DatabaseMissing = "database_missing"
	DatabaseBehind  = "database_behind"
	DatabaseOther   = "database_other"
	LogMissing      = "log_missing"
	CommitsMissing  = "commits_missing"
)

// Missing is the error for a data directory that holds less than was acknowledged. The
// directory was not changed.
type Missing struct {
	Code string
	Dir  string
	What string // one sentence
	// Advice says what to do.
	Advice string
	// Commits is the number of acknowledged commits that are gone, or 0 if it is not
	// known.
	Commits uint64
	// Since is when the mark was written. The last of the missing commits is not older.
	Since time.Time
}

// Error implements error.
func (m *Missing) Error() string {
	return fmt.Sprintf("data directory %s: %s: %s; %s", m.Dir, m.Code, m.What, m.Advice)
}

// Acknowledged keeps the newest acknowledged position outside the database, in a place
// that survives the death of the process. It is called under the store's lock, and must
// neither block nor fail.
type Acknowledged interface {
	// Before returns the position that the previous process had acknowledged for the
	// store with the id. known is false if that is not known, for example after the
	// computer has stopped.
	Before(store [16]byte) (commits uint64, known bool)
	// Note records that a position is acknowledged from now on. The positions of a store
	// only grow.
	Note(store [16]byte, commits uint64)
}

// Options say how to open a store. [Open] uses the zero value.
type Options struct {
	// AcceptLoss opens a directory of which a part is missing, and takes the rest for
	// everything there is. Files that are useless without the missing part are renamed:
	// the new name ends with .lost and the time.
	AcceptLoss bool
	// Lost is called with what is accepted as lost. nil: no call.
	Lost func(*Missing)
	// Acknowledged knows the newest position more exactly than the mark. nil: only the
	// mark is used.
	Acknowledged Acknowledged
	// After is the store of this process that failed and that is now opened again. Only
	// that store is opened, nothing is created, and AcceptLoss is ignored. nil: the
	// process is starting.
	After *Held
}

// Held describes a store that a process has had open.
type Held struct {
	ID      [16]byte
	Commits uint64 // commits that are durable
}

// Held returns the identity of the store and what it has. It may be called after Close.
func (s *Store) Held() Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Held{s.id, s.position}
}

const adviceMount = "mount its file system again, or put it back; the server then continues by itself"

// there returns a [*Missing] unless the directory's files are those of the held store.
// While a file system is not mounted, an empty directory is in its place. there changes
// nothing.
func (h *Held) there(dir string) error {
	miss := &Missing{Dir: dir, Advice: adviceMount, Commits: h.Commits}
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0:
		miss.Code, miss.What = DatabaseMissing, fileName+" was there until now, and is missing or empty"
		return miss
	case err != nil:
		return datadir.Error(dir, err)
	}
	if id, _, read := readPosition(path); read && len(id) > 0 && string(id) != string(h.ID[:]) {
		return h.other(dir)
	}
	return nil
}

func (h *Held) other(dir string) *Missing {
	return &Missing{Code: DatabaseOther, Dir: dir, What: fileName + " is not the database that was there until now", Advice: adviceMount, Commits: h.Commits}
}

// found describes the files before the store is opened.
type found struct {
	mark    *wal.Mark
	marked  time.Time // when the mark was written
	log     wal.Log
	newest  uint64 // newest acknowledged position, as far as it is known
	missing *Missing
}

const (
	advicePutBack = "put the file back, or start with --accept-loss to go on without"
	adviceBackup  = "if a backup was put back, move the log and the mark away as well; or start with --accept-loss, which moves them aside"
)

// look compares the files of a directory before SQLite opens them, because SQLite deletes
// a log beside an empty database. look changes nothing.
func look(dir string, acknowledged Acknowledged) (f found, err error) {
	path := filepath.Join(dir, fileName)
	if f.mark, err = wal.ReadMark(dir); err != nil {
		return f, err
	}
	if f.log, err = wal.ReadLog(path + "-wal"); err != nil {
		return f, err
	}
	miss := func(code, advice string, gone uint64, format string, args ...any) {
		f.missing = &Missing{Code: code, Dir: dir, What: fmt.Sprintf(format, args...), Advice: advice, Commits: gone, Since: f.marked}
	}
	if info, err := os.Stat(filepath.Join(dir, wal.MarkName)); err == nil {
		f.marked = info.ModTime()
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return f, err
	case (err != nil || info.Size() == 0) && (f.log.There || f.mark != nil):
		miss(DatabaseMissing, advicePutBack, 0, "%s is missing or empty, but its log or its mark is there", fileName)
		return f, nil
	case f.mark == nil: // written by an older version, or a copy: nothing is known
		return f, nil
	}
	m := f.mark
	if f.newest = m.Newest; acknowledged != nil {
		if commits, known := acknowledged.Before(m.ID); known {
			f.newest = max(f.newest, commits)
		}
	}
	id, commits, read := readPosition(path)
	known := f.log.Gen == m.Gen || f.log.Gen.Follows(m.Gen) || m.Gen == wal.Generation{}
	switch {
	case read && (len(id) > 0 && string(id) != string(m.ID[:]) || commits < m.Base):
		miss(DatabaseBehind, adviceBackup, f.newest-min(commits, f.newest), "%s is older than its log, or is another one", fileName)
	case m.Clean || !read:
	case (!f.log.There || !known) && commits < f.newest:
		miss(LogMissing, advicePutBack, f.newest-commits, "%s-wal is missing, or is another one", fileName)
	case f.log.There && f.log.Gen == m.Gen && m.Base+f.log.Commits < f.newest:
		miss(CommitsMissing, advicePutBack, f.newest-m.Base-f.log.Commits, "the last acknowledged commits are missing in %s-wal", fileName)
	}
	return f, nil
}

// readPosition reads the database file without its log, and changes neither. ok is false
// if the file is in the middle of a checkpoint or not a database of ours. A file that is
// older than positions, or whose data is all in its log, has no id.
func readPosition(path string) (id []byte, commits uint64, ok bool) {
	name, err := dsn(path, []string{"query_only(1)"})
	if err != nil {
		return nil, 0, false
	}
	db, err := sql.Open("sqlite", name+"&immutable=1&mode=ro")
	if err != nil {
		return nil, 0, false
	}
	defer func() { _ = db.Close() }()
	ctx := context.Background()
	tables, ours, err := schema.Tables(ctx, db)
	if err != nil || ours == 0 {
		return nil, 0, err == nil && tables == 0
	}
	var schema int
	if db.QueryRowContext(ctx, "SELECT schema FROM store").Scan(&schema) != nil {
		return nil, 0, false
	}
	if schema < positionSchema {
		return nil, 0, true
	}
	var n int64
	if db.QueryRowContext(ctx, "SELECT id, commits FROM store").Scan(&id, &n) != nil {
		return nil, 0, false
	}
	return id, uint64(n), true
}

// positionSchema is the first schema with positions.
const positionSchema = 15

// setAside renames files that are useless without a missing part.
func setAside(dir string) error {
	suffix := ".lost-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	for _, name := range []string{fileName + "-wal", fileName + "-shm", wal.MarkName} {
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return datadir.Error(dir, err)
		}
	}
	return datadir.Sync(dir)
}

// accept decides whether a directory with a missing part is opened.
func (o *Options) accept(dir string, f *found) error {
	switch {
	case f.missing == nil:
		return nil
	case !o.AcceptLoss:
		return f.missing
	}
	if o.Lost != nil {
		o.Lost(f.missing)
	}
	if f.missing.Code == DatabaseMissing || f.missing.Code == DatabaseBehind {
		if err := setAside(dir); err != nil {
			return err
		}
	}
	f.mark = nil
	return nil
}

// begin compares the position of the open store with the acknowledged position, and
// writes the first mark of this process. It is called before anybody else uses the store.
func (s *Store) begin(ctx context.Context, o *Options, f *found) (err error) {
	var id []byte
	var commits int64
	if err := s.conn.QueryRowContext(ctx, "SELECT id, commits FROM store").Scan(&id, &commits); err != nil {
		return err
	}
	s.position, s.acknowledged = uint64(commits), o.Acknowledged
	if h := o.After; h != nil {
		var m *Missing
		switch {
		case string(id) != string(h.ID[:]):
			m = h.other(s.dir)
		case s.position < h.Commits:
			m = &Missing{Code: CommitsMissing, Dir: s.dir, What: "the last acknowledged commits are missing", Advice: advicePutBack, Commits: h.Commits - s.position}
		}
		if m != nil {
			s.broken = m // Close leaves the log alone
			return m
		}
	}
	if f.mark != nil && s.position < f.newest {
		m := &Missing{Code: CommitsMissing, Dir: s.dir, Advice: advicePutBack, Commits: f.newest - s.position, Since: f.marked,
			What: "the last acknowledged commits are missing"}
		if !o.AcceptLoss {
			s.broken = m // Close leaves the log alone
			return m
		}
		f.missing = m
		if o.Lost != nil {
			o.Lost(m)
		}
	}
	log, err := wal.ReadLog(filepath.Join(s.dir, fileName+"-wal"))
	if err != nil {
		return err
	}
	first := wal.Mark{Gen: log.Gen, Newest: s.position}
	copy(first.ID[:], id)
	s.id = first.ID
	if log.There { // commits from before the schema had positions do not count
		first.Base = s.position - min(log.Commits, s.position)
	}
	if f.mark != nil {
		first.Seq = f.mark.Seq
	}
	if s.marker, err = wal.OpenMark(s.dir, first); err != nil {
		return err
	}
	if s.gen = first.Gen; s.acknowledged != nil {
		s.acknowledged.Note(s.id, s.position)
	}
	if f.missing == nil {
		return nil
	}
	return s.noteLoss(ctx, f.missing)
}

// noteLoss writes the accepted loss into the audit log.
func (s *Store) noteLoss(ctx context.Context, m *Missing) error {
	return s.ChangeAccess(ctx, host.AccessChange{Audit: []host.AuditEntry{{
		Time: time.Now().UnixNano(), Who: host.AuditServerAdmin, Act: "store.accept_loss", Target: m.Code,
		Detail: fmt.Sprintf("%d commits", m.Commits), Outcome: host.AuditOK,
	}}})
}

// committed records a durable commit. If the commit was the first of a new generation of
// the log, committed also makes the mark name that generation. mu is held. After an error
// nobody knows whether the next start will find the commit.
func (s *Store) committed(position uint64) error {
	s.position = position
	if s.log == nil {
		f, err := os.Open(filepath.Join(s.dir, fileName+"-wal"))
		if err != nil {
			return err
		}
		s.log = f
	}
	_, gen, there, err := wal.ReadHead(s.log)
	if err != nil {
		return err
	}
	fresh := there && gen != s.gen
	s.marker.Note(func(m *wal.Mark) {
		m.Newest = position
		if fresh {
			m.Gen, m.Base = gen, position-1
		}
	})
	if fresh {
		if err := s.marker.Flush(); err != nil {
			return fmt.Errorf("writing %s: %w", wal.MarkName, err)
		}
		s.gen = gen
	}
	if s.acknowledged != nil {
		s.acknowledged.Note(s.id, position)
	}
	return nil
}

// markEvery is how often the mark is written while there are commits.
const markEvery = 5 * time.Second

// keepMark keeps the mark up to date until Close. After a failed write the next write
// tries again. Until then the mark is older, and a start would notice less.
func (s *Store) keepMark() {
	defer close(s.kept)
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.following.Done():
			return
		case <-tick.C:
			_ = s.marker.Flush()
		}
	}
}

// endMark records that the database file has everything, if the store was closed without
// an error.
func (s *Store) endMark(well bool) error {
	if s.log != nil {
		_ = s.log.Close()
	}
	if s.marker == nil {
		return nil
	}
	if !well {
		return s.marker.Close()
	}
	s.marker.Note(func(m *wal.Mark) { m.Clean, m.Gen, m.Base = true, wal.Generation{}, m.Newest })
	return errors.Join(s.marker.Flush(), s.marker.Close())
}

// ReadFiles reads the database and its log to their ends. It returns the error of the
// first byte that the disk does not return. The files must not be open in this process.
func ReadFiles(dir string) error {
	for _, name := range []string{fileName, fileName + "-wal"} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s cannot be read from byte %d on: %w", name, n, err)
		}
	}
	return nil
}
