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
)

// The process that builds a module speaks in this way: on its standard input
// come a line of JSON, the order, and the module's bytes; then the input stays
// open for as long as somebody wants the result. On its standard output goes one
// line of JSON, the report. Its files are in the folder that the order names.

// order is what is to be built.
type order struct {
	Folder string
	Digest string
	Tables int  // entries of all tables
	Bytes  int  // of the module
	Lines  bool `json:",omitempty"` // as in Config.SourceLines
	// Polite: whatever else wants a core goes first.
	Polite  bool `json:",omitempty"`
	Workers int  `json:",omitempty"` // threads that compile; 0: one
	Limits  host.Limits
}

// report is how it went: Problems are the module's own; Error is not, and with Disk
// it is what the file system said.
type report struct {
	Problems []host.Problem `json:",omitempty"`
	Error    string         `json:",omitempty"`
	Disk     bool           `json:",omitempty"`
	Open     []string       `json:",omitempty"` // see enclose
}

// Problems of modules that take too much to build.
const (
	problemCompileTime  = "compile_time"
	problemCompileBytes = "compile_bytes"
	problemCompileFault = "compile_fault"
)

const (
	maxReportBytes = 1 << 20
	maxStderrBytes = 64 << 10
)

// The limit of a build is CPU time, so that a busy machine refuses no module. The process
// may take this much more by the clock before its upload is put off.
const (
	wallFactor = 5
	leastWall  = 5 * time.Minute
)

// wallOf bounds the time that the compiler's process takes by the clock.
func wallOf(l *host.Limits) time.Duration {
	return max(wallFactor*l.CompileTime, leastWall)
}

// sharing notes who uses the sandbox, and reports whether several tenants do. Builds for
// the only one take the cores that they need: nobody else waits for these.
func (s *Sandbox) sharing(tenant string) bool {
	if s.shared.Load() || tenant == "" {
		return true // the server's own builds are in the background
	}
	if only := s.only.Load(); only != nil {
		if *only != tenant {
			s.shared.Store(true)
		}
		return *only != tenant
	}
	name := tenant // its address: a call that is not the first one allocates nothing
	return !s.only.CompareAndSwap(nil, &name) && s.sharing(tenant)
}

// buildElsewhere has a tenant's module built into a folder by the compiler's process,
// with limits on its address space and its time.
//
// # Errors
//
// CodeInvalidPlugin with problems. CodeUnavailable: the machine gave the compiler too
// little CPU time.
func (s *Sandbox) buildElsewhere(tenant string, key moduleKey, wasm []byte, limits *host.Limits, folder string) error {
	if len(wasm) > limits.ModuleBytes { // the compiler would not even read it
		_, problems := inspect(wasm, *limits)
		return invalid(problems...)
	}
	ctx, cancel := context.WithTimeout(s.base, cmp.Or(s.compilerWall, wallOf(limits)))
	defer cancel()
	line, err := json.Marshal(order{
		Folder: ".", Digest: key.digest, Tables: key.tables, Bytes: len(wasm), Lines: s.sourceLines, Limits: *limits,
		Polite: s.sharing(tenant), Workers: max(1, runtime.GOMAXPROCS(0)/max(1, s.building.running())),
	})
	if err != nil {
		return fmt.Errorf("encode the compiler's order: %w", err)
	}
	cmd := exec.CommandContext(ctx, s.compiler[0])
	cmd.Args, cmd.Dir = s.compiler[1:], folder // which is empty, and all that it sees
	return s.runCompiler(ctx, cmd, limits, append(line, '\n'), wasm)
}

