package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// A server that would break the promises is refused, each for its own reason.
func TestServerIsRefused(t *testing.T) {
	good := server{140000, "on", "on", "UTF8"}
	if err := good.refuse(false); err != nil {
		t.Errorf("a good server: %v", err)
	}
	for reason, change := range map[string]func(*server){
		"is PostgreSQL 13; weft needs 14": func(s *server) { s.version = 139999 },
		"fsync = off":                     func(s *server) { s.fsync = "off" },
		"full_page_writes = off":          func(s *server) { s.pages = "off" },
		"encoding LATIN1":                 func(s *server) { s.encoding = "LATIN1" },
	} {
		bad := good
		change(&bad)
		if err := bad.refuse(false); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
		if err, only := bad.refuse(true), strings.HasSuffix(reason, "= off"); (err == nil) != only {
			t.Errorf("%s, only to read: %v", reason, err)
		}
	}
}

// The store sets what its promises need on all of its connections, whatever the role has.
func TestSettingsOfConnections(t *testing.T) {
	pg := pgtest.Shared(t)
	address := newDatabase(t)
	for setting, value := range map[string]string{"synchronous_commit": "off", "default_transaction_isolation": "'repeatable read'",
		"statement_timeout": "'7s'", "client_encoding": "LATIN1"} {
		pg.Exec(t, address, fmt.Sprintf("ALTER DATABASE %s SET %s = %s", pgtest.Name(address), setting, value))
	}
	s := mustOpen(t, address)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	inspection, err := s.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := inspection.Close(); err != nil {
			t.Error(err)
		}
	}()
	want := map[string]string{"synchronous_commit": "on", "default_transaction_isolation": "read committed", "statement_timeout": "30s",
		"idle_in_transaction_session_timeout": "10s", "client_encoding": "UTF8", "tcp_keepalives_idle": "5"}
	for name, q := range map[string]querier{"append": s.appender.conn, "read": s.pool, "inspect": inspection.tx} {
		for setting, value := range want {
			if name == "inspect" && strings.HasSuffix(setting, "timeout") {
				value = "0" // a copy takes long
			}
			var found string
			if err := q.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&found); err != nil || found != value {
				t.Errorf("the connection for %s has %s = %s, want %s: %v", name, setting, found, value, err)
			}
		}
	}
}

// An append that waits for a lock is not committed when PostgreSQL ends its statement, and
// the same batch can be appended afterwards.
func TestStatementIsEnded(t *testing.T) {
	address := newDatabase(t)
	s, other := mustOpen(t, address), mustOpen(t, address)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := other.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE journal IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Append(t.Context(), row(epoch, 1)) }()
	end := `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'weft weft append' AND wait_event_type = 'Lock'`
	for {
		var ended bool
		err := other.pool.QueryRow(t.Context(), end).Scan(&ended)
		if err == nil && ended {
			break
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(ended, err)
		}
	}
	if err := <-done; !errors.Is(err, host.ErrNotCommitted) {
		t.Errorf("Append = %v, want ErrNotCommitted", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	wantRows(t, s, 1)
}

// A new owner does not wait for a former owner that stands still in the middle of a
// commit: its connection is ended, and its batch is refused.
func TestStuckOwnerIsEnded(t *testing.T) {
	address := newDatabase(t)
	a, b := mustOpen(t, address), mustOpen(t, address)
	epoch, err := a.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	// Nothing but the new owner ends the connection that stands still behind the last one.
	for _, statement := range []string{"SET idle_in_transaction_session_timeout = 0", "BEGIN", "UPDATE pulse SET at = at"} {
		if _, err := a.appender.conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), suite.Hang)
	defer cancel()
	if _, err := b.Claim(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), row(epoch, 2)); !errors.Is(err, host.ErrFenced) {
		t.Errorf("Append of the former owner = %v, want ErrFenced", err)
	}
	wantRows(t, b, 1)
}

