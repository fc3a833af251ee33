// Package weft is the Go SDK for weft step plugins: WebAssembly modules, built
// with TinyGo or with Go, that hold the steps of one workflow.
//
// A step is a function that takes an event and gives the next one. Events are
// structs; embedding [Start], [Stop], [InputRequired] or [HumanResponse] marks
// their kind. State lives with the host and is reached by the [Context]. The
// workflow is put together by [Define], in init, and main stays empty:
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
// The types of a step say what it takes and gives:
//
//	takes  E            one event of the type
//	       []E          all the events of the type that one list led to
//	       weft.Event   one of the events listed by [Accepts]
//	       a [Join]     one event for each field
//	gives  R            one event
//	       *R           one event, or nothing if nil
//	       []R          a list of events, each taken by an invocation of its own
//	       weft.Event   one of the events listed by [Emits], or nothing if nil
//	       [Nothing]    nothing
//
// What takes long reads as a call: [Wait] for an event, [Context.Sleep], and [Run]
// for another workflow as a child. Steps are given [Retry], [Workers], [Timeout],
// [Atomic] and more by options.
//
// Fields are mapped to keys in snake case; the tags weft, default, doc, min,
// max and enum steer that and fill the JSON Schema that clients see. See
// [Start] for an example.
//
// The package must not know how the host runs steps: only the messages that
// cross the boundary between the two. It uses neither goroutines nor package
// fmt, so that a plugin built with TinyGo stays small. A guest has one thread;
// nothing here is safe for concurrent use.
package weft
