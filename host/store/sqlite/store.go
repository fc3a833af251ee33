// Package sqlite keeps everything durable in one SQLite file: the store of a
// server of one node.
//
// It implements [host.Store] and must not know what a journal row means, who
// appends or when: rows of entries are bytes to it. No other package uses the
// SQLite driver.
//
// # How it writes
//
// One connection writes, all of it under one mutex; a few others read. An
// append is one transaction, and that transaction is one synced write to the
// end of the write-ahead log:
//
//   - Tables that grow with every run are keyed by small integers given in
//     order of creation, so that new rows go to the right edge of each tree and
//     a batch of many sessions touches few pages.
//   - A position, a handler's owner and a run's identity are checked by the
//     very statement that writes, through its WHERE clause and the count of
//     rows it changed; a refusal rolls the whole batch back.
//   - The epoch is read in the same transaction, so that an owner that has been
//     fenced cannot write, whatever it believes.
//
// After an append whose outcome is open (the disk failed in the COMMIT) the
// store refuses every further write: what it holds in memory may differ from
// the disk, and only opening it again tells. That begins with writing the log again,
// as the disk may lack what reads of it show (see settleLog).
//
// # What SQLite is told
//
//   - Write-ahead log and synchronous=FULL: a commit is one synced append, and
//     none is lost with the power (NORMAL would lose the latest). Checkpoints
//     come every 16 MiB of log; after a long reader it is cut back to 64 MiB.
//   - Foreign keys: what belongs to a deleted row goes with it.
//   - No auto_vacuum: the pages of deleted rows are used again, and each commit is
//     spared a map of all pages. [Store.Compact] gives them back.
//   - The directory is locked by a file of its own, as SQLite's locks would let a
//     second server in between transactions. Readers ([OpenShared]) come and go.
//
// Each PRAGMA says why where it is listed.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/weftrun/weft/host"
)

// fileName is the database's name inside the data directory.
const fileName = "weft.db"

// readers is the size of the pool of reading connections. Reads are short, so
// a few do; each costs its own page cache.
const readers = 4

// errClosed answers every call after Close.
var errClosed = errors.New("the store is closed")

// Store is a [host.Store] on one SQLite file.
type Store struct {
	dir   string
	lock  *os.File
	write *sql.DB // one connection, pinned as conn
	read  *sql.DB
	query *queries
	// schema is the number of the database's; found is what was there before it was
	// opened. Neither changes.
	schema int
	found  found

	// mu guards the writing connection and what follows. It is held over disk
	// writes; nothing else is ever acquired under it.
	mu     sync.Mutex
	conn   *sql.Conn
	stmts  *statements
	broken error // why no write is possible any more, else nil
	closed bool
	needs  []need  // of the batch that is being appended
	cuts   []int64 // sessions that it cuts
	ended  []int64 // runs that it ends

	// position counts writing transactions, those of before included; gen is the log's
	// filling as the mark names it. See look.go.
	position     uint64
	gen          generation
	log          *os.File // the log's, to read its head; nil: not opened yet
	marker       *marker
	acknowledged Acknowledged  // nil: none
	id           [16]byte      // of the store
	kept         chan struct{} // closed when nobody keeps the mark any more

	// What follows keeps the index of words (see search.go). reading is held while
	// notes are worked off, and before mu.
	reading   sync.Mutex
	noted     chan struct{} // has one when there is a new note
	following context.Context
	unfollow  context.CancelFunc
	followed  chan struct{} // closed when nobody follows any more

	commits      atomic.Uint64
	journalBytes atomic.Uint64
	commitTime   atomic.Int64 // nanoseconds
}

var _ host.Store = (*Store)(nil)

// Open opens the store in directory dir and makes both if need be. It holds a
// lock on the directory until Close, so that a second server cannot use it.
//
// # Errors
//
// One sentence that names the directory, when it is in use by another server,
// no directory, not writable, or written by a newer version. A [*Missing] if it lacks
// files, or holds less than was acknowledged.
func Open(dir string) (*Store, error) { return OpenWith(dir, Options{}) }

// OpenWith is [Open] with options.
func OpenWith(dir string, o Options) (_ *Store, err error) {
	if o.After != nil {
		o.AcceptLoss = false // it is for the start of a process
		err = o.After.there(dir)
	} else {
		err = prepareDir(dir)
	}
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	path := filepath.Join(dir, fileName)
	there, err := look(dir, o.Acknowledged)
	if err != nil {
		return nil, dirError(dir, err)
	}
	if err := o.accept(dir, &there); err != nil {
		return nil, err
	}
	if err := createFile(dir, path); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := s.openWriter(ctx, path); err != nil {
		return nil, openError(dir, err)
	}
	if err := s.settleLog(ctx, path); err != nil {
		return nil, openError(dir, err)
	}
	if err := migrate(ctx, s.conn); err != nil {
		return nil, openError(dir, err)
	}
	if s.stmts, err = prepareStatements(ctx, s.conn); err != nil {
		return nil, openError(dir, err)
	}
	if err := s.openReaders(ctx, path); err != nil {
		return nil, openError(dir, err)
	}
	if err := s.begin(ctx, &o, &there); err != nil {
		return nil, err
	}
	s.noted, s.followed = make(chan struct{}, 1), make(chan struct{})
	s.following, s.unfollow = context.WithCancel(ctx)
	s.kept = make(chan struct{})
	go s.follow()
	go s.keepMark()
	return s, nil
}

