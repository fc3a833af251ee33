package hosttest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/journal"
	"github.com/weftrun/weft/host/store/sqlite"
)

// TestMain lets the tests share compiled code. At the end it deletes that code and the
// directories of waiting runs, which benchmarks share.
func TestMain(m *testing.M) {
	if os.Getenv(poisoned) != "" {
		os.Exit(servePoisoned())
	}
	end, err := hosttest.ShareCode()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	end()
	for _, dir := range waitingDirs {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// waitingDirs are the directories made by waitingDir, by their contents.
var waitingDirs = map[waiting]string{}

// waiting describes the contents of a directory of waiting runs.
type waiting struct {
	runs  int
	sleep time.Duration // least time that sleeping runs sleep
}

// How many of a hundred waiting runs wait for a person (at rest, or in the middle of a
// step) or for the clock. The rest sleeps.
const (
	waitHuman    = 70
	waitApproval = 15
)

// waitingKind returns the workflow of the i-th waiting run.
func waitingKind(i int) string {
	switch i %= 100; {
	case i < waitHuman:
		return "human"
	case i < waitHuman+waitApproval:
		return "approval"
	default:
		return "sleeper"
	}
}

// waitingID returns the handler of the i-th waiting run.
func waitingID(i int) string { return fmt.Sprintf("h%011d", i) }

// waitingDir returns a data directory with n waiting runs, each in a private session. It
// is made once for the test process and shared: a benchmark that answers some runs leaves
// the others.
//
// A few runs of each kind are real. The others are copies: the same rows under other ids
// of the same length.
func waitingDir(tb testing.TB, n int, sleep time.Duration) string {
	tb.Helper()
	of := waiting{n, sleep}
	if dir, ok := waitingDirs[of]; ok {
		return dir
	}
	dir := keptDir(of)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "weft-waiting-"); err != nil {
			tb.Fatal(err)
		}
		waitingDirs[of] = dir
	} else if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir
	}
	began := time.Now()
	real := realWaits(tb, dir, sleep)
	s, err := sqlite.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	batch := host.Batch{}
	if batch.Epoch, err = s.Claim(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		like := real[waitingKind(i)]
		batch.Sessions = append(batch.Sessions, like[i%len(like)].copyAs(waitingID(i), fmt.Sprintf("r%011d", i))...)
		if i%1000 == 999 || i == n-1 {
			if err := s.Append(tb.Context(), batch); err != nil {
				tb.Fatal(err)
			}
			batch.Sessions = batch.Sessions[:0]
		}
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%d waiting runs written in %s", n, time.Since(began).Round(time.Millisecond))
	return dir
}

// keptDir returns where a directory of waiting runs is kept for later processes, if
// making it takes long: in the folder $WEFT_BENCH_DIR. "": it is not kept.
func keptDir(of waiting) string {
	folder := os.Getenv("WEFT_BENCH_DIR")
	if folder == "" || of.runs < 1_000_000 {
		return ""
	}
	return filepath.Join(folder, fmt.Sprintf("waiting-%d", of.runs))
}

// realWaits runs some runs of each kind until they wait, and reads their rows from the
// store.
func realWaits(tb testing.TB, data string, sleep time.Duration) map[string][]storedRun {
	tb.Helper()
	h := hosttest.New(tb, hosttest.Config{Data: data})
	h.Load(tb, "tinygo", "human", "approval", "sleeper")
	// Runs that sleep for long would otherwise reach the timeout that sleeper sets.
	if status, answer := h.Do(tb, http.MethodPut, "/workflows/sleeper", `{"settings":{"timeout":0}}`); status != http.StatusCreated {
		tb.Fatalf("%d %s", status, answer)
	}
	out := map[string][]storedRun{}
	for i := range 20 {
		for workflow, fields := range map[string]string{
			"human": `{}`, "approval": `{"item":"a desk"}`, "sleeper": fmt.Sprintf(`{"seconds":%d}`, int(sleep.Seconds())*(i+1)),
		} {
			body, err := abi.FromJSON([]byte(fields))
			if err != nil {
				tb.Fatal(err)
			}
			run, err := h.Runs.Start(tb.Context(), host.StartRequest{Tenant: host.DefaultTenant, Workflow: workflow, Event: abi.Event{Body: body}})
			if err != nil {
				tb.Fatal(err)
			}
			out[workflow] = append(out[workflow], storedRun{id: run.HandlerID})
		}
	}
	for due := 1; due > 0; { // before the run waits
		keys, _, err := h.Store.Due(tb.Context(), time.Now().UnixNano(), 1)
		if err != nil {
			tb.Fatal(err)
		}
		due = len(keys)
	}
	for _, runs := range out {
		for i := range runs {
			runs[i].read(tb, h.Store)
		}
	}
	h.Stop(tb)
	return out
}

// storedRun is a run with its private session, as stored.
type storedRun struct {
	id   string
	run  host.Run
	last uint64
	wake int64
	rows []host.JournalRow
	show []host.StreamEvent
}

func (s *storedRun) read(tb testing.TB, store host.Store) {
	tb.Helper()
	handler, err := store.Handler(tb.Context(), host.DefaultTenant, s.id)
	if err != nil {
		tb.Fatal(err)
	}
	s.run = handler.Run
	key := host.SessionKey{Tenant: host.DefaultTenant, Session: s.run.SessionID}
	session, err := store.LoadSession(tb.Context(), key)
	if err != nil {
		tb.Fatal(err)
	}
	s.last, s.wake = session.Last, session.WakeAt
	if s.rows, err = store.History(tb.Context(), key, 0, 0, 1000); err != nil {
		tb.Fatal(err)
	}
	if s.show, err = store.Stream(tb.Context(), host.DefaultTenant, s.id, -1, 1000); err != nil {
		tb.Fatal(err)
	}
}

// copyAs returns the batches that write the run under other ids.
func (s *storedRun) copyAs(handler, run string) []host.SessionBatch {
	key := host.SessionKey{Tenant: host.DefaultTenant, Session: handler}
	parts := make([]host.SessionBatch, len(s.rows))
	for i, row := range s.rows {
		last := s.last
		if i+1 < len(s.rows) {
			last = s.rows[i+1].First - 1
		}
		parts[i] = host.SessionBatch{Key: key, First: row.First, Last: last, WakeAt: s.wake, Data: s.renamed(row.Data, handler, run)}
	}
	r := s.run
	r.HandlerID, r.SessionID, r.RunID = handler, handler, run
	show := slices.Clone(s.show)
	for i := range show {
		show[i].RunID = run
	}
	parts[0].Runs, parts[0].Started = []host.Run{r}, []string{run}
	if len(show) > 0 {
		parts[0].Stream = []host.StreamRow{{HandlerID: handler, RunID: run, Events: show}}
	}
	return parts
}

// renamed returns a journal row under other ids, with its checksum.
func (s *storedRun) renamed(row []byte, handler, run string) []byte {
	row = bytes.ReplaceAll(row, []byte(s.run.HandlerID), []byte(handler))
	row = bytes.ReplaceAll(row, []byte(s.run.RunID), []byte(run))
	const header = 5 // version and CRC-32C: see package journal
	binary.BigEndian.PutUint32(row[1:], crc32.Checksum(row[header:], crc32.MakeTable(crc32.Castagnoli)))
	if _, err := journal.CheckRow(row); err != nil {
		panic(err) // the format of rows has changed
	}
	return row
}
