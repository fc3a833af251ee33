package wasi

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host/missing"
)

// memory is as much of a guest's memory as the functions use.
type memory struct {
	api.Memory
	b []byte
}

func (m *memory) Read(offset, n uint32) ([]byte, bool) {
	if uint64(offset)+uint64(n) > uint64(len(m.b)) {
		return nil, false
	}
	return m.b[offset : offset+n : offset+n], true
}

func (m *memory) WriteUint32Le(offset, v uint32) bool {
	view, ok := m.Read(offset, 4)
	if ok {
		binary.LittleEndian.PutUint32(view, v)
	}
	return ok
}

func (m *memory) WriteUint64Le(offset uint32, v uint64) bool {
	view, ok := m.Read(offset, 8)
	if ok {
		binary.LittleEndian.PutUint64(view, v)
	}
	return ok
}

func (m *memory) u16(at int) uint16 { return binary.LittleEndian.Uint16(m.b[at:]) }
func (m *memory) u32(at int) uint32 { return binary.LittleEndian.Uint32(m.b[at:]) }
func (m *memory) u64(at int) uint64 { return binary.LittleEndian.Uint64(m.b[at:]) }

// guest is a Host that notes what it is asked.
type guest struct {
	now     int64
	polls   int
	printed map[uint32]string
	exit    []uint32
	worked  int // items of lists
	lacks   []missing.Thing
}

func (g *guest) Clock() int64     { return g.now }
func (g *guest) Random(p []byte)  { copy(p, bytes.Repeat([]byte{7}, len(p))) }
func (g *guest) Exit(code uint32) { g.exit = append(g.exit, code) }
func (g *guest) Poll(until int64) {
	g.polls++
	g.now = max(g.now, until)
}
func (g *guest) Work(items int) { g.worked += items }

func (g *guest) Lacks(m missing.Thing) { g.lacks = append(g.lacks, m) }

func (g *guest) Print(fd uint32, text []byte) {
	if g.printed == nil {
		g.printed = map[uint32]string{}
	}
	g.printed[fd] += string(text)
}

func run(t *testing.T, name string, g *guest, mem *memory, args ...uint64) uint32 {
	t.Helper()
	f, ok := functions[name]
	if !ok || len(f.params) != len(args) {
		t.Fatalf("%s does not take %d arguments", name, len(args))
	}
	return f.call(g, mem, args)
}

func TestTable(t *testing.T) {
	if n := len(Names()); n != 46 {
		t.Errorf("%d functions, preview 1 has 46", n)
	}
	if _, _, ok := Signature("fork"); ok {
		t.Error("fork has a signature")
	}
	params, results, ok := Signature("clock_time_get")
	if !ok || !bytes.Equal(params, []byte{api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeI32}) || !bytes.Equal(results, []byte{api.ValueTypeI32}) {
		t.Errorf("clock_time_get: %v, %v, %v", params, results, ok)
	}
	if _, results, _ := Signature("proc_exit"); results != nil {
		t.Errorf("proc_exit has results %v", results)
	}
}

