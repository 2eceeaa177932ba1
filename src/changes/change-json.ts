import type { Reading } from '../db/context.ts'
import { type Operation, operationFacts, type Subject } from '../organizations/logged-changes.ts'
import type { Signal } from '../process/signal.ts'
import type { Shown } from '../route/shown.ts'
import { recordIdOf } from '../values/formats.ts'
import { parseExactly } from '../values/parse-json.ts'
import {
  type LinkNames,
  type LinksForm,
  type LoggedLinks,
  printIdentifiers,
  printMembers,
  printTargets,
  readLinkNames,
} from './link-names.ts'

/** A change as it is matched and sent. `stack_id` is 0 for people and null for definitions. */
export type LoggedChange = {
  sequence: number
  at: string
  subject: Subject
  stack_id: number | null
  /** The internal identifier of the person or record; undefined for definitions. */
  entity_id: string | undefined
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
  attributes_before: string,
  attributes_after: string,
  external_id: string,
  actor: string,
  request_id: string,
  merge_id: string,
  segments?: string,
]

const linksField = 10

const peopleStack = '0'

/** A page of changes as the statements of sql.ts return it. `last` is the number of the last change that matched. */
export type ChangePage = { matched: number; count: number; last: number | null; lines: string | null }

type ReadChange = { fields: LineFields; links?: LoggedLinks }

/** The changes of a page as PostgreSQL returns them, and the names of their links. */
export type ReadChanges = { changes: ReadChange[]; names: LinkNames }

/** Splits the lines of a statement of sql.ts, and reads the names of their links. */
export async function readNamed(
  reading: Reading,
  page: ChangePage,
  options: { form?: LinksForm; signal?: Signal | undefined } = {},
): Promise<ReadChanges> {
  const changes = page.lines?.split('\n').map(readLine) ?? []
  const links = changes.flatMap(change => (change.links ? [change.links] : []))
  return { changes, names: await readLinkNames(reading, links, options) }
}

function readLine(line: string): ReadChange {
  const fields = line.split('\t') as LineFields
  const links = fields[linksField]
  return links === '' ? { fields } : { fields, links: JSON.parse(links) }
}

export const parseChanges = ({ changes, names }: ReadChanges): LoggedChange[] =>
  changes.map(change => changeOf(change, names))

/** Records the people and records that changes show, for the access log. */
export function noteChanges(shown: Shown, changes: readonly ChangedEntity[]): void {
  for (const { stack_id, entity_id } of changes) if (entity_id !== undefined) shown.add(stack_id!, entity_id)
}

export const noteLines = (shown: Shown, { changes }: ReadChanges): void =>
  noteChanges(
    shown,
    changes.map(({ fields }) => entityOf(fields)),
  )

type ChangedEntity = Pick<LoggedChange, 'stack_id' | 'entity_id'>

function entityOf([, , , stack, id]: LineFields): ChangedEntity {
  return stack === '' ? { stack_id: null, entity_id: undefined } : { stack_id: Number(stack), entity_id: id }
}

/** Prints changes as lines of JSON. */
export function printLines({ changes, names }: ReadChanges): string {
  let printed = ''
  for (const change of changes) printed += `${jsonOf(change, names)}\n`
  return printed
}

function changeOf(change: ReadChange, names: LinkNames): LoggedChange {
  const [sequence, at, logged, stack, , , operation] = change.fields
  return {
    sequence: Number(sequence),
    at: timeOf(at),
    subject: subjectOf(logged, stack),
    ...entityOf(change.fields),
    operation,
    json: jsonOf(change, names),
  }
}

function jsonOf({ fields, links }: ReadChange, names: LinkNames): string {
  const [
    sequence,
    at,
    logged,
    stack,
    storedId,
    stack_key,
    operation,
    version,
    plainBefore,
    plainAfter,
    ,
    attributesBefore,
    attributesAfter,
    external_id,
    actor,
    request_id,
    merge_id,
    segments,
  ] = fields
  const before = links ? withLinks(plainBefore, attributesBefore, printTargets(links, 'before', names)) : plainBefore
  const after = links ? withLinks(plainAfter, attributesAfter, printTargets(links, 'after', names)) : plainAfter
  const id = stack === '' ? storedId : `"${stack === peopleStack ? storedId : recordIdOf(storedId)}"`
  return (
    `{"sequence":${sequence},"at":"${timeOf(at)}","subject":"${subjectOf(logged, stack)}","id":${id}` +
    `,"external_id":${textOrNull(external_id)},"stack_key":${textOrNull(stack_key)},"operation":"${operation}"` +
    `,"version":${version || 'null'},"before":${before || 'null'},"after":${after || 'null'}` +
    `,"links":${links ? printIdentifiers(links, names) : 'null'}` +
    `,"actor":${JSON.stringify(actor)},"request_id":${JSON.stringify(request_id)}` +
    `${merge_id === '' ? '' : `,"merge_id":${merge_id}`}` +
    `${segments === undefined ? '' : `,"segments":${segments}`}}`
  )
}

/** Adds attribute values and relationships to the values of a change. All are texts, so numbers stay exact. */
function withLinks(values: string, attributes: string, links: Map<string, string>): string {
  if (values === '' || (attributes === '' && links.size === 0)) return values
  const members = [membersOf(withoutNulls(attributes, links)), printMembers(links)].filter(Boolean).join(', ')
  const plain = membersOf(values)
  return `{${plain}${plain && ', '}"attribute_values": {${members}}}`
}

/**
 * The attribute values without the keys of shown links. Such a key has the value null if no read showed its links,
 * while the change shows them by id.
 */
function withoutNulls(attributes: string, links: Map<string, string>): string {
  if (!links.keys().some(key => attributes.includes(`${JSON.stringify(key)}: null`))) return attributes
  const values = parseExactly(attributes) as Record<string, unknown>
  return JSON.stringify(Object.fromEntries(Object.entries(values).filter(([key]) => !links.has(key))))
}

const membersOf = (object: string) => object.slice(1, -1)

/**
 * RFC 3339 with milliseconds, from PostgreSQL's ISO text in UTC. The year of a change has four digits, so this takes a
 * fifth of the time of `parseTimestamp`. That function took a sixth of the time of a line.
 */
const timeOf = (at: string) => `${at.slice(0, 10)}T${at.slice(11, 19)}.${at.slice(20, -3).padEnd(3, '0').slice(0, 3)}Z`

const textOrNull = (text: string) => (text === '' ? 'null' : JSON.stringify(text))

function subjectOf(logged: string, stack: string): Subject {
  if (stack === '') return logged as Subject
  return stack === peopleStack ? 'person' : 'record'
}

/** A change as a server-sent event (HTML Living Standard, 9.2). Its JSON has no line feed. */
export const eventOf = ({ sequence, subject, operation, json }: LoggedChange): string =>
  `id: ${sequence}\nevent: ${subject}.${operationFacts[operation].event}\ndata: ${json}\n\n`

const dataField = Buffer.from('\ndata: ')

/** The JSON of a change that was printed by {@link eventOf}. */
export const jsonOfEvent = (event: Buffer): string =>
  event.toString('utf8', event.indexOf(dataField) + dataField.length, event.length - 2)
