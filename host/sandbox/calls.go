package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/extism"
	"github.com/weftrun/weft/host/missing"
	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasi"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// hostFunc is one import of weft:v1 or of Extism.
type hostFunc struct {
	is    wasmbin.FuncType
	serve func(g *guest, args []uint64)
}

// imports are the functions of weft:v1.
var imports = makeImports()

func makeImports() map[abi.Import]hostFunc {
	i32s := func(n int) string { return string(bytes.Repeat([]byte{api.ValueTypeI32}, n)) }
	all := map[abi.Import]hostFunc{
		abi.ImportInput:    {wasmbin.FuncType{Params: i32s(3)}, serveInput},
		abi.ImportResponse: {wasmbin.FuncType{Params: i32s(3)}, serveResponse},
		abi.ImportOutput:   {wasmbin.FuncType{Params: i32s(2)}, serveOutput},
	}
	for _, im := range abi.HostCalls {
		all[im] = hostFunc{wasmbin.FuncType{Params: i32s(2), Results: string([]byte{api.ValueTypeI64})}, func(g *guest, args []uint64) {
			args[0] = g.hostCall(im, uint32(args[0]), uint32(args[1]))
		}}
	}
	return all
}

// importNames returns the names of the imports of weft:v1, sorted.
func importNames() []string {
	names := make([]string, 0, len(imports))
	for im := range imports {
		names = append(names, string(im))
	}
	slices.Sort(names)
	return names
}

// serveImports defines, in the runtime, the imports that a module asks for and the
// meter's imports, and no others.
func serveImports(ctx context.Context, r wazero.Runtime, asked []api.FunctionDefinition) error {
	names := map[string][]string{}
	for _, f := range asked {
		if module, name, _ := f.Import(); !slices.Contains(names[module], name) {
			names[module] = append(names[module], name)
		}
	}
	if asked := names[wasi.ModuleName]; len(asked) > 0 {
		hostOf := func(ctx context.Context) wasi.Host {
			g := guestOf(ctx)
			g.charge(wasiFuel)
			return g
		}
		if err := wasi.Instantiate(ctx, r, asked, hostOf); err != nil {
			return err
		}
	}
	if err := serveMeter(ctx, r); err != nil {
		return err
	}
	if err := serveFrom(ctx, r, abi.ImportModule, names[abi.ImportModule], imports); err != nil {
		return err
	}
	return serveFrom(ctx, r, extism.HostModule, names[extism.HostModule], extismImports)
}

// serveFrom defines the functions of one module that are asked for.
func serveFrom[N ~string](ctx context.Context, r wazero.Runtime, module string, asked []string, functions map[N]hostFunc) error {
	if len(asked) == 0 {
		return nil
	}
	builder := r.NewHostModuleBuilder(module)
	for _, name := range asked {
		f := functions[N(name)]
		serve := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			f.serve(guestOf(ctx), stack)
		})
		builder.NewFunctionBuilder().WithGoModuleFunction(serve, []byte(f.is.Params), []byte(f.is.Results)).Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("instantiate %s: %w", module, err)
	}
	return nil
}

// serveMeter defines the functions that rewritten modules import.
func serveMeter(ctx context.Context, r wazero.Runtime) error {
	builder := r.NewHostModuleBuilder(rewrite.MeterModule)
	for name, serve := range map[string]func(*guest){rewrite.FuncRefuel: (*guest).refuel, rewrite.FuncOverflow: (*guest).overflow} {
		f := api.GoModuleFunc(func(ctx context.Context, instance api.Module, _ []uint64) {
			g := guestOf(ctx)
			g.meter.bind(instance) // a start function runs before instance is set
			serve(g)
		})
		builder.NewFunctionBuilder().WithGoModuleFunction(f, nil, nil).Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("instantiate %s: %w", rewrite.MeterModule, err)
	}
	return nil
}

// giveUp unwinds the guest with a failure of the guest's own.
func (g *guest) giveUp(code, format string, args ...any) {
	g.fail = &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
	panic(unwound)
}

// forbidden unwinds a guest that calls, outside weft_step, a function that only weft_step
// may call.
func (g *guest) forbidden(name abi.Import) {
	g.giveUp(codeForbidden, "%s called %s.%s; before weft_step a guest may call output (in %s), log and WASI only",
		g.phase.entry(), abi.ImportModule, name, abi.ExportDescribe)
}

// region returns a range of the guest's memory. A range out of bounds traps.
func (g *guest) region(what abi.Import, ptr, length uint32) []byte {
	view, ok := g.mem.Read(ptr, length)
	if !ok {
		g.giveUp(codeTrap, "%s: %d bytes at address %d are out of range: the memory has %d bytes", what, length, ptr, g.mem.Size())
	}
	return view
}

