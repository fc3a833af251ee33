// URL and URLSearchParams, by https://url.spec.whatwg.org.
import { define } from "./define";
import { engine } from "./engine";

const ports: { [scheme: string]: string } = { http: "80", https: "443", ws: "80", wss: "443", ftp: "21", file: "" };
const isSpecial = (scheme: string) => Object.hasOwn(ports, scheme);

/** The parts of a URL. A path that is a text is opaque. */
interface Parts {
  scheme: string;
  username: string;
  password: string;
  host: string | null;
  port: string;
  path: string[] | string;
  query: string | null;
  fragment: string | null;
}

// The characters of ASCII that each set encodes beside controls.
const inFragment = " \"<>`", inQuery = " \"#<>", inSpecialQuery = inQuery + "'", inPath = inQuery + "?^`{}", inUser = inPath + "/:;=@[\\]|";
const inForm = inUser + "$%&+,!'()~";

function encode(text: string, set: string): string {
  let out = "";
  for (const c of text) {
    if (c > "\x1f" && c < "\x7f" && !set.includes(c)) out += c;
    else for (const b of engine.utf8Encode(c)) out += "%" + (b < 16 ? "0" : "") + b.toString(16).toUpperCase();
  }
  return out;
}

function decode(text: string): string {
  if (!text.includes("%")) return text;
  const from = engine.utf8Encode(text), to = new Uint8Array(from.length);
  let n = 0;
  for (let i = 0; i < from.length; i++) {
    const hex = from[i] === 37 ? String.fromCharCode(from[i + 1] ?? 0, from[i + 2] ?? 0) : "";
    if (/^[0-9a-f]{2}$/i.test(hex)) {
      to[n++] = parseInt(hex, 16);
      i += 2;
    } else to[n++] = from[i]!;
  }
  return engine.utf8Decode(to.subarray(0, n), false);
}

// ---- hosts; null: there is none that is valid

function punycode(label: string): string {
  const points = Array.from(label, (c) => c.codePointAt(0)!);
  let out = points.filter((p) => p < 128).map((p) => String.fromCharCode(p)).join("");
  const basic = out.length;
  let done = basic, n = 128, delta = 0, bias = 72;
  if (basic > 0) out += "-";
  while (done < points.length) {
    const least = Math.min(...points.filter((p) => p >= n));
    delta += (least - n) * (done + 1);
    n = least;
    for (const p of points) {
      if (p < n) delta++;
      if (p !== n) continue;
      let q = delta;
      for (let k = 36; ; k += 36) {
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (q < t) break;
        out += digit(t + (q - t) % (36 - t));
        q = Math.floor((q - t) / (36 - t));
      }
      out += digit(q);
      bias = adapt(delta, done + 1, done === basic);
      delta = 0;
      done++;
    }
    delta++;
    n++;
  }
  return out;
}

const digit = (d: number) => String.fromCharCode(d < 26 ? d + 97 : d + 22);

function adapt(delta: number, points: number, first: boolean): number {
  delta = first ? Math.floor(delta / 700) : delta >> 1;
  delta += Math.floor(delta / points);
  let k = 0;
  for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
  return k + Math.floor((36 * delta) / (delta + 38));
}

function fromPunycode(text: string): string | null {
  const at = text.lastIndexOf("-");
  const out = Array.from(text.slice(0, Math.max(at, 0)), (c) => c.codePointAt(0)!);
  let n = 128, i = 0, bias = 72;
  for (let p = at < 0 ? 0 : at + 1; p < text.length;) {
    const before = i;
    for (let w = 1, k = 36; ; k += 36) {
      const c = text.charCodeAt(p++), d = c >= 97 && c < 123 ? c - 97 : c >= 48 && c < 58 ? c - 22 : 36;
      if (d > 35) return null;
      i += d * w;
      if (i > 0x7fffffff) return null;
      const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (d < t) break;
      w *= 36 - t;
    }
    bias = adapt(i - before, out.length + 1, before === 0);
    n += Math.floor(i / (out.length + 1));
    i %= out.length + 1;
    if (n > 0x10ffff) return null;
    out.splice(i++, 0, n);
  }
  return String.fromCodePoint(...out);
}

/** A label that IDNA does not allow. The tables of UTS 46 are those of Unicode's properties, so that a few rare characters differ. */
const isBadLabel = (label: string) => /^\p{M}|[\p{Cn}\p{Co}\p{Cs}\p{Cc}\ufffd\u200e\u200f\u2028-\u202e\u2066-\u2069]|\p{Zs}/u.test(label);
const mapped = (text: string) =>
  text.replace(/[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]/g, "").replace(/ẞ/g, "ß").normalize("NFKC").toLowerCase().normalize("NFC").replace(/[。．｡]/g, ".");

