// Package postgres keeps everything durable in a schema of a PostgreSQL database. It is
// the store of a server that has outgrown one machine, or whose operators run their
// databases themselves.
//
// It implements [host.Store]. The package does not know what a journal row means, who
// appends or when: rows of entries are bytes to it. No other package uses the driver.
//
// # How it writes
//
// One connection appends. An append is one pipeline, which PostgreSQL executes as one
// transaction and commits with one flush of its log: one round trip. The first statement
// is the fence. It updates the row of the owner's epoch, and fails if the epoch is closed.
// The other statements write all rows of a kind at once (UNNEST), and check by the number
// of rows that they wrote what they have to find. A statement that fails rolls back all.
//
// Batches are numbered by epoch, and the fence holds the number. If a connection breaks
// while a batch is under way, the outcome is unknown. The store then sends the very batch
// again, with its number, until the fence says that the batch is there already or the
// batch is written. So a restart of PostgreSQL is a stall, and nothing has to be read
// again.
//
// # Several nodes
//
// Sessions belong to one of 128 partitions, and partitions to an epoch. All partitions
// belong to the same epoch: that of a server that has the store to itself, or of the owner
// among the nodes of a cluster. [Members] is the table of nodes.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/store/postgres/schema"
)

const (
	// defaultSchema is the schema of a URL that names none.
	defaultSchema = "weft"
	// readers is the size of the pool of connections for everything but appends.
	readers = 8
	// leastVersion is the oldest major version of PostgreSQL that is supported.
	leastVersion = 14
	// statementTimeout and idleTimeout bound, on the server, a statement, and how long a
	// transaction waits for its client.
	statementTimeout = 30 * time.Second
	idleTimeout      = 10 * time.Second
	// replyTimeout is how long the store waits for an answer before it gives up a
	// connection: longer than the server's own bound.
	replyTimeout = statementTimeout + 10*time.Second
	// connectTimeout bounds the making of a connection.
	connectTimeout = 10 * time.Second
)

// Options are what a store is opened with, besides its URL. The zero value is that of a
// tool.
type Options struct {
	// Exclusive refuses to open a store that another process has open exclusively. The
	// lock is that of a session of PostgreSQL: it ends with the process.
	Exclusive bool
	// Wait is how long an exclusive opening waits for such a process to end, and at least
	// two seconds: PostgreSQL notices late that a machine is gone.
	Wait time.Duration
	// Shared opens the store for a node of a cluster. Other nodes have it open, too, but no
	// process has it open exclusively.
	Shared bool
	// Place is the entry of the node that owns the sessions, for a shared store that it
	// writes to: [Store.Claim] claims for this entry. nil: the store is not claimed.
	Place *cluster.Place
	// ReadOnly opens a store of this release's schema only to read it. The server may be a
	// replica, and may run with any settings.
	ReadOnly bool
	// Replica acknowledges only what a synchronous replica has, too. Without such a replica
	// the store does not open, and commits wait.
	Replica bool
	// Log gets a line when commits begin to wait for PostgreSQL, and when they go on. nil:
	// nothing is logged.
	Log *slog.Logger
	// loading opens the store of an unfinished copy.
	loading bool
}

// Store is a [host.Store] on PostgreSQL.
type Store struct {
	config *pgx.ConnConfig // of a connection, without its purpose
	schema string
	pool   *pgxpool.Pool
	ids    ids

	// writing is held by the one who appends or changes what many rows refer to (modules,
	// names): a channel, so that who waits can stop.
	writing  chan struct{}
	appender appender

	place   *cluster.Place // of the node that writes; nil: it is no node of a cluster
	replica bool           // see Options
	log     *slog.Logger

	complained bool         // the log says that commits wait; guarded by writing
	stalled    atomic.Bool  // an append waits for PostgreSQL
	sent       atomic.Int64 // when the batch under way was sent, in nanoseconds; 0: none is
	closed     atomic.Bool
	keeping    context.Context // ends with Close
	stop       context.CancelFunc
	kept       sync.WaitGroup
	guard      *guard // nil: not exclusive
	back       atomic.Pointer[func()]

	reading sync.Mutex // held while notes of ended runs are processed
	noted   chan struct{}

	commits      atomic.Uint64
	journalBytes atomic.Uint64
	commitTime   atomic.Int64 // nanoseconds
}

var _ host.Store = (*Store)(nil)

