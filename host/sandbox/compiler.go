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
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/sandbox/codefiles"
	"github.com/weftrun/weft/host/sandbox/confine"
)

// The process that builds a module uses this protocol. Its standard input carries one
// line of JSON (the order) and the bytes of the module, and stays open as long as the
// server wants the result. Its standard output carries lines of JSON, the last of which
// reports the end. The process leaves its files in the folder named by the order.
//
// The process that builds a module does not compile. It leaves the skeleton in its folder
// and writes a report that asks for code. The server copies the code into the folder, and
// answers with an empty line. If the server does not have the code, another process
// compiles the skeleton first (see code.go for the reason).

// order says what to build.
type order struct {
	Folder string
	// Skeleton is set if the bytes are a rewritten module to compile.
	Skeleton bool   `json:",omitempty"`
	Digest   string // of the module, or of the skeleton
	Tables   int    // limit: entries of all tables together
	Bytes    int    // length of the module or skeleton
	Lines    bool   `json:",omitempty"` // as in Config.SourceLines, or in the key of the code
	// Polite lowers the scheduling priority of the process.
	Polite  bool `json:",omitempty"`
	Workers int  `json:",omitempty"` // threads that compile; 0 means 1
	Limits  host.Limits
}

// report is the result of a build. Problems are the module's own. Error is any other
// error; with Disk, it came from the file system.
type report struct {
	Code     *codeAsked     `json:",omitempty"` // not the end: the process waits for code
	Problems []host.Problem `json:",omitempty"`
	Error    string         `json:",omitempty"`
	Disk     bool           `json:",omitempty"`
	Open     []string       `json:",omitempty"` // see enclose
}

// codeAsked asks for the code of the skeleton in the folder.
type codeAsked struct {
	Lines bool `json:",omitempty"`
}

// mostAsked is how often a process may ask for code: for the skeleton, and for the module
// with its data if the image is too large.
const mostAsked = 2

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
	var inner spent // of the processes that compile
	asked := 0
	serve := func(ask *codeAsked) error {
		if asked++; asked > mostAsked {
			return errors.New("the compiler asks for code again and again")
		}
		took, err := s.serveCode(tenant, ask, limits, folder)
		inner.cpu += took.cpu
		return err
	}
	took, err := s.runCompiler(tenant, order{Digest: key.digest, Tables: key.tables, Lines: s.sourceLines}, limits, wasm, folder, serve)
	if err != nil {
		return err
	}
	if took.cpu+inner.cpu > limits.CompileTime { // the system's own limit counts in whole seconds
		return tooSlow(limits)
	}
	if err := os.RemoveAll(filepath.Join(folder, codeFolder)); err != nil {
		return fmt.Errorf("remove a copy of compiled code: %w", err)
	}
	return nil
}

// serveCode puts the code of the skeleton in a folder into the folder. The folder is that
// of another process, which may be hostile.
func (s *Sandbox) serveCode(tenant string, ask *codeAsked, limits *host.Limits, folder string) (took spent, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return took, fmt.Errorf("open the folder of a build: %w", err)
	}
	defer func() { _ = root.Close() }()
	skeleton, err := codefiles.ReadRegular(root, skeletonFile, limits.CompileBytes)
	if err != nil {
		return took, err
	}
	if err := root.Remove(skeletonFile); err != nil {
		return took, fmt.Errorf("remove the rewritten module: %w", err)
	}
	key := codeKey{rewrittenDigest(skeleton), ask.Lines && s.sourceLines}
	at := s.codes.use(key)
	at.making.Lock()
	defer func() {
		at.making.Unlock()
		s.closeCode(s.codes.leave(key))
	}()
	err = s.keepCode(key, skeleton, func(folder string) error {
		took, err = s.runCompiler(tenant, order{Skeleton: true, Digest: key.digest, Lines: key.lines}, limits, skeleton, folder, nil)
		if err == nil && took.cpu > limits.CompileTime {
			err = tooSlow(limits)
		}
		return err
	})
	if err == nil {
		err = codefiles.Copy(root, codeFolder, filepath.Join(s.codeFolder(key), codeFolder))
	}
	return took, err
}

