// Fields of a form that a JSON Schema describes. A value is kept as the text that was
// typed, and becomes JSON at the end: so no integer is rounded.
import type { Json, Schema } from './api'

export type Kind = 'text' | 'integer' | 'number' | 'boolean' | 'choice' | 'json'
export type Field = { name: string; kind: Kind; required: boolean; help: string; choices: Json[]; value: string; fixed: boolean }

function kindOf(s: Schema): Kind {
  if (s.enum) return 'choice'
  switch (s.type) {
    case 'string': return 'text'
    case 'integer': return 'integer'
    case 'number': return 'number'
    case 'boolean': return 'boolean'
  }
  return 'json'
}

// fields lists the fields of a schema's object. Those in fixed have their value already.
export function fields(schema: Schema, fixed: Record<string, Json> = {}): Field[] {
  const properties = { ...schema.properties }
  for (const name of Object.keys(fixed)) properties[name] ??= {}
  return Object.entries(properties).map(([name, s]) => {
    const kind = kindOf(s), given = name in fixed ? fixed[name] : s.default ?? s.const
    let value = given === undefined ? '' : kind === 'text' ? String(given) : JSON.stringify(given)
    if (kind === 'boolean' && value === '') value = 'false'
    if (kind === 'choice' && value === '' && schema.required?.includes(name)) value = JSON.stringify(s.enum![0])
    return { name, kind, required: schema.required?.includes(name) ?? false, help: s.description ?? '', choices: s.enum ?? [], value, fixed: name in fixed }
  })
}

// check says what is wrong with a field, or nothing.
export function check(f: Field): string {
  if (f.value.trim() === '') return f.required && f.kind !== 'text' ? 'is required' : ''
  switch (f.kind) {
    case 'integer': return /^-?(0|[1-9]\d*)$/.test(f.value.trim()) ? '' : 'must be a whole number'
    case 'number': return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(f.value.trim()) ? '' : 'must be a number'
    case 'json':
      try { JSON.parse(f.value) } catch { return 'must be JSON' }
  }
  return ''
}

// body returns the object as a text of JSON. Empty fields that are not required are left out.
export function body(list: Field[]): string {
  const parts = list.filter((f) => f.required || f.fixed || f.value.trim() !== '')
  return '{' + parts.map((f) => JSON.stringify(f.name) + ':' + (f.kind === 'text' ? JSON.stringify(f.value) : f.value.trim())).join(',') + '}'
}

// blame finds the field that a message of the server is about: "start_event.items: is required".
export function blame(list: Field[], message: string): { field: string; message: string } | null {
  const m = /^(?:start_event|event\.value|event|value)?\.?([A-Za-z_][\w-]*)[^:]*: (.*)$/s.exec(message)
  return m && list.some((f) => f.name === m[1]) ? { field: m[1]!, message: m[2]! } : null
}
