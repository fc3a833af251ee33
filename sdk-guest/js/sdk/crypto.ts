// crypto: random bytes, hashes and HMAC.
import { bytesOf, define } from "./define";
import { engine } from "./engine";

const refuse = (message: string, name: string): never => { throw new DOMException(message, name); };
const hashes = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];

function hashOf(algorithm: any): any {
  const name = String(algorithm?.name ?? algorithm).toUpperCase();
  return hashes.includes(name) ? name : refuse(`the hash ${name} is not available: use one of ${hashes.join(", ")}`, "NotSupportedError");
}

const buffer = (bytes: Uint8Array) => bytes.slice().buffer;
const keys = new WeakMap<object, { hash: any; bytes: Uint8Array }>();

function keyOf(key: any, use: string): { hash: any; bytes: Uint8Array } {
  const k = keys.get(key);
  if (!k) throw new TypeError("the key was not made by importKey or generateKey");
  return key.usages.includes(use) ? k : refuse(`the key is not for ${use}: name it among the usages`, "InvalidAccessError");
}

function keep(algorithm: any, bytes: Uint8Array, extractable: boolean, usages: string[]): object {
  const hash = hashOf(algorithm.hash);
  if (bytes.length === 0) refuse("the key is empty", "DataError");
  const key = Object.freeze({ type: "secret", extractable, algorithm: { name: "HMAC", hash: { name: hash }, length: bytes.length * 8 }, usages: [...usages] });
  keys.set(key, { hash, bytes });
  return key;
}

const isHMAC = (algorithm: any) => String(algorithm?.name ?? algorithm).toUpperCase() === "HMAC";

const subtle = {
  async digest(algorithm: any, data: any) { return buffer(engine.digest(hashOf(algorithm), bytesOf(data))); },
  async importKey(format: string, data: any, algorithm: any, extractable: boolean, usages: string[]) {
    if (format !== "raw" || !isHMAC(algorithm)) refuse("only raw keys for HMAC can be imported", "NotSupportedError");
    return keep(algorithm, bytesOf(data).slice(), extractable, usages);
  },
  async generateKey(algorithm: any, extractable: boolean, usages: string[]) {
    if (!isHMAC(algorithm)) refuse("only keys for HMAC can be made", "NotSupportedError");
    const b = new Uint8Array(algorithm.length ? algorithm.length >> 3 : ["SHA-384", "SHA-512"].includes(hashOf(algorithm.hash)) ? 128 : 64);
    engine.randomFill(b);
    return keep(algorithm, b, extractable, usages);
  },
  async exportKey(format: string, key: any) {
    const k = keys.get(key);
    if (format !== "raw" || !k) return refuse("only keys for HMAC can be exported, as raw", "NotSupportedError");
    return key.extractable ? buffer(k.bytes) : refuse("the key is not extractable", "InvalidAccessError");
  },
  async sign(_: any, key: object, data: any) {
    const k = keyOf(key, "sign");
    return buffer(engine.hmac(k.hash, k.bytes, bytesOf(data)));
  },
  async verify(_: any, key: object, signature: any, data: any) {
    const k = keyOf(key, "verify"), want = engine.hmac(k.hash, k.bytes, bytesOf(data)), got = bytesOf(signature);
    let different = want.length ^ got.length;
    for (let i = 0; i < want.length; i++) different |= want[i]! ^ (got[i] ?? 0);
    return different === 0;
  },
};

define("crypto", {
  subtle,
  getRandomValues(array: any) {
    if (!ArrayBuffer.isView(array) || array instanceof DataView || /Float/.test(engine.className(array))) {
      refuse("getRandomValues fills arrays of integers", "TypeMismatchError");
    }
    if (array.byteLength > 65536) refuse("getRandomValues gives at most 65,536 bytes at a time", "QuotaExceededError");
    engine.randomFill(bytesOf(array));
    return array;
  },
  randomUUID() {
    const b = new Uint8Array(16);
    engine.randomFill(b);
    b[6] = (b[6]! & 0x0f) | 0x40;
    b[8] = (b[8]! & 0x3f) | 0x80;
    const h = Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");
    return [h.slice(0, 8), h.slice(8, 12), h.slice(12, 16), h.slice(16, 20), h.slice(20)].join("-");
  },
});
