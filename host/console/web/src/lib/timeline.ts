// The states of a session, entry by entry of its journal. It only computes.
import type { Entry, Json } from './api'

// segments takes a path apart: user.name, list.0.
const segments = (path: string): string[] => (path === '' ? [] : path.split('.'))

// A journal quotes keys that no path can name, and cuts long ones: such a path says no place.
const places = (path: string): boolean => !path.includes('"') && path.length < 200

type Tree = Json | { rawJSON: string }
const isMap = (v: unknown): v is Record<string, Tree> => typeof v === 'object' && v !== null && !Array.isArray(v)

// set returns the tree with a value at a path; undefined deletes what is there. It copies
// the containers on the path, so that the tree before stays as it is.
function set(tree: Tree, path: string[], value: Tree | undefined): Tree {
  const [key, ...rest] = path
  if (key === undefined) return value ?? {}
  if (Array.isArray(tree)) {
    const copy: Tree[] = [...tree], at = Number(key)
    if (rest.length === 0 && value === undefined) copy.splice(at, 1)
    else copy[at] = set(copy[at] ?? {}, rest, value)
    return copy as Json
  }
  const copy: Record<string, Tree> = Object.assign(Object.create(null) as object, isMap(tree) ? tree : {})
  if (rest.length === 0 && value === undefined) delete copy[key]
  else copy[key] = set(copy[key] ?? {}, rest, value)
  return copy as Json
}

// whole reports whether the entries are all of their session from its beginning: then their
// edits give its state, if each path is written in full. The entries of other runs of a session are not in a run's journal.
export const whole = (entries: Entry[]): boolean => entries.every((e, i) => e.seq === i + 1 && (e.edits ?? []).every((x) => places(x.path)))

// stateAt returns the state just after an entry.
export function stateAt(entries: Entry[], seq: number): Tree {
  let tree: Tree = {}
  for (const e of entries) {
    if (e.seq > seq) break
    for (const edit of e.edits ?? []) tree = set(tree, segments(edit.path), edit.new)
  }
  return tree
}

// says is what happened in an entry, in a few words.
export function says(e: Entry): string {
  const parts: string[] = []
  if (e.step) parts.push(`${e.step}${e.invocation ? ` #${e.invocation}` : ''}${e.attempt && e.attempt > 1 ? ` try ${e.attempt}` : ''}`)
  for (const x of e.events ?? []) if (x.type) parts.push(x.type)
  if (e.error) parts.push(`${e.error.code ?? 'error'}: ${e.error.message ?? ''}`)
  if (e.status) parts.push(e.status)
  return parts.join(' · ')
}
