package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/postgres/schema"
	"github.com/weftrun/weft/host/store/record"
)

// appender is the state of the one who appends. Store.writing guards it.
type appender struct {
	conn     *pgx.Conn // nil: there is none
	epoch    uint64    // 0: none is known
	mark     int64
	batch    uint64 // number of the newest batch that was committed
	sids     map[host.SessionKey]int64
	versions map[string]int64
}

// maxCached bounds the appender's maps. A map that is full begins anew.
const maxCached = 100_000

// Bounds of the waits between tries.
const (
	retryLeast = 10 * time.Millisecond
	retryMost  = time.Second
	// lockTimeout is how long a claim waits for a commit of another owner.
	lockTimeout = 2 * time.Second
	// keptEpochs is how many closed epochs keep their rows.
	keptEpochs = 100
)

// appendSettings are what the appender sets on its connection. A statement is planned once,
// for any number of rows in its arrays, and often while the tables are still empty. A plan
// that is best then, and reads a whole table, costs more with every run until PostgreSQL
// has analyzed the table. So each statement must find its rows by an index.
var appendSettings = map[string]string{
	"plan_cache_mode":  "force_generic_plan",
	"enable_seqscan":   "off",
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
}

// connected makes the appender's connection unless there is one.
func (s *Store) connected(ctx context.Context) (*pgx.Conn, error) {
	a := &s.appender
	if a.conn != nil && !a.conn.IsClosed() {
		return a.conn, nil
	}
	conn, err := s.connect(ctx, "append", func(c *pgx.ConnConfig) {
		maps.Copy(c.RuntimeParams, appendSettings)
		noteCanceled(c)
	})
	if err != nil {
		return nil, err
	}
	a.conn = conn
	return conn, nil
}

// Ready makes the connections that a claim and the first appends need, or sees that they are
// still there.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	// The end of a wait would end a connection, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	conn, err := s.connected(ctx)
	if err == nil {
		if err = conn.Ping(ctx); err != nil {
			_ = s.appender.drop()
		}
	}
	return errors.Join(err, s.pool.Ping(ctx))
}

// drop closes the connection.
func (a *appender) drop() error {
	if a.conn == nil {
		return nil
	}
	conn := a.conn
	a.conn = nil
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := conn.Close(ctx); err != nil && !isNetwork(err) && ctx.Err() == nil {
		return err
	}
	return nil
}

// adopt makes an epoch the appender's. It must be open.
func (s *Store) adopt(ctx context.Context, epoch uint64) error {
	conn, err := s.connected(ctx)
	if err != nil {
		return record.NotCommitted(err)
	}
	var mark, batch, newest int64
	var slot int16
	var open, owns bool
	read := func() error {
		return conn.QueryRow(ctx, adoptQuery, int64(epoch)).Scan(&mark, &batch, &open, &slot, &newest, &owns)
	}
	if err = read(); lost(err) { // the connection was made some time ago
		_ = s.appender.drop()
		if conn, err = s.connected(ctx); err == nil {
			err = read()
		}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && (!open || !owns || s.place != nil && mark != s.place.Mark):
		return host.ErrFenced
	case err != nil:
		_ = s.appender.drop()
		return record.NotCommitted(err)
	}
	s.own(epoch, mark, uint64(batch), newest, int64(slot))
	return nil
}

// adoptQuery reads what an owner has to know of its epoch.
const adoptQuery = `SELECT p.mark, p.batch, p.open, n.slot, ` + newestID + `,
			NOT EXISTS (SELECT FROM partitions WHERE epoch IS DISTINCT FROM p.epoch)
		FROM pulse p JOIN nodes n USING (epoch) WHERE p.epoch = $1`

// newestID is the greatest id that a node has given.
const newestID = `greatest((SELECT max(id) FROM sessions), (SELECT max(id) FROM handlers), (SELECT max(id) FROM runs),
	(SELECT max(id) FROM kv_spaces), 0)`

func (s *Store) own(epoch uint64, mark int64, batch uint64, newest, slot int64) {
	a := &s.appender
	a.epoch, a.mark, a.batch = epoch, mark, batch
	a.sids = map[host.SessionKey]int64{}
	s.ids.above(newest, slot)
}

