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
	"github.com/weftrun/weft/host/sandbox/memory"
)

// phase is what a guest is doing. It decides which imports the guest may call.
type phase uint8

const (
	phaseInitialize phase = iota // the start function and _initialize
	phaseDescribe
	phaseStep
)

// entry returns the name of the export that runs in the phase.
func (p phase) entry() string {
	return [...]string{abi.ExportInitialize, abi.ExportDescribe, abi.ExportStep}[p]
}

// fuelLimit and timeLimit return the names of the phase's limits.
func (p phase) fuelLimit() string {
	if p == phaseStep {
		return "fuel"
	}
	return "describe_fuel"
}

func (p phase) timeLimit() string {
	if p == phaseStep {
		return "wall_time"
	}
	return "describe_time"
}

// maxPolls bounds calls of poll_oneoff, because each call moves the virtual clock without
// a charge.
const maxPolls = 100_000

// unwound is the value that imports panic with to leave the guest. It is an ExitError
// because the compiler's runtime passes one on in a microsecond or two, and formats a
// stack trace for any other value. Callers recognize unwound by its address. The guest's
// stop and fail hold the reason.
var unwound = sys.NewExitError(1)

// isUnwound reports whether a call ended because an import unwound the guest.
func isUnwound(err error) bool {
	var exit *sys.ExitError
	return errors.As(err, &exit) && exit == unwound
}

// guest is one instance of a module and the state of its present invocation. One
// goroutine owns and uses the guest. The pool that made the guest passes ownership to
// Invoke, which resets the guest for the pool or drops it.
type guest struct {
	module   *module
	instance api.Module
	mem      api.Memory
	linear   *memory.Linear
	step     api.Function
	globals  []api.MutableGlobal     // see mutable
	exports  map[string]api.Function // exports of an Extism plugin that were called before
	extism   *extismCall             // nil: not an Extism plugin
	// unharmed reports that the last call returned, trapped or was unwound by an import,
	// so that the instance can be used again after a reset.
	unharmed bool
	deep     bool // the last call used up its call depth

	meter meter
	call  call // the present call
	stack [1]uint64

	phase  phase
	limits host.Limits
	calls  host.Calls               // set in phaseStep only
	prices uint64                   // version of the prices
	token  host.Token               // may be nil
	look   func(units uint64) error // the method looked of this guest
	worked bool                     // looked was called during the present call
	input  []byte
	buffer []byte // space for the output
	clock  int64
	random chance

	response []byte
	output   []byte
	outputs  int
	counts   counts
	tail     tail
	printed  [2]printed // to files 1 and 2

	stop error      // error of calls, token or ctx that unwinds the guest
	fail *abi.Error // the guest's own failure
}

// chance is a stream of random bytes. It is seeded at the first draw, because most
// invocations draw none.
type chance struct {
	from   [32]byte
	begun  bool
	stream rand.ChaCha8
}

func (c *chance) seed(seed [32]byte) { c.from, c.begun = seed, false }

func (c *chance) read(p []byte) {
	if !c.begun {
		c.stream.Seed(c.from)
		c.begun = true
	}
	_, _ = c.stream.Read(p) // never fails
}

// counts is how much an invocation has used of each limit.
type counts struct {
	calls, logBytes, logLines, polls int
	lacked                           uint8 // one bit for each [missing.Thing] that the guest tried
}

// call is the context of one call into an instance. The imports find the guest in it
// without a look-up.
type call struct {
	context.Context // the caller's; its values are hidden
	guest           *guest
	// values carries the memory allocator while the instance is made, and is nil
	// otherwise. Nothing else reads values.
	values context.Context
}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if c.values == nil {
		return nil
	}
	return c.values.Value(key)
}

// guestOf returns the guest of a call's context.
func guestOf(ctx context.Context) *guest { return ctx.(*call).guest }

