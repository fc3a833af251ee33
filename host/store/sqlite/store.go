// Package sqlite keeps everything durable in one SQLite file. It is the store of a server
// with one node.
//
// It implements [host.Store]. The package does not know what a journal row means, who
// appends or when: rows of entries are bytes to it. No other package uses the SQLite
// driver.
//
// # How it writes
//
// One connection writes, under one mutex. A few other connections read. An append is one
// transaction, and the transaction is one synced write to the end of the write-ahead log:
//
//   - Tables that grow with every run have small integer keys, given in order of creation.
//     So new rows go to the right edge of each tree, and a batch of many sessions touches
//     few pages.
//   - The statement that writes also checks a position, a handler's owner or a run's
//     identity, by its WHERE clause and the number of rows that it changed. A refusal rolls
//     the whole batch back.
//   - The epoch is read in the same transaction, so a fenced owner cannot write, whatever it
//     believes.
//
// After an append with an unknown outcome (the disk failed in the COMMIT) the store
// refuses all further writes, because its memory may differ from the disk. Only opening
// the store again shows what the disk has. Opening begins by writing the log again,
// because the disk may lack bytes that reads of the log return (see settleLog).
//
// # How SQLite is configured
//
//   - Write-ahead log and synchronous=FULL: a commit is one synced append, and a power loss
//     loses no commit (NORMAL would lose the latest). A checkpoint runs after every 64 MiB of
//     log. After a long reader the log is cut back to 128 MiB.
//   - Foreign keys: rows that belong to a deleted row are deleted with it.
//   - No auto_vacuum: the pages of deleted rows are used again, and a commit does not have to
//     maintain a map of all pages. [Store.Compact] returns free pages to the file system.
//   - A lock file of the store's own locks the directory, because SQLite's locks would let a
//     second server in between transactions. Readers ([OpenShared]) may come and go.
//
// The lists of PRAGMAs say why each is set.
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
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/sqlite/schema"
	"github.com/weftrun/weft/host/store/sqlite/wal"
)

// fileName is the database's name inside the data directory.
const fileName = "weft.db"

// readers is the size of the pool of reading connections. Reads are short, so a few
// connections suffice. Each connection costs a page cache.
const readers = 4

// ErrInUse reports that another server holds the lock of the data directory.
var ErrInUse = datadir.ErrInUse

// errClosed is the error of every call after Close.
var errClosed = errors.New("the store is closed")

// Store is a [host.Store] on one SQLite file.
type Store struct {
	dir   string
	lock  *os.File
	write *sql.DB // one connection, pinned as conn
	read  *sql.DB
	query *queries
	// schema is the number of the database's schema, and found describes the files before
	// they were opened. Neither changes.
	schema int
	found  found

	// mu guards the writing connection and the fields below. It is held over disk writes.
	// Nothing else is locked under it.
	mu     sync.Mutex
	conn   *sql.Conn
	stmts  *statements
	broken error // why no write is possible any more, else nil
	closed bool
	needs  []need  // versions that the present batch needs
	cuts   []int64 // sessions that the present batch cuts
	ended  []int64 // runs that the present batch ends

	// position counts writing transactions, including those before the store was opened.
	// gen is the generation of the log that the mark names. See look.go.
	position     uint64
	gen          wal.Generation
	log          *os.File // the log, to read its head; nil: not opened yet
	marker       *wal.Marker
	acknowledged Acknowledged  // nil: none
	id           [16]byte      // of the store
	kept         chan struct{} // closed when the mark is no longer kept

	// The fields below keep the index of words (see search.go). reading is held while
	// notes are processed, and is locked before mu.
	reading   sync.Mutex
	noted     chan struct{} // capacity 1: there is a new note
	following context.Context
	unfollow  context.CancelFunc
	followed  chan struct{} // closed when the index is no longer kept

	appending    atomic.Int32 // appends that wait for mu
	commits      atomic.Uint64
	journalBytes atomic.Uint64
	commitTime   atomic.Int64 // nanoseconds
}

var _ host.Store = (*Store)(nil)

// Open opens the store in directory dir, and creates both if necessary. It locks the
// directory until Close, so that a second server cannot use it.
//
// # Errors
//
// An error in one sentence that names the directory if the directory is in use by another
// server, is not a directory, is not writable, or was written by a newer version. A
// [*Missing] if files are missing, or the directory holds less than was acknowledged.
func Open(dir string) (*Store, error) { return OpenWith(dir, Options{}) }

// OpenWith is [Open] with options.
func OpenWith(dir string, o Options) (_ *Store, err error) {
	if o.After != nil {
		o.AcceptLoss = false // AcceptLoss is for the start of a process
		err = o.After.there(dir)
	} else {
		err = datadir.Prepare(dir)
	}
	if err != nil {
		return nil, err
	}
	lock, err := datadir.Lock(dir)
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
		return nil, datadir.Error(dir, err)
	}
	if err := o.accept(dir, &there); err != nil {
		return nil, err
	}
	if err := datadir.Create(dir, path); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := s.openWriter(ctx, path); err != nil {
		return nil, openError(dir, err)
	}
	if err := s.settleLog(ctx, path); err != nil {
		return nil, openError(dir, err)
	}
	if err := schema.Migrate(ctx, s.conn); err != nil {
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

// settleLog makes the disk hold what reads of the write-ahead log return. After a sync
// that failed, the system treats the unwritten pages as clean. SQLite would then read
// those commits, and no later sync would write them, so a power loss would cut off later,
// acknowledged commits. So settleLog writes the same bytes again, in place, before
// anything else. Others may read meanwhile, and nobody writes while SQLite's lock is
// held. A log exists only after a crash or a failure, and mostly has at most 64 MiB.
func (s *Store) settleLog(ctx context.Context, path string) error {
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := datadir.Rewrite(path + "-wal")
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
	s.schema = schema.Newest
	s.query, err = prepareQueries(ctx, s.read, s.schema)
	return err
}

// Close implements [host.Store]. It moves the write-ahead log into the database file, so
// that one file remains.
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

// closeWriter moves the log into the file and closes the last connection. After an
// unknown outcome it leaves the log alone, because the disk that has just failed would
// probably fail again.
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

// transact runs fn between BEGIN and COMMIT. s.mu is held. An error of fn rolls the
// transaction back and is returned unchanged. Other errors are [host.ErrNotCommitted] if
// the transaction was certainly not written. Otherwise the outcome is unknown, and
// transact breaks the store.
//
// The end of ctx does not interrupt a transaction. That would only make its outcome
// unknown, and no transaction takes long.
func (s *Store) transact(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := s.stmts.begin.ExecContext(ctx); err != nil {
		return record.NotCommitted(err)
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
		return record.NotCommitted(err)
	}
	if _, err = s.stmts.commit.ExecContext(ctx); err == nil {
		if err = s.committed(uint64(position)); err != nil {
			return s.breakDown(err)
		}
		return nil
	}
	if !surelyNotWritten(err) {
		_ = s.rollback(ctx) // the store must not be used any more, but its locks must go
		return s.breakDown(err)
	}
	if rollbackErr := s.rollback(ctx); rollbackErr != nil {
		return s.breakDown(errors.Join(err, rollbackErr))
	}
	return record.NotCommitted(err)
}

// rollback ends the open transaction. After some errors SQLite has ended it already and
// refuses a ROLLBACK. A BEGIN that succeeds shows that.
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

// breakDown makes every further write fail. s.mu is held.
func (s *Store) breakDown(cause error) error {
	s.broken = fmt.Errorf("the store in %s has to be opened again after: %w", s.dir, cause)
	return s.broken
}
