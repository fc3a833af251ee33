package engine

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// TestRestoreRefuses: bytes that are not a snapshot, or not of this version, are refused
// with a clear error.
func TestRestoreRefuses(t *testing.T) {
	s := New(host.SessionKey{Tenant: "t", Session: "s"}, nil)
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	form := func(change func(f *savedForm)) []byte {
		var f savedForm
		if err := abi.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		change(&f)
		b, err := abi.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		what string
		data []byte
		want string
	}{
		{"nothing", nil, "EOF"},
		{"garbage", []byte("garbage"), "decode"},
		{"a cut one", data[:len(data)-1], "EOF"},
		{"another thing", form(func(f *savedForm) { f.Format = "weft module" }), `"weft module"`},
		{"a newer version", form(func(f *savedForm) { f.Version = SnapshotVersion + 1 }), "format version is 2, this weft reads up to 1: it was written by a newer weft"},
		{"no version", form(func(f *savedForm) { f.Version = 0 }), "no format version"},
		{"no session", form(func(f *savedForm) { f.Session = nil }), "EOF"},
		{"a state that is a list", form(func(f *savedForm) {
			f.Session, _ = abi.Marshal(savedSession{State: []byte{0x80}})
		}), "not a map"},
	} {
		_, err := Restore(s.key, nil, c.data)
		if !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want one with %q", c.what, err, c.want)
		}
	}
}

// FuzzRestore: no bytes may make Restore panic, nor the restored session.
func FuzzRestore(f *testing.F) {
	files, err := filepath.Glob(histories + "/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	graphs := make(map[string]*Graph)
	for i, name := range files {
		if i%8 != 0 {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		seedRestore(f, graphs, parseArchive(string(text)))
	}
	key := host.SessionKey{Tenant: "t", Session: "s"}
	find := func(version string) (*Graph, error) {
		if g := graphs[version]; g != nil {
			return g, nil
		}
		return nil, errors.New("no such version")
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		form, err := abi.Marshal(savedForm{Format: snapshotFormat, Version: SnapshotVersion, Session: data})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(key, find, data); err == nil {
			t.Log("a whole snapshot")
		}
		s, err := Restore(key, find, form)
		if err != nil {
			return
		}
		before, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		s, err = Restore(key, find, before)
		if err != nil {
			t.Fatalf("a snapshot of what was restored is refused: %v", err)
		}
		for _, id := range append(sortedKeys(s.runs), "") {
			past, err := Restore(key, find, before)
			if err != nil {
				t.Fatal(err)
			}
			target := ForkTarget{Key: host.SessionKey{Tenant: "t", Session: "fork"}, RunID: "fork-run", HandlerID: "fork", At: 7}
			if _, _, err := past.Fork(id, target); err != nil {
				continue
			}
			forked, err := past.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			fork := New(target.Key, find)
			if _, err := fork.Reduce(9, Adopt{Snapshot: forked}); err == nil {
				exercise(fork)
			}
		}
		exercise(s)
	})
}

// exercise plays ticks that are possible on any session. Errors are allowed.
func exercise(s *Session) {
	now := s.Now()
	play := func(t Tick) { _, _ = s.Reduce(now, t) }
	for id := range s.runs {
		play(Resume{RunID: id})
		play(Pause{RunID: id})
		play(Resume{RunID: id})
	}
	play(Shift{Lost: 1})
	for _, id := range sortedKeys(s.children) {
		play(ChildShown{Show: ChildShow{RunID: id, Seq: 1 << 62, Type: abi.TypeEvent, Body: abi.EmptyMap}})
		play(ChildEnded{End: ChildEnd{RunID: id, Result: &abi.Event{Type: abi.TypeStop, Body: abi.EmptyMap}}})
	}
	for _, id := range sortedKeys(s.runs) {
		for _, typ := range s.runs[id].graph.EventTypes() {
			play(PostEvent{RunID: id, Event: abi.Event{Type: typ}})
		}
	}
	for n, id := range s.Open() {
		inv := s.invocations[id]
		if inv == nil {
			continue
		}
		call := func(req Request) {
			play(Call{Invocation: id, Attempt: inv.attempt, N: uint64(n + 1), Request: req})
		}
		for _, ev := range inv.trigger {
			call(CollectEvents{Event: ev, Expected: []string{ev.Type}})
			call(CollectEvents{Event: ev, Expected: []string{ev.Type, ev.Type}})
		}
		call(EditState{Edits: []abi.Edit{{Op: abi.OpIncrement, Path: "n", Value: abi.Raw{1}}}})
		switch n % 3 {
		case 0:
			for _, typ := range sortedKeys(inv.step.waits) {
				call(WaitForEvent{ID: "w", Type: typ, Timeout: 3})
			}
		case 1:
			call(Sleep{Duration: 2})
		}
	}
	for range 20 {
		if now = max(now, s.NextTimer()); s.NextTimer() != host.WakeNever {
			play(Timer{})
		}
		for _, id := range s.Open() {
			if inv := s.invocations[id]; inv != nil { // else it ended with its run
				play(Finish{Invocation: id, Attempt: inv.attempt})
			}
		}
		play(BeginRun{})
	}
	for _, to := range s.MailTo() {
		play(Delivered{To: to, ID: s.lastMessage})
	}
	for id := range s.runs {
		play(Cancel{RunID: id})
		play(Cancel{RunID: id})
	}
	_ = s.Dump()
}

// seedRestore adds the sessions of a history to the corpus.
func seedRestore(f *testing.F, graphs map[string]*Graph, a *archive) {
	own := graphsOf(f, a)
	maps.Copy(graphs, own)
	p := newPlayer(f, own)
	for line := range strings.Lines(a.file("ticks")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p.play(line)
		data, err := p.live.Snapshot()
		if err != nil {
			f.Fatal(err)
		}
		var form savedForm
		if err := abi.Unmarshal(data, &form); err != nil {
			f.Fatal(err)
		}
		f.Add(form.Session)
	}
}
