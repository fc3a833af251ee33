package hostcall_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// world is a session with one open attempt, its journal, and a clock.
type world struct {
	t       testing.TB
	graph   *engine.Graph
	eng     *engine.Session
	inv     engine.Invocation
	invID   uint64
	journal [][]byte // encoded entries
	clock   int64
	reads   int
	// rival, if set, runs before the next commit is tried.
	rival  func()
	parked bool
	wanted bool // the attempt asked for the write ticket
	ended  int  // times that the attempt gave the write ticket back
}

const manifest = `{"abi": 1, "workflow": "w",
	"steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent", "Side"]},
	          {"name": "side", "accepts": ["Side"], "emits": ["StopEvent"]}],
	"events": {"Side": {}, "Note": {}}}`

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func value(v any) abi.Raw { return must(abi.EncodeValue(v)) }

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, manifest)
}

func newWorldOf(t testing.TB, manifest string) *world {
	t.Helper()
	m, err := abi.DecodeManifest(must(abi.FromJSON([]byte(manifest))))
	if err != nil {
		t.Fatal(err)
	}
	g, problems := engine.Compile(&m)
	if problems != nil {
		t.Fatal(problems)
	}
	w := &world{t: t, graph: g, clock: 1000}
	w.eng = w.fresh()
	res, err := w.reduce(engine.StartRun{RunID: "r", HandlerID: "h", Version: "v", Event: abi.Event{Type: "StartEvent", Body: abi.EmptyMap}, Limits: limit.Default()})
	if err != nil {
		t.Fatal(err)
	}
	w.keep(res.Entry)
	w.find()
	return w
}

func (w *world) fresh() *engine.Session {
	return engine.New(host.SessionKey{Tenant: "t", Session: "s"}, func(string) (*engine.Graph, error) { return w.graph, nil })
}

func (w *world) find() {
	open := w.eng.Open()
	if len(open) == 0 {
		w.t.Fatal("no open invocation")
	}
	w.invID = open[0]
	w.inv, _ = w.eng.Invocation(w.invID)
}

func (w *world) reduce(t engine.Tick) (engine.Result, error) {
	w.clock++
	return w.eng.Reduce(w.clock, t)
}

func (w *world) keep(e *engine.Entry) { w.journal = append(w.journal, must(abi.Marshal(e))) }

// crash forgets everything except the journal, and returns the attempt's record in the
// journal.
func (w *world) crash() (open engine.AttemptOpen, record []engine.CallRecord) {
	w.eng = w.fresh()
	for _, b := range w.journal {
		var e engine.Entry
		if err := abi.Unmarshal(b, &e); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.eng.Fold(&e); err != nil {
			w.t.Fatal(err)
		}
		if e.Invocation == w.invID {
			if e.Open != nil {
				open = *e.Open
			}
			record = append(record, e.Calls...)
		}
	}
	return open, record
}

// Now, State, Begin, End and Effect implement hostcall.Live.
func (w *world) Now() int64 { w.clock++; return w.clock }
func (w *world) State() *state.Node {
	w.reads++
	return w.eng.State()
}
func (w *world) Begin(p state.Path, want bool) (*state.Node, bool, error) {
	w.wanted = want
	if w.parked {
		return nil, false, hostcall.ErrParked
	}
	n, ok := state.Get(w.eng.State(), p)
	return n, ok, nil
}
func (w *world) End()         { w.ended++ }
func (w *world) Atomic() bool { return w.inv.Atomic }
func (w *world) Try(m *work.Meter, root *state.Node, req engine.Request) (engine.Tried, error) {
	p, err := w.prepare(m, root, req)
	if err != nil {
		return engine.Tried{}, err
	}
	return w.eng.Try(w.invID, w.inv.Attempt, root, engine.WithPrepared(req, p))
}

