package hosttest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// wantWeft expects a command to succeed and to print a text.
func wantWeft(t *testing.T, want string, args ...string) {
	t.Helper()
	if code, out := weft(t, args...); code != 0 || !strings.Contains(out, want) {
		t.Fatalf("weft %s exits with %d: %s", strings.Join(args, " "), code, out)
	}
}

// A data directory moves to PostgreSQL and back. In each place, and after a backup and a
// restore, the check finds no fault, and runs and sessions continue where they were.
func TestMoveToPostgresAndBack(t *testing.T) {
	server := pgtest.Shared(t)
	data, last, file := t.TempDir(), filepath.Join(t.TempDir(), "last"), filepath.Join(t.TempDir(), "backup.db")
	populate(t, data)
	first, second := server.Database(t, ""), server.Database(t, "")

	wantWeft(t, "verified: 7 sessions", "migrate-store", data, first)
	wantWeft(t, "no faults", "check", "--store", first)
	count := func(data, want string, args ...string) {
		t.Helper()
		p := hosttest.Serve(t, data, args...)
		expect(t, p.Result(t, "counter", in("chat", nil)), want)
		if len(args) > 0 {
			if code, out := weft(t, "check", "--store", args[1]); code != 2 || !strings.Contains(out, "--online") {
				t.Errorf("a check of a store in use exits with %d: %s", code, out)
			}
			wantWeft(t, "no faults", "check", "--online", "--store", args[1])
			wantWeft(t, "verified", "backup", "--force", file, "--store", args[1])
			if code, out := weft(t, "migrate-store", args[1], t.TempDir()); code == 0 || !strings.Contains(out, "another server uses the store") {
				t.Errorf("a move of a store in use exits with %d: %s", code, out)
			}
		}
		if code := p.Interrupt(t); code != 0 {
			t.Errorf("the server exits with %d", code)
		}
	}
	count(t.TempDir(), "4", "--store", first)
	wantWeft(t, "restored to", "restore", file, "--store", second)
	count(t.TempDir(), "5", "--store", second)
	wantWeft(t, " MB, and has ", "compact", "--reindex", "--store", second)
	wantWeft(t, "no faults", "check", file)
	wantWeft(t, "verified: 7 sessions", "migrate-store", second, last)
	wantWeft(t, "no faults", "check", "--data", last)

	p := hosttest.Serve(t, last)
	expect(t, p.Result(t, "counter", in("chat", nil)), "6")
	if status, out := p.Do(t, http.MethodPost, "/events/waits", `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`); status != http.StatusOK {
		t.Fatalf("answer: %d %s", status, out)
	}
	events := p.Events(t, "waits", "", nil)
	if len(events) != 2 || events[1].Type != "StopEvent" {
		t.Errorf("events %v", events)
	}
	_ = p.Interrupt(t)
}

// Damage of the content of a PostgreSQL database is found and named, by the check as well
// as by a copy, which is then not used.
func TestCheckOfPostgresFindsDamage(t *testing.T) {
	server := pgtest.Shared(t)
	data := t.TempDir()
	populate(t, data)
	sound := server.Database(t, "")
	wantWeft(t, "verified: 7 sessions", "migrate-store", data, sound)
	for statement, code := range map[string]string{
		`UPDATE weft.journal SET data = set_byte(data, 40, get_byte(data, 40) # 16)`:         "journal_damaged",
		`DELETE FROM weft.journal WHERE sid = (SELECT min(id) FROM weft.sessions)`:           "journal_gap",
		`UPDATE weft.runs SET status = 'failed' WHERE handler = 'waits'`:                     "record_differs",
		`UPDATE weft.sessions SET wake_at = NULL WHERE session = 'sleeps'`:                   "wake_differs",
		`UPDATE weft.stream SET events = '\xff'`:                                             "stream_differs",
		`UPDATE weft.module_bytes SET bytes = bytes || '\x00'`:                               "module_damaged",
		`DELETE FROM weft.sessions WHERE session = 'waits'`:                                  "row_loose",
		`UPDATE weft.sessions SET part = (part + 1) % 128 WHERE session = 'waits'`:           "is in partition",
		`DELETE FROM weft.run_words; DELETE FROM weft.unread`:                                "not found by its words",
		`DELETE FROM weft.partitions WHERE part = 7`:                                         "127 partitions",
		`INSERT INTO weft.kv (space, key, version, value) VALUES (77, 'k', 1, '\x00')`:       "belong to no resource",
		`INSERT INTO weft.stream SELECT hid + 77, last_seq, 0, run, events FROM weft.stream`: "belong to no handler",
	} {
		url := server.Database(t, pgtest.Name(sound))
		server.Exec(t, url, statement)
		if exit, out := weft(t, "check", "--store", url); exit != 1 || !strings.Contains(out, code) {
			t.Errorf("after %s the check exits with %d: %s", statement, exit, out)
		}
		if code == "journal_damaged" {
			to := filepath.Join(t.TempDir(), "backup.db")
			if exit, out := weft(t, "backup", to, "--store", url); exit != 1 || !strings.Contains(out, code) {
				t.Errorf("a backup of damaged data exits with %d: %s", exit, out)
			}
			if _, err := os.Stat(to); err == nil {
				t.Error("the backup is there")
			}
			wantWeft(t, "not verified", "backup", "--no-verify", to, "--store", url)
		}
	}
}

