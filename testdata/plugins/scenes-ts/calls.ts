// The calls that may take long.
import { codeOf, WeftError, type WaitOptions } from "weft";
import { Answer, Ask, Shown, Start, Tick, type Ctx } from "./events";
import { keep, tally } from "./kv";
import { edits, fail, read, regions } from "./state";

export async function call(ctx: Ctx, { what, n, text }: { what: string; n: number; text: string }): Promise<unknown> {
  switch (what) {
    case "approve": return approve(ctx, text);
    case "ticks": return ticks(ctx, n);
    case "assume": return (await ctx.wait(Answer, { where: { role: "manager" } })).approved;
    case "named": return ticks(ctx, n, { id: "tick" });
    case "patience":
      try {
        await ctx.wait(Tick, { timeout: n / 1e6 });
        return "";
      } catch (e) {
        return codeOf(e);
      }
    case "nap": {
      const before = await ctx.now();
      await ctx.sleep(n / 1e6);
      return Number(await ctx.now()) - Number(before) >= n / 1e6;
    }
    case "once": return once(ctx);
    case "children": return children(ctx);
    case "fetch": {
      const body = new TextEncoder().encode("tea");
      const answer = await ctx.http("web").do({ method: "POST", path: text, query: { q: "a b" }, headers: { "X-Scene": "fetch" }, body, expect_success: n > 0 });
      return [answer.status, answer.header("X-Answer"), answer.text()];
    }
    case "keep": return keep(ctx);
    case "tally": return tally(ctx, text);
    case "edits": return edits(ctx);
    case "regions": return regions(ctx);
    case "read": return read(ctx);
    case "print":
      ctx.debug(text);
      ctx.info(text);
      ctx.warn(text);
      ctx.error(text);
      ctx.info(text, { n, list: [1, 2] });
      await ctx.stream(Shown({ text: text + n }));
      return null;
    case "panic": return fail(ctx, text);
    case "count": return ctx.increment("count", n);
    case "show":
      await ctx.stream(Shown({ text }));
      return null;
    case "flaky":
      if (ctx.attempt <= n) throw new WeftError(`${text} at attempt ${ctx.attempt}`, { code: "flaky" });
      return ctx.attempt;
  }
  throw new WeftError(text, { code: "asked" });
}

// approve asks people one after the other.
async function approve(ctx: Ctx, text: string) {
  const asked = await ctx.increment("count"); // once, however often the step waits
  let approved = true;
  for (const role of ["manager", "finance"]) {
    const answer = await ctx.wait(Answer, { id: role, where: { role }, ask: Ask({ prefix: `${role}, approve ${text}?` }) });
    approved &&= answer.approved;
  }
  return [approved, asked];
}

async function ticks(ctx: Ctx, n: number, options?: WaitOptions) {
  const numbers = [];
  for (let i = 0; i < n; i++) numbers.push((await ctx.wait(Tick, options)).n);
  return numbers;
}

// once begins a child, fails, and has the child's result at its next attempt.
async function once(ctx: Ctx) {
  const count = await ctx.run(ctx.runInfo.workflow, { what: "count", n: 5 }, { sameSession: true, id: "first" });
  if (ctx.attempt < 3) throw new WeftError("after the child", { code: "flaky" });
  return [count, ctx.attempt];
}

// children runs children of all sorts.
async function children(ctx: Ctx) {
  const { workflow, runId } = ctx.runInfo;
  const found: unknown[] = [];
  for (const options of [{}, {}, { sameSession: true }, { sameSession: true }, { session: runId }]) {
    found.push(await ctx.run(workflow, Start({ what: "count", n: 1 }), options));
  }
  for (const options of [{}, { stream: true }]) await ctx.run(workflow, Start({ what: "show", text: "shown by a child" }), options);
  for (const [name, start] of [[workflow, Start({ what: "fail", text: "by a child" })], ["nobody"], [workflow]] as const) {
    await ctx.run(name, start).catch((e) => found.push(codeOf(e)));
  }
  return found;
}