// prepare works out an edit or a commit.
func (w *world) prepare(m *work.Meter, root *state.Node, req engine.Request) (*engine.Prepared, error) {
	switch req.(type) {
	case engine.EditState, engine.CommitState:
		return engine.Prepare(m, w.graph, limit.Default(), root, req)
	}
	return nil, nil
}
func (w *world) Effect(m *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error {
	if _, ok := req.(engine.CommitState); ok && w.rival != nil {
		rival := w.rival
		w.rival = nil
		rival()
	}
	if call, ok := req.(engine.CallResource); ok {
		call.Mode = host.ResourceRepeat
		req = call
	}
	p, err := w.prepare(m, w.eng.State(), req)
	if err != nil {
		return err
	}
	res, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: w.inv.Attempt, N: n, Request: engine.WithPrepared(req, p)})
	if err != nil {
		return err
	}
	attach(&res)
	if res.Entry != nil {
		w.keep(res.Entry)
	}
	return nil
}

func (w *world) attempt(open engine.AttemptOpen, record []engine.CallRecord) *hostcall.Attempt {
	if open.Limits == (host.Limits{}) {
		open = engine.AttemptOpen{Clock: 500, Seed: [32]byte{7}, Limits: limit.Default()}
	}
	a := hostcall.New(w, open, record)
	a.Restart()
	return a
}

// errAbandon unwinds a guest before its call n.
var errAbandon = errors.New("abandoned")

// guest plays a fixed program and records all answers.
type guest struct {
	a     *hostcall.Attempt
	clock int64
	n     int
	stop  int // before this call; 0: never
	seen  []string
	paid  func() // called after each call; nil: no call
}

func (g *guest) call(im abi.Import, req abi.Raw) (abi.Raw, error) {
	g.n++
	if g.stop > 0 && g.n == g.stop {
		return nil, errAbandon
	}
	resp, status, clock, err := g.a.Call(im, req, g.clock)
	if g.paid != nil {
		g.paid()
	}
	if err != nil {
		return nil, err
	}
	if clock < g.clock {
		return nil, fmt.Errorf("time went back from %d to %d", g.clock, clock)
	}
	g.clock = clock
	g.seen = append(g.seen, fmt.Sprintf("%s -> %d %s at %d", im, status, abi.Diag(resp), clock))
	return resp, nil
}

func (g *guest) run() error {
	program := []struct {
		im  abi.Import
		req func(last abi.Raw) abi.Raw
	}{
		{abi.ImportStateGet, func(abi.Raw) abi.Raw { return value([]any{"list", []any{}}) }},
		{abi.ImportLog, func(abi.Raw) abi.Raw { return value([]any{0, "first"}) }},
		{abi.ImportStateEdit, func(abi.Raw) abi.Raw { return value([]any{[]any{"append", "list", 1}, []any{"increment", "a", 1}}) }},
		{abi.ImportNow, func(abi.Raw) abi.Raw { return value([]any{}) }},
		{abi.ImportRandom, func(abi.Raw) abi.Raw { return value([]any{4}) }},
		{abi.ImportStateGet, func(abi.Raw) abi.Raw { return value([]any{"missing"}) }},
		{abi.ImportSendEvent, func(abi.Raw) abi.Raw { return value([]any{[]any{"Side", map[string]any{"x": 1}}}) }},
		{abi.ImportWriteStream, func(abi.Raw) abi.Raw { return value([]any{[]any{"Note", map[string]any{}}}) }},
		{abi.ImportStateGet, func(abi.Raw) abi.Raw { return value([]any{"a"}) }},
		{abi.ImportStateBegin, func(abi.Raw) abi.Raw { return value([]any{"a"}) }},
		{abi.ImportStateGet, func(abi.Raw) abi.Raw { return value([]any{"list"}) }},
		{abi.ImportStateCommit, func(abi.Raw) abi.Raw { return value([]any{41}) }},
		{abi.ImportRandom, func(abi.Raw) abi.Raw { return value([]any{2}) }},
		{abi.ImportStateEdit, func(abi.Raw) abi.Raw { return value([]any{[]any{"test", "a", 41}}) }},
		{abi.ImportStateBegin, func(abi.Raw) abi.Raw { return value([]any{""}) }},
		{abi.ImportSendEvent, func(abi.Raw) abi.Raw { return value([]any{[]any{"Side", map[string]any{}}}) }}, // refused inside
		{abi.ImportStateAbort, func(abi.Raw) abi.Raw { return value([]any{}) }},
		{abi.ImportStateCommit, func(abi.Raw) abi.Raw { return value([]any{1}) }}, // refused outside
		{abi.ImportStateEdit, func(abi.Raw) abi.Raw { return value([]any{[]any{"increment", "a", 1}}) }},
		{abi.ImportRunWorkflow, func(abi.Raw) abi.Raw { return value([]any{1}) }}, // no request
	}
	for _, p := range program {
		if _, err := g.call(p.im, p.req(nil)); err != nil {
			return err
		}
	}
	return nil
}

