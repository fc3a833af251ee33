package blackbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/deaths"
)

// ending names the way in which this test's program is to end as a server does.
const ending = "WEFT_TEST_ENDING"

func TestMain(m *testing.M) {
	if how, dir, ok := strings.Cut(os.Getenv(ending), ":"); ok {
		end(how, dir)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// end ends this process while it holds a core.
func end(how, dir string) {
	b := Open(Config{Dir: dir, Cores: 2, Catch: true, Log: slog.New(slog.DiscardHandler)})
	b.Begin(b.Before().Suspicion)
	b.Phase(deaths.PhaseServing)
	run, load := noteOf(1), deaths.CoreNote{Kind: deaths.CoreLoad, Tenant: "t", Session: "s2"}
	slot, other := b.Enter(&run), b.Enter(&load)
	b.At(slot, 3, 1_000_000, "state_edit")
	b.Leave(other)
	switch how {
	case "kill":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	case "panic":
		panic("a test of crash reports")
	case "close":
		b.Leave(slot)
		_ = b.Close()
		os.Exit(0)
	}
}

func noteOf(inv uint64) deaths.CoreNote {
	return deaths.CoreNote{Kind: deaths.CoreRun, Tenant: "t", Session: "s", Invocation: inv, Attempt: 2, Kept: 5, Digest: [8]byte{1}, Step: [8]byte{2}}
}

// A process that ends while a guest runs tells the next one which, and a clean end
// tells nothing.
func TestEndsOfAProcess(t *testing.T) {
	if _, ok := bootID(); !ok {
		t.Skip("the system has no id of its boot")
	}
	want := noteOf(1)
	want.Calls, want.Burnt, want.Import = 3, 1_000_000, "state_edit"
	for _, tt := range []struct {
		how   string
		class deaths.DeathClass
	}{{"kill", deaths.DeathUnknown}, {"panic", deaths.DeathCrash}, {"close", deaths.DeathNone}} {
		t.Run(tt.how, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), ending+"="+tt.how+":"+dir)
			_ = cmd.Run() // how it ends is what the file tells
			b, _ := open(t, dir)
			d := b.Before()
			if d.Class == deaths.DeathMemory {
				d.Class = deaths.DeathUnknown // the system has killed another process meanwhile
			}
			if d.Class != tt.class {
				t.Errorf("class %q, want %q", d.Class, tt.class)
			}
			if tt.class == deaths.DeathNone {
				if d.Noted != nil || d.Suspects != nil {
					t.Errorf("after a clean end: %+v", d)
				}
				return
			}
			if len(d.Noted) != 1 || d.Noted[0] != want || d.Phase != deaths.PhaseServing {
				t.Errorf("noted %+v, want %+v", d, want)
			}
			b.Begin(deaths.Suspicion{})
			if _, err := os.Stat(filepath.Join(dir, crashFile)); !errors.Is(err, fs.ErrNotExist) && tt.class == deaths.DeathCrash {
				t.Errorf("the crash report is still where the next one goes: %v", err)
			}
			if tt.class == deaths.DeathCrash {
				if text, err := os.ReadFile(filepath.Join(dir, crashBefore)); err != nil || !bytes.Contains(text, []byte("a test of crash reports")) {
					t.Errorf("the crash report kept: %v\n%s", err, text)
				}
			}
		})
	}
}

// open opens a box as another process would; logged is what it logs.
func open(t *testing.T, dir string) (b *Box, logged *bytes.Buffer) {
	t.Helper()
	was := life
	life[0]++
	t.Cleanup(func() { life = was })
	logged = &bytes.Buffer{}
	b = Open(Config{Dir: dir, Cores: 1, Log: slog.New(slog.NewTextHandler(logged, nil))})
	t.Cleanup(func() { _ = b.Close() })
	return b, logged
}

func suspects(n int) (list []deaths.Suspect) {
	for i := range n {
		note := noteOf(uint64(i))
		note.Session = strings.Repeat("s", 256)
		list = append(list, deaths.Suspect{CoreNote: note, Noted: uint32(i + 1), Alone: 2, Hard: 1, Same: 2, Blamed: i%2 == 1})
	}
	return list
}

