package hosttest_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to damage databases

	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host/audit"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/sqlite"
)

// populate makes a data directory with finished and waiting runs, in private sessions and
// a named session, and closes it.
func populate(t *testing.T, data string) {
	t.Helper()
	h := hosttest.New(t, hosttest.Config{Data: data})
	h.Load(t, "tinygo", "counter", "human", "sleeper")
	for range 3 {
		h.Result(t, "counter", in("chat", nil))
		h.Result(t, "counter", start(nil))
	}
	h.RunNoWait(t, "human", map[string]any{"handler_id": "waits"})
	h.RunNoWait(t, "human", map[string]any{"handler_id": "waits too"})
	h.RunNoWait(t, "sleeper", map[string]any{"handler_id": "sleeps", "start_event": fields{"seconds": 3600}})
	h.Stop(t)
}

// execute runs statements on the database behind the server's back.
func execute(t *testing.T, data string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "weft.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// faults checks a data directory that no server uses.
func faults(t *testing.T, data string) (found []audit.Fault, sum audit.Summary) {
	t.Helper()
	s, err := sqlite.OpenOffline(data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	sum, err = wire.Check(t.Context(), s, func(f audit.Fault) error {
		found = append(found, f)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found, sum
}

const sessionOf = `(SELECT id FROM sessions WHERE session = '%s')`

// flipByte changes one byte of a session's journal in the database file.
func flipByte(t *testing.T, data, session string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "weft.db"))
	if err != nil {
		t.Fatal(err)
	}
	var row []byte
	err = db.QueryRowContext(t.Context(), "SELECT data FROM journal WHERE sid = "+fmt.Sprintf(sessionOf, session)+" LIMIT 1").Scan(&row)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil { // moves the write-ahead log into the file
		t.Fatal(err)
	}
	path := filepath.Join(data, "weft.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A free page may contain the row as well.
	head, n := row[:min(len(row), 100)], 0
	for at := bytes.Index(file, head); at >= 0; at = bytes.Index(file, head) {
		file[at+40] ^= 0x10
		n++
	}
	if n == 0 {
		t.Fatal("the file does not hold the row")
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// For each kind of damage to a data directory, the check finds it and says where, and the
// server still serves.
func TestCheckAndServeWhatIsDamaged(t *testing.T) {
	sound := t.TempDir()
	populate(t, sound)
	if found, sum := faults(t, sound); len(found) > 0 || sum.Sessions != 7 || sum.Runs != 9 || sum.Modules != 3 {
		t.Fatalf("a sound directory: %+v, %+v", sum, found)
	}
	for name, tt := range map[string]struct {
		damage     func(t *testing.T, data string)
		code, what string
		session    string // "": not the fault of a session
		quarantine bool
	}{
		"a byte of the file": {func(t *testing.T, data string) { flipByte(t, data, "waits") },
			audit.JournalDamaged, "checksum", "waits", true},
		"a row of version 2": {func(t *testing.T, data string) {
			execute(t, data, `UPDATE journal SET data = CAST(x'02' || substr(data, 2) AS BLOB) WHERE sid = `+fmt.Sprintf(sessionOf, "waits"))
		}, audit.JournalNewer, "format 2", "waits", true},
		"a row is gone": {func(t *testing.T, data string) {
			execute(t, data, `DELETE FROM journal WHERE first > 1 AND sid = `+fmt.Sprintf(sessionOf, "chat"))
		}, audit.JournalGap, "ends at entry", "chat", true},
		"a whole journal is gone": {func(t *testing.T, data string) {
			execute(t, data, `DELETE FROM journal WHERE sid = `+fmt.Sprintf(sessionOf, "waits"))
		}, audit.JournalGap, "ends at entry 0", "waits", true},
		"a module is gone": {func(t *testing.T, data string) {
			execute(t, data, `DELETE FROM plugins WHERE name = 'human'`,
				`DELETE FROM module_bytes WHERE digest NOT IN (SELECT digest FROM plugins)`, `DELETE FROM modules WHERE digest NOT IN (SELECT digest FROM plugins)`)
		}, audit.ModuleMissing, "is not stored", "waits", true},
		"another wake time": {func(t *testing.T, data string) {
			execute(t, data, `UPDATE sessions SET wake_at = NULL WHERE session = 'sleeps'`)
		}, audit.WakeDiffers, "wakes at never", "sleeps", false},
		"another status": {func(t *testing.T, data string) {
			execute(t, data, `UPDATE runs SET status = 'failed' WHERE handler = 'waits'`)
		}, audit.RecordDiffers, "in status", "waits", false},
		"a result that cannot be read": {func(t *testing.T, data string) {
			execute(t, data, `UPDATE runs SET result = x'ff' WHERE session = 'chat'`)
		}, audit.RecordDiffers, "cannot be read", "chat", false},
		"events that do not read": {func(t *testing.T, data string) {
			execute(t, data, `UPDATE stream SET events = x'ff' WHERE hid = (SELECT id FROM handlers WHERE handler = 'waits')`)
		}, audit.StreamDiffers, "cannot be read", "waits", false},
		"events are gone": {func(t *testing.T, data string) {
			execute(t, data, `DELETE FROM stream WHERE hid = (SELECT id FROM handlers WHERE handler = 'waits')`)
		}, audit.StreamDiffers, "has 0 events", "waits", false},
		"a byte of a module": {func(t *testing.T, data string) {
			execute(t, data, `UPDATE module_bytes SET bytes = CAST(bytes || x'00' AS BLOB) WHERE digest = (SELECT digest FROM plugins WHERE name = 'counter')`)
		}, audit.ModuleDamaged, "do not match its digest", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			copyFile(t, filepath.Join(sound, "weft.db"), filepath.Join(data, "weft.db"))
			tt.damage(t, data)
			found, _ := faults(t, data)
			if !slices.ContainsFunc(found, func(f audit.Fault) bool {
				return f.Code == tt.code && f.Session == tt.session && strings.Contains(f.What, tt.what) && f.Advice != ""
			}) {
				t.Errorf("faults %+v, want %s of %q: %s", found, tt.code, tt.session, tt.what)
			}
			h := hosttest.New(t, hosttest.Config{Data: data})
			if status, out := h.Do(t, http.MethodGet, "/handlers?limit=100", nil); status != http.StatusOK {
				t.Errorf("the list: %d %s", status, out)
			}
			if tt.quarantine {
				wantQuarantine(t, h, tt.session)
			}
			if tt.code != audit.ModuleDamaged { // otherwise the workflow used here is the damaged one
				h.Load(t, "tinygo", "counter")
				h.Result(t, "counter", in("fresh", nil))
			}
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantQuarantine wants the server to refuse a session by name, and nothing else.
func wantQuarantine(t *testing.T, h *hosttest.Host, session string) {
	t.Helper()
	status, out := h.Do(t, http.MethodPost, "/workflows/counter/run", in(session, nil))
	if status != http.StatusInternalServerError || !strings.Contains(string(out), "quarantined") || !strings.Contains(string(out), session) {
		t.Errorf("a start in session %s: %d %s", session, status, out)
	}
	if status, out := h.Do(t, http.MethodGet, "/health", nil); status != http.StatusOK {
		t.Errorf("health: %d %s", status, out)
	}
	if session == "chat" {
		return // a named session stays, whatever happens to its handlers
	}
	if status, out := h.Do(t, http.MethodPost, "/handlers/"+session+"/cancel?purge=true", nil); status != http.StatusOK {
		t.Errorf("purge of it: %d %s", status, out)
	}
	h.Load(t, "tinygo", "counter")
	if got := h.Result(t, "counter", in(session, nil)); got != "1" {
		t.Errorf("a new session of its name counts %s", got)
	}
}

// eventually waits until a condition holds, and checks it every few milliseconds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(suite.Hang); !holds(); <-every.C {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// weft runs a command of the binary.
func weft(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hosttest.Binary(t), args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// A backup made while clients start runs contains every run that was acknowledged before
// the backup began. Waiting runs continue after a restore.
func TestBackupUnderLoad(t *testing.T) {
	data, file, restored := t.TempDir(), filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "new")
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	put(t, p, "human", hosttest.Plugin(t, "human-tinygo"))
	l := startLoad(t, p, 4)
	eventually(t, "some runs", func() bool { return len(l.acknowledged()) > 200 })
	before := l.acknowledged()
	if code, out := weft(t, "backup", file, "--data", data); code != 0 {
		t.Fatalf("backup: exit code %d: %s", code, out)
	}
	after := len(l.acknowledged())
	l.stop()
	p.Kill(t)
	t.Logf("%d runs before the backup, %d after it", len(before), after)

	if code, out := weft(t, "restore", file, "--data", restored); code != 0 {
		t.Fatalf("restore: exit code %d: %s", code, out)
	}
	if code, out := weft(t, "restore", file, "--data", restored); code != 1 || !strings.Contains(out, "not empty") {
		t.Errorf("restore into what is there: exit code %d: %s", code, out)
	}
	q := hosttest.Serve(t, restored)
	if code, out := weft(t, "check", "--data", restored, "--online"); code != 0 {
		t.Errorf("check: exit code %d: %s", code, out)
	}
	if code, out := weft(t, "check", "--data", restored); code != 2 || !strings.Contains(out, "in use") {
		t.Errorf("check without --online: exit code %d: %s", code, out)
	}
	for i, id := range before {
		status, out := q.Do(t, http.MethodGet, "/handlers/"+id, nil)
		switch {
		case status == http.StatusAccepted: // the run waits
			if i%10 == 0 {
				satisfy(t, q, id)
			}
		case status != http.StatusOK:
			t.Fatalf("run %s, which was acknowledged before the backup: %d %s", id, status, out)
		}
	}
}

// satisfy answers a waiting run, and wants the run to end.
func satisfy(t *testing.T, p *hosttest.Process, id string) {
	t.Helper()
	status, out := p.Do(t, http.MethodPost, "/events/"+id, `{"event":{"type":"HumanResponseEvent","value":{"response":42}}}`)
	if status != http.StatusOK {
		t.Fatalf("answer: %d %s", status, out)
	}
	p.Events(t, id, "", nil)
	if _, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil); record(t, out).Status != "completed" {
		t.Errorf("after the answer: %s", out)
	}
}

// load starts runs, as fast as a few clients can.
type load struct {
	mu   sync.Mutex
	ids  []string
	end  chan struct{}
	done sync.WaitGroup
}

func startLoad(t *testing.T, p *hosttest.Process, clients int) *load {
	t.Helper()
	l := &load{end: make(chan struct{})}
	for c := range clients {
		l.done.Go(func() {
			for n := c; ; n++ {
				select {
				case <-l.end:
					return
				default:
				}
				path := "/workflows/counter/run"
				if n%3 == 0 {
					path = "/workflows/human/run-nowait"
				}
				id, ok := begin(p.URL + path)
				if !ok {
					continue
				}
				l.mu.Lock()
				l.ids = append(l.ids, id)
				l.mu.Unlock()
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// begin starts a run and returns its handler. ok is false if the run was not
// acknowledged.
func begin(url string) (id string, ok bool) {
	res, err := http.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		return "", false
	}
	defer func() { _ = res.Body.Close() }()
	var r hosttest.Record
	err = json.NewDecoder(res.Body).Decode(&r)
	return r.HandlerID, err == nil && res.StatusCode == http.StatusOK
}

func (l *load) acknowledged() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[:len(l.ids):len(l.ids)]
}

func (l *load) stop() {
	l.mu.Lock()
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	l.mu.Unlock()
	l.done.Wait()
}

// A second server on a data directory is refused with one sentence.
func TestSecondServer(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	code, out := weft(t, "serve", "--addr", "127.0.0.1:0", "--data", data)
	if code != 1 || !strings.Contains(out, "data directory "+data+" is in use by another weft server") {
		t.Errorf("the second server: exit code %d: %s", code, out)
	}
	if status, _ := p.Do(t, http.MethodGet, "/health", nil); status != http.StatusOK {
		t.Errorf("the first one's health is %d", status)
	}
	p.Kill(t) // the kernel releases the lock
	hosttest.Serve(t, data)
}
