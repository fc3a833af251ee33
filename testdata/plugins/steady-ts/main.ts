// Steady is for tests that kill the server while an asynchronous step waits or computes:
// what the step has seen and done must be the same whenever it runs again.
import { event, humanResponse, inputRequired, result, startEvent, state, step, Stop, t, workflow } from "weft";

const Start = startEvent("StartEvent", { spins: t.integer().doc("rounds of arithmetic") });
const Ask = inputRequired("InputRequiredEvent", { prefix: t.string(), seen: t.any() });
const Answer = humanResponse("HumanResponseEvent", { n: t.integer() });
const Progress = event("ProgressEvent", { seen: t.any() });
const State = state({ edits: t.integer(), answers: t.array(t.integer()) });

const pause = (ms: number) => new Promise<void>((wake) => setTimeout(wake, ms));

// chance gives what differs from run to run, but not from attempt to attempt.
const chance = () => [Math.random(), Math.random(), crypto.randomUUID()];

export default workflow("steady-ts", { state: State, timeout: 0 }, [
  step("work", Start, Stop, async (ctx, ev) => {
    const seen: unknown[] = [chance()];
    const before = Date.now();
    await pause(50);
    seen.push(Date.now() - before >= 50, await ctx.edit((s) => ++s.edits));
    const first = await ctx.wait(Answer, { id: "first", ask: Ask({ prefix: "first?", seen: [...seen] }) });
    const timers: string[] = [];
    await Promise.all([pause(20).then(() => timers.push("late")), pause(10).then(() => timers.push("early"))]);
    seen.push(timers, chance(), await ctx.edit((s) => s.answers.push(first.n)));
    await ctx.stream(Progress({ seen: [...seen] }));
    let x = 0;
    for (let i = 0; i < ev.spins; i++) x = (x * 31 + i) | 0;
    seen.push(x, await ctx.edit((s) => ++s.edits));
    await ctx.sleep("5ms");
    const second = await ctx.wait(Answer, { id: "second", ask: Ask({ prefix: "second?", seen: [...seen] }) });
    const { edits, answers } = await ctx.edit((s) => { s.answers.push(second.n); return s; });
    return result({ seen, edits, answers });
  }, { waits: [Answer], streams: [Ask, Progress] }),
]);
