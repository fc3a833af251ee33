package memory

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"unsafe"
)

// TestReuseLeaksNothing lends memories that others have written to.
func TestReuseLeaksNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		r := random(t)
		pattern, zeroes := bytes.Repeat([]byte{0xa5}, 12<<20), make([]byte, 12<<20)
		for range 60 {
			l := take(t, p, uint64(1+r.IntN(12<<20)))
			size, before := uint64(0), uint64(0)
			for range 1 + r.IntN(4) {
				size = min(size+uint64(r.IntN(40))*PageBytes, l.reserved)
				mem := l.Reallocate(size)
				if uint64(len(mem)) != size {
					t.Fatalf("Reallocate(%d) gave %d bytes", size, len(mem))
				}
				same(t, mem[:before], pattern[:before])
				same(t, mem[before:], zeroes[:size-before])
				copy(mem, pattern)
				before = size
			}
			l.Release()
		}
	})
}

func TestPoolKeeps(t *testing.T) {
	p := New(Config{KeepBytes: 1 << 20, KeepEach: 512 << 10})
	defer p.Close()
	if p.heap {
		t.Skip("address space cannot be reserved on this system")
	}
	l := sized(t, p, PageBytes)
	base := unsafe.SliceData(l.Bytes())
	l.Release()
	if c := p.Counts(); c.Kept != PageBytes || c.Mapped != 16<<20 {
		t.Errorf("kept %+v, want one page", c)
	}
	if l = sized(t, p, PageBytes); unsafe.SliceData(l.Bytes()) != base {
		t.Error("the memory kept was not lent")
	}
	l.Release()
	l.Release() // nothing
	if l = sized(t, p, 8<<20); unsafe.SliceData(l.Bytes()) != base {
		t.Error("the memory kept was not lent")
	}
	l.Release() // all but KeepEach goes back to the host
	if c := p.Counts(); c.Kept != 512<<10 || c.Mapped != 16<<20 {
		t.Errorf("kept %+v, want 512 KiB", c)
	}
	if l, _ = p.Take(16<<20, PageBytes); l.region.dirty != 0 {
		t.Error("a memory was lent in which much more is touched than is needed")
	}
	l.Release()
	var all []*Linear
	for range 8 {
		all = append(all, sized(t, p, 256<<10))
	}
	for _, l := range all {
		l.Release()
	}
	if c := p.Counts(); c.Kept > 1<<20 || c.Mapped > 17*16<<20 || c.Lent != 0 {
		t.Errorf("kept %+v, want at most 1 MiB", c)
	}
}

func TestPoolCloses(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		l, kept := sized(t, p, 1<<20), sized(t, p, 1<<20)
		s := snap(t, p, picture(random(t), 1<<20))
		kept.Release()
		p.Close()
		p.Close()
		if c := p.Counts(); c.Kept != 0 || c.Lent != 1 || !p.heap && c.Mapped != 16<<20 {
			t.Errorf("after Close: %+v", c)
		}
		for range 3 { // what is lent stays usable
			l.Bytes()[5] = 5
			if !s.Reset(l) {
				t.Fatal("not reset")
			}
			if Take(l, 1<<20).Hash() != s.Hash() {
				t.Fatal("not reset")
			}
		}
		if _, err := p.Take(PageBytes, 0); err == nil {
			t.Error("a closed pool lends")
		}
		l.Release()
	})
}

func TestTakeTooMuch(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		if _, err := p.Take(MaxBytes+1, 0); err == nil || errors.Is(err, ErrHostMemory) {
			t.Errorf("error = %v, want that it is too much", err)
		}
	})
}

// TestPoolShared uses a pool from several goroutines.
func TestPoolShared(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		r := random(t)
		images := [][]byte{picture(r, 2*PageBytes), picture(r, 5*PageBytes)}
		snaps := []*Snapshot{snap(t, p, images[0]), snap(t, p, images[1])}
		var wg sync.WaitGroup
		for range 4 {
			seeded := random(t)
			wg.Go(func() {
				for i := range 40 {
					s, image := snaps[i%2], images[i%2]
					l, err := p.Take(1<<20, uint64(len(image)))
					if err != nil {
						t.Error(err)
						return
					}
					s.Fill(l)
					for l.Reallocate(uint64(len(image))); seeded.IntN(5) > 0; {
						scribble(seeded, l.Bytes())
						s.Reset(l)
					}
					if !bytes.Equal(l.Bytes(), image) {
						t.Error("a memory is not as its image")
					}
					l.Release()
				}
			})
		}
		wg.Wait()
	})
}
