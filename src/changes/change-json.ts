import type { Operation, Subject } from './schema.ts'

/** A change as it is matched and sent. `stack_id` is 0 for people and null for definitions. */
export type LoggedChange = {
  sequence: number
  at: string
  subject: Subject
  stack_id: number | null
  operation: Operation
  json: string
}

/** The fields of a line, in the order of sql.ts. A null is an empty text. */
type LineFields = [
  sequence: string,
  at: string,
  subject: string,
  stack: string,
  id: string,
  stack_key: string,
  operation: Operation,
  version: string,
  before: string,
  after: string,
  links: string,
  external_id: string,
  actor: string,
  request_id: string,
  segments?: string,
]

const fieldsOf = (line: string) => line.split('\t') as LineFields

const peopleStack = '0'

/** The stored uuid of a record begins with the 24 digits of its `record_id`. */
const recordIdOf = (uuid: string) => uuid.replaceAll('-', '').slice(0, 24)

/** A page of changes as the statements of sql.ts return it. `last` is the number of the last change that matched. */
export type ChangePage = { matched: number; count: number; last: number | null; lines: string | null }

/** Parses the lines of a statement of sql.ts. */
export const parseChanges = (lines: string | null): LoggedChange[] =>
  lines === null ? [] : lines.split('\n').map(changeOf)

/** Prints the lines of a statement of sql.ts as lines of JSON. */
export function printLines(lines: string): string {
  let printed = ''
  for (const line of lines.split('\n')) printed += `${jsonOf(fieldsOf(line))}\n`
  return printed
}

function changeOf(line: string): LoggedChange {
  const fields = fieldsOf(line)
  const [sequence, at, logged, stack, , , operation] = fields
  const stack_id = stack === '' ? null : Number(stack)
  return {
    sequence: Number(sequence),
    at: timeOf(at),
    subject: subjectOf(logged, stack),
    stack_id,
    operation,
    json: jsonOf(fields),
  }
}

function jsonOf(fields: LineFields): string {
  const [
    sequence,
    at,
    logged,
    stack,
    storedId,
    stack_key,
    operation,
    version,
    before,
    after,
    links,
    external_id,
    actor,
    request_id,
    segments,
  ] = fields
  const id = stack === '' ? storedId : `"${stack === peopleStack ? storedId : recordIdOf(storedId)}"`
  return (
    `{"sequence":${sequence},"at":"${timeOf(at)}","subject":"${subjectOf(logged, stack)}","id":${id}` +
    `,"external_id":${textOrNull(external_id)},"stack_key":${textOrNull(stack_key)},"operation":"${operation}"` +
    `,"version":${version || 'null'},"before":${before || 'null'},"after":${after || 'null'},"links":${links || 'null'}` +
    `,"actor":${JSON.stringify(actor)},"request_id":${JSON.stringify(request_id)}` +
    `${segments === undefined ? '' : `,"segments":${segments}`}}`
  )
}

/**
 * RFC 3339 with milliseconds, from PostgreSQL's ISO text in UTC. The year of a change has four digits, so this takes a fifth of
 * the time of `parseTimestamp`, which took a sixth of a line.
 */
const timeOf = (at: string) => `${at.slice(0, 10)}T${at.slice(11, 19)}.${at.slice(20, -3).padEnd(3, '0').slice(0, 3)}Z`

const textOrNull = (text: string) => (text === '' ? 'null' : JSON.stringify(text))

function subjectOf(logged: string, stack: string): Subject {
  if (stack === '') return logged as Subject
  return stack === peopleStack ? 'person' : 'record'
}

const eventNames = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  restore: 'restored',
  merge: 'merged',
  unmerge: 'unmerged',
  erase: 'erased',
} as const

/** A change as a server-sent event (HTML Living Standard, 9.2). Its JSON has no line feed. */
export const eventOf = ({ sequence, subject, operation, json }: LoggedChange): string =>
  `id: ${sequence}\nevent: ${subject}.${eventNames[operation]}\ndata: ${json}\n\n`

const dataField = Buffer.from('\ndata: ')

/** The JSON of a change that was printed by {@link eventOf}. */
export const jsonOfEvent = (event: Buffer): string =>
  event.toString('utf8', event.indexOf(dataField) + dataField.length, event.length - 2)
