// The module "weft/test" in Node, where vitest runs the tests of functions.
import type { Session } from "./test";

export { describe, expect, it, test } from "vitest";

/** Fails: the workflow runs in weft alone. */
export function session(): Session {
  throw new TypeError("session() works only within a test that 'weft test' runs");
}
