import { misuse } from "./errors";

/** A time span: "10ms", "1h30m", milliseconds, or parts such as { hours: 1 }. */
export type Duration =
  | number
  | string
  | { days?: number; hours?: number; minutes?: number; seconds?: number; milliseconds?: number };

const units: { [unit: string]: number } = { ns: 1e-6, us: 1e-3, "µs": 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 };

/** nanoseconds gives a span as the host takes it: a whole number of nanoseconds, 0 or more. */
export function nanoseconds(span: Duration): number | bigint {
  const ms = milliseconds(span);
  if (!(ms >= 0 && ms <= 9e12)) throw misuse(`the duration ${JSON.stringify(span)} is not 0 to 9e12 milliseconds`);
  const whole = Math.floor(ms);
  const ns = BigInt(whole) * 1000000n + BigInt(Math.round((ms - whole) * 1e6));
  return ns <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(ns) : ns;
}

function milliseconds(span: Duration): number {
  if (typeof span === "number") return span;
  if (typeof span === "string") return parse(span);
  const { days = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0 } = span;
  return days * 864e5 + hours * 36e5 + minutes * 6e4 + seconds * 1e3 + milliseconds;
}

function parse(text: string): number {
  let sum = 0;
  let rest = text;
  while (rest !== "") {
    const m = /^(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/.exec(rest);
    if (!m) throw misuse(`${quoteText(text)} is not a duration: write it as "10ms", "1h30m" or "2d"`);
    sum += Number(m[1]) * units[m[2]!]!;
    rest = rest.slice(m[0].length);
  }
  if (text === "") throw misuse('"" is not a duration: write it as "10ms", "1h30m" or "2d"');
  return sum;
}

const quoteText = (text: string) => JSON.stringify(text);
