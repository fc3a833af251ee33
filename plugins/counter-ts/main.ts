// Counter counts how often it has been run in a session: typed state, and an edit that
// cannot lose an update.
import { result, startEvent, state, step, Stop, t, workflow } from "weft";

// Starts a run. It needs no fields.
const Start = startEvent("StartEvent");

// Belongs to the session: it outlives the run.
const State = state({ count: t.integer().default(0).doc("runs so far") });

export default workflow("counter-ts", { state: State }, [
  // Reads, changes and writes without interference.
  step("increment", Start, Stop, async (ctx) => result(await ctx.edit((s) => ++s.count))),
]);
