package engine

import (
	"bytes"
	"testing"

	"github.com/weftrun/weft/host"
)

// Older servers counted crashes in the journal. Such entries fold without an effect.
func TestCrashesOfOlderServersAreIgnored(t *testing.T) {
	key := host.SessionKey{Tenant: "t", Session: "s"}
	var snapshots [2][]byte
	for i, crash := range []bool{false, true} {
		s := New(key, nil)
		for seq := uint64(1); seq <= 4; seq++ {
			if _, err := s.Fold(recoded(t, &Entry{Seq: seq, At: int64(seq), Kind: EntryShift, Lost: 3, Crash: crash})); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Reduce(10, Shift{Lost: 2})
		if err != nil || res.Entry.Crash {
			t.Errorf("a new entry: %+v, %v", res.Entry, err)
		}
		if snapshots[i], err = s.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(snapshots[0], snapshots[1]) {
		t.Error("a session that has seen crashes differs from one that has not")
	}
}