// Open opens the store at a URL (postgres://user@host:port/database?schema=weft), and
// creates its schema if necessary. The parameters are those of libpq. No error has the
// password.
//
// # Errors
//
// An error in one sentence if the URL is not valid, PostgreSQL does not answer, is too old,
// does not flush its log or stands behind a pooler of transactions, or if the schema was
// written by a newer release. [ErrInUse] for an exclusive opening while another process
// has the store.
func Open(ctx context.Context, url string, o Options) (_ *Store, err error) {
	s := &Store{writing: make(chan struct{}, 1), noted: make(chan struct{}, 1), place: o.Place, replica: o.Replica, log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.keeping, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = fmt.Errorf("opening the store on PostgreSQL: %w", errors.Join(err, s.Close()))
		}
	}()
	if err := s.configure(url); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		s.config.ValidateConnect = nil
		s.config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	if err := s.prepare(ctx, o); err != nil {
		return nil, err
	}
	if err := s.openPool(ctx); err != nil {
		return nil, err
	}
	if !o.ReadOnly && !o.loading && (!o.Shared || o.Place != nil) {
		s.kept.Go(s.follow)
	}
	return s, nil
}

// settings are what the store sets on its connections, besides the search path.
var settings = map[string]string{
	"default_transaction_isolation":       "read committed",
	"synchronous_commit":                  "on",
	"statement_timeout":                   fmt.Sprint(statementTimeout.Milliseconds()),
	"idle_in_transaction_session_timeout": fmt.Sprint(idleTimeout.Milliseconds()),
	"jit":                                 "off", // compiling a statement takes longer than any statement here
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "2",
	"tcp_keepalives_count":                "3",
}

// afterConnect makes a connection set its parameters by a statement: those of the store,
// and not those of the URL. A pooler would refuse or ignore most of them at the start of a
// connection.
func afterConnect(config *pgx.ConnConfig) {
	var all []string
	for key, value := range config.RuntimeParams {
		_, ours := settings[key]
		_, appends := appendSettings[key]
		if ours || appends || key == "search_path" || key == "default_transaction_read_only" {
			all = append(all, fmt.Sprintf("set_config('%s', '%s', false)", key, strings.ReplaceAll(value, "'", "''")))
			delete(config.RuntimeParams, key)
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, "SELECT "+strings.Join(all, ", ")).ReadAll()
		return err
	}
}

