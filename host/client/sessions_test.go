package client_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// fakeSessions is the fake's host.Sessions: it returns a fixed state, and records the
// requests.
type fakeSessions struct {
	err     error
	created bool
	edit    host.SessionEdit
	asked   string
}

var fakeState = host.StateValue{Value: abi.Raw{0xa1, 0x61, 'n', 0x01}, Tag: "t1"}

func (f *fakeSessions) Session(_ context.Context, _, id string) (host.SessionInfo, error) {
	return host.SessionInfo{SessionID: id, Created: 1e9, Runs: 3, Active: 1}, f.err
}

func (f *fakeSessions) ListSessions(_ context.Context, q host.SessionQuery) ([]host.SessionInfo, bool, error) {
	if q.Before == 0 {
		return []host.SessionInfo{{SessionID: "b", Order: 7, Updated: 2e9}}, q.Limit == 1, f.err
	}
	return []host.SessionInfo{{SessionID: "a", Order: q.Before - 1}}, false, f.err
}

func (f *fakeSessions) State(_ context.Context, _, id, path string) (host.StateValue, error) {
	f.asked = id + " " + path
	return fakeState, f.err
}

func (f *fakeSessions) EditState(_ context.Context, req host.SessionEdit) (host.StateValue, bool, error) {
	f.edit = req
	return fakeState, f.created, f.err
}

func (f *fakeSessions) DeleteSession(_ context.Context, _, id string) error {
	f.asked = id
	return f.err
}

func (f *fakeSessions) ReleaseSession(_ context.Context, _, id string) (host.SessionInfo, error) {
	f.asked = "release " + id
	return host.SessionInfo{SessionID: id, Runs: 3}, f.err
}

func TestSessions(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	s, err := c.Session(t.Context(), "a/b")
	if err != nil || s.SessionID != "a/b" || s.Created != 1e9 || s.Updated != 0 || s.Runs != 3 || s.Active != 1 || len(s.JSON) == 0 {
		t.Errorf("Session = %+v, %v", s, err)
	}
	page, err := c.Sessions(t.Context(), 1, "")
	if err != nil || len(page.Sessions) != 1 || page.Sessions[0].SessionID != "b" || page.Sessions[0].Updated != 2e9 || page.Next == "" {
		t.Fatalf("Sessions = %+v, %v", page, err)
	}
	if page, err = c.Sessions(t.Context(), 0, page.Next); err != nil || page.Sessions[0].SessionID != "a" || page.Next != "" {
		t.Errorf("Sessions = %+v, %v", page, err)
	}
	for _, created := range []bool{true, false} {
		f.sessions.created = created
		s, made, err := c.PutSession(t.Context(), "s", []byte(`{"n":1}`), client.EditOptions{Tag: "*"})
		if err != nil || made != created || s.SessionID != "s" || !reflect.DeepEqual(f.sessions.edit.State, fakeState.Value) || f.sessions.edit.Match[0] != host.AnyTag {
			t.Errorf("PutSession = %+v, %t, %v", s, made, err)
		}
	}
	if err := c.DeleteSession(t.Context(), "a b"); err != nil || f.sessions.asked != "a b" {
		t.Errorf("DeleteSession: %v of %q", err, f.sessions.asked)
	}
	if s, err := c.ReleaseSession(t.Context(), "a/b"); err != nil || f.sessions.asked != "release a/b" || s.SessionID != "a/b" || s.Runs != 3 {
		t.Errorf("ReleaseSession: %+v, %v of %q", s, err, f.sessions.asked)
	}
	f.sessions.err = host.Errorf(host.CodeConflict, "it has runs")
	if err := c.DeleteSession(t.Context(), "s"); errorOf(t, err).Code != host.CodeConflict {
		t.Errorf("%v", err)
	}
}

func TestState(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	v, err := c.State(t.Context(), "s", "a.b")
	if err != nil || string(v.JSON) != `{"n":1}` || v.Tag != `"t1"` || f.sessions.asked != "s a.b" {
		t.Errorf("State = %+v, %v of %q", v, err, f.sessions.asked)
	}
	if _, err = c.PatchState(t.Context(), "s", []byte(`{}`), client.EditOptions{Path: "a.b"}); err != nil || f.sessions.edit.Path != "a.b" {
		t.Errorf("PatchState of a path asks %+v, %v", f.sessions.edit, err)
	}
	v, err = c.PatchState(t.Context(), "s", []byte(`{"a":null}`), client.EditOptions{Tag: v.Tag, Key: "k"})
	if err != nil || string(v.JSON) != `{"n":1}` || !reflect.DeepEqual(f.sessions.edit.Match, []string{"t1"}) || f.sessions.edit.Once.Key != "k" || f.sessions.edit.Patch == nil {
		t.Errorf("PatchState = %+v, %v asks %+v", v, err, f.sessions.edit)
	}
	edits := []abi.Edit{{Op: abi.OpSet, Path: "a", Value: abi.Raw{1}}, {Op: abi.OpDelete, Path: "b"}}
	if _, err = c.EditState(t.Context(), "s", edits, client.EditOptions{}); err != nil || !reflect.DeepEqual(f.sessions.edit.Edits, edits) || f.sessions.edit.Match != nil {
		t.Errorf("EditState: %v asks %+v", err, f.sessions.edit)
	}
	if _, err = c.EditState(t.Context(), "s", nil, client.EditOptions{}); errorOf(t, err).Code != host.CodeInvalidArgument {
		t.Errorf("no edits: %v", err)
	}
	f.sessions.err = host.Errorf(host.CodePreconditionFailed, "another")
	if _, err = c.PatchState(t.Context(), "s", []byte(`{}`), client.EditOptions{}); errorOf(t, err).Code != host.CodePreconditionFailed {
		t.Errorf("%v", err)
	}
}