// copyOut serves input and response: it copies src[off:off+length] to address dst.
func (g *guest) copyOut(what abi.Import, src []byte, args []uint64) {
	dst, off, length := uint32(args[0]), uint32(args[1]), uint32(args[2])
	if uint64(off)+uint64(length) > uint64(len(src)) {
		g.giveUp(codeTrap, "%s: %d bytes from offset %d are out of range: there are %d", what, length, off, len(src))
	}
	g.charge(bytesFuel(int(length)))
	rewrite.Copy(g.region(what, dst, length), src[off:])
}

// clone copies a view of the guest's memory, into room if the view fits.
func clone(view, room []byte) []byte {
	if cap(room) < len(view) {
		room = make([]byte, len(view))
	}
	room = room[:len(view)]
	rewrite.Copy(room, view)
	return room
}

func serveInput(g *guest, args []uint64) {
	if g.phase != phaseStep {
		g.forbidden(abi.ImportInput)
	}
	g.copyOut(abi.ImportInput, g.input, args)
}

func serveResponse(g *guest, args []uint64) {
	g.copyOut(abi.ImportResponse, g.response, args)
}

func serveOutput(g *guest, args []uint64) {
	if g.phase == phaseInitialize {
		g.forbidden(abi.ImportOutput)
	}
	ptr, length := uint32(args[0]), uint32(args[1])
	if g.outputs++; g.outputs > 1 {
		g.giveUp(codeOutput, "%s called output twice", g.phase.entry())
	}
	if limit := g.limits.OutputBytes; uint64(length) > uint64(limit) {
		g.giveUp(codeLimit, "the output has %d bytes, at most %d are allowed (limit output_bytes)", length, limit)
	}
	view := g.region(abi.ImportOutput, ptr, length)
	g.charge(bytesFuel(len(view)))
	g.output = clone(view, g.buffer)
}

// hostCall serves an import of abi.HostCalls and returns its result.
func (g *guest) hostCall(im abi.Import, ptr, length uint32) uint64 {
	if g.phase != phaseStep && im != abi.ImportLog {
		g.forbidden(im)
	}
	if g.counts.calls++; g.counts.calls > g.limits.HostCalls {
		g.giveUp(codeLimit, "more than %d host calls in one invocation (limit host_calls)", g.limits.HostCalls)
	}
	g.checkCallBytes(im, "request", int64(length))
	if im == abi.ImportLog {
		g.countLog(int(length), 1)
	}
	view := g.region(im, ptr, length)
	if g.phase != phaseStep {
		g.response = abi.Null // logged text belongs to no invocation
		return uint64(abi.StatusOK)<<32 | uint64(len(g.response))
	}
	response, status := g.answer(im, clone(view, nil))
	return uint64(status)<<32 | uint64(len(response))
}

// answer passes a request to the host and returns the answer. The callee owns request
// from now on.
func (g *guest) answer(im abi.Import, request []byte) ([]byte, abi.Status) {
	g.meter.charge(callFuel + bytesFuel(len(request)))
	g.refuel() // each call asks the token first
	g.flushPrints()
	response, status, clock, err := g.metered(im, request)
	if errors.Is(err, errOverdue) {
		g.giveUp(codeDeadline, "%s held a core for more than %v (limit %s)", g.entry(), g.meter.limit, g.phase.timeLimit())
	}
	if err != nil {
		g.unwind(err)
	}
	g.checkCallBytes(im, "response", int64(len(response)))
	g.response, g.clock = response, max(g.clock, clock)
	if g.meter.replaying && !g.replaying() {
		g.meter.live()
	}
	return response, status
}

// errOverdue ends a call when the guest has used up its time on a core.
var errOverdue = errors.New("the time on a core is up")

// metered makes a call and charges the guest for the work of the call.
func (g *guest) metered(im abi.Import, request []byte) ([]byte, abi.Status, int64, error) {
	calls, ok := g.calls.(host.Metered)
	if !ok {
		return g.calls.Call(im, request, g.clock)
	}
	if g.look == nil {
		g.look = g.looked
	}
	calls.Afford(g.meter.remaining(), g.look)
	response, status, clock, err := g.calls.Call(im, request, g.clock)
	if g.worked {
		g.worked = false
		g.token.(host.Worker).Worked(calls.Charged())
	}
	g.meter.charge(calls.Charged())
	return response, status, clock, err
}

// looked is called while the work of a call proceeds. It ends the call of a guest that
// must end, and yields the core to others.
func (g *guest) looked(units uint64) error {
	if err := g.call.Err(); err != nil {
		return err
	}
	if g.meter.overdue() {
		return errOverdue
	}
	w, ok := g.token.(host.Worker)
	if !ok {
		return nil
	}
	g.worked = true
	began := time.Now()
	err := w.Work(units)
	g.meter.waited += time.Since(began)
	return err
}

