import type { Json, Row, Run, Waiting } from './api'

// Characters that change how text is shown are shown by their numbers.
// eslint-disable-next-line no-control-regex
const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g
export const plain = (s: string): string => s.replace(odd, (c) => `<U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`)
export const cut = (s: string, most = 200): string => plain(s.length > most ? s.slice(0, most) + '…' : s)

export type Phase = 'queued' | 'running' | 'waiting' | 'sleeping' | 'paused' | 'blocked' | 'completed' | 'failed' | 'cancelled'
export function phase(r: Run): Phase {
  if (r.status !== 'running') return r.status
  if (r.blocked) return 'blocked'
  if (r.paused) return 'paused'
  return r.waiting_for?.length ? 'waiting' : 'running'
}

export function took(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`
  return `${Math.floor(ms / 86_400_000)} d ${Math.floor((ms % 86_400_000) / 3_600_000)} h`
}
export const duration = (r: Pick<Run, 'started_at' | 'completed_at'>, now: number): string => took((r.completed_at ? Date.parse(r.completed_at) : now) - Date.parse(r.started_at))

export function when(iso: string, now: number): string {
  const d = new Date(iso)
  const clock = d.toLocaleTimeString('en-GB')
  return now - d.getTime() < 86_400_000 ? clock : `${d.toLocaleDateString('en-CA')} ${clock}`
}

export function waits(w: Waiting): string {
  if (w.child) return `the run of ${w.child}`
  if (w.resource) return `the resource ${w.resource}`
  if (w.reason === 'retry') return `the next try of ${w.step ?? 'a step'}`
  if (w.reason === 'session') return 'its turn in the session'
  if (w.type) return `${w.type}${w.waiter_id ? ` for ${w.waiter_id}` : ''}`
  return w.until ? `a time, ${w.until.replace('T', ' ').slice(0, 19)} UTC` : 'something'
}

// question reports whether a person can answer the wait by an event.
export const question = (w: Waiting): boolean => !!w.type && !w.child && !w.resource && !w.reason && !w.until

export function summary(r: Run): string {
  if (r.blocked) return `${r.blocked.code}: ${r.blocked.message ?? ''}`
  if (r.error) return `${r.error_code ? r.error_code + ': ' : ''}${r.error}`
  if (r.waiting_for?.length) return 'waits for ' + r.waiting_for.map(waits).join(', ')
  return r.result ? compact(r.result.value) : ''
}
// rowSummary is what a row says last: what the run waits for, its error, or its result.
export function rowSummary(r: Row): string {
  if (r.blocked) return `${r.blocked.code}: ${r.blocked.message ?? ''}`
  if (r.error) return `${r.error_code ? r.error_code + ': ' : ''}${r.error}`
  if (r.waiting_for?.length) return 'waits for ' + r.waiting_for.map(waits).join(', ')
  return r.result === '{}' ? '' : r.result ?? ''
}
// units shows a count of fuel in thousands, millions and so on.
export function units(n: number): string {
  if (n < 1000) return String(n)
  const at = Math.min(4, Math.floor((String(Math.floor(n)).length - 1) / 3))
  const v = n / 1000 ** at
  return `${v < 9.95 ? v.toFixed(1) : Math.round(v)} ${['', 'k', 'M', 'G', 'T'][at]}`
}
export function compact(value: unknown): string {
  const s = JSON.stringify(value)
  return s === '{}' ? '' : s
}

// pretty indents a text of JSON without reading its numbers, which may be beyond 2^53. Text
// to be edited stays as it is if safe is false.
export function pretty(text: string, safe = true): string {
  let out = '', depth = 0
  const line = () => '\n' + '  '.repeat(depth)
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (c === '"') {
      const start = i
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === '\\') i++
      out += text.slice(start, i + 1)
    } else if (c === '{' || c === '[') {
      const close = c === '{' ? '}' : ']'
      const rest = /^\s*/.exec(text.slice(i + 1))![0].length
      if (text[i + 1 + rest] === close) { out += c + close; i += 1 + rest } else { depth++; out += c + line() }
    } else if (c === '}' || c === ']') { depth--; out += line() + c }
    else if (c === ',') out += c + line()
    else if (c === ':') out += ': '
    else if (!/\s/.test(c)) out += c
  }
  return safe ? plain(out) : out
}

// prompt is what a question says to a person: the text of its event, and its other members as JSON.
export function prompt(value: Json): string {
  if (typeof value === 'string') return value
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return JSON.stringify(value)
  const { prefix, ...rest } = value
  if (typeof prefix !== 'string') return compact(value)
  const more = compact(rest)
  return more ? `${prefix}\n${more}` : prefix
}

export const size = (n: number): string => (n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KB` : n < 1 << 30 ? `${(n / (1 << 20)).toFixed(1)} MB` : `${(n / (1 << 30)).toFixed(1)} GB`)
