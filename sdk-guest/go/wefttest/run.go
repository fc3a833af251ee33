package wefttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// Event is an event: its type's name and its fields.
type Event struct {
	Type string
	Body map[string]any
}

// Record is a log record.
type Record struct {
	Level   int // -4 debug, 0 info, 4 warn, 8 error
	Message string
	Attrs   map[string]any
}

// Edit is a change that a step made to the state. Op is set, delete, append, increment,
// merge, test or clear, or edit for what Edit and EditAt wrote to a path.
type Edit struct {
	Op, Path string
	Value    any
}

// Run is one run of the workflow, or of one of its steps.
type Run struct {
	// Ended reports whether the run has its result. A run that has not ended waits for an
	// external event; see [Run.Send].
	Ended   bool
	Result  any      // the result of a base stop event, or the body of any other stop event
	Emitted []Event  // events that steps returned, in order
	Sent    []Event  // events that steps sent by Send and SendTo
	Stream  []Event  // events written to the stream, including questions to people
	Edits   []Edit   // changes that steps made to the state
	Log     []Record // what steps logged, including failed attempts
	// Children are the runs that steps started, in order. Answer the wait of a child by
	// the child's own [Run.Send].
	Children []*Run

	session *Session
	id      string
	parent  *Run
	record  host.Run
	failed  *abi.Error // of the last failed attempt

	// For a child: the names by which it is known.
	handler, name string

	step string // the step of a run of a single step
}

// Session returns the session that the run belongs to. A child that does not share a
// session has its own.
func (r *Run) Session() *Session { return r.session }

// Send sends an external event to the run, and continues the run. The event is a value of
// an event type of this process.
func (r *Run) Send(event any) error {
	process.Lock()
	defer process.Unlock()
	name, body, err := typedEvent(event)
	if err != nil {
		return err
	}
	return r.post(name, body)
}

// Post sends an external event to the run, and continues the run. The event is given by
// its type's name and its fields (a map or struct, nil for none).
func (r *Run) Post(name string, body any) error {
	process.Lock()
	defer process.Unlock()
	b, err := bodyOf(body)
	if err != nil {
		return err
	}
	return r.post(name, b)
}

func (r *Run) post(name string, body abi.Raw) error {
	if r.Ended {
		return errors.New("the run has ended")
	}
	program := r.session.program
	if err := program.graph.CheckPost(name, ""); err != nil {
		return errors.New(err.Message)
	}
	if err := program.check(name, body); err != nil {
		return err
	}
	err := r.session.world.tick(r.session.place, engine.PostEvent{RunID: r.id, Event: abi.Event{Type: name, Body: body}}, nil)
	if err != nil {
		return guestError(err)
	}
	return r.goOn()
}

// Cancel asks the run to end, as a client may. Steps that catch the cancellation clean
// up.
func (r *Run) Cancel() error {
	process.Lock()
	defer process.Unlock()
	if err := r.session.world.tick(r.session.place, engine.Cancel{RunID: r.id}, nil); err != nil {
		return guestError(err)
	}
	return r.goOn()
}

// Advance advances the time of the test's session and of everything it has started. Waits
// and runs whose timeouts pass time out.
func (r *Run) Advance(d time.Duration) error {
	process.Lock()
	defer process.Unlock()
	w := r.session.world
	end := w.root.Clock.Add(d)
	for {
		p, first, _ := w.firstTimer()
		if p == nil || first.At > end.UnixNano() {
			break
		}
		w.fire(p, first)
		if err := w.work(); err != nil {
			return err
		}
	}
	if w.root.Clock.Before(end) {
		w.root.Clock = end
	}
	return r.goOn()
}

// goOn runs everything that can happen, and returns the error of a failed run.
func (r *Run) goOn() error {
	if err := r.session.world.work(); err != nil {
		return err
	}
	return r.failure()
}

// become records a change of the run's record.
func (r *Run) become(rec host.Run) {
	r.record = rec
	if rec.Status != host.StatusCompleted || r.step != "" || rec.Result == nil {
		return
	}
	r.Ended = true
	r.Result = decodeValue(rec.Result.Body)
	if fields, ok := r.Result.(map[string]any); ok && rec.Result.Type == abi.TypeStop {
		r.Result = fields["result"]
	}
}

// emitted records what a step returned.
func (r *Run) emitted(events []abi.Event) {
	for _, ev := range events {
		r.Emitted = append(r.Emitted, eventOf(ev.Type, ev.Body))
	}
}

// endStep ends the run of a single step: later events do not matter.
func (r *Run) endStep(out abi.StepOutput) {
	w := r.session.world
	if r.Ended = true; r.failed == nil {
		r.emitted(out.Events)
	}
	w.note(w.tick(r.session.place, engine.Cancel{RunID: r.id}, nil))
}

// failure returns why the run failed, or nil.
func (r *Run) failure() error {
	switch {
	case r.step != "" && r.Ended && r.failed != nil:
		return failureOf(r.failed)
	case r.step != "" && (r.Ended || r.failed == nil):
		return nil
	case r.record.Status == host.StatusCancelled:
		return &Failure{Code: host.RunCancelled, Message: "the run was cancelled"}
	case r.record.Status != host.StatusFailed:
		return nil
	case r.failed != nil && r.failed.Code == r.record.ErrorCode:
		return failureOf(r.failed)
	}
	return &Failure{Code: r.record.ErrorCode, Message: r.record.Error}
}

// Waiting lists what the run waits for, the oldest wait first: the names of its steps'
// waits, or of the events; the ids of its children, or their workflows; and the resources
// that it calls.
func (r *Run) Waiting() []string {
	process.Lock()
	defer process.Unlock()
	rec, ok := r.session.place.eng.Record(r.id)
	if !ok || r.Ended {
		return nil
	}
	var names []string
	for _, w := range rec.WaitingFor {
		switch {
		case w.Child != "":
			names = append(names, r.childName(w.Child))
		case w.WaiterID != "":
			names = append(names, w.WaiterID)
		case w.Resource != "":
			names = append(names, w.Resource)
		case w.Type != "":
			names = append(names, w.Type)
		}
	}
	return names
}

// childName returns how people identify a child: the id given by the step, otherwise the
// workflow.
func (r *Run) childName(handler string) string {
	for _, c := range r.Children {
		if c.handler == handler {
			return c.name
		}
	}
	return handler
}

// Failure is the error of a step that failed.
type Failure struct {
	Code    string
	Message string
	Fields  map[string]any // the whole error, including retryable and data
}

// Error returns the code and the message.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Code, f.Message) }
