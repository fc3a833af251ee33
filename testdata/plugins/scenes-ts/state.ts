// The ways to read and to edit the state, and the ways in which code fails.
import { codeOf, t, WeftError } from "weft";
import type { Ctx } from "./events";

// notes keeps what calls give: their values, or the codes of their errors.
function notes() {
  const list: unknown[] = [];
  const note = async (f: () => Promise<unknown>) => { list.push((await f().catch(codeOf)) ?? null); };
  return { list, note };
}

// edits makes each kind of edit, well and badly, alone and in batches.
export async function edits(ctx: Ctx) {
  const { list, note } = notes();
  await note(() => ctx.set("m.a.b", 1));
  await note(() => ctx.set("log.7", "x"));
  await note(() => ctx.set("count", "many")); // the schema wants a number
  await note(() => ctx.append("log", "one"));
  await note(() => ctx.append("m.list", [null, true, 1.5]));
  await note(() => ctx.append("count", "x"));
  await note(() => ctx.increment("count", 5));
  await note(() => ctx.increment("m.a"));
  await note(() => ctx.incrementFloat("m.rate", 0.5));
  await note(() => ctx.merge("m", { a: { c: "\u00e4" } }));
  await note(() => ctx.test("m.a.c", "\u00e4"));
  await note(() => ctx.test("m.a.c", "other"));
  await note(() => ctx.delete("m.list.-1"));
  await note(() => ctx.delete("m.list.-1"));
  await note(() => ctx.batch().test("count", 5).set("m.a", 7).increment("count", -6).append("log", "two")
    .delete("m.rate").merge("m", { z: 1 }).incrementFloat("m.f", 0.25).do());
  await note(() => ctx.batch().set("m.a", 100).test("count", 0).do());
  list.push(null, await ctx.get(""));
  await note(() => ctx.clear());
  await note(() => ctx.state());
  return list;
}

// regions edits as if alone, and gives edits up.
export async function regions(ctx: Ctx) {
  const { list, note } = notes();
  let inside: Promise<unknown>[] = [];
  await ctx.edit((s) => {
    s.count = 3;
    s.log.push("kept");
    inside = [ctx.set("count", 9).catch(codeOf), ctx.get("count")]; // only reads are allowed here, of what is committed
  });
  const [refused, seen] = await Promise.all(inside);
  list.push(refused, null, seen, null);
  await note(() => ctx.edit((s) => {
    s.count = 100;
    throw new Error("given up");
  }));
  await note(() => ctx.editAt<string[]>("log", (log) => { log.push("at a path"); }));
  await note(() => ctx.editAt("nothing", () => {}));
  await note(() => ctx.state());
  return list;
}

// read asks for what is not the state's.
export async function read(ctx: Ctx) {
  const { list, note } = notes();
  await note(() => ctx.get("nothing.at.all"));
  list.push(null, await ctx.get("nothing", [1]));
  list.push(null, await ctx.get("count", 9));
  await note(async () => (await ctx.random(16)).length);
  await note(() => ctx.random(5000));
  const { attempt, invocation, tenant, lastError, started } = ctx.runInfo;
  list.push(attempt, invocation, tenant, lastError === undefined, (await ctx.now()) >= started);
  list.push(null, ctx.config(t.object({ model: t.string().default("none") })).model);
  return list;
}

// fail fails in the ways in which code does.
export async function fail(ctx: Ctx, how: string): Promise<never> {
  await ctx.increment("count"); // it stands
  switch (how) {
    case "map": throw new TypeError("the map is not there");
    case "index": throw new RangeError("index out of range");
    case "zero": throw new RangeError(`divide by zero: ${1n / BigInt(how.length)}`);
    case "wrapped": {
      const cause = new WeftError("the cause", { code: "inside" });
      throw new WeftError(`around: ${cause.message}`, { code: codeOf(cause), cause });
    }
  }
  throw new TypeError("boom");
}
