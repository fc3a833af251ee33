package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"
)

// lockName is the file whose lock marks the directory as used by a server. It is a
// separate file, because closing any other descriptor of the database file would release
// SQLite's own locks on it.
const lockName = "weft.lock"

// ErrInUse: another server holds the lock of the data directory.
var ErrInUse = errors.New("in use by another weft server")

// prepareDir creates the data directory if it is missing, readable only by its owner.
func prepareDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("data directory %s is not a directory", dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return dirError(dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dirError(dir, err)
	}
	// The name of the directory must survive a power loss too.
	return syncDir(filepath.Dir(filepath.Clean(dir)))
}

// lockDir locks the directory. The kernel releases the lock when the process ends, for
// whatever reason.
func lockDir(dir string) (*os.File, error) {
	f, err := lockFile(filepath.Join(dir, lockName))
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("data directory %s is %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, dirError(dir, err)
	}
	return f, nil
}

// createFile creates the database file, readable only by its owner. SQLite gives the
// files that it creates beside it the same mode.
func createFile(dir, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return dirError(dir, err)
	}
	if err := f.Close(); err != nil {
		return dirError(dir, err)
	}
	return syncDir(dir)
}

// rewrite writes a file's bytes again, in place, and syncs the file. A missing file is
// left alone.
func rewrite(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return f.Sync()
		}
		if _, err := f.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
}

// syncDir makes the names in a directory durable. Where directories cannot be opened or
// synced (some file systems, Windows), the system makes names durable by itself.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // not readable, so there is nothing to sync
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && errors.Is(err, syscall.EIO) {
		return dirError(dir, err)
	}
	return nil
}

// dirError says in one sentence why a data directory cannot be used.
func dirError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("data directory %s is not writable: %w", dir, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("data directory %s is not a directory: %w", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("data directory %s has no space left: %w", dir, err)
	}
	return fmt.Errorf("data directory %s cannot be used: %w", dir, err)
}

// openError says why a database file cannot be opened.
func openError(dir string, err error) error {
	switch primaryCode(err) {
	case code.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a SQLite database: %w", filepath.Join(dir, fileName), err)
	case code.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged: %w", filepath.Join(dir, fileName), err)
	case code.SQLITE_READONLY, code.SQLITE_CANTOPEN:
		return fmt.Errorf("data directory %s is not writable: %w", dir, err)
	}
	return fmt.Errorf("opening %s: %w", filepath.Join(dir, fileName), err)
}

// primaryCode returns the SQLite result code of an error without its extension, or 0 for
// other errors.
func primaryCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// pragmas are set on every connection.
var pragmas = []string{
	// Another program that reads the file may hold a lock for a moment.
	"busy_timeout(5000)",
	// Deleting a handler deletes its runs and its stream, and deleting a session deletes
	// its journal. The schema declares this.
	"foreign_keys(1)",
	// Sorting for a list needs no file.
	"temp_store(MEMORY)",
	// The contents of the file may not call functions with side effects.
	"trusted_schema(0)",
}

// writerPragmas are set on the writing connection.
var writerPragmas = []string{
	// A commit appends to one log and syncs it once. Readers and the writer do not wait
	// for each other.
	"journal_mode(WAL)",
	// In WAL mode NORMAL syncs only at checkpoints, and a power loss would lose the
	// latest commits. FULL syncs at every commit.
	"synchronous(FULL)",
	// A checkpoint copies the log into the file. It costs two syncs and runs inside the
	// commit that passes this many pages (16 MiB). Commits mostly rewrite the same few
	// pages, the right edges of the trees. So a log four times the default size has
	// hardly more distinct pages: there are fewer copies and fewer slow commits, and the
	// log is still read in well under a second when the store opens after a crash.
	"wal_autocheckpoint(4096)",
	// A log that a long reader has made grow is cut back to 64 MiB.
	"journal_size_limit(67108864)",
	// 32 MiB of pages: the upper levels of the trees with random keys (runs, sessions,
	// handlers), for some millions of runs.
	"cache_size(-32768)",
}

// readerPragmas are set on the reading connections.
var readerPragmas = []string{
	"query_only(1)",
	"cache_size(-8192)",
}

func writerDSN(path string) (string, error) { return dsn(path, writerPragmas) }

func readerDSN(path string) (string, error) { return dsn(path, readerPragmas) }

// dsn builds the data source name of a connection. It escapes the path, because a
// directory may have any name.
func dsn(path string, more []string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") {
		abs = "/" + abs // a drive letter
	}
	query := url.Values{"_error_rc": {strconv.FormatBool(true)}, "_dqs": {strconv.FormatBool(false)}}
	for _, list := range [][]string{pragmas, more} {
		for _, pragma := range list {
			query.Add("_pragma", pragma)
		}
	}
	u := url.URL{Scheme: "file", Path: abs, RawQuery: query.Encode()}
	return u.String(), nil
}
