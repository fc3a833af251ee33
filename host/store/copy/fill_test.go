package copy_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // to read databases row by row

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/kv"
	storecopy "github.com/weftrun/weft/host/store/copy"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/usage"
)

// rowsPerSession is how many rows fill writes for each session, at least.
const rowsPerSession = 10

// rows is the number of rows of TestThereAndBack.
func rows(t *testing.T) int {
	if text := os.Getenv("WEFT_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	if suite.Soak() {
		return 1_000_000
	}
	return 2_000
}

// timed logs how long a copy takes.
func timed(t *testing.T, what string, fn func() storecopy.Summary) storecopy.Summary {
	begun := time.Now()
	sum := fn()
	t.Logf("%s: %d rows in %v", what, sum.Rows, time.Since(begun).Round(time.Millisecond))
	return sum
}

// odd are names that are hard to store: with bytes that are not text.
var odd = []string{"\x00", "a\x00b", "a\x01", "\x01\x03", "\xff", "a\xc3", "ü", "\x01\x02'\"\\%"}

// fill writes n sessions, and rows of every table.
func fill(t *testing.T, s host.Store, n int) {
	t.Helper()
	ctx := t.Context()
	epoch, err := s.Claim(ctx)
	must(t, err)
	fillNames(t, s)
	for at := 0; at < n; at += 100 {
		b := host.Batch{Epoch: epoch}
		for i := at; i < min(at+100, n); i++ {
			b.Sessions = append(b.Sessions, session(i))
		}
		must(t, s.Append(ctx, b))
		for i := range b.Sessions { // a second row, and the end of a run
			b.Sessions[i] = next(at + i)
		}
		must(t, s.Append(ctx, b))
	}
	space, durable := kv.Space{Tenant: "a", Resource: "shelf", Made: 7}, kv.Space{Tenant: "a", Resource: "file"}
	b := host.Batch{Epoch: epoch, Spent: []usage.MonthSpent{{Tenant: "a", Month: 202611, Spent: usage.Spent{Runs: 3, Fuel: 1 << 40, LogBytes: 9}}}}
	for _, of := range []kv.Space{space, durable} {
		var total kv.Totals
		for i, key := range odd {
			value := abi.Raw{0x18, byte(0x20 + i)}
			total.Last, total.Keys, total.Bytes = uint64(i+1), total.Keys+1, total.Bytes+int64(len(key)+len(value))
			b.KV = append(b.KV, kv.Write{Space: of, Item: kv.Item{Key: key, Version: uint64(i + 1), Value: value}, Totals: total})
		}
	}
	// A session that is being deleted.
	gone := host.SessionKey{Tenant: "a", Session: "gone"}
	b.Sessions = []host.SessionBatch{{Key: gone, First: 1, Last: 1, Data: []byte("x"), WakeAt: host.WakeNever}}
	must(t, s.Append(ctx, b))
	for n := uint64(2); n < 30; n++ {
		must(t, s.Append(ctx, host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{Key: gone, First: n, Last: n, Data: []byte("x"), WakeAt: host.WakeNever}}}))
	}
	must(t, s.Append(ctx, host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{Key: gone, Erase: 8}}}))
	// Versions that no name refers to any more, but journals do.
	must(t, s.DeleteComposition(ctx, "a", "old"))
	must(t, s.DeletePlugin(ctx, "a", "part", 0))
}

