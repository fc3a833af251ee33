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

// fuelLimit and timeLimit name the limits of the phase.
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
	linear   *memory.Linear
	step     api.Function
	globals  []api.MutableGlobal     // see mutable
	exports  map[string]api.Function // of an Extism plugin, as far as they were called
	extism   *extismCall             // nil: not of one
	// unharmed says that the last call returned, trapped or was unwound by an
	// import, so that the instance can be used again once it is reset.
	unharmed bool
	deep     bool // the last call used up its call depth

	meter meter
	call  call // of the present call
	stack [1]uint64

	phase  phase
	limits host.Limits
	calls  host.Calls               // only in phaseStep
	prices uint64                   // their version
	token  host.Token               // may be nil
	look   func(units uint64) error // of this guest: see looked
	worked bool                     // the present call was looked at
	input  []byte
	buffer []byte // room for the output
	clock  int64
	random chance

	response []byte
	output   []byte
	outputs  int
	counts   counts
	tail     tail
	printed  [2]printed // of files 1 and 2

	stop error      // of calls, token or ctx: unwinds
	fail *abi.Error // the guest's own failure
}

// chance is a stream of random bytes. Most invocations draw none: the first who
// does has it begin.
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
	_, _ = c.stream.Read(p) // it never fails
}

// counts is what an invocation has used of its limits.
type counts struct {
	calls, logBytes, logLines, polls int
	lacked                           uint8 // a bit for each [missing.Thing] that was tried
}

// call is the context of one call into an instance: the imports find the guest
// in it without a look-up.
type call struct {
	context.Context // the caller's; no values of it are shown
	guest           *guest
	// values has the memory allocator while the instance is made, else it is
	// nil: nothing else looks for values.
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
	g.phase, g.limits = phaseStep, inv.Limits
	g.linear.SetLimit(uint64(inv.Limits.MemoryBytes))
	g.calls, g.token, g.input, g.buffer, g.clock = inv.Calls, inv.Token, inv.Input, inv.Buffer, inv.Clock
	g.prices = inv.Prices
	g.random.seed(inv.Seed)
	g.clean()
}

// clean forgets what the last call came to.
func (g *guest) clean() {
	g.response, g.output, g.outputs = nil, nil, 0
	g.counts, g.stop, g.fail = counts{}, nil, nil
	for i := range g.printed {
		g.printed[i].text = g.printed[i].text[:0]
	}
	g.tail.reset()
}

// enter makes one call into the instance. It ends when it returns, traps or is
// unwound: by an import that gives up, or at a refuel because ctx ended, its
// time was up or its fuel was spent.
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

// refuel serves the import that the guest's code calls when its slice of fuel
// has run out: here it is stopped, and here it makes room for others.
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

// charge burns fuel for work of the host on the guest's behalf.
func (g *guest) charge(units uint64) {
	g.meter.charge(units)
	if g.meter.left != nil && int64(g.meter.left.Get()) < 0 {
		g.refuel()
	}
}

// overflow serves the import that the guest's code calls when its frames do not
// fit any more.
func (g *guest) overflow() {
	g.deep = true
	g.giveUp(codeLimit, "the frames of nested calls have more than %d bytes (limit call_depth): a recursion does not end, or is too deep", g.limits.CallDepth)
}

// invoke runs weft_step. The error is not the guest's.
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

// drop ends the guest's life and gives its memory back.
func (g *guest) drop() {
	g.end()
	g.linear.Release()
}

// end ends the guest's life: its memory is for somebody else.
func (g *guest) end() {
	if g.instance != nil {
		_ = g.instance.Close(context.Background()) // a closed one is no error
	}
}
