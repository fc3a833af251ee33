package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/store/postgres/schema"
)

// Members is the table of nodes; see [cluster.Table]. It has a connection of its own for
// beats, which holds a lock by which other nodes see that the connection stands.
type Members struct {
	store *Store
	beat  *pgx.Conn // nil: there is none; used by the one who beats
	place cluster.Place
	held  bool // beat holds the lock of place
}

var _ cluster.Table = (*Members)(nil)

// Times of the table of nodes.
const (
	// watchFor is how long an entry of the same name must be silent before it is closed: a
	// node may answer from memory until then.
	watchFor = 1500 * time.Millisecond
	watches  = 3
	// beatConnect bounds the making of the connection of the beats.
	beatConnect = 5 * time.Second
	// memberLock is how long a change of the table waits for another node. It then ends the
	// connections of the node that it closes.
	memberLock = time.Second
)

// Members returns the table of nodes in the store. The caller closes it before the store.
func (s *Store) Members() *Members { return &Members{store: s} }

// LocalIP returns the address of this machine from which PostgreSQL is reached: other nodes
// can probably reach it, too. It is the loopback address if PostgreSQL is on this machine.
func (m *Members) LocalIP(ctx context.Context) (netip.Addr, error) {
	conn, err := m.store.pool.Acquire(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Release()
	if at, err := netip.ParseAddrPort(conn.Conn().PgConn().Conn().LocalAddr().String()); err == nil {
		return at.Addr().Unmap(), nil
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil // a socket in the file system
}

// Close ends the connection of the beats.
func (m *Members) Close() error {
	if m.beat == nil {
		return nil
	}
	conn := m.beat
	m.beat, m.held = nil, false
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := conn.Close(ctx); err != nil && !isNetwork(err) && ctx.Err() == nil {
		return err
	}
	return nil
}

// namesakes reads the open entries of a name.
func (m *Members) namesakes(ctx context.Context, name string) ([]cluster.Info, error) {
	return list(ctx, m.store, "the table of nodes", `SELECT n.epoch, p.mark, n.beats, p.batch FROM nodes n JOIN pulse p USING (epoch)
		WHERE p.open AND n.name = $1`, []any{text(name)}, fields(func(i *cluster.Info) []any { return []any{&i.Epoch, &i.Mark, &i.Beats, &i.Batch} }))
}

// Join implements [cluster.Table]. It also closes the entry of a server that had the store
// to itself and is gone.
//
// # Errors
//
// [cluster.ErrNameTaken] if another process beats under the name; an error if the nodes that are
// there have another lease.
func (m *Members) Join(ctx context.Context, self cluster.Self) (place cluster.Place, err error) {
	if err := m.closeNamesakes(ctx, self.Name); err != nil {
		return place, err
	}
	err = m.change(ctx, cluster.Place{}, func(tx pgx.Tx) (err error) {
		place, err = m.enter(ctx, tx, self)
		return err
	})
	if err == nil {
		m.place = place
	}
	return place, err
}

// closeNamesakes closes the entries of a name if they are silent. The last commit of a process
// that was killed may end a moment later, so the entries are watched more than once.
func (m *Members) closeNamesakes(ctx context.Context, name string) error {
	for range watches {
		before, err := m.namesakes(ctx, name)
		if err != nil || len(before) == 0 {
			return err
		}
		if err := pause(ctx, watchFor); err != nil {
			return err
		}
		for i := range before {
			if err := m.fence(ctx, cluster.Place{}, &before[i]); err != nil && !errors.Is(err, errAlive) {
				return err
			}
		}
	}
	if left, err := m.namesakes(ctx, name); err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("%w: %q; give each node a name of its own", cluster.ErrNameTaken, name)
}

// enter makes a new entry.
func (m *Members) enter(ctx context.Context, tx pgx.Tx, self cluster.Self) (place cluster.Place, err error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return place, err
	}
	newest, err := schema.Newest()
	if err != nil {
		return place, err
	}
	place.Mark = int64(binary.BigEndian.Uint64(random[:]))
	// A server that has the store to itself holds a lock that keeps nodes away. Here there
	// is none.
	if _, err := tx.Exec(ctx, `UPDATE pulse SET open = false WHERE open AND epoch IN (SELECT epoch FROM nodes WHERE url = '')`); err != nil {
		return place, err
	}
	if _, err := tx.Exec(ctx, `UPDATE nodes SET state = 'fenced' WHERE url = '' AND state IN ('joining', 'live', 'leaving')`); err != nil {
		return place, err
	}
	var other string
	var lease int64
	err = tx.QueryRow(ctx, `SELECT name, lease FROM nodes WHERE state IN ('live', 'leaving') AND lease <> $1 LIMIT 1`, int64(self.Lease)).
		Scan(nameTo{&other}, &lease)
	if err == nil {
		return place, fmt.Errorf("the node %q has --lease %s, and this one %s: give all nodes the same", other, time.Duration(lease), self.Lease)
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return place, err
	}
	settings, err := json.Marshal(self.Settings)
	if err != nil {
		return place, err
	}
	err = tx.QueryRow(ctx, `INSERT INTO nodes (name, slot, state, version, schema, url, key, lease, settings, drained)
		SELECT $1, (SELECT min(s) FROM generate_series(0, 1023) s WHERE s NOT IN (SELECT slot FROM nodes WHERE state IN ('joining', 'live', 'leaving'))),
			'live', $2, $3, $4, $5, $6, $7, $8 RETURNING epoch`,
		text(self.Name), text(self.Version), newest, text(self.URL), self.Key, int64(self.Lease), string(settings), self.Drained).Scan(&place.Epoch)
	if err != nil {
		return place, err
	}
	for _, statement := range []string{
		`INSERT INTO pulse (epoch, mark, open) VALUES ($1, $2, true)`,
		`DELETE FROM pulse WHERE epoch < $1 - ` + strconv.Itoa(keptEpochs) + ` AND NOT open AND $2::bigint IS NOT NULL
			AND NOT EXISTS (SELECT FROM partitions WHERE partitions.epoch = pulse.epoch)`,
		`DELETE FROM nodes WHERE epoch < $1 AND $2::bigint IS NOT NULL AND NOT EXISTS (SELECT FROM pulse WHERE pulse.epoch = nodes.epoch)`,
	} {
		if _, err := tx.Exec(ctx, statement, int64(place.Epoch), place.Mark); err != nil {
			return place, err
		}
	}
	return place, nil
}

// change changes the table in a transaction. place is the node that does, and must be open;
// its zero value is a node that has no entry yet. If the outcome is unknown, the error says
// so, and the next beat shows it.
func (m *Members) change(ctx context.Context, place cluster.Place, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, m.store.pool, func(tx pgx.Tx) error {
		// A node that is stopped in the middle of a change must not hold up others for long.
		if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)`,
			milliseconds(memberLock), milliseconds(2*memberLock)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT FROM store FOR NO KEY UPDATE"); err != nil {
			return err
		}
		if place != (cluster.Place{}) {
			if err := stillOpen(ctx, tx, place); err != nil {
				return err
			}
		}
		return fn(tx)
	})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// stillOpen fails unless a node's entry is open, and keeps others from closing it during the
// transaction.
func stillOpen(ctx context.Context, tx pgx.Tx, place cluster.Place) error {
	var open bool
	err := tx.QueryRow(ctx, `SELECT open FROM pulse WHERE epoch = $1 AND mark = $2 FOR SHARE`, int64(place.Epoch), place.Mark).Scan(&open)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !open {
		return host.ErrFenced
	}
	return err
}

// errAlive rolls back the closing of a node that is not silent.
var errAlive = errors.New("the node is not silent")

// Fence implements [cluster.Table].
func (m *Members) Fence(ctx context.Context, place cluster.Place, seen cluster.Info) (fenced bool, err error) {
	err = m.fence(ctx, place, &seen)
	if errors.Is(err, errAlive) {
		return false, nil
	}
	return err == nil, err
}

// fence closes an entry that has not changed since it was seen. A node that was stopped in
// the middle of a transaction holds its row: its connections are ended. So are they after
// the entry is closed, as they may hold what others wait for.
func (m *Members) fence(ctx context.Context, place cluster.Place, seen *cluster.Info) error {
	closing := func() error {
		return m.change(ctx, place, func(tx pgx.Tx) error {
			for _, statement := range []string{
				`UPDATE pulse SET open = false WHERE epoch = $1 AND mark = $2 AND open AND batch = $3`,
				`UPDATE nodes SET state = 'fenced' WHERE epoch = $1 AND $2::bigint IS NOT NULL AND beats = $3`,
			} {
				number := seen.Batch
				if statement[7] == 'n' {
					number = seen.Beats
				}
				if tag, err := tx.Exec(ctx, statement, int64(seen.Epoch), seen.Mark, int64(number)); err != nil {
					return err
				} else if tag.RowsAffected() != 1 {
					return errAlive
				}
			}
			return nil
		})
	}
	err := closing()
	if codeOf(err) == "55P03" { // lock_timeout
		if err = m.disconnect(ctx, seen.Epoch); err == nil {
			err = closing()
		}
	}
	if err != nil {
		return err
	}
	return m.disconnect(ctx, seen.Epoch)
}

// disconnect ends the connections of a node.
func (m *Members) disconnect(ctx context.Context, epoch uint64) error {
	prefix := connectionPrefix(epoch, m.store.schema)
	_, err := m.store.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND left(application_name, length($1::text)) = $1::text AND pid <> pg_backend_pid()`, prefix)
	return err
}

