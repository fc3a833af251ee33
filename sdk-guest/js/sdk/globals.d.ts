// The globals that steps have beside those of ECMAScript.

interface RegExpConstructor {
  /** Gives a pattern that matches exactly the text. */
  escape(text: string): string;
}

interface Console {
  log(...values: any[]): void;
  info(...values: any[]): void;
  debug(...values: any[]): void;
  trace(...values: any[]): void;
  dir(...values: any[]): void;
  assert(condition: unknown, ...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
}
/** Writes to the server's log, with the level of the method. */
declare var console: Console;

/** Calls a function after a delay in milliseconds. Timers move the step's virtual clock, and do not wait. */
declare function setTimeout<A extends any[]>(f: (...args: A) => void, ms?: number, ...args: A): number;
declare function setInterval<A extends any[]>(f: (...args: A) => void, ms?: number, ...args: A): number;
declare function clearTimeout(id?: number): void;
declare function clearInterval(id?: number): void;
declare function queueMicrotask(f: () => void): void;
declare function structuredClone<T>(value: T, options?: { transfer?: ArrayBuffer[] }): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;

declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(source?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

interface CryptoKey { readonly type: string; readonly extractable: boolean; readonly algorithm: { name: string }; readonly usages: string[] }
declare var crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
  readonly subtle: {
    digest(algorithm: string | { name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
    importKey(format: "raw", data: ArrayBuffer | ArrayBufferView, algorithm: { name: "HMAC"; hash: string | { name: string } }, extractable: boolean, usages: string[]): Promise<CryptoKey>;
    generateKey(algorithm: { name: "HMAC"; hash: string | { name: string }; length?: number }, extractable: boolean, usages: string[]): Promise<CryptoKey>;
    exportKey(format: "raw", key: CryptoKey): Promise<ArrayBuffer>;
    sign(algorithm: string | { name: string }, key: CryptoKey, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
    verify(algorithm: string | { name: string }, key: CryptoKey, signature: ArrayBuffer | ArrayBufferView, data: ArrayBuffer | ArrayBufferView): Promise<boolean>;
  };
};
declare class URLSearchParams {
  constructor(init?: string | Iterable<[string, string]> | { [name: string]: string });
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(f: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}
declare class Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean });
  readonly type: string;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly timeStamp: number;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
declare class CustomEvent<T = any> extends Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; detail?: T });
  readonly detail: T;
}
type Listener = ((event: any) => void) | { handleEvent(event: any): void };
declare class EventTarget {
  addEventListener(type: string, listener: Listener | null, options?: { once?: boolean; signal?: AbortSignal } | boolean): void;
  removeEventListener(type: string, listener: Listener | null): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare var performance: { now(): number; readonly timeOrigin: number };

declare module "*.txt" { const text: string; export default text; }
declare module "*.md" { const text: string; export default text; }
declare module "*.sql" { const text: string; export default text; }
