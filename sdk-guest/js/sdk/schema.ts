import { float } from "./engine";
import { WeftError } from "./errors";

/** A JSON Schema of version 2020-12, as data. */
export type JSONSchema = { [keyword: string | symbol]: any };

/**
 * The schema of a field. Out is the type that steps read; In is the type that they give,
 * which may be undefined if the field has a default. Schemas do not change: each method
 * returns a new schema.
 */
export class Schema<Out, In = Out> {
  /** Types only. */
  declare readonly _types: [Out, In];

  /** @internal */
  constructor(readonly json: JSONSchema, readonly how: How = {}) {}

  /** Sets the value of a field that is absent. */
  default(value: NonNullable<Out>): Schema<Out, In | undefined> {
    return new Schema({ ...this.json, default: this.wire(value) }, { ...this.how, fallback: value });
  }

  /** Allows the field to be absent. */
  optional(): Schema<Out | undefined, In | undefined> {
    return new Schema<any, any>(this.json, { ...this.how, optional: true });
  }

  /** Describes the field for people. */
  doc(text: string): Schema<Out, In> {
    return new Schema({ ...this.json, description: text }, this.how);
  }

  /** Sets the least value of a number. */
  min(value: Out & number): Schema<Out, In> {
    return new Schema({ ...this.json, minimum: this.wire(value) }, this.how);
  }

  /** Sets the largest value of a number. */
  max(value: Out & number): Schema<Out, In> {
    return new Schema({ ...this.json, maximum: this.wire(value) }, this.how);
  }

  /** @internal A value with floats where the schema declares numbers. */
  wire(value: any): any {
    const write = writer(this.json);
    return write ? write(value) : value;
  }

  /** @internal The value of a new session's state. */
  initial(): any { return this.how.fallback ?? this.how.zero?.() ?? null; }
}

interface How {
  optional?: boolean;
  fallback?: any;
  zero?: () => any;
  /** Another library reads the values. */
  foreign?: boolean;
  /** Completes and converts a value that was read; absent if there is nothing to do. */
  read?: (value: any) => any;
}

/** What makes floats of the numbers that a JSON Schema declares as "number"; undefined if it declares none. */
export type Write = (value: any) => any;

/** writer gives the function that writes values of a schema. */
export function writer(json: any): Write | undefined {
  if (json.type === "number") return (v) => (typeof v === "number" ? float(v) : v);
  if (json.type === "array") {
    const write = json.items && writer(json.items), first = (json[itemsOf] ?? json.prefixItems ?? []).map(writer);
    if (!write && !first.some(Boolean)) return;
    return (v) => (Array.isArray(v) ? v.map((x, i) => (first[i] ?? write ?? same)(x)) : v);
  }
  if (json.type !== "object") return;
  const known = json.properties ?? {}, fields: [string, Write][] = [];
  for (const name of Object.keys(known)) {
    const write = writer(known[name]);
    if (write) fields.push([name, write]);
  }
  const others = json.additionalProperties && writer(json.additionalProperties);
  if (fields.length === 0 && !others) return;
  return (v) => {
    if (v === null || typeof v !== "object" || typeof v.toJSON === "function") return v;
    const to = { ...v };
    for (const [name, write] of fields) if (Object.hasOwn(to, name)) to[name] = write(to[name]);
    if (others) for (const name of Object.keys(to)) if (!Object.hasOwn(known, name)) to[name] = others(to[name]);
    return to;
  };
}

const same: Write = (v) => v;

/** The key under which the schema of a tuple has those of its items. It does not leave the module. */
const itemsOf = Symbol("weft.items");

/** schemaAt gives the JSON Schema of the place at a path, or one of anything. */
export function schemaAt(json: any, path: string): any {
  if (path === "") return json;
  for (const part of path.split(".")) {
    json = json?.type === "array" ? json.items : Object.hasOwn(json?.properties ?? {}, part) ? json.properties[part] : json?.additionalProperties;
  }
  return typeof json === "object" && json !== null ? json : {};
}

/** The type that steps read, of a schema. */
export type Infer<S> = S extends Schema<infer Out, any> ? Out : S extends Standard<infer Out, any> ? Out : any;
export type InferIn<S> = S extends Schema<any, infer In> ? In : S extends Standard<any, infer In> ? In : any;

