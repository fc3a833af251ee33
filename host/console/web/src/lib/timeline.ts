// What the entries of a journal say. It only computes.
import type { Entry } from './api'

// says is what happened in an entry, in a few words.
export function says(e: Entry): string {
  const parts: string[] = []
  if (e.step) parts.push(`${e.step}${e.invocation ? ` #${e.invocation}` : ''}${e.attempt && e.attempt > 1 ? ` try ${e.attempt}` : ''}`)
  for (const x of e.events ?? []) if (x.type) parts.push(x.type)
  if (e.error) parts.push(`${e.error.code ?? 'error'}: ${e.error.message ?? ''}`)
  if (e.status) parts.push(e.status)
  return parts.join(' · ')
}
