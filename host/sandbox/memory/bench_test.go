package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// goLike fills a memory as a standard Go guest's is: three quarters of it are
// not zero, in runs.
func goLike(mem []byte) {
	for at := 0; at < len(mem); at += 8 {
		if (at/pageBytes)%64 < 48 {
			mem[at] = byte(at>>3) | 1
		}
	}
}

// BenchmarkReset resets memories in which an invocation has written some pages,
// mostly the same as the invocation before it.
func BenchmarkReset(b *testing.B) {
	for _, size := range []int{64 << 10, 128 << 10, 1 << 20, 3 << 20} {
		for _, dirty := range []int{1, 3, 5, 15, 30, 60} {
			for _, other := range []int{0, dirty / 3} {
				if dirty > size/pageBytes/8 || other == 0 && dirty/3 > 0 && dirty != 30 && dirty != 3 {
					continue
				}
				for _, way := range ways[:2] {
					name := fmt.Sprintf("%dKiB/dirty=%d/other=%d/%s", size>>10, dirty, other, way.name)
					b.Run(name, func(b *testing.B) { benchReset(b, way.config, size, dirty, other) })
				}
			}
		}
	}
}

// benchReset has each invocation write dirty pages, of which other are chosen
// anew. What it takes to write them, faults among it, is in the time.
func benchReset(b *testing.B, c Config, size, dirty, other int) {
	p := New(c)
	defer p.Close()
	l := sized(b, p, uint64(size))
	defer l.Release()
	goLike(l.Bytes())
	s := Take(l, size)
	r := rand.New(rand.NewPCG(1, 2))
	pages := r.Perm(size / pageBytes)[:dirty]
	mem, n := l.Bytes(), byte(0)
	b.ReportAllocs()
	for b.Loop() {
		n += 2
		for i := range other {
			pages[i] = r.IntN(size / pageBytes)
		}
		for _, at := range pages {
			mem[at*pageBytes+pageBytes/2] = n
		}
		if !s.Reset(l) {
			b.Fatal("not reset")
		}
	}
	counts := p.Counts()
	b.ReportMetric(float64(counts.Compared)/float64(b.N), "compared/op")
	b.ReportMetric(float64(counts.Protects)/float64(b.N), "protects/op")
}

// BenchmarkResetParallel resets on all processors.
func BenchmarkResetParallel(b *testing.B) {
	for _, way := range ways[:2] {
		b.Run(way.name, func(b *testing.B) {
			p := New(way.config)
			defer p.Close()
			b.RunParallel(func(pb *testing.PB) {
				l := sized(b, p, 3<<20)
				defer l.Release()
				goLike(l.Bytes())
				s := Take(l, 3<<20)
				for n := 0; pb.Next(); n++ {
					for i := range 30 {
						l.Bytes()[i*25*pageBytes] = byte(n)
					}
					s.Reset(l)
				}
			})
		})
	}
}

// BenchmarkLife takes a memory, makes it like a snapshot, and gives it back.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{128 << 10, 3 << 20} {
		for _, way := range []struct {
			name   string
			config Config
			life   func(*Linear, *Snapshot)
		}{
			{"kept", Config{}, fillBefore},
			{"kept-filled-late", Config{}, func(l *Linear, s *Snapshot) { l.Reallocate(uint64(s.Size())); s.Fill(l) }},
			{"kept-reset", Config{}, func(l *Linear, s *Snapshot) { fillBefore(l, s); s.Reset(l) }},
			{"fresh", Config{KeepBytes: -1}, fillBefore},
			{"heap", Config{Heap: true}, fillBefore},
		} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, way.name), func(b *testing.B) {
				p := New(way.config)
				defer p.Close()
				mem := make([]byte, size)
				goLike(mem)
				s := snap(b, p, mem)
				b.ReportAllocs()
				for b.Loop() {
					l, err := p.Take(256<<20, uint64(size))
					if err != nil {
						b.Fatal(err)
					}
					way.life(l, s)
					l.Release()
				}
			})
		}
		b.Run(fmt.Sprintf("%dKiB/renewed", size>>10), func(b *testing.B) {
			p := New(Config{})
			defer p.Close()
			mem := make([]byte, size)
			goLike(mem)
			s := snap(b, p, mem)
			l := take(b, p, 256<<20)
			defer l.Release()
			s.Fill(l)
			for b.Loop() {
				l.Reallocate(uint64(size))
				l.Bytes()[5*pageBytes]++
				l.Reallocate(uint64(size) + PageBytes)
				l.Bytes()[size]++
				if !s.Renew(l) {
					b.Fatal("not renewed")
				}
			}
		})
		b.Run(fmt.Sprintf("%dKiB/shrunk", size>>10), func(b *testing.B) {
			p := New(Config{})
			defer p.Close()
			mem := make([]byte, size)
			goLike(mem)
			s := snap(b, p, mem)
			l := take(b, p, 256<<20)
			defer l.Release()
			s.Fill(l)
			l.Reallocate(uint64(size))
			grow := growth(l)
			for b.Loop() {
				l.Bytes()[5*pageBytes]++
				grow(1)
				l.Bytes()[size]++
				if !s.Shrink(l, grow) {
					b.Fatal("not shrunk")
				}
			}
		})
	}
}

func fillBefore(l *Linear, s *Snapshot) {
	s.Fill(l)
	l.Reallocate(uint64(s.Size()))
}
