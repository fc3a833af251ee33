package weft

import (
	"reflect"
	"time"
)

// Option is a part of a workflow: a [Step], or a setting.
type Option interface {
	applyWorkflow(w *workflow) error
}

// StepOption is a setting of a step.
type StepOption interface {
	applyStep(s *step) error
}

type workflowOption func(*workflow) error

func (f workflowOption) applyWorkflow(w *workflow) error { return f(w) }

type stepOption func(*step) error

func (f stepOption) applyStep(s *step) error { return f(s) }

// TimeoutOption is the option that [Timeout] gives.
type TimeoutOption time.Duration

// Timeout limits a run (as an option of [Define]), one invocation (as an option
// of [Step]) or a wait (as an option of [Wait]). That of a run counts its waits, too. A
// workflow without one has the host's default, which counts only the time in which a
// step is at work; with Timeout(0) it has none.
func Timeout(d time.Duration) TimeoutOption { return TimeoutOption(d) }

func (t TimeoutOption) applyWorkflow(w *workflow) error {
	w.timeout, w.hasTimeout = time.Duration(t), true
	return nil
}

func (t TimeoutOption) applyStep(s *step) error {
	if t <= 0 {
		return misuse("a step's timeout must be above 0: leave it out for none")
	}
	s.timeout = time.Duration(t)
	return nil
}

// DocOption is the option that [Doc] gives.
type DocOption string

// Doc describes a workflow or a step to people.
func Doc(text string) DocOption { return DocOption(text) }

func (d DocOption) applyWorkflow(w *workflow) error { w.doc = string(d); return nil }

func (d DocOption) applyStep(s *step) error { s.doc = string(d); return nil }

// Version names the version of the workflow, for people.
func Version(text string) Option {
	return workflowOption(func(w *workflow) error { w.version = text; return nil })
}

// Part says that the module has steps for a workflow that is composed of several
// plugins, and makes none by itself: events that its steps give may be taken by
// those of others, and the other way round. The name given to [Define] is then
// for people only.
func Part() Option {
	return workflowOption(func(w *workflow) error { w.part = true; return nil })
}

// Resource, as an option of [Define], declares something outside of the workflow that
// it needs and that the operator grants.
//
//	weft.Define("joke", weft.Resource{Name: "llm", Kind: "llm", Doc: "tells the joke"}, ...)
type Resource struct {
	Name     string // how the steps call it
	Kind     string // what it is, for the operator
	Doc      string `weft:"description,omitempty"`
	Optional bool   `weft:"optional,omitempty"` // the workflow can do without it
}

func (r Resource) applyWorkflow(w *workflow) error {
	w.resources = append(w.resources, r)
	return nil
}

// State declares the type of the session's state and, if a value is given, the
// state that a new session starts with. It is needed for that value only: the
// type is known from the steps' contexts. Without a value the fields start as
// their default tags say, else zero.
func State[S any](initial ...S) Option {
	return workflowOption(func(w *workflow) error {
		w.useState(reflect.TypeOf((*S)(nil)).Elem())
		if len(initial) > 0 {
			w.initial = initial[0]
		}
		return nil
	})
}

// Workers limits how many invocations of the step run at once in a run: 1 to
// 1000, without it 4.
func Workers(n int) StepOption {
	return stepOption(func(s *step) error {
		if n < 1 || n > 1000 {
			return misuse("workers must be 1 to 1000")
		}
		s.workers = n
		return nil
	})
}

// Atomic makes what the step does to the state, sends and writes to the stream take
// effect together when it succeeds, or not at all. It sees its own edits, and of
// those of others none that come while it runs; if one of these would change what
// it has read, it runs again from its start. In such a step [Wait], [Run],
// [Context.Sleep] and [Context.Collect] fail with the code "failed_precondition".
func Atomic() StepOption {
	return stepOption(func(s *step) error { s.atomic = true; return nil })
}

