package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/sandbox/codefiles"
)

// compilerArgument has the test's program be a compiler.
const compilerArgument = "weft-compiler-of-tests"

// stuckArgument has it be one that does nothing.
const stuckArgument = "weft-stuck-compiler-of-tests"

func elsewhere(t *testing.T, edit func(*Config)) bench {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newBench(t, func(c *Config) {
		c.CacheDir, c.Compiler = t.TempDir(), []string{program, program, compilerArgument}
		if edit != nil {
			edit(c)
		}
	})
}

// What a process of its own builds is what this one builds.
func TestBuildingElsewhere(t *testing.T) {
	there, here := elsewhere(t, nil), newBench(t, func(c *Config) { c.CacheDir = "" })
	for _, wasm := range [][]byte{hostile(t, "good"), hostile(t, "remember_table"), plugin(t, "counter-tinygo")} {
		want, err := here.Describe(t.Context(), here.library.add(wasm), wasm, host.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := there.Describe(t.Context(), there.library.add(wasm), wasm, host.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Manifest, want.Manifest) || got.ImageHash != want.ImageHash || got.Rewritten != want.Rewritten {
			t.Errorf("described there: %+v, here: %+v", got, want)
		}
		inv := here.invocation(digestOf(wasm), nil)
		if a, b := observe(t, there, inv, answers{}), observe(t, here, inv, answers{}); !a.equal(b) {
			t.Errorf("there: %+v, here: %+v", a, b)
		}
	}
	if d := kept(t, there.cacheDir); len(d.images) != 3 || len(d.codes) != 3 {
		t.Errorf("on disk are %+v", d)
	}
}

// A module's problems come back as they are; nothing but code is left of it on disk.
func TestProblemsFromElsewhere(t *testing.T) {
	b := elsewhere(t, func(c *Config) { c.Limits.DescribeFuel = 1_000_000 })
	for name, want := range map[string]string{
		"describe_loop": "describe_fuel_exhausted", "describe_trap": "describe_trap", "data_range": problemInvalid,
	} {
		problems := check(t, b, hostile(t, name))
		if len(problems) != 1 || problems[0].Code != want {
			t.Errorf("%s: %+v, want %s", name, problems, want)
		}
	}
	if d := kept(t, b.cacheDir); len(d.images) != 0 || len(d.unfinished) != 0 {
		t.Errorf("on disk are %+v", d)
	}
}

// A compiler that takes too much ends; the server says why, and goes on.
func TestCompilerLimits(t *testing.T) {
	wasm := plugin(t, "counter-tinygo")
	for _, tt := range []struct {
		name string
		edit func(*host.Limits)
		want string
		text string
	}{
		{"time", func(l *host.Limits) { l.CompileTime = time.Millisecond }, problemCompileTime, "more than 1ms of CPU time (limit compile_time)"},
		{"memory", func(l *host.Limits) { l.CompileBytes = 100 << 20 }, problemCompileBytes, "more than 104857600 bytes of address space (limit compile_bytes)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if raced && tt.want == problemCompileBytes {
				t.Skip("the race detector's own memory does not fit into an address space with a limit")
			}
			b := elsewhere(t, func(c *Config) { tt.edit(&c.Limits) })
			problems := check(t, b, wasm)
			if len(problems) != 1 || problems[0].Code != tt.want || !strings.Contains(problems[0].Message, tt.text) {
				t.Errorf("problems = %+v, want %s: %s", problems, tt.want, tt.text)
			}
		})
	}
}

// A compiler that the machine gives no CPU time is not the module's fault: the upload is
// put off.
func TestCompilerWithoutCPU(t *testing.T) {
	b := elsewhere(t, func(c *Config) { c.Compiler = append(c.Compiler[:2:2], stuckArgument) })
	b.compilerWall = 50 * time.Millisecond
	wasm := hostile(t, "good")
	_, err := b.Describe(suite.Context(t), digestOf(wasm), wasm, host.Limits{})
	var known *host.Error
	if !errors.As(err, &known) || known.Code != host.CodeUnavailable || known.RetryAfter == 0 || !strings.Contains(known.Message, "of CPU in") {
		t.Errorf("Describe: %v, want it put off", err)
	}
	if problems := check2(t, b, wasm); len(problems) != 1 || problems[0].Code != string(host.CodeUnavailable) {
		t.Errorf("Inspect: %+v, want it put off", problems)
	}
}

// Builds for the only tenant take the cores that they need; the server's own, and all
// once there are several tenants, let others go first.
func TestSharing(t *testing.T) {
	b := newBench(t, nil)
	for i, tt := range []struct {
		tenant string
		want   bool
	}{{"", true}, {"a", false}, {"a", false}, {"", true}, {"b", true}, {"a", true}} {
		if got := b.sharing(tt.tenant); got != tt.want {
			t.Errorf("%d: sharing(%q) = %v", i, tt.tenant, got)
		}
	}
}

