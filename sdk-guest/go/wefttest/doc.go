// Package wefttest is a small host in memory, for tests of a plugin's steps in
// a native build: it runs the workflow that the test's program defines, one
// invocation after the other, and shows the state, the stream and the log.
//
//	func TestGreeting(t *testing.T) {
//		run, err := wefttest.NewSession().Run(map[string]any{"name": "Ada"})
//		if err != nil {
//			t.Fatal(err)
//		}
//		if run.Result != "Hello, Ada" {
//			t.Error(run.Result)
//		}
//	}
//
// A step that waits for an event waits until [Run.Post] brings it, and
// [Run.Waiting] names its waits; a sleep moves [Session.Clock]. A failure goes to
// the step that catches it, without retries; what an atomic step did is then undone.
// For the workflows that steps run as children stand the functions and guests that
// [Child] and [ChildOn] name; [Run.Children] are their runs.
//
// It is no second engine: steps never run side by side, nothing is retried,
// timed, validated or durable, no run is cancelled or times out, so that nothing
// cleans up, and schemas are not checked. What passes here
// may still be refused by a host.
//
// The package must not know how steps are written, only the messages that they
// exchange with a host. It is not safe for concurrent use, and there is one
// workflow and one clock for the whole process.
package wefttest
