// Scenes does one of many things that a step can do: testdata/plugins/scenes is the same in Go.
import {
  all, allOf, anyOf, attempts, chain, codeOf, fixed, giveUpAfter, not, nothing, onCodes, onMessage, randomWait, result, step, StepFailed,
  Stop, sum, WeftError, workflow,
} from "weft";
import { call } from "./calls";
import {
  Answer, Ask, Box, Call, Card, Cell, Deal, Done, Fan, Fragile, Item, Join, Left, Listen, LoudTick, Moon, Nest, Part, Piece, Right, Row,
  Shown, Start, State, Sum, Sun, Tick, Work, type Ctx,
} from "./events";

const range = (n: number) => Array.from({ length: n }, (_, i) => i);
const total = (list: number[]) => list.reduce((a, b) => a + b, 0);

export default workflow("scenes-ts", {
  state: State, timeout: 0,
  resources: [{ name: "web", kind: "http", optional: true }, { name: "shelf", kind: "kv", optional: true }],
}, [
  step("begin", Start, anyOf(Call, Work, Fragile, Box, Listen, Left, Right, Fan, Nest, Deal, Join), async (ctx, { what, n, text }) => {
    switch (what) {
      case "work": return Work({ fail: n > 0 });
      case "fragile": return Fragile({ text });
      case "box": return Box({ name: text, size: n });
      case "listen": return Listen();
      case "pair":
        await ctx.send(Left({ n }), "pair");
        return Right({ text });
      case "fan": return Fan({ n, text });
      case "nest": return Nest({ n });
      case "deal": return Deal({ n });
      case "join": return Join({ n, text });
    }
    return Call({ what, n, text });
  }),

  // Waits until both are there; what comes before is kept.
  step("pair", anyOf(Left, Right), Stop, async (ctx) => {
    const both = await ctx.collect([Right, Left], { buffer: "pair" });
    if (!both) return null;
    const [right, left] = both;
    return result([left.n, right.text]);
  }),

  step("call", Call, Stop, async (ctx: Ctx, ev) => result((await call(ctx, ev)) as object), {
    waits: [Answer, Tick], streams: [Ask, Shown],
    retry: {
      when: allOf(onCodes("flaky"), not(onMessage("final"))),
      wait: chain(fixed("1ms"), sum(fixed("1ms"), randomWait(0, "1ms"))),
      attempts: 4,
    },
  }),

  // Shows as a whole or not at all.
  step("work", Work, Done, async (ctx: Ctx, ev) => {
    await ctx.edit((s) => { s.count += 10; s.log.push("worked"); });
    await ctx.stream(Shown({ text: "worked" }));
    await ctx.send(Done());
    const refused = await ctx.sleep("1s").then(() => "", codeOf);
    if (ev.fail) throw new WeftError(`a sleep is refused by ${refused}`, { code: "undone" }).final();
    return null;
  }, { atomic: true, streams: [Shown] }),

  step("done", Done, Stop, async (ctx: Ctx) => result(await ctx.state())),

  step("fragile", Fragile, Stop, (ctx, ev) => { throw new WeftError(ev.text, { code: "fragile" }); },
    { retry: { wait: "1ms", stop: anyOf(attempts(2), giveUpAfter("1h")) } }),

  step("rescue", StepFailed, Stop, async (ctx: Ctx, ev) => result({
    step: ev.step_name, code: ev.exception.exception_type, message: ev.exception.exception_message, attempts: ev.attempts,
    input: ev.input_event, state: await ctx.state(),
  }), { catches: ["work", "fragile"], maxRecoveries: 2 }),

  // Runs when the run is cancelled.
  step("clean", StepFailed, nothing, async (ctx, ev) => {
    await ctx.stream(Shown({ text: `cleaned: ${ev.step_name}${ev.exception.exception_type}` }));
  }, { catches: ["cancelled", "timeout"], streams: [Shown] }),

  step("measure", Item, Stop, (ctx, ev) => result(ev.name.length), { acceptSubtypes: true }),
  step("listen", Listen, Stop, async (ctx) => result((await ctx.wait(Tick)).n), { waits: [Tick], streams: [LoudTick], acceptSubtypes: true }),

  step("fan", Fan, [Part], (ctx, ev) => range(ev.n).map((i) => Part({ i, text: ev.text }))),
  step("nest", Nest, [Row], (ctx, ev) => range(ev.n).map((row) => Row({ row, n: ev.n }))),
  step("deal", Deal, [Card], (ctx, ev) => range(ev.n).map((v) => Card({ v }))),

  // Begins a join, with half of it if it has no text.
  step("both", Join, anyOf(Sun, Moon), async (ctx, ev) => {
    if (ev.text) await ctx.send(Moon({ text: ev.text }));
    return Sun({ n: ev.n });
  }),

  // Gives a piece, gives none, or fails: once or for good.
  step("part", Part, Piece, (ctx, { i, text }) => {
    if (i === 1 && text === "skip") return null;
    if (i === 1 && (text === "fail" || (text === "flaky" && ctx.attempt === 1))) throw new WeftError("part 1 fails", { code: "part" });
    return Piece({ i: i * 10 });
  }, { workers: 2, retry: { wait: "1ms", attempts: 2 } }),

  // Gives a piece in the place of one that failed.
  step("mend", StepFailed, Piece, (ctx, ev) => Piece({ i: -ev.attempts }), { catches: ["part"] }),
  step("gather", [Piece], Stop, (ctx, pieces) => result(pieces.map((p) => p.i).sort((a, b) => a - b))),
  step("row", Row, [Cell], (ctx, { row, n }) => range(n).map((i) => Cell({ v: row * n + i }))),
  step("cells", [Cell], Sum, (ctx, cells) => Sum({ sum: total(cells.map((c) => c.v)) })),
  step("total", [Sum], Stop, (ctx, rows) => result([rows.length, total(rows.map((r) => r.sum))])),
  step("hand", [Card], Stop, (ctx, cards) => result(cards.length), { take: 2 }),
  step("sky", all(Sun, Moon), Stop, (ctx, [sun, moon]) => result([sun.n, moon.text])),
]);
