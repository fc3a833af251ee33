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

// TimeoutOption is the option returned by [Timeout].
type TimeoutOption time.Duration

// Timeout limits a run (as an option of [Define]), one invocation (as an option of
// [Step]) or a wait (as an option of [Wait]). A run's timeout includes its waits. A
// workflow without this option has the host's default, which counts only the time in
// which a step works; Timeout(0) means no limit.
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

// DocOption is the option returned by [Doc].
type DocOption string

// Doc describes a workflow or a step for people.
func Doc(text string) DocOption { return DocOption(text) }

func (d DocOption) applyWorkflow(w *workflow) error { w.doc = string(d); return nil }

func (d DocOption) applyStep(s *step) error { s.doc = string(d); return nil }

// Version names the version of the workflow for people.
func Version(text string) Option {
	return workflowOption(func(w *workflow) error { w.version = text; return nil })
}

// Part declares that the module contains steps of a workflow that is composed of several
// plugins, and is not a workflow alone. Steps of other plugins may take its events, and
// its steps may take theirs. The name given to [Define] is then for people only.
func Part() Option {
	return workflowOption(func(w *workflow) error { w.part = true; return nil })
}

// Resource, as an option of [Define], declares an external resource that the workflow
// needs and that the operator must grant.
//
//	weft.Define("joke", weft.Resource{Name: "llm", Kind: "llm", Doc: "tells the joke"}, ...)
type Resource struct {
	Name     string // the name by which the steps call it
	Kind     string // the kind of resource, for the operator
	Doc      string `weft:"description,omitempty"`
	Optional bool   `weft:"optional,omitempty"` // the workflow works without it
}

func (r Resource) applyWorkflow(w *workflow) error {
	w.resources = append(w.resources, r)
	return nil
}

// State declares the type of the session's state and, if a value is given, the state of a
// new session. The option is needed only for such a value: the contexts of the steps give
// the type. Without a value, the fields start with the values of their default tags,
// otherwise with zero values.
func State[S any](initial ...S) Option {
	return workflowOption(func(w *workflow) error {
		w.useState(reflect.TypeOf((*S)(nil)).Elem())
		if len(initial) > 0 {
			w.initial = initial[0]
		}
		return nil
	})
}

// Workers limits how many invocations of the step run concurrently in a run: 1 to 1000,
// default 4.
func Workers(n int) StepOption {
	return stepOption(func(s *step) error {
		if n < 1 || n > 1000 {
			return misuse("workers must be 1 to 1000")
		}
		s.workers = n
		return nil
	})
}

// Atomic makes the step's changes to the state, its sends and its writes to the stream
// take effect together when the step succeeds, or not at all. The step sees its own
// edits, but no edits that others make while it runs. If such an edit changes what the
// step has read, the step runs again from the start. In an atomic step [Wait], [Run],
// [Context.Sleep] and [Context.Collect] fail with the code "failed_precondition".
func Atomic() StepOption {
	return stepOption(func(s *step) error { s.atomic = true; return nil })
}

// AcceptSubtypes makes the step accept, in addition to the events that it takes or waits
// for, the events that extend them: events whose struct embeds theirs.
//
//	type ItemEvent struct{ Name string }
//	type BoxEvent struct {
//		ItemEvent // a BoxEvent is an ItemEvent, with a size
//		Size int
//	}
//
// A step whose argument is an ItemEvent receives that part of a BoxEvent. A step whose
// argument is an [Event] that [Accepts] an ItemEvent receives the whole BoxEvent.
func AcceptSubtypes() StepOption {
	return stepOption(func(s *step) error { s.subtypes = true; return nil })
}

// Take makes a step that collects a list run at the n-th arrival. Without Take, the step
// runs when no more events can come. The step receives the first n events in the order of
// arrival, which may differ from the order of the list. It runs once for each list: later
// events are dropped, and steps that still work on other items of the list run to their
// end. If fewer than n events can come, the step receives those that came.
func Take(n int) StepOption {
	return stepOption(func(s *step) error {
		if n < 1 {
			return misuse("take must be at least 1")
		}
		s.take = n
		return nil
	})
}

// Accepts lists, as empty values, the events that a step with an argument of type [Event]
// (or []Event) takes:
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

// Emits lists, as empty values, the events that a step with a result of type [Event] may
// return, and the events that it sends by [Context.Send]. A list that the step may return
// is given as a list:
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

// Names for [Catches] in addition to the names of steps: how a run may end before its
// steps end it.
const (
	Cancelled = "cancelled" // the run is cancelled
	TimedOut  = "timeout"   // the run's deadline passes
)

// Catches makes the step, whose argument is a [StepFailed], receive the failures of the
// named steps, or of all other steps if no name is given. It receives only failures that
// are not retried. The run continues with what the step returns.
//
// A step that names [Cancelled] or [TimedOut] is a cleanup step. When the run is
// cancelled or times out, the server drops all pending work of the run, and the cleanup
// step and the steps that follow from it get the server's grace period (default 10 s).
// Several steps may name them. A step without other names need not lead to a stop event.
// The run ends as cancelled or timed out in any case. StepName and InputEvent are empty
// then, and ElapsedSeconds counts from the start of the run.
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

// MaxRecoveries limits how often the step catches failures that follow from one event;
// the default is once. A further failure fails the run.
func MaxRecoveries(n uint64) StepOption {
	return stepOption(func(s *step) error {
		s.maxRecoveries = &n
		return nil
	})
}

// Streams lists, as empty values, the events that a step writes to the run's stream by
// [Context.Stream].
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
