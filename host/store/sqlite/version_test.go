package sqlite

import (
	"errors"
	"testing"

	"github.com/weftrun/weft/host"
)

// TestSessionsOfOlderSchemas: while the needs of some session are not known, nothing is
// swept. When the last such session has been deleted, or cut behind its unknown entries,
// everything that nothing needs is swept.
func TestSessionsOfOlderSchemas(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	old := host.Run{Tenant: "t", HandlerID: "old", RunID: "r1", SessionID: "old", Workflow: "w", Status: host.StatusCompleted, Started: 1, Completed: 1}
	chat := host.Run{Tenant: "t", HandlerID: "h", RunID: "r2", SessionID: "chat", Workflow: "w", Status: host.StatusCompleted, Started: 1, Completed: 1}
	appendPart(t, s, host.SessionBatch{Key: key("old"), First: 1, Last: 2, Data: []byte{1}, Runs: []host.Run{old}, Started: []string{"r1"}})
	appendPart(t, s, host.SessionBatch{Key: key("chat"), First: 1, Last: 5, Data: []byte{1}, Runs: []host.Run{chat}, Started: []string{"r2"}})
	for i, digest := range []string{"m1", "m2"} {
		if err := errors.Join(s.PutModule(t.Context(), host.ModuleRecord{Digest: digest}),
			s.PutPlugin(t.Context(), host.PluginVersion{Tenant: "t", Name: "p", Workflow: "w", Version: i + 1, Digest: digest})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, schemaTwo)

	s = mustOpen(t, dir)
	if got, err := s.Run(t.Context(), "t", "r1"); err != nil || got.Version != "" {
		t.Errorf("Run = %+v, %v", got, err)
	}
	if counts, err := s.SessionVersions(t.Context(), key("chat")); err != nil || counts != nil {
		t.Errorf("SessionVersions = %v, %v", counts, err)
	}
	if err := s.DeletePlugin(t.Context(), "t", "p", 0); err != nil {
		t.Fatal(err)
	}
	stored := func(want ...string) {
		t.Helper()
		for _, digest := range []string{"m1", "m2"} {
			_, err := s.Module(t.Context(), digest)
			there := len(want) > 0 && want[0] == digest
			if there {
				want = want[1:]
			}
			if there != (err == nil) || !there && !errors.Is(err, host.ErrNotFound) {
				t.Errorf("Module(%s) = %v", digest, err)
			}
		}
	}
	stored("m1", "m2")
	// A cut where entries from before remain tells nothing.
	appendPart(t, s, host.SessionBatch{Key: key("chat"), First: 6, Last: 7, Data: []byte{1}, Snapshot: 7, Versions: []host.VersionUse{{Digest: "m1", Seq: 7}}})
	appendPart(t, s, host.SessionBatch{Key: key("chat"), First: 8, Last: 8, Data: []byte{1}, Cut: 6})
	appendPart(t, s, host.SessionBatch{Key: key("old"), Purge: []string{"old"}})
	stored("m1", "m2")
	appendPart(t, s, host.SessionBatch{Key: key("chat"), First: 9, Last: 9, Data: []byte{1}, Cut: 8})
	stored("m1")
	appendPart(t, s, host.SessionBatch{Key: key("chat"), First: 10, Last: 10, Data: []byte{1}, Snapshot: 10, Cut: 10})
	stored()
}

func key(session string) host.SessionKey { return host.SessionKey{Tenant: "t", Session: session} }

// appendPart appends one part, as a new owner.
func appendPart(t *testing.T, s *Store, p host.SessionBatch) {
	t.Helper()
	epoch, err := s.Claim(t.Context())
	if err == nil {
		p.WakeAt = host.WakeNever
		err = s.Append(t.Context(), host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{p}})
	}
	if err != nil {
		t.Fatal(err)
	}
}