// While the server takes no writes, an append is not committed; afterwards the same batch
// is.
func TestReadOnlyServer(t *testing.T) {
	suite.NotShort(t, "starts a server of its own")
	pg := pgtest.Own(t)
	s := mustOpen(t, pg.URL)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	setting := func(value string) {
		pg.Exec(t, pg.URL, "ALTER SYSTEM SET default_transaction_read_only = "+value, "SELECT pg_reload_conf()")
	}
	if err := s.Append(t.Context(), row(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	n := uint64(2)
	for range 3 {
		setting("on")
		for refused := 0; refused < 3; {
			err := s.Append(t.Context(), row(epoch, n))
			switch {
			case err == nil && refused == 0: // its backend has not read the setting yet
				n++
			case !errors.Is(err, host.ErrNotCommitted):
				t.Fatalf("Append = %v, want ErrNotCommitted", err)
			default:
				refused++
			}
		}
		wantRows(t, s, n-1)
		setting("off")
		for {
			err := s.Append(t.Context(), row(epoch, n))
			if err == nil {
				break
			}
			if !errors.Is(err, host.ErrNotCommitted) {
				t.Fatalf("Append = %v, want ErrNotCommitted", err)
			}
		}
		wantRows(t, s, n)
		n++
	}
}

// While the disk of the tables is full, appends are not committed; when there is space
// again, the same batch is.
func TestDiskOfPostgresIsFull(t *testing.T) {
	suite.NotShort(t, "starts a server of its own")
	disk := mountSmall(t)
	pg := pgtest.Own(t)
	pg.Exec(t, pg.URL, fmt.Sprintf("CREATE TABLESPACE small LOCATION '%s'", disk), "CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
	u, err := url.Parse(pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/small"
	s := mustOpen(t, u.String())
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	large := func(n uint64) host.Batch {
		b := row(epoch, n)
		b.Sessions[0].Data = []byte(strings.Repeat("x", 1<<20))
		return b
	}
	n := uint64(1)
	for round := range 3 {
		fillDisk(t, filler)
		refused := 0
		for refused < 3 {
			err := s.Append(t.Context(), large(n))
			switch {
			case err == nil: // pages that the table has already
				n++
			case !errors.Is(err, host.ErrNotCommitted) || codeOf(err) != "53100":
				t.Fatalf("round %d, append %d: %v, want ErrNotCommitted for a full disk", round, n, err)
			default:
				refused++
			}
		}
		stored, err := s.LoadSession(t.Context(), host.SessionKey{Tenant: "t", Session: "s"})
		if err != nil && !errors.Is(err, host.ErrNotFound) || stored.Last != n-1 || len(stored.Rows) != int(n-1) {
			t.Fatalf("the session is at %d with %d rows, want %d: %v", stored.Last, len(stored.Rows), n-1, err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), large(n)); err != nil {
			t.Fatal(err)
		}
		n++
	}
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close()
}

// mountSmall mounts a small disk for the server's user.
func mountSmall(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir, err := os.MkdirTemp("", "weft-small-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if out, err := osexec.Command("mount", "-t", "tmpfs", "-o", "size=64m,mode=777", "weft-test", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := osexec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	inner := filepath.Join(dir, "tables")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	giveToServer(t, inner)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return inner
}

// giveToServer makes a file belong to the user that the server runs as.
func giveToServer(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
}

// The URL decides on TLS: with verify-full, only the server whose certificate is of the
// given authority and name is used, and all connections are encrypted.
func TestTLS(t *testing.T) {
	suite.NotShort(t, "starts a server of its own")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the server reads the files below
		t.Fatal(err)
	}
	certificate, key := makeCertificate(t, dir, "server", net.ParseIP("127.0.0.1"))
	other, _ := makeCertificate(t, dir, "other", net.ParseIP("127.0.0.1"))
	pg := pgtest.Own(t, "ssl=on", "ssl_cert_file="+certificate, "ssl_key_file="+key)
	address := func(host, root string) string {
		u, err := url.Parse(pg.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = net.JoinHostPort(host, u.Port())
		u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}}.Encode()
		return u.String()
	}
	s := mustOpen(t, address("127.0.0.1", certificate))
	if _, err := s.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all, encrypted int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
		WHERE application_name LIKE 'weft %'`).Scan(&all, &encrypted); err != nil || all == 0 || encrypted != all {
		t.Errorf("%d of %d connections are encrypted: %v", encrypted, all, err)
	}
	_ = wantRefused(t, address("127.0.0.1", other), "certificate")
	_ = wantRefused(t, address("localhost", certificate), "certificate")
}

// makeCertificate writes a certificate that signs itself, for an address, and its key.
func makeCertificate(t *testing.T, dir, name string, ip net.IP) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{ip}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		giveToServer(t, file)
	}
	return certificate, key
}

// Each statement of a batch finds its rows by an index, also if it was planned while the
// tables were empty: its time does not grow with them.
func TestPlans(t *testing.T) {
	s := mustOpen(t, newDatabase(t))
	conn, err := s.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	statements := append([]string{fence, ownParts, insertSessions, updateSessions, insertHandlers, insertRuns, updateRuns, insertStream,
		insertJournal, useVersions, cutJournal, countJournal, cutVersions, setFirstSeq, putRepeats, dropRuns, purgeHandlers, leaveSessions,
		sumSpent, putSpaces, putItems, deleteItems}, slices.Concat(erasers, sweeps[:])...)
	for i, statement := range statements {
		wantIndexed(t, statement, planOf(t, conn, fmt.Sprint("plan", i), statement), growing)
	}
}

// growing finds the scans of tables that grow, each with the condition by which it finds
// rows.
var growing = regexp.MustCompile(`(.*Scan.* on (?:sessions|journal|handlers|runs|stream|session_versions|repeats|kv|kv_spaces)\b.*)\n(.*)`)

// planOf returns the plan of a statement, for any parameters.
func planOf(t *testing.T, conn *pgx.Conn, name, statement string) string {
	t.Helper()
	description, err := conn.Prepare(t.Context(), name, statement)
	if err != nil {
		t.Fatal(err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(description.ParamOIDs)), ", ")
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	rows, err := conn.Query(t.Context(), fmt.Sprintf("EXPLAIN (COSTS off) EXECUTE %s%s", name, nulls), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// wantIndexed expects the scans that a pattern finds in a plan to have a condition on an
// index. The index of the sessions whose needs are not known has only these.
func wantIndexed(t *testing.T, statement, plan string, scans *regexp.Regexp) {
	t.Helper()
	for _, found := range scans.FindAllStringSubmatch(plan, -1) {
		if strings.Contains(found[1], "using sessions_unlisted") {
			continue
		}
		if strings.Contains(found[1], "Seq Scan") || !strings.Contains(found[2], "Cond:") {
			t.Errorf("the statement\n%s\nreads a whole table: %s\n%s", statement, strings.TrimSpace(found[1]), plan)
		}
	}
}

// recorder notes the statements of connections.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) note(statement string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.list, statement) {
		r.list = append(r.list, statement)
	}
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	r.note(q.SQL)
	return ctx
}

func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	r.note(q.SQL)
}

func (*recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// traced makes the connections of a store note their statements.
func (r *recorder) traced(t *testing.T, s *Store) *Store {
	t.Helper()
	s.config.Tracer = r
	s.pool.Close()
	if err := s.openPool(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Each statement of the table of nodes that is about one node finds the node by an index,
// and none reads a table that grows.
func TestPlansOfNodes(t *testing.T) {
	url, r := newDatabase(t), &recorder{}
	all := map[string]*member{}
	for _, name := range []string{"a", "b", "c"} {
		m := &member{Members: r.traced(t, openShared(t, url, nil)).Members(), url: url}
		t.Cleanup(func() { must(t, m.Close()) })
		var err error
		if m.place, err = m.Join(t.Context(), selfOf(name)); err != nil {
			t.Fatal(err)
		}
		all[name] = m
	}
	a, b, c := all["a"], all["b"], all["c"]
	a.takes(t)
	must(t, b.Drain(t.Context(), b.place, "a", true))
	must(t, a.Leaving(t.Context(), a.place))
	must(t, a.Release(t.Context(), a.place))
	_ = b.beats(t)
	_, err := b.Look(t.Context())
	must(t, err)
	b.closes(t, a)
	b.takes(t)
	must(t, b.Leave(t.Context(), b.place))
	must(t, c.disconnectClosed(t.Context()))
	must(t, c.store.endStuck(t.Context()))
	conn, err := mustOpen(t, url).connected(t.Context())
	must(t, err)
	one := regexp.MustCompile(`(.*Scan.* on (?:nodes|pulse)\b.*)\n(.*)`)
	statements := 0
	for i, statement := range append(r.list, adoptQuery) {
		if verb, _, _ := strings.Cut(strings.ToUpper(statement), " "); !slices.Contains([]string{"SELECT", "UPDATE", "INSERT", "DELETE", "WITH"}, verb) {
			continue // begin and commit
		}
		statements++
		plan := planOf(t, conn, fmt.Sprint("nodes", i), statement)
		wantIndexed(t, statement, plan, growing)
		if strings.Contains(statement, "epoch = $1") && !strings.HasPrefix(statement, "UPDATE partitions") {
			wantIndexed(t, statement, plan, one)
		}
	}
	const known = 23 // statements of members.go
	if statements < known {
		t.Errorf("%d statements were executed, want %d at least: %q", statements, known, r.list)
	}
}
