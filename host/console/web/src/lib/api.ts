// The public API, as the console uses it.
import type { Phase } from './format'

export type Role = 'read' | 'run' | 'deploy' | 'admin'
export type Who = { keyless: boolean; server_admin: boolean; tenant: string; role: Role; key: { id: string; name: string } | null; version: string; started_at: string }
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type Status = 'running' | 'completed' | 'failed' | 'cancelled'
export type Waiting = { step?: string; reason?: string; child?: string; resource?: string; until?: string; type?: string; waiter_id?: string; since: string; requirements?: Record<string, Json> }
export type Envelope = { type: string; value: Record<string, Json>; qualified_name: string | null; types: string[] | null }
export type Run = {
  handler_id: string; workflow_name: string; run_id: string; error: string | null; result: Envelope | null; status: Status
  started_at: string; updated_at: string; completed_at: string | null; session_id: string; version?: string; error_code?: string
  paused: boolean; blocked?: { code: string; message?: string }; waiting_for?: Waiting[]; steps: number; error_step?: string; error_remedy?: string
}
// A run in a list.
export type Row = {
  run_id: string; handler_id: string; workflow_name: string; session_id: string; status: Status; phase: Phase; waiting_for?: Waiting[]; blocked?: { code: string; message?: string }
  error_code?: string; error: string | null; result: string | null; started_at: string; completed_at: string | null; steps: number; fuel: number
  parent?: { run_id: string; step?: string }; forked_from?: { run_id: string; at: number }; retried_from?: string
}
export type RowPage = { runs: Row[]; next_cursor: string | null; prev_cursor: string | null }
export type RowFilter = { session?: string; phase?: string; workflow_name?: string; q?: string; id?: string; error_code?: string; children?: boolean; started_after?: string; cursor?: string; limit?: number }
export type Schema = {
  type?: string; title?: string; description?: string; required?: string[]; properties?: Record<string, Schema>; enum?: Json[]; const?: Json
  default?: Json; items?: Schema; minimum?: number; maximum?: number; pattern?: string
}

export type Entry = {
  seq: number; time?: string; kind: string; forkable: boolean; step?: string; invocation?: number; attempt?: number; call?: number;
  child?: { workflow_name?: string }; called?: unknown; fuel?: number; status?: Status
  events?: { type?: string; value?: Json }[]; edits?: { path: string; old?: Json; new?: Json }[]; error?: { code?: string; message?: string }; logs?: { level: number; message: string }[]
  began?: { step?: string; invocation?: number; attempt?: number }[]; retry_at?: string; wait?: { answered?: boolean; waiter_id?: string; type?: string; requirements?: Record<string, Json> }
}

// exact reads and writes JSON without rounding numbers, in browsers that can.
type Raw = { rawJSON?: (text: string) => unknown; parse(text: string, f: (key: string, value: unknown, at?: { source?: string }) => unknown): unknown }
const raw = JSON as unknown as Raw
export const exact = {
  parse: <T>(text: string): T => raw.parse(text, (_, v, at) => (typeof v === 'number' && at?.source && raw.rawJSON && !Number.isSafeInteger(v) ? raw.rawJSON(at.source) : v)) as T,
  text: (value: unknown): string => JSON.stringify(value),
}

// A long value in a page of a journal is cut.
type Cut = { cut: true; bytes: number; head: string }
const isCut = (v: unknown): v is Cut => typeof v === 'object' && v !== null && (v as Cut).cut === true && typeof (v as Cut).head === 'string' && typeof (v as Cut).bytes === 'number'
export const brief = (v: unknown): string => (isCut(v) ? `${v.head}… (${v.bytes} bytes)` : exact.text(v))
export const shortened = (e: Entry): boolean => [...(e.events ?? []).map((x) => x.value), ...(e.edits ?? []).flatMap((x) => [x.old, x.new])].some(isCut)

export type DiagramNode = {
  id: string; kind: 'step' | 'event' | 'outside' | 'ending' | 'workflow' | 'resource'; label: string; description?: string; plugin?: string; step?: string
  declared?: Record<string, Json>; config?: Record<string, Json>; parent?: string; form?: string; event_kind?: string; resource?: string; optional?: boolean
}
export type DiagramEdge = { source: string; target: string; kind: string; label?: string }
export type Diagram = { workflow: string; sha256: string; description: string; flow: boolean; nodes: DiagramNode[]; edges: DiagramEdge[] }

