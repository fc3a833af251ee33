// Package wefttest runs single steps or a whole workflow in a plain go test: natively,
// without WebAssembly and without a server.
//
//	func TestGreeting(t *testing.T) {
//		run, err := wefttest.NewSession().Run(StartEvent{Name: "Ada"})
//		if err != nil {
//			t.Fatal(err)
//		}
//		if run.Result != "Hello, Ada" {
//			t.Error(run.Result)
//		}
//	}
//
// The server's own reducer decides what happens, on the server's own state, and the
// server's own code answers host calls (packages engine, state and hostcall). Workers,
// collections, waits, retries, timeouts, catches, atomic steps, children and schemas of
// the state therefore work here as on a server. A step that behaves differently when it
// is replayed after a wait is detected.
//
// Time is [Session.Clock] and does not advance while steps compute. It advances by itself
// when nothing else can happen except the end of a sleep or the next attempt of a step.
// [Run.Advance] advances it further, for the timeout of a wait. [Run.Send] or [Run.Post]
// answers a wait, and [Run.Waiting] names the open waits. The functions and guests of
// [Child] and [ChildOn] replace workflows that steps run as children, and the functions
// of [Resource] replace resources. Resources of the kind kv keep their values in memory
// ([KV]).
//
// One invocation runs after the other, each to its end or its wait. With [Seed] they run
// concurrently: the seed decides the order of invocations and of their host calls, and
// the same seed gives the same order.
//
// [Session.Step] runs one step alone, on events and a state that the test supplies, and
// [Session.Function] runs a function that flows call.
//
// The package does not simulate fuel and the other limits of a sandbox, durability,
// crashes, or the keywords of JSON Schema that schemas of events may use and schemas of
// the state may not.
//
// The package must not depend on how steps are written, only on the messages that they
// exchange with a host. A process holds one workflow, so tests that run in parallel take
// turns. A step must not call this package: it would wait for itself. The functions of
// [Child] and [Resource] may.
package wefttest