const programCalls = 20

func (w *world) stateNow() string { return abi.Diag(w.eng.State().Encode()) }

// kinds counts the journal's entries of the attempt by kind.
func (w *world) kinds() string {
	n := map[engine.EntryKind]int{}
	for _, b := range w.journal {
		var e engine.Entry
		if err := abi.Unmarshal(b, &e); err != nil {
			w.t.Fatal(err)
		}
		n[e.Kind]++
	}
	return fmt.Sprint(n)
}

// An attempt that is abandoned before any of its calls, with and without a crash, ends
// like one that was not abandoned: each effect happens once, with the same answers.
func TestAbandonedAnywhereEffectsOnce(t *testing.T) {
	w := newWorld(t)
	ref := &guest{a: w.attempt(engine.AttemptOpen{}, nil), clock: 500}
	if err := ref.run(); err != nil {
		t.Fatal(err)
	}
	wantState, wantKinds := w.stateNow(), w.kinds()
	if len(ref.seen) != programCalls {
		t.Fatalf("the program makes %d calls", len(ref.seen))
	}
	for stop := 1; stop <= programCalls; stop++ {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("before call %d, crash %v", stop, crash), func(t *testing.T) {
				w := newWorld(t)
				a := w.attempt(engine.AttemptOpen{}, nil)
				first := &guest{a: a, clock: 500, stop: stop}
				if err := first.run(); !errors.Is(err, errAbandon) {
					t.Fatal(err)
				}
				replayed := outsideRegion(first.seen)
				if crash {
					open, record := w.crash()
					a = w.attempt(open, record)
					replayed = len(record)
				} else {
					a.Restart()
				}
				reads := w.reads
				if a.Replaying() != (replayed > 0) {
					t.Errorf("with %d calls in the record, Replaying() = %v", replayed, a.Replaying())
				}
				second := &guest{a: a, clock: 500}
				if err := second.run(); err != nil {
					t.Fatal(err)
				}
				if a.Replaying() {
					t.Error("still replaying at the end")
				}
				if got := w.stateNow(); got != wantState {
					t.Errorf("state %s, want %s", got, wantState)
				}
				if got := w.kinds(); got != wantKinds {
					t.Errorf("entries %s, want %s", got, wantKinds)
				}
				for i := range replayed {
					if second.seen[i] != first.seen[i] {
						t.Errorf("call %d was %q, replayed %q", i+1, first.seen[i], second.seen[i])
					}
				}
				if replayed == programCalls && w.reads != reads {
					t.Error("a replay reads the live state")
				}
				for i, line := range second.seen { // everything except the clock is the same as without a break
					if got, want := withoutClock(line), withoutClock(ref.seen[i]); got != want && !strings.HasPrefix(line, "now") {
						t.Errorf("call %d: %q, in a straight run %q", i+1, got, want)
					}
				}
			})
		}
	}
}

// outsideRegion counts the calls up to a region that is still open.
func outsideRegion(seen []string) int {
	open := len(seen)
	for i, line := range seen {
		switch im, _, _ := strings.Cut(line, " "); abi.Import(im) {
		case abi.ImportStateBegin:
			open = i
		case abi.ImportStateCommit, abi.ImportStateAbort:
			open = len(seen)
		}
	}
	return open
}

func withoutClock(s string) string { s, _, _ = strings.Cut(s, " at "); return s }