// connectionPrefix begins the names of the connections of a node by which it changes
// anything. PostgreSQL cuts names at 63 bytes.
func connectionPrefix(epoch uint64, schema string) string {
	return fmt.Sprintf("weft @%d %.24s ", epoch, schema)
}

// beatConn makes the connection of the beats for a node, unless there is one.
func (m *Members) beatConn(ctx context.Context, place cluster.Place) (*pgx.Conn, error) {
	if m.beat != nil && (m.beat.IsClosed() || m.place != place) {
		_ = m.Close()
	}
	if m.beat == nil {
		// On a busy machine a connection may take longer than a beat may.
		connecting, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatConnect)
		defer cancel()
		conn, err := m.store.connect(connecting, "beat", func(c *pgx.ConnConfig) {
			c.RuntimeParams["synchronous_commit"] = "off" // a lost beat is a beat that was not sent
		})
		if err != nil {
			return nil, err
		}
		m.beat, m.place, m.held = conn, place, false
	}
	return m.beat, nil
}

// tableQuery reads the table of nodes of the schema $1.
const tableQuery = `SELECT s.map, coalesce(o.epoch, 0), n.epoch, p.mark, n.name, n.url, n.key, n.state, n.version, n.lease, n.settings, n.drained, n.beats, p.batch, n.beat,
			EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
				AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('weft node ' || $1 || ' ' || n.epoch, 0))
		FROM store s CROSS JOIN (SELECT CASE WHEN count(DISTINCT coalesce(epoch, 0)) = 1 THEN max(epoch) END AS epoch FROM partitions) o
			CROSS JOIN nodes n JOIN pulse p ON p.epoch = n.epoch
		WHERE p.open OR n.epoch = o.epoch`

