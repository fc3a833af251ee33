import { nanoseconds, type Duration } from "./duration";
import { float } from "./engine";
import { misuse } from "./errors";

type Part = "when" | "wait" | "stop";

/** A part of a retry policy: when to retry, how long to wait, or when to give up. */
export class Rule<P extends Part = Part> {
  /** @internal */
  constructor(readonly part: P, readonly rule: any) {}
}

/**
 * A retry policy. By default a step with a policy retries after every error, waits 5 s
 * between attempts, and makes at most 3 attempts in all.
 */
export interface Retry {
  /** The errors that are retried. An error marked by {@link WeftError.final} never is. */
  when?: Rule<"when">;
  /** How long to wait before the next attempt; a duration is a fixed time. */
  wait?: Rule<"wait"> | Duration;
  /** When to give up; with attempts or giveUpAfter, the first that applies decides. */
  stop?: Rule<"stop">;
  /** Gives up after this number of attempts in all. */
  attempts?: number;
  /** Gives up at a failure this long or longer after the first attempt started. */
  giveUpAfter?: Duration;
}

/** Retries after every error. */
export const always = (): Rule<"when"> => new Rule("when", "always");
/** Does not retry. */
export const never = (): Rule<"when"> => new Rule("when", "never");
/** Retries only after errors with one of the codes. */
export const onCodes = (...codes: string[]): Rule<"when"> => new Rule("when", { code: codes });
/** Retries only after errors whose message contains the text. */
export const onMessage = (text: string): Rule<"when"> => new Rule("when", { message: text });
/** Retries if the condition does not hold. */
export const not = (condition: Rule<"when">): Rule<"when"> => new Rule("when", { not: condition.rule });

/** Waits the same time before each attempt. */
export const fixed = (d: Duration): Rule<"wait"> => new Rule("wait", { fixed: nanoseconds(d) });
/** Waits start, then step longer each time, at most limit. */
export const incrementing = (start: Duration, step: Duration, limit: Duration): Rule<"wait"> =>
  new Rule("wait", { incrementing: [nanoseconds(start), nanoseconds(step), nanoseconds(limit)] });
/** Waits unit * base^(attempt-1), at most limit. */
export const exponential = (unit: Duration, base: number, limit: Duration): Rule<"wait"> =>
  new Rule("wait", { exponential: [nanoseconds(unit), float(base), nanoseconds(limit)] });
/** Waits as exponential does, plus a random time of at most jitter. */
export const exponentialJitter = (unit: Duration, base: number, limit: Duration, jitter: Duration): Rule<"wait"> =>
  new Rule("wait", { exponential_jitter: [nanoseconds(unit), float(base), nanoseconds(limit), nanoseconds(jitter)] });
/** Waits a random time between least and most. */
export const randomWait = (least: Duration, most: Duration): Rule<"wait"> =>
  new Rule("wait", { random: [nanoseconds(least), nanoseconds(most)] });
/** Waits by the first rule before the second attempt, by the second before the third, and so on. */
export const chain = (...waits: Rule<"wait">[]): Rule<"wait"> => group("chain", waits);
/** Waits as long as all the rules together. */
export const sum = (...waits: Rule<"wait">[]): Rule<"wait"> => group("sum", waits);

/** Gives up after n attempts in all. */
export const attempts = (n: number): Rule<"stop"> => new Rule("stop", { attempts: n });
/** Gives up at a failure this long or longer after the first attempt started. */
export const giveUpAfter = (d: Duration): Rule<"stop"> => new Rule("stop", { delay: nanoseconds(d) });
/** Never gives up. */
export const forever = (): Rule<"stop"> => new Rule("stop", "never");
/** Combines conditions that must all hold, or rules to give up that must all apply. */
export const allOf = <P extends "when" | "stop">(...rules: Rule<P>[]): Rule<P> => group("all", rules);

/** group joins rules of one part under a key. */
export function group<P extends Part>(key: string, rules: Rule<P>[]): Rule<P> {
  const first = rules[0];
  if (!first) throw misuse(`a group of rules (${key}) is empty: give it rules`);
  if (rules.some((r) => r.part !== first.part)) throw misuse(`a group of rules (${key}) holds rules of one kind: when, wait or stop`);
  return new Rule(first.part, { [key]: rules.map((r) => r.rule) });
}

/** retryManifest gives a policy as the manifest has it. */
export function retryManifest(policy: Retry): object {
  const stops = [
    ...(policy.stop ? [policy.stop] : []),
    ...(policy.attempts !== undefined ? [attempts(policy.attempts)] : []),
    ...(policy.giveUpAfter !== undefined ? [giveUpAfter(policy.giveUpAfter)] : []),
  ];
  const stop = stops.length > 1 ? group("any", stops) : stops[0];
  const wait = policy.wait === undefined || policy.wait instanceof Rule ? policy.wait : fixed(policy.wait);
  return { ...(policy.when && { when: policy.when.rule }), ...(wait && { wait: wait.rule }), ...(stop && { stop: stop.rule }) };
}
