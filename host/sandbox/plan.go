package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/extism"
	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// plan is what building a module found out, in addition to the rewritten bytes, their
// compiled code and the snapshot. It is kept on disk with them, as JSON.
type plan struct {
	Digest    string   // SHA-256 of the original, in hex
	Seed      [32]byte // the digest as bytes
	Bytes     int      // of the original
	Rewritten string   // digest of the rewritten bytes

	ImportFuncs uint32            // functions that the original imports
	Names       map[uint32]string // names of exported functions, by their index in the original

	Extism *extism.Plugin `json:",omitempty"` // set for an Extism plugin

	Lines bool `json:",omitempty"` // traps name source lines; see lineMarks

	// MemoryPages is the initial size of the memory, unless the rewritten module declares
	// the size itself.
	MemoryPages uint32

	Restorable bool     // there is a snapshot with GlobalValues
	Fallback   []string // reasons, if not Restorable
	Globals    []rewrite.Global
	Stats      rewrite.Stats

	Manifest     []byte
	ImageHash    string
	ImageBytes   int // of memory
	GlobalValues []uint64
	DescribeFuel uint64
}

// newPlan records what is known of a module before it runs.
func newPlan(wasm []byte, m *wasmbin.Module, r *rewrite.Result) *plan {
	p := &plan{
		Digest: digestOf(wasm), Seed: sha256.Sum256(wasm), Bytes: len(wasm), Rewritten: rewrittenDigest(r.Wasm), MemoryPages: r.MemoryPages,
		Names: map[uint32]string{}, Restorable: r.Restorable, Fallback: r.Fallback, Globals: r.Globals, Stats: r.Stats,
	}
	p.ImportFuncs = uint32(len(m.Imports)) // the inspection accepts only functions
	for _, ex := range m.Exports {
		if ex.Kind == wasmbin.KindFunc {
			p.Names[ex.Index] = ex.Name
		}
	}
	return p
}

// code identifies the module's code.
func (p *plan) code() codeKey { return codeKey{p.Rewritten, p.Lines} }

// breaches lists the limits that the module's image exceeds.
func (p *plan) breaches(limits host.Limits) (problems []host.Problem) {
	if p.ImageBytes > limits.MemoryBytes {
		problems = append(problems, host.Problem{Code: problemTooLarge, Message: fmt.Sprintf(
			"after %s the memory has %d bytes, at most %d are allowed (limit memory_bytes): make the stack or the initial heap smaller", p.image(), p.ImageBytes, limits.MemoryBytes)})
	}
	if p.DescribeFuel > limits.DescribeFuel {
		problems = append(problems, host.Problem{Code: "describe_" + codeFuel, Message: fmt.Sprintf(
			"_initialize and weft_describe burn %d units of fuel, at most %d are allowed (limit describe_fuel)", p.DescribeFuel, limits.DescribeFuel)})
	}
	return problems
}

// rewrittenDigest is the digest of the code that runs in place of a module: the SHA-256,
// in hex, of the rewriter's version, a zero byte and the rewritten bytes.
func rewrittenDigest(runs []byte) string {
	h := sha256.New()
	h.Write([]byte(rewrite.Version + "\x00"))
	h.Write(runs)
	return hex.EncodeToString(h.Sum(nil))
}

const (
	injectedFuncs = 2       // imports that the rewriter adds after the module's own
	helperPrefix  = "weft:" // prefix of the names of functions that it adds at the end
)

// functionName names a function of the running module for messages: by its export name,
// otherwise by its index in the original.
func (p *plan) functionName(index uint32) string {
	if index >= p.ImportFuncs+injectedFuncs {
		index -= injectedFuncs
	}
	if name, ok := p.Names[index]; ok {
		return name
	}
	return fmt.Sprint(index)
}

// image names the functions that make the image, for messages.
func (p *plan) image() string {
	if p.Extism != nil {
		return "loading"
	}
	return abi.ExportDescribe
}
