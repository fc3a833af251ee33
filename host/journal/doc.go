// Package journal turns the entries of all sessions into durable batches. It is one FIFO
// queue with group commit: nothing becomes visible outside before it is durable.
//
// The package does not know what an entry means, and owns no goroutine. It is stepped
// (see [Journal.Step]), so that a simulation can choose every interleaving. [Journal.Run]
// is the small loop that a server uses.
//
// # The queue
//
//  1. An item takes its queue position under its session's mutex, together with its
//     position in the session. So the queue holds each session's entries in order, and an
//     effect that others can see stands before everything that follows from seeing it.
//  2. A batch is a prefix of the queue, in one transaction. One batch is in progress at a
//     time.
//  3. A position is durable when the transaction that holds it has committed. So the
//     durable positions are a prefix of the queue too.
//  4. Nothing that was made at a position leaves the host before that position is durable.
//     Answers wait with [Journal.Wait]. The committer publishes stream events after the
//     commit.
//  5. A failed commit that certainly wrote nothing is tried again as the same batch. After
//     any other failure the queue is dead, and nothing that waited is answered. The host
//     discards everything in memory, opens the store again, and a new queue begins with
//     what is folded from the store.
//
// A commit starts when somebody waits for a position in the queue, when the head of the
// queue is older than Linger, or when the queue holds MaxBatchBytes. So a run that a
// client waits for takes one commit, at its end: steps do not wait. While other attempts
// are ready to run, a commit that somebody waits for starts up to Gather later, so that
// concurrent runs share it.
//
//	Append:  queue += item; return position
//	Step:    if none in flight and (demanded and gathered, or old, or large): batch = prefix
//	commit:  store.Append(batch); durable = position; publish; release waiters
//
// Rejected: a commit for each entry (each step would pay for a sync), a fixed tick (it
// adds its length to every answer), a queue for each session (a batch would have to order
// the queues against each other to keep invariant 1).
//
// # The record
//
// The entries follow these rules, so that work can continue from any prefix of the queue
// with every effect happening once. Each rule names the code that keeps it.
//
//	R0  The first entry of an attempt has everything that the attempt's input is made
//	    of: events by id, attempt, clock, seed, limits, version. A change of the
//	    server's configuration does not reach a replay. (engine.AttemptOpen,
//	    engine.StartPart; a version is an immutable digest of a module or a
//	    composition.)
//	R1  Every effect takes its session's next position and its place in the queue
//	    under the session's mutex, before anybody can see it. (scheduler: tick.)
//	R2  The entry of an effect carries the part of its attempt's record (calls and
//	    answers) that no earlier entry carries, up to its own call. If the attempt
//	    finishes in the same batch, no record is written, because nobody will replay
//	    the attempt. (hostcall: attach; here: batch.)
//	R3  Calls after the last effect are not written. After a crash they are made
//	    again: nobody has seen their results.
//	R4  What an edit region reads enters the record only with the region's commit.
//	    So a replay that ends inside a region begins the region again. (hostcall:
//	    rollBack.) An atomic step has no entry before it finishes, and begins again as a
//	    whole.
//	R5  Effects are written in resolved form, never as requests. Folding needs no
//	    plugin, no schema and no edit semantics of the time of writing. Ids are given
//	    by folding. (engine: decide and fold.)
//	R6  A replay answers calls 1..k from the record, without effects or checks, and
//	    no limit can make it fail. From call k+1 on it is live. (hostcall: replay.)
//	R7  The answer to a suspended call is an entry like any other. The first of the
//	    answer and the end of the attempt wins, and the rest is refused as stale.
//	    (engine.)
//	R8  A session informs another by a message, which the entry that makes it puts
//	    into the outbox. The receiver's entry comes later in the queue, and the entry
//	    that takes the message out of the outbox later still. The receiver recognises
//	    what it has seen by ids derived from a seed that nobody else knows.
//	    (engine: message.go, child.go; scheduler: mail.go.)
//	R9  Everything that leaves the host waits for its position: invariant 4.
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
// After a crash, the durable entries of a session are folded. Open attempts run again
// with their records, messages in the outbox are carried again, and timers fire.
//
// Rejected: writing requests (their meaning would have to stay the same for ever);
// writing only the results of steps (a step with effects would repeat them); writing each
// call when it is made (at least an entry each, for reads that nobody needs again); locks
// in the journal (a crash would leave them locked); two-phase commits between sessions
// (one queue already orders their entries durably, and messages need no more).
package journal