// fillNames writes what has a name.
func fillNames(t *testing.T, s host.Store) {
	t.Helper()
	ctx := t.Context()
	for _, digest := range []string{"m1", "m2", "m3"} {
		must(t, s.PutModule(ctx, host.ModuleRecord{Digest: digest, Rewritten: "r" + digest, ImageHash: "i", Manifest: abi.Raw{0xa0},
			Imports: []string{"weft"}, Bytes: []byte(strings.Repeat(digest+"\x00", 1000))}))
	}
	must(t, s.PutModule(ctx, host.ModuleRecord{Digest: "m4", Bytes: []byte{}}))
	for i, name := range []string{"plugin", "part", odd[2]} {
		must(t, s.PutPlugin(ctx, host.PluginVersion{Tenant: "a", Name: name, Workflow: name, Version: 1, Digest: fmt.Sprint("m", i+1), Size: 1 << 33, Created: 5}))
	}
	for _, name := range []string{"flow", "old"} {
		must(t, s.PutComposition(ctx, host.CompositionVersion{Tenant: "a", Name: name, Version: 1, Digest: "c-" + name, Record: []byte{0, 1, 255},
			Modules: []string{"m1", "m3"}, Created: 6}))
	}
	must(t, s.PutResource(ctx, host.ResourceRecord{Tenant: "a", Name: "shelf", Definition: []byte(`{}`), Created: 7, Updated: 8}))
	must(t, s.AddResourceUse(ctx, []host.ResourceUse{{Tenant: "a", Resource: "shelf", Workflow: odd[0], Calls: 1, Failed: 2, Sent: 3, Received: 4}}))
	for i, key := range odd {
		must(t, s.SetMeta(ctx, key, []byte{byte(i)}))
	}
	must(t, s.SetMeta(ctx, "empty", nil))
	must(t, s.ChangeAccess(ctx, host.AccessChange{
		Tenants: []host.TenantRecord{{Name: "a", Created: 1}, {Name: "b", Created: 2, Deleting: true}},
		Keys: []host.KeyRecord{{ID: "k1", Tenant: "a", Role: host.RoleAdmin, Name: odd[1], Prefix: "p", Hash: sha256.Sum256([]byte("k1")), Created: 1},
			{ID: "k2", Tenant: "b", Role: host.RoleAdmin, Hash: sha256.Sum256([]byte("k2")), Previous: sha256.Sum256([]byte("k")), PreviousPrefix: "o", PreviousUntil: 9, Revoked: 7}},
		Audit: []host.AuditEntry{{Time: 1, Who: "k1", Tenant: "a", Act: "key.create", Target: odd[3], Detail: odd[4], Outcome: host.AuditOK}, {Time: 2, Act: "x", Outcome: "forbidden"}},
	}))
}

func key(i int) host.SessionKey {
	name := fmt.Sprintf("s%06d", i)
	if i < len(odd) {
		name = odd[i]
	}
	return host.SessionKey{Tenant: []string{"a", "b", odd[1]}[i%3], Session: name}
}

// run is the latest run of a session.
func run(i, number int) host.Run {
	k := key(i)
	started := int64(1_700_000_000_000_000_000 + i*1000)
	r := host.Run{Tenant: k.Tenant, HandlerID: k.Session, RunID: fmt.Sprintf("%s@%d", k.Session, number), SessionID: k.Session,
		Workflow: []string{"w", odd[5]}[i%2], Version: "m1", Status: host.StatusRunning, Started: started, Updated: started, Steps: 1, Fuel: 1 << 40}
	switch i % 4 {
	case 0:
		r.WaitingFor = []host.Waiting{{Step: "ask", Type: "Answer", Since: started}}
	case 1:
		r.Blocked = &host.Blocked{Code: "module_missing", Message: odd[i%len(odd)]}
	case 2:
		r.Paused = true
	}
	return r
}

func event(r host.Run, seq uint64) host.StreamEvent {
	return host.StreamEvent{Seq: seq, RunID: r.RunID, Type: "E", Body: abi.Raw{0xa0}, Workflow: r.Workflow}
}

