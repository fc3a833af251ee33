package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/state"
)

// outside parses an edit of the state from outside, with a limit of 200 bytes of state:
//
//	outside put JSON
//	outside patch JSON
//	outside edit OP PATH [VALUE] [; OP PATH [VALUE]]...
//	outside make
func (p *player) outside(in *scanner) Tick {
	t := EditSession{StateBytes: 200}
	node := func() *state.Node {
		n, err := state.Decode(in.json())
		if err != nil {
			p.t.Fatal(err)
		}
		return n
	}
	switch how := in.word(); how {
	case "put":
		t.State = node()
	case "patch":
		t.Patch = node()
	case "edit":
		t.Edits = in.edits()
	case "make":
		t.Always = true
	default:
		p.t.Fatalf("outside %s", how)
	}
	return t
}

// TestEditOfAnotherState: an edit with a base is refused on another state. An edit that
// changes nothing makes an entry only if it must.
func TestEditOfAnotherState(t *testing.T) {
	p := newPlayer(t, nil)
	p.play(`outside put {"n":1}`)
	base := p.live.State()
	p.play(`outside patch {"n":2}`)
	one, err := state.Decode([]byte{0xa0})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.tick(EditSession{State: one, Base: base, StateBytes: 100}); !errors.Is(err, ErrConflict) {
		t.Errorf("on a state that is gone: %v", err)
	}
	for _, always := range []bool{false, true} {
		seq := p.live.Seq()
		if _, err := p.tick(EditSession{Base: p.live.State(), Always: always}); err != nil || (p.live.Seq() > seq) != always {
			t.Errorf("an edit of nothing, always=%t: %v, entry %d after %d", always, err, p.live.Seq(), seq)
		}
	}
}

// TestRanIsBounded: of many workflows, those that ran last are kept.
func TestRanIsBounded(t *testing.T) {
	s := New(newPlayer(t, nil).live.key, nil)
	names := strings.SplitSeq("abcdefghijklmnopqrstuvwxyz", "")
	for name := range names {
		s.noteRan(name, name+"1")
	}
	s.noteRan("p", "p2")
	s.noteRan("p", "p3")
	if len(s.ran) != maxRan || s.ran[0].workflow != "k" || s.ran[maxRan-1] != (ranVersion{"p", "p3"}) || s.ran[maxRan-2].workflow != "z" {
		t.Errorf("%v", s.ran)
	}
}
