import { enter, type Context, type StepPlan } from "./context";
import { nanoseconds, type Duration } from "./duration";
import { engine } from "./engine";
import { misuse, quote, WeftError } from "./errors";
import { eventType, fromWire, StepInput, StepOutput, wire, type Event, type EventType } from "./event";
import { group, retryManifest, Rule, type Retry } from "./retry";
import { schemaOf, Schema, warm, writer, type Fields, type InOf, type OutOf } from "./schema";

type Type = EventType<any, any, any>;

/** One of several event types; see {@link anyOf}. */
export class AnyOf<L extends readonly Emitted[] = readonly any[]> {
  /** @internal Types only: without it an All is an AnyOf. */
  declare readonly _any: true;
  /** @internal */
  constructor(readonly types: L) {}
}

/** One event of each type; see {@link all}. */
export class All<L extends readonly Type[] = readonly any[]> {
  /** @internal Types only. */
  declare readonly _all: true;
  /** @internal */
  constructor(readonly types: L) {}
}

type Emitted = Type | readonly [Type];

/** What a step takes: a type, [type] for a list, anyOf(...), [anyOf(...)] or all(...). */
export type Accepts = Type | readonly [Type | AnyOf<readonly Type[]>] | AnyOf<readonly Type[]> | All;
/** What a step gives: a type, [type] for a list, anyOf(...) of these, or nothing. */
export type Emits = Emitted | AnyOf | typeof nothing;

/** The emits of a step that gives no event. */
export const nothing: unique symbol = Symbol("weft.nothing");

type Of<T> = T extends EventType<infer N, infer O, any> ? Event<N, O> : never;
/** The argument of a step. */
export type Taken<A> = A extends AnyOf<infer L> ? Of<L[number]>
  : A extends All<infer L> ? { -readonly [K in keyof L]: Of<L[K]> }
  : A extends readonly [infer T] ? Taken<T>[]
  : Of<A>;
type Each<T> = T extends readonly [infer E] ? Of<E>[] : Of<T>;
/** The result of a step. */
export type Given<E> = E extends typeof nothing ? void | null : null | (E extends AnyOf<infer L> ? Each<L[number]> : Each<E>);

/** Declares that a step takes, or gives, one of several event types; or joins rules of a retry policy of which one must apply. */
export function anyOf<const L extends readonly Emitted[]>(...types: L): AnyOf<L>;
export function anyOf<P extends "when" | "stop">(...rules: Rule<P>[]): Rule<P>;
export function anyOf(...list: any[]): any {
  return list[0] instanceof Rule ? group("any", list) : new AnyOf(list);
}

/** Declares that a step takes one event of each type, as a list in this order. */
export const all = <const L extends readonly Type[]>(...types: L): All<L> => new All(types);

/** Settings of a step. */
export interface StepOptions {
  /** How many invocations of the step run concurrently in a run: 1 to 1000, default 4. */
  workers?: number;
  /** Limits one invocation. */
  timeout?: Duration;
  retry?: Retry;
  /** Receives, as StepFailed, the failures of these steps; "*" for all. "cancelled" and "timeout" make it a cleanup step. */
  catches?: string[] | "*";
  /** How often the step catches failures that follow from one event; default 1. */
  maxRecoveries?: number;
  /** The events that the step waits for. */
  waits?: Type[];
  /** The events that the step writes to the run's stream, also by asking. */
  streams?: Type[];
  /** Makes the step's effects visible together when it succeeds, or not at all. */
  atomic?: boolean;
  /** Accepts events that extend those which the step takes. */
  acceptSubtypes?: boolean;
  /** Runs a step that takes a list at this number of arrivals. */
  take?: number;
  /** Describes the step for people. */
  doc?: string;
}

/** A step of a workflow, whose state has the type S. */
export interface Step<S = any> {
  readonly name: string;
  /** @internal */
  readonly declared: Declared;
  /** @internal Types only. */
  readonly _state?: (state: S) => S;
}

interface Declared extends StepPlan {
  accepts: Type[];
  mode: "one" | "any" | "list" | "listAny" | "join";
  none: boolean;
  emitLists: Type[];
  options: StepOptions;
  part: boolean;
  run: (ctx: any, ev: any) => unknown;
}

/** Declares a step: a function that takes an event and gives the next. */
export function step<const A extends Accepts, const E extends Emits, S = any>(
  name: string, accepts: A, emits: E,
  run: (ctx: Context<S>, ev: Taken<A>) => Given<E> | Promise<Given<E>>,
  options: StepOptions = {},
): Step<S> {
  const taken: any = Array.isArray(accepts) ? accepts[0] : accepts;
  const many = taken instanceof AnyOf || taken instanceof All;
  const list = Array.isArray(accepts);
  const given: any[] = (emits as any) === nothing ? [] : emits instanceof AnyOf ? [...emits.types] : [emits];
  const declared: Declared = {
    name, run, options, part: false, none: given.length === 0,
    accepts: many ? [...taken.types] : [taken],
    mode: taken instanceof All ? "join" : list ? (many ? "listAny" : "list") : many ? "any" : "one",
    single: !list && !(taken instanceof All),
    emits: given.filter((g) => !Array.isArray(g)),
    emitLists: given.filter((g) => Array.isArray(g)).map((g) => g[0]),
    waits: options.waits ?? [], streams: options.streams ?? [],
  };
  return { name, declared };
}

