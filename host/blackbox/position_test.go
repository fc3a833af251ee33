package blackbox

import (
	"log/slog"
	"testing"

	"github.com/weftrun/weft/host/deaths"
)

// The position is there after the end of the process, whether it was noted before or
// after the file of this life was made, and is that of one store.
func TestPosition(t *testing.T) {
	dir := t.TempDir()
	ours, other := [16]byte{1}, [16]byte{2}
	if n, known := NewPosition(dir).Before(ours); known {
		t.Errorf("without a file it is %d", n)
	}
	p := NewPosition(dir)
	b := Open(Config{Dir: dir, Cores: 2, Position: p, Log: slog.New(slog.DiscardHandler)})
	p.Note(ours, 5)
	b.Begin(deaths.Suspicion{})
	if n, known := NewPosition(dir).Before(ours); !known || n != 5 {
		t.Errorf("noted before the file was made: %d, %t", n, known)
	}
	p.Note(ours, 7)
	if allocs := testing.AllocsPerRun(100, func() { p.Note(ours, 7) }); allocs != 0 {
		t.Errorf("a note takes %v allocations", allocs)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	p.Note(ours, 9) // the file is closed
	if n, known := NewPosition(dir).Before(ours); !known || n != 7 {
		t.Errorf("after the end: %d, %t", n, known)
	}
	if n, known := NewPosition(dir).Before(other); known {
		t.Errorf("of another store: %d", n)
	}
}
