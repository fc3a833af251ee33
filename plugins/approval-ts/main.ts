// Approval asks two people, one after the other, in one step that reads from top to
// bottom.
import { humanResponse, inputRequired, result, startEvent, state, step, Stop, t, workflow } from "weft";

// Says what needs approval.
const Start = startEvent("StartEvent", { item: t.string().doc("what is to be approved") });

// Asks. Every client that follows the run sees it.
export const Ask = inputRequired("InputRequiredEvent", { prefix: t.string() });

// An answer.
export const Answer = humanResponse("HumanResponseEvent", { role: t.string().doc("manager or finance"), approved: t.boolean() });

// Belongs to the session.
const State = state({ calls: t.integer().default(0).doc("how often somebody's approval was asked for") });

const roles = ["manager", "finance"];

// People need time to answer, so a run has no timeout.
export default workflow("approval-ts", { state: State, timeout: 0 }, [
  // Runs again from its start after each answer, but does nothing twice: earlier calls,
  // including the edit, return their recorded answers.
  step("approve", Start, Stop, async (ctx, ev) => {
    const calls = await ctx.edit((s) => ++s.calls);
    let approved = true;
    for (const role of roles) {
      const answer = await ctx.wait(Answer, { id: role, ask: Ask({ prefix: `${role}, approve ${ev.item}?` }), where: { role } });
      approved &&= answer.approved;
    }
    return result({ approved, by: roles, calls });
  }, { waits: [Answer], streams: [Ask] }),
]);