func (s *Store) openWriter(ctx context.Context, path string) error {
	dsn, err := writerDSN(path)
	if err != nil {
		return err
	}
	if s.write, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	s.conn, err = s.write.Conn(ctx)
	return err
}

// settleLog makes what reads as the write-ahead log what the disk has. After a sync
// that failed the system takes for clean what it could not write: SQLite reads those
// commits, and no later sync would write them, so that those behind them, which have
// been acknowledged, would be cut off when the power goes. So the same bytes are
// written again, in place, before anything else is: others may be reading, and nobody
// writes while SQLite's lock is held. There is a log after a crash or a failure only,
// of 16 MiB mostly.
func (s *Store) settleLog(ctx context.Context, path string) error {
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := rewrite(path + "-wal")
	_, rollbackErr := s.conn.ExecContext(ctx, "ROLLBACK")
	return errors.Join(err, rollbackErr)
}

func (s *Store) openReaders(ctx context.Context, path string) error {
	dsn, err := readerDSN(path)
	if err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	s.schema = len(migrations)
	s.query, err = prepareQueries(ctx, s.read, s.schema)
	return err
}

// Close implements [host.Store]. It moves the write-ahead log into the
// database file, so that what remains is one file.
func (s *Store) Close() error {
	if s.unfollow != nil {
		s.unfollow()
		<-s.followed
		<-s.kept
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	intact := s.broken == nil
	s.broken = errClosed
	err := errors.Join(s.closeReaders(), s.closeWriter(intact))
	if err = errors.Join(err, s.endMark(intact && err == nil), s.unlock()); err != nil {
		return fmt.Errorf("closing the store in %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) unlock() error {
	if s.lock == nil {
		return nil // opened beside a server
	}
	return s.lock.Close()
}

func (s *Store) closeReaders() error {
	if s.read == nil {
		return nil
	}
	return s.read.Close()
}

// closeWriter moves the log into the file and closes the last connection. After
// an open outcome it leaves the log alone: the disk that has just failed would
// fail again.
func (s *Store) closeWriter(intact bool) error {
	var errs []error
	if s.stmts != nil {
		if intact {
			_, err := s.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
			errs = append(errs, err)
		}
		errs = append(errs, s.stmts.close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(errs...)
}

// Stats implements [host.Store].
func (s *Store) Stats() host.StoreStats {
	return host.StoreStats{
		Commits:      s.commits.Load(),
		JournalBytes: s.journalBytes.Load(),
		CommitTime:   time.Duration(s.commitTime.Load()),
	}
}

// Claim implements [host.Store].
func (s *Store) Claim(ctx context.Context) (uint64, error) {
	var epoch int64
	err := s.update(ctx, func(ctx context.Context) error {
		return s.conn.QueryRowContext(ctx, "UPDATE store SET epoch = epoch + 1 RETURNING epoch").Scan(&epoch)
	})
	if err != nil {
		return 0, fmt.Errorf("claiming the store: %w", err)
	}
	return uint64(epoch), nil
}

// update runs fn in a writing transaction.
func (s *Store) update(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	return s.transact(ctx, fn)
}

// transact runs fn between BEGIN and COMMIT; s.mu is held. An error of fn rolls
// back, and comes back as it is. The other errors of a transaction that was
// surely not written are [host.ErrNotCommitted]; the rest leaves its outcome
// open and breaks the store.
//
// The context's end does not interrupt a transaction: it would only leave its
// outcome open, and none takes long.
func (s *Store) transact(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := s.stmts.begin.ExecContext(ctx); err != nil {
		return notCommitted(err)
	}
	if err := fn(ctx); err != nil {
		if rollbackErr := s.rollback(ctx); rollbackErr != nil {
			return s.breakDown(errors.Join(err, rollbackErr))
		}
		return err
	}
	var position int64
	err := s.stmts.advance.QueryRowContext(ctx).Scan(&position)
	if err != nil {
		if rollbackErr := s.rollback(ctx); rollbackErr != nil {
			return s.breakDown(errors.Join(err, rollbackErr))
		}
		return notCommitted(err)
	}
	if _, err = s.stmts.commit.ExecContext(ctx); err == nil {
		if err = s.committed(uint64(position)); err != nil {
			return s.breakDown(err)
		}
		return nil
	}
	if !surelyNotWritten(err) {
		_ = s.rollback(ctx) // the store is of no use any more, but its locks go
		return s.breakDown(err)
	}
	if rollbackErr := s.rollback(ctx); rollbackErr != nil {
		return s.breakDown(errors.Join(err, rollbackErr))
	}
	return notCommitted(err)
}

// rollback ends the open transaction. SQLite has ended it already after some
// errors, and then refuses a ROLLBACK; that a BEGIN is possible tells so.
func (s *Store) rollback(ctx context.Context) error {
	_, err := s.stmts.rollback.ExecContext(ctx)
	if err == nil {
		return nil
	}
	if _, beginErr := s.stmts.begin.ExecContext(ctx); beginErr != nil {
		return fmt.Errorf("rolling back: %w", err)
	}
	if _, err := s.stmts.rollback.ExecContext(ctx); err != nil {
		return fmt.Errorf("rolling back: %w", err)
	}
	return nil
}

// breakDown makes every further write fail; s.mu is held.
func (s *Store) breakDown(cause error) error {
	s.broken = fmt.Errorf("the store in %s has to be opened again after: %w", s.dir, cause)
	return s.broken
}
