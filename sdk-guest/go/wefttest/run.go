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

// Edit is a change that a step made to the state: op is set, delete, append, increment,
// merge, test or clear, or edit for what Edit and EditAt wrote back to a path.
type Edit struct {
	Op, Path string
	Value    any
}

// Run is one run of the workflow, or of one of its steps.
type Run struct {
	// Ended tells whether the run has its result. One that has not waits for
	// an event from outside; see [Run.Send].
	Ended   bool
	Result  any      // of the base stop event its result, of another its body
	Emitted []Event  // what steps gave as their results, in order
	Sent    []Event  // what steps sent by Send and SendTo
	Stream  []Event  // what was written to the stream, and asked of people
	Edits   []Edit   // what steps changed in the state
	Log     []Record // what steps logged, failed attempts too
	// Children are the runs that steps began, in their order. One that waits is
	// answered by its own [Run.Send].
	Children []*Run

	session *Session
	id      string
	parent  *Run
	record  host.Run
	failed  *abi.Error // of the attempt that failed last

	// Of a child: how it is called.
	handler, name string

	step string // of a run of one step: which
}

// Session is the session that the run belongs to: for a child that shares none, one
// of its own.
func (r *Run) Session() *Session { return r.session }

// Send sends an event to the run from outside, a value of an event type of this
// process, and goes on with the run.
func (r *Run) Send(event any) error {
	process.Lock()
	defer process.Unlock()
	name, body, err := typedEvent(event)
	if err != nil {
		return err
	}
	return r.post(name, body)
}

// Post sends an event to the run from outside, by its type's name and its fields (a
// map or struct, nil for none), and goes on with the run.
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

// Cancel asks the run to end, as a client may. Steps that catch it clean up.
func (r *Run) Cancel() error {
	process.Lock()
	defer process.Unlock()
	if err := r.session.world.tick(r.session.place, engine.Cancel{RunID: r.id}, nil); err != nil {
		return guestError(err)
	}
	return r.goOn()
}

// Advance lets time pass, for the session that the test has made and all that it has
// led to: waits and runs time out on the way when theirs is over.
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

// goOn lets all happen that can, and gives the error for which the run has failed.
func (r *Run) goOn() error {
	if err := r.session.world.work(); err != nil {
		return err
	}
	return r.failure()
}

// become notes what the record of the run has changed to.
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

// emitted notes what a step gave.
func (r *Run) emitted(events []abi.Event) {
	for _, ev := range events {
		r.Emitted = append(r.Emitted, eventOf(ev.Type, ev.Body))
	}
}

// endStep ends the run of one step: what comes after it is of no interest.
func (r *Run) endStep(out abi.StepOutput) {
	w := r.session.world
	if r.Ended = true; r.failed == nil {
		r.emitted(out.Events)
	}
	w.note(w.tick(r.session.place, engine.Cancel{RunID: r.id}, nil))
}

// failure is why the run failed; nil: it did not.
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

// Waiting lists what the run waits for, the longest first: the names of the waits of
// its steps, or of the events; the ids of their children, or their workflows; and the
// resources that they call.
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

// childName is how people know a child: by the id that the step gave it, else by its
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
	Fields  map[string]any // the whole error: retryable and data too
}

// Error gives the code and the message.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Code, f.Message) }