// A move or a restore is killed, and continues.
func TestMoveIsKilled(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
	populate(t, data)
	wantWeft(t, "backed up to", "backup", file, "--data", data)
	for command, from := range map[string]string{"migrate-store": data, "restore": file} {
		t.Run(command, func(t *testing.T) { killed(t, command, from) })
	}
}

// killed kills a command that copies into a database.
func killed(t *testing.T, command, from string) {
	server := pgtest.Shared(t)
	url := server.Database(t, "")
	args, done := []string{command, from, url}, "of them before"
	if command == "restore" {
		args, done = []string{command, from, "--store", url}, "restored to"
	}
	// A trigger stops the copy at the table of streams until it is killed.
	first := exec.CommandContext(t.Context(), hosttest.Binary(t), args...)
	server.Exec(t, url, `CREATE SCHEMA hold`, `CREATE FUNCTION hold.wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'weft.copying') THEN
			CREATE TRIGGER hold BEFORE INSERT ON weft.stream EXECUTE FUNCTION hold.sleep(); END IF; END $$`,
		`CREATE FUNCTION hold.sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$`,
		`CREATE EVENT TRIGGER hold ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION hold.wait()`)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the copy waits in the table of streams", func() bool {
		return server.Query(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`) == "1"
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	server.Exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`,
		`DROP EVENT TRIGGER hold`, `DROP SCHEMA hold CASCADE`)
	var state struct{ Table int }
	if err := json.Unmarshal([]byte(server.Query(t, url, `SELECT convert_from(state, 'UTF8') FROM weft.copying`)), &state); err != nil || state.Table < 10 {
		t.Errorf("the copy stands at table %d: %v", state.Table, err)
	}
	if p, served := hosttest.TryServeBy(t, nil, t.TempDir(), "--store", url); served {
		_ = p.Interrupt(t)
		t.Error("a server runs on an unfinished copy")
	}
	rows := server.Query(t, url, `SELECT min(xmin::text::bigint) FROM weft.journal`)
	code, out := weft(t, args...)
	if code != 0 || !strings.Contains(out, done) || !strings.Contains(out, "verified: 7 sessions") {
		t.Errorf("the second call exits with %d: %s", code, out)
	}
	if again := server.Query(t, url, `SELECT min(xmin::text::bigint) FROM weft.journal`); again != rows {
		t.Error("the second call has written again what was copied")
	}
	wantWeft(t, "no faults", "check", "--store", url)
}

// Commands that read a database or rewrite its tables are interrupted and killed in their
// midst. They leave nothing that is used by mistake, and the same command then succeeds.
func TestDataCommandsAreKilled(t *testing.T) {
	server := pgtest.Shared(t)
	data, url := t.TempDir(), server.Database(t, "")
	populate(t, data)
	wantWeft(t, "verified: 7 sessions", "migrate-store", data, url)
	file := filepath.Join(t.TempDir(), "backup.db")
	for command, c := range map[string]struct {
		args []string
		want string
	}{
		"backup":  {[]string{file}, "verified: 7 sessions"},
		"check":   {nil, "no faults"},
		"compact": {nil, "MB, and has"},
	} {
		args := append(append([]string{command}, c.args...), "--store", url)
		for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
			release := server.Hold(t, url, `LOCK TABLE weft.stream`)
			first := exec.CommandContext(t.Context(), hosttest.Binary(t), args...)
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, command+" waits for the table of streams", func() bool {
				return server.Query(t, url, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'weft.stream'::regclass`) == "1"
			})
			if err := first.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := first.Wait(); err == nil {
				t.Errorf("%s succeeds after the signal %v", command, signal)
			}
			release()
			if command != "backup" {
				continue
			}
			found, err := os.ReadDir(filepath.Dir(file))
			if err != nil || signal == os.Interrupt && len(found) > 0 {
				t.Errorf("an interrupted backup leaves %v: %v", found, err)
			}
			for _, f := range found {
				if !strings.HasPrefix(f.Name(), ".backup.db.") || !strings.Contains(f.Name(), ".partial") {
					t.Errorf("a killed backup leaves %s", f.Name())
				}
			}
		}
		wantWeft(t, c.want, args...)
	}
	wantWeft(t, "no faults", "check", file)
}