func TestDepartingFromTheRecordIsNamed(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(engine.AttemptOpen{}, nil)
	g := &guest{a: a}
	for _, im := range []string{"x", "y"} {
		if _, err := g.call(abi.ImportStateEdit, value([]any{[]any{"set", im, 1}})); err != nil {
			t.Fatal(err)
		}
	}
	for name, depart := range map[string]func(*guest) error{
		"another import": func(g *guest) error { _, err := g.call(abi.ImportNow, value([]any{})); return err },
		"another request": func(g *guest) error {
			_, err := g.call(abi.ImportStateEdit, value([]any{[]any{"set", "z", 1}}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.stateNow()
			a.Restart()
			err := depart(&guest{a: a})
			var m *hostcall.Mismatch
			if !errors.As(err, &m) || m.N != 1 {
				t.Fatalf("got %v", err)
			}
			for _, part := range []string{"call 1 of 2", `"x"`, "state_edit"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %s", err, part)
				}
			}
			if w.stateNow() != before {
				t.Error("a departing replay changed something")
			}
		})
	}
}

func TestLostCommitReplaysToBeginAndGetsTheNewValue(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(engine.AttemptOpen{}, nil)
	edit := func(g *guest, path string, v int) error {
		_, err := g.call(abi.ImportStateEdit, value([]any{[]any{"set", path, v}}))
		return err
	}
	if err := edit(&guest{a: a}, "n", 0); err != nil {
		t.Fatal(err)
	}
	increment := func() error { // edit, begin, commit value + 1
		a.Restart()
		g := &guest{a: a}
		if err := edit(g, "n", 0); err != nil {
			return err
		}
		raw, err := g.call(abi.ImportStateBegin, value([]any{"n"}))
		if err != nil {
			return err
		}
		v := must(abi.DecodeValue(raw)).(int64)
		_, err = g.call(abi.ImportStateCommit, value([]any{v + 1}))
		return err
	}
	for loss := range 4 {
		if w.wanted != (loss > 3) {
			t.Fatalf("the write ticket is asked for after %d losses", loss)
		}
		w.rival = func() { w.edit("n", 10) }
		if err := increment(); !errors.Is(err, engine.ErrConflict) {
			t.Fatalf("loss %d: %v", loss, err)
		}
	}
	if !w.wanted {
		t.Fatal("after three losses the fourth begin has to ask for the write ticket")
	}
	if err := increment(); err != nil {
		t.Fatal(err)
	}
	if got := w.stateNow(); got != `{"n": 41}` {
		t.Fatalf("state %s", got)
	}
}

// edit is an edit by somebody else. It uses the number of the same attempt, because the
// world has only one invocation.
func (w *world) edit(path string, by int) {
	res, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: w.inv.Attempt, N: 1,
		Request: engine.EditState{Edits: []abi.Edit{{Op: abi.OpIncrement, Path: path, Value: value(by)}}}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.keep(res.Entry)
}

