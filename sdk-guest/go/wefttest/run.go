package wefttest

import (
	"errors"
	"slices"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Event is an event as it was written to the stream.
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

// Run is one run of the workflow.
type Run struct {
	// Ended tells whether the run has its result. One that has not waits for
	// an event from outside; see [Run.Post].
	Ended  bool
	Result any     // of the base stop event its result, of another its body
	Stream []Event // what was written to the stream, and asked of people
	Log    []Record
	// Children are the runs that steps began, in their order. One that waits is
	// answered by its own [Run.Post].
	Children []*Run

	session *Session
	id      string
	queue   []func() error
	ids     uint64
	buffers map[string][]pending
	joins   map[string][]event
	invoked uint64
	waiters []*waiter
	kept    []event // that came before a step waited for them
	stop    event   // that ended it

	// Of a child: its parent, the invocation that waits for it, and whether its
	// stream is on the parent's too.
	parent *Run
	waiter *waiter
	shown  bool
	depth  int
}

// event is an event on its way.
type event struct {
	name string
	body codec.Raw
	id   uint64
	in   *stream
}

// pending is an event in a buffer of collect_events.
type pending struct {
	name string
	raw  []byte
}

// stream is what a list of events led to. It ends when nothing of it is alive.
type stream struct {
	outer      *stream
	alive      int
	collectors map[*stepDecl]*collection
}

type collection struct {
	events []event
	fired  bool
}

// Post sends an event to the run from outside, and goes on with it.
func (r *Run) Post(name string, body any) error {
	if r.Ended {
		return errors.New("the run has ended")
	}
	if body == nil {
		body = map[string]any{}
	}
	b, err := codec.Append(nil, body)
	if err != nil {
		return err
	}
	r.route(event{name: name, body: b, id: r.nextID()})
	return r.work()
}

// work goes on with the run until it ends or waits.
func (r *Run) work() error {
	var err error
	for len(r.queue) > 0 && !r.Ended && err == nil {
		next := r.queue[0]
		r.queue = r.queue[1:]
		err = next()
	}
	return r.tell(err)
}

func (r *Run) nextID() uint64 { r.ids++; return r.ids }

// route hands an event to the steps that accept it.
func (r *Run) route(ev event) {
	m := r.session.manifest
	if m.kind(ev.name) == "input_required" {
		r.publish(ev)
	}
	if r.answer(ev) {
		return
	}
	steps := m.accepting(ev.name)
	for _, s := range steps {
		r.deliver(s, ev)
	}
	if len(steps) == 0 && m.waitedFor(ev.name) {
		r.kept = append(r.kept, ev)
	}
}

// deliver hands an event to one step.
func (r *Run) deliver(s *stepDecl, ev event) {
	switch {
	case s.list:
		r.collect(s, ev)
	case s.join():
		r.join(s, ev)
	default:
		r.enqueue(s, []event{ev}, false, ev.in)
	}
}

func (r *Run) publish(ev event) {
	body, _ := decode(ev.body)
	fields, _ := body.(map[string]any)
	r.show(Event{ev.name, fields})
}

// show puts an event on the run's stream, and on its parent's if that asked for it.
func (r *Run) show(ev Event) {
	r.Stream = append(r.Stream, ev)
	if r.shown {
		r.parent.show(ev)
	}
}

// enqueue lets a step run later, as a part of a stream.
func (r *Run) enqueue(s *stepDecl, trigger []event, list bool, in *stream) {
	for st := in; st != nil; st = st.outer {
		st.alive++
	}
	r.queue = append(r.queue, func() error {
		return r.goOn(&waiter{step: s, trigger: trigger, list: list, in: in})
	})
}

// goOn runs an invocation, from its start or from where it waited.
func (r *Run) goOn(w *waiter) error {
	err := r.invoke(w)
	if err == errWaits {
		return nil
	}
	if failure := (*Failure)(nil); errors.As(err, &failure) {
		err = r.catch(w, failure)
	}
	if err != nil {
		return err
	}
	for st := w.in; st != nil; st = st.outer {
		st.alive--
		r.closeIfDone(st)
	}
	return nil
}

// join keeps an event until the step has one for each of its slots.
func (r *Run) join(s *stepDecl, ev event) {
	kept := append(r.joins[s.Name], ev)
	var set []event
	m := r.session.manifest
	for _, name := range s.types {
		i := slices.IndexFunc(kept, func(e event) bool {
			return m.is(e.name, name, s.AcceptSubtypes) && !slices.ContainsFunc(set, func(o event) bool { return o.id == e.id })
		})
		if i < 0 {
			r.joins[s.Name] = kept
			return
		}
		set = append(set, kept[i])
	}
	r.joins[s.Name] = slices.DeleteFunc(kept, func(e event) bool {
		return slices.ContainsFunc(set, func(o event) bool { return o.id == e.id })
	})
	r.enqueue(s, set, true, ev.in)
}

// collect adds an event to what a collecting step will get of the innermost
// stream that leads to it.
func (r *Run) collect(s *stepDecl, ev event) {
	for st := ev.in; st != nil; st = st.outer {
		c := st.collectors[s]
		if c == nil {
			continue
		}
		if c.fired {
			return
		}
		c.events = append(c.events, ev)
		if s.take > 0 && len(c.events) == s.take {
			c.fired = true
			r.enqueue(s, c.events, true, st.outer)
		}
		return
	}
}

// open starts a stream for a list of events.
func (r *Run) open(outer *stream, types []string, list []event) {
	st := &stream{outer: outer, collectors: map[*stepDecl]*collection{}}
	for _, name := range types {
		for _, s := range r.session.manifest.collectors(name) {
			st.collectors[s] = &collection{}
		}
	}
	for _, ev := range list {
		ev.in = st
		r.route(ev)
	}
	r.closeIfDone(st)
}

func (r *Run) closeIfDone(st *stream) {
	if st.alive > 0 {
		return
	}
	for i := range r.session.manifest.Steps {
		s := &r.session.manifest.Steps[i]
		if c := st.collectors[s]; c != nil && !c.fired {
			c.fired = true
			r.enqueue(s, c.events, true, st.outer)
		}
	}
}

// catch hands a failure to the step that catches it, once for each invocation.
func (r *Run) catch(w *waiter, failure *Failure) error {
	s := r.session.manifest.catcher(w.step)
	if s == nil || w.caught {
		return failure
	}
	body, err := codec.Append(nil, map[string]any{
		"step_name": w.step.Name, "attempts": 1, "elapsed_seconds": 0.0,
		"exception":   map[string]any{"exception_type": failure.Code, "exception_message": failure.Message},
		"input_event": nil,
	})
	if err != nil {
		return err
	}
	ev := event{name: "StepFailedEvent", body: body, id: r.nextID(), in: w.in}
	for st := w.in; st != nil; st = st.outer {
		st.alive++
	}
	r.queue = append(r.queue, func() error {
		return r.goOn(&waiter{step: s, trigger: []event{ev}, in: w.in, caught: true})
	})
	return nil
}

// invoke runs a step and routes what it gives.
func (r *Run) invoke(w *waiter) error {
	if w.invocation == 0 {
		r.invoked++
		w.invocation = r.invoked
	}
	s, in := w.step, w.in
	w.waits = map[string]int{}
	if w.named == nil {
		w.named = map[string]answered{}
	}
	c := &calls{waiter: *w, run: r}
	if s.Atomic {
		if err := c.stage(); err != nil {
			return err
		}
	}
	input, err := r.input(w)
	if err != nil {
		return err
	}
	output, status, err := r.session.guest.Step(c, input)
	c.settle(err == nil && status == 0)
	if err == errWaits {
		r.waiters = append(r.waiters, &c.waiter)
	}
	if err != nil {
		return err
	}
	return r.takeOutput(s, output, status, in)
}

// takeOutput routes what a step gave.
func (r *Run) takeOutput(s *stepDecl, output []byte, status int, in *stream) error {
	d := cbor.NewDecoder(output)
	d.Array()
	if failed := d.Int(0, 1); int(failed) != status {
		return errors.New("step " + s.Name + ": the status and the output disagree")
	}
	if status != 0 {
		return readError(d)
	}
	if d.TryNull() {
		return d.Err()
	}
	if isList(output, d) {
		return r.takeList(s, d, in)
	}
	ev := readEvent(d)
	ev.id, ev.in = r.nextID(), in
	if d.Err() == nil {
		r.take(ev)
	}
	return d.Err()
}

// isList tells an event, whose first part is text, from a list of events.
func isList(output []byte, d *cbor.Decoder) bool {
	ahead := cbor.NewDecoder(output[d.Offset():])
	return ahead.Array() == 0 || ahead.Peek()>>5 != cbor.MajorText
}

func (r *Run) takeList(s *stepDecl, d *cbor.Decoder, in *stream) error {
	var list []event
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		ev := readEvent(d)
		ev.id = r.nextID()
		list = append(list, ev)
	}
	if d.Failed() {
		return d.Err()
	}
	var types []string
	for _, e := range s.emits() {
		if e.list {
			types = append(types, e.types...)
		}
	}
	r.open(in, types, list)
	return nil
}

