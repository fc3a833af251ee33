package engine

import (
	"fmt"

	"github.com/weftrun/weft/host/state"
)

// staged is the work of an atomic step in a history.
type staged struct {
	base, root *state.Node
	done       Stage
}

// try plays an atomic step: "snap" begins the step on the present state, "try" makes a
// call or reads in it, and "finish" ends it.
func (p *player) try(verb string, in *scanner) {
	p.t.Helper()
	inv := in.uint()
	if verb == "snap" {
		p.atomic[inv] = &staged{base: p.live.State(), root: p.live.State()}
		p.remember(move{snap: inv})
		return
	}
	st, call := p.atomic[inv], in.word()
	see := func(path state.Path) {
		n, _ := state.Get(st.base, path)
		st.done.Seen = append(st.done.Seen, Seen{path, n})
	}
	if call == "get" {
		path, err := state.ParsePath(in.word())
		if err != nil {
			p.t.Fatal(err)
		}
		see(path)
		if n, ok := state.Get(st.root, path); ok {
			fmt.Fprintf(&p.out, "  value %s\n", showRaw(n.Encode()))
		}
		return
	}
	attempt := in.uintOption("attempt", 1)
	req := p.request(call, in)
	before := p.live.Dump()
	tried, err := p.live.Try(inv, attempt, st.root, req)
	diffText(p.t, "session after a call that was tried", before, p.live.Dump())
	p.show(Result{Response: tried.Response}, err)
	if edit, ok := req.(EditState); ok {
		for _, e := range edit.Edits {
			if path, err := state.Touches(e); err == nil {
				see(path)
			}
		}
	}
	if err == nil && tried.Effect {
		st.root, st.done.Effects = tried.After, append(st.done.Effects, req)
		if in.uintOption("anew", 0) == 0 { // else the edits are made again in any case
			st.done.Base, st.done.Root, st.done.Changes = st.base, st.root, append(st.done.Changes, tried.Changes...)
		}
	}
}
