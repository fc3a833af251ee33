// Package wefttest runs the steps of a workflow, or all of it, in a plain go test:
// natively, without WebAssembly and without a server.
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
// It is the server's own reducer that decides what happens, on the server's own
// state, and the server's own code that answers host calls: packages engine, state
// and hostcall. So workers, collections, waits, retries, timeouts, catches, atomic
// steps, children and schemas of the state mean here what they mean there, and a
// step that does not come out the same when it is replayed after a wait is found.
//
// Time is [Session.Clock] and stands still while steps compute. It goes on by itself
// when nothing else can happen but the end of a sleep or the next attempt of a step;
// [Run.Advance] lets more of it pass, for the timeout of a wait. A wait is answered by
// [Run.Send] or [Run.Post], and [Run.Waiting] names those that are open. For
// workflows that steps run as children stand the functions and guests of [Child] and
// [ChildOn], for resources the functions of [Resource], and values in memory for those of the kind kv ([KV]).
//
// One invocation runs after the other, each to its end or its wait. With [Seed] they
// run side by side: the order in which they and their host calls come is drawn from
// the seed, and is the same for the same seed.
//
// [Session.Step] runs one step alone, on events and a state that the test gives, and
// [Session.Function] a function that flows call.
//
// What is not here: fuel and the other limits of a sandbox, durability, crashes, and
// the keywords of JSON Schema that schemas of events may have and those of states not.
//
// The package must not know how steps are written, only the messages that they
// exchange with a host. A process holds one workflow, so tests that run in parallel
// take turns, and a step must not call this package: it would wait for itself. The
// functions of [Child] and [Resource] may.
package wefttest
