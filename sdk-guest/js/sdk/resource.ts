import { nanoseconds, type Duration } from "./duration";
import { engine } from "./engine";
import { codeOf } from "./errors";

/** callResource calls a resource that the operator has granted. */
export const callResource = (name: string, method: string, payload: unknown): any =>
  engine.call_resource([name, method, payload], "call", name);

const timed = <R extends { timeout?: Duration }>(request: R) =>
  request.timeout === undefined ? request : { ...request, timeout: nanoseconds(request.timeout) };

/** A request over HTTP. Set either url or path. */
export interface HTTPRequest {
  method?: string; // default: GET
  url?: string;
  path?: string; // relative to the resource's base_url
  query?: { [name: string]: string };
  headers?: { [name: string]: string };
  body?: Uint8Array | string;
  timeout?: Duration; // at most the resource's timeout
  /** Makes an answer with a status outside of 200 to 299 an error. */
  expect_success?: boolean;
}

/** An answer over HTTP. */
export class HTTPResponse {
  /** @internal */
  constructor(readonly status: number, readonly headers: { [name: string]: string[] }, readonly body: Uint8Array) {}

  /** Returns the first value of a header, or "". */
  header(name: string): string { return this.headers[name.toLowerCase()]?.[0] ?? ""; }
  /** Returns the body as text. */
  text(): string { return engine.utf8Decode(this.body, false); }
  /** Returns the value of a body in JSON. */
  json(): any { return JSON.parse(this.text()); }
}

/** A granted resource of the kind "http". */
export class HTTP {
  /** @internal */
  constructor(private readonly name: string) {}

  /** Makes a request and returns the answer, whatever its status. */
  async do(request: HTTPRequest): Promise<HTTPResponse> {
    const body = typeof request.body === "string" ? engine.utf8Encode(request.body) : request.body;
    const r = callResource(this.name, "request", timed({ ...request, body }));
    return new HTTPResponse(r.status, r.headers ?? {}, r.body ?? new Uint8Array(0));
  }

  /** Makes a GET request for a URL, or for a path relative to the base_url of the resource. */
  get(where: string): Promise<HTTPResponse> { return this.do(/^https?:\/\//.test(where) ? { url: where } : { path: where }); }
}

/** A part of a conversation. */
export interface Message { role: "system" | "user" | "assistant" | "tool"; content: string }

export const system = (content: string): Message => ({ role: "system", content });
export const user = (content: string): Message => ({ role: "user", content });
export const assistant = (content: string): Message => ({ role: "assistant", content });

/** A request to a model. */
export interface ChatRequest {
  messages: Message[];
  model?: string;
  tools?: any[];
  tool_choice?: any;
  /** A JSON Schema for the answer, which value then holds. */
  schema?: object;
  temperature?: number;
  max_tokens?: number;
  stop?: string[];
  /** Writes the answer to the run's stream as it arrives. */
  stream?: boolean;
  timeout?: Duration;
}

/** A model's answer. */
export interface ChatResponse {
  content: string;
  value?: any;
  refusal?: string;
  tool_calls: { id: string; name: string; arguments: string }[];
  finish_reason: string;
  model: string;
  usage: { input_tokens: number; output_tokens: number };
}

/** A granted resource of the kind "llm". */
export class LLM {
  /** @internal */
  constructor(private readonly name: string) {}

  /** Sends a conversation to the model and returns its answer. */
  chat(...messages: Message[]): Promise<ChatResponse> { return this.do({ messages }); }

  /** Sends a request to the model and returns its answer, which is recorded. */
  async do(request: ChatRequest): Promise<ChatResponse> {
    const { temperature, ...rest } = request;
    return callResource(this.name, "chat", timed({ ...rest, ...(temperature !== undefined && { temperature: engine.float(temperature) }) }));
  }
}

/** A key, with its value if the query asked for values. */
export interface KVItem { key: string; version: number; value?: any }

/** Selects keys. */
export interface KVQuery { prefix?: string; after?: string; limit?: number; values?: boolean }

// maxUpdates bounds the attempts of update, so that a step ends whatever other runs do.
const maxUpdates = 100;

/** A granted resource of the kind "kv": values by key that all runs of the tenant share. */
export class KV {
  /** @internal */
  constructor(private readonly name: string) {}

  private call(method: string, payload: object): any { return callResource(this.name, method, payload); }

  /** Reads a key's value and version. Without a value, the version is 0 and the value undefined. */
  async get<T = any>(key: string): Promise<{ value: T | undefined; version: number }> {
    return this.call("get", { key }) ?? { value: undefined, version: 0 };
  }

  /** Sets a key's value and returns the new version. */
  async set(key: string, value: unknown): Promise<number> { return this.call("set", { key, value }).version; }

  /** Sets a key's value if its version is still the given one; otherwise the code is "conflict". */
  async setIf(key: string, version: number, value: unknown): Promise<number> {
    return this.call("set", { key, value, if_version: version }).version;
  }

  /** Adds to the whole number of a key and returns the sum. A key without a value counts as 0. */
  async increment(key: string, by = 1): Promise<number> { return this.call("increment", { key, by }).value; }

  /** Removes a key and reports whether it had a value. */
  async delete(key: string): Promise<boolean> { return this.call("delete", { key }).deleted; }

  /** Removes a key if its version is still the given one; otherwise the code is "conflict". */
  async deleteIf(key: string, version: number): Promise<void> { this.call("delete", { key, if_version: version }); }

  /** Returns a page of keys in byte order. next is the query's after for the next page; "" at the end. */
  async list(query: KVQuery = {}): Promise<{ items: KVItem[]; next: string }> {
    const page = this.call("list", query);
    return { items: page.items ?? [], next: page.next ?? "" };
  }

  /**
   * Sets a key's value to what change returns for the present value, without interference
   * from others, and returns it. If another run sets the key first, change is called again.
   */
  async update<T>(key: string, change: (value: T | undefined) => T): Promise<T> {
    for (let tries = 1; ; tries++) {
      const { value, version } = await this.get<T>(key);
      const next = change(value);
      try {
        await this.setIf(key, version, next);
        return next;
      } catch (e) {
        if (codeOf(e) !== "conflict" || tries === maxUpdates) throw e;
      }
    }
  }
}
