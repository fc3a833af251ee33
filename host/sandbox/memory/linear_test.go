package memory

import (
	"context"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

func TestLinearLimits(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		l := take(t, p, 10*PageBytes-1) // rounded up
		defer l.Release()
		l.SetLimit(2 * PageBytes)
		if l.Bytes() != nil || l.Allocate(0, 0) != experimental.LinearMemory(l) {
			t.Error("a new memory has bytes, or is not its own")
		}
		steps := []struct {
			size    uint64
			limit   uint64 // set before, if not 0
			ok      bool
			refused bool
		}{
			{4 * PageBytes, 0, true, false}, // the first is free
			{5 * PageBytes, 0, false, true},
			{5 * PageBytes, 6 * PageBytes, true, false},
			{6 * PageBytes, 0, true, false},
			{6*PageBytes + 1, 7 * PageBytes, false, true},
			{7 * PageBytes, 0, true, true}, // it says so until the limit is set
			{6 * PageBytes, 0, false, true},
			{11 * PageBytes, 20 * PageBytes, false, true}, // more than is reserved
			{10 * PageBytes, 20 * PageBytes, true, false},
			{1 << 63, 1 << 63, false, true},
		}
		for i, s := range steps {
			if s.limit != 0 {
				l.SetLimit(s.limit)
			}
			before := len(l.Bytes())
			got := l.Reallocate(s.size)
			if (got != nil) != s.ok || l.Refused() != s.refused {
				t.Errorf("step %d: %d bytes, refused = %v, want %v, %v", i, len(got), l.Refused(), s.ok, s.refused)
			}
			if want := s.size; s.ok && uint64(len(l.Bytes())) != want || !s.ok && len(l.Bytes()) != before {
				t.Errorf("step %d: the memory has %d bytes", i, len(l.Bytes()))
			}
		}
	})
}

func TestLinearGrowthStays(t *testing.T) {
	p := New(Config{})
	defer p.Close()
	if p.heap {
		t.Skip("address space cannot be reserved on this system")
	}
	l := take(t, p, MaxBytes)
	defer l.Release()
	base := unsafe.SliceData(l.Reallocate(0))
	for _, size := range []uint64{PageBytes, 1 << 20, 1 << 30, MaxBytes} {
		mem := l.Reallocate(size)
		if uint64(len(mem)) != size || unsafe.SliceData(mem) != base {
			t.Fatalf("at %d bytes the memory has moved", size)
		}
		mem[size-1]++
	}
}

func TestLinearReleased(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		l := sized(t, p, PageBytes)
		s := Take(l, PageBytes)
		l.Free() // by the runtime, while the instance may run
		l.Bytes()[0] = 1
		l.Release()
		if l.Bytes() != nil || l.Reallocate(PageBytes) != nil || s.Fill(l) || s.Reset(l) || s.Renew(l) || s.Shrink(l, growth(l)) {
			t.Error("a memory is used that was given back")
		}
	})
}

// grower is a module with a memory of 1 to 10 pages: grow gives memory.grow of
// its argument, store writes its second argument at its first.
var grower = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x0b\x02\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x00" + // types
	"\x03\x03\x02\x00\x01" + // functions
	"\x05\x04\x01\x01\x01\x0a" + // memory
	"\x07\x10\x02\x04grow\x00\x00\x05store\x00\x01" + // exports
	"\x0a\x12\x02\x06\x00\x20\x00\x40\x00\x0b\x09\x00\x20\x00\x20\x01\x36\x02\x00\x0b")

// TestInstances runs instances in memories of the pool.
func TestInstances(t *testing.T) {
	eachWay(t, func(t *testing.T, p *Pool) {
		ctx := context.Background()
		runtime := wazero.NewRuntime(ctx)
		defer func() { _ = runtime.Close(ctx) }()
		compiled, err := runtime.CompileModule(ctx, grower)
		if err != nil {
			t.Fatal(err)
		}
		image := picture(random(t), 3*PageBytes)
		s := snap(t, p, image)
		l := take(t, p, 10*PageBytes)
		defer l.Release()
		s.Fill(l)
		for life := range 3 {
			l.SetLimit(5 * PageBytes)
			m, err := runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, l), compiled, wazero.NewModuleConfig().WithName(""))
			if err != nil {
				t.Fatal(err)
			}
			call := func(name string, args ...uint64) int32 {
				results, err := m.ExportedFunction(name).Call(ctx, args...)
				if err != nil {
					t.Fatal(err)
				}
				return int32(append(results, 0)[0])
			}
			if was := call("grow", 2); was != 1 {
				t.Fatalf("life %d: grow = %d, want 1", life, was)
			}
			same(t, l.Bytes(), image)
			for range 3 { // grown, and brought back in the instance
				if got := call("grow", 2); got != 3 {
					t.Fatalf("life %d: grow = %d, want 3", life, got)
				}
				same(t, l.Bytes()[len(image):], make([]byte, 2*PageBytes))
				call("store", 7, 77)
				call("store", 5*PageBytes-4, 77)
				if !s.Shrink(l, m.Memory().Grow) || m.Memory().Size() != uint32(len(image)) {
					t.Fatalf("not brought back: %d bytes", m.Memory().Size())
				}
				same(t, l.Bytes(), image)
				for _, at := range []uint64{3*PageBytes - 3, 3 * PageBytes, 4 * PageBytes} {
					if _, err := m.ExportedFunction("store").Call(ctx, at, 1); err == nil {
						t.Fatalf("a store at %d, beyond the memory that was brought back, does not trap", at)
					}
				}
			}
			for i := range 5 {
				call("store", uint64(i*pageBytes*7), 1<<32-1)
				if !s.Reset(l) {
					t.Fatal("not reset")
				}
				same(t, l.Bytes(), image)
			}
			if got := call("grow", 3); got != -1 || !l.Refused() {
				t.Errorf("grow = %d beyond the limit, refused = %v", got, l.Refused())
			}
			if got := call("grow", 2); got != 3 {
				t.Errorf("grow = %d, want 3", got)
			}
			same(t, l.Bytes()[len(image):], make([]byte, 2*PageBytes))
			call("store", 5*PageBytes-4, 77)
			if s.Reset(l) {
				t.Error("a memory that has grown was reset")
			}
			if err := m.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if !s.Renew(l) {
				t.Fatal("not renewed")
			}
		}
	})
}
