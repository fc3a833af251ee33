package hosttest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/store/memory"
)

// stage is a whole host whose guests are puppets. They run in the real sandbox, by the
// real scheduler, on the real journal, but each of their host calls, and their end, waits
// for permission. The clock advances only on request. The store outlives the hosts opened
// on it.
type stage struct {
	tb    testing.TB
	store *tapStore
	host  *wire.Host
	limit *limit.Table

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	now     time.Time
	told    map[attemptID][]abi.Raw // operations, by attempt
	guests  map[attemptID]*puppetState
	closed  bool
}

type attemptID struct{ invocation, attempt uint64 }

// puppetState is how far an attempt may proceed, and how far it has proceeded.
type puppetState struct {
	calls    int // calls that it may make
	finished bool
	made     int // answered calls of all its runs, which need not wait again
	waits    int // the suspended call; 0: none
	answers  map[int]answered
}

type answered struct {
	status   abi.Status
	response []byte
}

func newStage(tb testing.TB, limits host.Limits) *stage {
	s := &stage{
		tb: tb, now: time.Unix(0, 0), limit: limit.NewTable(limits),
		told: map[attemptID][]abi.Raw{}, guests: map[attemptID]*puppetState{},
	}
	s.changed = sync.NewCond(&s.mu)
	s.store = &tapStore{Store: memory.New(), s: s}
	s.open()
	tb.Cleanup(func() { s.close() })
	return s
}

// open opens a host on the store.
func (s *stage) open() {
	s.tb.Helper()
	w, err := wire.Open(s.tb.Context(), wire.Config{
		Data: wire.InMemory, Code: hosttest.Code, Compiler: hosttest.Compiler, Store: s.store, Tokens: 100, Limits: s.limit, IdleAfter: time.Hour,
		Around: func(b host.Sandbox) host.Sandbox { return &stagedSandbox{Sandbox: b, s: s} },
		Now:    s.clock,
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.host = w
}

// close ends the host and releases its guests; the store stays.
func (s *stage) close() {
	s.tb.Helper()
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), suite.Hang)
	defer cancel()
	if err := s.host.Close(ctx); err != nil && !errors.Is(err, host.ErrFenced) {
		s.tb.Errorf("close the host: %v", err)
	}
	s.mu.Lock()
	s.closed = false
	s.mu.Unlock()
}

// restart ends the host and opens another. After a crash, the store has no mark of a
// clean end.
func (s *stage) restart(crash bool) { s.restartAt(crash, time.Duration(s.clock().UnixNano())) }

// restartAt opens the new host at a time.
func (s *stage) restartAt(crash bool, at time.Duration) {
	s.tb.Helper()
	if crash {
		// A host records every few seconds that it serves, and the time lost by a crash
		// counts as down. The histories have no such time.
		now := binary.BigEndian.AppendUint64(nil, uint64(s.clock().UnixNano()))
		if err := s.store.SetMeta(s.tb.Context(), "alive_until", now); err != nil {
			s.tb.Fatal(err)
		}
		s.store.lose()
	}
	s.close()
	s.store.keep()
	s.mu.Lock()
	s.now = time.Unix(0, int64(at))
	s.mu.Unlock()
	s.open()
}

func (s *stage) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// until waits for a condition, which is evaluated with mu held.
func (s *stage) until(what string, holds func() bool) {
	s.tb.Helper()
	late := time.AfterFunc(suite.Hang, func() {
		s.mu.Lock()
		s.changed.Broadcast()
		s.mu.Unlock()
	})
	defer late.Stop()
	end := time.Now().Add(suite.Hang)
	s.mu.Lock()
	defer s.mu.Unlock()
	for !holds() {
		if time.Now().After(end) {
			s.tb.Fatalf("waited in vain for %s; %d entries, %v", what, s.store.last, s.guests)
		}
		s.changed.Wait()
	}
}

func (s *stage) guest(id attemptID) *puppetState {
	g := s.guests[id]
	if g == nil {
		g = &puppetState{answers: map[int]answered{}}
		s.guests[id] = g
	}
	return g
}

// stagedSandbox tells puppets what to do, one at a time.
type stagedSandbox struct {
	host.Sandbox
	s *stage
}

func (b *stagedSandbox) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	in, err := abi.DecodeStepInput(inv.Input)
	if err != nil {
		return host.InvocationResult{}, err
	}
	id := attemptID{in.Run.Invocation, in.Run.Attempt}
	b.s.mu.Lock()
	ops := b.s.told[id]
	b.s.mu.Unlock()
	if in.Config, err = abi.EncodeValue(map[string]any{"ops": ops}); err != nil {
		return host.InvocationResult{}, err
	}
	if inv.Input, err = in.Encode(); err != nil {
		return host.InvocationResult{}, err
	}
	stop := context.AfterFunc(ctx, func() {
		b.s.mu.Lock()
		b.s.changed.Broadcast()
		b.s.mu.Unlock()
	})
	defer stop()
	inv.Calls = &stagedCalls{Calls: inv.Calls, s: b.s, ctx: ctx, id: id}
	res, err := b.Sandbox.Invoke(ctx, inv)
	if err == nil {
		err = b.s.turn(ctx, id, func(g *puppetState) bool { return g.finished })
	}
	return res, err
}

