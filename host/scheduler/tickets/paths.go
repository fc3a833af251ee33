package tickets

import (
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// Writes lists the paths that a request writes.
func Writes(req engine.Request) []state.Path {
	switch r := req.(type) {
	case engine.CommitState:
		return []state.Path{r.Path}
	case engine.EditState:
		return OfEdits(r.Edits)
	case engine.RunWorkflow:
		if r.Shared && r.Start != nil {
			return []state.Path{nil} // the workflow's defaults may be filled in
		}
	}
	return nil
}

// OfEdits lists the paths that edits write.
func OfEdits(edits []abi.Edit) []state.Path {
	paths := make([]state.Path, 0, len(edits))
	for i := range edits {
		if edits[i].Op == abi.OpTest {
			continue
		}
		p, err := state.Touches(edits[i])
		if err != nil {
			continue // refused by the reducer, by name
		}
		paths = append(paths, p)
	}
	return paths
}

// OfPatch lists the paths that a merge patch of the value at a path writes: the keys
// at its top.
func OfPatch(at state.Path, patch *state.Node) []state.Path {
	var paths []state.Path
	for key := range patch.Entries() {
		p, err := state.ParsePath(key)
		if err != nil || len(p) != 1 {
			return []state.Path{at} // no path names the key
		}
		paths = append(paths, slices.Concat(at, p))
	}
	return paths
}

func overlap(a, b []state.Path) bool {
	return slices.ContainsFunc(a, func(p state.Path) bool {
		return slices.ContainsFunc(b, func(q state.Path) bool { return state.Overlaps(p, q) })
	})
}