// The folder of compiled code keeps within its bound: what was not used for the longest
// time goes first, and is made again when it is needed.
func TestCacheBound(t *testing.T) {
	b := newBench(t, func(c *Config) { c.CacheDir = t.TempDir() })
	names := []string{"good", "remember_table", "counter"}
	module := func(name string) []byte {
		if name == "counter" {
			return plugin(t, "counter-tinygo")
		}
		return hostile(t, name)
	}
	folders, codes := map[string]string{}, map[string]string{}
	for i, name := range names {
		wasm := module(name)
		if _, err := b.Describe(t.Context(), digestOf(wasm), wasm, host.Limits{}); err != nil {
			t.Fatal(err)
		}
		folders[name] = b.folder(moduleKey{digestOf(wasm), b.limits.TableEntries})
		l, err := b.lease(t.Context(), moduleKey{digestOf(wasm), b.limits.TableEntries}, wasm, &b.limits)
		if err != nil {
			t.Fatal(err)
		}
		codes[name] = b.codeFolder(l.module.plan.code())
		l.release()
		for j, folder := range []string{folders[name], codes[name]} {
			at := time.Unix(int64(1_000_000+10*i+j), 0)
			if err := os.Chtimes(folder, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func(want ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := os.Stat(folders[name]); (err == nil) != slices.Contains(want, name) {
				t.Errorf("%s: %v, want %q there", name, err, want)
			}
		}
	}
	_, total, err := codefiles.Kept(b.cacheDir)
	if err != nil {
		t.Fatal(err)
	}
	again := func(bytes int64) bench {
		return newBench(t, func(c *Config) { c.CacheDir, c.CacheBytes = b.cacheDir, bytes })
	}
	again(total)
	there(names...)
	used := again(total)
	used.modules.budget = 1
	wasm := hostile(t, "good")
	if _, err := used.Describe(t.Context(), digestOf(wasm), wasm, host.Limits{}); err != nil {
		t.Fatal(err)
	}
	again(total - 1) // now the second one is the oldest
	there("good", "counter")
	wasm = hostile(t, "remember_table")
	if _, err := again(total).Describe(t.Context(), digestOf(wasm), wasm, host.Limits{}); err != nil {
		t.Fatal(err)
	}
	there(names...)

	// An image whose code was removed is made again with it.
	if err := os.Chtimes(codes["good"], time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	again(total - 1)
	there(names...)
	if _, err := os.Stat(codes["good"]); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the oldest code is there: %v", err)
	}
	wasm = hostile(t, "good")
	if _, err := again(total).Describe(t.Context(), digestOf(wasm), wasm, host.Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(codes["good"]); err != nil {
		t.Error(err)
	}
}

func TestCompilerThatIsNone(t *testing.T) {
	wasm := hostile(t, "good")
	for name, program := range map[string]string{"absent": filepath.Join(t.TempDir(), "nothing"), "another": "/bin/true"} {
		b := elsewhere(t, func(c *Config) { c.Compiler = []string{program, program} })
		if problems := check2(t, b, wasm); len(problems) != 1 {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

// check2 is the problems of Inspect alone.
func check2(t *testing.T, b bench, wasm []byte) []host.Problem {
	t.Helper()
	_, problems := b.Inspect(suite.Context(t), wasm, host.Limits{})
	return problems
}

// The compiler refuses orders that no sandbox gives.
func TestCompileMainRefuses(t *testing.T) {
	line := func(o order) string {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	for name, in := range map[string]string{
		"nothing":   "",
		"no line":   "{}",
		"no order":  "hello\n",
		"negative":  line(order{Bytes: -1}),
		"too large": line(order{Bytes: math.MaxInt32}), // also where an int has 32 bits
	} {
		if err := CompileMain(strings.NewReader(in), io.Discard, func(int) {}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// The compiler's process is the first that the kernel ends when memory is short.
func TestCompilerGoesFirst(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: other systems have no oom_score_adj")
	}
	if status := statusOfBuild(t); !strings.HasPrefix(status, "1000\n") {
		t.Errorf("oom_score_adj in the compiler's process is %.10q, want 1000", status)
	}
	if text, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || strings.TrimSpace(string(text)) == "1000" {
		t.Errorf("that of this process is %q, %v", text, err)
	}
}

// statusOfBuild has a module built, and gives the oom_score_adj of the process that did,
// and its status.
func statusOfBuild(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "status")
	b := elsewhere(t, func(c *Config) { c.Compiler = append(c.Compiler, to) })
	wasm := hostile(t, "good")
	if _, err := b.Describe(t.Context(), b.library.add(wasm), wasm, host.Limits{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tellStatus opens what says the state of this process; tell writes it down.
func tellStatus(to string) (tell func() error) {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	score, err2 := os.Open("/proc/self/oom_score_adj")
	status, err3 := os.Open("/proc/self/status")
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err)
	}
	return func() error {
		_, err := io.Copy(out, io.MultiReader(score, status))
		return err
	}
}

// A compiler that the system kills is no fault of the module: it is tried again later.
func TestCompilerThatIsKilled(t *testing.T) {
	wasm := hostile(t, "good")
	b := elsewhere(t, func(c *Config) { c.Compiler = []string{"/bin/sh", "sh", "-c", "kill -9 $$"} })
	_, err := b.Describe(t.Context(), b.library.add(wasm), wasm, host.Limits{})
	if host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("the error is %v (%s)", err, host.CodeOf(err))
	}
}