function toASCII(domain: string): string | null {
  if (/^[\0-\x7f]*$/.test(domain) && !/(^|\.)xn--/i.test(domain)) return domain.toLowerCase();
  const labels = mapped(domain).split(".");
  for (const [i, label] of labels.entries()) {
    if (label.startsWith("xn--")) {
      const wide = fromPunycode(label.slice(4));
      if (wide === null || wide === "" || /^[\0-\x7f]*$/.test(wide) || isBadLabel(wide) || mapped(wide) !== wide) return null;
    } else if (/[^\0-\x7f]/.test(label)) {
      if (isBadLabel(label)) return null;
      labels[i] = "xn--" + punycode(label);
    }
  }
  return labels.join(".");
}

function ipv4Number(part: string): number {
  if (part === "") return NaN;
  if (/^0x[0-9a-f]*$/i.test(part)) return part.length === 2 ? 0 : parseInt(part, 16);
  if (/^0[0-7]*$/.test(part)) return parseInt(part, 8);
  return /^[1-9][0-9]*$/.test(part) ? Number(part) : NaN;
}

function ipv4(host: string): string | null {
  const parts = host.split(".");
  if (parts.length > 1 && parts.at(-1) === "") parts.pop();
  const numbers = parts.map(ipv4Number);
  if (parts.length > 4 || numbers.some(Number.isNaN) || numbers.slice(0, -1).some((n) => n > 255)) return null;
  const last = numbers.pop()!;
  if (last >= 256 ** (4 - numbers.length)) return null;
  let n = last;
  for (const [i, b] of numbers.entries()) n += b * 256 ** (3 - i);
  return [n / 2 ** 24, n / 2 ** 16, n / 256, n].map((x) => Math.floor(x) % 256).join(".");
}

