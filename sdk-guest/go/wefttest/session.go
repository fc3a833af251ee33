package wefttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Session holds the state that outlives its runs.
type Session struct {
	// Clock is the time that steps see, including steps of children. Only the Clock of
	// the session that the test made counts; a child's does not advance.
	Clock time.Time
	// Config holds the steps' configurations by step name, as maps or structs, like the
	// workflow's settings.
	Config map[string]any

	world   *world
	place   *place
	guest   Guest
	program *program
	fault   error
}

// Option is a setting of a [Session].
type Option func(s *Session)

// NewSession returns a session of the workflow that this process defines.
func NewSession(options ...Option) *Session { return NewSessionOn(inProcess{}, options...) }

// NewSessionOn returns a session of a guest's workflow.
func NewSessionOn(guest Guest, options ...Option) *Session {
	process.Lock()
	defer process.Unlock()
	s := &Session{guest: guest, Clock: time.Unix(1_700_000_000, 0)}
	s.world = newWorld(s)
	s.place = s.world.place("session-1")
	for _, option := range options {
		option(s)
	}
	return s
}

// Seed makes invocations run concurrently; without Seed they run one after the other. The
// seed decides whose turn it is at the start of each invocation and at each host call.
// The same seed gives the same order. Conflicting edits are repeated, as on a server.
func Seed(seed uint64) Option {
	return func(s *Session) { s.world.chance = rand.New(rand.NewPCG(seed, seed)) }
}

// State sets the initial state of the session: a struct or map. When a run starts, the
// workflow's defaults supply missing values.
func State(initial any) Option {
	return func(s *Session) {
		if err := s.setState(initial); err != nil && s.fault == nil {
			s.fault = err
		}
	}
}

func (s *Session) setState(v any) error {
	b, err := encodeValue(v)
	if err != nil {
		return fmt.Errorf("the state: %w", err)
	}
	n, err := state.Decode(b)
	if err != nil || !n.IsMap() {
		return errors.Join(errors.New("the state must be a map or a struct"), err)
	}
	err = s.world.tick(s.place, engine.EditSession{State: n, StateBytes: limit.Default().StateBytes}, nil)
	if err != nil {
		return fmt.Errorf("the state: %w", err)
	}
	return nil
}

// load reads the workflow when it is first needed, so that all options are set by then.
func (s *Session) load() error {
	if s.fault == nil && s.program == nil {
		if s.program, s.fault = compile("workflow", s.guest); s.fault == nil {
			s.world.programs[s.program.version] = s.program
		}
	}
	return s.fault
}

// State returns a copy of the session's state.
func (s *Session) State() map[string]any {
	process.Lock()
	defer process.Unlock()
	if s.load() == nil && s.place.eng.Seq() == 0 { // as the first run will see it
		fresh, _ := state.FillDefaults(state.Empty(), s.program.graph.StateDefaults())
		m, _ := decodeValue(fresh.Encode()).(map[string]any)
		return m
	}
	m, _ := decodeValue(s.place.eng.State().Encode()).(map[string]any)
	return m
}

// Read reads the value at a path of the session's state to *target.
func (s *Session) Read(path string, target any) error {
	process.Lock()
	defer process.Unlock()
	p, err := state.ParsePath(path)
	if err != nil {
		return err
	}
	n, ok := state.Get(s.place.eng.State(), p)
	if !ok {
		return errors.New("no value at the path " + strconv.Quote(path))
	}
	return codec.Unmarshal(n.Encode(), target)
}

// Into converts a value, such as a run's result, to *target's type.
func Into(v, target any) error {
	process.Lock()
	defer process.Unlock()
	b, err := codec.Append(nil, v)
	if err != nil {
		return err
	}
	return codec.Unmarshal(b, target)
}

// Run runs the workflow from its start event until it ends or waits for the test. The
// start event's body is any map or struct; nil means an empty body. The error is the
// failure of the run, a [*Failure], or says why the workflow
// cannot run.
func (s *Session) Run(start any) (*Run, error) {
	process.Lock()
	defer process.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	body, err := bodyOf(start)
	if err != nil {
		return nil, fmt.Errorf("the start event: %w", err)
	}
	t, err := s.program.start(body, "")
	if err == nil {
		err = s.world.granted(s.program)
	}
	if err != nil {
		return nil, err
	}
	return s.begin(t, "")
}

// begin begins a run and lets it proceed as far as it can.
func (s *Session) begin(t engine.StartRun, step string) (*Run, error) {
	w := s.world
	t.RunID = "run-" + strconv.Itoa(len(w.runs)+1)
	t.HandlerID, t.Seed = t.RunID, w.seed()
	r := &Run{session: s, id: t.RunID, step: step}
	w.runs[t.RunID] = r
	if err := w.tick(s.place, t, nil); err != nil {
		delete(w.runs, t.RunID)
		return nil, guestError(err)
	}
	return r, r.goOn()
}