export type WorkflowSummary = { name: string; description: string; plugins: string[]; version: number; sha256: string; composed: boolean; flow: boolean; runs: number }

export type Session = { session_id: string; created_at: string; updated_at: string; runs: number; active: number }
export type Key = { id: string; prefix: string; tenant: string; role: Role; name: string; expires_at: string | null; last_used_at: string | null; revoked_at: string | null }
export type Tenant = { name: string; created_at: string }
export type Usage = {
  tenant: string; handlers: number; sessions: number; plugins: number; fuel: number; months: { month: string; runs_started: number; fuel: number; log_bytes: number }[]
  quotas: { name: string; limit: number | null; used: number | null }[]
}
export type Resource = { name: string; kind: string; source: 'file' | 'api'; problem?: string | null; usage: { calls: number; failed: number }[] }
export type Act = { id: number; time: string; who: string; act: string; target: string; detail: string; outcome: string }
export type ClusterNode = { name: string; state: string; owner: boolean; version: string; seen_at: string; drained: boolean; differs?: string[] }

// Work outside of the session that a fork begins again.
export type Anew = { kind: string; step?: string; workflow_name?: string; resource?: string; handler_id?: string }

export type Fault = { code?: string; message: string }
export type Plugin = { name: string; workflow: string; version: number; sha256: string; size: number; created_at: string; runs: number }
export type Uploaded = Plugin & { manifest: { steps?: { name: string; accepts?: string[]; emits?: string[] }[] }; imports: string[]; changes?: Change[]; unchanged?: boolean }
export type Change = { part: string; name?: string; change: 'added' | 'removed' | 'changed'; members?: string[] }

// Problem is an answer of the API that is an error, or a server that does not answer (status 0).
export class Problem extends Error {
  constructor(readonly status: number, message: string, readonly request: string | null = null, readonly problems: Fault[] = [], readonly nearest?: { before?: number; after?: number }) { super(message) }
}

// signedOut is called when the server wants a key.
let signedOut = () => {}
export const onSignedOut = (f: () => void) => { signedOut = f }

