package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// fakeHost is a host in memory that runs the workflows of the recorded
// exchanges (testdata/wire), at once and without plugins.
type fakeHost struct {
	tb        testing.TB
	workflows map[string]*fakeWorkflow

	mu       sync.Mutex
	handlers map[string]*fakeHandler
	plugins  map[string][]host.PluginInfo
	now      int64
	ids      int
	wake     chan struct{} // closed and replaced when anything changes

	// lastStart and lastSend are the last requests.
	lastStart host.StartRequest
	lastSend  abi.Event
	lastStep  string
	lastOnce  host.Once
	journal   []host.TimelineEntry // of every run
	asked     host.TimelineQuery   // the last one
	forked    host.ForkRequest     // the last one
	lastRows  host.RowQuery
	lastQuery host.RunQuery

	lastMigrate []host.MigrateRequest
	sessions    fakeSessions

	// onPut, if set, is called in every upload.
	onPut func(ctx context.Context)
	// startErr, if set, is the error of every Start.
	startErr error
	// unhealthy is the result of the health checks.
	unhealthy, unready error
	reduced            string
	// onNext, if set, is called when a stream begins to wait.
	onNext func()
	// pluginErr, if set, is the error of every Put.
	pluginErr error
}

type fakeHandler struct {
	runs   []*host.Run // oldest first
	events []host.StreamEvent
	first  uint64 // sequence number of the latest run's first event
	state  int    // what hello counts
}

func (h *fakeHandler) latest() *host.Run { return h.runs[len(h.runs)-1] }

type fakeWorkflow struct {
	info  host.WorkflowInfo
	start func(f *fakeHost, h *fakeHandler, r *host.Run, body map[string]any)
	send  func(f *fakeHost, h *fakeHandler, r *host.Run, typ string, body map[string]any)
	steps []string
	takes map[string]bool // event types from outside
}

func newFake(tb testing.TB) *fakeHost {
	f := &fakeHost{
		tb:        tb,
		handlers:  map[string]*fakeHandler{},
		plugins:   map[string][]host.PluginInfo{},
		now:       time.Date(2026, 11, 21, 2, 47, 31, 384221000, time.UTC).UnixNano(),
		wake:      make(chan struct{}),
		workflows: fakeWorkflows(tb),
	}
	return f
}

// changed wakes all streams; f.mu is held.
func (f *fakeHost) changed() {
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *fakeHost) tick() int64 {
	f.now += int64(time.Millisecond)
	return f.now
}

func (f *fakeHost) newID(prefix string) string {
	f.ids++
	return fmt.Sprintf("%s-%d", prefix, f.ids)
}

func (f *fakeHost) raw(v map[string]any) abi.Raw {
	raw, err := abi.EncodeValue(v)
	if err != nil {
		f.tb.Error(err)
	}
	return raw
}

// emit puts an event on a handler's stream.
func (f *fakeHost) emit(h *fakeHandler, r *host.Run, e host.StreamEvent, body map[string]any) *host.StreamEvent {
	e.Seq, e.RunID, e.Workflow, e.Body = uint64(len(h.events)), r.RunID, r.Workflow, f.raw(body)
	h.events = append(h.events, e)
	return &e
}

// step publishes that a step began or ended, as an internal event.
func (f *fakeHost) step(h *fakeHandler, r *host.Run, name, state, in string, out any) {
	f.emit(h, r, host.StreamEvent{Type: "StepStateChanged", Base: true, Internal: true}, map[string]any{
		"name": name, "step_state": state, "worker_id": "0", "input_event_name": in, "output_event_name": out,
	})
	if state == "not_running" {
		r.Steps++
	}
}

func (f *fakeHost) idle(h *fakeHandler, r *host.Run) {
	f.emit(h, r, host.StreamEvent{Type: "WorkflowIdleEvent", Base: true, Internal: true}, map[string]any{})
}

func (f *fakeHost) progress(h *fakeHandler, r *host.Run, pct int) {
	f.emit(h, r, host.StreamEvent{Type: "Progress"}, map[string]any{"pct": pct})
}