export type Shape = { [field: string]: Schema<any, any> };
type Flat<T> = { [K in keyof T]: T[K] };
type MayLack<T, S extends Shape, W extends 0 | 1> = { [K in keyof S]: undefined extends S[K]["_types"][W] ? K : never }[keyof S];
/** The object that a shape describes, as steps read it. */
export type Out<S extends Shape> = Flat<
  { [K in Exclude<keyof S, MayLack<0, S, 0>>]: S[K]["_types"][0] } & { [K in MayLack<0, S, 0>]?: Exclude<S[K]["_types"][0], undefined> }
>;
/** The object that a shape describes, as steps give it. */
export type In<S extends Shape> = Flat<
  { [K in Exclude<keyof S, MayLack<1, S, 1>>]: S[K]["_types"][1] } & { [K in MayLack<1, S, 1>]?: S[K]["_types"][1] }
>;

/** What libraries of schemas give: https://standardschema.dev, with JSON Schema (zod from 4.2 on). */
export interface Standard<Out = any, In = any> {
  readonly "~standard": {
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
    readonly validate: (value: unknown) => any;
    readonly jsonSchema?: { readonly input: (options: { target: string }) => JSONSchema };
  };
}

/** The schemas of fields. */
export const t = {
  string: (): Schema<string> => new Schema({ type: "string" }, { zero: () => "" }),
  boolean: (): Schema<boolean> => new Schema({ type: "boolean" }, { zero: () => false }),
  /** A whole number. Beyond 2^53 it is read as a bigint. */
  integer: (): Schema<number> => new Schema({ type: "integer" }, { zero: () => 0 }),
  /** A whole number of up to 64 bits, always read as a bigint. */
  bigint: (): Schema<bigint> =>
    new Schema({ type: "integer" }, { zero: () => 0n, read: (v) => (typeof v === "number" ? BigInt(v) : v) }),
  number: (): Schema<number> => new Schema({ type: "number" }, { zero: () => 0 }),
  /** Bytes, a Uint8Array. */
  bytes: (): Schema<Uint8Array> => new Schema({}, { zero: () => new Uint8Array(0) }),
  any: (): Schema<any, any> => new Schema({}, { zero: () => null }),
  /** One of several texts. */
  oneOf: <const T extends string>(...values: T[]): Schema<T> => new Schema({ type: "string", enum: values }, { zero: () => "" }),
  array: <O, I>(items: Schema<O, I>): Schema<O[], I[]> => {
    const { read } = items.how;
    return new Schema({ type: "array", items: items.json }, { zero: () => [], ...(read && { read: (v) => (Array.isArray(v) ? v.map(read) : v) }) });
  },
  /** A list of fixed length. The host checks the length; the types of the items are for the compiler. */
  tuple: <const L extends readonly Schema<any, any>[]>(...items: L): Schema<{ -readonly [K in keyof L]: Infer<L[K]> }> =>
    new Schema<any>({ type: "array", minItems: items.length, maxItems: items.length, [itemsOf]: items.map((i) => i.json) }, { zero: () => items.map((i) => i.initial()) }),
  /** A map whose keys are not fixed. */
  record: <O, I>(values: Schema<O, I>): Schema<{ [key: string]: O }, { [key: string]: I }> => {
    const { read } = values.how;
    const each = (v: any) => { for (const k of Object.keys(v)) v[k] = read!(v[k]); return v; };
    return new Schema({ type: "object", additionalProperties: values.json }, { zero: () => ({}), ...(read && { read: each }) });
  },
  object: <S extends Shape>(shape: S): Schema<Out<S>, In<S>> => new Schema<any>(objectSchema(shape), { zero: () => zeroOf(shape), ...reading(shape) }),
  /** A JSON Schema, a schema of TypeBox, or a schema of another library that gives JSON Schema. */
  of: <S extends Standard | JSONSchema>(schema: S): Schema<Infer<S>, InferIn<S>> => foreign(schema),
};

function objectSchema(shape: Shape): JSONSchema {
  const properties: JSONSchema = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(shape)) {
    if (!(field instanceof Schema)) throw new TypeError(`field ${name} needs a schema, such as t.string()`);
    properties[name] = field.json;
    if (!field.how.optional && field.how.fallback === undefined) required.push(name);
  }
  return { type: "object", properties, ...needing(required) };
}

/** needing lists the required fields in the order of CBOR's keys, in which the manifests of all languages have them. */
const needing = (required: string[]) =>
  required.length > 0 && { required: required.sort((a, b) => a.length - b.length || (a < b ? -1 : 1)) };

function zeroOf(shape: Shape): any {
  const o: any = {};
  for (const [name, field] of Object.entries(shape)) if (!field.how.optional) o[name] = field.initial();
  return o;
}