// Claim implements [host.Store]. The store of a node claims for the node's epoch, which must
// own the sessions. Any other store closes all epochs, and takes all partitions for a new
// one. If an older owner's backend holds its row for too long, the backend is ended.
func (s *Store) Claim(ctx context.Context) (uint64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, fmt.Errorf("claiming the store: %w", err)
	}
	defer s.unlock()
	if s.place != nil {
		if err := s.adopt(ctx, s.place.Epoch); err != nil {
			return 0, fmt.Errorf("claiming the store: %w", err)
		}
		return s.place.Epoch, nil
	}
	for {
		epoch, err := s.claim(ctx)
		if codeOf(err) == "55P03" { // lock_timeout
			if err = s.endStuck(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return 0, fmt.Errorf("claiming the store: %w", err)
		}
		return epoch, nil
	}
}

func (s *Store) claim(ctx context.Context) (epoch uint64, err error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return 0, err
	}
	mark := int64(binary.BigEndian.Uint64(random[:]))
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	known, err := schema.Newest()
	if err != nil {
		return 0, err
	}
	var newest int64
	err = s.change(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockTimeout.Milliseconds())); err != nil {
			return err
		}
		for _, statement := range []string{
			`UPDATE pulse SET open = false WHERE open`,
			`UPDATE nodes SET state = 'fenced' WHERE state IN ('joining', 'live', 'leaving')`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		err := tx.QueryRow(ctx, `INSERT INTO nodes (name, slot, state, version, schema) VALUES ($1, 0, 'live', '', $2) RETURNING epoch`,
			name, known).Scan(&epoch)
		if err != nil {
			return err
		}
		for _, statement := range []string{
			`INSERT INTO pulse (epoch, mark, open) VALUES ($1, $2, true)`,
			`UPDATE partitions SET epoch = $1 WHERE $2::bigint IS NOT NULL`,
			`UPDATE store SET map = map + 1 WHERE $1::bigint > 0 AND $2::bigint IS NOT NULL`,
		} {
			if _, err := tx.Exec(ctx, statement, int64(epoch), mark); err != nil {
				return err
			}
		}
		for _, statement := range []string{`DELETE FROM pulse WHERE epoch < $1`, `DELETE FROM nodes WHERE epoch < $1`} {
			if _, err := tx.Exec(ctx, statement, int64(epoch)-keptEpochs); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, "SELECT "+newestID).Scan(&newest)
	})
	if err != nil {
		return 0, err
	}
	s.own(epoch, mark, 0, newest, 0)
	return epoch, nil
}

