import { engine } from "./engine";

/** Further properties of a {@link WeftError}. */
export interface ErrorOptions {
  /** The code, for programs. */
  code: string;
  /** false for a final failure, which is not retried whatever the step's policy says. */
  retryable?: boolean;
  /** A value for the code that handles the failure. */
  data?: any;
  cause?: unknown;
}

/**
 * An error with a code for programs and a message for people. A step that throws a WeftError
 * fails with it, and host calls throw one when they fail.
 *
 *     throw new WeftError("the service is busy", { code: "busy" });
 *
 * The codes of host calls are invalid_message, not_found, conflict, failed_precondition,
 * permission_denied, limit_exceeded, timeout, schema_violation, unavailable and internal.
 */
export class WeftError extends Error {
  readonly code: string;
  retryable?: boolean;
  data?: any;

  constructor(message: string, options: ErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    if (options.retryable !== undefined) this.retryable = options.retryable;
    if (options.data !== undefined) this.data = options.data;
  }

  override get name(): string { return "WeftError"; }

  /** Marks the failure as final, so that it is not retried, and returns the error. */
  final(): this {
    this.retryable = false;
    return this;
  }
}

if (engine) engine.WeftError = WeftError;

/** Returns the code of an error: that of a WeftError, "error" for any other value. */
export function codeOf(error: unknown): string {
  for (let e: any = error; e instanceof Error; e = e.cause) if (e instanceof WeftError) return e.code;
  return "error";
}

/** misuse returns the error of a call that the SDK refuses. */
export const misuse = (message: string): WeftError => new WeftError(message, { code: "invalid_message" });

export const quote = (text: string): string => '"' + text + '"';
