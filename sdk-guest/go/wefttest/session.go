package wefttest

import (
	"strconv"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Session holds the state that outlives its runs.
type Session struct {
	// Clock is the time that steps see, those of children too.
	Clock time.Time
	// Config holds the steps' configurations, by step: maps or structs, as the
	// workflow's settings would have them.
	Config map[string]any

	id       string
	root     *Session // that of the test: itself, unless it is a child's
	guest    Guest
	manifest *manifest
	store    *store
	fault    error

	// Of the root: those of all its children are there too.
	starters  map[string]starter
	resources map[string]resource
	stores    map[string]*store // by session
	runs      int
}

// store holds a session's state, for the workflows that share it.
type store struct{ state any }

// NewSession gives a session of the workflow that this process defines.
func NewSession(options ...Option) *Session { return NewSessionOn(inProcess{}, options...) }

// NewSessionOn gives a session of a guest's workflow.
func NewSessionOn(guest Guest, options ...Option) *Session {
	s := &Session{guest: guest, Clock: time.Unix(1_700_000_000, 0), starters: map[string]starter{}, resources: map[string]resource{}, stores: map[string]*store{}}
	s.root = s
	for _, option := range options {
		option(s)
	}
	s.fault = s.open()
	return s
}

// open finds the session's state, which is made if there is none, and reads the
// workflow's manifest.
func (s *Session) open() error {
	stores := s.root.stores
	if s.id == "" {
		s.id = "session-" + strconv.Itoa(len(stores)+1)
	}
	if s.store == nil {
		s.store = stores[s.id]
	}
	if s.store == nil {
		s.store = &store{state: map[string]any{}}
		stores[s.id] = s.store
	}
	b, err := s.guest.Describe()
	if err != nil {
		return err
	}
	if s.manifest, err = readManifest(b); err != nil {
		return err
	}
	return s.fillIn()
}

// fillIn gives the state the workflow's defaults for what it lacks.
func (s *Session) fillIn() error {
	initial, err := clone(s.manifest.State.Default)
	if err != nil {
		return err
	}
	state, _ := s.store.state.(map[string]any)
	for key, v := range initial.(map[string]any) {
		if _, given := state[key]; !given && state != nil {
			state[key] = v
		}
	}
	return nil
}

// State gives a copy of the session's state.
func (s *Session) State() map[string]any {
	v, err := clone(s.store.state)
	if err != nil {
		return nil
	}
	m, _ := v.(map[string]any)
	return m
}

// Read reads the value at a path of the session's state to *target.
func (s *Session) Read(path string, target any) error {
	v, err := lookup(s.store.state, path)
	if err != nil {
		return err
	}
	return Into(v, target)
}

// Into converts a value, such as a run's result, to *target's type.
func Into(v, target any) error {
	b, err := codec.Append(nil, v)
	if err != nil {
		return err
	}
	return codec.Unmarshal(b, target)
}

// Run runs the workflow from its start event until it ends or waits. The start
// event's body is any map or struct; nil is an empty one. The error is that of
// the step that failed.
func (s *Session) Run(start any) (*Run, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	r := s.newRun()
	return r, r.Post(s.manifest.startType(), start)
}

func (s *Session) newRun() *Run {
	s.root.runs++
	return &Run{session: s, id: "run-" + strconv.Itoa(s.root.runs), buffers: map[string][]pending{}, joins: map[string][]event{}}
}
