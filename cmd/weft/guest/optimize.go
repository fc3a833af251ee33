package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// optimizer is the program of Binaryen that makes modules smaller.
const optimizer = "wasm-opt"

// Optimized is what came of making a module smaller.
type Optimized struct {
	Before, After int    // bytes
	Why           string // it was left as it was; "": it was not
}

// features are those that the compilers use and the host takes. Without them
// wasm-opt refuses a module, with more of them it might write what the host
// refuses.
var features = []string{"--enable-bulk-memory", "--enable-sign-ext", "--enable-mutable-globals", "--enable-nontrapping-float-to-int"}

// Optimize makes the built module smaller by wasm-opt, where it is there. What it
// writes takes the module's place if valid finds no fault in it, and if it is
// smaller. Nothing that goes wrong here is an error: the module is good as it is.
func (p Project) Optimize(ctx context.Context, valid func(wasm []byte) error) Optimized {
	before, err := os.ReadFile(p.Output())
	if err != nil {
		return Optimized{Why: err.Error()}
	}
	o := Optimized{Before: len(before), After: len(before)}
	if _, err := exec.LookPath(optimizer); err != nil {
		o.Why = "there is no wasm-opt on this machine (Binaryen has it)"
		return o
	}
	out := p.Output() + ".opt"
	defer func() { _ = os.Remove(out) }() // if it is there
	cmd := exec.CommandContext(ctx, optimizer, append([]string{"-Os", "-o", out, p.Output()}, features...)...)
	cmd.WaitDelay = killAfter
	if said, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		o.Why = fmt.Sprintf("wasm-opt does not take it: %v: %s", err, first)
		return o
	}
	after, err := os.ReadFile(out)
	switch {
	case err != nil:
		o.Why = err.Error()
		return o
	case len(after) >= len(before):
		o.Why = "wasm-opt does not make it smaller"
		return o
	}
	if err := valid(after); err != nil {
		o.Why = "what wasm-opt makes of it is refused: " + err.Error()
		return o
	}
	if err := replace(p.Output(), after); err != nil {
		o.Why = err.Error()
		return o
	}
	o.After = len(after)
	return o
}
