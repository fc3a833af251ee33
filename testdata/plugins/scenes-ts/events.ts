// The events and the state of the scenes.
import { Context, event, humanResponse, inputRequired, startEvent, state, t, type Infer } from "weft";

const text = t.string();
const n = t.integer();

export const Start = startEvent("StartEvent", { what: text, n: n.default(0), text: text.default("") });
export const Call = event("CallEvent", { what: text, n, text });
export const Work = event("WorkEvent", { fail: t.boolean() });
export const Fragile = event("FragileEvent", { text });
export const Item = event("ItemEvent", { name: text });
export const Box = event("BoxEvent", { size: n }, { extends: Item });
export const Left = event("LeftEvent", { n });
export const Right = event("RightEvent", { text });
export const Done = event("DoneEvent");
export const Shown = event("ShownEvent", { text });
export const Tick = event("TickEvent", { n });
export const LoudTick = event("LoudTickEvent", { text }, { extends: Tick });
export const Listen = event("ListenEvent");
export const Ask = inputRequired("InputRequiredEvent", { prefix: text });
export const Answer = humanResponse("HumanResponseEvent", { role: text.default("manager"), approved: t.boolean() });
export const Fan = event("FanEvent", { n, text });
export const Nest = event("NestEvent", { n });
export const Deal = event("DealEvent", { n });
export const Join = event("JoinEvent", { n, text });
export const Part = event("PartEvent", { i: n, text });
export const Piece = event("PieceEvent", { i: n });
export const Row = event("RowEvent", { row: n, n });
export const Cell = event("CellEvent", { v: n });
export const Sum = event("SumEvent", { sum: n });
export const Card = event("CardEvent", { v: n });
export const Sun = event("SunEvent", { n });
export const Moon = event("MoonEvent", { text });

const fields = { count: n, log: t.array(text) };
const whole = t.object(fields);
export const State = state(fields);
export type Ctx = Context<Infer<typeof whole>>;
