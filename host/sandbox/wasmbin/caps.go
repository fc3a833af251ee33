package wasmbin

import "fmt"

// Caps bound the counts of a module. A zero field means no bound.
type Caps struct {
	Types     int
	Imports   int
	Functions int // the module's own
	Tables    int
	Globals   int
	Exports   int
	Segments  int // element and data segments, each
	Params    int // parameters, and results, of one type
	BodyBytes int // of one function
	Locals    int // of one function, without parameters
	Nesting   int // depth of nested blocks
	Targets   int // of one br_table
}

// DefaultCaps are counts far above those of any toolchain's modules. Beyond them
// compiling takes memory and time out of proportion to the module's size. Nesting costs
// most: time grows with its square (wazero v1.12.0 compiles 5,000 nested loops in 0.5 s,
// and in 3 s when metered; 20,000 nested loops take 25 s, and minutes when metered). Go's
// compiler nests most: 549 blocks in the example plugins.
func DefaultCaps() Caps {
	return Caps{
		Types:     10_000,
		Imports:   1_000,
		Functions: 200_000,
		Tables:    16,
		Globals:   10_000,
		Exports:   10_000,
		Segments:  100_000,
		Params:    100,
		BodyBytes: 4 << 20,
		Locals:    10_000,
		Nesting:   5_000,
		Targets:   50_000,
	}
}

// Excess is one cap that a module exceeds, with the greatest value found.
type Excess struct {
	What string // such as "locals"
	At   string // such as "function 12"; empty for counts of the whole module
	N    uint64
	Max  int
}

// String describes the excess, as in "function 12 has 20000 locals, at most 10000 are
// allowed".
func (e Excess) String() string {
	at := e.At
	if at == "" {
		at = "the module"
	}
	return fmt.Sprintf("%s has %d %s, at most %d are allowed", at, e.N, e.What, e.Max)
}

// Exceeded lists the caps that the module exceeds, each once.
func (c Caps) Exceeded(m *Module) []Excess {
	var list []Excess
	add := func(what, at string, n uint64, limit int) {
		if limit > 0 && n > uint64(limit) {
			list = append(list, Excess{what, at, n, limit})
		}
	}
	add("types", "", uint64(len(m.Types)), c.Types)
	add("imports", "", uint64(len(m.Imports)), c.Imports)
	add("functions", "", uint64(len(m.Funcs)), c.Functions)
	add("tables", "", uint64(len(m.Tables)), c.Tables)
	add("globals", "", uint64(len(m.Globals)), c.Globals)
	add("exports", "", uint64(len(m.Exports)), c.Exports)
	add("element segments", "", uint64(m.Elements), c.Segments)
	add("data segments", "", uint64(m.Data), c.Segments)

	largest := func(what, kind string, first, n int, value func(i int) uint64, limit int) {
		at, found := 0, uint64(0)
		for i := range n {
			if v := value(i); v > found {
				at, found = i, v
			}
		}
		add(what, fmt.Sprintf("%s %d", kind, first+at), found, limit)
	}
	largest("parameters", "type", 0, len(m.Types), func(i int) uint64 { return uint64(len(m.Types[i].Params)) }, c.Params)
	largest("results", "type", 0, len(m.Types), func(i int) uint64 { return uint64(len(m.Types[i].Results)) }, c.Params)
	first := int(m.Imported(KindFunc))
	bodies := func(what string, value func(b *Body) uint64, limit int) {
		largest(what, "function", first, len(m.Bodies), func(i int) uint64 { return value(&m.Bodies[i]) }, limit)
	}
	bodies("bytes of code", func(b *Body) uint64 { return uint64(b.Size) }, c.BodyBytes)
	bodies("locals", func(b *Body) uint64 { return b.Locals }, c.Locals)
	bodies("blocks inside each other", func(b *Body) uint64 { return uint64(b.Nesting) }, c.Nesting)
	bodies("labels in a br_table", func(b *Body) uint64 { return uint64(b.Targets) }, c.Targets)
	return list
}
