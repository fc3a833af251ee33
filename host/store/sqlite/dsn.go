package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"
)

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
	// commit that passes this many pages (64 MiB). Commits mostly rewrite the same few
	// pages, the right edges of the trees. So a log sixteen times the default size has
	// hardly more distinct pages: there are fewer copies and fewer slow commits. When a
	// tenant has large entries, every hundredth run of another tenant met a checkpoint of
	// 10 ms with a log of 16 MiB (BenchmarkNeighbour). After a crash, the store reads the
	// log in about 0.1 s when it opens.
	//
	// A checkpoint on another connection, beside the commits, would be worse. SQLite syncs
	// the file only after a checkpoint that no commit overtook. If the sync of the next
	// checkpoint then failed, SQLite would not copy the earlier pages again.
	"wal_autocheckpoint(16384)",
	// A log that a long reader has made grow is cut back to 128 MiB. That is more than a
	// checkpoint leaves, so that a usual log keeps its blocks.
	"journal_size_limit(134217728)",
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
