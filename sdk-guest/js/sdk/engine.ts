// The engine's side of the contract in ../engine/README.md.

/** A value that an event, the state or a host call may hold. */
export type Value = null | undefined | boolean | number | bigint | string | Uint8Array | Value[] | { [key: string]: Value };

export type Wire = [type: string, fields: { [key: string]: any }, id?: number | bigint];

type Hash = "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512";

/** A host call. For errors: what is done, to which object, and what to do if the object does not exist. */
type HostCall = (request: unknown, what?: string, object?: string, advice?: string) => any;

export interface Engine {
  readonly version: 2;
  describe: () => unknown;
  step: (input: [step: string, trigger: any]) => unknown;
  /** What fields of events get as their prototype, by the event's type. */
  readonly protos: { [type: string]: object };
  give?: (result: any) => unknown;
  warm?: () => void;
  WeftError?: unknown;
  readonly inStep: boolean;
  input(): [step: string, trigger: any, run: any[], config?: any];

  state_get: HostCall;
  state_edit: HostCall;
  state_begin: HostCall;
  state_commit: HostCall;
  state_abort: HostCall;
  send_event: HostCall;
  collect_events: HostCall;
  wait_for_event: HostCall;
  write_event_to_stream: HostCall;
  run_workflow: HostCall;
  call_resource: HostCall;
  sleep: HostCall;
  now: HostCall;
  random: HostCall;
  log: HostCall;

  settle<A extends unknown[]>(f: (...args: A) => any, ...args: A): Promise<any>;
  encode(value: unknown): Uint8Array;
  decode(bytes: Uint8Array): any;
  float(n: number): any;
  frames(error: unknown): string[];
  describeError(error: unknown): { code: string; message: string; retryable?: boolean; data?: any };
  utf8Encode(text: string): Uint8Array;
  utf8Decode(bytes: Uint8Array, fatal: boolean): string;
  digest(algorithm: Hash, data: Uint8Array): Uint8Array;
  hmac(algorithm: Hash, key: Uint8Array, data: Uint8Array): Uint8Array;
  randomFill(bytes: Uint8Array): void;
  className(object: object): string;
}

/** The engine; undefined in a process that only tests functions, such as Node's. */
export const engine: Engine = (globalThis as any).__weft;

if (engine && engine.version !== 2) {
  throw new Error("the SDK of this project does not fit this weft: run 'weft sdk update'");
}

/**
 * Marks a number that leaves the step as a float even if it is whole, as a float64 of Go does: `result(float(2))`.
 * Fields of the schema t.number() are floats without it.
 */
export const float = (n: number): number => (engine ? engine.float(n) : n);
