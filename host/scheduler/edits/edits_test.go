package edits

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

var errGone = &host.Error{Code: host.CodeNotFound, Message: "gone"}

// fakeSession answers each Make by the next of its answers.
type fakeSession struct {
	root     *state.Node
	fresh    bool
	answers  []func() (<-chan struct{}, error)
	prepared []bool // of each Make: the edit was worked out before
	pins     int
	released int
}

func (f *fakeSession) State() *state.Node { return f.root }
func (f *fakeSession) Ran() []string      { return []string{"v"} }
func (f *fakeSession) Release()           { f.released++ }

func (f *fakeSession) View(e *Edit) (View, error) {
	return View{Fresh: f.fresh, State: f.root}, e.Takes(f.fresh)
}

func (f *fakeSession) Make(e *Edit) (<-chan struct{}, error) {
	f.prepared = append(f.prepared, e.Tick(f.fresh).Prepared != nil)
	answer := f.answers[0]
	f.answers = f.answers[1:]
	return answer()
}

func fails(err error) func() (<-chan struct{}, error) {
	return func() (<-chan struct{}, error) { return nil, err }
}

// edit makes an edit in a session, and returns the error.
func edit(t *testing.T, f *fakeSession, req host.SessionEdit) error {
	t.Helper()
	d := New(Config{
		Work: func(_ context.Context, _ string, most uint64) (*work.Meter, func()) {
			return work.New(most, nil), func() {}
		},
		Readable: func(string) error { return nil },
		Grow:     func(context.Context, string) error { return nil },
		Gone:     errGone,
	})
	req.Tenant, req.Session = "a", "s"
	e, err := d.Read(t.Context(), &req)
	if err != nil {
		return err
	}
	err = e.Make(t.Context(), func(context.Context, host.SessionKey, bool) (Session, error) {
		f.pins++
		return f, nil
	})
	if f.pins != f.released || len(f.answers) > 0 {
		t.Errorf("%d pins, %d releases, %d answers left", f.pins, f.released, len(f.answers))
	}
	return err
}

func node(t *testing.T, json string) *state.Node {
	t.Helper()
	raw, err := abi.FromJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	n, err := state.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var setA = []abi.Edit{{Op: abi.OpSet, Path: "a", Value: abi.Raw{0x01}}}

// A small edit that loses against a step is worked out under the mutex the next time, and
// an edit of a session that was purged is made in the new session.
func TestMakeTriesAgain(t *testing.T) {
	free := make(chan struct{})
	close(free)
	f := &fakeSession{root: node(t, `{}`), answers: []func() (<-chan struct{}, error){
		func() (<-chan struct{}, error) { return free, nil },
		fails(engine.ErrMoved), fails(errGone), fails(engine.ErrMoved), fails(nil),
	}}
	if err := edit(t, f, host.SessionEdit{Edits: setA}); err != nil {
		t.Fatal(err)
	}
	if want := []bool{true, true, false, true, false}; !slices.Equal(f.prepared, want) || f.pins != 2 {
		t.Errorf("worked out before: %v, want %v; %d pins", f.prepared, want, f.pins)
	}
}

// A tag that was right when it was compared is compared again after a change.
func TestMakeComparesTagsAgain(t *testing.T) {
	before, after := node(t, `{"a":0}`), node(t, `{"a":2}`)
	v, err := valueOf(nil, before)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeSession{root: before}
	f.answers = []func() (<-chan struct{}, error){func() (<-chan struct{}, error) {
		f.root = after
		return nil, engine.ErrConflict
	}}
	if err := edit(t, f, host.SessionEdit{Edits: setA, Match: []string{v.Tag}}); host.CodeOf(err) != host.CodePreconditionFailed {
		t.Errorf("an edit with an old tag: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		fresh bool
		req   host.SessionEdit
		code  host.Code
	}{
		{"no session", true, host.SessionEdit{Edits: setA}, host.CodeNotFound},
		{"a tag of no session", true, host.SessionEdit{Edits: setA, Make: true, Match: []string{host.AnyTag}}, host.CodePreconditionFailed},
		{"the session exists", false, host.SessionEdit{Edits: setA, Make: true, New: true}, host.CodePreconditionFailed},
		{"a wrong path", false, host.SessionEdit{Edits: setA, Path: "a..b"}, host.CodeInvalidArgument},
		{"not an object", false, host.SessionEdit{State: abi.Raw{0x01}}, host.CodeInvalidArgument},
		{"clear below a path", false, host.SessionEdit{Path: "a", Edits: []abi.Edit{{Op: abi.OpClear}}}, host.CodeInvalidArgument},
	} {
		err := edit(t, &fakeSession{root: node(t, `{}`), fresh: c.fresh}, c.req)
		if he := (*host.Error)(nil); !errors.As(err, &he) || he.Code != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
}
