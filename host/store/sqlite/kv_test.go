package sqlite

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// A database from before the kind kv gets its tables, and what does not fit together in
// them is found.
func TestKVIsChecked(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpen(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, undoRows+"ALTER TABLE store DROP COLUMN id; ALTER TABLE store DROP COLUMN commits; DROP TABLE kv; DROP TABLE kv_spaces; UPDATE store SET schema = 13")
	s := mustOpen(t, dir)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	item := kv.Item{Key: "ü", Version: 7, Value: abi.Null}
	space := kv.Space{Tenant: "t", Resource: "cache"}
	w := kv.Write{Space: space, Item: item, Totals: kv.Totals{Last: 7, Keys: 1, Bytes: item.Size()}}
	if err := s.Append(t.Context(), host.Batch{Epoch: epoch, KV: []kv.Write{w}}); err != nil {
		t.Fatal(err)
	}
	if found := faultsOf(t, s); len(found) != 0 {
		t.Errorf("a sound database has %v", found)
	}
	for i, fault := range []struct{ sql, want string }{
		{"UPDATE kv_spaces SET bytes = bytes + 1", "keeps 1 keys of 3 bytes, and not 1 of 4"},
		{"UPDATE kv_spaces SET bytes = bytes - 1, last = 6", "keeps 1 keys of 3 bytes, and not 1 of 3"},
		{"UPDATE kv_spaces SET last = 7, made = 5", "is of no definition"},
	} {
		if _, err := s.conn.ExecContext(t.Context(), fault.sql); err != nil {
			t.Fatal(err)
		}
		found := faultsOf(t, s)
		if !slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, fault.want) }) {
			t.Errorf("%d: found %v, want %q", i, found, fault.want)
		}
	}
}
