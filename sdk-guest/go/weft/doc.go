// Package weft is the Go SDK for weft step plugins: WebAssembly modules, built with
// TinyGo or with Go, that contain the steps of one workflow.
//
// A step is a function that takes an event and returns the next event. Events are
// structs; embedding [Start], [Stop], [InputRequired] or [HumanResponse] marks their
// kind. The host keeps the state, and a step accesses it by its [Context]. Call [Define]
// in init to declare the workflow, and leave main empty:
//
//	type StartEvent struct {
//		weft.Start
//		Name string
//	}
//
//	func greet(ctx *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
//		return weft.Result("Hello, " + ev.Name), nil
//	}
//
//	func init() {
//		weft.Define("hello", weft.Step("greet", greet))
//	}
//
//	func main() {}
//
// The types of a step's function say what the step takes and returns:
//
//	takes    E            one event of the type
//	         []E          all the events of the type that one list led to
//	         weft.Event   one of the events listed by [Accepts]
//	         a [Join]     one event for each field
//	returns  R            one event
//	         *R           one event, or nothing if nil
//	         []R          a list of events, each taken by an invocation of its own
//	         weft.Event   one of the events listed by [Emits], or nothing if nil
//	         [Nothing]    nothing
//
// Long operations look like calls: [Wait] for an event, [Context.Sleep], and [Run] for
// another workflow as a child. Options such as [Retry], [Workers], [Timeout] and [Atomic]
// configure a step.
//
// Fields are mapped to keys in snake case. The tags weft, default, doc, min, max and enum
// control this mapping and fill the JSON Schema that clients see. See [Start] for an
// example.
//
// The package must not depend on how the host runs steps, only on the messages between
// host and guest. It uses neither goroutines nor package fmt, so that a plugin built with
// TinyGo stays small. A guest has one thread; nothing in this package is safe for
// concurrent use.
package weft
