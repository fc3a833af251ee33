package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/missing"
)

// codeDir keeps compiled code over the tests of the package: the plugins are
// compiled once.
var codeDir string

func TestMain(m *testing.M) {
	if len(os.Args) >= 2 && os.Args[1] == compilerArgument { // see TestBuildingElsewhere
		tell := func() error { return nil }
		if len(os.Args) == 3 { // see statusOfBuild
			tell = tellStatus(os.Args[2]) // later it can open nothing
		}
		if err := errors.Join(CompileMain(os.Stdin, os.Stdout, os.Exit), tell()); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if len(os.Args) >= 2 && os.Args[1] == stuckArgument {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}
	var err error
	if codeDir, err = os.MkdirTemp("", "weft-code-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(codeDir) // what is left is in the system's temporary folder
		os.Exit(code)
	}))
}

// library is a Source of modules that tests add.
type library struct {
	mu      sync.Mutex
	modules map[string][]byte
	reads   int
}

func (l *library) add(wasm []byte) (digest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.modules == nil {
		l.modules = map[string][]byte{}
	}
	digest = digestOf(wasm)
	l.modules[digest] = wasm
	return digest
}

func (l *library) Wasm(_ context.Context, digest string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	wasm, ok := l.modules[digest]
	if !ok {
		return nil, host.ErrNotFound
	}
	return wasm, nil
}

// script is a host.Calls and host.Token that tests write.
type script struct {
	call       func(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error)
	checkpoint func(units uint64) error

	calls   []abi.Import
	printed bytes.Buffer
	advised []missing.Thing
	units   uint64
}

func (s *script) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	s.calls = append(s.calls, im)
	if s.call == nil {
		return abi.Null, abi.StatusOK, clock, nil
	}
	return s.call(im, req, clock)
}

func (s *script) Print(_ uint32, text []byte) { s.printed.Write(text) }

func (s *script) Advise(m missing.Thing) { s.advised = append(s.advised, m) }

func (s *script) Checkpoint(units uint64) error {
	s.units += units
	if s.checkpoint == nil {
		return nil
	}
	return s.checkpoint(units)
}

// bench is a sandbox with a library.
type bench struct {
	*Sandbox
	library *library
}

