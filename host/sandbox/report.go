package sandbox

import (
	"bytes"
	"context"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// Report says what a module is, what the host makes of it, and why. Counts refer to the
// original unless the name says otherwise.
type Report struct {
	Digest    string // SHA-256 in hex
	Bytes     int
	Functions int
	Globals   int
	Imports   []string // as module.name, sorted: everything that the module can call
	Exports   []string // of functions, sorted
	Memory    Extent   // in bytes
	Tables    []Extent // in entries
	Custom    []CustomSection

	Rewriter       string // version
	Rewritten      string // digest of the rewritten bytes
	RewrittenBytes int
	Stats          rewrite.Stats

	Manifest      []byte // as weft_describe returns it
	DescribeFuel  uint64 // units that _initialize and weft_describe burn together
	ImageHash     string
	ImageBytes    int // of memory
	SnapshotBytes int // bytes of the image that are kept, without pages of zeros

	// InPlace reports that an instance is reset to the image and used again. Otherwise
	// the guest's own code initializes a fresh instance for each invocation, for the
	// reasons in Fallback.
	InPlace bool
	Reasons []string
}

// Extent is an initial size and a maximum size.
type Extent struct {
	Min, Max uint64
	Bounded  bool // the module declares Max; otherwise Max is 0
}

// CustomSection is a section that does not affect execution.
type CustomSection struct {
	Name  string
	Bytes int
}

// Report builds a module if necessary, and describes it. If there are problems, the
// report contains what is known in spite of them.
func (s *Sandbox) Report(ctx context.Context, wasm []byte, limits host.Limits) (Report, []host.Problem) {
	limits = complete(limits, s.limits)
	r := Report{Digest: digestOf(wasm), Bytes: len(wasm), Rewriter: rewrite.Version}
	m, problems := s.examine(behalf.Of(ctx), wasm, limits)
	if m != nil {
		r.read(m)
	}
	if len(problems) > 0 {
		return r, problems
	}
	lease, err := s.lease(ctx, moduleKey{r.Digest, limits.TableEntries}, wasm, &limits)
	if err != nil {
		return r, problemsOf(err)
	}
	defer lease.release()
	p := lease.module.plan
	r.Rewritten, r.RewrittenBytes, r.Stats = p.Rewritten, p.Stats.BytesOut, p.Stats
	r.Manifest, r.DescribeFuel = bytes.Clone(p.Manifest), p.DescribeFuel
	r.ImageHash, r.ImageBytes = p.ImageHash, p.ImageBytes
	r.InPlace, r.Reasons = p.Restorable, slices.Clone(p.Fallback)
	if lease.module.snapshot != nil {
		r.SnapshotBytes = lease.module.snapshot.Kept()
	}
	return r, p.breaches(limits)
}

// read records what the module declares.
func (r *Report) read(m *wasmbin.Module) {
	r.Functions, r.Globals, r.Imports = len(m.Funcs), len(m.Globals), importList(m)
	for _, ex := range m.Exports {
		if ex.Kind == wasmbin.KindFunc {
			r.Exports = append(r.Exports, ex.Name)
		}
	}
	slices.Sort(r.Exports)
	for _, mem := range m.Memories {
		r.Memory = Extent{mem.Min * wasmPageBytes, mem.Max * wasmPageBytes, mem.HasMax}
	}
	for _, t := range m.Tables {
		r.Tables = append(r.Tables, Extent{t.Min, t.Max, t.HasMax})
	}
	for _, c := range m.Custom {
		r.Custom = append(r.Custom, CustomSection{c.Name, c.Bytes})
	}
}
