package hosttest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// Binary returns the path of the weft binary: $WEFT_BIN, or a binary built once for the
// test process.
func Binary(tb testing.TB) string {
	tb.Helper()
	suite.NotShort(tb, "starts servers in processes of their own")
	if bin := os.Getenv("WEFT_BIN"); bin != "" {
		return bin
	}
	bin, err := buildBinary()
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

var buildBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weft-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "weft")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/weft")
	cmd.Dir = Root()
	cmd.Stderr = os.Stderr
	return bin, cmd.Run()
})

// BuildPlugin compiles a plugin of testdata/plugins with the Go toolchain, with the given
// build tags.
func BuildPlugin(tb testing.TB, name string, tags ...string) []byte {
	tb.Helper()
	suite.NotShort(tb, "builds plugins")
	out := filepath.Join(tb.TempDir(), name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-tags", strings.Join(tags, ","), "-o", out, ".")
	cmd.Dir = filepath.Join(Root(), "testdata", "plugins", name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if msg, err := suite.Build(cmd, out, cmd.Dir, suite.GuestSDK()); err != nil {
		tb.Fatalf("build plugin %s: %v\n%s", name, err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

// Process is a server in a separate process. Its methods that make requests are those of
// Host.
type Process struct {
	Host
	cmd  *exec.Cmd
	log  *tail
	data string
}

var serving = regexp.MustCompile(`serves on (http://\S+),`)

// Serve starts the binary on a data directory and a free port, and returns when it
// serves. Its runs have no time limits, unless args set some: see [suite.Environ].
func Serve(tb testing.TB, data string, args ...string) *Process {
	tb.Helper()
	return ServeBy(tb, nil, data, args...)
}

// ServeBy is Serve through a command that receives the server's command line as further
// arguments and becomes the server. nil: no such command.
func ServeBy(tb testing.TB, by []string, data string, args ...string) *Process {
	tb.Helper()
	p, served := TryServeBy(tb, by, data, args...)
	if !served {
		tb.Fatalf("the server did not start:\n%s", p.log)
	}
	return p
}

// TryServeBy is ServeBy. served is false if the process ended before it served.
func TryServeBy(tb testing.TB, by []string, data string, args ...string) (p *Process, served bool) {
	tb.Helper()
	p = &Process{log: &tail{}, data: data}
	if err := LendCode(data); err != nil {
		tb.Fatal(err)
	}
	line := append(slices.Clone(by), Binary(tb), "serve", "--addr", "127.0.0.1:0", "--data", data)
	line = append(line, args...)
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Stderr, p.cmd.Env = p.log, append(os.Environ(), suite.Environ(tb)...)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Kill(tb) })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			p.URL = m[1]
			go func() {
				for lines.Scan() { // so that the server never blocks on a full pipe
				}
			}()
			return p, true
		}
	}
	return p, false
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Wait waits for a process that ends by itself. It returns the exit code and the end of
// its log.
func (p *Process) Wait() (code int, log string) {
	_ = p.cmd.Wait() // the exit code says the same
	KeepCode(p.data)
	return p.cmd.ProcessState.ExitCode(), p.log.String()
}

// Log returns the end of the process's log.
func (p *Process) Log() string { return p.log.String() }

// Kill sends SIGKILL and waits for the end. It may be called twice.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // the error only says that the process was killed
	KeepCode(p.data)
	if tb.Failed() {
		tb.Logf("the server's log:\n%s", p.log)
	}
}

// End sends SIGKILL, while another goroutine waits for the process.
func (p *Process) End() { _ = p.cmd.Process.Kill() }

// KillSelf sends SIGKILL to this process. It does not return.
func KillSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// Interrupt sends SIGINT, like Ctrl-C, and returns the exit code.
func (p *Process) Interrupt(tb testing.TB) int {
	tb.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		tb.Fatal(err)
	}
	_ = p.cmd.Wait() // the exit code says the same
	KeepCode(p.data)
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal.
func (p *Process) Signal(tb testing.TB, signal os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		tb.Fatal(err)
	}
}

// tail keeps the end of the text written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf.Len() > 1<<16 {
		t.buf.Next(t.buf.Len() / 2)
	}
	return t.buf.Write(b)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}
