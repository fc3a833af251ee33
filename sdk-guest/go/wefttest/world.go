package wefttest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// process is held by the one test whose workflow runs. A process has one workflow, and
// its steps are not safe for concurrent use.
var process sync.Mutex

// maxAttempts bounds the attempts in one call of a test, so that an endless workflow
// fails.
const maxAttempts = 100_000

// world replaces the server: it owns the sessions and carries out the commands of their
// reducers one at a time. It is used with process held.
type world struct {
	root      *Session // the test's session: its Clock is the time
	places    map[string]*place
	order     []*place
	programs  map[string]*program // by version
	children  map[string]*program // by workflow
	resources map[string]resource
	kept      map[string]bool // resources made by [KV]
	runs      map[string]*Run

	chance    *rand.Rand // nil: one invocation after the other
	ready     []*attempt
	exclusive *attempt // holds the write ticket: no other attempt proceeds
	mail      []letter
	asked     []question
	back      chan struct{} // a guest sends on back to end its turn
	drawn     uint64
	fault     error // an error not caused by a step: the test ends
}

// place is a session of the engine with its open attempts.
type place struct {
	id       string
	eng      *engine.Session
	attempts map[uint64]*attempt // by invocation
}

// letter is mail to deliver.
type letter struct {
	from *place
	to   string
}

// question is a resource call to answer.
type question struct {
	at         *place
	invocation uint64
}

func newWorld(root *Session) *world {
	return &world{
		root: root, places: map[string]*place{}, programs: map[string]*program{}, children: map[string]*program{},
		resources: map[string]resource{}, kept: map[string]bool{}, runs: map[string]*Run{}, back: make(chan struct{}),
	}
}

func (w *world) now() int64 { return w.root.Clock.UnixNano() }

// place returns the session with an id, and creates it if necessary.
func (w *world) place(id string) *place {
	p := w.places[id]
	if p == nil {
		p = &place{id: id, attempts: map[uint64]*attempt{}}
		p.eng = engine.New(host.SessionKey{Tenant: host.DefaultTenant, Session: id}, func(version string) (*engine.Graph, error) {
			if known := w.programs[version]; known != nil {
				return known.graph, nil
			}
			return nil, errors.New("unknown workflow: " + version)
		})
		w.places[id] = p
		w.order = append(w.order, p)
	}
	return p
}

// plays reports whether the test itself plays the step of an attempt.
func (p *place) plays(invocation uint64) bool {
	a := p.attempts[invocation]
	return a != nil && a.program.played[a.view.Step] != nil
}

// seed returns what a server takes from its source of randomness: here always the same.
func (w *world) seed() [32]byte {
	w.drawn++
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("wefttest"), w.drawn))
}

// tick applies a tick to a session.
func (w *world) tick(p *place, t engine.Tick, attach func(*engine.Result)) error {
	res, err := p.eng.Reduce(w.now(), t)
	if err != nil {
		return err
	}
	if attach != nil {
		attach(&res)
	}
	if res.Entry != nil {
		w.took(p, res.Entry)
	}
	for _, c := range res.Commands {
		w.carryOut(p, c)
	}
	return nil
}

// took records what an entry says about a run, for the test.
func (w *world) took(p *place, e *engine.Entry) {
	r := w.runs[e.RunID]
	if r == nil {
		return
	}
	for i := range e.Logs {
		r.Log = append(r.Log, recordOf(&e.Logs[i]))
	}
	switch {
	case e.Kind == engine.EntrySend:
		r.Sent = append(r.Sent, eventOf(e.Event.Type, e.Event.Body))
	case e.Finish != nil:
		for _, s := range e.Finish.Staged {
			if !s.Stream {
				r.Sent = append(r.Sent, eventOf(s.Event.Type, s.Event.Body))
			}
		}
		if r.step == "" && !p.plays(e.Invocation) {
			r.emitted(e.Finish.Events)
		}
		if e.Finish.Err != nil || r.step != "" {
			r.failed = e.Finish.Err
		}
	case e.Child != nil && e.Child.Start != nil:
		r.Children = append(r.Children, w.childRun(p, r, e.Child))
	}
}

// childRun makes the Run of a new child.
func (w *world) childRun(p *place, parent *Run, c *engine.ChildPart) *Run {
	id := c.Session
	if id == "" {
		id = p.id
	}
	s := parent.session
	if other := w.programs[c.Start.Version]; other != s.program || id != s.place.id {
		s = &Session{Clock: w.root.Clock, world: w, place: w.place(id), program: other}
	}
	child := &Run{session: s, id: c.RunID, parent: parent, handler: c.Start.HandlerID, name: c.Workflow}
	if id, given := strings.CutPrefix(c.Key, "="); given {
		child.name = id
	}
	w.runs[c.RunID] = child
	return child
}

// carryOut carries out a command of a session.
func (w *world) carryOut(p *place, c engine.Command) {
	switch c := c.(type) {
	case engine.StartAttempt:
		w.open(p, c.Invocation)
	case engine.Abandon:
		w.abandon(p, c.Invocation)
	case engine.Publish:
		if r := w.runs[c.Event.RunID]; r != nil && !c.Event.Internal && !c.Event.Terminal {
			r.Stream = append(r.Stream, eventOf(c.Event.Type, c.Event.Body))
		}
	case engine.RunChanged:
		if r := w.runs[c.Run.RunID]; r != nil {
			r.become(c.Run)
		}
	case engine.Mail:
		w.mail = append(w.mail, letter{p, c.To})
	case engine.CallOut:
		w.asked = append(w.asked, question{p, c.Invocation})
	}
}

