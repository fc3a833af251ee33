// Workload does pieces of ordinary work, in the way in which a program in TypeScript does
// them. See ../workload.
import { result, startEvent, step, Stop, t, workflow } from "weft";

const Start = startEvent("StartEvent", { task: t.oneOf("json", "sort", "regexp", "calls", "digest", "loop"), n: t.integer() });

// random gives numbers below 2^31, the same in all languages.
function random() {
  let x = 12345;
  return () => (x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff);
}

function numbers(n: number): Uint8Array {
  const b = new Uint8Array(n);
  for (let i = 0; i < n; i++) b[i] = i;
  return b;
}

const hex = (b: ArrayBuffer) => Array.from(new Uint8Array(b), (x) => x.toString(16).padStart(2, "0")).join("");

const fib = (n: number): number => (n < 2 ? n : fib(n - 1) + fib(n - 2));

const tasks: { [task: string]: (n: number) => unknown } = {
  // Writes a list of objects and reads it.
  json(n) {
    const text = JSON.stringify(Array.from({ length: n }, (_, i) => ({ id: i, name: "item", tags: ["a", "b"], v: i / 3 })));
    return text.length + JSON.parse(text).length;
  },
  sort(n) {
    const next = random();
    return Array.from({ length: n }, next).sort((a, b) => a - b)[n >> 1];
  },
  // Counts different words of a text.
  regexp(n) {
    const next = random(), parts: string[] = [];
    for (let i = 0; i < n; i++) parts.push("word" + [...String((next() >> 8) % 1000)].reverse().join("") + " ");
    const count = new Map<string, number>();
    for (const [w] of parts.join("").matchAll(/[a-z]+[0-9]{2,3}/g)) count.set(w, (count.get(w) ?? 0) + 1);
    return count.size;
  },
  calls: fib,
  // What the engine computes: SHA-256.
  digest: async (n) => hex(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("0123456789".repeat(n / 10)))),
  // A checksum that is computed bit by bit: CRC-32.
  loop(n) {
    let crc = ~0;
    for (const b of numbers(n)) {
      crc ^= b;
      for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
    }
    return ~crc >>> 0;
  },
};

export default workflow("workload-ts", {}, [step("work", Start, Stop, async (ctx, ev) => result((await tasks[ev.task]!(ev.n)) as any))]);
