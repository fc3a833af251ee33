package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/sandbox/confine"
)

// The process that builds a module uses this protocol. Its standard input carries one
// line of JSON (the order) and the bytes of the module, and stays open as long as the
// server wants the result. Its standard output carries one line of JSON, the report. The
// process leaves its files in the folder named by the order.

// order says what to build.
type order struct {
	Folder string
	Digest string
	Tables int  // limit: entries of all tables together
	Bytes  int  // length of the module
	Lines  bool `json:",omitempty"` // as in Config.SourceLines
	// Polite lowers the scheduling priority of the process.
	Polite  bool `json:",omitempty"`
	Workers int  `json:",omitempty"` // threads that compile; 0 means 1
	Limits  host.Limits
}

// report is the result of a build. Problems are the module's own. Error is any other
// error; with Disk, it came from the file system.
type report struct {
	Problems []host.Problem `json:",omitempty"`
	Error    string         `json:",omitempty"`
	Disk     bool           `json:",omitempty"`
	Open     []string       `json:",omitempty"` // see enclose
}

// Problems of modules that need too many resources to build.
const (
	problemCompileTime  = "compile_time"
	problemCompileBytes = "compile_bytes"
	problemCompileFault = "compile_fault"
)

const (
	maxReportBytes = 1 << 20
	maxStderrBytes = 64 << 10
)

// The limit of a build is CPU time, so that a busy machine does not refuse a module.
// These constants bound the extra wall time that the process may take. Beyond that bound
// the client must upload again later.
const (
	wallFactor = 5
	leastWall  = 5 * time.Minute
)

// wallOf returns the bound on the wall time of the compiler's process.
func wallOf(l *host.Limits) time.Duration {
	return max(wallFactor*l.CompileTime, leastWall)
}

// sharing records who uses the sandbox, and reports whether more than one tenant does.
// Builds of a single tenant use all the cores they need, because nobody else waits for
// those cores.
func (s *Sandbox) sharing(tenant string) bool {
	if s.shared.Load() || tenant == "" {
		return true // the server's own builds run in the background
	}
	if only := s.only.Load(); only != nil {
		if *only != tenant {
			s.shared.Store(true)
		}
		return *only != tenant
	}
	name := tenant // the copy's address is stored; only the first call allocates
	return !s.only.CompareAndSwap(nil, &name) && s.sharing(tenant)
}

// buildElsewhere builds a tenant's module into a folder. The compiler's process does the
// work, within limits on its address space and its time.
//
// # Errors
//
// CodeInvalidPlugin with problems. CodeUnavailable: the machine gave the compiler too
// little CPU time.
func (s *Sandbox) buildElsewhere(tenant string, key moduleKey, wasm []byte, limits *host.Limits, folder string) error {
	if len(wasm) > limits.ModuleBytes { // the compiler would not even read the module
		_, problems := inspect(wasm, *limits)
		return invalid(problems...)
	}
	ctx, cancel := context.WithTimeout(s.base, cmp.Or(s.compilerWall, wallOf(limits)))
	defer cancel()
	line, err := json.Marshal(order{
		Folder: ".", Digest: key.digest, Tables: key.tables, Bytes: len(wasm), Lines: s.sourceLines, Limits: *limits,
		Polite: s.sharing(tenant), Workers: max(1, runtime.GOMAXPROCS(0)/max(1, s.building.Running())),
	})
	if err != nil {
		return fmt.Errorf("encode the compiler's order: %w", err)
	}
	cmd := exec.CommandContext(ctx, s.compiler[0])
	cmd.Args, cmd.Dir = s.compiler[1:], folder // an empty folder, and all that the process can see
	return s.runCompiler(ctx, cmd, limits, append(line, '\n'), wasm)
}

func (s *Sandbox) runCompiler(ctx context.Context, cmd *exec.Cmd, limits *host.Limits, line, wasm []byte) error {
	stdout, stderr := &capped{max: maxReportBytes}, &capped{max: maxStderrBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = []string{} // the process must not learn anything of the server
	cmd.WaitDelay = time.Second
	confine.Apart(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the compiler: %w", err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil { // no time is left
			return s.compilerFault(ctx, limits, spent{}, "", err)
		}
		return fmt.Errorf("start the compiler: %w", err)
	}
	_, writeErr := io.Copy(stdin, io.MultiReader(bytes.NewReader(line), bytes.NewReader(wasm)))
	waitErr := cmd.Wait() // closes stdin after the process has ended
	took := spent{wall: time.Since(began)}
	if p := cmd.ProcessState; p != nil {
		took.cpu = p.UserTime() + p.SystemTime()
	}
	s.log.Debug("the compiler's process ended", "cpu", took.cpu, "took", took.wall)
	var r report
	if err := json.Unmarshal(stdout.b.Bytes(), &r); err == nil && waitErr == nil {
		if len(r.Open) > 0 {
			s.unenclosed.Do(func() {
				s.log.Warn("the compiler's process keeps privileges that it does not need", "open", strings.Join(r.Open, "; "))
			})
		}
		switch {
		case len(r.Problems) > 0:
			return invalid(r.Problems...)
		case r.Disk:
			return fmt.Errorf("the compiler: %w: %s", errDisk, oneLine(r.Error))
		case r.Error != "":
			return fmt.Errorf("the compiler: %s", oneLine(r.Error))
		case took.cpu > limits.CompileTime: // the system's own limit counts in whole seconds
			return tooSlow(limits)
		}
		return nil
	}
	if state := cmd.ProcessState; ctx.Err() == nil && s.base.Err() == nil && confine.Killed(state) && took.cpu < limits.CompileTime {
		s.log.Warn("the compiler's process was killed, as the system does when memory is short", "error", waitErr)
		return &host.Error{Code: host.CodeUnavailable, Message: "the server could not compile the module at the moment: the compiler was killed, perhaps because memory was short", Cause: waitErr}
	}
	return s.compilerFault(ctx, limits, took, stderr.b.String(), errors.Join(waitErr, writeErr))
}