// configure reads the URL.
func (s *Store) configure(url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("the URL is not valid: " + strings.TrimPrefix(redact(err, url), "cannot parse "))
	}
	s.schema = config.RuntimeParams["schema"]
	delete(config.RuntimeParams, "schema")
	if s.schema == "" {
		s.schema = defaultSchema
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	dialer := &net.Dialer{Timeout: config.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	config.DialFunc = dialer.DialContext
	maps.Copy(config.RuntimeParams, settings)
	config.RuntimeParams["client_encoding"] = "UTF8"
	config.RuntimeParams["search_path"] = pgx.Identifier{s.schema}.Sanitize()
	s.config = config
	return nil
}

// redact returns an error's text without the URL's password.
func redact(err error, url string) string {
	message := err.Error()
	if i, j := strings.Index(url, "://"), strings.LastIndexByte(url, '@'); i >= 0 && j > i {
		if _, password, ok := strings.Cut(url[i+3:j], ":"); ok && password != "" {
			message = strings.ReplaceAll(message, password, "xxxxx")
		}
	}
	return message
}

// connect makes a connection for a purpose, by which an operator recognises it.
func (s *Store) connect(ctx context.Context, purpose string, change ...func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	config := s.config.Copy()
	config.RuntimeParams["application_name"] = s.connectionName(purpose)
	for _, c := range change {
		c(config)
	}
	afterConnect(config)
	return pgx.ConnectConfig(ctx, config)
}

// connectionName names a connection. The connections of a node have its epoch: other nodes
// end them when they close the epoch.
func (s *Store) connectionName(purpose string) string {
	if s.place != nil {
		return connectionPrefix(s.place.Epoch, s.schema) + purpose
	}
	return "weft " + s.schema + " " + purpose
}

// prepare checks the server, locks the store if it is opened exclusively, and migrates.
func (s *Store) prepare(ctx context.Context, o Options) (err error) {
	conn, err := s.connect(ctx, "open", func(c *pgx.ConnConfig) { c.RuntimeParams["statement_timeout"] = "0" })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := s.check(ctx, conn, o); err != nil {
		return err
	}
	if o.Exclusive || o.Shared {
		if s.guard, err = s.newGuard(ctx, o); err != nil {
			return err
		}
		s.kept.Go(s.guard.keep)
	}
	if o.ReadOnly {
		err = schema.Check(ctx, conn, s.schema)
	} else {
		err = schema.Migrate(ctx, conn, s.schema)
	}
	if err != nil || o.loading {
		return err
	}
	return unfinished(ctx, conn, s.schema)
}

// check refuses a server on which commits are not what they are promised to be.
func (s *Store) check(ctx context.Context, conn *pgx.Conn, o Options) error {
	var found server
	var pid uint32
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('fsync'),
		current_setting('full_page_writes'), current_setting('server_encoding'), pg_backend_pid()`).
		Scan(&found.version, &found.fsync, &found.pages, &found.encoding, &pid)
	if err == nil {
		err = found.refuse(o.ReadOnly)
	}
	if err == nil && o.Replica {
		err = checkReplica(ctx, conn)
	}
	if err != nil {
		return err
	}
	return s.checkPooler(ctx, conn, pid)
}

// server is what a server says about itself.
type server struct {
	version                int // such as 150018
	fsync, pages, encoding string
}

// refuse says why a server cannot be used, or only to read a store. nil: it can be used.
func (f *server) refuse(readOnly bool) error {
	switch {
	case f.version < leastVersion*10000:
		return fmt.Errorf("the server is PostgreSQL %d; weft needs %d or newer", f.version/10000, leastVersion)
	case f.fsync != "on" && !readOnly:
		return errors.New("the server runs with fsync = off and would lose commits; switch fsync on")
	case f.pages != "on" && !readOnly:
		return errors.New("the server runs with full_page_writes = off and would lose data; switch full_page_writes on")
	case f.encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s; create it with the encoding UTF8", f.encoding)
	}
	return nil
}

// checkPooler refuses a pooler that gives a connection another backend for each
// transaction: while another connection is in a transaction, such a pooler lets this one
// change its backend.
func (s *Store) checkPooler(ctx context.Context, conn *pgx.Conn, pid uint32) (err error) {
	other, err := s.connect(ctx, "probe")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close(context.WithoutCancel(ctx))) }()
	tx, err := other.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var theirs, now uint32
	if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&theirs); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&now); err != nil {
		return err
	}
	if theirs == pid || now != pid {
		return errors.New("the address is that of a pooler of transactions; connect directly, or by a pooler of sessions")
	}
	return nil
}

func (s *Store) openPool(ctx context.Context) error {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	config.ConnConfig = s.config.Copy()
	config.ConnConfig.RuntimeParams["application_name"] = s.connectionName("read")
	noteCanceled(config.ConnConfig)
	afterConnect(config.ConnConfig)
	config.MaxConns, config.MinConns = readers, 0
	config.MaxConnIdleTime = 5 * time.Minute
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	return err
}

// Close implements [host.Store].
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.writing <- struct{}{} // who waits for PostgreSQL stops, as keeping has ended
	defer func() { <-s.writing }()
	s.kept.Wait()
	if s.pool != nil {
		s.pool.Close()
	}
	return s.appender.drop()
}

// Stats implements [host.Store].
func (s *Store) Stats() host.StoreStats {
	return host.StoreStats{
		Commits:      s.commits.Load(),
		JournalBytes: s.journalBytes.Load(),
		CommitTime:   time.Duration(s.commitTime.Load()),
	}
}

// Stalled reports whether the store waits for PostgreSQL at the moment: an append whose
// outcome is not known, a replica that does not confirm a commit, or no connection.
func (s *Store) Stalled() bool {
	if sent := s.sent.Load(); s.replica && sent != 0 && time.Since(time.Unix(0, sent)) > replicaWait {
		return true
	}
	return s.stalled.Load() || s.guard != nil && s.guard.away.Load()
}

// OnReturn makes an exclusive or shared store call fn whenever PostgreSQL was away and is back. fn
// must not block.
func (s *Store) OnReturn(fn func()) { s.back.Store(&fn) }

// Describe names the store of a URL in messages, without user and password.
func Describe(address string) string {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return "PostgreSQL"
	}
	schema := config.RuntimeParams["schema"]
	if schema == "" {
		schema = defaultSchema
	}
	return fmt.Sprintf("schema %s of database %s on PostgreSQL at %s:%d", schema, config.Database, config.Host, config.Port)
}

// lock waits for the right to write.
func (s *Store) lock(ctx context.Context) error {
	if s.closed.Load() {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.writing <- struct{}{}:
		if s.closed.Load() {
			s.unlock()
			return errClosed
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) unlock() { <-s.writing }