/** Declares a function that flows call as PLUGIN.NAME. The plugin is then a part, and the flow is the workflow. */
export function func<S = any>(
  name: string, run: (ctx: Context<S>, input: Of<typeof StepInput>) => Event<"StepOutput", any> | Promise<Event<"StepOutput", any>>, options: StepOptions = {},
): Step<S> {
  const s = step(name, StepInput, StepOutput, run as any, options);
  s.declared.part = true;
  return s as Step<any>;
}

/** The declaration of a state; see {@link state}. */
export class State<S> {
  /** @internal */
  constructor(readonly schema: Schema<S, any>, readonly title: string, readonly first?: any) {}
}

/** Declares the session's state: its fields, and optionally the state of a new session. Fields without a default begin empty. */
export const state = <const F extends Fields>(fields: F, options: { title?: string; initial?: InOf<F> } = {}): State<OutOf<F>> =>
  new State(schemaOf(fields), options.title ?? "State", options.initial);

/** An external resource that the operator must grant. */
export interface Resource {
  name: string;
  /** "http", "llm", "kv" or another kind. */
  kind: string;
  doc?: string;
  /** The workflow works without the resource. */
  optional?: boolean;
}

/** Settings of a workflow. */
export interface WorkflowOptions<S> {
  state?: State<S>;
  /** Limits a run with its waits. 0: no limit. Default: the host's, which counts only the time in which a step works. */
  timeout?: Duration;
  doc?: string;
  version?: string;
  /** Declares that the module holds steps of a workflow composed of several plugins. */
  part?: boolean;
  resources?: Resource[];
}

/** The declaration of a workflow. */
export interface Workflow { readonly name: string }

let defined: string | undefined;
let running: Declared; // the step of this invocation

/** forget lets the tests of a project replace its workflow. */
export function forget(): void { defined = undefined; }

/** Declares the module's workflow. Call it once, at the top level: `export default workflow(...)`. */
export function workflow<S = any>(name: string, options: WorkflowOptions<S>, steps: NoInfer<Step<S>>[]): Workflow {
  if (defined !== undefined) {
    throw misuse(`workflow ${quote(name)}: a module holds one workflow, and ${quote(defined)} is there already`);
  }
  defined = name;
  const byName = new Map<string, Declared>();
  const types = new Map<string, Type>();
  const faults: string[] = [], write = options.state && writer(options.state.schema.json);
  for (const { declared: s } of steps as Step<any>[]) {
    if (byName.has(s.name)) faults.push(`step ${quote(s.name)} is there twice: name one of them differently`);
    byName.set(s.name, s);
    if (options.state) {
      s.state = options.state.schema;
      s.write = write;
    }
    for (const fault of faultsOf(s)) faults.push(`step ${quote(s.name)}: ${fault}`);
    for (const et of [...s.accepts, ...s.emits, ...s.emitLists, ...s.streams, ...s.waits]) {
      if (typeof et?.decl !== "object") continue;
      const same = types.get(et.type);
      if (same && same !== et) faults.push(`two event types are named ${et.type}: rename one of them`);
      types.set(et.type, et);
    }
  }
  if (steps.length === 0) faults.push("it has no steps");
  if (faults.length > 0) throw misuse(`workflow ${quote(name)}: ${faults.length === 1 ? faults[0] : faults.length + " faults:\n- " + [...new Set(faults)].join("\n- ")}`);
  if (engine) {
    engine.describe = () => manifest(name, options, [...byName.values()], types);
    const plans: { [step: string]: Declared } = Object.assign(Object.create(null), Object.fromEntries(byName));
    engine.warm = () => {
      Array.isArray(steps); // which the engine makes at first use, as all of its functions
      for (const et of types.values()) warm(et.decl.schema);
      if (options.state) warm(options.state.schema);
    };
    engine.step = (input) => {
      const s = plans[input[0]];
      if (!s) throw misuse(`the workflow ${quote(name)} has no step ${quote(input[0])}`);
      running = s;
      return s.run(enter(s), s.mode === "one" ? fromWire(input[1], s.accepts[0]) : take(s, input[1]));
    };
    engine.give = (given) => give(running, given);
  }
  return { name };
}

if (engine) {
  engine.describe = () => {
    throw new WeftError("the script defines no workflow: call workflow(name, options, steps) at its top level", { code: "invalid_message" });
  };
}

