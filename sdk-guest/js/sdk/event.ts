import { engine, type Value, type Wire } from "./engine";
import { misuse } from "./errors";
import { extended, schemaOf, t, writer, type Fields, type InOf, type OutOf, type Schema } from "./schema";

/** The key under which an event has its type. It cannot be seen by code that lists keys. */
export const typeOf: unique symbol = Symbol("weft.type");

/** The key under which an event has what writes its fields, if that is needed. */
const writeOf: unique symbol = Symbol("weft.write");

/** The key under which an event has what completes its fields. */
const finishOf: unique symbol = Symbol("weft.finish");

/** An event of the type named N, with the fields F. */
export type Event<N extends string = string, F = {}> = F & { readonly [typeOf]: N };

/** A type of events. Call it to make an event: `Ask({ prefix: "?" })`. */
export interface EventType<N extends string = string, O = any, I = any> {
  (...fields: {} extends I ? [fields?: I] : [fields: I]): Event<N, O>;
  /** The name of the type. */
  readonly type: N;
  /** Reports whether a value is an event of this type, or of a type that extends it. */
  is(value: unknown): value is Event<N, O>;
  /** @internal */
  readonly decl: Declaration;
}

/** @internal */
export interface Declaration {
  schema: Schema<any, any>;
  kind?: string;
  extends?: EventType<any, any, any>;
  base?: string;
  doc?: string;
  known?: boolean; // every host knows the type
  proto: object;
  finish: (fields: any) => any;
}

/** Settings of an event type. */
export interface EventOptions<X = EventType<any, any, any> | undefined> {
  /** Describes the type for people. */
  doc?: string;
  /** The type that this type extends: it has all fields of that type, then its own. */
  extends?: X;
}

type Base = EventType<any, any, any> | undefined;
/** The fields of the type that a type extends, as steps read them and as they give them. */
type BaseOut<X> = X extends EventType<any, any, any> ? Omit<ReturnType<X>, typeof typeOf> : {};
type BaseIn<X> = X extends EventType<any, any, any> ? NonNullable<Parameters<X>[0]> : {};

const bases: { [kind: string]: string } = {
  start: "StartEvent", stop: "StopEvent", input_required: "InputRequiredEvent", human_response: "HumanResponseEvent",
};

function declare(type: string, fields: any, options: EventOptions, kind?: string, methods: PropertyDescriptorMap = {}): any {
  if (typeof type !== "string" || type === "") throw misuse("an event type needs a name, a text");
  let schema = schemaOf(fields ?? {});
  const parent = options.extends;
  if (parent) {
    schema = extended(parent.decl.schema, schema);
    kind ??= parent.decl.kind;
  }
  const base = parent ? parent.type : kind && bases[kind] !== type ? bases[kind] : undefined;
  const { read } = schema.how;
  const finish = (ev: any) => {
    const done = read ? read(ev) : ev;
    return done === ev ? ev : { __proto__: proto, ...done }; // a library's schema gives a new object
  };
  const proto: object = Object.create(Object.prototype, { [typeOf]: { value: type }, [writeOf]: { value: writer(schema.json) }, [finishOf]: { value: finish }, ...methods });
  const make: any = (fields?: any) => finish({ __proto__: proto, ...fields }); // a field __proto__ stays a field
  make.is = (value: any) => {
    for (let d = value?.[typeOf] && events.get(value[typeOf]); d; d = d.decl.extends) if (d.type === type) return true;
    return false;
  };
  Object.defineProperty(make, "type", { value: type });
  make.decl = { schema, proto, finish, ...(kind && { kind }), ...(base && { base }), ...(parent && { extends: parent }), ...(options.doc && { doc: options.doc }) };
  if (!events.has(type)) {
    events.set(type, make);
    if (engine) engine.protos[type] = proto;
  }
  return make;
}

/** The event types by name; the first of a name stays. */
export const events = new Map<string, EventType<any, any, any>>();

/** Declares an event type that steps give to each other. */
export const event = <const N extends string, const F extends Fields = {}, X extends Base = undefined>(
  type: N, fields?: F, options: EventOptions<X> = {},
): EventType<N, OutOf<F> & BaseOut<X>, InOf<F> & BaseIn<X>> => declare(type, fields, options);

/** Declares the event that starts the workflow. A name other than StartEvent extends StartEvent. */
export const startEvent = <const N extends string, const F extends Fields = {}, X extends Base = undefined>(
  type: N, fields?: F, options: EventOptions<X> = {},
): EventType<N, OutOf<F> & BaseOut<X>, InOf<F> & BaseIn<X>> => declare(type, fields, options, "start");

