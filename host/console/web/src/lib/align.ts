// Two runs side by side, entry by entry of their journals. It only computes.
import type { Entry } from './api'

// Row is one line of a comparison. An entry without a counterpart stands alone.
export type Row = { a?: Entry; b?: Entry; differs: string[] }

// Ids of the runs and of what they make are no difference.
export type Names = { run_id: string; handler_id: string; session_id: string }

const most = 1000 // entries without a counterpart that are looked for

// keys says of each entry what it is in its run: the kind, and for what a step did also the
// step, its first, second or later invocation, the attempt and the call.
function keys(list: Entry[], before: Entry[]): string[] {
  const seen: Record<string, number[]> = Object.create(null) as Record<string, number[]>
  const key = (e: Entry): string => {
    if (!e.step || !e.invocation) return e.kind
    const of = (seen[e.step] ??= [])
    if (!of.includes(e.invocation)) of.push(e.invocation)
    return [e.kind, e.step, of.indexOf(e.invocation), e.attempt ?? 1, e.call ?? 0].join('|')
  }
  before.forEach(key)
  return list.map(key)
}

// parts of an entry that can differ.
const parts: Record<string, (e: Entry) => unknown> = {
  events: (e) => (e.kind === 'post' ? null : e.events),
  answer: (e) => (e.kind === 'post' ? e.events : null),
  edits: (e) => e.edits,
  error: (e) => e.error,
  outcome: (e) => e.status,
  wait: (e) => e.wait && [e.wait.type, e.wait.requirements],
  child: (e) => e.child?.workflow_name,
  call: (e) => e.called,
}

function differs(a: Entry, b: Entry, of: Names, to: Names): string[] {
  const text = (v: unknown, n: Names) => {
    let s = JSON.stringify(v ?? null)
    // A short id, which a person chose, may be a part of any word: it is replaced alone.
    for (const id of [n.run_id, n.handler_id, n.session_id]) if (id) s = s.replaceAll(id.length < 10 ? JSON.stringify(id) : JSON.stringify(id).slice(1, -1), id.length < 10 ? '"·"' : '·')
    return s
  }
  return Object.keys(parts).filter((name) => text(parts[name]!(a), of) !== text(parts[name]!(b), to))
}

// pairs finds the longest common subsequence of two lists of keys (the algorithm of Myers), as
// positions in both. Beyond so many differences the rest has no pairs.
export function pairs(a: string[], b: string[]): [number, number][] {
  let x = 0
  while (x < a.length && x < b.length && a[x] === b[x]) x++
  const start = x, n = a.length - start, m = b.length - start
  const out: [number, number][] = Array.from({ length: start }, (_, i) => [i, i])
  const far: Int32Array[] = []
  let v: Int32Array = new Int32Array(2 * most + 3)
  let at = -1
  search: for (let d = 0; d <= Math.min(n + m, most); d++) {
    far.push(v.slice())
    for (let k = -d; k <= d; k += 2) {
      let i = k === -d || (k !== d && v[most + k]! < v[most + k + 2]!) ? v[most + k + 2]! : v[most + k]! + 1
      let j = i - k
      while (i < n && j < m && a[start + i] === b[start + j]) { i++; j++ }
      v[most + 1 + k] = i
      if (i >= n && j >= m) { at = d; break search }
    }
  }
  if (at < 0) return out
  const found: [number, number][] = []
  for (let d = at, i = n, j = m; d >= 0; d--) {
    v = far[d]!
    const k = i - j
    const down = k === -d || (k !== d && v[most + k]! < v[most + k + 2]!)
    const pk = down ? k + 1 : k - 1
    const pi = d === 0 ? 0 : v[most + 1 + pk]!, pj = d === 0 ? 0 : pi - pk
    const from = d === 0 ? 0 : down ? pi : pi + 1
    while (i > from) { i--; j--; found.push([start + i, start + j]) }
    i = pi; j = pj
  }
  return [...out, ...found.reverse()]
}

// align puts the entries of two runs of a workflow side by side. If b is a fork of a, before
// are the entries of a that both have, and a begins after them.
export function align(a: Entry[], b: Entry[], of: Names, to: Names, before: Entry[] = []): Row[] {
  const rows: Row[] = []
  let i = 0, j = 0
  const alone = (x: number, y: number) => {
    for (; i < x; i++) rows.push({ a: a[i]!, differs: ['only in a'] })
    for (; j < y; j++) rows.push({ b: b[j]!, differs: ['only in b'] })
  }
  for (const [x, y] of pairs(keys(a, before), keys(b, before))) {
    alone(x, y)
    rows.push({ a: a[i]!, b: b[j]!, differs: differs(a[i]!, b[j]!, of, to) })
    i++; j++
  }
  alone(a.length, b.length)
  return rows
}
