package engine

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// move is one move of a player with its outcome, so that a session that was loaded from
// its journal can repeat it.
type move struct {
	line   string
	now    int64
	tick   Tick   // nil: a begin
	name   string // of a begin, or of the begin whose base a commit replaces
	path   state.Path
	snap   uint64 // the invocation whose atomic step took its snapshot
	res    Result
	err    error
	before int // entries
}

// past is what a player remembers of a session: its moves, and the session's dump after
// each entry.
type past struct {
	moves   []move
	entries []*Entry // encoded and decoded again
	roots   []*state.Node
	open    [][]uint64
}

func (p *player) remember(m move) {
	if len(p.past.roots) == 0 {
		p.past.roots, p.past.open = []*state.Node{state.Empty()}, [][]uint64{nil}
	}
	m.before = len(p.past.entries)
	p.past.moves = append(p.past.moves, m)
	if m.res.Entry == nil {
		return
	}
	p.past.entries = append(p.past.entries, recoded(p.t, m.res.Entry))
	p.past.roots = append(p.past.roots, p.live.State())
	p.past.open = append(p.past.open, p.live.Open())
}

// rerun repeats the moves of a past. At each cut (a number of entries) it drops the
// session and loads it from its journal.
type rerun struct {
	t     reporter
	p     *player
	cuts  map[int]bool
	s     *Session
	bases map[string]base
	snaps map[uint64]snap
	own   []*Entry // decided by the rerun itself
}

// snap is the snapshot of an atomic step: the state after a number of entries.
type snap struct {
	entries int
	root    *state.Node
}

func (p *player) rerun(cuts ...int) {
	r := &rerun{t: p.t, p: p, cuts: make(map[int]bool), s: New(p.live.key, p.live.graphs), bases: make(map[string]base), snaps: make(map[uint64]snap)}
	for _, at := range cuts {
		r.cuts[at] = true
	}
	at := -1
	for i := range p.past.moves {
		m := &p.past.moves[i]
		if m.before != at {
			if at = m.before; r.cuts[at] {
				r.reload(at)
			}
		}
		r.again(m)
	}
	if at = len(p.past.entries); r.cuts[at] {
		r.reload(at)
	}
	diffText(p.t, fmt.Sprintf("session after cuts at %v", cuts), p.live.Dump(), r.s.Dump())
	sameSession(p.t, p.live, r.s)
}

// reload loads the session from the entries so far. An open region begins again, and
// reads the same value unless the value has changed since.
func (r *rerun) reload(at int) {
	r.t.Helper()
	old := r.s
	r.s = New(old.key, old.graphs)
	for i, e := range r.own {
		r.snapAgain(i)
		if _, err := r.s.Fold(recoded(r.t, e)); err != nil {
			r.t.Fatalf("cut at entry %d: fold entry %d: %v", at, i+1, err)
		}
	}
	r.snapAgain(len(r.own))
	sameSession(r.t, old, r.s)
	if open := r.s.Open(); !reflect.DeepEqual(append([]uint64{}, open...), append([]uint64{}, r.p.past.open[at]...)) {
		r.t.Fatalf("cut at entry %d: the attempts %v are open, not %v", at, open, r.p.past.open[at])
	}
	for name, b := range r.bases {
		if node, _ := state.Get(old.State(), b.path); node == b.node {
			b.node, _ = state.Get(r.s.State(), b.path)
			r.bases[name] = b
		}
	}
}

// snapAgain takes the snapshots that were taken after this number of entries.
func (r *rerun) snapAgain(entries int) {
	for inv, sn := range r.snaps {
		if sn.entries == entries {
			sn.root = r.s.State()
			r.snaps[inv] = sn
		}
	}
}

// staged returns the work of an atomic step on this session's snapshot.
func (r *rerun) staged(f Finish) *Stage {
	own := *f.Stage
	own.Seen = nil
	for _, seen := range f.Stage.Seen {
		node, _ := state.Get(r.snaps[f.Invocation].root, seen.Path)
		own.Seen = append(own.Seen, Seen{seen.Path, node})
	}
	return &own
}

// again repeats a move. Its outcome must be the same as before.
func (r *rerun) again(m *move) {
	r.t.Helper()
	if m.snap != 0 {
		r.snaps[m.snap] = snap{len(r.own), r.s.State()}
		return
	}
	if m.tick == nil {
		node, _ := state.Get(r.s.State(), m.path)
		r.bases[m.name] = base{m.path, node}
		return
	}
	tick := m.tick
	if c, ok := tick.(Call); ok {
		if commit, ok := c.Request.(CommitState); ok {
			commit.Base = r.bases[m.name].node
			c.Request = commit
			tick = c
		}
	}
	if f, ok := tick.(Finish); ok && f.Stage != nil {
		f.Stage = r.staged(f)
		tick = f
	}
	res, err := r.s.Reduce(m.now, tick)
	if fmt.Sprint(err) != fmt.Sprint(m.err) {
		r.t.Fatalf("%s: after cuts at %v: %v, not %v", m.line, sortedKeys(r.cuts), err, m.err)
	}
	if res.Entry != nil {
		r.own = append(r.own, res.Entry)
	}
	if !reflect.DeepEqual(res.Response, m.res.Response) || !reflect.DeepEqual(res.Commands, m.res.Commands) ||
		(res.Entry == nil) != (m.res.Entry == nil) || res.Entry != nil && !reflect.DeepEqual(recoded(r.t, res.Entry), recoded(r.t, m.res.Entry)) {
		r.t.Fatalf("%s: after cuts at %v:\n got %+v\nwant %+v", m.line, sortedKeys(r.cuts), res, m.res)
	}
}

// sameSession compares everything that two sessions hold, including what a dump does not
// show. It leaves out the function that returns graphs, the cost of ticks, and the inner
// shape of the state, which is compared by value.
func sameSession(t reporter, want, got *Session) {
	t.Helper()
	bare := func(s *Session) Session {
		c := *s
		c.graphs, c.visited, c.out, c.root, c.own = nil, 0, nil, nil, work.Meter{}
		return c
	}
	if a, b := want.root.Encode(), got.root.Encode(); string(a) != string(b) {
		t.Fatalf("the state is %s, not %s", showRaw(b), showRaw(a))
	}
	if a, b := bare(want), bare(got); !reflect.DeepEqual(a, b) {
		diffText(t, "session", want.Dump(), got.Dump())
		t.Fatalf("the sessions differ in what no dump shows")
	}
}

// TestCutEverywhere drops the session of every history at each of its entries, loads it
// from its journal, and continues: with one cut, with two, and at every entry. The rest
// of the history must be the same.
func TestCutEverywhere(t *testing.T) {
	cuts, stride := 0, 1
	if few {
		stride = 12
	}
	eachHistory(t, func(t *testing.T, h *history) {
		p := h.play(t)
		p.in(p.live.key.Session)
		for _, name := range sortedKeys(p.stages) {
			p.in(name)
			n := len(p.past.entries)
			var all []int
			for at := range n + 1 {
				all = append(all, at)
				if at%stride != 0 {
					continue
				}
				p.rerun(at)
				p.rerun(at, (at+n+1)/2)
				p.rerun(at/2, at)
				cuts += 3
			}
			p.rerun(all...)
			cuts++
		}
	})
	t.Logf("%d reruns", cuts)
}
