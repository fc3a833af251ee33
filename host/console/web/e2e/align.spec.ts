// How two journals are put side by side, and what is different between two values.
import { align, pairs } from '../src/lib/align'
import type { Entry } from '../src/lib/api'
import { diff } from '../src/lib/diff'
import { expect, test } from '@playwright/test'

const a = { run_id: 'run-aaaaaaaa', handler_id: 'a', session_id: 'session-of-a' }, b = { run_id: 'run-bbbbbbbb', handler_id: 'b', session_id: 'session-of-b' }
const of = (...list: [string, Partial<Entry>?][]): Entry[] => list.map(([kind, e], i) => ({ seq: i + 1, kind, forkable: true, ...e }))
const shown = (rows: ReturnType<typeof align>) => rows.map((r) => `${r.a?.seq ?? '-'} ${r.b?.seq ?? '-'} ${r.differs.join(',') || '='}`)

test('a run is the same as itself, and ids are no difference', () => {
  const list = (n: typeof a) => of(['start', { run_id: n.run_id, events: [{ type: 'StartEvent', value: { by: n.handler_id, of: `${n.run_id} in ${n.session_id}!` } }] } as Partial<Entry>], ['finish', { step: 's', invocation: 1 }])
  expect(shown(align(list(a), list(b), a, b))).toEqual(['1 1 =', '2 2 ='])
})

test('answers, edits, errors and outcomes that differ are named', () => {
  const x = of(['post', { events: [{ type: 'A', value: { approved: true } }] }], ['edit', { step: 's', invocation: 3, call: 1, edits: [{ path: 'n', old: 1, new: 2 }] }], ['finish', { step: 's', invocation: 3, status: 'completed' }])
  const y = of(['post', { events: [{ type: 'A', value: { approved: false } }] }], ['edit', { step: 's', invocation: 9, call: 1, edits: [{ path: 'n', old: 1, new: 3 }] }], ['finish', { step: 's', invocation: 9, status: 'failed', error: { code: 'timeout' } }])
  expect(shown(align(x, y, a, b))).toEqual(['1 1 answer', '2 2 edits', '3 3 error,outcome'])
})

test('entries that only one run has stand alone, and the rest stays aligned', () => {
  const edit = (step: string, invocation: number, call: number): [string, Partial<Entry>] => ['edit', { step, invocation, call }]
  const x = of(['start'], edit('s', 1, 1), edit('s', 1, 2), edit('t', 2, 1), ['finish', { step: 't', invocation: 2 }])
  const y = of(['start'], edit('s', 1, 1), edit('u', 2, 1), edit('t', 3, 1), ['finish', { step: 't', invocation: 3 }], ['patch'])
  expect(shown(align(x, y, a, b))).toEqual(['1 1 =', '2 2 =', '3 - only in a', '- 3 only in b', '4 4 =', '5 5 =', '- 6 only in b'])
})

test('a fork counts the invocations of its origin', () => {
  const past = of(['start'], ['finish', { step: 's', invocation: 1 }])
  const x = of(['finish', { step: 's', invocation: 2 }]), y = of(['finish', { step: 's', invocation: 2 }])
  expect(shown(align(x, y, a, b, past))).toEqual(['1 1 ='])
})

test('the longest common subsequence is found, for any two lists', () => {
  let seed = 7
  const random = (n: number) => { seed = (seed * 48271) % 2147483647; return seed % n }
  for (let round = 0; round < 300; round++) {
    const [x, y] = [0, 0].map(() => Array.from({ length: random(14) }, () => 'abc'[random(3)]!)) as [string[], string[]]
    const found = pairs(x, y)
    let [i, j] = [-1, -1]
    for (const [p, q] of found) {
      expect(x[p]).toBe(y[q])
      expect(p > i && q > j).toBe(true)
      ;[i, j] = [p, q]
    }
    const best = Array.from({ length: x.length + 1 }, () => new Array<number>(y.length + 1).fill(0))
    for (let p = x.length - 1; p >= 0; p--) for (let q = y.length - 1; q >= 0; q--) best[p]![q] = x[p] === y[q] ? best[p + 1]![q + 1]! + 1 : Math.max(best[p + 1]![q]!, best[p]![q + 1]!)
    expect(found.length, `${x.join('')} ${y.join('')}`).toBe(best[0]![0])
  }
})

test('ten thousand entries are aligned, and two runs with nothing in common are bounded', () => {
  const long = Array.from({ length: 10_000 }, (_, i) => `k${i % 97}`)
  expect(pairs(long, [...long.slice(0, 5000), 'new', ...long.slice(5001)]).length).toBe(9999)
  expect(pairs(long, long.map((k) => `${k}x`))).toEqual([])
})

test('differences of values name the paths', () => {
  expect(diff({ a: 1, b: { c: [1, 2], 'd.e': 'x' } }, { a: 1, b: { c: [1, 3, 4] }, f: null })).toEqual([
    { path: 'b.c.1', old: 2, new: 3 }, { path: 'b.c.2', new: 4 }, { path: 'b.d\\.e', old: 'x' }, { path: 'f', new: null },
  ])
  expect(diff({ x: [{}] }, { x: [{}] })).toEqual([])
  expect(diff([], {})).toEqual([{ path: '', old: [], new: {} }])
})