// end closes a run with its terminal event.
func (f *fakeHost) end(h *fakeHandler, r *host.Run, status host.Status, e host.StreamEvent, body map[string]any) {
	e.Terminal = true
	last := f.emit(h, r, e, body)
	r.Status, r.Updated = status, f.tick()
	r.Completed = r.Updated
	if status == host.StatusCompleted {
		r.Result = last
	}
}

func (f *fakeHost) stop(h *fakeHandler, r *host.Run, result any) {
	f.end(h, r, host.StatusCompleted, host.StreamEvent{Type: "StopEvent", Base: true}, map[string]any{"result": result})
}

// Start implements host.Runs.
func (f *fakeHost) Start(ctx context.Context, req host.StartRequest) (host.Run, error) {
	f.mu.Lock()
	f.lastStart = req
	if f.startErr != nil {
		defer f.mu.Unlock()
		return host.Run{}, f.startErr
	}
	w := f.workflows[req.Workflow]
	if w == nil {
		defer f.mu.Unlock()
		return host.Run{}, host.Errorf(host.CodeNotFound, "no workflow %q", req.Workflow)
	}
	h, r, err := f.begin(w, req)
	f.mu.Unlock()
	if err != nil || !req.Wait {
		if err != nil {
			return host.Run{}, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		started := *r
		// The answer to a start that does not wait has the state directly after the
		// start.
		started.Status, started.Completed, started.Result, started.Error = host.StatusRunning, 0, nil, ""
		started.Updated = started.Started
		return started, nil
	}
	return f.await(ctx, h, r)
}

// begin makes a run; f.mu is held.
func (f *fakeHost) begin(w *fakeWorkflow, req host.StartRequest) (*fakeHandler, *host.Run, error) {
	h := f.handlers[req.HandlerID]
	if h != nil && h.latest().Status == host.StatusRunning {
		return nil, nil, host.Errorf(host.CodeConflict, "Handler '%s' is already running", req.HandlerID)
	}
	body, err := f.checkBody(w, w.info.StartType, req.Event.Body)
	if err != nil {
		return nil, nil, err
	}
	if req.HandlerID == "" {
		req.HandlerID = f.newID("handler")
	}
	if req.SessionID == "" {
		req.SessionID = req.HandlerID
	}
	if h == nil {
		h = &fakeHandler{}
		f.handlers[req.HandlerID] = h
	}
	r := &host.Run{
		Tenant: req.Tenant, HandlerID: req.HandlerID, RunID: f.newID("run"), SessionID: req.SessionID,
		Workflow: req.Workflow, Status: host.StatusRunning, Started: f.tick(),
	}
	r.Updated = r.Started
	h.runs = append(h.runs, r)
	h.first = uint64(len(h.events))
	w.start(f, h, r, body)
	f.changed()
	return h, r, nil
}

func (f *fakeHost) await(ctx context.Context, h *fakeHandler, r *host.Run) (host.Run, error) {
	for {
		f.mu.Lock()
		run, wake := *r, f.wake
		f.mu.Unlock()
		if run.Status.Final() {
			return run, nil
		}
		if f.onNext != nil {
			f.onNext()
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return host.Run{}, ctx.Err()
		}
	}
}

// checkBody checks an event's fields against a small part of JSON Schema.
func (f *fakeHost) checkBody(w *fakeWorkflow, typ string, body abi.Raw) (map[string]any, error) {
	v, err := abi.DecodeValue(body)
	if err != nil {
		f.tb.Errorf("body of %s: %v", typ, err)
	}
	fields, ok := v.(map[string]any)
	if !ok {
		f.tb.Errorf("body of %s is a %T", typ, v)
	}
	i := slices.IndexFunc(w.info.Events, func(e host.EventInfo) bool { return e.Type == typ })
	schema, err := abi.DecodeValue(w.info.Events[i].Schema)
	if err != nil {
		f.tb.Error(err)
	}
	s := schema.(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := fields[name.(string)]; !ok {
			return nil, host.Errorf(host.CodeInvalidArgument, "%s.%s: required", typ, name)
		}
	}
	for name, p := range s["properties"].(map[string]any) {
		if got, ok := fields[name]; ok && p.(map[string]any)["type"] == "integer" {
			if n, ok := got.(int64); !ok || n < 0 {
				return nil, host.Errorf(host.CodeInvalidArgument, "%s.%s: not an integer of at least 0", typ, name)
			}
		}
	}
	return fields, nil
}

// find returns a handler's latest run, or a run by its id; f.mu is held.
func (f *fakeHost) find(id string) (*fakeHandler, *host.Run, error) {
	if h := f.handlers[id]; h != nil {
		return h, h.latest(), nil
	}
	for _, h := range f.handlers {
		for _, r := range h.runs {
			if r.RunID == id {
				return h, r, nil
			}
		}
	}
	return nil, nil, host.Errorf(host.CodeNotFound, "no handler or run %q", id)
}

// Get implements host.Runs.
func (f *fakeHost) Get(_ context.Context, _, id string) (host.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, r, err := f.find(id)
	if err != nil {
		return host.Run{}, err
	}
	return *r, nil
}

// List implements host.Runs.
func (f *fakeHost) List(_ context.Context, q host.RunQuery) ([]host.Run, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastQuery = q
	var runs []host.Run
	for _, h := range f.handlers {
		r := h.latest()
		if len(q.Statuses) > 0 && !slices.Contains(q.Statuses, string(r.Status)) ||
			len(q.Workflows) > 0 && !slices.Contains(q.Workflows, r.Workflow) ||
			q.Session != "" && r.SessionID != q.Session || r.Updated < q.Since || q.Blocked && r.Blocked == nil ||
			q.AfterHandler != "" && (r.Started > q.AfterStarted || r.HandlerID == q.AfterHandler) {
			continue
		}
		runs = append(runs, *r)
	}
	slices.SortFunc(runs, func(a, b host.Run) int { return int(b.Started - a.Started) })
	if len(runs) > q.Limit {
		return runs[:q.Limit], true, nil
	}
	return runs, false, nil
}

// RunCounts implements host.Runs.
func (f *fakeHost) RunCounts(_ context.Context, _ string) (counts []host.RunCount, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.handlers {
		counts = append(counts, host.RunCount{Workflow: h.latest().Workflow, Phase: h.latest().Phase(), Runs: 1})
	}
	return counts, nil
}

// Rows implements host.Runs.
func (f *fakeHost) Rows(_ context.Context, q host.RowQuery) (rows []host.RunRow, more bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastRows = q
	for _, h := range f.handlers {
		r := h.latest()
		if q.From == nil || r.Started < q.From.Started && !q.Back || r.Started > q.From.Started && q.Back {
			rows = append(rows, host.RunRow{Run: *r, Phase: r.Phase()})
		}
	}
	slices.SortFunc(rows, func(a, b host.RunRow) int { return int(b.Started - a.Started) })
	switch {
	case len(rows) <= q.Limit:
		return rows, false, nil
	case q.Back:
		return rows[len(rows)-q.Limit:], true, nil
	}
	return rows[:q.Limit], true, nil
}

// SendOnce implements host.Runs.
func (f *fakeHost) SendOnce(_ context.Context, _, id string, event abi.Event, step string, once host.Once) (d host.Delivery, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastSend, f.lastStep, f.lastOnce = event, step, once
	h, r, err := f.find(id)
	if err != nil {
		return d, err
	}
	if r.Status.Final() {
		return d, host.Errorf(host.CodeConflict, "Workflow already completed")
	}
	w := f.workflows[r.Workflow]
	names := []string{}
	for _, e := range w.info.Events {
		names = append(names, e.Type)
	}
	if !slices.Contains(names, event.Type) {
		return d, host.Errorf(host.CodeInvalidArgument, "Invalid event type: %s. Expected one of %s", event.Type, strings.Join(names, ", "))
	}
	if step != "" && !slices.Contains(w.steps, step) {
		return d, host.Errorf(host.CodeInvalidArgument, "Step %s does not exist", step)
	}
	body, err := f.checkBody(w, event.Type, event.Body)
	if err != nil {
		return d, err
	}
	if !w.takes[event.Type] {
		f.emit(h, r, host.StreamEvent{Type: "UnhandledEvent", Base: true, Internal: true}, map[string]any{
			"event_type": event.Type, "qualified_name": r.Workflow + "." + event.Type, "step_name": nil, "idle": true,
		})
		f.idle(h, r)
	} else {
		w.send(f, h, r, event.Type, body)
	}
	f.changed()
	return d, nil
}

// Timeline implements host.Runs: every run has the same entries.
func (f *fakeHost) Timeline(_ context.Context, q host.TimelineQuery) (host.Timeline, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = q
	_, r, err := f.find(q.ID)
	if err != nil {
		return host.Timeline{}, host.Errorf(host.CodeNotFound, "no run %q", q.ID)
	}
	var t host.Timeline
	for i := range f.journal {
		e := f.journal[i]
		switch e.RunID = r.RunID; {
		case e.Seq <= q.After || q.Before != 0 && e.Seq >= q.Before:
		case len(t.Entries) == q.Limit:
			t.Next = t.Entries[q.Limit-1].Seq
			return t, nil
		default:
			t.Entries = append(t.Entries, e)
		}
	}
	return t, nil
}

// StateAt implements host.Runs: every run has a number at n, its position, from 3 to 9.
func (f *fakeHost) StateAt(_ context.Context, _, id string, at uint64, path string) (host.StateValue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, err := f.find(id)
	switch {
	case err != nil:
		return host.StateValue{}, host.Errorf(host.CodeNotFound, "no run %q", id)
	case at < 3:
		return host.StateValue{}, host.Errorf(host.CodeGone, "cut away")
	case at > 9:
		return host.StateValue{}, host.Errorf(host.CodeInvalidArgument, "no entry")
	case path == "n":
		return host.StateValue{Value: abi.Raw{byte(at)}, Tag: fmt.Sprint("t", at)}, nil
	}
	return host.StateValue{Value: abi.Raw{0xa1, 0x61, 'n', byte(at)}, Tag: fmt.Sprint("s", at)}, nil
}

// Fork implements host.Runs: any run can be forked at 7, and at no other position.
func (f *fakeHost) Fork(_ context.Context, req host.ForkRequest) (host.Fork, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forked = req
	id, at := req.ID, req.At
	_, r, err := f.find(id)
	switch {
	case err != nil:
		return host.Fork{}, host.Errorf(host.CodeNotFound, "no run %q", id)
	case at < 3:
		return host.Fork{}, host.Errorf(host.CodeGone, "cut away")
	case at != 7:
		return host.Fork{}, &host.Error{Code: host.CodeConflict, Message: "the nearest is 7", Nearest: &host.Nearest{Before: 7}}
	}
	out := host.Fork{Run: *r, Anew: []host.Renewed{{Kind: host.RenewedChild, Step: "s", Workflow: "w", HandlerID: "new", Was: "old"}, {Kind: host.RenewedChild}}}
	out.Run.HandlerID, out.Run.RunID = "forked", "forked-run"
	return out, nil
}

// Export implements host.Runs.
func (f *fakeHost) Export(_ context.Context, _, id string) (host.RunSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, r, err := f.find(id)
	if err != nil {
		return host.RunSnapshot{}, host.Errorf(host.CodeNotFound, "no run %q", id)
	}
	return host.RunSnapshot{Version: 1, Workflow: r.Workflow, HandlerID: r.HandlerID, RunID: r.RunID, Status: r.Status, Modules: []string{"d"}, Session: []byte{1, 2, 255}, Held: []byte{0x80}}, nil
}

// Pause and Resume implement host.Runs.
func (f *fakeHost) Pause(_ context.Context, _, id string) (host.Run, error) { return f.hold(id, true) }

func (f *fakeHost) Resume(_ context.Context, _, id string) (host.Run, error) {
	return f.hold(id, false)
}

func (f *fakeHost) hold(id string, paused bool) (host.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, r, err := f.find(id)
	switch {
	case err != nil:
		return host.Run{}, host.Errorf(host.CodeNotFound, "no run %q", id)
	case r.Status.Final() || !paused && !r.Paused:
		return host.Run{}, host.Errorf(host.CodeConflict, "Workflow already completed")
	}
	r.Paused = paused
	return *r, nil
}

// Cancel implements host.Runs.
func (f *fakeHost) Cancel(_ context.Context, _, id string, purge bool) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, r, err := f.find(id)
	if err != nil || r.Status.Final() && !purge {
		return false, host.Errorf(host.CodeNotFound, "no running run %q", id)
	}
	if !r.Status.Final() {
		f.end(h, r, host.StatusCancelled, host.StreamEvent{Type: "WorkflowCancelledEvent", Base: true, Types: []string{"StopEvent"}}, map[string]any{})
	}
	if purge {
		delete(f.handlers, r.HandlerID)
	}
	f.changed()
	return purge, nil
}

