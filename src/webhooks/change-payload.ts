import type { LoggedChange } from '../changes/change-json.ts'

/**
 * The body of a request, in the form of Standard Webhooks. With `ids`, it has no values: also no external identifier, which may be
 * an email address.
 */
export function bodyOf(type: string, { at, json }: LoggedChange, payload: 'full' | 'ids'): string {
  const data = payload === 'full' ? json : reduceToIds(json)
  return `{"type":${JSON.stringify(type)},"timestamp":"${at}","data":${data}}`
}

function reduceToIds(json: string): string {
  const { sequence, at, subject, id, stack_key, operation, version } = JSON.parse(json)
  return JSON.stringify({ sequence, at, subject, id, stack_key, operation, version })
}
