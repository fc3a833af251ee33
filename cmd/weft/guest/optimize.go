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

// Optimized is the result of optimizing a module.
type Optimized struct {
	Before, After int    // bytes
	Why           string // why the module was not changed; "": it was changed
}

// features are the features that the compilers use and the host accepts. Without them,
// wasm-opt refuses a module. With more features, wasm-opt might write code that the host
// refuses.
var features = []string{"--enable-bulk-memory", "--enable-sign-ext", "--enable-mutable-globals", "--enable-nontrapping-float-to-int"}

// Optimize makes the built module smaller with wasm-opt, if it is installed. The result
// replaces the module if valid accepts it and it is smaller. Failures are not errors,
// because the original module remains usable.
func (p Project) Optimize(ctx context.Context, valid func(wasm []byte) error) Optimized {
	before, err := os.ReadFile(p.Output())
	if err != nil {
		return Optimized{Why: err.Error()}
	}
	o := Optimized{Before: len(before), After: len(before)}
	if _, err := exec.LookPath(optimizer); err != nil {
		o.Why = "wasm-opt is not installed (it is part of Binaryen)"
		return o
	}
	out := p.Output() + ".opt"
	defer func() { _ = os.Remove(out) }() // if it exists
	cmd := exec.CommandContext(ctx, optimizer, append([]string{"-Os", "-o", out, p.Output()}, features...)...)
	cmd.WaitDelay = killAfter
	if said, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		o.Why = fmt.Sprintf("wasm-opt does not accept the module: %v: %s", err, first)
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
		o.Why = "the output of wasm-opt is refused: " + err.Error()
		return o
	}
	if err := replace(p.Output(), after); err != nil {
		o.Why = err.Error()
		return o
	}
	o.After = len(after)
	return o
}
