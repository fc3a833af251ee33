/**
 * The SDK for steps in TypeScript and JavaScript.
 *
 *     import { result, startEvent, step, Stop, t, workflow } from "weft";
 *
 *     const Start = startEvent("StartEvent", { name: t.string() });
 *     export default workflow("greet", {}, [
 *       step("greet", Start, Stop, (ctx, ev) => result("Hello, " + ev.name)),
 *     ]);
 */
import "./globals";

export { float, type Value } from "./engine";
export type { Duration } from "./duration";
export { WeftError, codeOf, type ErrorOptions } from "./errors";
export { t, Schema, type Infer, type JSONSchema } from "./schema";
export {
  content, event, humanResponse, inputRequired, result, startEvent, StepFailed, StepInput, StepOutput, Stop, stopEvent, stopWith,
  type Event, type EventOptions, type EventType,
} from "./event";
export {
  allOf, always, attempts, chain, exponential, exponentialJitter, fixed, forever, giveUpAfter, incrementing, never, not, onCodes, onMessage,
  randomWait, sum, type Retry, type Rule,
} from "./retry";
export { Context, Batch, type RunInfo, type RunOptions, type WaitOptions } from "./context";
export { assistant, system, user, HTTPResponse, type ChatRequest, type ChatResponse, type HTTPRequest, type KVItem, type KVQuery, type Message } from "./resource";
export { all, anyOf, func, nothing, state, step, workflow, type Resource, type State, type Step, type StepOptions, type WorkflowOptions } from "./workflow";
