package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	driver "modernc.org/sqlite"

	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/sqlite/schema"
	"github.com/weftrun/weft/host/store/sqlite/wal"
)

// stepPages is how many pages (of 4 KiB) are copied between two checks of the context.
const stepPages = 1024

// copyPragmas are for a file that a copy is writing. If the copy does not finish, the
// file is deleted. The file is synced once, as a whole.
var copyPragmas = []string{"journal_mode(OFF)", "synchronous(OFF)"}

// backuper is the part of the driver's connection that offers SQLite's backup API.
type backuper interface {
	NewBackup(destination string) (*driver.Backup, error)
}

// Progress is called with the number of copied pages and the total.
type Progress func(done, total int)

// Backup copies the database, as it is at one moment, into a new file. It does not block
// a server that writes meanwhile. The copy is written beside the file under another name,
// synced, passed to verify (nil: no verification), and renamed. An existing file is
// replaced.
//
// All pages are copied from one snapshot. Without a snapshot, SQLite would start the copy
// again after every commit of another process. In return, the server's log cannot be
// reused during the copy. It grows by the commits of that time and is cut back
// afterwards.
//
// # Errors
//
// The errors of the file system and of verify; that of the context. Nothing is left
// behind.
func (s *Store) Backup(ctx context.Context, file string, progress Progress, verify func(file string) error) error {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return err
	}
	i := &Inspection{conn: conn}
	if err := i.pin(ctx); err != nil {
		return errors.Join(err, conn.Close())
	}
	release := sync.OnceValue(i.Close)
	err = datadir.Replace(file, func(temp string) error {
		err := copyDatabase(ctx, conn, temp, progress)
		return errors.Join(err, release()) // lets the server reuse its log before the copy is verified
	}, verify)
	return errors.Join(err, release())
}

// copyDatabase copies the database as the connection's transaction sees it.
func copyDatabase(ctx context.Context, conn *sql.Conn, to string, progress Progress) error {
	name, err := dsn(to, copyPragmas)
	if err != nil {
		return err
	}
	return conn.Raw(func(c any) (err error) {
		source, ok := c.(backuper)
		if !ok {
			return errors.New("the SQLite driver cannot make backups")
		}
		b, err := source.NewBackup(name)
		if err != nil {
			return fmt.Errorf("copying the database to %s: %w", to, err)
		}
		defer func() {
			if finishErr := b.Finish(); err == nil && finishErr != nil {
				err = fmt.Errorf("copying the database to %s: %w", to, finishErr)
			}
		}()
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if more, err = b.Step(stepPages); err != nil {
				return fmt.Errorf("copying the database to %s: %w", to, err)
			}
			if progress != nil {
				progress(b.PageCount()-b.Remaining(), b.PageCount())
			}
		}
		return nil
	})
}

// Restore copies a backup into a data directory. The directory is created if it is
// missing, and must be empty. The copy is migrated to the newest schema and passed to
// verify (nil: no verification) before it becomes the directory's database.
//
// # Errors
//
// An error in one sentence if the directory is not empty or is in use, or if the file is
// not a backup or has a newer schema ([host.ErrNewer]); the errors of the file system and
// of verify; that of the context. The directory is then empty again.
func Restore(ctx context.Context, file, dir string, progress Progress, verify func(file string) error) (err error) {
	if err := wantBackup(file); err != nil {
		return err
	}
	source, err := openReader(file, sealed|toCopy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := datadir.Prepare(dir); err != nil {
		return err
	}
	if err := wantEmpty(dir); err != nil {
		return err
	}
	lock, err := datadir.Lock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	conn, err := source.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return datadir.Replace(filepath.Join(dir, fileName), func(temp string) error {
		if err := copyDatabase(ctx, conn, temp, progress); err != nil {
			return err
		}
		return migrateFile(ctx, temp)
	}, verify)
}

// wantBackup returns an error if the file is missing, or is a database with a log.
func wantBackup(file string) error {
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%s is a database that a server uses or has used, and not a backup: its newest commits are in the log beside it; "+
			"make a backup of it ('weft backup'), or let a server stop on it", file)
	}
	return exists(file)
}

// OpenCurrent opens a backup as [OpenFile] does, with the newest schema. It first copies a
// backup of an older version into an empty directory, temp.
func OpenCurrent(ctx context.Context, file, temp string) (*Store, error) {
	if err := wantBackup(file); err != nil {
		return nil, err
	}
	s, err := OpenFile(file)
	if err != nil {
		return nil, err
	}
	if has, newest := s.Schemas(); has == newest {
		return s, nil
	}
	if err := errors.Join(s.Close(), Restore(ctx, file, temp, nil, nil)); err != nil {
		return nil, err
	}
	return OpenFile(filepath.Join(temp, fileName))
}

// wantEmpty returns an error if the directory holds more than the lock and the named files.
func wantEmpty(dir string, except ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return datadir.Error(dir, err)
	}
	for _, e := range entries {
		if e.Name() != datadir.LockName && !slices.Contains(except, e.Name()) {
			return fmt.Errorf("data directory %s is not empty (it holds %s): restore into a new one, or move what is there away", dir, e.Name())
		}
	}
	return nil
}

// migrateFile migrates a database that nobody uses to the newest schema.
func migrateFile(ctx context.Context, path string) (err error) {
	name, err := dsn(path, copyPragmas)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return schema.Migrate(ctx, conn)
}

// Compact rewrites the database without its free pages, and returns its size in bytes
// before and after. For a moment it needs free space of twice the size of the database's
// content. It blocks all other users of the store. progress is called once, without counts.
func (s *Store) Compact(ctx context.Context, progress func(what string, done, total int)) (before, after int64, err error) {
	s.reading.Lock() // a reader would hold the log back
	defer s.reading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return 0, 0, s.broken
	}
	size := func() int64 {
		info, statErr := os.Stat(filepath.Join(s.dir, fileName))
		if statErr != nil {
			err = errors.Join(err, statErr)
			return 0
		}
		return info.Size()
	}
	// The calls below may begin new generations of the log without a commit of ours. The
	// mark names no generation until the next commit.
	s.gen = wal.Generation{}
	s.marker.Note(func(m *wal.Mark) { m.Gen, m.Base = wal.Generation{}, 0 })
	if err := s.marker.Flush(); err != nil {
		return 0, 0, fmt.Errorf("writing %s: %w", wal.MarkName, err)
	}
	const emptyLog = "PRAGMA wal_checkpoint(TRUNCATE)"
	for _, statement := range []string{emptyLog, "VACUUM", emptyLog} {
		if statement == "VACUUM" {
			before = size()
			progress("compacting", 0, 0) // SQLite does not say how far it is
		}
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return before, 0, fmt.Errorf("compacting the store in %s: %w", s.dir, err)
		}
	}
	return before, size(), err
}
