// Parent runs another workflow twice from one step: a child is a call.
import { result, startEvent, step, Stop, t, workflow } from "weft";

// Lists what to process.
const Start = startEvent("StartEvent", { items: t.array(t.string()) });

// The result of one item from the child, accumulator.
type Result = { index: number; original: string; processed: string };

export default workflow("parent-ts", {}, [
  // Runs a child for each half of the items, one after the other, because the children
  // share the session and its one list of results.
  step("split", Start, Stop, async (ctx, ev) => {
    const middle = Math.floor(ev.items.length / 2);
    const results: Result[] = [];
    let children = 0;
    for (const items of [ev.items.slice(0, middle), ev.items.slice(middle)]) {
      results.push(...(await ctx.run<Result[]>("accumulator", { items }, { sameSession: true })));
      children++;
    }
    return result({ children, results });
  }),
]);
