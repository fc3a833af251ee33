package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	code "modernc.org/sqlite/lib"

	"github.com/weftrun/weft/host"
)

// refusal is the error of a batch that contradicts itself or what is stored.
// Nothing of it was written, and trying again would end the same.
type refusal struct{ reason string }

func (e *refusal) Error() string { return "batch refused: " + e.reason }

func refuse(format string, args ...any) error {
	return &refusal{reason: fmt.Sprintf(format, args...)}
}

// notCommitted marks an error of a transaction that was surely not written.
func notCommitted(err error) error {
	return fmt.Errorf("%w: %w", host.ErrNotCommitted, err)
}

// surelyNotWritten reports whether a COMMIT that failed with err left nothing
// behind. SQLITE_BUSY comes before anything is written, and a log that found no
// room lacks the record that makes a commit valid. After any other error, of a
// sync above all, nobody can tell what is on the disk.
func surelyNotWritten(err error) bool {
	switch primaryCode(err) {
	case code.SQLITE_BUSY, code.SQLITE_FULL:
		return true
	}
	return false
}

// appendError classifies an error of a statement of an append; the transaction
// is rolled back after it.
func appendError(err error) error {
	var refused *refusal
	switch {
	case err == nil, errors.As(err, &refused), errors.Is(err, host.ErrFenced):
		return err
	case primaryCode(err) == code.SQLITE_CONSTRAINT:
		return refuse("%v", err)
	case primaryCode(err) == code.SQLITE_TOOBIG:
		return refuse("a row is longer than SQLite allows: %v", err)
	}
	return notCommitted(err)
}

// notFound turns the absence of a row into [host.ErrNotFound]. what says what was
// looked for. SQLITE_CORRUPT stays what it is: SQLite makes it of a read that the disk
// refuses, too, so that nobody can tell whether the next one would fail as well.
func notFound(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, host.ErrNotFound)
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return err
}

// damaged is notFound for an inspection, which has seen before that the disk gives
// all bytes of the file: what SQLite takes for damage is damage.
func damaged(err error, what string) error {
	if primaryCode(err) == code.SQLITE_CORRUPT {
		return fmt.Errorf("reading %s: %w: %w", what, host.ErrUnreadable, err)
	}
	return notFound(err, what)
}
