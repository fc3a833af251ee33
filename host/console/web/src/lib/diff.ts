// What is different between two values of JSON. It only computes.
export type Difference = { path: string; old?: unknown; new?: unknown }

// A number that would lose digits is kept as its text, in an object of the browser's.
const isMap = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v) && !(Object.isFrozen(v) && 'rawJSON' in v)

// diff lists the paths that differ, in the order of the first value. most bounds the list.
export function diff(a: unknown, b: unknown, most = 1000): Difference[] {
  const out: Difference[] = []
  const walk = (path: string, x: unknown, y: unknown) => {
    if (out.length >= most || x === y) return
    const inside = (key: string) => (path ? `${path}.` : '') + key.replaceAll('.', '\\.')
    if (isMap(x) && isMap(y)) {
      for (const key of new Set([...Object.keys(x), ...Object.keys(y)])) walk(inside(key), Object.hasOwn(x, key) ? x[key] : undefined, Object.hasOwn(y, key) ? y[key] : undefined)
    } else if (Array.isArray(x) && Array.isArray(y)) {
      for (let i = 0; i < Math.max(x.length, y.length); i++) walk(inside(String(i)), x[i], y[i])
    } else if (JSON.stringify(x) !== JSON.stringify(y)) {
      out.push({ path, ...(x === undefined ? {} : { old: x }), ...(y === undefined ? {} : { new: y }) })
    }
  }
  walk('', a, b)
  return out
}
