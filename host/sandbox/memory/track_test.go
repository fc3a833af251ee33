//go:build linux && (amd64 || arm64)

package memory

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// tracked gives a pool that tracks, and a memory like the snapshot, whose pages
// are protected.
func tracked(t *testing.T) (*Pool, *Snapshot, *Linear) {
	t.Helper()
	p := New(Config{})
	t.Cleanup(p.Close)
	if _, err := newTracker(); err != nil {
		t.Skipf("the kernel does not tell which pages were written: %v", err)
	}
	s := snap(t, p, picture(random(t), 4*PageBytes))
	l := take(t, p, 4*PageBytes)
	t.Cleanup(l.Release)
	s.Fill(l)
	l.Reallocate(4 * PageBytes)
	resetUntil(t, p, s, l, 1)
	return p, s, l
}

// resetUntil resets until pages were protected so often.
func resetUntil(t *testing.T, p *Pool, s *Snapshot, l *Linear, protects int64) {
	t.Helper()
	for range vainPages {
		if s.Reset(l); p.Counts().Protects == protects {
			return
		}
	}
	t.Fatalf("%+v, want that pages were protected", p.Counts())
}

// TestKernelWrites has the kernel write to protected pages.
func TestKernelWrites(t *testing.T) {
	_, s, l := tracked(t)
	want := bytes.Clone(l.Bytes())
	for range 20 {
		f, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.Read(l.Bytes()[pageBytes/2 : 10*pageBytes])
		if err != nil || n < 9*pageBytes || bytes.Equal(l.Bytes(), want) {
			t.Fatalf("Read = %d, %v", n, err)
		}
		_ = f.Close()
		s.Reset(l)
		same(t, l.Bytes(), want)
	}
}

// TestProcessStarts starts a process while pages are protected.
func TestProcessStarts(t *testing.T) {
	p, s, l := tracked(t)
	want := bytes.Clone(l.Bytes())
	for i := range 3 {
		l.Bytes()[3*pageBytes] = byte(i)
		if err := exec.Command("/proc/self/exe", "-test.run=^$").Run(); err != nil {
			t.Fatal(err)
		}
		l.Bytes()[i*pageBytes]++
		s.Reset(l)
		same(t, l.Bytes(), want)
	}
	if c := p.Counts(); c.Scans != 3 {
		t.Errorf("%+v, want that the kernel has told", c)
	}
}

// TestTrackerFails has the kernel's answers end.
func TestTrackerFails(t *testing.T) {
	p, s, l := tracked(t)
	want := bytes.Clone(l.Bytes())
	reset := func() {
		t.Helper()
		l.Bytes()[7*pageBytes]++
		if !s.Reset(l) {
			t.Fatal("not reset")
		}
		same(t, l.Bytes(), want)
	}
	pagemap := p.track.pagemap
	p.track.pagemap = -1
	reset()
	reset()
	if c := p.Counts(); c.Scans != 0 || c.Protects != 1 {
		t.Errorf("%+v, want that all was compared", c)
	}
	p.track.pagemap = pagemap
	resetUntil(t, p, s, l, 2)
	reset()
	if c := p.Counts(); c.Scans != 1 {
		t.Errorf("%+v, want that pages are tracked again", c)
	}
	_ = unix.Close(p.track.uffd) // nothing is registered any more
	if p.track.uffd, _ = unix.Open("/dev/null", unix.O_RDONLY, 0); p.track.uffd < 0 {
		t.Fatal("no descriptor to close in its place")
	}
	for range vainPages {
		reset()
	}
	if c := p.Counts(); c.Scans != 1 || c.Protects != 2 {
		t.Errorf("%+v, want that all was compared", c)
	}
}

// TestAudit has a page written that the kernel does not tell.
func TestAudit(t *testing.T) {
	p, s, l := tracked(t)
	want := bytes.Clone(l.Bytes())
	l.Bytes()[9*pageBytes]++
	if err := p.track.protect(l.region.written, l.Bytes()); err != nil {
		t.Fatal(err)
	}
	for i := 1; p.Tracks(); i++ {
		if i > auditEvery {
			t.Fatalf("%d resets, and it was not found out", i)
		}
		s.Reset(l)
	}
	same(t, l.Bytes(), want)
	before := p.Counts()
	l.Bytes()[9*pageBytes]++
	s.Reset(l)
	same(t, l.Bytes(), want)
	if c := p.Counts(); c.Missed != 1 || c.Scans != before.Scans || c.Protects != before.Protects {
		t.Errorf("%+v, want that tracking has ended with the one page missed", c)
	}
}

// TestHostMemory takes more than the host has. A child does, with little room.
func TestHostMemory(t *testing.T) {
	const variable = "WEFT_TEST_HOST_MEMORY"
	if os.Getenv(variable) != "" {
		exhaust(t)
		return
	}
	child := exec.Command("/proc/self/exe", "-test.run=^TestHostMemory$", "-test.v")
	child.Env = append(os.Environ(), variable+"=1")
	if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("exhausted")) {
		t.Errorf("%v: %s", err, out)
	}
}

func exhaust(t *testing.T) {
	var room unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &room); err != nil {
		t.Fatal(err)
	}
	room.Cur = 32 << 30
	if err := unix.Setrlimit(unix.RLIMIT_AS, &room); err != nil {
		t.Fatal(err)
	}
	p := New(Config{})
	var all []*Linear
	for {
		l, err := p.Take(1<<30, 0)
		if errors.Is(err, ErrHostMemory) {
			t.Log("exhausted: ", err)
			break
		}
		if err != nil || len(all) == 32 {
			t.Fatalf("%d memories, then %v, want ErrHostMemory", len(all), err)
		}
		if l.Reallocate(PageBytes) == nil {
			t.Fatal("a memory does not grow to what was reserved")
		}
		all = append(all, l)
	}
	if len(all) < 8 || p.Counts().Lent != int64(len(all)) {
		t.Errorf("%d memories, counted %+v", len(all), p.Counts())
	}
	for _, l := range all { // growth does not need the host
		if l.Reallocate(1<<30) == nil {
			t.Fatal("a memory does not grow to what was reserved")
		}
	}
	// What is kept, of another size, gives way.
	all[0].Release()
	all[1].Release()
	l, err := p.Take(2<<30, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(all, l) {
		l.Release()
	}
	p.Close()
	if c := p.Counts(); c.Mapped != 0 || c.Lent != 0 {
		t.Errorf("after Close: %+v", c)
	}
}
