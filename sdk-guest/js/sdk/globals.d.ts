// The globals that steps have beside those of ECMAScript.

interface Console {
  log(...values: any[]): void;
  info(...values: any[]): void;
  debug(...values: any[]): void;
  trace(...values: any[]): void;
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
declare function structuredClone<T>(value: T): T;
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
  decode(source?: ArrayBuffer | ArrayBufferView): string;
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
    sign(algorithm: string | { name: string }, key: CryptoKey, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
    verify(algorithm: string | { name: string }, key: CryptoKey, signature: ArrayBuffer | ArrayBufferView, data: ArrayBuffer | ArrayBufferView): Promise<boolean>;
  };
};
declare var performance: { now(): number; readonly timeOrigin: number };

declare module "*.txt" { const text: string; export default text; }
declare module "*.md" { const text: string; export default text; }
declare module "*.sql" { const text: string; export default text; }