function ipv6(text: string): string | null {
  let four: number[] = [];
  const dotted = /^(.*:)(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (dotted) {
    const b = dotted.slice(2).map(Number);
    if (b.some((x, i) => x > 255 || String(x) !== dotted[i + 2])) return null;
    four = [b[0]! * 256 + b[1]!, b[2]! * 256 + b[3]!];
    text = dotted[1]!;
    if (!text.endsWith("::")) text = text.slice(0, -1);
  }
  const halves = text.split("::");
  const pieces = (half: string) => (half === "" ? [] : half.split(":"));
  const head = pieces(halves[0]!), end = pieces(halves[1] ?? "");
  if (halves.length > 2 || [...head, ...end].some((p) => !/^[0-9a-f]{1,4}$/i.test(p))) return null;
  const known = head.length + end.length + four.length;
  if (halves.length === 2 ? known > 7 : known !== 8) return null;
  const n = [...head.map((p) => parseInt(p, 16)), ...new Array<number>(8 - known).fill(0), ...end.map((p) => parseInt(p, 16)), ...four];
  let best = -1, longest = 1;
  for (let i = 0; i < 8; i++) {
    let k = i;
    while (k < 8 && n[k] === 0) k++;
    if (k - i > longest) [best, longest] = [i, k - i];
  }
  const hex = (list: number[]) => list.map((x) => x.toString(16)).join(":");
  return "[" + (best < 0 ? hex(n) : hex(n.slice(0, best)) + "::" + hex(n.slice(best + longest))) + "]";
}

function parseHost(text: string, opaque: boolean): string | null {
  if (text.startsWith("[")) return text.endsWith("]") ? ipv6(text.slice(1, -1)) : null;
  if (opaque) return /[\0\t\n\r #/:<>?@[\\\]^|]/.test(text) ? null : encode(text, "");
  const ascii = toASCII(decode(text));
  if (!ascii || /[\0-\x20#%/:<>?@[\\\]^|\x7f]/.test(ascii)) return null;
  const parts = ascii.split(".");
  if (parts.length > 1 && parts.at(-1) === "") parts.pop();
  const last = parts.at(-1)!;
  return /^[0-9]+$/.test(last) || /^0x[0-9a-f]*$/i.test(last) ? ipv4(ascii) : ascii;
}

// ---- URLs

const isDrive = (text: string) => /^[a-z][:|]$/i.test(text);
const isNormalDrive = (text: string) => /^[a-z]:$/i.test(text);
const startsWithDrive = (text: string) => /^[a-z][:|]([/\\?#]|$)/i.test(text);
const isDot = (text: string) => /^(\.|%2e)$/i.test(text);
const isDouble = (text: string) => /^(\.|%2e){2}$/i.test(text);

function shorten(u: Parts): void {
  const path = u.path as string[];
  if (u.scheme === "file" && path.length === 1 && isNormalDrive(path[0]!)) return;
  path.pop();
}

const credentials = (u: Parts) => u.username !== "" || u.password !== "";
const copy = (u: Parts): Parts => ({ ...u, path: typeof u.path === "string" ? u.path : [...u.path] });

type State = "scheme start" | "scheme" | "no scheme" | "special relative or authority" | "path or authority" | "relative" | "relative slash"
  | "special authority slashes" | "special authority ignore slashes" | "authority" | "host" | "hostname" | "port" | "file" | "file slash"
  | "file host" | "path start" | "path" | "opaque path" | "query" | "fragment";

/** parse reads a URL, or with only a part of the URL u. It returns null for a failure, and leaves u then as it was. */
function parse(input: string, base: Parts | null, u?: Parts, only?: State): Parts | null {
  const target = u;
  u = u ? copy(u) : { scheme: "", username: "", password: "", host: null, port: "", path: [], query: null, fragment: null };
  const done = (): Parts => (target ? Object.assign(target, u) : u!);
  if (!only) input = input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, "");
  const text = Array.from(input.replace(/[\t\n\r]/g, ""));
  let state: State = only ?? "scheme start", buffer = "", at = false, bracket = false, password = false;
  for (let p = 0; p <= text.length; p++) {
    const c = text[p];
    const special = isSpecial(u.scheme);
    const rest = (n: number) => text.slice(p + 1, p + 1 + n).join("");
    switch (state) {
      case "scheme start":
        if (c && /[a-z]/i.test(c)) {
          buffer += c.toLowerCase();
          state = "scheme";
        } else if (only) return null;
        else state = "no scheme", p--;
        break;
      case "scheme":
        if (c && /[a-z0-9+.-]/i.test(c)) buffer += c.toLowerCase();
        else if (c === ":") {
          if (only) {
            if (isSpecial(u.scheme) !== isSpecial(buffer) || (buffer === "file" && (credentials(u) || u.port !== "")) || (u.scheme === "file" && u.host === "")) return null;
            u.scheme = buffer;
            if (u.port === ports[u.scheme]) u.port = "";
            return done();
          }
          u.scheme = buffer;
          buffer = "";
          if (u.scheme === "file") state = "file";
          else if (isSpecial(u.scheme)) state = base?.scheme === u.scheme ? "special relative or authority" : "special authority slashes";
          else if (rest(1) === "/") state = "path or authority", p++;
          else u.path = "", state = "opaque path";
        } else if (only) return null;
        else buffer = "", state = "no scheme", p = -1;
        break;
      case "no scheme":
        if (!base || (typeof base.path === "string" && c !== "#")) return null;
        if (typeof base.path === "string") {
          u = { ...copy(base), fragment: "" };
          state = "fragment";
        } else state = base.scheme === "file" ? "file" : "relative", p--;
        break;
      case "special relative or authority":
        if (c === "/" && rest(1) === "/") state = "special authority ignore slashes", p++;
        else state = "relative", p--;
        break;
      case "path or authority":
        if (c === "/") state = "authority";
        else state = "path", p--;
        break;
      case "relative":
        u.scheme = base!.scheme;
        if (c === "/" || (isSpecial(u.scheme) && c === "\\")) state = "relative slash";
        else {
          u = { ...copy(base!), fragment: null };
          if (c === "?") u.query = "", state = "query";
          else if (c === "#") u.fragment = "", state = "fragment";
          else if (c !== undefined) u.query = null, shorten(u), state = "path", p--;
        }
        break;
      case "relative slash":
        if (isSpecial(u.scheme) && (c === "/" || c === "\\")) state = "special authority ignore slashes";
        else if (c === "/") state = "authority";
        else {
          u.username = base!.username, u.password = base!.password, u.host = base!.host, u.port = base!.port;
          state = "path", p--;
        }
        break;
      case "special authority slashes":
        if (c === "/" && rest(1) === "/") p++;
        else p--;
        state = "special authority ignore slashes";
        break;
      case "special authority ignore slashes":
        if (c !== "/" && c !== "\\") state = "authority", p--;
        break;
      case "authority":
        if (c === "@") {
          if (at) buffer = "%40" + buffer;
          at = true;
          for (const x of buffer) {
            if (x === ":" && !password) password = true;
            else if (password) u.password += encode(x, inUser);
            else u.username += encode(x, inUser);
          }
          buffer = "";
        } else if (c === undefined || /[/?#]/.test(c) || (special && c === "\\")) {
          if (at && buffer === "") return null;
          p -= Array.from(buffer).length + 1;
          buffer = "";
          state = "host";
        } else buffer += c;
        break;
      case "host": case "hostname": {
        if (only && u.scheme === "file") {
          state = "file host", p--;
          break;
        }
        const ends = c === undefined || /[/?#]/.test(c) || (special && c === "\\");
        if ((c === ":" && !bracket) || ends) {
          if (buffer === "" && (c === ":" || special)) return null;
          if (c === ":" && only === "hostname") return null;
          if (ends && only && buffer === "" && (credentials(u) || u.port !== "")) return null;
          const host = buffer === "" ? "" : parseHost(buffer, !special);
          if (host === null) return null;
          u.host = host;
          buffer = "";
          state = c === ":" ? "port" : "path start";
          if (ends) {
            p--;
            if (only) return done();
          }
        } else {
          if (c === "[") bracket = true;
          if (c === "]") bracket = false;
          buffer += c;
        }
        break;
      }
      case "port":
        if (c && /[0-9]/.test(c)) buffer += c;
        else if (c === undefined || /[/?#]/.test(c) || (special && c === "\\") || only) {
          if (buffer !== "") {
            if (Number(buffer) > 65535) return only && only !== "port" ? done() : null; // the host is set already
            u.port = String(Number(buffer));
            if (u.port === ports[u.scheme]) u.port = "";
            buffer = "";
            if (only) return done();
          }
          if (only) return only === "port" ? null : done();
          state = "path start", p--;
        } else return null;
        break;
      case "file":
        u.scheme = "file";
        u.host = "";
        if (c === "/" || c === "\\") state = "file slash";
        else if (base?.scheme === "file") {
          u = { ...copy(base), fragment: null };
          if (c === "?") u.query = "", state = "query";
          else if (c === "#") u.fragment = "", state = "fragment";
          else if (c !== undefined) {
            u.query = null;
            if (startsWithDrive(text.slice(p).join(""))) u.path = [];
            else shorten(u);
            state = "path", p--;
          }
        } else state = "path", p--;
        break;
      case "file slash":
        if (c === "/" || c === "\\") state = "file host";
        else {
          if (base?.scheme === "file") {
            u.host = base.host;
            if (!startsWithDrive(text.slice(p).join("")) && isNormalDrive(base.path[0] ?? "")) (u.path as string[]).push(base.path[0]!);
          }
          state = "path", p--;
        }
        break;
      case "file host":
        if (c === undefined || /[/\\?#]/.test(c)) {
          p--;
          if (!only && isDrive(buffer)) state = "path"; // the buffer stays
          else if (buffer === "") {
            u.host = "";
            if (only) return done();
            state = "path start";
          } else {
            const host = parseHost(buffer, !special);
            if (host === null) return null;
            u.host = host === "localhost" ? "" : host;
            if (only) return done();
            buffer = "";
            state = "path start";
          }
        } else buffer += c;
        break;
      case "path start":
        if (special) {
          state = "path";
          if (c !== "/" && c !== "\\") p--;
        } else if (!only && c === "?") u.query = "", state = "query";
        else if (!only && c === "#") u.fragment = "", state = "fragment";
        else if (c !== undefined) {
          state = "path";
          if (c !== "/") p--;
        } else if (only && u.host === null) (u.path as string[]).push("");
        break;
      case "path": {
        const slash = c === "/" || (special && c === "\\"), path = u.path as string[];
        if (c === undefined || slash || (!only && (c === "?" || c === "#"))) {
          if (isDouble(buffer)) {
            shorten(u);
            if (!slash) path.push("");
          } else if (isDot(buffer)) {
            if (!slash) path.push("");
          } else {
            if (u.scheme === "file" && path.length === 0 && isDrive(buffer)) buffer = buffer[0] + ":";
            path.push(buffer);
          }
          buffer = "";
          if (c === "?") u.query = "", state = "query";
          if (c === "#") u.fragment = "", state = "fragment";
        } else buffer += encode(c, inPath);
        break;
      }
      case "opaque path":
        if (c === "?") u.query = "", state = "query";
        else if (c === "#") u.fragment = "", state = "fragment";
        else if (c === " ") u.path += rest(1) === "?" || rest(1) === "#" ? "%20" : " ";
        else if (c !== undefined) u.path += encode(c, "");
        break;
      case "query":
        if (c === undefined || (!only && c === "#")) {
          u.query += encode(buffer, special ? inSpecialQuery : inQuery);
          buffer = "";
          if (c === "#") u.fragment = "", state = "fragment";
        } else buffer += c;
        break;
      case "fragment":
        if (c !== undefined) u.fragment += encode(c, inFragment);
    }
  }
  return done();
}

const pathOf = (u: Parts) => (typeof u.path === "string" ? u.path : u.path.map((s) => "/" + s).join(""));

function write(u: Parts): string {
  let s = u.scheme + ":";
  if (u.host !== null) {
    s += "//";
    if (credentials(u)) s += u.username + (u.password && ":" + u.password) + "@";
    s += u.host + (u.port && ":" + u.port);
  } else if (typeof u.path !== "string" && u.path.length > 1 && u.path[0] === "") s += "/.";
  return s + pathOf(u) + (u.query === null ? "" : "?" + u.query) + (u.fragment === null ? "" : "#" + u.fragment);
}

function parsed(url: unknown, base?: unknown): Parts | null {
  const b = base === undefined ? null : parse(String(base), null);
  return base !== undefined && !b ? null : parse(String(url), b);
}

// Shared by the two classes: what a URL does when its parameters change.
const changed = new WeakMap<URLSearchParams, () => void>();
let refill: (params: URLSearchParams, query: string) => void;
const wellFormed = (v: unknown): string => (String(v) as any).toWellFormed();

class URLSearchParams {
  #list: [string, string][] = [];
  static {
    refill = (params, query) => { params.#list = read(query); };
  }
  constructor(init: any = "") {
    if (init !== null && typeof init === "object" || typeof init === "function") {
      if (init[Symbol.iterator] != null) {
        for (const pair of init) {
          const list = [...pair];
          if (list.length !== 2) throw new TypeError("a parameter is a pair of a name and a value");
          this.#list.push([wellFormed(list[0]), wellFormed(list[1])]);
        }
      } else {
        const fields = new Map<string, string>();
        for (const key of Reflect.ownKeys(init)) {
          if (!Object.getOwnPropertyDescriptor(init, key)?.enumerable) continue;
          if (typeof key === "symbol") throw new TypeError("a parameter's name is not a symbol");
          fields.set(wellFormed(key), wellFormed(init[key]));
        }
        this.#list = [...fields];
      }
    } else this.#list = read(String(init).replace(/^\?/, ""));
  }
  #done() { changed.get(this)?.(); }
  get size() { return this.#list.length; }
  append(name: string, value: string) {
    this.#list.push([wellFormed(name), wellFormed(value)]);
    this.#done();
  }
  delete(name: string, value?: string) {
    name = wellFormed(name);
    if (value !== undefined) value = wellFormed(value);
    this.#list = this.#list.filter(([n, v]) => n !== name || (value !== undefined && v !== value));
    this.#done();
  }
  get(name: string): string | null {
    name = wellFormed(name);
    return this.#list.find(([n]) => n === name)?.[1] ?? null;
  }
  getAll(name: string): string[] {
    name = wellFormed(name);
    return this.#list.filter(([n]) => n === name).map(([, v]) => v);
  }
  has(name: string, value?: string): boolean {
    name = wellFormed(name);
    if (value !== undefined) value = wellFormed(value);
    return this.#list.some(([n, v]) => n === name && (value === undefined || v === value));
  }
  set(name: string, value: string) {
    name = wellFormed(name), value = wellFormed(value);
    const i = this.#list.findIndex(([n]) => n === name);
    if (i < 0) this.#list.push([name, value]);
    else {
      this.#list[i]![1] = value;
      this.#list = this.#list.filter(([n], k) => n !== name || k <= i);
    }
    this.#done();
  }
  sort() {
    this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#done();
  }
  forEach(f: (value: string, name: string, params: URLSearchParams) => void, self?: unknown) {
    if (typeof f !== "function") throw new TypeError("forEach wants a function");
    for (const [n, v] of this) f.call(self, v, n, this);
  }
  *entries(): IterableIterator<[string, string]> { for (let i = 0; i < this.#list.length; i++) yield [...this.#list[i]!]; }
  *keys(): IterableIterator<string> { for (const [n] of this) yield n; }
  *values(): IterableIterator<string> { for (const [, v] of this) yield v; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return "URLSearchParams"; }
  toString(): string {
    const form = (s: string) => encode(s, inForm).replace(/%20/g, "+");
    return this.#list.map(([n, v]) => form(n) + "=" + form(v)).join("&");
  }
}

function read(query: string): [string, string][] {
  const part = (s: string) => decode(s.replace(/\+/g, " ")).toWellFormed();
  return query.split("&").filter((s) => s !== "").map((s) => {
    const i = s.indexOf("=");
    return i < 0 ? [part(s), ""] : [part(s.slice(0, i)), part(s.slice(i + 1))];
  });
}

class URL {
  #u: Parts;
  #params = new URLSearchParams();

  constructor(url: unknown, base?: unknown) {
    const u = parsed(wellFormed(url), base === undefined ? undefined : wellFormed(base));
    if (!u) throw new TypeError(`${JSON.stringify(String(url))} is not a URL` + (base === undefined ? "" : ` with the base ${JSON.stringify(String(base))}`));
    this.#u = u;
    refill(this.#params, u.query ?? "");
    changed.set(this.#params, () => {
      const q = this.#params.toString();
      this.#u.query = q === "" ? null : q;
    });
  }
  static canParse(url: unknown, base?: unknown): boolean { return parsed(url, base) !== null; }
  static parse(url: unknown, base?: unknown): URL | null { return parsed(url, base) ? new URL(url, base) : null; }

  get href() { return write(this.#u); }
  set href(v: string) {
    const u = parsed(wellFormed(v));
    if (!u) throw new TypeError(`${JSON.stringify(String(v))} is not a URL`);
    this.#u = u;
    refill(this.#params, u.query ?? "");
  }
  get origin(): string {
    const { scheme, host, port, path } = this.#u;
    if (scheme === "blob") {
      const inner = typeof path === "string" ? parse(path, null) : null;
      return inner && /^https?$/.test(inner.scheme) ? inner.scheme + "://" + inner.host + (inner.port && ":" + inner.port) : "null";
    }
    return isSpecial(scheme) && scheme !== "file" ? scheme + "://" + host + (port && ":" + port) : "null";
  }
  get protocol() { return this.#u.scheme + ":"; }
  set protocol(v: string) { parse(wellFormed(v) + ":", null, this.#u, "scheme start"); }
  get #unnamed() { return this.#u.host === null || this.#u.host === "" || this.#u.scheme === "file"; }
  get username() { return this.#u.username; }
  set username(v: string) { if (!this.#unnamed) this.#u.username = encode(wellFormed(v), inUser); }
  get password() { return this.#u.password; }
  set password(v: string) { if (!this.#unnamed) this.#u.password = encode(wellFormed(v), inUser); }
  get host() { return (this.#u.host ?? "") + (this.#u.port && ":" + this.#u.port); }
  set host(v: string) { if (typeof this.#u.path !== "string") parse(wellFormed(v), null, this.#u, "host"); }
  get hostname() { return this.#u.host ?? ""; }
  set hostname(v: string) { if (typeof this.#u.path !== "string") parse(wellFormed(v), null, this.#u, "hostname"); }
  get port() { return this.#u.port; }
  set port(v: string) {
    if (this.#unnamed) return;
    if (wellFormed(v) === "") this.#u.port = "";
    else parse(wellFormed(v), null, this.#u, "port");
  }
  get pathname() { return pathOf(this.#u); }
  set pathname(v: string) {
    if (typeof this.#u.path === "string") return;
    const u = { ...this.#u, path: [] };
    if (parse(wellFormed(v), null, u, "path start")) this.#u = u;
  }
  get search() { return this.#u.query ? "?" + this.#u.query : ""; }
  set search(v: string) {
    const text = wellFormed(v), query = text.replace(/^\?/, "");
    this.#u.query = text === "" ? null : "";
    if (query !== "") parse(query, null, this.#u, "query");
    refill(this.#params, query);
  }
  get searchParams() { return this.#params; }
  get hash() { return this.#u.fragment ? "#" + this.#u.fragment : ""; }
  set hash(v: string) {
    const text = wellFormed(v), fragment = text.replace(/^#/, "");
    this.#u.fragment = text === "" ? null : "";
    if (fragment !== "") parse(fragment, null, this.#u, "fragment");
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
  get [Symbol.toStringTag]() { return "URL"; }
}

define("URL", URL);
define("URLSearchParams", URLSearchParams);
