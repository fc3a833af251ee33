package sqlite

import (
	"reflect"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// A database from before there were quotas begins with what its runs have burnt, and
// with the bytes that its journals have.
func TestSpentOfAnOlderDatabase(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, day := range []time.Time{time.Date(2026, 10, 31, 23, 59, 59, 0, time.UTC), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)} {
		id := string(rune('a' + i))
		r := host.Run{Tenant: "t", HandlerID: id, RunID: id + id, SessionID: id, Workflow: "w", Status: host.StatusCompleted,
			Started: day.UnixNano(), Updated: day.UnixNano(), Completed: day.UnixNano(), Fuel: uint64(100 * (i + 1))}
		part := host.SessionBatch{Key: host.SessionKey{Tenant: "t", Session: id}, First: 1, Last: 1, Data: []byte("12345"), WakeAt: host.WakeNever,
			At: day.UnixNano(), Runs: []host.Run{r}, Started: []string{r.RunID}}
		if err := s.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{part}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, undoRows+"ALTER TABLE store DROP COLUMN id; ALTER TABLE store DROP COLUMN commits; DROP TABLE kv; DROP TABLE kv_spaces; DROP TABLE resources; DROP TABLE resource_use; DROP TRIGGER runs_words; DROP TABLE run_words; DROP TABLE unread; DROP INDEX runs_turn; DROP TABLE spent; ALTER TABLE sessions DROP COLUMN bytes; ALTER TABLE sessions DROP COLUMN state; UPDATE store SET schema = 10")
	s = mustOpen(t, dir)
	got, err := s.Spent(t.Context(), "", 0)
	want := []usage.MonthSpent{
		{Tenant: "t", Month: 202610, Spent: usage.Spent{Runs: 1, Fuel: 100}},
		{Tenant: "t", Month: 202611, Spent: usage.Spent{Runs: 2, Fuel: 500}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Spent = %+v, %v", got, err)
	}
	if journal, state, err := s.BytesHeld(t.Context(), "t"); journal != 15+3*(limit.SessionCharge+limit.RunCharge) || state != 0 || err != nil {
		t.Errorf("BytesHeld = %d, %d, %v", journal, state, err)
	}
}
