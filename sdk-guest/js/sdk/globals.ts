// The globals that the engine leaves to the SDK.
import { engine } from "./engine";
import { log } from "./context";

const global: any = globalThis;

/** shown is a value as console shows it. */
function shown(v: any): string {
  if (typeof v === "string") return v;
  if (v instanceof Error) return [`${v.name}: ${v.message}`, ...engine.frames(v).map((f) => "    at " + f)].join("\n");
  if (typeof v === "object" && v !== null) {
    try {
      return JSON.stringify(v, (_, x) => (typeof x === "bigint" ? x + "n" : x)) ?? String(v);
    } catch {
      return Object.prototype.toString.call(v);
    }
  }
  return typeof v === "bigint" ? v + "n" : String(v);
}

const at = (level: number) => (...list: any[]) => log(level, list.map(shown).join(" "));

class TextEncoder {
  readonly encoding = "utf-8";
  encode(text = ""): Uint8Array { return engine.utf8Encode(String(text)); }
  encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
    let read = 0, written = 0;
    for (const c of text) {
      const bytes = engine.utf8Encode(c);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      read += c.length;
      written += bytes.length;
    }
    return { read, written };
  }
}

class TextDecoder {
  readonly encoding = "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
    if (!/^\s*utf-?8\s*$/i.test(label)) throw new RangeError(`TextDecoder reads UTF-8 only, not ${label}`);
    this.fatal = Boolean(options.fatal);
    this.ignoreBOM = Boolean(options.ignoreBOM);
  }
  decode(source?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string {
    if (options?.stream) throw new TypeError("TextDecoder does not decode streams: decode the whole text");
    const text = engine.utf8Decode(bytesOf(source ?? new Uint8Array(0)), this.fatal);
    return !this.ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
}

function bytesOf(source: any): Uint8Array {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset, source.byteLength);
  throw new TypeError("an ArrayBuffer or a view of one is needed");
}

const hex = (bytes: Uint8Array) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const hashes = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];

function hashOf(algorithm: any): any {
  const name = String(algorithm?.name ?? algorithm).toUpperCase();
  if (!hashes.includes(name)) throw new DOMException(`the hash ${name} is not available: use one of ${hashes.join(", ")}`, "NotSupportedError");
  return name;
}

const buffer = (bytes: Uint8Array) => bytes.slice().buffer;
const keys = new WeakMap<object, { hash: any; bytes: Uint8Array }>();

const subtle = {
  async digest(algorithm: any, data: any) { return buffer(engine.digest(hashOf(algorithm), bytesOf(data))); },
  async importKey(format: string, data: any, algorithm: any, extractable: boolean, usages: string[]) {
    if (format !== "raw" || String(algorithm?.name ?? algorithm).toUpperCase() !== "HMAC") {
      throw new DOMException("only raw keys for HMAC can be imported", "NotSupportedError");
    }
    const key = { type: "secret", extractable, algorithm: { name: "HMAC", hash: { name: hashOf(algorithm.hash) } }, usages };
    keys.set(key, { hash: hashOf(algorithm.hash), bytes: bytesOf(data).slice() });
    return key;
  },
  async sign(_: any, key: object, data: any) {
    const k = keys.get(key);
    if (!k) throw new TypeError("the key was not made by importKey");
    return buffer(engine.hmac(k.hash, k.bytes, bytesOf(data)));
  },
  async verify(algorithm: any, key: object, signature: any, data: any) {
    const want = new Uint8Array(await subtle.sign(algorithm, key, data) as ArrayBuffer), got = bytesOf(signature);
    let different = want.length ^ got.length;
    for (let i = 0; i < want.length; i++) different |= want[i]! ^ (got[i] ?? 0);
    return different === 0;
  },
};

const crypto = {
  subtle,
  getRandomValues(array: any) {
    engine.randomFill(bytesOf(array));
    return array;
  },
  randomUUID() {
    const b = new Uint8Array(16);
    engine.randomFill(b);
    b[6] = (b[6]! & 0x0f) | 0x40;
    b[8] = (b[8]! & 0x3f) | 0x80;
    const h = hex(b);
    return [h.slice(0, 8), h.slice(8, 12), h.slice(12, 16), h.slice(16, 20), h.slice(20)].join("-");
  },
};

/** define sets a global that scripts may replace. */
const define = (name: string, value: unknown) => Object.defineProperty(global, name, { value, writable: true, configurable: true });

/** missing is a global that says what to use instead. */
function missing(name: string, instead: string): void {
  const fail = (): never => { throw new TypeError(`${name} does not exist in a step: ${instead}`); };
  define(name, new Proxy(function () {}, { apply: fail, construct: fail, get: fail, set: fail }));
}

if (engine) {
  define("console", { log: at(0), info: at(0), debug: at(-4), trace: at(-4), warn: at(4), error: at(8) });
  define("TextEncoder", TextEncoder);
  define("TextDecoder", TextDecoder);
  define("crypto", crypto);
  missing("fetch", 'declare a resource of the kind "http" and use ctx.http(name)');
  missing("XMLHttpRequest", 'declare a resource of the kind "http" and use ctx.http(name)');
  missing("process", "settings of a step are in ctx.config(), and there are no environment variables");
  missing("require", "use import");
  missing("WebAssembly", "write the step in Go or Rust, or import JavaScript");
  missing("Worker", "return a list of events: the steps that take them run side by side");
}
