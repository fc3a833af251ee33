package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	code "modernc.org/sqlite/lib"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// surelyNotWritten reports whether a COMMIT that failed with err left nothing behind.
// SQLITE_BUSY comes before anything is written, and a log without room lacks the record
// that makes a commit valid. After any other error, especially of a sync, nobody can tell
// what is on the disk.
func surelyNotWritten(err error) bool {
	switch primaryCode(err) {
	case code.SQLITE_BUSY, code.SQLITE_FULL:
		return true
	}
	return false
}

// appendError classifies an error of a statement of an append. The transaction is rolled
// back afterwards.
func appendError(err error) error {
	var refused *record.Refusal
	switch {
	case err == nil, errors.As(err, &refused), errors.Is(err, host.ErrFenced):
		return err
	case primaryCode(err) == code.SQLITE_CONSTRAINT:
		return record.Refuse("%v", err)
	case primaryCode(err) == code.SQLITE_TOOBIG:
		return record.Refuse("a row is longer than SQLite allows: %v", err)
	}
	return record.NotCommitted(err)
}

// notFound turns the absence of a row into [host.ErrNotFound]. what names the missing
// thing. SQLITE_CORRUPT stays unchanged: SQLite also returns it for a read that the disk
// refuses, so the next read may succeed.
func notFound(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, host.ErrNotFound)
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return err
}

// damaged is notFound for an inspection. An inspection has checked before that the disk
// returns all bytes of the file, so SQLITE_CORRUPT means damage.
func damaged(err error, what string) error {
	if primaryCode(err) == code.SQLITE_CORRUPT {
		return fmt.Errorf("reading %s: %w: %w", what, host.ErrUnreadable, err)
	}
	return notFound(err, what)
}
