package arena

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// An arena against a map of blocks: what was written to a block is there until it
// is freed, no blocks overlap, and what was freed has no length.
func TestArenaHoldsWhatIsWritten(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var a Arena
	for range 20 {
		model := map[uint64][]byte{}
		for range 500 {
			switch random.IntN(3) {
			case 0:
				n := random.Uint64N(1 << random.UintN(14))
				before, takes := a.Bytes(), a.Takes(n)
				at := a.Alloc(n)
				if (at == 0) != (n == 0) || model[at] != nil {
					t.Fatalf("alloc(%d) = %d", n, at)
				}
				if grown := a.Bytes() - before; grown != takes {
					t.Fatalf("alloc(%d) takes %d, not %d", n, grown, takes)
				}
				if n > 0 {
					content := make([]byte, n)
					for i := range content {
						content[i] = byte(random.Uint32())
					}
					copy(a.View(at, n), content)
					model[at] = content
				}
			case 1:
				for at := range model {
					a.Drop(at)
					a.Drop(at)
					delete(model, at)
					if a.Length(at) != 0 {
						t.Fatal("a freed block has a length")
					}
					break
				}
			}
			for at, content := range model {
				if a.Length(at) != uint64(len(content)) || a.Length(at+1) != 0 || !bytes.Equal(a.View(at, a.Length(at)), content) {
					t.Fatalf("the block at %d is not what was written", at)
				}
			}
		}
		a.Clear()
		if a.Bytes() != 0 {
			t.Fatalf("a cleared arena has %d bytes", a.Bytes())
		}
		if fresh := a.Alloc(4096); !bytes.Equal(a.View(fresh, 4096), make([]byte, 4096)) {
			t.Fatal("a cleared arena is not zero")
		}
		a.Clear()
	}
}

// Offsets are the guest's choice: whatever they are, nothing but the arena is read
// or written.
func TestArenaOffsetsFromAnywhere(t *testing.T) {
	var a Arena
	at := a.Alloc(100)
	for _, off := range []uint64{0, 1, base - 1, at + 100, at + 108, page - 8, page - 1, page, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		a.Store(off, 1<<64-1)
		_ = a.Load(off)
		_ = a.Length(off)
		a.Drop(off)
		if a.Has(off, 1<<64-1) || off >= page && a.Has(off, 1) {
			t.Errorf("%d is in range", off)
		}
		for _, n := range []uint64{0, 1, 8, 1 << 40, 1<<64 - 1} {
			if v := a.View(off, n); uint64(len(v)) > n {
				t.Errorf("view(%d, %d) has %d bytes", off, n, len(v))
			}
		}
	}
	if got := a.Load(at); got != 0 {
		t.Errorf("a block that nobody has written has %x", got)
	}
	if a.Store(at+96, 1<<64-1); a.View(at, 104)[103] != 0xff {
		t.Error("a block is not written to its end")
	}
}
