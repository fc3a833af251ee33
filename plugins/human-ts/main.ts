// Human asks a person and waits for the answer, however long that takes: no step runs
// meanwhile.
import { humanResponse, inputRequired, result, startEvent, step, Stop, t, workflow } from "weft";

// Starts a run. It needs no fields.
const Start = startEvent("StartEvent");

// Asks. Every client that follows the run sees it.
const Ask = inputRequired("InputRequiredEvent", { prefix: t.string() });

// The answer: any JSON value.
const Answer = humanResponse("HumanResponseEvent", { response: t.any() });

// People need time to answer, so a run has no timeout.
export default workflow("human-ts", { timeout: 0 }, [
  step("ask", Start, Ask, () => Ask({ prefix: "Enter a number: " })),
  step("answer", Answer, Stop, (ctx, ev) => result(ev.response)),
]);
