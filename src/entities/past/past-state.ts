import type { LoggedLinks } from '../../changes/link-names.ts'
import { type Answers, answerKey } from '../../consents/answers.ts'
import type { Method } from '../../consents/schema.ts'
import type { Reading } from '../../db/context.ts'
import type { Transaction } from '../../db/db.ts'
import { type Attribute, type Definitions, isRelationship } from '../../organizations/definitions.ts'
import type { Operation } from '../../organizations/logged-changes.ts'
import type { Channel } from '../../values/channels.ts'
import { readTargetsSql } from '../bearers-sql.ts'
import { type Columns, eachOnce, type Target } from '../entity-row.ts'
import {
  readBasisSql,
  readLoggedStateSql,
  readPastAnswersSql,
  readPastChangeAtSql,
  readPastChangeSql,
  readPastTargetsSql,
} from './past-state-sql.ts'

// The state of an entity at one of its versions follows from the change log alone. Its creation, last restore or
// unmerge has every field, and each later change has the fields that it changed. Every 128th version lists the versions
// that its state follows from, so that kith does not read all of a long log. Only the table of merges tells which
// person a link to a merged person shows, and which answers a merge took over.

/** Runs the statements of one read: a transaction, or a database with the signal of a request. */
export type Reader = Pick<Transaction, 'query'>

/** The change that made a version of an entity. `created_at` is the time of the entity's creation. */
export type PastChange = {
  version: number
  sequence: number
  at: string
  operation: Operation
  /**
   * The person into which this one was merged. Null for another operation, and if the values in the log were erased.
   */
  merged_into: string | null
  created_at: string
  /** Whether the entity was erased since. */
  is_erased: boolean
}

/** The links of one attribute as they were written. */
export type PastLinks = { attribute: Relationship; ids: string[] }

type Relationship = Attribute & { target_stack_id: number }

/** An entity at a past version, without the definitions of that time and without the names of the targets. */
export type PastState = {
  columns: Omit<Columns, 'version' | 'answers'>
  answers: Answers
  attributes: Record<string, unknown>
  links: PastLinks[]
}

type Entity = { stack_id: number; id: string }

const maxVersion = 2 ** 31 - 1

/** Reads the last change of an entity up to a version or a number. Returns undefined if there is none. */
export async function readPastChange(
  { db: reader, organization_id }: Reading,
  { stack_id, id }: Entity,
  until: { version: number } | { sequence: number },
): Promise<PastChange | undefined> {
  const last = 'version' in until ? until.version : until.sequence
  const statement = 'version' in until ? readPastChangeSql : readPastChangeAtSql
  const [change] = await reader.query<PastChange>(statement, [organization_id, stack_id, id, last])
  return change
}

/** Reads the last change of an entity. Returns undefined if there is none. */
export const readLastChange = (reading: Reading, entity: Entity): Promise<PastChange | undefined> =>
  readPastChange(reading, entity, { version: maxVersion })

/**
 * Reads the state that the entity had at a version, which must exist and not be that of a deletion. Returns undefined
 * if the values in the log were erased.
 */
export async function readPastState(
  reader: Reader,
  definitions: Definitions,
  { id }: Entity,
  version: number,
): Promise<PastState | undefined> {
  const parameters: [number, string, number] = [definitions.organization_id, id, version]
  const entries = await readEntries(reader, parameters)
  // kith removes values from the beginning of a log, so the first change tells whether they are left.
  if (entries[0]?.after?.state === undefined) return undefined
  const answers = await reader.query<PastAnswer>(readPastAnswersSql, parameters)
  return { ...foldEntries(entries, definitions), answers: Object.fromEntries(answers.map(answerOf)) }
}

async function readEntries(reader: Reader, parameters: [number, string, number]): Promise<LoggedState[]> {
  const entries = await reader.query<LoggedState & { based: number | null }>(readLoggedStateSql, parameters)
  const based = entries[0]?.based ?? null
  if (based === null) return entries
  const [organization_id, id] = parameters
  const before = await reader.query<LoggedState>(readBasisSql, [organization_id, id, based])
  // An erasure has removed the basis in the meantime.
  return before.length === 0 ? readEntries(reader, parameters) : [...before, ...entries]
}