// work proceeds until nothing can happen without the test.
func (w *world) work() error {
	for n := 0; w.fault == nil; n++ {
		if n == maxAttempts {
			return errors.New("the workflow does not end: " + strconv.Itoa(n) + " things have happened without an end")
		}
		if !w.something() && !w.advance() {
			break
		}
	}
	err := w.fault
	w.fault = nil
	return err
}

// something makes one thing happen. It returns false if nothing can.
func (w *world) something() bool {
	var may []func()
	if len(w.mail) > 0 {
		may = append(may, w.deliver)
	}
	if len(w.asked) > 0 {
		may = append(may, w.ask)
	}
	if len(w.ready) > 0 {
		may = append(may, w.run)
	}
	if len(may) == 0 {
		return false
	}
	if w.exclusive != nil {
		w.run()
		return true
	}
	may[w.draw(len(may))]()
	return true
}

// draw returns one of n: the first, unless the test has set a seed.
func (w *world) draw(n int) int {
	if w.chance == nil || n == 1 {
		return 0
	}
	return w.chance.IntN(n)
}

// deliver carries mail from one session to another.
func (w *world) deliver() {
	l := w.mail[0]
	w.mail = w.mail[1:]
	to := w.place(l.to)
	for {
		letters := l.from.eng.Mail(l.to, 16)
		if len(letters) == 0 {
			return
		}
		for i := range letters {
			m := &letters[i]
			err := w.tick(to, m.Tick(), nil)
			if err != nil && m.Start != nil && !errors.Is(err, engine.ErrStale) {
				w.note(w.tick(l.from, engine.ChildEnded{End: engine.ChildEnd{RunID: m.Start.RunID, Err: guestError(err)}}, nil))
			}
		}
		w.note(w.tick(l.from, engine.Delivered{To: l.to, ID: letters[len(letters)-1].ID}, nil))
	}
}

// note records an error that is not caused by a step.
func (w *world) note(err error) {
	if err != nil && !errors.Is(err, engine.ErrStale) && !errors.Is(err, engine.ErrUnknownRun) && w.fault == nil {
		w.fault = err
	}
}

// advance advances time to the end of a sleep or the next attempt of a step, if there is
// one. Earlier timers fire on the way, except that no wait times out while the test may
// still answer it.
func (w *world) advance() bool {
	p, first, pauses := w.firstTimer()
	if p == nil || pauses == 0 || first.Kind == "wait" {
		return false
	}
	w.fire(p, first)
	return true
}

// firstTimer finds the next timer, and counts the timers that nothing from outside can
// preempt.
func (w *world) firstTimer() (at *place, first engine.ArmedTimer, pauses int) {
	for _, p := range w.order {
		for i, t := range p.eng.Timers() {
			if t.Kind == "sleep" || t.Kind == "retry" {
				pauses++
			}
			if i == 0 && (at == nil || t.At < first.At) {
				at, first = p, t
			}
		}
	}
	return at, first, pauses
}

// fire advances the clock to a timer.
func (w *world) fire(p *place, t engine.ArmedTimer) {
	if wait := t.At - w.now(); wait > 0 {
		w.root.Clock = w.root.Clock.Add(durationOf(wait))
	}
	w.note(w.tick(p, engine.Timer{}, nil))
}

// ask answers the call of a resource.
func (w *world) ask() {
	i := w.draw(len(w.asked))
	q := w.asked[i]
	w.asked = slices.Delete(w.asked, i, i+1)
	call, open := q.at.eng.OutCall(q.invocation)
	if !open {
		return
	}
	answer := engine.ResourceAnswered{Invocation: q.invocation, Attempt: call.Attempt, N: call.N}
	answer.Value, answer.Err = w.resources[call.Resource].ask(call.Method, call.Payload)
	w.note(w.tick(q.at, answer, nil))
}

// resolve finds the workflow to run as a child.
func (w *world) resolve(a *attempt, req engine.RunWorkflow) (*engine.StartRun, error) {
	p := w.children[req.Workflow]
	if p == nil && req.Workflow == a.program.graph.Workflow() {
		p = a.program
	}
	if p == nil {
		return nil, &abi.Error{Code: "not_found", Message: fmt.Sprintf(
			"the workflow does not exist: give the session one, wefttest.Child(%q, ...)", req.Workflow)}
	}
	t, err := p.start(req.Event.Body, req.Event.Type)
	if err == nil {
		err = w.granted(p)
	}
	if err != nil {
		return nil, guestError(err)
	}
	return &t, nil
}

// granted returns an error that names a resource that a workflow needs and does not have.
func (w *world) granted(p *program) error {
	for _, r := range p.graph.Manifest().Resources {
		if _, ok := w.resources[r.Name]; !ok && !r.Optional {
			return &Failure{Code: "permission_denied", Message: fmt.Sprintf(
				"workflow %s cannot start: the resource %s is not granted: give the session one, wefttest.Resource(%q, ...)", p.graph.Workflow(), r.Name, r.Name)}
		}
	}
	return nil
}