// A life takes over what the one before knew, up to the room that there is.
func TestSuspectsOverLives(t *testing.T) {
	if _, ok := bootID(); !ok {
		t.Skip("the system has no id of its boot")
	}
	dir := t.TempDir()
	for _, n := range []int{0, 1, MaxSuspects, MaxSuspects + 1, 3} {
		b, _ := open(t, dir)
		s := deaths.Suspicion{Suspects: suspects(n), MemoryDeaths: [2]int64{7, 5}}
		b.Begin(s)
		next, _ := open(t, dir)
		got := next.Before()
		want := suspects(min(n, MaxSuspects))
		if !reflect.DeepEqual(got.Suspects, want) || got.MemoryDeaths != s.MemoryDeaths {
			t.Fatalf("%d suspects came back as %d: %+v", n, len(got.Suspects), got)
		}
		if phase := got.Phase; (phase == deaths.PhaseApart) != (n > 0) {
			t.Errorf("a life with %d suspects begins in phase %d", n, phase)
		}
		b.Suspect(suspects(2))
		b.Suspect(suspects(1))
		next, _ = open(t, dir)
		if got := next.Before().Suspects; !reflect.DeepEqual(got, suspects(1)) {
			t.Errorf("after a change: %+v", got)
		}
	}
}

// Whose death does not count: of a life that was closed, of this life, of another boot.
// Suspects of this life stay.
func TestWhoseDeathCounts(t *testing.T) {
	if _, ok := bootID(); !ok {
		t.Skip("the system has no id of its boot")
	}
	for _, tt := range []struct {
		name     string
		change   func(t *testing.T, dir string, b *Box)
		noted    int
		suspects int
	}{
		{"killed", func(*testing.T, string, *Box) {}, 1, 1},
		{"closed", func(_ *testing.T, _ string, b *Box) { _ = b.Close() }, 0, 0},
		{"this life", func(*testing.T, string, *Box) { life[0]-- }, 0, 1},
		{"another boot", func(t *testing.T, dir string, _ *Box) { patch(t, dir, atBoot, 99) }, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			b, _ := open(t, dir)
			b.Begin(deaths.Suspicion{Suspects: suspects(1)})
			n := noteOf(1)
			b.Enter(&n)
			tt.change(t, dir, b)
			next, _ := open(t, dir)
			d := next.Before()
			if len(d.Noted) != tt.noted || len(d.Suspects) != tt.suspects || (d.Class != deaths.DeathNone) != (tt.noted > 0) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// patch changes a byte of the header, whose checksum then matches again.
func patch(t *testing.T, dir string, at int, to byte) {
	t.Helper()
	name := filepath.Join(dir, File)
	image, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	image[at] ^= to
	put32(image[atCRC:], crcOf(image[:atCRC]))
	if err := os.WriteFile(name, image, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A process that ends while the file is built, or while suspects are replaced, leaves
// what was there before.
func TestEndsWithinAChange(t *testing.T) {
	dir := t.TempDir()
	b, _ := open(t, dir)
	b.Begin(deaths.Suspicion{Suspects: suspects(3)})
	n := noteOf(1)
	b.Enter(&n)
	image, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	for size := 0; size <= len(image); size += len(image) / 7 {
		if err := os.WriteFile(filepath.Join(dir, File+".new"), image[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := Read(dir); err != nil || len(found.Noted) != 1 || len(found.Suspects) != 3 {
			t.Fatalf("with %d bytes of the next file: %+v, %v", size, found, err)
		}
	}
	fillHalf(b.mem, b.slots, 1, suspects(2))
	if found, err := Read(dir); err != nil || !reflect.DeepEqual(found.Suspects, suspects(3)) {
		t.Errorf("with a half that is not in force: %+v, %v", found, err)
	}
	// A slot whose word is not stored yet is free.
	copy(b.slot(7), b.slot(0))
	word(b.slot(7), slotWord).Store(0)
	if found, err := Read(dir); err != nil || len(found.Noted) != 1 {
		t.Errorf("with a slot that is about to be taken: %+v, %v", found, err)
	}
}

// What the file cannot hold is not noted, and is counted; loads leave slots to runs.
func TestSlotsRunOut(t *testing.T) {
	b, _ := open(t, t.TempDir())
	b.Begin(deaths.Suspicion{})
	load := deaths.CoreNote{Kind: deaths.CoreLoad, Tenant: "t", Session: "s"}
	loads := 0
	for b.Enter(&load) >= 0 {
		loads++
	}
	run := noteOf(1)
	runs := 0
	slot := -1
	for {
		got := b.Enter(&run)
		if got < 0 {
			break
		}
		slot = got
		runs++
	}
	if loads+runs != b.slots || runs != b.forRuns || b.Unnoted() != 2 {
		t.Errorf("%d loads and %d runs in %d slots, %d not noted", loads, runs, b.slots, b.Unnoted())
	}
	b.Leave(slot)
	if got := b.Enter(&run); got != slot {
		t.Errorf("the slot that was left is %d, got %d", slot, got)
	}
	run.Session = strings.Repeat("x", slotBytes)
	b.Leave(slot)
	if got := b.Enter(&run); got >= 0 {
		t.Errorf("a note that does not fit got slot %d", got)
	}
}

// A file that fails under the mapping switches the notes off and does not end the
// process.
func TestFaultOfTheFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a mapping behind the end of its file faults on Linux")
	}
	run := noteOf(1)
	for name, use := range map[string]func(b *Box, slot int){
		"enter":   func(b *Box, _ int) { b.Enter(&run) },
		"at":      func(b *Box, slot int) { b.At(slot, 1, 2, "log") },
		"leave":   func(b *Box, slot int) { b.Leave(slot) },
		"phase":   func(b *Box, _ int) { b.Phase(deaths.PhaseControl) },
		"suspect": func(b *Box, _ int) { b.Suspect(suspects(1)) },
		"close":   func(b *Box, _ int) { _ = b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b, logged := open(t, dir)
			b.Begin(deaths.Suspicion{})
			slot := b.Enter(&run)
			if err := os.Truncate(filepath.Join(dir, File), 0); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				use(b, slot)
			}
			if got := b.Enter(&run); got >= 0 {
				t.Errorf("after the fault there is slot %d", got)
			}
			if n := strings.Count(logged.String(), "level=ERROR"); n != 1 {
				t.Errorf("%d lines in the log: %s", n, logged)
			}
		})
	}
}

// A directory that takes no file: the server runs without notes.
func TestNoRoomForTheFile(t *testing.T) {
	b, logged := open(t, filepath.Join(t.TempDir(), "absent"))
	b.Begin(deaths.Suspicion{})
	n := noteOf(1)
	if slot := b.Enter(&n); slot >= 0 || !strings.Contains(logged.String(), "cannot record") {
		t.Errorf("slot %d, log %s", slot, logged)
	}
	b.At(-1, 1, 1, "")
	b.Leave(-1)
}

// What runs at each checkpoint of a guest allocates nothing.
func TestNotesAllocateNothing(t *testing.T) {
	b, _ := open(t, t.TempDir())
	b.Begin(deaths.Suspicion{})
	n := noteOf(1)
	if got := testing.AllocsPerRun(100, func() {
		slot := b.Enter(&n)
		b.At(slot, 1, 2, "state_edit")
		b.Leave(slot)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkNotes(b *testing.B) {
	x := Open(Config{Dir: b.TempDir(), Cores: 2, Log: slog.New(slog.DiscardHandler)})
	x.Begin(deaths.Suspicion{})
	defer func() { _ = x.Close() }()
	n := noteOf(1)
	b.Run("enter and leave", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Leave(x.Enter(&n))
		}
	})
	slot := x.Enter(&n)
	b.Run("at", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.At(slot, 1, 2, "state_edit")
		}
	})
}

// Whatever a file holds, it is read or refused.
func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	b := Open(Config{Dir: dir, Cores: 1, Log: slog.New(slog.DiscardHandler)})
	b.Begin(deaths.Suspicion{Suspects: suspects(2)})
	n := noteOf(1)
	b.Enter(&n)
	image, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte("x"))
	f.Add(headerBytes+slotNames, []byte{255, 255, 255, 255})
	f.Add(headerBytes+slotImport, []byte{255})
	f.Add(atSlots, []byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, at int, change []byte) {
		damaged := bytes.Clone(image)
		if at < 0 || at > len(damaged) {
			return
		}
		copy(damaged[at:], change)
		put32(damaged[atCRC:], crcOf(damaged[:atCRC]))
		for which := range 2 {
			if n := int(get32(damaged[atHalf+8*which:])); n <= MaxSuspects {
				put32(damaged[atHalf+8*which+4:], crcOf(damaged[half(b.slots, which):][:n*recordBytes]))
			}
		}
		found, err := decode(damaged)
		if err == nil && len(found.Suspects) > MaxSuspects {
			t.Error(fmt.Sprint(len(found.Suspects), " suspects"))
		}
	})
}
