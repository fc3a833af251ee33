package wasi

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/missing"
)

// documented is a row of the table in docs/wasi.md.
type documented struct{ params, answer, others string }

var documentedRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|([ i0-9]*)\\| ([A-Za-z ]+) \\|([ A-Z]*)\\| .+ \\|$")

func documentation(t *testing.T) map[string]documented {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "wasi.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]documented{}
	for _, m := range documentedRow.FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = documented{strings.TrimSpace(m[2]), m[3], strings.TrimSpace(m[4])}
	}
	return rows
}

// The table in docs/wasi.md has the functions of the code, their parameters,
// and what they answer.
func TestDocumentation(t *testing.T) {
	rows := documentation(t)
	if names := slices.Sorted(maps.Keys(rows)); !slices.Equal(names, Names()) {
		t.Errorf("documented are %q, served %q", names, Names())
	}
	for name, row := range rows {
		f := functions[name]
		params := strings.NewReplacer("i", " i32", "I", " i64").Replace(f.params)
		if params = strings.TrimSpace(params); row.params != params {
			t.Errorf("%s: parameters %q are documented, it has %q", name, row.params, params)
		}
		ofFiles := strings.HasPrefix(name, "fd_")
		if ofFiles != (row.others != "") {
			t.Errorf("%s: for other files %q is documented", name, row.others)
		}
		first := uint64(0) // the real clock, file 0
		if name == "fd_write" {
			first = 1
		}
		if got := answer(f, first); got != row.answer {
			t.Errorf("%s answers %s, documented is %s", name, got, row.answer)
		}
		for file := uint64(maxStdio + 1); ofFiles && file < 70; file++ {
			if got := answer(f, file); got != row.others {
				t.Errorf("%s of file %d answers %s, documented is %s", name, file, got, row.others)
			}
		}
	}
}

// answer calls a function with a first argument and 64 for all others, which is
// an address, a size and a count that will do.
func answer(f function, first uint64) string {
	args := []uint64{first}
	for range f.params {
		args = append(args, 64)
	}
	g := &guest{}
	errno := f.call(g, &memory{b: make([]byte, 8192)}, args[:max(1, len(f.params))])
	if len(g.exit) > 0 {
		return "no return"
	}
	return map[uint32]string{errnoSuccess: "success", errnoBadf: "EBADF", errnoSpipe: "ESPIPE", errnoNosys: "ENOSYS"}[errno]
}

// A function that fails has done nothing.
func TestFaultsHaveNoEffect(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []uint64
	}{
		{"poll_oneoff", []uint64{0, 48, 1, 254}},
		{"poll_oneoff", []uint64{0, 240, 1, 0}},
		{"fd_write", []uint64{1, 64, 1, 254}},
		{"fd_write", []uint64{1, 64, 2, 128}},
		{"random_get", []uint64{255, 2}},
	} {
		g, mem := &guest{now: 5}, &memory{b: make([]byte, 256)}
		subscribe(mem, 0, 1, tagClock, clockRealtime, 500, 0)
		mem.b[68], mem.b[72], mem.b[76] = 7, 250, 7 // vectors at 64: 7 bytes from 0 on, and from 250 on
		before := string(mem.b)
		if errno := run(t, tt.name, g, mem, tt.args...); errno != errnoFault {
			t.Errorf("%s%v: errno %d", tt.name, tt.args, errno)
		}
		if g.now != 5 || g.polls != 0 || len(g.printed) != 0 || string(mem.b) != before {
			t.Errorf("%s%v has had an effect: %+v", tt.name, tt.args, g)
		}
	}
}

// pieces is a Host that notes how much it is asked for at a time.
type pieces struct {
	guest
	sizes []int
}

func (p *pieces) Random(b []byte)          { p.sizes = append(p.sizes, len(b)) }
func (p *pieces) Print(_ uint32, b []byte) { p.sizes = append(p.sizes, len(b)) }

// What a guest asks for at once comes to the host in pieces, and fd_write takes
// no more than its bound.
func TestPieces(t *testing.T) {
	mem := &memory{b: make([]byte, 3<<20)}
	p := &pieces{}
	if errno := functions["random_get"].call(p, mem, []uint64{0, 2*maxPiece + 1}); errno != 0 || !slices.Equal(p.sizes, []int{maxPiece, maxPiece, 1}) {
		t.Errorf("random_get: errno %d, pieces of %d", errno, p.sizes)
	}
	const list, written = 2 << 20, 2<<20 + 64
	for i, length := range []uint32{10, maxWritten, 10} {
		mem.WriteUint32Le(list+uint32(i)*vectorLen+4, length)
	}
	p = &pieces{}
	errno := functions["fd_write"].call(p, mem, []uint64{1, list, 3, written})
	total := 0
	for _, n := range p.sizes {
		total += n
	}
	if errno != 0 || total != maxWritten || mem.u32(written) != maxWritten || slices.Max(p.sizes) > maxPiece {
		t.Errorf("fd_write: errno %d, %d bytes in pieces of %d, told %d", errno, total, p.sizes, mem.u32(written))
	}
}

// Telling the time, sleeping and printing cost the host no memory.
func TestNoAllocations(t *testing.T) {
	mem := &memory{b: make([]byte, 4096)}
	subscribe(mem, 0, 1, tagClock, clockRealtime, 500, 0)
	mem.b[2048+4] = 7 // a vector at 2048: 7 bytes from 0 on
	for name, args := range map[string][]uint64{
		"clock_time_get": {0, 0, 512}, "poll_oneoff": {0, 1024, 1, 512},
		"random_get": {512, 64}, "fd_write": {1, 2048, 1, 512},
	} {
		f := functions[name]
		if n := testing.AllocsPerRun(100, func() { f.call(silent{}, mem, args) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// silent is a Host without effects.
type silent struct{}

func (silent) Work(int)             {}
func (silent) Clock() int64         { return 0 }
func (silent) Poll(int64)           {}
func (silent) Random([]byte)        {}
func (silent) Print(uint32, []byte) {}
func (silent) Lacks(missing.Thing)  {}
func (silent) Exit(uint32)          {}
