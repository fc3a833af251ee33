import { nanoseconds, type Duration } from "./duration";
import { engine, float, type Value, type Wire } from "./engine";
import { misuse, quote, WeftError } from "./errors";
import { fromWire, isEvent, typeOf, wire, type Event, type EventType } from "./event";
import { callResource, HTTP, KV, LLM } from "./resource";
import { schemaAt, writer, type Schema, type Write } from "./schema";

/** The run, the session and the attempt that a step works for. */
export interface RunInfo {
  tenant: string;
  workflow: string;
  runId: string;
  sessionId: string;
  /** Unique in the run; the same for all attempts. */
  invocation: number;
  /** 1 for the first. */
  attempt: number;
  /** When the attempt started. */
  started: Date;
  /** The error of the previous attempt. */
  lastError?: WeftError;
}

/** Settings of a wait. */
export interface WaitOptions {
  /** Names the wait, for people and for the step's next attempt: 1 to 128 bytes. */
  id?: string;
  /** An event for the run's stream, published once when the wait begins. */
  ask?: Event;
  /** Accepts only events whose fields have these values. */
  where?: { [field: string]: Value };
  /** Ends the wait with an error of the code "timeout". Default: no limit. */
  timeout?: Duration;
  /** Accepts an event without taking it from other waits. */
  broadcast?: boolean;
}

/** Settings of a child run. */
export interface RunOptions {
  /** Names the child: an attempt that follows finds its result by the name. */
  id?: string;
  /** Makes the child use this session's state. Default: a session of its own. */
  sameSession?: boolean;
  /** Makes the child use the state of the session with this id. */
  session?: string;
  /** Copies the child's stream to this run's stream. */
  stream?: boolean;
}

/** What a context knows of its step. */
export interface StepPlan {
  name: string;
  emits: EventType<any, any, any>[];
  waits: EventType<any, any, any>[];
  streams: EventType<any, any, any>[];
  single: boolean;
  state?: Schema<any, any>;
  /** Writes the whole state, if its schema declares numbers. */
  write?: Write | undefined;
}

type Edit = [op: string, path?: string, value?: unknown];
type Taken<L> = { -readonly [K in keyof L]: L[K] extends EventType<infer N, infer O, any> ? Event<N, O> : never };

const dateOf = (ns: number | bigint) => new Date(Number(BigInt(ns) / 1000000n));
const hasId = (id: string) => id !== "" && id.length <= 128;

let plan: StepPlan; // of the step of this invocation

/** enter begins an invocation: an instance runs one step and no more. */
export function enter(step: StepPlan): Context {
  plan = step;
  return context;
}

/** edit1 makes an edit and gives its result. */
const edit1 = (edit: Edit): any => engine.state_edit([written(edit)], edit[0], edit[1])[0];
const edit0 = (edit: Edit): void => { edit1(edit); };

/** written gives an edit with floats where the state's schema declares numbers. */
function written(edit: Edit): Edit {
  const { write, state } = plan;
  if (!write || edit.length < 3) return edit;
  const schema = schemaAt(state!.json, edit[1]!), own = edit[0] === "append" ? schema.items && writer(schema.items) : writer(schema);
  return own ? [edit[0], edit[1]!, own(edit[2])] : edit;
}

function readState(state: any): any {
  const read = plan.state?.how.read;
  return read ? read(state) : state;
}

function get(path: string, fallback?: unknown): any {
  const v = engine.state_get(fallback === undefined ? [path] : [path, fallback], "get", path, "get(path, fallback) gives a default");
  return path === "" ? readState(v) : v;
}

/** region lets change modify the value at a path: the whole state, completed by its schema, if the path is "". */
function region(path: string, change: (value: any) => any): any {
  const value = engine.state_begin([path], "edit", path, "set the path before it is edited, or declare a default");
  let given: any;
  try {
    if (path !== "" && (value === null || typeof value !== "object")) throw misuse(`edit ${quote(path)}: the value is not an object or a list: use set or increment`);
    given = change(path === "" ? readState(value) : value);
    if (typeof given?.then === "function") {
      given.then(undefined, () => {});
      throw misuse("edit " + quote(path) + ": the function is asynchronous: let it return at once, and call the host before or after the edit");
    }
    const write = plan.write && (path === "" ? plan.write : writer(schemaAt(plan.state!.json, path)));
    engine.state_commit([write ? write(value) : value], "edit", path);
  } catch (e) {
    try { engine.state_abort([]); } catch { /* the edit has ended */ }
    throw e;
  }
  return given;
}

/**
 * A step's access to its run. S is the type of the session's state. Paths are dotted:
 * "a.b.0" is the first item of the list b in the map a, "-1" the last item of a list, "" the
 * whole state. Host calls run one after the other, also in Promise.all.
 */
