package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	driver "modernc.org/sqlite"
)

// stepPages is how many pages (of 4 KiB) are copied between two looks at the
// context.
const stepPages = 1024

// copyPragmas are those of a file that is being written by a copy: if that does
// not come to its end, the file goes. It is synced once, as a whole.
var copyPragmas = []string{"journal_mode(OFF)", "synchronous(OFF)"}

// backuper is what the driver's connection can do, by SQLite's backup API.
type backuper interface {
	NewBackup(destination string) (*driver.Backup, error)
}

// Progress is told how many pages of a copy are done, and of how many.
type Progress func(done, total int)

// Backup copies the database, as it is at one moment, into a new file: a server
// that writes meanwhile is not held up. The copy is written beside the file under
// a name of its own, synced, given to verify (nil: none), and renamed. A file that
// is there is replaced.
//
// All pages are copied from one snapshot. SQLite could copy without one, but then
// begins anew after every commit of another process. The snapshot's price is that
// the server's log cannot be reused while it lasts: for each second of copying the
// log grows by a second's commits, and is cut back afterwards.
//
// # Errors
//
// Of the file system, of verify, the context's. Nothing is left behind.
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
	err = replaceFile(file, func(temp string) error {
		err := copyDatabase(ctx, conn, temp, progress)
		return errors.Join(err, release()) // the server's log may go on before the copy is verified
	}, verify)
	return errors.Join(err, release())
}

// replaceFile has a file written under another name, synced and verified before it
// takes its name.
func replaceFile(file string, write, verify func(temp string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.partial")
	if err != nil {
		return err
	}
	temp := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFile(temp))
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := write(temp); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	if verify != nil {
		if err := verify(temp); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyDatabase copies what the connection's transaction sees.
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

// Restore copies a backup into a data directory, which is made if it is missing
// and has to be empty. The copy is brought to the newest schema and given to
// verify (nil: none) before it becomes the directory's database.
//
// # Errors
//
// One sentence, when the directory holds anything or is in use, or the file is no
// backup or by its schema a newer version's ([host.ErrNewer]); of the file system,
// of verify, the context's. The directory is then as empty as it was.
func Restore(ctx context.Context, file, dir string, progress Progress, verify func(file string) error) (err error) {
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%s is a database that a server uses or has used, and no backup: its newest commits lie beside it; "+
			"make a backup of it ('weft backup'), or let a server stop on it", file)
	}
	if err := exists(file); err != nil {
		return err
	}
	source, err := openReader(file, sealed|toCopy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := prepareDir(dir); err != nil {
		return err
	}
	if err := wantEmpty(dir); err != nil {
		return err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	conn, err := source.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return replaceFile(filepath.Join(dir, fileName), func(temp string) error {
		if err := copyDatabase(ctx, conn, temp, progress); err != nil {
			return err
		}
		return migrateFile(ctx, temp)
	}, verify)
}

// wantEmpty refuses a directory that holds more than the lock.
func wantEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dirError(dir, err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return fmt.Errorf("data directory %s is not empty (it holds %s): restore into a new one, or move what is there away", dir, e.Name())
		}
	}
	return nil
}

// migrateFile brings the schema of a database that nobody uses to the newest.
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
	return migrate(ctx, conn)
}

// Compact rewrites the database without the pages that deletions have left, and
// gives its size in bytes before and after. It needs as much free space as the
// database has content, twice for a moment, and holds up whoever else uses the
// store.
func (s *Store) Compact(ctx context.Context) (before, after int64, err error) {
	s.reading.Lock() // a reader holds the log back
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
	// What follows begins fillings of the log without a commit of ours: the mark names
	// none until the next one.
	s.gen = generation{}
	s.marker.note(func(m *mark) { m.gen, m.base = generation{}, 0 })
	if err := s.marker.flush(); err != nil {
		return 0, 0, fmt.Errorf("writing %s: %w", markName, err)
	}
	const emptyLog = "PRAGMA wal_checkpoint(TRUNCATE)"
	for _, statement := range []string{emptyLog, "VACUUM", emptyLog} {
		if statement == "VACUUM" {
			before = size()
		}
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return before, 0, fmt.Errorf("compacting the store in %s: %w", s.dir, err)
		}
	}
	return before, size(), err
}