// AcceptSubtypes gives the step, beside the events that it takes or waits for, those
// that extend them: events whose struct embeds theirs.
//
//	type ItemEvent struct{ Name string }
//	type BoxEvent struct {
//		ItemEvent // a BoxEvent is an ItemEvent, with a size
//		Size int
//	}
//
// Where the step's argument is an ItemEvent it gets that part of a BoxEvent. Where it
// is an [Event] that [Accepts] an ItemEvent, it gets the whole BoxEvent.
func AcceptSubtypes() StepOption {
	return stepOption(func(s *step) error { s.subtypes = true; return nil })
}

// Take makes a step that collects a list fire at the n-th arrival; without it,
// it fires when no more events can come. It gets the n events that came first, in the
// order in which they came, which need not be that of the list. It fires once for each
// list: what comes after is dropped, and steps that still work on the rest work on to
// their end. If fewer than n can come, it gets those there are.
func Take(n int) StepOption {
	return stepOption(func(s *step) error {
		if n < 1 {
			return misuse("take must be at least 1")
		}
		s.take = n
		return nil
	})
}

// Accepts lists the events that a step with an argument of type [Event] (or
// []Event) takes, by empty values:
//
//	weft.Step("next", next, weft.Accepts(StartEvent{}, LoopEvent{}))
func Accepts(events ...Event) StepOption {
	return stepOption(func(s *step) error {
		for _, ev := range events {
			et, err := eventOf(reflect.TypeOf(ev))
			if err != nil {
				return err
			}
			s.accepts = append(s.accepts, et)
		}
		return nil
	})
}

// Emits lists, by empty values, the events that a step with a result of type
// [Event] may return, and those that it sends by [Context.Send]. A list that
// it may return is listed as one:
//
//	weft.Step("next", next, weft.Emits(LoopEvent{}, FirstEvent{}, []ItemEvent{}))
func Emits(events ...Event) StepOption {
	return stepOption(func(s *step) error {
		for _, ev := range events {
			t := reflect.TypeOf(ev)
			list := t != nil && t.Kind() == reflect.Slice
			if list {
				t = t.Elem()
			}
			et, err := eventOf(t)
			if err != nil {
				return err
			}
			if list {
				s.emitLists = append(s.emitLists, et)
			} else {
				s.emits = append(s.emits, et)
			}
		}
		return nil
	})
}

// What [Catches] takes beside the names of steps: how a run may end before its
// steps end it.
const (
	Cancelled = "cancelled" // somebody cancels it
	TimedOut  = "timeout"   // its deadline passes
)

// Catches gives the step, whose argument is a [StepFailed], the failures of the
// steps of those names, or of all others if none is named: those that are not
// tried again. The run goes on with what the step returns.
//
// A step that names [Cancelled] or [TimedOut] cleans up: all that the run had
// under way is dropped then, and the step has the server's grace period (10 s if it
// is not set otherwise), with whatever steps follow from it. Several steps may
// name them; a step that does nothing else need not lead to a stop event. The run
// ends as what it was ending as in any case. No StepName is given then, and no
// InputEvent; the time is that since the run began.
func Catches(steps ...string) StepOption {
	return stepOption(func(s *step) error {
		s.catchesAll = s.catchesAll || len(steps) == 0
		s.catches = append(s.catches, steps...)
		if s.catchesAll && len(s.catches) > 0 {
			return misuse("Catches() catches all failures: name steps, or none")
		}
		return nil
	})
}

// MaxRecoveries limits how often the step catches failures of what follows from
// one event; without it, once. A failure beyond it fails the run.
func MaxRecoveries(n uint64) StepOption {
	return stepOption(func(s *step) error {
		s.maxRecoveries = &n
		return nil
	})
}

// Streams lists, by empty values, the events that a step writes to the run's
// stream by [Context.Stream].
func Streams(events ...Event) StepOption {
	return stepOption(func(s *step) error {
		for _, ev := range events {
			et, err := eventOf(reflect.TypeOf(ev))
			if err != nil {
				return err
			}
			s.streams = append(s.streams, et)
		}
		return nil
	})
}
