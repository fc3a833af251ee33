/** define sets a global that scripts may replace. */
export const define = (name: string, value: unknown) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });

/** bytesOf gives the bytes of a buffer or of a view of one. */
export function bytesOf(source: any): Uint8Array {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset, source.byteLength);
  throw new TypeError("an ArrayBuffer or a view of one is needed");
}