// session is the first batch of a session: two rows of its journal come later.
func session(i int) host.SessionBatch {
	r := run(i, 1)
	return host.SessionBatch{Key: key(i), First: 1, Last: 3, Data: fmt.Appendf(nil, "entries of %d %s", i, strings.Repeat("\x00\xff", 200)), WakeAt: int64(i % 2 * 1000),
		At: r.Started, StateBytes: int64(i), StateGrowth: int64(i), Runs: []host.Run{r}, Started: []string{r.RunID},
		Versions: []host.VersionUse{{Digest: []string{"m1", "m2", "c-old"}[i%3], Seq: 2}},
		Repeats:  []host.Repeat{{Route: "run", Key: fmt.Sprint("key ", i), Hash: "h", RunID: r.RunID, Made: r.Started}},
		Stream:   []host.StreamRow{{HandlerID: r.HandlerID, RunID: r.RunID, Events: []host.StreamEvent{event(r, 0), event(r, 1)}}}}
}

// next ends the run of a session, with a snapshot, and begins another.
func next(i int) host.SessionBatch {
	r, latest := run(i, 1), run(i, 2)
	r.Status, r.Completed, r.Blocked, r.WaitingFor, r.Paused = host.StatusCompleted, r.Started+5, nil, nil, false
	stop := event(r, 2)
	stop.Terminal = true
	r.Result = &stop
	if i%5 == 0 {
		r.Status, r.Result, r.Error, r.ErrorCode = host.StatusFailed, nil, odd[i%len(odd)], "panic"
	}
	r.Updated = r.Completed
	latest.Started++
	return host.SessionBatch{Key: key(i), First: 4, Last: 4, Data: fmt.Appendf(nil, "more of %d", i), WakeAt: host.WakeNever, Snapshot: 4,
		At: r.Completed, Runs: []host.Run{r, latest}, Started: []string{latest.RunID},
		Stream: []host.StreamRow{{HandlerID: r.HandlerID, RunID: r.RunID, Events: []host.StreamEvent{stop}}, {HandlerID: r.HandlerID, RunID: latest.RunID, Events: []host.StreamEvent{event(latest, 3)}}}}
}

// extend writes to a store with n sessions, and reads what it had.
func extend(t *testing.T, s host.Store, n int) {
	t.Helper()
	ctx := t.Context()
	epoch, err := s.Claim(ctx)
	must(t, err)
	fresh, old := session(n), host.SessionBatch{Key: key(n - 1), First: 5, Last: 5, Data: []byte("and more"), WakeAt: 7, Versions: []host.VersionUse{{Digest: "m3", Seq: 5}}}
	must(t, s.Append(ctx, host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{fresh, old}}))
	stored, err := s.LoadSession(ctx, key(n-1))
	if err != nil || stored.Last != 5 || stored.WakeAt != 7 || len(stored.Rows) != 2 {
		t.Errorf("the session is at %d with %d rows: %v", stored.Last, len(stored.Rows), err)
	}
	must(t, s.ChangeAccess(ctx, host.AccessChange{Audit: []host.AuditEntry{{Time: 3, Tenant: "a", Outcome: host.AuditOK}}}))
	list, _, err := s.Audit(ctx, host.AuditQuery{All: true, Limit: 10})
	if err != nil || len(list) < 3 || list[0].Time != 3 {
		t.Errorf("the audit log: %+v, %v", list, err)
	}
	sessions, _, err := s.Sessions(ctx, host.SessionQuery{Tenant: key(n).Tenant, Limit: 1})
	if err != nil || len(sessions) != 1 || sessions[0].SessionID != key(n).Session {
		t.Errorf("the newest session is %+v, %v", sessions, err)
	}
	r := run(0, 1)
	found, _, err := s.Runs(ctx, host.RunQuery{Tenant: r.Tenant, Search: []host.SearchTerm{{Word: "nothing"}}, Limit: 10}) // brings the index up to date
	if err != nil || len(found) != 0 {
		t.Errorf("a search finds %d runs: %v", len(found), err)
	}
}