// spent is the time that a process took.
type spent struct{ cpu, wall time.Duration }

// tooSlow is the error of a module that takes too long to compile.
func tooSlow(limits *host.Limits) error {
	return invalid(host.Problem{Code: problemCompileTime, Message: fmt.Sprintf(
		"compiling the module takes more than %v of CPU time (limit compile_time): split large functions, or the module", limits.CompileTime)})
}

// outOfMemory are texts that a process prints when it runs out of address space. Starting
// a thread needs address space too.
var outOfMemory = []string{"out of memory", "cannot allocate memory", "failed to reserve", "failed to create new OS thread", "pthread_create"}

// compilerFault is the error of a compiler that ended without a report: the module was
// too much for the compiler.
func (s *Sandbox) compilerFault(ctx context.Context, limits *host.Limits, took spent, said string, err error) error {
	overCPU := strings.Contains(said, "SIGXCPU") || err != nil && strings.Contains(err.Error(), "cpu time limit")
	noMemory := slices.ContainsFunc(outOfMemory, func(text string) bool { return strings.Contains(said, text) })
	switch {
	case s.base.Err() != nil:
		return errClosed
	case overCPU || took.cpu > limits.CompileTime:
		return tooSlow(limits)
	case ctx.Err() != nil:
		return &host.Error{Code: host.CodeUnavailable, RetryAfter: retryBuild, Cause: err, Message: fmt.Sprintf(
			"the machine is too busy to compile the module: the compiler got %v of CPU in %v. Nothing is wrong with the module; upload it again later",
			took.cpu.Round(time.Millisecond), took.wall.Round(time.Millisecond))}
	case noMemory:
		return invalid(host.Problem{Code: problemCompileBytes, Message: fmt.Sprintf(
			"compiling the module takes more than %d bytes of address space (limit compile_bytes): split large functions, or the module", limits.CompileBytes)})
	}
	s.log.Error("the compiler's process failed", "error", err, "said", oneLine(said))
	return invalid(host.Problem{Code: problemCompileFault, Message: "the compiler failed on the module; the server's log has the reason"})
}

// retryBuild is how long a client waits before it uploads again a module that the machine
// had no time for.
const retryBuild = time.Minute

// capped keeps the first bytes written to it.
type capped struct {
	b   bytes.Buffer
	max int
}

// Write implements io.Writer.
func (w *capped) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), w.max-w.b.Len())])
	return len(p), nil
}

// CompileMain is the main function of the compiler's process: it builds the module that
// in asks for and writes a report to out. First it limits its own address space and CPU
// time. Where the system allows, it also gives up all files outside the order's folder,
// starting programs, and the network. It ends the process if in ends before the build is
// done, because then nobody waits for the result.
//
// # Errors
//
// An error if in does not carry what a [Sandbox] with [Config.Compiler] writes, or if the
// limits cannot be set. A module that cannot be built is reported to out and is not an
// error.
func CompileMain(in io.Reader, out io.Writer, exit func(code int)) error {
	r := bufio.NewReaderSize(in, 64<<10)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	limits := complete(o.Limits, limit.Default())
	if o.Bytes < 0 || o.Bytes > limits.ModuleBytes {
		return fmt.Errorf("the order has a module of %d bytes, at most %d are allowed", o.Bytes, limits.ModuleBytes)
	}
	if err := confine.Limit(uint64(limits.CompileBytes), limits.CompileTime, o.Polite); err != nil {
		return err
	}
	confine.GoFirst()
	open := confine.Enclose(o.Folder)
	debug.SetMemoryLimit(int64(limits.CompileBytes) / 2)
	wasm := make([]byte, o.Bytes)
	if _, err := io.ReadFull(r, wasm); err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	go func() {
		_, _ = r.ReadByte()
		exit(1)
	}()
	made := o.fill(wasm, limits)
	made.Open = open
	if err := json.NewEncoder(out).Encode(made); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// fill carries out the order.
func (o *order) fill(wasm []byte, limits host.Limits) report {
	// Fuel and the CPU time of the process bound the description too. The wall clock must
	// not refuse a module on a busy machine.
	limits.DescribeTime = max(limits.DescribeTime, wallOf(&limits))
	s, err := New(context.Background(), Config{Limits: limits, Spares: -1, SourceLines: o.Lines})
	if err != nil {
		return report{Error: err.Error()}
	}
	s.workers = o.Workers
	err = s.buildInto(moduleKey{o.Digest, o.Tables}, wasm, &limits, o.Folder)
	if err = errors.Join(err, s.Close(context.Background())); err == nil {
		return report{}
	}
	var e *host.Error
	if errors.As(err, &e) && e.Code == host.CodeInvalidPlugin {
		return report{Problems: e.Problems}
	}
	return report{Error: err.Error(), Disk: ofDisk(err)}
}
