package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host"
)

// kin is a module of a family. Members of a family differ only in fields that are not
// part of the code.
type kin struct {
	name  string // of the workflow, 7 letters
	value byte   // the step adds 1 to the value, and answers it with the size of the memory
	pages byte   // initial size of the memory
	note  string // of a custom section

	// The fields below are part of the code.
	most    byte // maximum size of the memory; 0: none
	step    byte // what the step adds
	passive string
	drops   bool // the step drops the data segments
}

// wasm assembles the module.
func (k kin) wasm() []byte {
	section := func(id byte, parts ...[]byte) []byte {
		payload := bytes.Join(parts, nil)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(payload))), payload...)
	}
	text := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }
	function := func(code ...byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(code)+2)), append(append([]byte{0}, code...), 0x0b)...)
	}
	active := func(offset []byte, data string) []byte {
		return append(append([]byte{0, 0x41}, append(offset, 0x0b)...), text(data)...)
	}
	memory := []byte{1, 0, k.pages}
	if k.most > 0 {
		memory = []byte{1, 1, k.pages, k.most}
	}
	step := []byte{
		0x41, 0x84, 4, 0x41, 0x84, 4, 0x2d, 0, 0, 0x41, k.step, 0x6a, 0x3a, 0, 0, // memory[516] += step
		0x41, 0x86, 4, 0x3f, 0, 0x3a, 0, 0, // memory[518] = memory.size
	}
	segments := [][]byte{{2},
		active([]byte{0}, "\xa4cabi\x01esteps\x81\xa3dnamecruneemits\x81iStopEventgaccepts\x81jStartEventfevents\xa0hworkflowg"+k.name),
		active([]byte{0x80, 4}, "\x82\x00\x82\x18"+string(rune(k.value))+"\x18\x00")} // [0, [value, pages]]
	var count []byte
	if k.passive != "" {
		segments[0][0]++
		segments = append(segments, append([]byte{1}, text(k.passive)...))
		count = section(12, []byte{3})
		step = append([]byte{0x41, 0x84, 4, 0x41, 0, 0x41, 1, 0xfc, 8, 2, 0}, step...) // memory.init: memory[516] = passive[0]
	}
	if k.drops {
		count = section(12, []byte{2})
		step = append(step, 0xfc, 9, 0)
	}
	step = append(step, 0x41, 0x80, 4, 0x41, 7, 0x10, 0, 0x41, 0) // output(512, 7); 0
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{3, 0x60, 2, 0x7f, 0x7f, 0, 0x60, 0, 0, 0x60, 1, 0x7f, 1, 0x7f}),
		section(2, []byte{1}, text("weft:v1"), text("output"), []byte{0, 0}),
		section(3, []byte{2, 1, 2}),
		section(5, memory),
		section(7, []byte{3}, text("memory"), []byte{2, 0}, text("weft_describe"), []byte{0, 1}, text("weft_step"), []byte{0, 2}),
		count,
		section(10, []byte{2}, function(0x41, 0, 0x41, 0xd5, 0, 0x10, 0), function(step...)),
		section(11, segments...),
		section(0, text("note"), []byte(k.note)),
	}, nil)
}

var first = kin{name: "hostile", value: 40, pages: 1, step: 1}

// answer is the output of the step in a pristine instance.
func (k kin) answer() []byte {
	return []byte{0x82, 0, 0x82, 0x18, k.value + k.step, 0x18, k.pages}
}

func (k kin) run(b bench) error {
	inv := b.invocation(b.library.add(k.wasm()), nil)
	res, err := b.Invoke(context.Background(), inv)
	if err != nil {
		return err
	}
	if res.Err != nil || !bytes.Equal(res.Output, k.answer()) {
		return fmt.Errorf("%+v: the step gives %x, failed %v, want %x", k, res.Output, res.Err != nil, k.answer())
	}
	return nil
}

// Modules that differ only in data, in the initial size of the memory and in custom
// sections share code, on disk and in memory. Other modules do not.
func TestSkeletons(t *testing.T) {
	data, size, note := first, first, first
	data.name, data.value = "another", 50
	size.pages = 3
	note.note = "compiled on another day"
	adds, most, passive := first, first, first
	adds.step = 2
	most.most = 9
	passive.passive = "!"
	other := passive
	other.passive = "?"
	drops, dropped := first, first
	drops.drops, dropped.drops = true, true
	dropped.value = 60
	for name, tt := range map[string]struct {
		a, b   kin
		shared bool
	}{
		"data":             {first, data, true},
		"size":             {first, size, true},
		"custom section":   {first, note, true},
		"code":             {first, adds, false},
		"maximum":          {first, most, false},
		"passive segments": {passive, other, false},
		"dropped segments": {drops, dropped, false},
	} {
		t.Run(name, func(t *testing.T) {
			for where, b := range map[string]bench{
				"here":      newBench(t, func(c *Config) { c.CacheDir = "" }),
				"on disk":   newBench(t, func(c *Config) { c.CacheDir = t.TempDir() }),
				"elsewhere": elsewhere(t, nil),
			} {
				for _, k := range []kin{tt.a, tt.b} {
					if k.passive != "" {
						k.value = k.passive[0]
					}
					for range 3 {
						if err := k.run(b); err != nil {
							t.Errorf("%s: %v", where, err)
						}
					}
				}
				want := 2
				if tt.shared {
					want = 1
				}
				if n := b.codes.count(); n != want {
					t.Errorf("%s: there are %d codes, want %d", where, n, want)
				}
				if b.cacheDir == "" {
					continue
				}
				if d := kept(t, b.cacheDir); len(d.codes) != want || len(d.images) != 2 || len(d.unfinished) != 0 {
					t.Errorf("%s: on disk are %+v", where, d)
				}
			}
		})
	}
}