func newBench(tb testing.TB, edit func(*Config)) bench {
	tb.Helper()
	b := bench{library: &library{}}
	c := Config{CacheDir: codeDir, Limits: suite.Untimed(host.Limits{}), Source: b.library, Log: slog.New(slog.NewTextHandler(tb.Output(), nil))}
	if edit != nil {
		edit(&c)
	}
	var err error
	if b.Sandbox, err = New(context.Background(), c); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// describe adds a module to the library, and describes it.
func describe(tb testing.TB, b bench, wasm []byte) (manifest []byte, hash string, err error) {
	tb.Helper()
	d, err := b.Describe(context.Background(), b.library.add(wasm), wasm, host.Limits{})
	return d.Manifest, d.ImageHash, err
}

// invocation of a module that is in the library.
func (b bench) invocation(digest string, input []byte) host.Invocation {
	s := &script{}
	return host.Invocation{
		Digest: digest, Input: input, Clock: 1_800_000_000_000_000_000, Seed: [32]byte{1},
		Limits: suite.Limits(), Calls: s, Token: s,
	}
}

// hostile reads a module of the corpus.
func hostile(tb testing.TB, name string) []byte {
	tb.Helper()
	return readFile(tb, filepath.Join("..", "..", "testdata", "hostile", name+".wasm"))
}

// plugin reads a built example plugin.
func plugin(tb testing.TB, name string) []byte {
	tb.Helper()
	return suite.Plugin(tb, name)
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func wantError(t *testing.T, err error, code host.Code, parts ...string) {
	t.Helper()
	if err == nil || host.CodeOf(err) != code {
		t.Fatalf("error = %v (%s), want %s", err, host.CodeOf(err), code)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error = %q, want %q in it", err, part)
		}
	}
}

func TestInvoke(t *testing.T) {
	b := newBench(t, nil)
	digest := b.library.add(hostile(t, "good"))
	for range 3 { // fresh, and from the spares
		inv := b.invocation(digest, []byte("ignored"))
		res, err := b.Invoke(t.Context(), inv)
		if err != nil || res.Err != nil {
			t.Fatalf("Invoke = %+v, %v", res, err)
		}
		if want := []byte{0x82, 0, 0xf6}; !bytes.Equal(res.Output, want) || res.Code != 0 {
			t.Errorf("output = % x, code %d, want % x and 0", res.Output, res.Code, want)
		}
		if res.Fuel == 0 {
			t.Error("nothing was burnt")
		}
	}
	if b.library.reads > 1 {
		t.Errorf("the module was read %d times, want at most once", b.library.reads)
	}
}

func TestInvokeUnknownModule(t *testing.T) {
	b := newBench(t, nil)
	_, err := b.Invoke(t.Context(), b.invocation(strings.Repeat("0", 64), nil))
	if !errors.Is(err, host.ErrNotFound) {
		t.Errorf("error = %v, want ErrNotFound in it", err)
	}
	b.library.modules = map[string][]byte{strings.Repeat("0", 64): hostile(t, "good")}
	_, err = b.Invoke(t.Context(), b.invocation(strings.Repeat("0", 64), nil))
	wantError(t, err, host.CodeInternal, "damaged")
}

func TestImageHashIsChecked(t *testing.T) {
	b := newBench(t, nil)
	wasm := hostile(t, "good")
	_, hash, err := describe(t, b, wasm)
	if err != nil {
		t.Fatal(err)
	}
	inv := b.invocation(digestOf(wasm), nil)
	inv.ImageHash = hash
	if _, err := b.Invoke(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	inv.ImageHash = strings.Repeat("0", 64)
	_, err = b.Invoke(t.Context(), inv)
	wantError(t, err, host.CodeFailedPrecondition, inv.Digest, hash, inv.ImageHash)
}

func TestErrorsOfCallsAndTokenUnwind(t *testing.T) {
	b := newBench(t, nil)
	digest := b.library.add(hostile(t, "call_flood"))
	suspended := errors.New("suspended")
	t.Run("calls", func(t *testing.T) {
		inv := b.invocation(digest, nil)
		s := inv.Calls.(*script)
		s.call = func(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
			if len(s.calls) == 3 {
				return nil, 0, clock, suspended
			}
			return abi.Null, abi.StatusOK, clock, nil
		}
		res, err := b.Invoke(suite.Context(t), inv)
		if !errors.Is(err, suspended) {
			t.Fatalf("error = %v, want the one of Call", err)
		}
		if len(s.calls) != 3 || s.units == 0 || res.Fuel < s.units {
			t.Errorf("%d calls, %d units at checkpoints, %d in all", len(s.calls), s.units, res.Fuel)
		}
	})
	t.Run("token", func(t *testing.T) {
		inv := b.invocation(digest, nil)
		inv.Token.(*script).checkpoint = func(uint64) error { return suspended }
		if _, err := b.Invoke(suite.Context(t), inv); !errors.Is(err, suspended) {
			t.Fatalf("error = %v, want the one of Checkpoint", err)
		}
	})
}

func TestContextStopsAGuest(t *testing.T) {
	b := newBench(t, nil)
	digest := b.library.add(hostile(t, "call_flood"))
	ctx, cancel := context.WithCancel(t.Context())
	inv := b.invocation(digest, nil)
	inv.Calls.(*script).call = func(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
		cancel()
		return abi.Null, abi.StatusOK, clock, nil
	}
	inv.Limits.HostCalls = math.MaxInt32
	if _, err := b.Invoke(ctx, inv); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	if _, err := b.Invoke(ctx, inv); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}

func TestCloseRefusesAndMayBeCalledTwice(t *testing.T) {
	b := newBench(t, nil)
	wasm := hostile(t, "good")
	digest := b.library.add(wasm)
	if _, err := b.Invoke(t.Context(), b.invocation(digest, nil)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Invoke(t.Context(), b.invocation(digest, nil))
	wantError(t, err, host.CodeUnavailable, "closed")
	_, err = b.Describe(t.Context(), digest, wasm, host.Limits{})
	wantError(t, err, host.CodeUnavailable, "closed")
	if _, problems := b.Inspect(t.Context(), wasm, host.Limits{}); len(problems) != 1 || problems[0].Code != string(host.CodeUnavailable) {
		t.Errorf("problems = %v", problems)
	}
}

func TestCloseWaitsAtMostForItsContext(t *testing.T) {
	b := newBench(t, nil)
	inv := b.invocation(b.library.add(hostile(t, "call_flood")), nil)
	inside, leave := make(chan struct{}), make(chan error)
	inv.Calls.(*script).call = func(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
		close(inside)
		return nil, 0, clock, <-leave
	}
	done := make(chan error)
	go func() {
		_, err := b.Invoke(context.Background(), inv)
		done <- err
	}()
	<-inside
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close = %v, want context.Canceled", err)
	}
	left := errors.New("left")
	leave <- left
	if err := <-done; !errors.Is(err, left) {
		t.Errorf("Invoke = %v, want %v", err, left)
	}
}

// inUse tells whether any module has users.
func (c *modules) inUse() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.byKey {
		if e.users > 0 {
			return true
		}
	}
	return false
}

// awaitUnused waits until no module has users. The goroutine that compiles a module is a
// user for a moment longer than the caller that waits for the module.
func awaitUnused(t *testing.T, b bench) {
	t.Helper()
	ctx := suite.Context(t)
	for b.modules.inUse() {
		if ctx.Err() != nil {
			t.Fatal("a module still has users")
		}
		runtime.Gosched()
	}
}

func TestModulesBeyondTheBudgetAreClosed(t *testing.T) {
	b := newBench(t, func(c *Config) { c.CodeBytes = 500 })
	names := []string{"good", "divide", "loop", "output_none"}
	for _, name := range names {
		if _, problems := b.Inspect(t.Context(), hostile(t, name), host.Limits{}); len(problems) > 0 {
			t.Fatal(problems)
		}
	}
	awaitUnused(t, b)
	b.modules.mu.Lock()
	defer b.modules.mu.Unlock()
	if b.modules.bytes > 500 || b.modules.order.Len() != len(b.modules.byKey) || b.modules.order.Len() >= len(names) {
		t.Errorf("%d modules of %d bytes are kept", len(b.modules.byKey), b.modules.bytes)
	}
}

func TestConcurrentUseOfFewModules(t *testing.T) {
	b := newBench(t, func(c *Config) { c.CodeBytes = 300 }) // one module at a time
	var digests []string
	for _, name := range []string{"good", "output_twice", "unreachable"} {
		digests = append(digests, b.library.add(hostile(t, name)))
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				digest := digests[(i+n)%len(digests)]
				res, err := b.Invoke(t.Context(), b.invocation(digest, nil))
				if err != nil || (res.Err == nil) != (digest == digests[0]) {
					t.Errorf("Invoke = %+v, %v", res, err)
				}
			}
		})
	}
	wg.Wait()
}