// endStuck ends the backends of weft that hold a row of pulse longer than a claim waits.
func (s *Store) endStuck(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
		WHERE (a.application_name = $1 OR a.application_name LIKE 'weft @%') AND a.pid <> pg_backend_pid() AND a.xact_start < clock_timestamp() - interval '1 second'
			AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'pulse'::regclass AND l.mode = 'RowExclusiveLock')`,
		"weft "+s.schema+" append")
	return err
}

// errLost stands for the loss of a connection with a batch under way.
type errLost struct{ error }

// commit writes a batch under its number, however often the connection breaks.
//
// # Errors
//
// [host.ErrNotCommitted], [host.ErrFenced], a refusal. Any other error is final: the store
// is not what it was, or ctx ended while the outcome was unknown.
func (s *Store) commit(ctx context.Context, b *pipeline) error {
	a := &s.appender
	wait := retryLeast
	var unknown error
	defer func() { s.stalled.Store(false) }()
	for {
		err := s.try(context.WithoutCancel(ctx), b, a.batch+1, unknown != nil)
		var gone *errLost
		if !errors.As(err, &gone) {
			switch {
			case err == nil:
				a.batch++
				s.content()
			case errors.Is(err, host.ErrNotCommitted):
				s.complain(err)
			}
			return err
		}
		unknown = gone.error
		s.stalled.Store(true)
		s.complain(unknown)
		_ = a.drop()
		if pause(ctx, wait) != nil {
			return fmt.Errorf("whether PostgreSQL has committed a batch is not known: %w", unknown)
		}
		wait = min(2*wait, retryMost)
	}
}

// try sends the batch once. repeated: the batch may have been committed before.
func (s *Store) try(ctx context.Context, b *pipeline, number uint64, repeated bool) error {
	a := &s.appender
	conn, err := s.connected(ctx)
	if err != nil && !repeated {
		return record.NotCommitted(err) // nothing was sent
	}
	if err != nil {
		return &errLost{err}
	}
	_ = canceled(conn)
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	s.sent.Store(time.Now().UnixNano())
	defer s.sent.Store(0)
	failed, err := b.send(ctx, conn, a.epoch, a.mark, number, s.replica)
	switch {
	case err == nil:
		if err := s.confirmed(ctx, conn); err != nil {
			return &errLost{err}
		}
		return nil
	case !answered(conn, err):
		return &errLost{err}
	case codeOf(err) == codeReplica && repeated: // what was sent before may be there
		return &errLost{errNoReplica}
	case codeOf(err) == codeReplica:
		return record.NotCommitted(errNoReplica)
	case codeOf(err) == codeFenced:
		return s.resolve(ctx, conn, number)
	case mayPass(err):
		return record.NotCommitted(err)
	case codeOf(err) == codeRefused:
		return record.Refuse("%s", failed)
	case strings.HasPrefix(codeOf(err), "2"): // a constraint, or data that it cannot have
		return record.Refuse("%s: %v", failed, err)
	}
	return fmt.Errorf("%s: %w", failed, err)
}

// resolve finds out why the fence refused a batch. It is there already, or the epoch is
// closed. A batch that is there may not be on a replica yet: a further commit waits for
// all before it.
func (s *Store) resolve(ctx context.Context, conn *pgx.Conn, number uint64) error {
	a := &s.appender
	var mark, batch, newest int64
	var open bool
	err := conn.QueryRow(ctx, `SELECT mark, batch, open, (SELECT max(epoch) FROM pulse) FROM pulse WHERE epoch = $1`,
		int64(a.epoch)).Scan(&mark, &batch, &open, &newest)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && mark != a.mark:
		return fmt.Errorf("PostgreSQL has lost commits: it no longer has epoch %d of this server", a.epoch)
	case err != nil:
		return &errLost{err}
	case !open:
		return host.ErrFenced
	case uint64(batch)+1 == number:
		return &errLost{errors.New("the fence refused the next batch")}
	case uint64(batch) != number:
		return fmt.Errorf("PostgreSQL has lost commits: the newest batch of epoch %d is %d, and %d were committed", a.epoch, batch, number-1)
	}
	tag, err := conn.Exec(ctx, `UPDATE pulse SET at = at WHERE epoch = $1 AND open`, int64(a.epoch))
	switch {
	case err != nil:
		return &errLost{err}
	case tag.RowsAffected() == 0:
		return host.ErrFenced
	}
	if err := s.confirmed(ctx, conn); err != nil {
		return &errLost{err}
	}
	return nil
}

// change runs fn in a transaction of the appender's connection or another. The outcome is
// known when change returns: if the connection breaks in the commit, the transaction's
// number says whether it was committed. [Store.lock] is held. A node's changes are refused
// once its epoch is closed.
func (s *Store) change(ctx context.Context, fn func(tx pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := s.confirmed(ctx, conn.Conn()); errors.Is(err, errNoReplica) {
		s.complain(err)
		return unconfirmed(err)
	} else if err != nil {
		return err
	}
	// The lock serializes changes of names by all nodes.
	var id string
	if err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text FROM store FOR NO KEY UPDATE`).Scan(&id); err != nil {
		return err
	}
	if s.place != nil {
		if err := stillOpen(ctx, tx, *s.place); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
	defer cancel()
	err = tx.Commit(bound)
	switch {
	case err == nil:
		err = s.confirmed(bound, conn.Conn())
	case codeOf(err) != "" && !conn.Conn().IsClosed():
		return err
	default:
		if outcome := s.outcome(ctx, id, err); outcome != nil {
			return outcome
		}
	}
	if err != nil {
		s.complain(err)
		conn.Release() // for settle
		return s.settle(ctx, err)
	}
	return nil
}

// outcome waits for the outcome of a transaction: nil if it was committed, else cause.
func (s *Store) outcome(ctx context.Context, id string, cause error) error {
	for {
		var status *string
		err := s.pool.QueryRow(ctx, `SELECT pg_xact_status($1::text::xid8)`, id).Scan(&status)
		switch {
		case err == nil && status != nil && *status == "committed":
			return nil
		case err == nil && status != nil && *status == "aborted", codeOf(err) == "22023": // a number not given yet
			return cause
		}
		if pauseErr := pause(s.keeping, guardRetry); pauseErr != nil || ctx.Err() != nil {
			return errors.Join(cause, err)
		}
	}
}
