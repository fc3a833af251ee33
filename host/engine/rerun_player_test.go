package engine

import (
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// failedAgain parses a retry of a run that has failed:
//
//	rerun RUN as NEW [version=V]
//
// Its past is folded from the entries up to the one that began its end.
func (p *player) failedAgain(in *scanner) Tick {
	was := in.word()
	if in.word() != "as" {
		p.t.Fatalf("rerun RUN as NEW")
	}
	next := in.word()
	version := in.option("version", "")
	over := func(s *Session) bool { return !s.Begun(was) || s.Ending(was) }
	last, begun := 0, false
	probe := New(p.live.key, p.live.graphs)
	for i, e := range p.past.entries {
		if _, err := probe.Fold(recoded(p.t, e)); err != nil {
			p.t.Fatal(err)
		}
		if begun = begun || probe.Begun(was); begun && over(probe) {
			last = i
			break
		}
	}
	past := New(p.live.key, p.live.graphs)
	for _, e := range p.past.entries[:last] {
		if _, err := past.Fold(recoded(p.t, e)); err != nil {
			p.t.Fatal(err)
		}
	}
	rec, ok := past.Record(was)
	if !ok {
		p.t.Fatalf("%s was never under way", was)
	}
	target := ForkTarget{Key: p.live.key, RunID: next, HandlerID: rec.HandlerID, Seed: [32]byte{11}, At: max(p.now, p.live.now)}
	tick := Rerun{RunID: next}
	if _, _, err := past.Rerun(was, p.past.entries[last].Invocation, version, target); err != nil {
		p.t.Fatalf("rerun %s: %v", was, err)
	}
	data, err := past.Snapshot()
	if err != nil {
		p.t.Fatal(err)
	}
	if n := past.State().Bytes(); n > state.Empty().Bytes() {
		p.t.Fatalf("the snapshot has a state of %d bytes: the session's own is another by now", n)
	}
	tick.Snapshot = data
	return tick
}

// moreVerbs parses the ticks that continue stopped runs.
func (p *player) moreVerbs(verb string, in *scanner) Tick {
	switch verb {
	case "rerun":
		return p.failedAgain(in)
	case "migrate":
		return Migrate{RunID: in.word(), Version: in.word()}
	case "outside":
		return p.outside(in)
	case "block":
		return Block{RunID: in.word(), Reason: host.Blocked{Code: in.word(), Message: in.rest}}
	case "resume":
		t := Resume{RunID: in.word()}
		t.Anew = in.word() == "anew"
		return t
	}
	return nil
}