// Beat implements [cluster.Table]: one round trip. A beat that makes the connection only
// does that in time, and says so by its error if there is no more time.
func (m *Members) Beat(ctx context.Context, place cluster.Place) (v cluster.View, err error) {
	conn, err := m.beatConn(ctx, place)
	if err != nil {
		return v, err
	}
	if err := ctx.Err(); err != nil {
		return v, fmt.Errorf("the connection took all the time of a beat: %w", err)
	}
	defer func() {
		if err != nil && !errors.Is(err, host.ErrFenced) {
			_ = m.Close()
		}
	}()
	b := &pgx.Batch{}
	b.Queue(`UPDATE nodes SET beats = beats + 1, beat = clock_timestamp() WHERE epoch = $1 AND state IN ('live', 'leaving')
		AND EXISTS (SELECT FROM pulse WHERE epoch = $1 AND mark = $2 AND open)`, int64(place.Epoch), place.Mark)
	if !m.held {
		b.Queue(`SELECT pg_try_advisory_lock(hashtextextended('weft node ' || $1 || ' ' || $2, 0))`, m.store.schema, strconv.FormatUint(place.Epoch, 10))
	}
	b.Queue(tableQuery, m.store.schema)
	results := conn.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, results.Close()) }()
	tag, err := results.Exec()
	if err == nil && tag.RowsAffected() != 1 {
		err = host.ErrFenced
	}
	if err == nil && !m.held {
		err = results.QueryRow().Scan(&m.held)
	}
	if err != nil {
		return v, err
	}
	rows, err := results.Query()
	if err != nil {
		return v, err
	}
	return readView(rows)
}

