package wefttest

import (
	"errors"
	"runtime"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// maxDepth is how deep children of children may go, so that a workflow which runs
// itself without end fails.
const maxDepth = 100

// Option is a setting of a [Session].
type Option func(s *Session)

// starter begins a child run.
type starter func(r *Run, req *childRequest) (*Run, error)

// Child lets a function stand for a workflow that steps run as their child. It gets
// the fields of the start event, and what it gives is the result; a [Failure] that it
// returns is the child's. The session's own workflow needs none: it can be its own
// child.
//
//	wefttest.NewSession(wefttest.Child("double", func(start struct{ N int }) (int, error) {
//		return 2 * start.N, nil
//	}))
func Child[E, R any](workflow string, run func(start E) (R, error)) Option {
	return func(s *Session) {
		s.starters[workflow] = func(r *Run, req *childRequest) (*Run, error) {
			var start E
			if err := codec.Unmarshal(req.fields, &start); err != nil {
				return nil, &Failure{Code: "invalid_argument", Message: "start event: " + err.Error()}
			}
			child := &Run{session: r.session}
			result, err := run(start)
			if err == nil {
				child.Ended = true
				child.Result, err = clone(result)
				child.stop = event{name: "StopEvent"}
				child.stop.body, _ = codec.Append(nil, map[string]any{"result": child.Result})
			}
			return child, err
		}
	}
}

// ChildOn lets a guest's workflow, say that of a WebAssembly module, be a child of
// that name.
func ChildOn(workflow string, guest Guest) Option {
	return func(s *Session) {
		s.starters[workflow] = func(r *Run, req *childRequest) (*Run, error) { return r.runGuest(guest, req) }
	}
}

// childRequest is a request of run_workflow.
type childRequest struct {
	Workflow string
	Event    codec.Raw
	ID       string `weft:"id,omitempty"`
	Session  struct {
		Shared bool   `weft:",omitempty"`
		ID     string `weft:"id,omitempty"`
	} `weft:",omitempty"`
	IncludeStream bool `weft:",omitempty"`

	name   string    // of the event
	fields codec.Raw // its body
}

// child answers a run_workflow: with the child's end, or by unwinding the step until
// there is one.
func (c *calls) child(d *cbor.Decoder) (uint32, []byte) {
	var req childRequest
	err := codec.Unmarshal(d.Raw(), &req)
	ev := cbor.NewDecoder(req.Event)
	if err == nil {
		ev.Array()
		req.name, req.fields = ev.Text(), ev.Raw()
		err = ev.Err()
	}
	if err != nil {
		return fail("invalid_message", err.Error())
	}
	if a, ended := c.named[req.ID]; ended && req.ID != "" {
		return a.status, a.response
	}
	begin := c.run.session.starter(req.Workflow)
	switch {
	case begin == nil:
		return fail("not_found", "no workflow "+req.Workflow+": give the session one, wefttest.Child(\""+req.Workflow+"\", ...)")
	case c.run.depth == maxDepth:
		return fail("limit_exceeded", "the workflow "+req.Workflow+" is too deep a child of children")
	}
	child, err := begin(c.run, &req)
	if child != nil {
		c.run.Children = append(c.run.Children, child)
	}
	if err == nil && !child.Ended {
		w := &c.waiter
		w.name, w.id, w.childID = "", req.ID, req.ID
		if w.id == "" {
			w.id = req.Workflow
		}
		child.waiter = w
		runtime.Goexit() // ends the step until the child has ended
	}
	return c.ended(req.ID, child, err)
}

// ended answers the call that ran a child, which has ended.
func (w *waiter) ended(id string, child *Run, err error) (uint32, []byte) {
	var a answered
	failure := (*Failure)(nil)
	switch {
	case err == nil:
		a.response = encodeEvent(child.stop)
	case errors.As(err, &failure):
		a.status, a.response = refuse(failure)
	default:
		a.status, a.response = fail("error", err.Error())
	}
	if id != "" {
		w.named[id] = a
	}
	return a.status, a.response
}

// starter gives what begins a workflow as a child, or nil.
func (s *Session) starter(workflow string) starter {
	if begin := s.root.starters[workflow]; begin != nil || workflow != s.manifest.Workflow {
		return begin
	}
	return func(r *Run, req *childRequest) (*Run, error) { return r.runGuest(s.guest, req) }
}

// runGuest runs a guest's workflow as a child, until it ends or waits.
func (r *Run) runGuest(guest Guest, req *childRequest) (*Run, error) {
	s := &Session{root: r.session.root, guest: guest}
	switch {
	case req.Session.Shared:
		s.id, s.store = r.session.id, r.session.store
	case req.Session.ID != "":
		s.id = req.Session.ID
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if want := s.manifest.startType(); req.name == "StartEvent" {
		req.name = want
	} else if req.name != want {
		return nil, &Failure{Code: "invalid_argument", Message: "start event must be a " + want + ", not a " + req.name}
	}
	child := s.newRun()
	child.parent, child.depth, child.shown = r, r.depth+1, req.IncludeStream
	return child, child.Post(req.name, req.fields)
}

// tell hands the end of a child to the step that waits for it, and goes on with that
// step's run.
func (r *Run) tell(err error) error {
	w := r.waiter
	if w == nil || !r.Ended && err == nil {
		return err
	}
	r.waiter = nil
	if !r.parent.leave(w) {
		return err // nobody waits any more
	}
	status, response := w.ended(w.childID, r, err)
	w.record = append(w.record, answered{status, response})
	r.parent.queue = append(r.parent.queue, func() error { return r.parent.goOn(w) })
	return r.parent.work()
}

// Session is the session that the run belongs to: for a child that shares none, one
// of its own.
func (r *Run) Session() *Session { return r.session }