// A hundred modules with the same code hold one copy of it, count it once, and are
// compiled once. Code goes with the last of them.
func TestHundredShareCode(t *testing.T) {
	var log strings.Builder
	b := elsewhere(t, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	n := 100
	if raced { // its processes start slowly
		n = 5
	}
	for i := range n {
		k := first
		k.value, k.note = byte(24+i), fmt.Sprint(i)
		if err := k.run(b); err != nil {
			t.Fatal(err)
		}
	}
	compiled := strings.Count(log.String(), "skeleton=true")
	built := strings.Count(log.String(), "skeleton=false")
	if compiled != 1 || built != n || b.codes.count() != 1 {
		t.Errorf("%d processes have compiled, %d have built, and there are %d codes", compiled, built, b.codes.count())
	}
	awaitUnused(t, b)
	b.modules.mu.Lock()
	images, code, bytes := 0, 0, b.modules.bytes
	for _, e := range b.modules.byKey {
		images += e.module.size
		code = e.module.code.size
	}
	b.modules.mu.Unlock()
	if bytes != images+code {
		t.Errorf("%d bytes are counted, want %d of images and %d of code", bytes, images, code)
	}
	b.modules.age(0)
	if b.codes.count() != 0 || b.modules.bytes != 0 {
		t.Errorf("%d codes and %d bytes are left", b.codes.count(), b.modules.bytes)
	}
	if err := first.run(b); err != nil {
		t.Error(err)
	}
	if again := strings.Count(log.String(), "skeleton=true"); again != 1 {
		t.Errorf("%d processes have compiled", again)
	}
}

// Modules with the same code are loaded, run and freed at the same time, and each keeps
// its own image.
func TestSharedCodeConcurrently(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := newBench(t, func(c *Config) { c.CacheDir, c.CodeBytes, c.Spares = t.TempDir(), 1, 1 })
	var all sync.WaitGroup
	for worker := range 4 {
		seed := rnd.Uint64()
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(worker)))
			for range 60 {
				k := first
				k.value, k.pages = byte(24+rnd.IntN(6)), byte(1+rnd.IntN(3))
				if err := k.run(b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	awaitUnused(t, b)
	b.modules.age(0)
	if n := b.codes.count(); n != 0 {
		t.Errorf("%d codes are left", n)
	}
}

// The process that builds a module may be hostile. What it leaves in its folder neither
// makes the server read other files, nor write outside the folder.
func TestFolderOfAHostileBuild(t *testing.T) {
	b := elsewhere(t, nil)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	writeFile(t, secret, first.wasm())
	var skeleton []byte
	if _, err := b.make(moduleKey{digestOf(first.wasm()), b.limits.TableEntries}, first.wasm(), &b.limits, func(_ codeKey, bytes []byte) (*code, error) {
		skeleton = bytes
		return nil, errors.New("enough")
	}); err == nil || skeleton == nil {
		t.Fatalf("no skeleton: %v", err)
	}
	for name, tt := range map[string]struct {
		leave func(t *testing.T, folder string) error
		want  string
	}{
		"nothing": {func(*testing.T, string) error { return nil }, "no such file"},
		"a link": {func(_ *testing.T, folder string) error {
			return os.Symlink(secret, filepath.Join(folder, skeletonFile))
		}, "the compiler has left"},
		"a folder": {func(_ *testing.T, folder string) error { return os.Mkdir(filepath.Join(folder, skeletonFile), 0o700) }, "the compiler has left"},
		"a long file": {func(_ *testing.T, folder string) error {
			path := filepath.Join(folder, skeletonFile)
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, int64(b.limits.CompileBytes)+1))
		}, "the compiler has left"},
		"a target outside": {func(t *testing.T, folder string) error {
			writeFile(t, filepath.Join(folder, skeletonFile), skeleton)
			return os.Symlink(outside, filepath.Join(folder, codeFolder))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := tt.leave(t, folder); err != nil {
				t.Fatal(err)
			}
			_, err := b.serveCode("", &codeAsked{}, &b.limits, folder)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			entries, err := os.ReadDir(outside)
			if err != nil || len(entries) != 1 {
				t.Errorf("outside are %v, %v", entries, err)
			}
		})
	}
}

// A process that asks for code without end is ended.
func TestBuildThatAsksWithoutEnd(t *testing.T) {
	var answers bytes.Buffer
	asked := 0
	_, err := readReports(strings.NewReader(strings.Repeat(`{"Code":{}}`+"\n", 10)), &answers, func(*codeAsked) error {
		if asked++; asked > mostAsked {
			return host.Errorf(host.CodeInternal, "enough")
		}
		return nil
	})
	if err == nil || asked != mostAsked+1 || answers.Len() != mostAsked {
		t.Errorf("asked %d times, answered %q: %v", asked, answers.String(), err)
	}
}

// A process that builds a module cannot have unmetered code compiled.
func TestUnmeteredSkeleton(t *testing.T) {
	b := elsewhere(t, nil)
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, skeletonFile), first.wasm())
	_, err := b.serveCode("", &codeAsked{}, &b.limits, folder)
	if host.CodeOf(err) != host.CodeInvalidPlugin || !strings.Contains(problemsOf(err)[0].Message, "cannot be metered") {
		t.Errorf("serveCode: %v", err)
	}
	if d := kept(t, b.cacheDir); len(d.codes)+len(d.images)+len(d.unfinished) > 0 {
		t.Errorf("on disk are %+v", d)
	}
}