// take handles an event that a step returned.
func (r *Run) take(ev event) {
	if r.session.manifest.kind(ev.name) != "stop" {
		r.route(ev)
		return
	}
	body, _ := decode(ev.body)
	r.Ended, r.Result, r.stop = true, body, ev
	if fields, ok := body.(map[string]any); ok && ev.name == "StopEvent" {
		r.Result = fields["result"]
	}
}

func readEvent(d *cbor.Decoder) event {
	n := d.Array()
	ev := event{name: d.Text(), body: d.Raw()}
	for ; n > 2 && !d.Failed(); n-- {
		ev.id = d.Uint(1<<64 - 1)
	}
	return ev
}

func readError(d *cbor.Decoder) error {
	fields, _ := d.Value().(map[string]any)
	if d.Err() != nil {
		return d.Err()
	}
	code, _ := fields["code"].(string)
	message, _ := fields["message"].(string)
	return &Failure{Code: code, Message: message, Fields: fields}
}

// Failure is the error of a step that failed.
type Failure struct {
	Code    string
	Message string
	Fields  map[string]any // the whole error: retryable and data too
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// input encodes the input of an invocation.
func (r *Run) input(w *waiter) ([]byte, error) {
	config, configured := r.session.Config[w.step.Name]
	e := &codec.Encoder{}
	if configured {
		e.List(4)
	} else {
		e.List(3)
	}
	e.Text(w.step.Name)
	if w.list {
		e.List(len(w.trigger))
	}
	for _, ev := range w.trigger {
		e.List(3)
		e.Text(ev.name)
		e.Raw(ev.body)
		e.Uint(ev.id)
	}
	e.List(7)
	e.Text("test")
	e.Text(r.session.manifest.Workflow)
	e.Text(r.id)
	e.Text(r.session.id)
	e.Uint(w.invocation)
	e.Uint(1)
	e.Int(r.session.root.Clock.UnixNano())
	if configured {
		e.Value(config)
	}
	if err := e.Err(); err != nil {
		return nil, errors.New("step " + w.step.Name + ": its configuration: " + err.Error())
	}
	return e.B, nil
}