func TestLimitsEndTheAttemptByName(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*host.Limits)
		run    func(*guest) error
	}{
		"host_calls": {func(l *host.Limits) { l.HostCalls = 3 }, func(g *guest) error {
			for range 4 {
				if _, err := g.call(abi.ImportNow, value([]any{})); err != nil {
					return err
				}
			}
			return nil
		}},
		"log_lines": {func(l *host.Limits) { l.LogLines = 2 }, func(g *guest) error {
			for range 3 {
				if _, err := g.call(abi.ImportLog, value([]any{0, "x"})); err != nil {
					return err
				}
			}
			return nil
		}},
		"record_bytes": {func(l *host.Limits) { l.RecordBytes = 200 }, func(g *guest) error {
			for range 20 {
				if _, err := g.call(abi.ImportRandom, value([]any{16})); err != nil {
					return err
				}
			}
			return nil
		}},
		"region_calls": {func(l *host.Limits) { l.RegionCalls = 2 }, func(g *guest) error {
			if _, err := g.call(abi.ImportStateBegin, value([]any{""})); err != nil {
				return err
			}
			for range 3 {
				if _, err := g.call(abi.ImportNow, value([]any{})); err != nil {
					return err
				}
			}
			return nil
		}},
		"region_time": {func(l *host.Limits) { l.RegionTime = 1 }, func(g *guest) error {
			for _, im := range []abi.Import{abi.ImportStateBegin, abi.ImportNow, abi.ImportNow} {
				req := value([]any{})
				if im == abi.ImportStateBegin {
					req = value([]any{""})
				}
				if _, err := g.call(im, req); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			open := engine.AttemptOpen{Limits: limit.Default()}
			c.change(&open.Limits)
			err := c.run(&guest{a: w.attempt(open, nil)})
			var l *hostcall.LimitError
			if !errors.As(err, &l) || l.Err.Code != host.RunLimitExceeded || !strings.Contains(l.Err.Message, name) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestGarbageIsAnsweredWithAnError(t *testing.T) {
	w := newWorld(t)
	before := w.stateNow()
	for _, im := range abi.HostCalls {
		g := &guest{a: w.attempt(engine.AttemptOpen{}, nil)}
		for _, req := range [][]byte{nil, {0xff}, {0x80, 0x80}, {0x81}, []byte(strings.Repeat("\x81", 100)), value("text"), value([]any{1, 2, 3, 4, 5})} {
			resp, status, _, err := g.a.Call(im, req, 0)
			if err != nil {
				t.Fatalf("%s: %v", im, err)
			}
			if status == abi.StatusOK {
				t.Errorf("%s takes %x", im, req)
			}
			if _, err := abi.DecodeError(resp); err != nil {
				t.Errorf("%s: a failing call's answer is no error: %v", im, err)
			}
		}
	}
	if w.stateNow() != before {
		t.Error("garbage changed the state")
	}
}

// TestPrintedLines: printed text becomes lines, however it is split into pieces, and the
// line of a panic is an error.
func TestPrintedLines(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(engine.AttemptOpen{}, nil)
	for _, p := range []struct {
		fd   uint32
		text string
	}{
		{1, "one\ntwo\r\n\nthr"}, {1, "ee"}, {1, "\n"}, {1, "four"}, {2, "pan"}, {2, "ic: "}, {2, "boom\n\ngoroutine 1 [running]:\n"},
		{1, "pa"}, {1, "nic: of TinyGo\n"}, {1, "no panic: here\n"}, {2, "thread 'main' panicked at src/lib.rs:1:2:\nhello\n"}, {2, "thread 'x' works\n"},
	} {
		a.Print(p.fd, []byte(p.text))
	}
	var got []string
	for _, l := range a.Logs() {
		got = append(got, fmt.Sprintf("%d %d %s", l.FD, l.Level, l.Message))
	}
	want := []string{
		"1 0 one", "1 0 two", "1 0 three", "1 0 four", "2 8 panic: boom", "2 0 goroutine 1 [running]:",
		"1 8 panic: of TinyGo", "1 0 no panic: here", "2 8 thread 'main' panicked at src/lib.rs:1:2:", "2 0 hello", "2 0 thread 'x' works",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestLogLinesComeOnceAcrossReplays(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(engine.AttemptOpen{}, nil)
	play := func() {
		g := &guest{a: a}
		a.Print(1, []byte("printed "))
		a.Print(1, []byte("early\n"))
		for _, s := range []string{"one", "two"} {
			must(g.call(abi.ImportLog, value([]any{0, s})))
			if s == "one" {
				must(g.call(abi.ImportStateEdit, value([]any{[]any{"increment", "n", 1}})))
			}
		}
		a.Print(2, []byte("printed late\n"))
	}
	play()
	a.Restart()
	play()
	var e engine.Entry
	a.Finish(&e)
	var first engine.Entry
	if err := abi.Unmarshal(w.journal[len(w.journal)-1], &first); err != nil {
		t.Fatal(err)
	}
	text := func(e *engine.Entry) string {
		var s []string
		for _, l := range e.Logs {
			s = append(s, l.Message)
		}
		return strings.Join(s, "|")
	}
	if got := text(&first); got != "printed early|one" {
		t.Errorf("with the effect: %q", got)
	}
	if got := text(&e); got != "two|printed late" {
		t.Errorf("with the finish: %q", got)
	}
}
