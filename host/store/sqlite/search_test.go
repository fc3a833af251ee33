package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/inspect"
	"github.com/weftrun/weft/host/search"
)

// failedRun is a part in which a run of its own session fails with a message.
func failedRun(handler, message string, at int64) host.SessionBatch {
	r := host.Run{Tenant: host.DefaultTenant, HandlerID: handler, RunID: handler + "-run", SessionID: handler, Workflow: "flow",
		Status: host.StatusFailed, Error: message, Started: at, Updated: at, Completed: at}
	return host.SessionBatch{Key: host.SessionKey{Tenant: r.Tenant, Session: handler}, First: 1, Last: 1, Data: []byte{1},
		WakeAt: host.WakeNever, Runs: []host.Run{r}, Started: []string{r.RunID}}
}

func searched(t *testing.T, s *Store, text string) string {
	t.Helper()
	terms, err := search.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	runs, _, err := s.Runs(t.Context(), host.RunQuery{Tenant: host.DefaultTenant, Search: terms, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.HandlerID)
	}
	return strings.Join(ids, " ")
}

func mustAppend(t *testing.T, s *Store, epoch uint64, parts ...host.SessionBatch) {
	t.Helper()
	if err := s.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: parts}); err != nil {
		t.Fatal(err)
	}
}

