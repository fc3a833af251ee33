package sandbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// phase says what a guest is doing, and so which imports it may call.
type phase uint8

const (
	phaseInitialize phase = iota // start function and _initialize
	phaseDescribe
	phaseStep
)

// entry is the export that runs in the phase.
func (p phase) entry() string {
	return [...]string{abi.ExportInitialize, abi.ExportDescribe, abi.ExportStep}[p]
}

// maxPolls bounds poll_oneoff: each moves the virtual clock at no cost.
const maxPolls = 100_000

// unwound is what the imports panic with to leave the guest. An ExitError
// passes through the compiler's runtime at a microsecond or two, where any
// other value has a stack trace formatted. It is known by its address; why is
// in the guest's stop and fail.
var unwound = sys.NewExitError(1)

// isUnwound tells whether a call ended because an import unwound the guest.
func isUnwound(err error) bool {
	var exit *sys.ExitError
	return errors.As(err, &exit) && exit == unwound
}

// guest is one instance of a module and what its present invocation knows. One
// goroutine uses it, and owns it: from the pool that made it, it passes to
// Invoke, which resets it for the pool or drops it.
type guest struct {
	module   *module
	instance api.Module
	mem      api.Memory
	linear   linear
	step     api.Function
	globals  []api.MutableGlobal // see mutable
	// unharmed says that the last call returned or was unwound by an import, so
	// that the instance can be used again once it is reset.
	unharmed bool

	watch *watch // of the present call
	stack [1]uint64

	phase  phase
	limits host.Limits
	calls  host.Calls // only in phaseStep
	token  host.Token // may be nil
	input  []byte
	clock  int64
	random rand.ChaCha8

	response []byte
	output   []byte
	outputs  int
	counts   counts
	tail     tail
	burnt    uint64
	mark     time.Duration // on watch: when the guest last began to compute

	stop error      // of calls or token: unwinds
	fail *abi.Error // the guest's own failure
}

// counts is what an invocation has used of its limits.
type counts struct{ calls, logBytes, logLines, polls int }

// call is the context of one call into an instance. The imports find the guest
// in it without a look-up. It is not changed, as the compiler's runtime looks at
// it from another goroutine, even a moment after the call has returned.
type call struct {
	context.Context // ends when the guest is to stop
	guest           *guest
	// values has the memory allocator while the instance is made, else it is
	// nil: nothing else looks for values, and none of the caller's are shown.
	values context.Context
}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if c.values == nil {
		return nil
	}
	return c.values.Value(key)
}

// guestOf finds the guest whose call it is.
func guestOf(ctx context.Context) *guest { return ctx.(*call).guest }

// begin readies a pristine guest for an invocation.
func (g *guest) begin(inv *host.Invocation) {
	g.phase, g.limits, g.linear.limit = phaseStep, inv.Limits, uint64(inv.Limits.MemoryBytes)
	g.calls, g.token, g.input, g.clock = inv.Calls, inv.Token, inv.Input, inv.Clock
	g.random.Seed(inv.Seed)
	g.response, g.output, g.outputs = nil, nil, 0
	g.counts, g.burnt = counts{}, 0
	g.linear.refused, g.stop, g.fail = false, nil, nil
	g.tail.reset()
}

// enter makes one call into the instance, which ends when it returns, is
// unwound, traps, or is stopped because ctx ended or its time was up.
func (g *guest) enter(ctx context.Context, limit time.Duration, do func(*call) error) error {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	g.watch, g.mark = newWatch(limit, cancel), 0
	g.watch.replaying.Store(g.replaying())
	defer g.watch.arm()()
	g.unharmed = false
	err := do(&call{Context: run, guest: g})
	g.burn()
	// An instance is closed, from another goroutine and maybe only after the
	// call has returned, if run ended during the call.
	g.unharmed = run.Err() == nil && (err == nil || isUnwound(err))
	return err
}

// replaying reports whether the next host call is answered from a record.
func (g *guest) replaying() bool {
	r, ok := g.calls.(host.Replayer)
	return ok && g.phase == phaseStep && r.Replaying()
}

// burn charges what the guest has computed since the last charge.
func (g *guest) burn() (since uint64) {
	now := g.watch.elapsed()
	since = units(now - g.mark)
	g.mark = now
	g.burnt += since
	return since
}

// invoke runs weft_step. The error is not the guest's.
func (g *guest) invoke(ctx context.Context, inv *host.Invocation) (host.InvocationResult, error) {
	g.begin(inv)
	g.stack[0] = uint64(len(inv.Input))
	err := g.enter(ctx, inv.Limits.WallTime, func(ctx *call) error {
		return g.step.CallWithStack(ctx, g.stack[:])
	})
	code := uint32(g.stack[0])
	fail, err := g.verdict(ctx, err)
	if err == nil && fail == nil {
		fail = g.checkOutput(code)
	}
	if err != nil || fail != nil {
		return host.InvocationResult{Err: fail, Fuel: g.burnt}, err
	}
	return host.InvocationResult{Output: g.output, Code: code, Fuel: g.burnt}, nil
}

// drop ends the guest's life and gives its memory back.
func (g *guest) drop() {
	if g.instance != nil {
		_ = g.instance.Close(context.Background()) // a closed one is no error
	}
	g.linear.release()
}