async function send(method: string, path: string, init: { body?: string | Blob; signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
  let res: Response
  try {
    const headers: Record<string, string> = { 'Weft-Console': '1', ...init.headers }
    if (init.body !== undefined) headers['Content-Type'] ??= typeof init.body === 'string' ? 'application/json' : 'application/wasm'
    res = await fetch(path, { method, headers, redirect: 'error', cache: 'no-store', ...(init.body === undefined ? {} : { body: init.body }), ...(init.signal ? { signal: init.signal } : {}) })
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e
    throw new Problem(0, 'The server does not answer')
  }
  return res
}

async function problem(res: Response): Promise<Problem> {
  if (res.status === 401 && !res.url.endsWith('/console/session')) signedOut()
  const text = await res.text()
  let problems: Fault[] = []
  let nearest: Problem['nearest']
  let detail = text.slice(0, 1000) || res.statusText
  try {
    const parsed = JSON.parse(text) as { detail?: unknown; problems?: Fault[]; nearest?: { before?: number; after?: number } }
    problems = parsed.problems ?? []
    nearest = parsed.nearest
    if (typeof parsed.detail === 'string') detail = parsed.detail
  } catch { /* the text is shown as it is */ }
  return new Problem(res.status, detail, res.headers.get('X-Request-Id'), problems, nearest)
}

async function json<T>(method: string, path: string, body?: string, signal?: AbortSignal, headers?: Record<string, string>): Promise<T> {
  const res = await send(method, path, { ...(body === undefined ? {} : { body }), ...(signal ? { signal } : {}), ...(headers ? { headers } : {}) })
  if (!res.ok) throw await problem(res)
  return (res.status === 204 ? undefined : await res.json()) as T
}

const id = encodeURIComponent

export type Filter = { status?: string; workflow_name?: string; q?: string; cursor?: string; limit?: number }

export const api = {
  session: () => json<{ session: 'keyless' | 'signed-in' | 'signed-out' }>('GET', '/console/session'),
  signIn: (key: string) => json<void>('POST', '/console/session', JSON.stringify({ key })),
  signOut: () => json<void>('DELETE', '/console/session'),
  whoami: () => json<Who>('GET', '/whoami'),
  workflows: (signal?: AbortSignal) => json<{ workflows: string[] }>('GET', '/workflows', undefined, signal).then((r) => r.workflows),
  workflowSummaries: (signal?: AbortSignal) => json<{ details: WorkflowSummary[] }>('GET', '/workflows?details=true', undefined, signal).then((r) => r.details),
  diagram: (name: string, version: string, signal?: AbortSignal) => json<Diagram>('GET', `/workflows/${id(name)}/graph${version ? `?version=${version}` : ''}`, undefined, signal),
  startSchema: (name: string) => json<{ start: Schema }>('GET', `/workflows/${id(name)}/schema`).then((r) => r.start),
  eventSchemas: (name: string) => json<{ events: Schema[] }>('GET', `/workflows/${id(name)}/events`).then((r) => r.events),
  // The body is a text, so that integers beyond 2^53 stay exact. The key makes a repeat harmless.
  start: (name: string, body: string, once: string) => json<Run>('POST', `/workflows/${id(name)}/run-nowait`, body, undefined, { 'Idempotency-Key': once }),
  runs: (f: Filter, signal?: AbortSignal) => {
    const q = new URLSearchParams()
    for (const [k, v] of Object.entries(f)) if (v !== undefined && v !== '') q.set(k, String(v))
    return json<{ handlers: Run[]; next_cursor: string | null }>('GET', `/handlers?${q}`, undefined, signal)
  },
  rows: (f: RowFilter, signal?: AbortSignal) => {
    const q = new URLSearchParams()
    for (const [k, v] of Object.entries(f)) if (v !== undefined && v !== '') q.set(k, String(v))
    return json<RowPage>('GET', `/runs?${q}`, undefined, signal)
  },
  counts: (signal?: AbortSignal) => json<{ counts: { workflow_name: string; phase: Phase; runs: number; children: number }[] }>('GET', '/runs/counts', undefined, signal).then((r) => r.counts),
  // A failed run is answered with 500, as LlamaIndex's server does; the body is the record all the same.
  async run(handler: string, signal?: AbortSignal): Promise<Run> {
    const res = await send('GET', `/handlers/${id(handler)}`, signal ? { signal } : {})
    if (res.ok || res.status === 500) {
      const body = (await res.clone().json()) as Partial<Run>
      if (body.handler_id && body.run_id) return body as Run
    }
    throw await problem(res)
  },
  // What the newest open questions of a run ask, newest first.
  asked: (run: string, signal?: AbortSignal) => json<{ entries: Entry[] }>('GET', `/runs/${id(run)}/journal?kind=wait&order=desc&limit=50&cut=4096`, undefined, signal).then((r) => r.entries),
  answer: (handler: string, type: string, value: string, step: string | undefined, once: string) =>
    json<unknown>('POST', `/events/${id(handler)}`, `{"event":{"type":${JSON.stringify(type)},"value":${value}}${step ? `,"step":${JSON.stringify(step)}` : ''}}`, undefined, { 'Idempotency-Key': once }),
  act: (handler: string, what: 'cancel' | 'pause' | 'resume' | 'retry') => json<Run>('POST', `/handlers/${id(handler)}/${what}`),
  sessions: (cursor: string, signal?: AbortSignal) => json<{ sessions: Session[]; next_cursor: string | null }>('GET', `/sessions?limit=100${cursor ? `&cursor=${id(cursor)}` : ''}`, undefined, signal),
  sessionOf: (session: string, signal?: AbortSignal) => json<Session>('GET', `/sessions/${id(session)}`, undefined, signal),
  // The state with the tag that says which state it is.
  async tagged(session: string, signal?: AbortSignal): Promise<{ text: string; tag: string }> {
    const res = await send('GET', `/sessions/${id(session)}/state`, signal ? { signal } : {})
    if (!res.ok) throw await problem(res)
    return { text: await res.text(), tag: res.headers.get('ETag') ?? '' }
  },
  // The state is JSON, with the numbers as they were typed. It is set only if it still is the one with the tag.
  setState: (session: string, state: string, tag: string) => json<unknown>('PATCH', `/sessions/${id(session)}/state`, `[["set","",${state}]]`, undefined, { 'If-Match': tag, 'Content-Type': 'application/vnd.weft.edits+json' }),
  usage: (tenant: string, signal: AbortSignal) => json<Usage>('GET', `/tenants/${id(tenant)}/usage`, undefined, signal),
  keys: (signal: AbortSignal) => json<{ keys: Key[] }>('GET', '/keys', undefined, signal).then((r) => r.keys),
  createKey: (name: string, role: Role) => json<Key & { key: string }>('POST', '/keys', JSON.stringify({ name, role })),
  revokeKey: (key: string) => json<unknown>('DELETE', `/keys/${id(key)}`),
  tenants: (signal: AbortSignal) => json<{ tenants: Tenant[] }>('GET', '/tenants', undefined, signal).then((r) => r.tenants),
  resources: (signal: AbortSignal) => json<{ resources: Resource[] }>('GET', '/resources', undefined, signal).then((r) => r.resources),
  audit: (cursor: string, signal?: AbortSignal) => json<{ entries: Act[]; next_cursor: string | null }>('GET', `/audit?limit=100${cursor ? `&cursor=${id(cursor)}` : ''}`, undefined, signal),
  nodes: (signal: AbortSignal) => json<{ nodes: ClusterNode[] }>('GET', '/cluster', undefined, signal).then((r) => r.nodes),
  // The server's metrics: name with labels, value and meaning. Buckets of histograms are left out.
  async metrics(signal: AbortSignal): Promise<[string, string, string][]> {
    const res = await send('GET', '/metrics', { signal })
    if (!res.ok) throw await problem(res)
    const help = new Map<string, string>(), out: [string, string, string][] = []
    for (const line of (await res.text()).split('\n')) {
      const told = /^# HELP (\S+) (.*)$/.exec(line), sample = /^(weft_\w+)(\{.*\})? (\S+)$/.exec(line)
      if (told) help.set(told[1]!, told[2]!)
      else if (sample && !sample[1]!.endsWith('_bucket')) out.push([sample[1]! + (sample[2] ?? ''), sample[3]!, help.get(sample[1]!) ?? help.get(sample[1]!.replace(/_(sum|count)$/, '')) ?? ''])
    }
    return out
  },
  plugins: () => json<{ plugins: Plugin[] }>('GET', '/plugins').then((r) => r.plugins),
  // A dry run checks the file, and stores nothing.
  async upload(name: string, file: Blob, dry: boolean): Promise<Uploaded> {
    const res = await send('PUT', `/plugins/${id(name)}${dry ? '?dry_run=true' : ''}`, { body: file })
    if (!res.ok) throw await problem(res)
    return (await res.json()) as Uploaded
  },
  // A page of a run's journal; select is of after, before and order. Long values are cut.
  async journal(run: string, select: Record<string, string>, signal: AbortSignal) {
    const res = await send('GET', `/runs/${id(run)}/journal?${new URLSearchParams({ limit: '500', cut: '1024', ...select })}`, { signal })
    if (!res.ok) throw await problem(res)
    // The positions and counts are small; values keep their numbers as they are written.
    return exact.parse<{ entries: Entry[]; next_cursor: string | null }>(await res.text())
  },
  async entry(run: string, seq: number): Promise<Entry> {
    const res = await send('GET', `/runs/${id(run)}/journal/${seq}`)
    if (!res.ok) throw await problem(res)
    return exact.parse<Entry>(await res.text())
  },
  async state(session: string, signal?: AbortSignal): Promise<string> {
    const res = await send('GET', `/sessions/${id(session)}/state`, signal ? { signal } : {})
    if (!res.ok) throw await problem(res)
    return res.text()
  },
  // The body is JSON, with the numbers as they were typed.
  fork: (run: string, body: string) => json<Run & { anew: Anew[] }>('POST', `/runs/${id(run)}/fork`, body),
  // The state of the run's session just after an entry of its journal.
  async stateAt(run: string, at: number, signal: AbortSignal): Promise<string> {
    const res = await send('GET', `/runs/${id(run)}/state?at=${at}`, { signal })
    if (!res.ok) throw await problem(res)
    return res.text()
  },
  // follow calls each for every event of the run, until the run or the signal ends.
  async follow(run: string, after: number, signal: AbortSignal, each: (e: Envelope) => void): Promise<void> {
    const res = await send('GET', `/events/${id(run)}?sse=false&after_sequence=${after}`, { signal })
    if (!res.ok || !res.body) throw await problem(res)
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = ''; ;) {
      const { value, done } = await reader.read()
      if (done) return
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.trim()) each(JSON.parse(line) as Envelope)
    }
  },
}

export const text = (e: unknown): string => (e instanceof Error ? e.message : String(e))
export const isAbort = (e: unknown): boolean => e instanceof DOMException && e.name === 'AbortError'