// faultsOf returns the loose rows that an inspection finds.
func faultsOf(t *testing.T, s *Store) (faults []string) {
	t.Helper()
	i, err := s.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = i.Loose(t.Context(), func(r inspect.Loose) error {
		faults = append(faults, r.What)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = i.Integrity(t.Context(), func(problem string) error {
		faults = append(faults, problem)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestSearchPlans: a search walks down the documents and stops; it does not sort.
func TestSearchPlans(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	for _, q := range []host.RunQuery{
		{},
		{Since: 5, Statuses: []string{"failed", "completed"}, Workflows: []string{"flow"}, Blocked: true},
		{Session: "s", AfterStarted: 5, AfterHandler: "h"},
	} {
		q.Search = []host.SearchTerm{{Word: "a"}, {Word: "bcd", Prefix: true}}
		statement, args := searchQuery(q)
		plan := explain(t, s, statement, args...)
		if !strings.Contains(plan, "SCAN run_words VIRTUAL TABLE") || !strings.Contains(plan, "SEARCH runs USING INTEGER PRIMARY KEY") ||
			strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("plan of %+v: %s", q, plan)
		}
	}
}

// TestSearchLeavesNoTrace: after compaction the file has no word of a run that was
// purged, dropped or deleted with its tenant.
func TestSearchLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	epoch := mustClaim(t, s)
	mustAppend(t, s, epoch, failedRun("a", "hippopotamus", 1<<40), failedRun("b", "rhinoceros", 2<<40), failedRun("c", "crocodile", 3<<40))
	theirs := failedRun("d", "salamander", 4<<40)
	theirs.Key.Tenant, theirs.Runs[0].Tenant = "them", "them"
	mustAppend(t, s, epoch, theirs)
	if got := searched(t, s, "hippopotamus") + searched(t, s, "rhino*") + searched(t, s, "crocodile"); got != "abc" {
		t.Fatalf("found %q", got)
	}
	key := func(session string) host.SessionKey {
		return host.SessionKey{Tenant: host.DefaultTenant, Session: session}
	}
	mustAppend(t, s, epoch, host.SessionBatch{Key: key("a"), Purge: []string{"a"}}, host.SessionBatch{Key: key("b"), Drop: []string{"b-run"}})
	if _, err := s.ClearTenant(t.Context(), "them", 1000); err != nil {
		t.Fatal(err)
	}
	if got := searched(t, s, "hippopotamus") + searched(t, s, "rhinoceros"); got != "" {
		t.Errorf("found %q", got)
	}
	if faults := faultsOf(t, s); len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
	if _, _, err := s.Compact(t.Context(), func(string, int, int) {}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"hippo": false, "rhino": false, "salama": false, "croco": true} {
		if bytes.Contains(data, []byte(word)) != want {
			t.Errorf("%q is in the file: %t", word, !want)
		}
	}
	if got := searched(t, s, "crocodile"); got != "c" {
		t.Errorf("found %q", got)
	}
}

// TestSearchAfterMigration: the runs of an older file are found.
func TestSearchAfterMigration(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	epoch := mustClaim(t, s)
	var parts []host.SessionBatch
	for i := range 600 { // of several notes
		parts = append(parts, failedRun(fmt.Sprintf("h%03d", i), "old message "+fmt.Sprint(i), int64(i+1)<<30))
	}
	mustAppend(t, s, epoch, parts...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, undoRows+"ALTER TABLE store DROP COLUMN id; ALTER TABLE store DROP COLUMN commits; DROP TABLE kv; DROP TABLE kv_spaces; DROP TABLE resources; DROP TABLE resource_use; DROP TRIGGER runs_words; DROP TABLE run_words; DROP TABLE unread; UPDATE store SET schema = 11")
	s = mustOpen(t, dir)
	for _, n := range []string{"0", "255", "256", "599"} {
		if got, want := searched(t, s, "old "+n), fmt.Sprintf("h%03s", n); got != strings.ReplaceAll(want, " ", "0") {
			t.Errorf("found %q, want %s", got, want)
		}
	}
	if faults := faultsOf(t, s); len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
}

// TestSearchFollows: words are read without a search, after a restart too. A lost note or
// a damaged index is found and repaired.
func TestSearchFollows(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	mustAppend(t, s, mustClaim(t, s), failedRun("a", "an aardvark", 1<<40), failedRun("b", "a beaver", 2<<40))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir)
	if _, err := s.readEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if notes, err := s.notes(t.Context()); err != nil || len(notes) > 0 {
		t.Fatalf("notes = %v, %v", notes, err)
	}
	if faults := faultsOf(t, s); len(faults) > 0 {
		t.Fatalf("faults: %q", faults)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, fmt.Sprintf("DELETE FROM run_words WHERE rowid = %d; INSERT INTO run_words (rowid, words, of) VALUES (7, 'x', 99)", docOf(1<<40, 1)))
	s = mustOpen(t, dir)
	faults := strings.Join(faultsOf(t, s), "\n")
	for _, want := range []string{"has a run that is not there (document 7)", "run a-run is not found by its words"} {
		if !strings.Contains(faults, want) {
			t.Errorf("faults: %s", faults)
		}
	}
	if err := s.Reindex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := searched(t, s, "aardvark") + searched(t, s, "beaver"); got != "ab" {
		t.Errorf("found %q", got)
	}
	if faults := faultsOf(t, s); len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
}

// BenchmarkSearch: a word that one of so many runs has, and one that all have, the first
// page of 100.
func BenchmarkSearch(b *testing.B) {
	const runs = 100_000
	s := mustOpen(b, b.TempDir())
	epoch := mustClaim(b, s)
	for i := 0; i < runs; i += 1000 {
		batch := host.Batch{Epoch: epoch}
		for j := i; j < i+1000; j++ {
			batch.Sessions = append(batch.Sessions, failedRun(fmt.Sprintf("h%06d", j), fmt.Sprintf("the order number%d was refused by the bank", j), int64(j+1)<<20))
		}
		if err := s.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for _, text := range []string{"number77777", "refused", "refused bank", "number777*"} {
		terms, err := search.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		q := host.RunQuery{Tenant: host.DefaultTenant, Search: terms, Limit: 100}
		if _, _, err := s.Runs(b.Context(), q); err != nil { // the index has caught up
			b.Fatal(err)
		}
		b.Run(strings.ReplaceAll(text, " ", "+"), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Runs(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAppendsGoBeforeNotes: while an append waits, one note is processed at a time, and
// otherwise all of them.
func TestAppendsGoBeforeNotes(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	s.unfollow()
	<-s.followed
	epoch := mustClaim(t, s)
	for i := range 5 {
		mustAppend(t, s, epoch, failedRun(fmt.Sprintf("h%d", i), "word", int64(1+i)<<40))
	}
	for _, step := range []struct {
		waiting int32
		left    int
	}{{1, 4}, {2, 3}, {0, 0}} {
		s.appending.Store(step.waiting)
		if _, err := s.readEnded(t.Context()); err != nil {
			t.Fatal(err)
		}
		notes, err := s.notes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) != step.left {
			t.Errorf("with %d appends that wait, %d notes are left, want %d", step.waiting, len(notes), step.left)
		}
	}
	if got := searched(t, s, "word"); got != "h4 h3 h2 h1 h0" {
		t.Errorf("found %q", got)
	}
}
