// The globals that every bundle has. The builder adds each of the others, such as url.ts, to the bundles that name it.
import { define } from "./define";
import { engine } from "./engine";
import { log } from "./context";

/** shown is a value as console shows it. */
function shown(v: any): string {
  if (typeof v === "string") return v;
  if (v instanceof Error) return [`${v.name}: ${v.message}`, ...engine.frames(v).map((f) => "    at " + f)].join("\n");
  if (typeof v === "object" && v !== null) {
    try {
      return JSON.stringify(v, (_, x) => (typeof x === "bigint" ? x + "n" : x)) ?? String(v);
    } catch {
      return Object.prototype.toString.call(v);
    }
  }
  return typeof v === "bigint" ? v + "n" : String(v);
}

const at = (level: number) => (...list: any[]) => {
  if (typeof list[0] === "string" && list.length > 1) {
    const [form, ...rest] = list;
    list = [form.replace(/%[sdifjoO%]/g, (m: string) => (m === "%%" ? "%" : rest.length > 0 ? shown(rest.shift()) : m)), ...rest];
  }
  log(level, list.map(shown).join(" "));
};

if (engine) {
  const info = at(0), debug = at(-4), error = at(8);
  define("console", {
    log: info, info, debug, trace: debug, dir: info, warn: at(4), error,
    assert: (ok: any, ...list: any[]) => { if (!ok) error("assertion failed", ...list); },
  });
}
