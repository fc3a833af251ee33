package memory

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// ways are the configurations that must not differ in what they do.
var ways = []struct {
	name   string
	config Config
}{
	{"compare", Config{Compare: true}},
	{"track", Config{}},
	{"heap", Config{Heap: true}},
}

// eachWay runs a test with a pool of each configuration, and checks that the
// pool has nothing left when it is closed.
func eachWay(t *testing.T, test func(*testing.T, *Pool)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			p := New(way.config)
			test(t, p)
			p.Close()
			if c := p.Counts(); c.Mapped != 0 || c.Kept != 0 || c.Lent != 0 || c.Missed != 0 {
				t.Errorf("after Close: %+v", c)
			}
		})
	}
}

// random gives a source whose seed is printed.
func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func take(tb testing.TB, p *Pool, reserve uint64) *Linear {
	tb.Helper()
	l, err := p.Take(reserve, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// sized takes a memory and gives it its first size.
func sized(tb testing.TB, p *Pool, size uint64) *Linear {
	tb.Helper()
	l := take(tb, p, 16<<20)
	if got := l.Reallocate(size); uint64(len(got)) != size {
		tb.Fatalf("Reallocate(%d) gave %d bytes", size, len(got))
	}
	return l
}

// picture makes what a guest's memory may hold: runs of data between zeroes.
func picture(r *rand.Rand, size int) []byte {
	mem := make([]byte, size)
	for at := 0; at < size; {
		end := min(size, at+pageBytes*(1+r.IntN(12)))
		if r.IntN(3) > 0 {
			for i := at; i < end; i++ {
				mem[i] = byte(r.Uint32() >> 8)
			}
		}
		at = end
	}
	return mem
}

// snap makes a snapshot of the given memory.
func snap(tb testing.TB, p *Pool, mem []byte) *Snapshot {
	tb.Helper()
	l := sized(tb, p, uint64(len(mem)))
	defer l.Release()
	copy(l.Bytes(), mem)
	s := Take(l, len(mem))
	if s == nil {
		tb.Fatal("no snapshot")
	}
	return s
}

// scribble writes to random places, some of it what is there already.
func scribble(r *rand.Rand, mem []byte) {
	for range r.IntN(40) {
		at := r.IntN(len(mem))
		switch r.IntN(4) {
		case 0:
			mem[at] ^= byte(1 + r.IntN(255))
		case 1:
			mem[at] += 0
		case 2:
			clear(mem[at:min(len(mem), at+r.IntN(3*pageBytes))])
		case 3:
			for i := at; i < min(len(mem), at+r.IntN(2*pageBytes)); i++ {
				mem[i] = byte(i)
			}
		}
	}
}

// same fails the test if the memories differ, and says where.
func same(tb testing.TB, got, want []byte) {
	tb.Helper()
	if bytes.Equal(got, want) {
		return
	}
	if len(got) != len(want) {
		tb.Fatalf("%d bytes of memory, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			tb.Fatalf("byte %d (page %d) is %d, want %d", i, i/pageBytes, got[i], want[i])
		}
	}
}
