// Event, EventTarget, AbortController and AbortSignal.
import { define } from "./define";

class Event {
  defaultPrevented = false;
  target: any = null;
  currentTarget: any = null;
  readonly timeStamp = performance.now();
  /** @internal */
  ended = false;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  constructor(readonly type: string, options: { bubbles?: boolean; cancelable?: boolean } = {}) {
    this.type = String(type);
    this.bubbles = Boolean(options.bubbles);
    this.cancelable = Boolean(options.cancelable);
  }
  preventDefault() { if (this.cancelable) this.defaultPrevented = true; }
  stopPropagation() {}
  stopImmediatePropagation() { this.ended = true; }
}

class CustomEvent extends Event {
  readonly detail: any;
  constructor(type: string, options: { bubbles?: boolean; cancelable?: boolean; detail?: any } = {}) {
    super(type, options);
    this.detail = options.detail ?? null;
  }
}

interface Listener { type: string; call: any; once: boolean; gone?: boolean }

class EventTarget {
  #list: Listener[] = [];
  addEventListener(type: string, call: any, options: any = {}) {
    if (call == null || options?.signal?.aborted || this.#list.some((l) => l.type === type && l.call === call)) return;
    this.#list.push({ type, call, once: Boolean(options?.once) });
    options?.signal?.addEventListener("abort", () => this.removeEventListener(type, call));
  }
  removeEventListener(type: string, call: any) {
    this.#list = this.#list.filter((l) => (l.type === type && l.call === call ? !(l.gone = true) : true));
  }
  dispatchEvent(ev: Event): boolean {
    ev.target = ev.currentTarget = this;
    const own = (this as any)["on" + ev.type];
    if (typeof own === "function") own.call(this, ev);
    for (const l of this.#list) {
      if (l.type !== ev.type || l.gone || ev.ended) continue;
      if (l.once) this.removeEventListener(l.type, l.call);
      if (typeof l.call === "function") l.call.call(this, ev);
      else l.call.handleEvent(ev);
    }
    ev.currentTarget = null;
    return !ev.defaultPrevented;
  }
}

let making = false;
let abort: (signal: AbortSignal, reason: unknown) => void;

class AbortSignal extends EventTarget {
  onabort: any = null;
  #aborted = false;
  #reason: any;
  constructor() {
    super();
    if (!making) throw new TypeError("use AbortController, AbortSignal.abort, AbortSignal.timeout or AbortSignal.any");
  }
  static {
    abort = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason === undefined ? new DOMException("the operation was aborted", "AbortError") : reason;
      signal.dispatchEvent(new Event("abort"));
    };
  }
  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  throwIfAborted() { if (this.#aborted) throw this.#reason; }
  static abort(reason?: unknown): AbortSignal {
    const s = signal();
    abort(s, reason);
    return s;
  }
  static timeout(ms: number): AbortSignal {
    const s = signal();
    setTimeout(() => abort(s, new DOMException("the time is over", "TimeoutError")), ms);
    return s;
  }
  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const s = signal(), list = [...signals], first = list.find((x) => x.aborted);
    if (first) abort(s, first.reason);
    else for (const x of list) x.addEventListener("abort", () => abort(s, x.reason));
    return s;
  }
}

function signal(): AbortSignal {
  making = true;
  try {
    return new AbortSignal();
  } finally {
    making = false;
  }
}

class AbortController {
  readonly signal = signal();
  abort(reason?: unknown) { abort(this.signal, reason); }
}

for (const [name, value] of Object.entries({ Event, CustomEvent, EventTarget, AbortSignal, AbortController })) define(name, value);
