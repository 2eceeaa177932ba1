import { parseTimestamp } from '../db/db.ts'
import type { Operation, Subject } from './schema.ts'

/** A change as it is matched and sent. `stack_id` is 0 for people and null for definitions. */
export type Change = {
  sequence: number
  at: string
  subject: Subject
  stack_id: number | null
  operation: Operation
  json: string
}

const peopleStackId = 0

/** The stored uuid of a record begins with the 24 digits of its `record_id`. */
const recordIdOf = (uuid: string) => uuid.replaceAll('-', '').slice(0, 24)

/** Parses the lines of a statement of sql.ts. */
export const parseChanges = (lines: string | null): Change[] =>
  lines === null ? [] : lines.split('\n').map(line => changeOf(line.split('\t')))

/** Builds a change from its fields, in the order of sql.ts. A null is an empty text. */
function changeOf(fields: string[]): Change {
  const [sequence, at, logged, stack, storedId, stack_key] = fields as [string, string, string, string, string, string]
  const [operation, version, before, after, external_id, actor, request_id] = fields.slice(6) as [
    Operation,
    ...string[],
  ]
  const stack_id = stack === '' ? null : Number(stack)
  const time = parseTimestamp(at)
  const subject = subjectOf(logged, stack_id)
  const id = stack_id === null ? storedId : `"${stack_id === peopleStackId ? storedId : recordIdOf(storedId)}"`
  const json =
    `{"sequence":${sequence},"at":"${time}","subject":"${subject}","id":${id}` +
    `,"external_id":${textOrNull(external_id)},"stack_key":${textOrNull(stack_key)},"operation":"${operation}"` +
    `,"version":${version || 'null'},"before":${before || 'null'},"after":${after || 'null'}` +
    `,"actor":${JSON.stringify(actor)},"request_id":${JSON.stringify(request_id)}}`
  return { sequence: Number(sequence), at: time, subject, stack_id, operation, json }
}

const textOrNull = (text = '') => (text === '' ? 'null' : JSON.stringify(text))

function subjectOf(logged: string, stack_id: number | null): Subject {
  if (stack_id === null) return logged as Subject
  return stack_id === peopleStackId ? 'person' : 'record'
}

const eventNames = { create: 'created', update: 'updated', delete: 'deleted', restore: 'restored' } as const

/** A change as a server-sent event (HTML Living Standard, 9.2). Its JSON has no line feed. */
export const eventOf = ({ sequence, subject, operation, json }: Change): string =>
  `id: ${sequence}\nevent: ${subject}.${eventNames[operation]}\ndata: ${json}\n\n`

const dataField = Buffer.from('\ndata: ')

/** The JSON of a change that was printed by {@link eventOf}. */
export const jsonOfEvent = (event: Buffer): string =>
  event.toString('utf8', event.indexOf(dataField) + dataField.length, event.length - 2)
