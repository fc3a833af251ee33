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

// lockName is the file whose lock says that a server uses the directory. It is
// a file of its own because closing any other descriptor of the database file
// would drop SQLite's own locks on it.
const lockName = "weft.lock"

// ErrInUse: another holds the lock of the data directory.
var ErrInUse = errors.New("in use by another weft server")

// prepareDir makes the data directory if it is missing, for its owner alone.
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
	// The new name itself has to survive a power loss too.
	return syncDir(filepath.Dir(filepath.Clean(dir)))
}

// lockDir takes the directory's lock. The kernel frees it when the process
// ends, however it ends.
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

// createFile makes the database file readable for its owner alone; SQLite gives
// the same mode to the files it makes beside it.
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

// rewrite writes a file's bytes again, in place, and syncs it; one that is missing is
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

// syncDir makes the names in a directory durable. Where directories cannot be
// opened or synced (some file systems, Windows), the system does so by itself.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // not readable: nothing that we could sync
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

// openError says what is wrong with a database file that does not open.
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

// primaryCode is the SQLite result code of an error without its extension; 0
// for another error.
func primaryCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// pragmas of every connection.
var pragmas = []string{
	// Another program that looks into the file may hold a lock for a moment.
	"busy_timeout(5000)",
	// Deleting a handler deletes its runs and its stream, deleting a session
	// its journal: the schema says so, and keeps it so.
	"foreign_keys(1)",
	// Sorting for a listing needs no file.
	"temp_store(MEMORY)",
	// Nothing in the file is trusted to call functions with side effects.
	"trusted_schema(0)",
}

// writerPragmas are those of the writing connection.
var writerPragmas = []string{
	// A commit appends to one log and syncs it once; readers do not wait for
	// the writer, nor it for them.
	"journal_mode(WAL)",
	// In WAL mode NORMAL syncs at checkpoints only and loses the latest
	// commits with the power; FULL syncs at every commit.
	"synchronous(FULL)",
	// A checkpoint, which copies the log into the file, costs two syncs and
	// runs inside the commit that passes this many pages (16 MiB). Commits
	// mostly rewrite the same few pages, the right edges of the trees, so a
	// log four times the default holds hardly more distinct pages: fewer
	// copies and fewer commits that wait, for a log that is still read in
	// well under a second when the store opens after a crash.
	"wal_autocheckpoint(4096)",
	// A log that a long reader made grow is cut back to 64 MiB.
	"journal_size_limit(67108864)",
	// 32 MiB of pages: the upper levels of the trees by random ids (runs,
	// sessions, handlers) of some millions of runs.
	"cache_size(-32768)",
}

// readerPragmas are those of the reading connections.
var readerPragmas = []string{
	"query_only(1)",
	"cache_size(-8192)",
}

func writerDSN(path string) (string, error) { return dsn(path, writerPragmas) }

func readerDSN(path string) (string, error) { return dsn(path, readerPragmas) }

// dsn builds the data source name of a connection. The path is escaped: a
// directory may be called anything.
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