/** faultsOf lists what is wrong with a step's declaration. */
function faultsOf(s: Declared): string[] {
  const faults: string[] = [];
  const lists: [string, any[]][] = [["accepts", s.accepts], ["emits", [...s.emits, ...s.emitLists]], ["waits", s.waits], ["streams", s.streams]];
  for (const [what, list] of lists) {
    if (list.some((et) => typeof et?.decl !== "object")) faults.push(`its ${what} has something that is not an event type: use event(...), startEvent(...), Stop`);
  }
  if (typeof s.run !== "function") faults.push("its function is missing");
  const { workers, take, maxRecoveries } = s.options;
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 1 && workers <= 1000)) faults.push("workers must be 1 to 1000");
  if (take !== undefined && !(Number.isInteger(take) && take >= 1)) faults.push("take must be at least 1");
  if (take !== undefined && s.mode !== "list" && s.mode !== "listAny") faults.push("take needs a step that takes a list: [Type]");
  if (maxRecoveries !== undefined && !(Number.isInteger(maxRecoveries) && maxRecoveries >= 0)) faults.push("maxRecoveries must be 0 or more");
  if (s.mode === "join" && s.accepts.length < 2) faults.push("a join needs two types or more");
  if (s.options.atomic && s.waits.length > 0) faults.push("an atomic step cannot wait: drop atomic, or let another step wait");
  return faults;
}

/** take makes the step's argument of the events that the host gave. */
function take(s: Declared, trigger: any): any {
  if (s.single) return fromWire(trigger, s.accepts[0]);
  return trigger.map((ev: any, i: number) => fromWire(ev, s.accepts[s.mode === "join" ? i : 0]));
}

/** give makes the output of what the step returned. */
function give(s: Declared, given: any): any {
  if (given === null || given === undefined) {
    if (given === undefined && !s.none) {
      throw misuse(`step ${quote(s.name)} returns undefined: return an event, or null if it gives none`);
    }
    return null;
  }
  return Array.isArray(given) ? given.map((ev) => one(s, ev, s.emitLists, true)) : one(s, given, s.emits, false);
}

function one(s: Declared, ev: any, types: Type[], list: boolean): any {
  const type = eventType(ev);
  if (type === undefined) {
    throw misuse(`step ${quote(s.name)} returns ${show(ev)}, not an event: make events by their types, such as Ask({ ... }), and results by result(value)`);
  }
  for (let i = 0; i < types.length; i++) if (types[i]!.type === type) return wire(ev);
  throw misuse(`step ${quote(s.name)} returns ${list ? `[${type}]` : type}, which is not declared: add it to the step's emits`);
}

const show = (v: unknown) => (v === null ? "null" : Array.isArray(v) ? "a list" : typeof v === "object" ? "a plain object" : "a " + typeof v);
const names = (types: Type[]) => types.map((et) => et.type);

function manifest(name: string, options: WorkflowOptions<any>, steps: Declared[], types: Map<string, Type>): object {
  const events: { [type: string]: object } = {};
  for (const [type, { decl }] of types) if (!decl.known) events[type] = eventManifest(type, decl);
  const { state, timeout, doc, version, resources } = options;
  return {
    abi: 1, workflow: name, steps: steps.map(stepManifest), events,
    version, description: doc, part: options.part || steps.some((s) => s.part) || undefined,
    resources: resources?.map((r) => ({ name: r.name, kind: r.kind, description: r.doc, optional: r.optional || undefined })),
    timeout: timeout === undefined ? undefined : nanoseconds(timeout),
    state: state && { schema: { ...state.schema.json, title: state.title }, default: state.schema.wire(state.first ?? state.schema.initial()) },
  };
}

function eventManifest(type: string, decl: Type["decl"]): object {
  return { schema: { ...decl.schema.json, title: type }, kind: decl.kind, extends: decl.base, description: decl.doc };
}

function stepManifest(s: Declared): object {
  const { options: o } = s;
  const emits: any[] = names(s.emits);
  if (s.emitLists.length > 0) emits.push(["list", names(s.emitLists)]);
  const accepts = s.mode === "any" ? [["any", names(s.accepts)]]
    : s.mode === "list" || s.mode === "listAny" ? [["list", names(s.accepts), ...(o.take === undefined ? [] : [o.take])]]
    : names(s.accepts);
  const catches = o.catches === "*" || (o.catches && o.catches.length > 0) ? o.catches : undefined;
  return {
    name: s.name, accepts, emits: emits.length > 0 ? emits : undefined,
    waits: s.waits.length > 0 ? names(s.waits) : undefined,
    catches, max_recoveries: o.maxRecoveries, workers: o.workers,
    timeout: o.timeout === undefined ? undefined : nanoseconds(o.timeout),
    retry: o.retry && retryManifest(o.retry),
    atomic: o.atomic || undefined, accept_subtypes: o.acceptSubtypes || undefined, description: o.doc,
  };
}