// runCompiler runs the compiler's process on an order and its bytes, in an empty folder,
// which is all that the process can see. serve answers its requests for code.
//
// # Errors
//
// Those of buildElsewhere.
func (s *Sandbox) runCompiler(tenant string, o order, limits *host.Limits, wasm []byte, folder string, serve func(*codeAsked) error) (took spent, err error) {
	ctx, cancel := context.WithTimeout(s.base, cmp.Or(s.compilerWall, wallOf(limits)))
	defer cancel()
	o.Folder, o.Bytes, o.Limits = ".", len(wasm), *limits
	o.Polite, o.Workers = s.sharing(tenant), max(1, runtime.GOMAXPROCS(0)/max(1, s.building.Running()))
	line, err := json.Marshal(o)
	if err != nil {
		return took, fmt.Errorf("encode the compiler's order: %w", err)
	}
	cmd := exec.CommandContext(ctx, s.compiler[0])
	cmd.Args, cmd.Dir = s.compiler[1:], folder
	stderr := &capped{max: maxStderrBytes}
	cmd.Stderr = stderr
	cmd.Env = []string{} // the process must not learn anything of the server
	cmd.WaitDelay = time.Second
	confine.Apart(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return took, fmt.Errorf("start the compiler: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return took, fmt.Errorf("start the compiler: %w", err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil { // no time is left
			return took, s.compilerFault(ctx, limits, took, "", err)
		}
		return took, fmt.Errorf("start the compiler: %w", err)
	}
	_, writeErr := io.Copy(stdin, io.MultiReader(bytes.NewReader(append(line, '\n')), bytes.NewReader(wasm)))
	r, reportErr := readReports(stdout, stdin, serve)
	if reportErr != nil {
		cancel()
	}
	waitErr := cmd.Wait() // closes stdin after the process has ended
	took.wall = time.Since(began)
	if p := cmd.ProcessState; p != nil {
		took.cpu = p.UserTime() + p.SystemTime()
	}
	s.log.Debug("the compiler's process ended", "cpu", took.cpu, "took", took.wall, "skeleton", o.Skeleton)
	if reportErr != nil {
		return took, reportErr
	}
	if r != nil && waitErr == nil {
		return took, s.reported(r)
	}
	if state := cmd.ProcessState; ctx.Err() == nil && s.base.Err() == nil && confine.Killed(state) && took.cpu < limits.CompileTime {
		s.log.Warn("the compiler's process was killed, as the system does when memory is short", "error", waitErr)
		return took, &host.Error{Code: host.CodeUnavailable, Message: "the server could not compile the module at the moment: the compiler was killed, perhaps because memory was short", Cause: waitErr}
	}
	return took, s.compilerFault(ctx, limits, took, stderr.b.String(), errors.Join(waitErr, writeErr))
}

// readReports reads reports to the last one, and has serve answer those that ask for
// code. The report is nil if the process ended without one.
//
// # Errors
//
// The error of serve. The caller then ends the process.
func readReports(stdout io.Reader, stdin io.Writer, serve func(*codeAsked) error) (*report, error) {
	in := json.NewDecoder(io.LimitReader(stdout, maxReportBytes))
	for {
		var r report
		if in.Decode(&r) != nil {
			return nil, nil
		}
		if r.Code == nil || serve == nil {
			_, _ = io.Copy(io.Discard, stdout)
			return &r, nil
		}
		if err := serve(r.Code); err != nil {
			return nil, err
		}
		if _, err := stdin.Write([]byte{'\n'}); err != nil {
			return nil, nil // it has ended
		}
	}
}

// reported returns the error of a last report.
func (s *Sandbox) reported(r *report) error {
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
	}
	return nil
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
	most := limits.ModuleBytes
	if o.Skeleton { // it holds the host's checks, too
		most = limits.CompileBytes
	}
	if o.Bytes < 0 || o.Bytes > most {
		return fmt.Errorf("the order has a module of %d bytes, at most %d are allowed", o.Bytes, most)
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
	answers := make(chan struct{})
	go func() {
		for {
			if _, err := r.ReadByte(); err != nil {
				exit(1)
				return
			}
			answers <- struct{}{}
		}
	}()
	reports := json.NewEncoder(out)
	made := o.fill(wasm, limits, func(ask codeAsked) error {
		if err := reports.Encode(report{Code: &ask}); err != nil {
			return fmt.Errorf("ask for code: %w", err)
		}
		<-answers
		return nil
	})
	made.Open = open
	if err := reports.Encode(made); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// fill carries out the order. ask asks for the code of the skeleton in the folder, and
// returns when the code is there.
func (o *order) fill(wasm []byte, limits host.Limits, ask func(codeAsked) error) report {
	// Fuel and the CPU time of the process bound the description too. The wall clock must
	// not refuse a module on a busy machine.
	limits.DescribeTime = max(limits.DescribeTime, wallOf(&limits))
	s, err := New(context.Background(), Config{Limits: limits, Spares: -1, SourceLines: o.Lines})
	if err != nil {
		return report{Error: err.Error()}
	}
	s.workers = o.Workers
	s.coder = func(key codeKey, skeleton []byte) (*code, error) {
		if err := os.WriteFile(filepath.Join(o.Folder, skeletonFile), skeleton, 0o600); err != nil {
			return nil, fmt.Errorf("leave the rewritten module: %w", err)
		}
		if err := ask(codeAsked{key.lines}); err != nil {
			return nil, err
		}
		return s.compile(key, skeleton, filepath.Join(o.Folder, codeFolder))
	}
	if o.Skeleton {
		var c *code
		if c, err = s.compileNew(codeKey{o.Digest, o.Lines}, wasm, filepath.Join(o.Folder, codeFolder)); err == nil {
			err = c.close()
		}
	} else {
		err = s.buildInto(moduleKey{o.Digest, o.Tables}, wasm, &limits, o.Folder)
	}
	if err = errors.Join(err, s.Close(context.Background())); err == nil {
		return report{}
	}
	var e *host.Error
	if errors.As(err, &e) && e.Code == host.CodeInvalidPlugin {
		return report{Problems: e.Problems}
	}
	return report{Error: err.Error(), Disk: ofDisk(err)}
}
