// What the SDK's types accept and refuse. The TypeScript compiler reads this file, and
// nothing runs it: a line below @ts-expect-error that has no error is an error.
import {
  all, anyOf, event, fixed, float, humanResponse, inputRequired, nothing, onCodes, result, startEvent, state, step, Stop, StepFailed, t, WeftError,
  workflow, type Context, type Infer,
} from "weft";
import { expect, session, test } from "weft/test";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

// ---- fields

const Start = startEvent("StartEvent", {
  name: t.string(), n: t.integer().default(3), note: t.string().optional(), how: t.oneOf("a", "b"), pair: t.tuple(t.string(), t.integer()),
  tags: t.record(t.boolean()), big: t.bigint(), raw: t.bytes(), items: t.array(t.object({ x: t.number() })),
});
const required = { name: "x", how: "a", pair: ["x", 1], tags: {}, big: 1n, raw: new Uint8Array(), items: [{ x: 1 }] } as const;
const start = Start({ ...required, pair: ["x", 1], items: [{ x: 1 }] });
same<typeof start.n, number>(true);
same<typeof start.note, string | undefined>(true);
same<typeof start.how, "a" | "b">(true);
same<typeof start.pair, [string, number]>(true);
same<typeof start.big, bigint>(true);
// @ts-expect-error a required field is missing
Start({ n: 1 });
// @ts-expect-error a wrong type
Start({ ...required, pair: ["x", 1], items: [], name: 7 });
// @ts-expect-error a typing error in a field
event("NextEvent", { text: t.string() })({ txet: "x" });
// @ts-expect-error a value that is not one of those allowed
t.oneOf("a", "b").default("c");
// @ts-expect-error a schema is missing
event("NextEvent", { text: "string" });
const schema = t.object({ a: t.string(), b: t.integer().optional() });
same<Infer<typeof schema>, { a: string; b?: number }>(true);

const Item = event("Item", { name: t.string() });
const Box = event("Box", { size: t.integer() }, { extends: Item });
const box = Box({ name: "x", size: 1 });
same<typeof box.name, string>(true);
same<typeof box.size, number>(true);
// @ts-expect-error a field of the type that is extended is missing
Box({ size: 1 });

// ---- steps

const A = event("A", { a: t.string() });
const B = event("B", { b: t.integer() });
const Empty = event("Empty");
Empty();

step("one", A, B, (ctx, ev) => B({ b: ev.a.length }));
step("null", A, B, () => null);
step("promise", A, B, async (ctx, ev) => (ev.a ? B({ b: 1 }) : null));
step("several", anyOf(A, B), anyOf(A, [B]), (ctx, ev) => (A.is(ev) ? A({ a: ev.a }) : [B({ b: ev.b })]));
step("list", [A], Stop, (ctx, list) => result(list.map((ev) => ev.a)));
step("mixed", [anyOf(A, B)], Stop, (ctx, list) => result(list.filter((ev) => B.is(ev)).length));
step("joined", all(A, B), Stop, (ctx, [a, b]) => result(a.a + b.b));
step("extended", Box, Stop, (ctx, ev) => result(ev.name.repeat(ev.size)));
step("nothing", A, nothing, async () => {});
step("failed", StepFailed, Stop, (ctx, ev) => result(ev.exception.exception_message), { catches: "*" });
// @ts-expect-error the step gives another event
step("other", A, B, () => A({ a: "x" }));
// @ts-expect-error a plain object is not an event
step("plain", A, Stop, () => ({ result: 1 }));
// @ts-expect-error the event has no such field
step("field", A, B, (ctx, ev) => B({ b: ev.b }));
// @ts-expect-error nothing is returned
step("forgotten", A, B, (ctx, ev) => { B({ b: 1 }); });
// @ts-expect-error one event, where a list is declared
step("single", A, [B], () => B({ b: 1 }));
// @ts-expect-error an option that does not exist
step("option", A, B, () => null, { worker: 3 });
// @ts-expect-error a condition in the place of a wait
step("retry", A, B, () => null, { retry: { wait: onCodes("busy") } });
step("retry", A, B, () => null, { retry: { when: onCodes("busy"), wait: fixed("1s"), attempts: 3 }, timeout: { minutes: 1 } });

// ---- the context

const Ask = inputRequired("Ask", { prefix: t.string() });
const Answer = humanResponse("Answer", { approved: t.boolean() });
const State = state({ count: t.integer().default(0), log: t.array(t.string()) });

workflow("typed", { state: State, timeout: "1h", resources: [{ name: "web", kind: "http" }] }, [
  step("work", A, Stop, async (ctx, ev) => {
    const count = await ctx.edit((s) => ++s.count);
    same<typeof count, number>(true);
    // @ts-expect-error the state has no such field
    await ctx.edit((s) => s.cuont++);
    const answer = await ctx.wait(Answer, { id: "x", ask: Ask({ prefix: "?" }), where: { approved: true }, timeout: "3d" });
    same<typeof answer.approved, boolean>(true);
    // @ts-expect-error an ask is an event
    await ctx.wait(Answer, { ask: "?" });
    const both = await ctx.collect([A, B]);
    if (both) same<typeof both[1]["b"], number>(true);
    // @ts-expect-error a plain object is not an event
    await ctx.send({ a: "x" });
    // @ts-expect-error an option that does not exist
    await ctx.run("child", {}, { sesion: "x" });
    const { model } = ctx.config(t.object({ model: t.string().default("none") }));
    same<typeof model, string>(true);
    const page = await ctx.http("web").do({ path: "/", method: "POST", body: "x" });
    same<typeof page.status, number>(true);
    // @ts-expect-error a field that a request does not have
    await ctx.http("web").do({ pth: "/" });
    return result(float(count));
  }),
]);
// @ts-expect-error an option of a workflow that does not exist
workflow("typo", { tiemout: 0 }, []);
const ask = (ctx: Context<{ n: number }>) => ctx.edit((s) => s.n);
same<Awaited<ReturnType<typeof ask>>, number>(true);
// @ts-expect-error an error of weft has a code
throw new WeftError("busy", {});

// ---- what steps find, and what they do not

new URL("https://example.com/").searchParams.get("q");
structuredClone(new TextEncoder().encode("x"));
// @ts-expect-error steps have no fetch
fetch("https://example.com/");
// @ts-expect-error steps have no process
process.env;

// ---- tests

test("a test", async () => {
  expect(1).not.toBe(2);
  const got = await session().run<string>({ name: "Ada" });
  same<typeof got, string>(true);
  await expect(session().run()).rejects.toThrow("name");
  // @ts-expect-error a check that does not exist
  expect(1).toEquals(1);
});