// unwind leaves the guest with an error that is not the guest's own.
func (g *guest) unwind(err error) {
	g.stop = err
	panic(unwound)
}

func (g *guest) checkCallBytes(im abi.Import, what string, n int64) {
	if limit := g.limits.CallBytes; n > int64(limit) {
		g.giveUp(codeLimit, "the %s of %s has %d bytes, at most %d are allowed (limit call_bytes)", what, im, n, limit)
	}
}

// countLog counts text written to the log against the limits.
func (g *guest) countLog(size, lines int) {
	g.counts.logBytes += size
	g.counts.logLines += lines
	if limit := g.limits.LogBytes; g.counts.logBytes > limit {
		g.giveUp(codeLimit, "more than %d bytes of log in one invocation (limit log_bytes)", limit)
	}
	if limit := g.limits.LogLines; g.counts.logLines > limit {
		g.giveUp(codeLimit, "more than %d lines of log in one invocation (limit log_lines)", limit)
	}
}

// The methods below implement wasi.Host on guest.

// Clock implements wasi.Host.
func (g *guest) Clock() int64 { return g.clock }

// Poll implements wasi.Host.
func (g *guest) Poll(until int64) {
	if g.counts.polls++; g.counts.polls > maxPolls {
		g.giveUp(codeLimit, "poll_oneoff was called more than %d times in one invocation, and timers and sleeps of the language wait by it (limit polls, which is not a setting)", maxPolls)
	}
	if until-g.clock >= int64(shortestSleep) {
		g.Lacks(missing.Sleep)
	}
	g.clock = max(g.clock, until)
}

// shortestSleep is the shortest poll that counts as an intended sleep: language runtimes
// poll for shorter times themselves.
const shortestSleep = time.Millisecond

// Lacks implements wasi.Host. It writes to the step's log, once, what to use instead.
func (g *guest) Lacks(m missing.Thing) {
	adviser, ok := g.calls.(host.Adviser)
	if !ok || g.phase != phaseStep || g.counts.lacked&(1<<m) != 0 {
		return
	}
	g.counts.lacked |= 1 << m
	g.flushPrints()
	adviser.Advise(m)
}

// Work implements wasi.Host.
func (g *guest) Work(items int) { g.charge(itemFuel * uint64(items)) }

// Random implements wasi.Host.
func (g *guest) Random(p []byte) {
	g.charge(16 * bytesFuel(len(p))) // about one nanosecond per byte
	for len(p) > 0 {
		n := min(len(p), rewrite.Piece)
		g.random.read(p[:n])
		p = p[n:]
	}
}

// Print implements wasi.Host.
func (g *guest) Print(fd uint32, text []byte) {
	lines := bytes.Count(text, []byte{'\n'})
	if g.prices == 0 {
		g.charge(bytesFuel(len(text)))
	} else {
		g.charge(printFuel + lineFuel*uint64(lines) + uint64(len(text)))
	}
	g.tail.write(text)
	g.countLog(len(text), lines)
	if g.phase == phaseStep {
		g.gather(fd, text)
	}
}

// printed holds text that the guest wrote to a file and that was not passed on yet:
// language runtimes write a line in pieces, some byte by byte.
type printed struct{ text []byte }

// maxGathered bounds the bytes kept of an unfinished line.
const maxGathered = 4 << 10

// gather passes printed text on as soon as a line, or maxGathered bytes of it, is
// complete.
func (g *guest) gather(fd uint32, text []byte) {
	if fd != 1 && fd != 2 {
		g.calls.Print(fd, text)
		return
	}
	g.flushPrint(3 - fd) // keeps the order of the two files
	p := &g.printed[fd-1]
	switch {
	case len(p.text) == 0 && len(text) > 0 && (len(text) >= maxGathered || text[len(text)-1] == '\n'):
		g.calls.Print(fd, text)
		return
	case len(p.text)+len(text) > maxGathered:
		g.flushPrint(fd)
		g.gather(fd, text)
		return
	}
	if p.text = append(p.text, text...); bytes.HasSuffix(p.text, []byte{'\n'}) {
		g.flushPrint(fd)
	}
}

func (g *guest) flushPrint(fd uint32) {
	if p := &g.printed[fd-1]; len(p.text) > 0 {
		g.calls.Print(fd, p.text)
		p.text = p.text[:0]
	}
}

// flushPrints passes on the gathered text: before a host call and at the end.
func (g *guest) flushPrints() {
	if g.phase == phaseStep && g.calls != nil {
		g.flushPrint(1)
		g.flushPrint(2)
	}
}

// Exit implements wasi.Host.
func (g *guest) Exit(code uint32) {
	if g.extism != nil {
		g.extismExit(code)
	}
	g.giveUp(codeTrap, "called proc_exit(%d), as os.Exit and process::exit do: return from the step, or return an error", code)
}
