/**
 * Tests of a project's code, which 'weft test' runs: files named *.test.ts or *.test.js.
 *
 *     import { expect, session, test } from "weft/test";
 *     import { words } from "./words";
 *
 *     test("counts words", () => expect(words("a b a").get("a")).toBe(2));
 *     test("greets", async () => expect(await session().run({ name: "Ada" })).toBe("Hello, Ada!"));
 *
 * Each test runs alone, in a memory of its own.
 */
import type { Context } from "./context";
import { engine } from "./engine";
import { WeftError } from "./errors";
import { event, fromWire, isEvent, result, startEvent, Stop, wire, type Event } from "./event";
import { t } from "./schema";
import { forget, step, workflow } from "./workflow";

interface Test { name: string; run: () => unknown }

const tests: Test[] = [];
let group = "";
let context: Context | undefined;
let sessions = 0;

// A test asks 'weft test' for a run of the workflow, and to answer the run's questions. The reply is the run's question, or its end.
const Request = event("TestRequestEvent", { session: t.string(), start: t.any().optional(), answer: t.any().optional() });
const Reply = event("TestReplyEvent", {
  ended: t.boolean().default(false), question: t.any().optional(), result: t.any().optional(), code: t.string().optional(), message: t.string().optional(),
});

/** Declares a test. It fails if the function throws, or gives a promise that is rejected. */
export function test(name: string, run: () => unknown): void {
  tests.push({ name: group + name, run });
}

/** The same as {@link test}. */
export const it = test;

/** Puts a name before those of the tests that the function declares. */
export function describe(name: string, declare: () => void): void {
  const outer = group;
  group += name + " ";
  try {
    declare();
  } finally {
    group = outer;
  }
}

/**
 * Answers to the questions of a run, one for each: a list, or a function that is given the question. It is undefined if
 * the run waits without having asked.
 */
export type Answers = readonly Event<string, any>[] | ((question: any) => Event<string, any> | Promise<Event<string, any>>);

/** A session of the project's workflow, on the server that 'weft test' has started. */
export interface Session {
  /**
   * Runs the workflow with the fields of a start event, and gives the run's result. If the run fails, the error has its code.
   *
   *     await session().run({ name: "Ada" }, { answers: [Approval({ response: "yes" })] });
   *     await session().run({}, { answers: (question) => Guess({ n: question.least }) });
   */
  run<R = any>(start?: object, options?: { answers?: Answers }): Promise<R>;
}

/** Makes a new session. */
export function session(): Session {
  const ctx = context;
  if (!ctx) throw new TypeError("session() works only within a test that 'weft test' runs");
  const id = `${ctx.runInfo.runId}-${++sessions}`;
  const ask = (what: { start?: object; answer?: unknown }) => ctx.wait(Reply, { ask: Request({ session: id, ...what }) });
  return {
    async run(start = {}, { answers = [] } = {}) {
      const error = new WeftError("", { code: "invalid_message" }); // here, where the stack still has the test
      const fail = (message: string, code = error.code) => Object.assign(error, { message, code });
      let reply = await ask({ start: isEvent(start) ? wire(start)[1] : start });
      for (let n = 0; !reply.ended; n++) {
        const question = reply.question ? fromWire(reply.question) : undefined;
        const answer = typeof answers === "function" ? await answers(question) : answers[n];
        if (answer === undefined) {
          throw fail(`the run ${question ? `asks ${reply.question[0]} ${shown(question)}` : "waits for an event"}, and has no answer: run(start, { answers: [...] })`);
        }
        if (!isEvent(answer)) throw fail(`an answer is an event, made by its type: have ${shown(answer)}`);
        reply = await ask({ answer: wire(answer) });
      }
      if (reply.code !== undefined) throw fail(reply.message ?? "", reply.code);
      return reply.result;
    },
  };
}

/** What {@link expect} says of a value. A check that does not hold throws. */
export interface Expectation<R = void> {
  /** The same value, as Object.is compares. */
  toBe(want: unknown): R;
  /** An equal value: the same fields, items and bytes. Fields that are undefined count as absent. */
  toEqual(want: unknown): R;
  /** An object that has these fields, and perhaps others. */
  toMatchObject(want: object): R;
  toBeTruthy(): R;
  toBeFalsy(): R;
  toBeNull(): R;
  toBeUndefined(): R;
  toBeDefined(): R;
  toBeInstanceOf(type: Function): R;
  toBeGreaterThan(want: number | bigint): R;
  toBeGreaterThanOrEqual(want: number | bigint): R;
  toBeLessThan(want: number | bigint): R;
  toBeLessThanOrEqual(want: number | bigint): R;
  /** A number that differs by less than half of the last of these digits after the point. Default: 2. */
  toBeCloseTo(want: number, digits?: number): R;
  /** A text that has this part, or a list that has this item. */
  toContain(want: unknown): R;
  toHaveLength(want: number): R;
  toMatch(want: RegExp | string): R;
  /** A function that throws an error: any, one whose message has this part, or one of this class. */
  toThrow(want?: string | RegExp | Function): R;
}

/** Says what is expected of a value. */
export interface Expect extends Expectation {
  /** The opposite of each check. */
  readonly not: Expectation;
  /** Checks what the promise gives. */
  readonly resolves: Expectation<Promise<void>> & { readonly not: Expectation<Promise<void>> };
  /** Checks the error with which the promise is rejected; toThrow checks its message or class. */
  readonly rejects: Expectation<Promise<void>> & { readonly not: Expectation<Promise<void>> };
}

type Check = (have: any, ...want: any[]) => boolean;

