// Orders has schemas of three libraries: of zod, of TypeBox, and of TypeBox before 1.0.
import { Type as Old } from "@sinclair/typebox";
import Type from "typebox";
import { event, result, startEvent, state, step, Stop, t, workflow } from "weft";
import * as z from "zod";

const Line = z.object({ article: z.string().trim().min(1), count: z.int().min(1).default(1), price: z.number().nonnegative() });

const Start = startEvent("StartEvent", z.object({
  name: z.string().min(1).max(20).transform((text) => text.toUpperCase()),
  mail: z.email().optional(),
  lines: z.array(Line).min(1),
  pay: z.discriminatedUnion("by", [z.object({ by: z.literal("card"), number: z.string() }), z.object({ by: z.literal("invoice"), days: z.int() })]),
  labels: z.record(z.string(), z.string()).default({}),
}));

const Box = Type.Object({ size: Type.Union([Type.Literal("small"), Type.Literal("large")]), weight: Type.Number({ minimum: 0 }), notes: Type.Optional(Type.Array(Type.String())) });

const Packed = event("PackedEvent", { box: t.of(Box), total: t.of(z.number()), sent: t.of(Old.Tuple([Old.Integer(), Old.String()])) });

const State = state({ orders: t.integer().default(0), last: t.of(Old.Object({ name: Old.String() })).optional(), by: t.of(z.enum(["card", "invoice"])).optional() });

export default workflow("orders", { state: State }, [
  step("pack", Start, Packed, async (ctx, ev) => {
    const total: number = ev.lines.reduce((sum, line) => sum + line.count * line.price, 0);
    await ctx.edit((s) => {
      s.orders++;
      s.last = { name: ev.name };
      s.by = ev.pay.by;
    });
    // @ts-expect-error: zod says what an order has
    ev.nothing;
    return Packed({ box: { size: ev.lines.length > 1 ? "large" : "small", weight: total / 8 }, total, sent: [ev.lines.length, ev.pay.by === "card" ? ev.pay.number : "later"] });
  }),
  step("send", Packed, Stop, async (ctx, ev) => {
    const { orders, last, by } = await ctx.state();
    return result({ box: ev.box, total: ev.total, sent: ev.sent, orders, last, by });
  }),
]);