func TestInstantiate(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer func() {
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	hostOf := func(context.Context) Host { return &guest{} }
	if err := Instantiate(ctx, r, []string{"fork"}, hostOf); err == nil {
		t.Error("fork was served")
	}
	if err := Instantiate(ctx, r, Names(), hostOf); err != nil {
		t.Fatal(err)
	}
	for name, f := range r.Module(ModuleName).ExportedFunctionDefinitions() {
		params, results, _ := Signature(name)
		if !bytes.Equal(f.ParamTypes(), params) || !bytes.Equal(f.ResultTypes(), results) {
			t.Errorf("%s is %v -> %v", name, f.ParamTypes(), f.ResultTypes())
		}
	}
}

func TestClocks(t *testing.T) {
	g, mem := &guest{now: 1000}, &memory{b: make([]byte, 64)}
	for clock, want := range []uint64{1000, 1001, 1001, 1001} {
		if errno := run(t, "clock_time_get", g, mem, uint64(clock), 1, 8); errno != 0 || mem.u64(8) != want {
			t.Errorf("clock %d: errno %d, time %d, want %d", clock, errno, mem.u64(8), want)
		}
		if errno := run(t, "clock_res_get", g, mem, uint64(clock), 8); errno != 0 || mem.u64(8) != 1 {
			t.Errorf("clock %d: errno %d, resolution %d", clock, errno, mem.u64(8))
		}
	}
	for _, name := range []string{"clock_time_get", "clock_res_get"} {
		args := []uint64{4, 8}
		if name == "clock_time_get" {
			args = []uint64{4, 0, 8}
		}
		if errno := run(t, name, g, mem, args...); errno != errnoInval {
			t.Errorf("%s of clock 4: errno %d", name, errno)
		}
		args[0], args[len(args)-1] = 0, 60
		if errno := run(t, name, g, mem, args...); errno != errnoFault {
			t.Errorf("%s to the end of memory: errno %d", name, errno)
		}
	}
	// The image is made at time 0, where Go's runtime wants a clock that runs.
	g.now = 0
	if run(t, "clock_time_get", g, mem, clockMonotonic, 0, 8); mem.u64(8) == 0 {
		t.Error("the monotonic clock stands at 0")
	}
}

// subscribe writes a subscription and returns where the next one goes.
func subscribe(mem *memory, at int, userdata uint64, tag byte, what uint32, timeout uint64, flags uint16) int {
	raw := mem.b[at : at+subscriptionLen]
	clear(raw)
	binary.LittleEndian.PutUint64(raw, userdata)
	raw[8] = tag
	binary.LittleEndian.PutUint32(raw[16:], what)
	binary.LittleEndian.PutUint64(raw[24:], timeout)
	binary.LittleEndian.PutUint16(raw[40:], flags)
	return at + subscriptionLen
}

func TestPollMovesTheClock(t *testing.T) {
	const start, out, stored = 1_000_000, 1024, 2000
	type event struct {
		userdata uint64
		errno    uint16
	}
	tests := []struct {
		name string
		subs func(mem *memory) int
		now  int64
		want []event
	}{
		{"relative", func(m *memory) int { return subscribe(m, 0, 1, tagClock, clockMonotonic, 500, 0) }, start + 500, []event{{1, 0}}},
		{"absolute", func(m *memory) int {
			return subscribe(m, 0, 1, tagClock, clockRealtime, start+7, flagAbsolute)
		}, start + 7, []event{{1, 0}}},
		{"absolute, monotonic", func(m *memory) int {
			return subscribe(m, 0, 1, tagClock, clockMonotonic, start+8, flagAbsolute)
		}, start + 7, []event{{1, 0}}},
		{"past", func(m *memory) int { return subscribe(m, 0, 1, tagClock, clockRealtime, 5, flagAbsolute) }, start, []event{{1, 0}}},
		{"earliest", func(m *memory) int {
			return subscribe(m, subscribe(m, subscribe(m, 0, 1, tagClock, 0, 900, 0), 2, tagClock, 0, 300, 0), 3, tagClock, 1, 300, 0)
		}, start + 300, []event{{2, 0}, {3, 0}}},
		{"for ever", func(m *memory) int { return subscribe(m, 0, 1, tagClock, 0, math.MaxUint64, 0) }, math.MaxInt64, []event{{1, 0}}},
		{"a file is ready", func(m *memory) int {
			return subscribe(m, subscribe(m, 0, 1, tagClock, 0, 900, 0), 2, tagFdWrite, 1, 0, 0)
		}, start, []event{{2, 0}}},
		{"no such file", func(m *memory) int { return subscribe(m, 0, 9, tagFdRead, 5, 0, 0) }, start, []event{{9, errnoBadf}}},
		{"no such clock", func(m *memory) int { return subscribe(m, 0, 9, tagClock, 8, 0, 0) }, start, []event{{9, errnoInval}}},
		{"no such tag", func(m *memory) int { return subscribe(m, 0, 9, 7, 0, 0, 0) }, start, []event{{9, errnoInval}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, mem := &guest{now: start}, &memory{b: make([]byte, 4096)}
			n := tt.subs(mem) / subscriptionLen
			if errno := run(t, "poll_oneoff", g, mem, 0, out, uint64(n), stored); errno != 0 {
				t.Fatalf("errno %d", errno)
			}
			if g.now != tt.now || g.polls != 1 {
				t.Errorf("clock = %d after %d polls, want %d", g.now, g.polls, tt.now)
			}
			if int(mem.u32(stored)) != len(tt.want) {
				t.Fatalf("%d events, want %d", mem.u32(stored), len(tt.want))
			}
			for i, want := range tt.want {
				at := out + i*eventLen
				if got := (event{mem.u64(at), mem.u16(at + 8)}); got != want {
					t.Errorf("event %d = %+v, want %+v", i, got, want)
				}
			}
		})
	}
	g, mem := &guest{}, &memory{b: make([]byte, 64)}
	for _, tt := range []struct {
		args  [4]uint64
		errno uint32
	}{
		{[4]uint64{0, 0, 0, 0}, errnoInval},
		{[4]uint64{0, 0, maxSubscribed + 1, 0}, errnoInval},
		{[4]uint64{32, 0, 1, 0}, errnoFault},
		{[4]uint64{0, 40, 1, 0}, errnoFault},
		{[4]uint64{0, 0, 1, 62}, errnoFault},
	} {
		if errno := run(t, "poll_oneoff", g, mem, tt.args[:]...); errno != tt.errno {
			t.Errorf("poll_oneoff%v: errno %d, want %d", tt.args, errno, tt.errno)
		}
	}
}

func TestFiles(t *testing.T) {
	g, mem := &guest{}, &memory{b: make([]byte, 256)}
	copy(mem.b, "hello, world\n")
	binary.LittleEndian.PutUint32(mem.b[64:], 0)
	binary.LittleEndian.PutUint32(mem.b[68:], 7)
	binary.LittleEndian.PutUint32(mem.b[72:], 7)
	binary.LittleEndian.PutUint32(mem.b[76:], 6)
	if errno := run(t, "fd_write", g, mem, 2, 64, 2, 128); errno != 0 || mem.u32(128) != 13 || g.printed[2] != "hello, world\n" {
		t.Errorf("fd_write: errno %d, %d bytes, printed %v", errno, mem.u32(128), g.printed)
	}
	if errno := run(t, "fd_read", g, mem, 0, 64, 1, 128); errno != 0 || mem.u32(128) != 0 {
		t.Errorf("fd_read: errno %d, %d bytes", errno, mem.u32(128))
	}
	if errno := run(t, "fd_fdstat_get", g, mem, 1, 128); errno != 0 || mem.b[128] != filetypeCharacterDevice || mem.u64(136) != rightWrite {
		t.Errorf("fd_fdstat_get: errno %d, % x", errno, mem.b[128:152])
	}
	if errno := run(t, "fd_filestat_get", g, mem, 1, 128); errno != 0 || mem.b[128+filetypeOffset] != filetypeCharacterDevice {
		t.Errorf("fd_filestat_get: errno %d, % x", errno, mem.b[128:192])
	}
	for _, tt := range []struct {
		name  string
		args  []uint64
		errno uint32
	}{
		{"fd_write", []uint64{0, 64, 1, 128}, errnoBadf},
		{"fd_write", []uint64{3, 64, 1, 128}, errnoBadf},
		{"fd_write", []uint64{1, 64, maxVectors + 1, 128}, errnoInval},
		{"fd_write", []uint64{1, 250, 1, 128}, errnoFault},
		{"fd_write", []uint64{1, 64, 2, 254}, errnoFault},
		{"fd_read", []uint64{1, 0, 0, 0}, errnoBadf},
		{"fd_read", []uint64{0, 0, 0, 254}, errnoFault},
		{"fd_close", []uint64{2}, errnoSuccess},
		{"fd_close", []uint64{3}, errnoBadf},
		{"fd_seek", []uint64{1, 0, 0, 0}, errnoSpipe},
		{"fd_seek", []uint64{4, 0, 0, 0}, errnoBadf},
		{"fd_fdstat_get", []uint64{3, 0}, errnoBadf},
		{"fd_fdstat_get", []uint64{0, 250}, errnoFault},
		{"fd_filestat_get", []uint64{3, 0}, errnoBadf},
		{"fd_filestat_get", []uint64{0, 250}, errnoFault},
		{"fd_prestat_get", []uint64{3, 0}, errnoBadf},
		{"path_open", make([]uint64, 9), errnoNosys},
		{"args_sizes_get", []uint64{0, 254}, errnoFault},
		{"environ_sizes_get", []uint64{0, 4}, errnoSuccess},
		{"args_get", []uint64{0, 0}, errnoSuccess},
		{"random_get", []uint64{255, 2}, errnoFault},
		{"random_get", []uint64{200, 2}, errnoSuccess},
		{"proc_exit", []uint64{3}, errnoSuccess},
	} {
		if errno := run(t, tt.name, g, mem, tt.args...); errno != tt.errno {
			t.Errorf("%s%v: errno %d, want %d", tt.name, tt.args, errno, tt.errno)
		}
	}
	if mem.b[200] != 7 || mem.b[201] != 7 || mem.b[202] != 0 {
		t.Errorf("random_get wrote % x", mem.b[199:203])
	}
	if len(g.exit) != 1 || g.exit[0] != 3 {
		t.Errorf("exits %v", g.exit)
	}
}

// No arguments of a guest make a function fail in any way but by its errno.
func FuzzArguments(f *testing.F) {
	f.Add("poll_oneoff", uint64(0), uint64(40), uint64(2), uint64(62), []byte{1, 2, 3})
	f.Add("fd_write", uint64(1), uint64(math.MaxUint32), uint64(1<<31), uint64(8), []byte{255})
	f.Fuzz(func(t *testing.T, name string, a, b, c, d uint64, content []byte) {
		fn, ok := functions[name]
		if !ok {
			return
		}
		mem := &memory{b: make([]byte, 4096)}
		copy(mem.b, content)
		args := append([]uint64{a, b, c, d}, make([]uint64, 8)...)
		fn.call(&guest{}, mem, args[:max(1, len(fn.params))])
	})
}

// The host learns of calls that want files and sockets, and of no others.
func TestLacks(t *testing.T) {
	for name, f := range functions {
		g := &guest{}
		f.call(g, &memory{b: make([]byte, 8192)}, make([]uint64, max(1, len(f.params))))
		var want []missing.Thing
		switch {
		case strings.HasPrefix(name, "path_"), name == "fd_prestat_get":
			want = []missing.Thing{missing.Files}
		case strings.HasPrefix(name, "sock_"):
			want = []missing.Thing{missing.Network}
		}
		if !slices.Equal(g.lacks, want) {
			t.Errorf("%s: the host learns of %v, want %v", name, g.lacks, want)
		}
	}
}