const checks: { [name: string]: Check } = {
  toBe: (have, want) => Object.is(have, want),
  toEqual: (have, want) => equal(have, want, true),
  toMatchObject: (have, want) => equal(have, want, false),
  toBeTruthy: (have) => Boolean(have),
  toBeFalsy: (have) => !have,
  toBeNull: (have) => have === null,
  toBeUndefined: (have) => have === undefined,
  toBeDefined: (have) => have !== undefined,
  toBeInstanceOf: (have, type) => have instanceof type,
  toBeGreaterThan: (have, want) => have > want,
  toBeGreaterThanOrEqual: (have, want) => have >= want,
  toBeLessThan: (have, want) => have < want,
  toBeLessThanOrEqual: (have, want) => have <= want,
  toBeCloseTo: (have, want, digits = 2) => have === want || Math.abs(have - want) < 10 ** -digits / 2,
  toContain: (have, want) => (typeof have === "string" ? have.includes(want) : [...have].includes(want)),
  toHaveLength: (have, want) => have.length === want,
  toMatch: (have, want) => (typeof want === "string" ? have.includes(want) : want.test(have)),
  toThrow: (have, want) => {
    if (typeof have !== "function") throw new TypeError("toThrow needs a function: expect(() => call()).toThrow()");
    try {
      have();
    } catch (e) {
      return fits(e, want);
    }
    return false;
  },
};

/** fits reports whether a thrown value is what toThrow wants. */
function fits(e: any, want?: string | RegExp | Function): boolean {
  if (want === undefined) return true;
  if (typeof want === "function") return e instanceof want;
  const message = String(e?.message ?? e);
  return typeof want === "string" ? message.includes(want) : want.test(message);
}

/** equal compares values. Unless whole, objects of have may have more fields than those of want. */
function equal(have: any, want: any, whole: boolean): boolean {
  if (Object.is(have, want)) return true;
  if (typeof have !== "object" || typeof want !== "object" || have === null || want === null) return false;
  if (have instanceof Date || want instanceof Date) return have instanceof Date && want instanceof Date && Number(have) === Number(want);
  if (have instanceof Map || want instanceof Map || have instanceof Set || want instanceof Set) {
    return have.constructor === want.constructor && have.size === want.size && equal([...have], [...want], true);
  }
  if (Array.isArray(have) !== Array.isArray(want) || ArrayBuffer.isView(have) !== ArrayBuffer.isView(want)) return false;
  if ((Array.isArray(have) || ArrayBuffer.isView(have)) && (have as any).length !== want.length) return false;
  const keys = new Set([...Object.keys(want), ...(whole ? Object.keys(have) : [])]);
  for (const k of keys) if (!equal(have[k], want[k], whole)) return false;
  return true;
}

function shown(v: any): string {
  if (typeof v === "string") return JSON.stringify(v);
  if (typeof v === "function") return v.name || "a function";
  if (v instanceof Error) return `${v.name}: ${v.message}`;
  if (v instanceof Map || v instanceof Set || v instanceof Uint8Array) return `${v.constructor.name} ${shown([...v])}`;
  if (typeof v !== "object" || v === null || v instanceof RegExp) return typeof v === "bigint" ? v + "n" : Object.is(v, -0) ? "-0" : String(v);
  try {
    return JSON.stringify(v, (_, x) => (typeof x === "bigint" ? x + "n" : x));
  } catch {
    return Object.prototype.toString.call(v);
  }
}

/** A check that does not hold. */
class ExpectationError extends Error {
  override get name(): string { return "Expected"; }
}

/** fault says what is wrong with a value; "" if nothing is. */
const fault = (name: string, not: boolean, have: any, want: unknown[], check: Check = checks[name]!) =>
  check(have, ...want) === not ? `${not ? "not." : ""}${name}(${want.map(shown).join(", ")}), have ${shown(have)}` : "";

const each = (make: (name: string) => unknown): any => Object.fromEntries(Object.keys(checks).map((name) => [name, make(name)]));

/** Says what is expected of a value: `expect(sum(1, 2)).toBe(3)`. */
export function expect(have: unknown): Expect {
  const settled = (rejected: boolean, not: boolean) => each((name) => async (...want: unknown[]) => {
    const error = new ExpectationError(""); // here, where the stack still has the test
    let value: unknown, threw = false;
    try {
      value = await have;
    } catch (e) {
      value = e;
      threw = true;
    }
    error.message = threw !== rejected ? (threw ? `a value, but the promise is rejected with ${shown(value)}` : `a rejected promise, have ${shown(value)}`)
      : fault(name, not, value, want, name === "toThrow" && rejected ? fits : undefined);
    if (error.message) throw error;
  });
  const now = (not: boolean) => each((name) => (...want: unknown[]) => {
    const message = fault(name, not, have, want);
    if (message) throw new ExpectationError(message);
  });
  return {
    ...now(false), not: now(true),
    resolves: { ...settled(false, false), not: settled(false, true) },
    rejects: { ...settled(true, false), not: settled(true, true) },
  };
}

/** @internal Defines the workflow that 'weft test' runs: it lists the tests, or runs the test with a number. */
export function serve(name: string): void {
  forget();
  const Start = startEvent("TestStartEvent", { test: t.integer().default(-1) });
  workflow(name, { timeout: 0 }, [
    step("test", Start, Stop, async (ctx, ev) => {
      if (ev.test < 0) return result(tests.map((one) => one.name));
      context = ctx;
      try {
        await tests[ev.test]!.run();
        return result("");
      } catch (e) {
        const { message } = engine.describeError(e);
        const at = e instanceof WeftError && /([^\s(]+:\d+:\d+)\)?$/.exec(engine.frames(e)[0] ?? ""); // of others, the message has the place
        return result(at ? `${message} (${at[1]})` : message);
      }
    }, { waits: [Reply], streams: [Request] }),
  ]);
}