/** Declares a stop event with fields of its own. Most workflows use {@link Stop}. */
export const stopEvent = <const N extends string, const F extends Fields = {}, X extends Base = undefined>(
  type: N, fields?: F, options: EventOptions<X> = {},
): EventType<N, OutOf<F> & BaseOut<X>, InOf<F> & BaseIn<X>> => declare(type, fields, options, "stop");

/** Declares an event that asks a person. The base type is named InputRequiredEvent. */
export const inputRequired = <const N extends string, const F extends Fields = {}, X extends Base = undefined>(
  type: N, fields?: F, options: EventOptions<X> = {},
): EventType<N, OutOf<F> & BaseOut<X>, InOf<F> & BaseIn<X>> => declare(type, fields, options, "input_required");

/** Declares an event with a person's answer. The base type is named HumanResponseEvent. */
export const humanResponse = <const N extends string, const F extends Fields = {}, X extends Base = undefined>(
  type: N, fields?: F, options: EventOptions<X> = {},
): EventType<N, OutOf<F> & BaseOut<X>, InOf<F> & BaseIn<X>> => declare(type, fields, options, "human_response");

function known<E extends EventType<any, any, any>>(type: E): E {
  type.decl.known = true;
  return type;
}

/** The event that ends the run. Its result becomes the run's result. */
export const Stop: EventType<"StopEvent", { result?: any }, { result?: any }> = known(stopEvent("StopEvent", { result: t.any().optional() }) as any);

/** Returns a stop event with the given result. */
export const result = (value: Value | object): Event<"StopEvent", { result?: any }> => ({ __proto__: stops, result: value ?? null }) as any;

const stops = Stop.decl.proto;

/** The event that a step with `catches` receives when another step has failed finally. */
export const StepFailed = known(event("StepFailedEvent", {
  step_name: t.string(),
  exception: t.object({ exception_type: t.string(), exception_message: t.string() }),
  attempts: t.integer(),
  elapsed_seconds: t.number(),
  input_event: t.any().optional(),
}));

const output = { step_name: t.string().optional(), content: t.any(), success: t.boolean().optional(), error: t.string().optional(), stop: t.boolean().optional(), steps: t.array(t.any()).optional() };

/** What a function returns to its flow; see {@link content} and {@link stopWith}. */
export const StepOutput = event("StepOutput", output);

const asText = (value: unknown) => (typeof value === "string" ? value : "");

/** What a flow passes to a function. `text` is the input and `previousText` the content of the previous node, "" if it is not text. */
export const StepInput: EventType<"StepInput", {
  input?: any; previous_step_content?: any; previous_step_outputs?: { [name: string]: any }; additional_data?: { [key: string]: any };
  step_choices?: string[]; current_iteration?: number; max_iterations?: number; readonly text: string; readonly previousText: string;
}, any> = declare("StepInput", {
  input: t.any().optional(),
  previous_step_content: t.any().optional(),
  previous_step_outputs: t.record(t.object(output)).optional(),
  additional_data: t.record(t.any()).optional(),
  step_choices: t.array(t.string()).optional(),
  current_iteration: t.integer().optional(),
  max_iterations: t.integer().optional(),
}, {}, undefined, {
  text: { get(this: any) { return asText(this.input); } },
  previousText: { get(this: any) { return asText(this.previous_step_content); } },
});

/** Returns an output of a function with the given content. */
export const content = (value: any): Event<"StepOutput", any> => StepOutput({ content: value });

/** Returns an output that ends the flow with the given content. */
export const stopWith = (value: any): Event<"StepOutput", any> => StepOutput({ content: value, stop: true });

/** wire gives an event as the host takes it. */
export function wire(ev: any): Wire {
  const write = ev[writeOf];
  return [ev[typeOf], write ? write(ev) : ev];
}

/** fromWire makes the event that the host gave. */
export function fromWire(ev: Wire, accepted?: EventType<any, any, any>): any {
  const finish = (ev[1] as any)[finishOf]; // the engine makes the event of a step that takes a single one
  if (finish !== undefined && finish === accepted?.decl.finish) return finish(ev[1]);
  const type = ev[0], et = accepted?.type === type ? accepted : events.get(type) ?? accepted; // comparing is cheaper than looking up
  return et ? (et as any)(ev[1]) : ev[1];
}

/** eventType gives the type of an event; undefined for what is not an event. */
export function eventType(value: any): string | undefined {
  const type = typeof value === "object" ? value?.[typeOf] : undefined;
  return typeof type === "string" ? type : undefined;
}

/** isEvent reports whether a value is an event. */
export const isEvent = (value: any): value is Event => eventType(value) !== undefined;