function reading(shape: Shape): How {
  const names = Object.keys(shape).filter((name) => shape[name]!.how.read || shape[name]!.how.fallback !== undefined), hows = names.map((name) => shape[name]!.how);
  if (names.length === 0) return {};
  return {
    read: (v) => {
      if (v === null || typeof v !== "object") return v;
      for (let i = 0; i < names.length; i++) { // without iterators: most steps run this
        const name = names[i]!, { read, fallback } = hows[i]!, value = v[name];
        if (value !== undefined) {
          if (read) v[name] = read(value);
        } else if (fallback !== undefined) {
          v[name] = copy(fallback);
        }
      }
      return v;
    },
  };
}

/** copy copies a default, so that a step may change it. */
function copy(v: any): any {
  if (typeof v !== "object" || v === null || v instanceof Uint8Array) return v;
  return Array.isArray(v) ? v.map(copy) : Object.fromEntries(Object.entries(v).map(([k, x]) => [k, copy(x)]));
}

function foreign(schema: any): Schema<any, any> {
  const standard = schema["~standard"];
  if (!standard) return new Schema(modern(schema));
  if (!standard.jsonSchema) throw new TypeError("the schema's library does not give JSON Schema: use t.of(JSON Schema) or the builder t");
  const { $schema: _, ...json } = standard.jsonSchema.input({ target: "draft-2020-12" });
  return new Schema(json, {
    foreign: true,
    read: (v) => {
      const r = standard.validate(v);
      if (typeof r?.then === "function") throw new TypeError("a schema that validates asynchronously cannot be used here");
      if (!r.issues) return r.value;
      const why = r.issues.map((i: any) => [(i.path ?? []).map((p: any) => p?.key ?? p).join("."), i.message].filter(Boolean).join(": "));
      throw new WeftError(why.join("; "), { code: "schema_violation" });
    },
  });
}

/** modern copies a JSON Schema, and writes tuples as version 2020-12 does. TypeBox before 1.0 has those of an older version. */
function modern(json: any): any {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(modern);
  const { items, additionalItems, ...rest } = json, tuple = Array.isArray(items);
  const to = Object.fromEntries(Object.entries(tuple ? rest : json).map(([k, v]) => [k, literal.has(k) ? v : modern(v)]));
  return tuple ? { ...to, prefixItems: modern(items), ...(additionalItems !== undefined && { items: modern(additionalItems) }) } : to;
}

/** The keywords whose values are not schemas. */
const literal = new Set(["const", "default", "enum", "examples"]);

/** warm lets a schema's library build what it builds at first use, while the module is described. */
export function warm({ json, how }: Schema<any, any>): void {
  if (!how.foreign) return;
  for (const v of [{}, sample(json)]) {
    try {
      how.read!(v);
    } catch (e) {
      if (!(e instanceof WeftError)) throw e;
    }
  }
}

function sample(json: any): any {
  switch (json.type) {
    case "object": return Object.fromEntries(Object.entries(json.properties ?? {}).map(([k, s]) => [k, sample(s)]));
    case "array": return json.items ? [sample(json.items)] : [];
    case "string": return "";
    case "boolean": return false;
    default: return json.type ? 0 : json.anyOf ? sample(json.anyOf[0]) : null;
  }
}

/** The fields of an event or a state: a shape, or a schema of an object. */
export type Fields = Shape | Schema<any, any> | Standard;
export type OutOf<F> = F extends Schema<infer O, any> ? O : F extends Standard<infer O, any> ? O : F extends Shape ? Out<F> : never;
export type InOf<F> = F extends Schema<any, infer I> ? I : F extends Standard<any, infer I> ? I : F extends Shape ? In<F> : never;

/** schemaOf makes a schema of what an author gives as fields. */
export function schemaOf(fields: any): Schema<any, any> {
  if (fields instanceof Schema) return fields;
  if (fields["~standard"] || (fields.type === "object" && !(fields.properties instanceof Schema))) return foreign(fields);
  return t.object(fields);
}

/** extended adds the fields of a base to a schema: those of the base come first. */
export function extended(base: Schema<any, any>, own: Schema<any, any>): Schema<any, any> {
  const required = [...(base.json.required ?? []), ...(own.json.required ?? [])];
  const first = base.how.read, then = own.how.read;
  return new Schema(
    { ...own.json, properties: { ...base.json.properties, ...own.json.properties }, ...needing(required) },
    first || then ? { read: (v) => { if (first) v = first(v); return then ? then(v) : v; } } : {},
  );
}