// begin prepares a pristine guest for an invocation.
func (g *guest) begin(inv *host.Invocation) {
	g.phase, g.limits = phaseStep, inv.Limits
	g.linear.SetLimit(uint64(inv.Limits.MemoryBytes))
	g.calls, g.token, g.input, g.buffer, g.clock = inv.Calls, inv.Token, inv.Input, inv.Buffer, inv.Clock
	g.prices = inv.Prices
	g.random.seed(inv.Seed)
	g.clean()
}

// clean clears the results of the last call.
func (g *guest) clean() {
	g.response, g.output, g.outputs = nil, nil, 0
	g.counts, g.stop, g.fail = counts{}, nil, nil
	for i := range g.printed {
		g.printed[i].text = g.printed[i].text[:0]
	}
	g.tail.reset()
}

// enter makes one call into the instance. The call ends when the code returns, traps or
// is unwound. An import unwinds the guest when it gives up. A refuel unwinds the guest
// when ctx ended, the time limit was reached or the fuel was spent.
func (g *guest) enter(ctx context.Context, fuel uint64, limit time.Duration, do func(*call) error) error {
	g.call.Context, g.call.guest = ctx, g
	g.unharmed, g.deep = false, false
	g.meter.replaying = g.replaying()
	g.meter.reset(fuel, limit, g.limits.CallDepth)
	err := do(&g.call)
	g.flushPrints()
	g.unharmed = err == nil || isUnwound(err) || isTrap(err)
	return err
}

// replaying reports whether the next host call is answered from a record.
func (g *guest) replaying() bool {
	if g.phase != phaseStep {
		return false
	}
	r, ok := g.calls.(host.Replayer)
	return ok && r.Replaying()
}

// refuel serves the import that the guest's code calls when its slice of fuel is spent.
// It stops a guest that must end, and yields the core to others.
func (g *guest) refuel() {
	switch {
	case g.meter.exhausted():
		g.giveUp(codeFuel, "%s burnt more than %d units of fuel (limit %s)", g.entry(), g.meter.budget, g.phase.fuelLimit())
	case g.call.Err() != nil:
		g.unwind(g.call.Err())
	case g.meter.overdue():
		g.giveUp(codeDeadline, "%s held a core for more than %v (limit %s)", g.entry(), g.meter.limit, g.phase.timeLimit())
	}
	if err := g.meter.checkpoint(g.token); err != nil {
		g.unwind(err)
	}
	g.meter.grant()
}

// charge burns fuel for work that the host does on behalf of the guest.
func (g *guest) charge(units uint64) {
	g.meter.charge(units)
	if g.meter.left != nil && int64(g.meter.left.Get()) < 0 {
		g.refuel()
	}
}

// overflow serves the import that the guest's code calls when the call depth is
// exhausted.
func (g *guest) overflow() {
	g.deep = true
	g.giveUp(codeLimit, "the frames of nested calls have more than %d bytes (limit call_depth): a recursion does not end, or is too deep", g.limits.CallDepth)
}

// invoke runs weft_step. A returned error is not the guest's fault.
func (g *guest) invoke(ctx context.Context, inv *host.Invocation) (host.InvocationResult, error) {
	if g.extism != nil {
		return g.invokeExtism(ctx, inv)
	}
	g.begin(inv)
	g.stack[0] = uint64(len(inv.Input))
	err := g.enter(ctx, inv.Limits.Fuel, inv.Limits.WallTime, func(ctx *call) error {
		return g.step.CallWithStack(ctx, g.stack[:])
	})
	code, fuel := uint32(g.stack[0]), g.meter.burnt()
	fail, err := g.verdict(err)
	if err == nil && fail == nil {
		fail = g.checkOutput(code)
	}
	if err != nil || fail != nil {
		return host.InvocationResult{Err: fail, Fuel: fuel}, err
	}
	return host.InvocationResult{Output: g.output, Code: code, Fuel: fuel}, nil
}

// drop ends the guest and releases its memory.
func (g *guest) drop() {
	g.end()
	g.linear.Release()
}

// end ends the guest. Another guest may then use its memory.
func (g *guest) end() {
	if g.instance != nil {
		_ = g.instance.Close(context.Background()) // closing a closed instance is not an error
	}
}