// dump returns a hash of each table of a SQLite database: all columns but the ids of runs,
// in the order of the rows.
func dump(t *testing.T, file string) map[string]string {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	sums := map[string]string{}
	for _, table := range tableNames(t, db) {
		if table == "store" || table == "unread" || strings.HasPrefix(table, "run_words") {
			continue
		}
		columns := strings.Join(slices.DeleteFunc(columnNames(t, db, table), func(c string) bool { return table == "runs" && c == "id" }), ", ")
		order := "1, 2, 3"
		if table == "runs" {
			order = "id"
		} else if strings.Count(columns, ",") < 2 {
			order = "1, 2"[:1+3*strings.Count(columns, ",")]
		}
		rows := table
		if table == "run_counts" {
			rows = "(SELECT * FROM run_counts WHERE runs > 0)" // a copy has never had the others
		}
		h := sha256.New()
		n := 0
		eachRow(t, db, "SELECT "+columns+" FROM "+rows+" ORDER BY "+order, h, &n)
		sums[table] = fmt.Sprintf("%d rows, %x", n, h.Sum(nil))
	}
	return sums
}

func eachRow(t *testing.T, db *sql.DB, query string, h hash.Hash, n *int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	must(t, err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	must(t, err)
	for ; rows.Next(); *n++ {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		must(t, rows.Scan(to...))
		_, _ = fmt.Fprintf(h, "%T %v\n", row, row)
		_, _ = h.Write(record.AppendRow(nil, row))
	}
	must(t, rows.Err())
}

func names(t *testing.T, db *sql.DB, query string, args ...any) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		list = append(list, name)
	}
	must(t, rows.Err())
	return list
}

func tableNames(t *testing.T, db *sql.DB) []string {
	return names(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
}

func columnNames(t *testing.T, db *sql.DB, table string) []string {
	return names(t, db, "SELECT name FROM pragma_table_info(?)", table)
}

// wantEqual expects two data directories to have equal content.
func wantEqual(t *testing.T, a, b string) {
	t.Helper()
	wantEqualFiles(t, filepath.Join(a, "weft.db"), filepath.Join(b, "weft.db"))
}

func wantEqualFiles(t *testing.T, a, b string) {
	t.Helper()
	first, last := dump(t, a), dump(t, b)
	if want := len(record.Tables) + 1; len(first) != want { // and the counts of runs, which triggers make
		t.Errorf("%d tables, want %d", len(first), want)
	}
	for table := range first {
		if first[table] != last[table] {
			t.Errorf("table %s: %s, and %s", table, first[table], last[table])
		}
	}
}

// tables returns the columns of each table.
type tables map[string][]string

func openFilesTables(t *testing.T) tables {
	t.Helper()
	dir := t.TempDir()
	must(t, openFiles(t, dir).Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, "weft.db"))
	must(t, err)
	defer func() { must(t, db.Close()) }()
	all := tables{}
	for _, table := range tableNames(t, db) {
		all[table] = columnNames(t, db, table)
	}
	return all
}

func databaseTables(t *testing.T, url string) tables {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	rows, err := conn.Query(t.Context(), `SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'weft'`)
	must(t, err)
	all := tables{}
	var table, column string
	_, err = pgx.ForEachRow(rows, []any{&table, &column}, func() error {
		// Columns that follow from others, or that only say who owns a row.
		if slices.Contains([]string{"sessions.part", "handlers.made", "spent.epoch", "kv_spaces.epoch"}, table+"."+column) {
			return nil
		}
		all[table] = append(all[table], column)
		return nil
	})
	must(t, err)
	return all
}

// wantTables expects all tables but some to be copied with all of their columns.
func wantTables(t *testing.T, have tables, except ...string) {
	t.Helper()
	for _, table := range record.Tables {
		var columns []string
		for _, c := range table.Columns {
			columns = append(columns, c.Name)
		}
		found := slices.Sorted(slices.Values(have[table.Name]))
		if want := slices.Sorted(slices.Values(columns)); !slices.Equal(found, want) {
			t.Errorf("table %s has the columns %q, and %q are copied", table.Name, found, want)
		}
		delete(have, table.Name)
	}
	for name := range have {
		if !slices.Contains(except, name) {
			t.Errorf("table %s is not copied", name)
		}
	}
}