// Look implements [cluster.Table].
func (m *Members) Look(ctx context.Context) (v cluster.View, err error) {
	rows, err := m.store.pool.Query(ctx, tableQuery, m.store.schema)
	if err != nil {
		return v, err
	}
	return readView(rows)
}

// readView reads and closes rows.
func readView(rows pgx.Rows) (v cluster.View, err error) {
	defer rows.Close()
	for rows.Next() {
		var i cluster.Info
		var state, settings string
		if err := rows.Scan(&v.Map, &v.Owner, &i.Epoch, &i.Mark, nameTo{&i.Name}, nameTo{&i.URL}, &i.Key, &state, nameTo{&i.Version}, &i.Lease,
			&settings, &i.Drained, &i.Beats, &i.Batch, &i.Beat, &i.Connected); err != nil {
			return v, err
		}
		if json.Unmarshal([]byte(settings), &i.Settings) != nil {
			i.Settings = nil // of a node that does not say them
		}
		i.State = cluster.State(state)
		v.Nodes = append(v.Nodes, i)
	}
	return v, rows.Err()
}

// Take implements [cluster.Table].
func (m *Members) Take(ctx context.Context, place cluster.Place) (taken bool, err error) {
	taking := func() error {
		return m.change(ctx, place, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `UPDATE partitions SET epoch = $1
				WHERE epoch IS NULL OR EXISTS (SELECT FROM pulse WHERE pulse.epoch = partitions.epoch AND NOT pulse.open)`, int64(place.Epoch))
			if err != nil {
				return err
			}
			if tag.RowsAffected() != partitions {
				return errOwned
			}
			if _, err := tx.Exec(ctx, `UPDATE nodes SET drained = false WHERE epoch = $1 AND drained`, int64(place.Epoch)); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `UPDATE store SET map = map + 1`)
			return err
		})
	}
	err = taking()
	if codeOf(err) == "55P03" {
		// A node that was stopped in the middle of a change holds the store's row.
		if err = m.disconnectClosed(ctx); err == nil {
			err = taking()
		}
	}
	if errors.Is(err, errOwned) {
		return false, nil
	}
	return err == nil, err
}

// errOwned rolls back the taking of sessions that another node owns.
var errOwned = errors.New("another node owns the sessions")

// disconnectClosed ends the connections of the owner if its entry is closed.
func (m *Members) disconnectClosed(ctx context.Context) error {
	var owner uint64
	err := m.store.pool.QueryRow(ctx, `SELECT epoch FROM pulse WHERE NOT open AND epoch = (SELECT max(epoch) FROM partitions)`).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.disconnect(ctx, owner)
}

// Release implements [cluster.Table].
func (m *Members) Release(ctx context.Context, place cluster.Place) error {
	return m.change(ctx, place, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE partitions SET epoch = NULL WHERE epoch = $1`, int64(place.Epoch))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE store SET map = map + 1`)
		return err
	})
}

// Leaving implements [cluster.Table].
func (m *Members) Leaving(ctx context.Context, place cluster.Place) error {
	return m.change(ctx, place, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE nodes SET state = 'leaving' WHERE epoch = $1`, int64(place.Epoch))
		return err
	})
}

// Drain implements [cluster.Table].
func (m *Members) Drain(ctx context.Context, place cluster.Place, name string, drained bool) error {
	return m.change(ctx, place, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE nodes SET drained = $2 WHERE name = $1 AND state = 'live'`, text(name), drained)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return host.Errorf(host.CodeNotFound, "No live node is named %q", name)
		}
		if !drained {
			return nil
		}
		var others bool
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM nodes WHERE state = 'live' AND NOT drained)`).Scan(&others)
		if err == nil && !others {
			err = host.Errorf(host.CodeFailedPrecondition, "No other live node can take the sessions of %q", name)
		}
		return err
	})
}

// Leave implements [cluster.Table].
func (m *Members) Leave(ctx context.Context, place cluster.Place) error {
	return m.change(ctx, cluster.Place{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE pulse SET open = false WHERE epoch = $1 AND mark = $2 AND open`, int64(place.Epoch), place.Mark)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return host.ErrFenced
		}
		_, err = tx.Exec(ctx, `UPDATE nodes SET state = 'left' WHERE epoch = $1`, int64(place.Epoch))
		return err
	})
}
