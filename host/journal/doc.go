// Package journal turns the entries of all sessions into durable batches: one
// FIFO queue, group commit, output commit.
//
// It must not know what an entry means, nor own a goroutine: it is stepped
// (see [Journal.Step]), so that a simulation can decide every interleaving;
// [Journal.Run] is the small runner that a server uses.
//
// # The queue
//
//  1. An item takes its queue position under its session's mutex, together
//     with its position in the session. So the queue holds each session's
//     entries in order, and an effect that another can see stands before
//     whatever follows from seeing it.
//  2. A batch is a prefix of the queue, in one transaction, one at a time.
//  3. A position is durable when the transaction that holds it has committed;
//     durable positions are a prefix of the queue too.
//  4. Nothing that was made at a position leaves the host before that position
//     is durable: answers wait with [Journal.Wait], stream events are handed on
//     by the committer after the commit.
//  5. A failed commit that surely wrote nothing is tried again as the same
//     batch; after any other failure the queue is dead and nothing that waited
//     is answered: all that was in memory is let go of, the store is opened again,
//     and another queue begins with what is folded from it.
//
// A commit starts when somebody waits for a position in the queue, when the
// queue's head is older than Linger, or when the queue holds MaxBatchBytes. So
// a run that a client waits for is one commit, at its end: steps do not wait.
// While other attempts are ready to run, a commit that somebody waits for begins
// up to Gather later: then runs that are under way together share it.
//
//	Append:  queue += item; return position
//	Step:    if none in flight and (demanded and gathered, or old, or large): batch = prefix
//	commit:  store.Append(batch); durable = position; publish; release waiters
//
// Rejected: a commit for each entry (a step would pay a sync each), a fixed
// tick (adds its length to every answer), a queue for each session (a batch
// would have to order them against each other to keep invariant 1).
//
// # The record
//
// What the entries say, so that a prefix of the queue is always enough to go on
// from, with every effect once. Each rule names who keeps it.
//
//	R0  The first entry of an attempt has all that its input is made of: events by
//	    id, attempt, clock, seed, limits, version. Nothing that an operator can
//	    change reaches a replay. (engine.AttemptOpen, engine.StartPart; a version
//	    is an immutable digest, of a module or of a composition.)
//	R1  Every effect takes its session's next position and its place in the queue
//	    under the session's mutex, before anybody can see it. (scheduler: tick.)
//	R2  An effect's entry carries the part of its attempt's record, the calls and
//	    their answers, that no entry has yet, up to its own call. If the finish of
//	    the attempt is in the same batch, no record is written: nobody will replay
//	    it. (hostcall: attach; here: batch.)
//	R3  Calls after the last effect are not written. After a crash they are made
//	    anew: nobody has seen what came of them.
//	R4  What an edit region reads enters the record with its commit only, so that
//	    a replay that ends in a region begins the region anew. (hostcall: back.)
//	    An atomic step has no entry before its finish, and begins anew as a whole.
//	R5  Effects are written resolved, never as requests. Folding needs no plugin,
//	    no schema and no edit semantics of that day, and what is numbered is
//	    numbered by folding. (engine: decide and fold; fold never asks anybody.)
//	R6  A replay answers calls 1..k from the record: no effect, no check, and no
//	    limit can fail it. From k+1 on it is live. (hostcall: replay.)
//	R7  The answer to a suspended call is an entry like any other; what comes
//	    first wins, and the rest is refused as stale. (engine.)
//	R8  What another session is told is a message in the outbox, by the entry that
//	    makes it; the receiver's entry comes after that in the queue, and the
//	    entry that takes it out of the outbox after the receiver's. The receiver
//	    knows what it has seen by ids derived from a seed that nobody else knows.
//	    (engine: message.go, child.go; scheduler: mail.go.)
//	R9  What leaves the host waits for its position: invariant 4.
//
// One attempt, in pseudocode:
//
//	run guest from its pristine image with the input of R0
//	on call n:
//	    if n <= len(record):  same call?  answer from it : block the run, naming both
//	    lock session
//	        effect?  entry = resolve(call) + record since the last entry;  queue += entry
//	        suspends?  entry as above;  unwind the guest;  forget it
//	    unlock
//	on the answer to a suspended call:
//	    queue += answer;  run guest again with the record so far
//	on return:
//	    queue += finish(output)
//
// After a crash: fold the durable entries of a session; open attempts run again
// with their records; messages in the outbox are carried again; timers fire.
//
// Rejected: writing requests (their meaning would have to be kept for ever);
// writing results of steps only (a step with effects would have them twice);
// recording each call when it is made (a sync or at least an entry each, for
// reads that nobody will ask for); locks that are in the journal (a crash would
// leave them held); two-phase commits between sessions (one queue makes their
// order durable, and messages need no more).
package journal
