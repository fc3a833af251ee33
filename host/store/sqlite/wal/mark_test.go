package wal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A torn write of the mark leaves what was written before.
func TestTornMark(t *testing.T) {
	dir := t.TempDir()
	m, err := OpenMark(dir, Mark{Newest: 1})
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(2); n < 6; n++ {
		before, err := os.ReadFile(filepath.Join(dir, MarkName))
		if err != nil {
			t.Fatal(err)
		}
		m.Note(func(m *Mark) { m.Newest = n })
		if err := m.Flush(); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(filepath.Join(dir, MarkName))
		if err != nil {
			t.Fatal(err)
		}
		slot := int(m.written.Seq%2) * markSlot
		for torn := range markSize {
			mixed := slices.Clone(before)
			mixed = append(mixed, make([]byte, max(0, len(after)-len(mixed)))...)
			copy(mixed[slot:], after[slot:slot+torn])
			other := t.TempDir()
			if err := os.WriteFile(filepath.Join(other, MarkName), mixed, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadMark(other)
			if err != nil || got == nil || got.Newest != n-1 && got.Newest != n {
				t.Fatalf("torn at %d: %+v, %v, want %d", torn, got, err, n-1)
			}
		}
		if got, err := ReadMark(dir); err != nil || got.Newest != n {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