// turn waits until an attempt may proceed.
func (s *stage) turn(ctx context.Context, id attemptID, may func(g *puppetState) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !may(s.guest(id)) {
		if s.closed || ctx.Err() != nil {
			return context.Canceled
		}
		s.changed.Wait()
	}
	return nil
}

// stagedCalls are the host calls of one run of an attempt.
type stagedCalls struct {
	host.Calls
	s   *stage
	ctx context.Context
	id  attemptID
	n   int
}

// Replaying implements host.Replayer.
func (c *stagedCalls) Replaying() bool {
	r, ok := c.Calls.(host.Replayer)
	return ok && r.Replaying()
}

func (c *stagedCalls) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	c.n++
	if err := c.s.turn(c.ctx, c.id, func(g *puppetState) bool { return c.n <= g.calls }); err != nil {
		return nil, 0, 0, err
	}
	resp, status, after, err := c.Calls.Call(im, req, clock)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	g := c.s.guest(c.id)
	if err != nil {
		g.waits = max(g.waits, c.n)
	} else {
		g.made = max(g.made, c.n)
		if before, ok := g.answers[c.n]; ok && (before.status != status || string(before.response) != string(resp)) && im != abi.ImportStateBegin {
			c.s.tb.Errorf("call %d of %v is answered by %d %x, and was by %d %x", c.n, c.id, status, resp, before.status, before.response)
		}
		g.answers[c.n] = answered{status, append([]byte(nil), resp...)}
	}
	c.s.changed.Broadcast()
	return resp, status, after, err
}

// tapStore is a store that reports what was committed.
type tapStore struct {
	host.Store
	s      *stage
	lost   bool // the host counts as dead: its writes are dropped
	last   uint64
	shifts int // entries by which hosts recorded that there was an earlier host
	rows   [][]byte
	stream []string
	runs   map[string]host.Run
}

func (t *tapStore) lose() {
	t.s.mu.Lock()
	t.lost = true
	t.s.mu.Unlock()
}

func (t *tapStore) keep() {
	t.s.mu.Lock()
	t.lost = false
	t.s.mu.Unlock()
}

func (t *tapStore) Append(ctx context.Context, b host.Batch) error {
	t.s.mu.Lock()
	lost := t.lost
	t.s.mu.Unlock()
	if lost {
		return host.ErrFenced
	}
	if err := t.Store.Append(ctx, b); err != nil {
		return err
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, part := range b.Sessions {
		t.last = max(t.last, part.Last)
		if part.Data != nil {
			t.rows = append(t.rows, append([]byte(nil), part.Data...))
			t.shifts += countShifts(part.Data)
		}
		for _, row := range part.Stream {
			for _, ev := range row.Events {
				t.stream = append(t.stream, showStream(row.HandlerID, ev))
			}
		}
		for _, r := range part.Runs {
			if t.runs == nil {
				t.runs = map[string]host.Run{}
			}
			t.runs[r.RunID] = r
		}
	}
	t.s.changed.Broadcast()
	return nil
}

// SetMeta omits the marks of a clean end if the host has crashed.
func (t *tapStore) SetMeta(ctx context.Context, key string, value []byte) error {
	t.s.mu.Lock()
	lost := t.lost
	t.s.mu.Unlock()
	if lost {
		return nil
	}
	return t.Store.SetMeta(ctx, key, value)
}

// Close leaves the store open: it outlives its hosts.
func (t *tapStore) Close() error { return nil }

// entries returns all entries of the journal. mu must be held.
func (t *tapStore) entries(tb testing.TB) []*engine.Entry {
	tb.Helper()
	var out []*engine.Entry
	for _, row := range t.rows {
		some, err := entriesOf(row)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range some {
			out = append(out, &some[i])
		}
	}
	return out
}

func entriesOf(row []byte) (some []engine.Entry, err error) {
	const header = 5
	err = abi.Unmarshal(row[header:], &some)
	return some, err
}

func countShifts(row []byte) int {
	n := 0
	some, _ := entriesOf(row) // an error shows at the end
	for i := range some {
		if some[i].Kind == engine.EntryShift {
			n++
		}
	}
	return n
}

// showStream formats an event as the histories do.
func showStream(handler string, ev host.StreamEvent) string {
	if ev.Type == abi.TypeStepStateChanged {
		v, _ := abi.DecodeValue(ev.Body)
		m, _ := v.(map[string]any)
		output := "null"
		if text, ok := m["output_event_name"].(string); ok {
			output = text
		}
		return fmt.Sprintf("  %s %d step %s %s %s: %s > %s", handler, ev.Seq, m["name"], m["step_state"], m["worker_id"], m["input_event_name"], output)
	}
	marks := ""
	if len(ev.Types) > 0 {
		marks += " " + strings.Join(ev.Types, "<")
	}
	if ev.Terminal {
		marks += " terminal"
	}
	body, err := abi.ToJSON(ev.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("  %s %d %s%s%s", handler, ev.Seq, ev.QualifiedName(), body, marks)
}
