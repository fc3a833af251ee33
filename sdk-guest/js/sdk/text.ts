// TextEncoder and TextDecoder.
import { bytesOf, define } from "./define";
import { engine } from "./engine";

class TextEncoder {
  get encoding() { return "utf-8"; }
  encode(text = ""): Uint8Array { return engine.utf8Encode(String(text)); }
  encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
    let read = 0, written = 0;
    for (const c of String(text)) {
      const bytes = engine.utf8Encode(c);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      read += c.length;
      written += bytes.length;
    }
    return { read, written };
  }
}

/** tail is the number of last bytes that begin a character and may continue. */
function tail(b: Uint8Array): number {
  for (let n = 1; n <= 3 && n <= b.length; n++) {
    const c = b[b.length - n]!;
    if (c >= 0xc0) return (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2) > n ? n : 0;
    if (c < 0x80) return 0;
  }
  return 0;
}

class TextDecoder {
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  #rest = new Uint8Array(0);
  #begun = false;
  constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
    if (!/^[\t\n\f\r ]*(utf-?8|unicode-1-1-utf-8|unicode11utf8|unicode20utf8|x-unicode20utf8)[\t\n\f\r ]*$/i.test(label)) {
      throw new RangeError(`TextDecoder reads UTF-8 only, not ${label}`);
    }
    this.fatal = Boolean(options?.fatal);
    this.ignoreBOM = Boolean(options?.ignoreBOM);
  }
  get encoding() { return "utf-8"; }
  decode(source?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string {
    let bytes = source === undefined ? new Uint8Array(0) : bytesOf(source);
    if (this.#rest.length > 0) {
      const all = new Uint8Array(this.#rest.length + bytes.length);
      all.set(this.#rest);
      all.set(bytes, this.#rest.length);
      bytes = all;
    }
    const kept = options?.stream ? tail(bytes) : 0;
    this.#rest = bytes.slice(bytes.length - kept);
    let text: string;
    try {
      text = engine.utf8Decode(bytes.subarray(0, bytes.length - kept), this.fatal);
    } catch (e) {
      this.#rest = new Uint8Array(0);
      this.#begun = false;
      throw e;
    }
    const first = !this.#begun;
    this.#begun = options?.stream ? this.#begun || text !== "" : false;
    return first && !this.ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
}

define("TextEncoder", TextEncoder);
define("TextDecoder", TextDecoder);
