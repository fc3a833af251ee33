package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// TestResetIsTake writes at random and resets, with other things that happen to
// memories in between.
func TestResetIsTake(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		r := random(t)
		size := PageBytes * (1 + r.IntN(8))
		images := [][]byte{picture(r, size), picture(r, size), make([]byte, size)}
		var snaps []*Snapshot
		for _, image := range images {
			snaps = append(snaps, snap(t, p, image))
		}
		l := sized(t, p, uint64(size))
		which := 2
		for range 600 {
			if r.IntN(8) == 0 { // most resets are to what it was before
				which = r.IntN(len(snaps))
			}
			s, image := snaps[which], images[which]
			scribble(r, l.Bytes())
			switch r.IntN(12) {
			case 0: // another memory
				l.Release()
				l = take(t, p, 16<<20)
				snaps[r.IntN(len(snaps))].Fill(l)
				s.Fill(l)
				l.Reallocate(PageBytes)
				l.Reallocate(uint64(size))
			case 1: // filled late
				l.Release()
				l = sized(t, p, uint64(size))
				same(t, l.Bytes(), make([]byte, size))
				s.Fill(l)
			case 2: // another instance, after growth
				more := l.Reallocate(uint64(size + PageBytes*(1+r.IntN(3))))
				same(t, more[size:], make([]byte, len(more)-size))
				scribble(r, more)
				if s.Reset(l) || s.Fill(l) {
					t.Fatal("a memory that has grown was reset")
				}
				if r.IntN(2) == 0 { // the same instance
					if !s.Shrink(l, growth(l)) {
						t.Fatal("not brought back")
					}
					break
				}
				if !s.Renew(l) || l.Bytes() != nil {
					t.Fatal("not renewed")
				}
				l.Reallocate(uint64(size))
			case 3: // the same again
				s.Reset(l)
			}
			if !s.Reset(l) {
				t.Fatal("not reset")
			}
			same(t, l.Bytes(), image)
		}
		l.Release()
	})
}

// growth grows a memory as an instance does.
func growth(l *Linear) func(uint32) (uint32, bool) {
	return func(pages uint32) (uint32, bool) {
		before := len(l.Bytes()) / PageBytes
		return uint32(before), l.Reallocate(uint64(len(l.Bytes()))+uint64(pages)*PageBytes) != nil
	}
}

// TestShrinkRefuses: an instance that cannot grow stays as it is.
func TestShrinkRefuses(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		s := snap(t, p, make([]byte, PageBytes))
		l := sized(t, p, 3*PageBytes)
		defer l.Release()
		l.Bytes()[2*PageBytes] = 1
		if s.Shrink(l, func(uint32) (uint32, bool) { return 0, false }) {
			t.Error("a memory has shrunk though its instance does not know")
		}
		if len(l.Bytes()) != 3*PageBytes || l.Bytes()[2*PageBytes] != 1 {
			t.Error("the memory is not as it was")
		}
		if got := l.Reallocate(4 * PageBytes); len(got) != 4*PageBytes {
			t.Errorf("then it grows to %d bytes", len(got))
		}
	})
}

// TestResetWork counts what resets do where the kernel tells what was written.
func TestResetWork(t *testing.T) {
	p := New(Config{})
	defer p.Close()
	if !p.Tracks() {
		t.Skip("the kernel does not tell which pages were written")
	}
	r := random(t)
	const size = 64 * PageBytes
	s := snap(t, p, picture(r, size))
	l := take(t, p, size)
	defer l.Release()
	s.Fill(l)
	l.Reallocate(size)
	s.Reset(l)
	const dirty, rounds = 20, 50
	pages := r.Perm(size / pageBytes)[:dirty]
	before := p.Counts()
	for range rounds {
		for _, page := range pages {
			l.Bytes()[page*pageBytes+r.IntN(pageBytes)]++
		}
		s.Reset(l)
	}
	c := p.Counts()
	if got := c.Copied - before.Copied; got != dirty*rounds {
		t.Errorf("%d pages were copied, want %d", got, dirty*rounds)
	}
	if got := c.Compared - before.Compared; got != dirty*rounds {
		t.Errorf("%d pages were compared, want %d", got, dirty*rounds)
	}
	if got := c.Protects - before.Protects; got != 0 {
		t.Errorf("pages were protected %d times", got)
	}
	// Pages that are not written any more are protected again, so that the work
	// does not grow with all that ever was.
	for i := range size / pageBytes {
		l.Bytes()[i*pageBytes]++
	}
	s.Reset(l)
	before = p.Counts()
	for range rounds {
		l.Bytes()[0]++
		s.Reset(l)
	}
	c = p.Counts()
	if got, limit := c.Compared-before.Compared, int64(2*size/pageBytes+rounds); got > limit {
		t.Errorf("%d pages were compared, want at most %d", got, limit)
	}
}

func TestResetAllocates(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		s := snap(t, p, picture(random(t), 1<<20))
		l := take(t, p, 1<<20)
		defer l.Release()
		s.Fill(l)
		l.Reallocate(1 << 20)
		i := 0
		reset := func() {
			i += 77 * pageBytes
			l.Bytes()[i%(1<<20)]++
			s.Reset(l)
		}
		for p.Tracks() && p.Counts().Scans == 0 {
			reset()
		}
		if n := testing.AllocsPerRun(100, reset); n != 0 {
			t.Errorf("a reset allocates %v times", n)
		}
	})
}

func TestTakeBound(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		mem := make([]byte, 4*PageBytes)
		mem[0], mem[3*pageBytes-1], mem[len(mem)-1] = 1, 1, 1
		l := sized(t, p, uint64(len(mem)))
		defer l.Release()
		copy(l.Bytes(), mem)
		if Take(l, 3*pageBytes-1) != nil {
			t.Error("a snapshot has more than it may")
		}
		s := Take(l, 3*pageBytes)
		if s == nil || s.Kept() != 3*pageBytes || s.Size() != len(mem) || len(s.runs) != 3 {
			t.Fatalf("snapshot %+v", s)
		}
		h := sha256.New()
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(mem))))
		h.Write(mem)
		if want := hex.EncodeToString(h.Sum(nil)); s.Hash() != want || l.Hash() != want {
			t.Errorf("hashes %s and %s, want %s", s.Hash(), l.Hash(), want)
		}
		l.Bytes()[1]++
		if l.Hash() == s.Hash() || s.runs[0].data[1] != 0 {
			t.Error("the snapshot shares the memory")
		}
	})
}

func TestFillRefuses(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		s := snap(t, p, bytes.Repeat([]byte{1}, 3*PageBytes))
		l := take(t, p, 2*PageBytes)
		defer l.Release()
		if s.Fill(l) || s.Renew(l) || s.Reset(l) || s.Shrink(l, growth(l)) {
			t.Error("a memory was filled with more than it has")
		}
		l.Reallocate(2 * PageBytes)
		if s.Fill(l) || s.Renew(l) || s.Reset(l) || s.Shrink(l, growth(l)) {
			t.Error("a memory was filled with more than it has")
		}
		same(t, l.Bytes(), make([]byte, 2*PageBytes))
	})
}