// publish puts a plain event on the stream of a running run.
func (f *fakeHost) publish(id string, e host.StreamEvent, body map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, r, err := f.find(id)
	if err != nil {
		f.tb.Error(err)
		return
	}
	f.emit(h, r, e, body)
	f.changed()
}

// finish completes a running run.
func (f *fakeHost) finish(id string, result any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, r, err := f.find(id)
	if err != nil {
		f.tb.Error(err)
		return
	}
	f.stop(h, r, result)
	f.changed()
}

// fakeStream implements host.Stream.
type fakeStream struct {
	f     *fakeHost
	id    string
	pos   uint64 // next sequence number
	ended bool
}

// Events implements host.Runs.
func (f *fakeHost) Events(_ context.Context, _, id string, after int64) (host.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, r, err := f.find(id)
	if err != nil {
		return nil, err
	}
	s := &fakeStream{f: f, id: r.HandlerID}
	switch after {
	case position.FromNow:
		s.pos = uint64(len(h.events))
	case position.FromRun:
		s.pos = h.first
	default:
		s.pos = uint64(after) + 1
	}
	s.ended = r.Status.Final() && s.pos >= uint64(len(h.events))
	return s, nil
}

func (s *fakeStream) Next(ctx context.Context, wait time.Duration) ([]host.StreamEvent, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		events, wake, err := s.poll()
		if len(events) > 0 || err != nil {
			return events, err
		}
		if s.f.onNext != nil {
			s.f.onNext()
		}
		select {
		case <-wake:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *fakeStream) poll() ([]host.StreamEvent, chan struct{}, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	h := s.f.handlers[s.id]
	if h == nil {
		return nil, nil, host.Errorf(host.CodeNotFound, "purged")
	}
	if s.pos < uint64(len(h.events)) {
		events := slices.Clone(h.events[s.pos:])
		s.pos = uint64(len(h.events))
		return events, nil, nil
	}
	if h.latest().Status.Final() {
		return nil, nil, io.EOF
	}
	return nil, s.f.wake, nil
}

func (s *fakeStream) Ended() bool { return s.ended }
func (s *fakeStream) Close()      {}

func (f *fakeHost) Healthy() error { return f.unhealthy }
func (f *fakeHost) Ready() error   { return errors.Join(f.unhealthy, f.unready) }

// Reduced implements host.Health.
func (f *fakeHost) Reduced() string { return f.reduced }

// fakeFamily is a stream without children.
type fakeFamily struct{ host.Stream }

// FamilyEvents implements host.Runs.
func (f *fakeHost) FamilyEvents(ctx context.Context, tenant, id string, from position.Family) (host.FamilyStream, error) {
	s, err := f.Events(ctx, tenant, id, from.After)
	return fakeFamily{s}, err
}

func (s fakeFamily) Next(ctx context.Context, wait time.Duration) ([]host.FamilyEvent, error) {
	events, err := s.Stream.Next(ctx, wait)
	out := make([]host.FamilyEvent, len(events))
	for i, e := range events {
		out[i] = host.FamilyEvent{StreamEvent: e, HandlerID: s.Stream.(*fakeStream).id, Position: fmt.Sprint(e.Seq)}
	}
	return out, err
}