/** The values that a change wrote. */
type LoggedState = {
  after: ({ attribute_values?: Record<string, unknown> } & Record<string, unknown>) | null
  links: LoggedLinks | null
}

function foldEntries(entries: readonly LoggedState[], { attributeById }: Definitions): Omit<PastState, 'answers'> {
  const columns: Record<string, unknown> = {}
  const attributes = new Map<string, unknown>()
  const links = new Map<string, string[]>()
  for (const { after, links: written } of entries) {
    // The log also has entries of consents, addresses and retention rules, which are no fields of the person.
    const { attribute_values = {}, consents, deliverability, retention, ...fields } = after ?? {}
    Object.assign(columns, fields)
    for (const [key, value] of Object.entries(attribute_values)) attributes.set(key, value)
    for (const [attribute_id, { after: ids = [] }] of Object.entries(written ?? {})) {
      links.set(attribute_id, ids)
      if (ids.length > 0) attributes.delete(attributeById.get(Number(attribute_id))!.key)
    }
  }
  const { state, ...others } = columns
  return {
    columns: { ...others, active: state === 'active' },
    attributes: Object.fromEntries([...attributes].filter(([, value]) => value !== null)),
    links: [...links].flatMap(([id, ids]) => {
      const attribute = attributeById.get(Number(id))
      return attribute && isRelationship(attribute) && ids.length > 0 ? [{ attribute, ids }] : []
    }),
  }
}

type PastAnswer = {
  consent_type_id: number
  channel: Channel
  state: boolean
  answered_at: string
  undated: boolean
  pending: boolean
  person_id: string | null
  method: Method | null
  text_version: number | null
}

/** An answer without empty members. */
const answerOf = ({ consent_type_id, channel, state, answered_at, ...rest }: PastAnswer) => {
  const evidence = Object.entries(rest).filter(([, value]) => value !== null && value !== false)
  return [answerKey(consent_type_id, channel), { state, answered_at, ...Object.fromEntries(evidence) }]
}

/** The targets of an attribute's links. */
export type ShownLinks = { attribute: Relationship; targets: Target[] }

/** Reads which targets of the links existed after the change `sequence`, and their names at that time. */
export async function readPastTargets(
  { db: reader, organization_id }: Reading,
  links: readonly PastLinks[],
  sequence: number,
): Promise<ShownLinks[]> {
  const shown = await targetsOf(links, asked => {
    const values = [organization_id, JSON.stringify(asked), sequence]
    return reader.query<Target & { position: number }>(readPastTargetsSql, values)
  })
  return shown.map(({ attribute, targets }) => ({ attribute, targets: eachOnce(targets) }))
}

/** Reads the current targets of the links: deleted ones too, but no erased ones. */
export function readStandingTargets(
  { db: reader, organization_id }: Reading,
  links: readonly PastLinks[],
): Promise<ShownLinks[]> {
  return targetsOf(links, asked => reader.query(readTargetsSql, [organization_id, JSON.stringify(asked)]))
}

async function targetsOf(
  links: readonly PastLinks[],
  read: (asked: { position: number; stack_id: number; id: string }[]) => Promise<(Target & { position: number })[]>,
): Promise<ShownLinks[]> {
  const asked = links.flatMap(({ attribute, ids }) => ids.map(id => ({ stack_id: attribute.target_stack_id, id })))
  if (asked.length === 0) return []
  const rows = await read(asked.map((target, position) => ({ position, ...target })))
  const found = new Map(rows.map(({ position, ...target }) => [position, target]))
  let position = 0
  return links
    .map(({ attribute, ids }) => ({ attribute, targets: ids.flatMap(() => found.get(position++) ?? []) }))
    .filter(({ targets }) => targets.length > 0)
    .sort((one, other) => one.attribute.id - other.attribute.id)
}

/** A deleted entity as it was before its deletion, with its links. */
export type DeletedEntity = Omit<PastState, 'links'> & {
  id: string
  links: ShownLinks[]
  /** The version of its deletion, or a higher one at which another entity released the name since. */
  version: number
  created_at: string
  /** Whether another entity, which may be a placeholder, has its name. */
  isNameTaken: boolean
  /** The values that had a tombstone before the deletion, and that it keeps. */
  kept?: ReadonlySet<string> | undefined
}
