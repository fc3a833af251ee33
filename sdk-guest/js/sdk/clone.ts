// structuredClone.
import { define } from "./define";
import { engine } from "./engine";

const errors: any = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const views: any = {
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array,
  BigUint64Array, Float16Array: (globalThis as any).Float16Array, Float32Array, Float64Array, DataView,
};

type Seen = Map<object, object>;

const refuse = (what: string): never => { throw new DOMException(what + " could not be cloned", "DataCloneError"); };

function fields(from: any, to: any, seen: Seen): any {
  for (const key of Object.keys(from)) Object.defineProperty(to, key, { value: clone(from[key], seen), writable: true, enumerable: true, configurable: true });
  return to;
}

function failure(v: any, seen: Seen, put: (to: any) => any): any {
  const name = String(v.name), own = Object.getOwnPropertyDescriptor(v, "message");
  const make = Object.hasOwn(errors, name) ? errors[name] : Error;
  const to = put(own && "value" in own ? new make(String(own.value)) : new make());
  if (Object.hasOwn(v, "cause")) Object.defineProperty(to, "cause", { value: clone(v.cause, seen), writable: true, configurable: true });
  return to;
}

function clone(v: any, seen: Seen): any {
  if (typeof v === "symbol" || typeof v === "function") refuse("a " + typeof v);
  if (typeof v !== "object" || v === null) return v;
  const known = seen.get(v);
  if (known) return known;
  const put = (to: any) => (seen.set(v, to), to);
  const name = engine.className(v);
  switch (name) {
    case "Object": case "Arguments": return fields(v, put({}), seen);
    case "Array": return fields(v, put(new Array(v.length)), seen);
    case "Date": return put(new Date(Date.prototype.getTime.call(v)));
    case "RegExp": return put(new RegExp(v.source, v.flags));
    case "Number": case "String": case "Boolean": case "BigInt": return put(Object(v.valueOf()));
    case "Map": { const to = put(new Map()); for (const [a, b] of [...v]) to.set(clone(a, seen), clone(b, seen)); return to; }
    case "Set": { const to = put(new Set()); for (const a of [...v]) to.add(clone(a, seen)); return to; }
    case "Error": return failure(v, seen, put);
    case "ArrayBuffer": return put(v.detached ? refuse("a detached ArrayBuffer") : v.slice(0));
  }
  if (!Object.hasOwn(views, name)) refuse("a " + name);
  return put(new views[name](clone(v.buffer, seen), v.byteOffset, name === "DataView" ? v.byteLength : v.length));
}

define("structuredClone", function structuredClone(value: unknown, options?: { transfer?: Iterable<any> }) {
  const seen: Seen = new Map(), list = [...(options?.transfer ?? [])];
  for (const b of list) if (typeof b !== "object" || b === null || engine.className(b) !== "ArrayBuffer" || b.detached) refuse("what is not an ArrayBuffer");
  if (new Set(list).size < list.length) refuse("an ArrayBuffer that is transferred twice");
  for (const b of list) seen.set(b, b.slice(0));
  const to = clone(value, seen);
  for (const b of list) b.transfer();
  return to;
});