export class Context<S = any> {
  /** The run, the session and the attempt. */
  get runInfo(): RunInfo {
    const [tenant, workflow, runId, sessionId, invocation, attempt, clock] = engine.input()[2];
    const lastError = this.lastError;
    return { tenant, workflow, runId, sessionId, invocation, attempt, started: dateOf(clock), ...(lastError && { lastError }) };
  }

  /** The number of the attempt: 1 for the first. */
  get attempt(): number { return engine.input()[2][5]; }

  /** The error of the previous attempt; undefined in the first. */
  get lastError(): WeftError | undefined {
    const e = engine.input()[2][7];
    return e && new WeftError(e.message, e);
  }

  /** Returns the step's configuration. A schema completes it with defaults. */
  config(): { [key: string]: any };
  config<T>(schema: Schema<T, any>): T;
  config(schema?: Schema<any, any>): any {
    const config = { ...engine.input()[3] };
    return schema?.how.read ? schema.how.read(config) : config;
  }

  // ---- state

  /** Returns the whole state. */
  state(): Promise<S> { return engine.settle(get, ""); }

  /** Returns the value at a path, or the fallback if there is none. Without a fallback, the code is "not_found". */
  get<T = any>(path: string, fallback?: T): Promise<T> { return engine.settle(get, path, fallback); }

  /** Sets the value at a path, and makes missing maps on the path. */
  set(path: string, value: unknown): Promise<void> { return engine.settle(edit0, ["set", path, value]); }
  /** Removes the value at a path and reports whether there was one. */
  delete(path: string): Promise<boolean> { return engine.settle(edit1, ["delete", path]); }
  /** Adds a value to the list at a path and returns the new length. */
  append(path: string, value: unknown): Promise<number> { return engine.settle(edit1, ["append", path, value]); }
  /** Adds to the number at a path and returns the new value. A missing value counts as 0. */
  increment(path: string, by = 1): Promise<number> { return engine.settle(edit1, ["increment", path, by]); }
  /** Adds to the number at a path as a float, also if by is whole. */
  incrementFloat(path: string, by: number): Promise<number> { return engine.settle(edit1, ["increment", path, float(by)]); }
  /** Merges entries into the map at a path, recursively. */
  merge(path: string, entries: object): Promise<void> { return engine.settle(edit0, ["merge", path, entries]); }
  /** Fails with the code "conflict" unless the value at the path equals value. */
  test(path: string, value: unknown): Promise<void> { return engine.settle(edit0, ["test", path, value]); }
  /** Resets the whole state to its declared defaults. */
  clear(): Promise<void> { return engine.settle(edit0, ["clear"]); }
  /** Starts a list of edits that take effect together or not at all. */
  batch(): Batch { return new Batch(written); }

  /**
   * Lets change modify the whole state, without interference from others, and returns what
   * change returns. If change throws, nothing is written. change is a synchronous function
   * that may only read, log, and ask for the time and for random bytes.
   */
  edit<R>(change: (state: S) => R): Promise<R> { return engine.settle(region, "", change); }

  /** Edits the object or list at a path, as edit does for the whole state. */
  editAt<T extends object = any, R = unknown>(path: string, change: (value: T) => R): Promise<R> { return engine.settle(region, path, change); }

  // ---- events

  /** Emits an event at once, to every step that accepts it, or to one step. */
  async send(ev: Event, step?: string): Promise<void> {
    this.#declared(plan.emits, ev, "send", "emits");
    engine.send_event(step === undefined ? [wire(ev)] : [wire(ev), step], "send");
  }

  /** Writes an event to the run's stream, where clients see it at once. No step receives it. */
  async stream(ev: Event): Promise<void> {
    this.#declared(plan.streams, ev, "stream", "options: { streams: [...] }");
    engine.write_event_to_stream([wire(ev)], "stream");
  }