func (s *Sandbox) runCompiler(ctx context.Context, cmd *exec.Cmd, limits *host.Limits, line, wasm []byte) error {
	stdout, stderr := &capped{max: maxReportBytes}, &capped{max: maxStderrBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = []string{} // it is to know nothing of the server
	cmd.WaitDelay = time.Second
	apart(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the compiler: %w", err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil { // there is no time left
			return s.compilerFault(ctx, limits, spent{}, "", err)
		}
		return fmt.Errorf("start the compiler: %w", err)
	}
	_, writeErr := io.Copy(stdin, io.MultiReader(bytes.NewReader(line), bytes.NewReader(wasm)))
	waitErr := cmd.Wait() // closes stdin, once the process has ended
	took := spent{wall: time.Since(began)}
	if p := cmd.ProcessState; p != nil {
		took.cpu = p.UserTime() + p.SystemTime()
	}
	s.log.Debug("the compiler's process ended", "cpu", took.cpu, "took", took.wall)
	var r report
	if err := json.Unmarshal(stdout.b.Bytes(), &r); err == nil && waitErr == nil {
		if len(r.Open) > 0 {
			s.unenclosed.Do(func() {
				s.log.Warn("the system cannot take from the compiler's process all that it does not need", "open", strings.Join(r.Open, "; "))
			})
		}
		switch {
		case len(r.Problems) > 0:
			return invalid(r.Problems...)
		case r.Disk:
			return fmt.Errorf("the compiler: %w: %s", errDisk, oneLine(r.Error))
		case r.Error != "":
			return fmt.Errorf("the compiler: %s", oneLine(r.Error))
		case took.cpu > limits.CompileTime: // the system's own limit counts whole seconds
			return tooSlow(limits)
		}
		return nil
	}
	if state := cmd.ProcessState; ctx.Err() == nil && s.base.Err() == nil && killed(state) && took.cpu < limits.CompileTime {
		s.log.Warn("the compiler's process was killed, as the system does when memory is short", "error", waitErr)
		return &host.Error{Code: host.CodeUnavailable, Message: "the server could not compile the module at the moment: the compiler was killed, perhaps for want of memory", Cause: waitErr}
	}
	return s.compilerFault(ctx, limits, took, stderr.b.String(), errors.Join(waitErr, writeErr))
}

// spent is what a process took.
type spent struct{ cpu, wall time.Duration }

// tooSlow is the error of a module that takes the compiler too long.
func tooSlow(limits *host.Limits) error {
	return invalid(host.Problem{Code: problemCompileTime, Message: fmt.Sprintf(
		"compiling the module takes more than %v of CPU time (limit compile_time): split large functions, or the module", limits.CompileTime)})
}

// outOfMemory is what a process without address space says, of which a thread
// needs some too.
var outOfMemory = []string{"out of memory", "cannot allocate memory", "failed to reserve", "failed to create new OS thread", "pthread_create"}

// compilerFault is the error of a compiler that ended without a report: what it
// was given was too much for it.
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
	return invalid(host.Problem{Code: problemCompileFault, Message: "the compiler cannot cope with the module; the server's log says more"})
}

// retryBuild is when to upload a module again for which the machine had no time.
const retryBuild = time.Minute

// capped keeps the first bytes of what is written to it.
type capped struct {
	b   bytes.Buffer
	max int
}

// Write implements io.Writer.
func (w *capped) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), w.max-w.b.Len())])
	return len(p), nil
}

// CompileMain is the compiler's process: it builds the one module that in asks
// for, and reports to out. It limits its own address space and CPU time first, gives up
// all files but those of the order's folder, programs and the network where the system can,
// and ends the process when in ends before it is done: then nobody waits.
//
// # Errors
//
// When in is not what a [Sandbox] with [Config.Compiler] writes, or the limits
// cannot be set. A module that cannot be built is no error.
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
	if err := confine(uint64(limits.CompileBytes), limits.CompileTime, o.Polite); err != nil {
		return err
	}
	goFirst()
	open := enclose(o.Folder)
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

// fill does what the order says.
func (o *order) fill(wasm []byte, limits host.Limits) report {
	// Fuel and the CPU time of the process bound the description too: the clock must not
	// refuse a module on a busy machine.
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
