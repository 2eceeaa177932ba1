import { peopleStackId } from '../organizations/definitions.ts'

/** A change of the log as the sender reads it. `before` and `after` are JSON text. */
export type LoggedChange = {
  sequence: number
  type: string
  at: string
  subject: string
  stack_id: number | null
  entity_id: string | null
  definition_id: number | null
  external_id: string | null
  stack_key: string | null
  operation: string
  version: number | null
  before: string | null
  after: string | null
  actor: string
  request_id: string
}

const recordIdDigits = 24

/** The internal identifier as reads show it. */
function idOf({ stack_id, entity_id, definition_id }: LoggedChange): string | number | null {
  if (entity_id === null) return definition_id
  return stack_id === peopleStackId ? entity_id : entity_id.replaceAll('-', '').slice(0, recordIdDigits)
}

const subjectOf = ({ subject, stack_id }: LoggedChange) =>
  subject !== 'entity' ? subject : stack_id === peopleStackId ? 'person' : 'record'

/**
 * The JSON of a change as the feed shows it. `before` and `after` go through as they are stored. With `ids`, it has no values: also
 * no external identifier, which may be an email address.
 */
function changeJson(change: LoggedChange, payload: 'full' | 'ids'): string {
  const { sequence, at, external_id, stack_key, operation, version, before, after, actor, request_id } = change
  const members = (fields: object) => JSON.stringify(fields).slice(1, -1)
  const identified = { sequence, at, subject: subjectOf(change), id: idOf(change) }
  if (payload === 'ids') return `{${members({ ...identified, stack_key, operation, version })}}`
  return (
    `{${members({ ...identified, external_id, stack_key, operation, version })}` +
    `,"before":${before ?? 'null'},"after":${after ?? 'null'},${members({ actor, request_id })}}`
  )
}

/** The body of a request, in the form of Standard Webhooks. */
export function bodyOf(change: LoggedChange, payload: 'full' | 'ids'): string {
  const { type, at } = change
  return `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(at)},"data":${changeJson(change, payload)}}`
}