  #declared(list: EventType<any, any, any>[], ev: any, what: string, where: string): void {
    if (!isEvent(ev)) throw misuse(what + ": pass an event, made by its type: Ask({ ... })");
    const type = ev[typeOf];
    if (!list.some((et) => et.type === type)) throw misuse(`${what}: ${type} is not declared: add it to the step's ${where}`);
  }

  /**
   * Stores the step's event until there is one event for each type, and returns null until
   * then. With the event that completes the set, it returns the events in the order of types.
   */
  async collect<const L extends readonly EventType<any, any, any>[]>(types: L, options: { buffer?: string } = {}): Promise<Taken<L> | null> {
    if (!plan.single) throw misuse("collect: the step takes several events at once already: let it take a single event");
    if (types.length === 0) throw misuse("collect: nothing to collect: name the types");
    const request = [engine.input()[1], types.map((et) => et.type), ...(options.buffer === undefined ? [] : [options.buffer])];
    const got: Wire[] | null = engine.collect_events(request, "collect");
    return got && (got.map((ev, i) => fromWire(ev, types[i])) as any);
  }

  /** Waits for an event, for weeks if need be. The step names the type in its option waits. */
  async wait<N extends string, O>(type: EventType<N, O, any>, options: WaitOptions = {}): Promise<Event<N, O>> {
    if (!plan.waits.some((et) => et.type === type.type)) {
      throw misuse(`wait: ${type.type} is not declared: add it to the step's options: { waits: [...] }`);
    }
    const { id, ask, where, timeout, broadcast } = options;
    if (id !== undefined && !hasId(id)) throw misuse("wait: an id has 1 to 128 bytes");
    if (ask) this.#declared(plan.streams, ask, "wait", "options: { streams: [...] }");
    const ev = engine.wait_for_event({
      type: type.type, waiter_id: id, waiter_event: ask && wire(ask), requirements: where, broadcast: broadcast || undefined,
      timeout: timeout === undefined ? undefined : nanoseconds(timeout),
    }, "wait");
    return fromWire(ev, type);
  }

  /** Waits for a time, which may be long. */
  async sleep(span: Duration): Promise<void> {
    const ns = nanoseconds(span);
    if (ns) engine.sleep([ns], "sleep");
  }

  /**
   * Runs another workflow, or this one, as a child run and returns its result. start is a
   * start event, or the fields of a StartEvent.
   */
  async run<T = any>(workflow: string, start: object = {}, options: RunOptions = {}): Promise<T> {
    const { id, sameSession, session, stream } = options;
    if (id !== undefined && !hasId(id)) throw misuse("run: a child's id has 1 to 128 bytes");
    if (sameSession && session !== undefined) throw misuse("run: a child has one session: give sameSession or session");
    const own = sameSession ? { shared: true } : session === undefined ? undefined : { id: session };
    const [type, fields] = engine.run_workflow({
      workflow, event: isEvent(start) ? wire(start) : ["StartEvent", start], id, session: own, include_stream: stream || undefined,
    }, "run", workflow);
    return type === "StopEvent" ? (fields.result ?? null) : fields;
  }

  // ---- time, chance, resources

  /** Returns the time, which does not advance while a step computes. */
  async now(): Promise<Date> { return dateOf(engine.now([], "now")); }

  /** Returns random bytes, at most 4096. They are the same when the step is replayed. */
  async random(n: number): Promise<Uint8Array> {
    if (!(Number.isInteger(n) && n >= 0 && n <= 4096)) throw misuse("random: ask for 0 to 4096 bytes at a time");
    return engine.random([n], "random");
  }

  /** Calls a resource that the operator has granted. The answer is recorded. */
  async call<T = any>(resource: string, method: string, payload: unknown = null): Promise<T> { return callResource(resource, method, payload); }
  /** Returns a resource of the kind "http". */
  http(name: string): HTTP { return new HTTP(name); }
  /** Returns a resource of the kind "llm". */
  llm(name: string): LLM { return new LLM(name); }
  /** Returns a resource of the kind "kv". */
  kv(name: string): KV { return new KV(name); }

  // ---- log

  /** Writes a log record; the others do the same at other levels. */
  info(message: string, attrs?: object): void { log(0, message, attrs); }
  debug(message: string, attrs?: object): void { log(-4, message, attrs); }
  warn(message: string, attrs?: object): void { log(4, message, attrs); }
  error(message: string, attrs?: object): void { log(8, message, attrs); }
}

const context = new Context();

/** log writes a record. Errors among the attributes are shown as text. */
export function log(level: number, message: string, attrs?: object): void {
  const shown = attrs && Object.fromEntries(Object.entries(attrs).map(([k, v]) => [k, v instanceof Error ? String(v) : v]));
  try {
    engine.log(shown ? [level, String(message), shown] : [level, String(message)]);
  } catch { /* a record that cannot be written does not fail a step */ }
}

/** A list of edits that take effect together or not at all. */
export class Batch {
  readonly #edits: Edit[] = [];

  /** @internal */
  constructor(private readonly written: (edit: Edit) => Edit) {}

  #add(...edit: Edit): this {
    this.#edits.push(this.written(edit));
    return this;
  }

  set(path: string, value: unknown): this { return this.#add("set", path, value); }
  delete(path: string): this { return this.#add("delete", path); }
  append(path: string, value: unknown): this { return this.#add("append", path, value); }
  increment(path: string, by = 1): this { return this.#add("increment", path, by); }
  incrementFloat(path: string, by: number): this { return this.#add("increment", path, float(by)); }
  merge(path: string, entries: object): this { return this.#add("merge", path, entries); }
  /** Fails the whole batch, with the code "conflict", unless the value at the path equals value. */
  test(path: string, value: unknown): this { return this.#add("test", path, value); }
  clear(): this { return this.#add("clear"); }

  /** Makes the edits and returns a result for each. */
  async do(): Promise<any[]> { return this.#edits.length === 0 ? [] : engine.state_edit(this.#edits, "batch"); }
}
