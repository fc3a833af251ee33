// What the steps of a run have done up to an entry of its journal. It only computes.
import type { Entry } from './api'

export type Load = { invocations: number; done: number; running: number; waiting: number; failed: number; retries: number; fuel: number; time: number }

const waits = new Set(['wait', 'sleep', 'child', 'resource'])

// loads is what each step has done in the entries, by its name.
export function loads(entries: Entry[]): Map<string, Load> {
  const out = new Map<string, Load>()
  const of = (step: string) => {
    let l = out.get(step)
    if (!l) out.set(step, (l = { invocations: 0, done: 0, running: 0, waiting: 0, failed: 0, retries: 0, fuel: 0, time: 0 }))
    return l
  }
  const open = new Map<string, { step: string; waiting: boolean; since: number }>()
  // A step's time is what passes while its invocations do not wait.
  const spend = (o: { step: string; waiting: boolean; since: number }, time: string | undefined) => {
    const now = Date.parse(time ?? '')
    if (!o.waiting && now > o.since) of(o.step).time += now - o.since
    if (now) o.since = now
  }
  const key = (x: { step?: string; invocation?: number }) => `${x.invocation ?? 0} ${x.step ?? ''}`
  for (const e of entries) {
    if (e.step) {
      const l = of(e.step)
      l.fuel += e.fuel ?? 0
      const known = open.get(key(e))
      if (known) {
        spend(known, e.time)
        known.waiting = waits.has(e.kind) && !e.wait?.answered
      }
      if (e.kind === 'finish') {
        open.delete(key(e))
        if (!e.error) l.done++
        else if (e.retry_at === undefined) l.failed++
      }
    }
    for (const b of e.began ?? []) {
      if (!b.step) continue
      if ((b.attempt ?? 1) > 1) of(b.step).retries++
      else of(b.step).invocations++
      open.set(key(b), { step: b.step, waiting: false, since: Date.parse(e.time ?? '') })
    }
    if (e.status && e.status !== 'running') open.clear()
  }
  for (const { step, waiting } of open.values()) of(step)[waiting ? 'waiting' : 'running']++
  return out
}

// heat is how much of all fuel, or of all time, a step has taken, in five levels; 0: nothing.
export function heat(part: number, all: number): number {
  if (part <= 0 || all <= 0) return 0
  const share = part / all
  return share > 0.5 ? 5 : share > 0.3 ? 4 : share > 0.15 ? 3 : share > 0.05 ? 2 : 1
}
