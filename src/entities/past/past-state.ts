import type { Operation } from '../../changes/schema.ts'
import type { Channel } from '../../channels.ts'
import { type Answers, answerKey } from '../../consents/answers.ts'
import type { Method } from '../../consents/evidence.ts'
import type { Transaction } from '../../db/db.ts'
import { type Attribute, type Definitions, isRelationship } from '../../organizations/definitions.ts'
import {
  definitionsAfter,
  type LoggedDefinitionChange,
  readDefinitionChanges,
} from '../../organizations/past-definitions.ts'
import type { Columns, Target } from '../entity-row.ts'
import {
  readPastAnswersSql,
  readPastBearersSql,
  readPastChangeSql,
  readPastTargetsSql,
  readPastValuesSql,
} from './past-state-sql.ts'

// The state of an entity at one of its versions follows from the change log alone: its creation, last restore or unmerge has
// every field, and each later change those that it changed. Entries are never changed, so no snapshot is needed. Only whom a link
// to a merged person shows, and which answers a merge took over, follows from the table of merges.

/** Runs the statements of one read: a transaction, or a database with the signal of a request. */
export type Reader = Pick<Transaction, 'query'>

/** The change that made a version of an entity. `created_at` is the time of the entity's creation. */
export type PastChange = {
  version: number
  sequence: number
  at: string
  operation: Operation
  /** The person that a merge made of this one. Null for another operation, and if the values in the log were erased. */
  merged_into: string | null
  created_at: string
  /** Whether the entity was erased since. */
  is_erased: boolean
}

/** The links of one attribute, as the change `sequence` wrote them. */
export type PastLinks = { attribute: Attribute & { target_stack_id: number }; ids: string[]; sequence: number }

/** An entity at a past version. The definitions of that moment are separate, and so are the names of the targets. */
export type PastState = {
  columns: Omit<Columns, 'version' | 'answers'>
  answers: Answers
  attributes: Record<string, unknown>
  links: PastLinks[]
}

type Entity = { stack_id: number; id: string }

/** Greater than every version and every number of a change. */
export const unlimited = { version: 2 ** 31 - 1, sequence: Number.MAX_SAFE_INTEGER }

/** Reads the last change of an entity up to a version and a number. Returns undefined if there is none. */
export async function readPastChange(
  reader: Reader,
  organization_id: number,
  { stack_id, id }: Entity,
  { version = unlimited.version, sequence = unlimited.sequence }: { version?: number; sequence?: number },
): Promise<PastChange | undefined> {
  const [change] = await reader.query<PastChange>(readPastChangeSql, [organization_id, stack_id, id, version, sequence])
  return change
}

/**
 * Reads the state that the entity had at a version, which must exist and not be that of a deletion. Returns undefined
 * if the values in the log were erased.
 */
export async function readPastState(
  reader: Reader,
  definitions: Definitions,
  entity: Entity,
  version: number,
): Promise<PastState | undefined> {
  const parameters = [definitions.organization_id, entity.id, version]
  const values = await reader.query<PastValue>(readPastValuesSql, parameters)
  const answers = await reader.query<PastAnswer>(readPastAnswersSql, parameters)
  const fields = Object.fromEntries(values.filter(value => !value.is_attribute).map(({ key, value }) => [key, value]))
  const { state, ...columns } = fields
  if (state === undefined) return undefined
  return {
    columns: { ...columns, active: state === 'active' },
    answers: Object.fromEntries(
      answers.map(({ consent_type_id, channel, state, answered_at, pending, method, text_version, person_id }) => [
        answerKey(consent_type_id, channel),
        {
          state,
          answered_at,
          ...(pending && { pending }),
          ...(person_id !== null && { person_id }),
          ...(method !== null && { method }),
          ...(text_version !== null && { text_version }),
        },
      ]),
    ),
    ...(await splitValues(reader, definitions, entity, values)),
  }
}

type PastAnswer = {
  consent_type_id: number
  channel: Channel
  state: boolean
  answered_at: string
  pending: boolean
  method: Method | null
  text_version: number | null
  person_id: string | null
}

/**
 * The last value of a field or an attribute, with the number of the change that wrote it, the names that the change
 * released and took, and the ids of the targets that it linked to, by attribute id.
 */
type PastValue = {
  key: string
  is_attribute: boolean
  value: unknown
  sequence: number
  released_name: string | null
  taken_name: string | null
  link_targets: Record<string, string[]> | null
}

type Relationship = PastLinks['attribute']

/** Splits the attribute values into plain ones and links. */
async function splitValues(
  reader: Reader,
  definitions: Definitions,
  entity: Entity,
  values: PastValue[],
): Promise<Pick<PastState, 'attributes' | 'links'>> {
  const plain: [string, unknown][] = []
  const links: PastLinks[] = []
  const unclear: PastValue[] = []
  for (const written of values) {
    const { key, value, sequence, link_targets } = written
    if (!written.is_attribute) continue
    const relationships = (definitions.relationships.get(entity.stack_id)?.get(key) ?? []).filter(isRelationship)
    const linked = relationships.find(({ id }) => link_targets?.[id]?.length)
    // Earlier releases logged a link to a target without a name as null.
    if (linked) links.push({ attribute: linked, ids: link_targets![linked.id]!, sequence })
    else if (value === null) continue
    else if (relationships.length > 0 && link_targets === null) unclear.push(written)
    else plain.push([key, value])
  }
  if (unclear.length > 0) await splitNamed(reader, definitions, entity, unclear, { plain, links })
  return { attributes: Object.fromEntries(plain), links }
}

/**
 * Adds values of changes without `link_targets`. The definitions at the time of such a change tell whether it wrote a
 * plain value or links. The log entries of earlier releases have only the names of the targets. The name then leads to
 * the target, except if it passed to another entity while the link was being written.
 */
async function splitNamed(
  reader: Reader,
  definitions: Definitions,
  { stack_id, id }: Entity,
  values: PastValue[],
  { plain, links }: { plain: [string, unknown][]; links: PastLinks[] },
) {
  const { organization_id } = definitions
  const first = Math.min(...values.map(({ sequence }) => sequence))
  const later: LoggedDefinitionChange[] = await readDefinitionChanges(reader, organization_id, first)
  const named: { link: PastLinks; names: string[]; own: (string | null)[] }[] = []
  for (const { key, value, sequence, released_name, taken_name } of values) {
    const attribute = definitionsAfter(definitions, sequence, later).declared.get(stack_id)?.get(key)
    if (!attribute || !isRelationship(attribute)) {
      plain.push([key, value])
      continue
    }
    const link = { attribute: definitions.attributeById.get(attribute.id) as Relationship, ids: [], sequence }
    const own = attribute.target_stack_id === stack_id ? [released_name, taken_name] : []
    named.push({ link, names: [value].flat() as string[], own })
  }
  const asked = named.flatMap(({ link: { attribute, sequence }, names }) =>
    names.map(external_id => ({ stack_id: attribute.target_stack_id, external_id, sequence })),
  )
  if (asked.length === 0) return
  const bearers = await reader.query<{ position: number; id: string }>(readPastBearersSql, [
    organization_id,
    JSON.stringify(asked.map((name, position) => ({ position, ...name }))),
  ])
  const idAt = new Map(bearers.map(bearer => [bearer.position, bearer.id]))
  let position = 0
  for (const { link, names, own } of named) {
    const found = names.map(name => {
      const bearer = idAt.get(position++)
      return own.includes(name) ? id : bearer
    })
    links.push({ ...link, ids: [...new Set(found.filter(target => target !== undefined))] })
  }
}

/** A target that a read shows. It differs from the one that was linked to, `linked_id`, if that one was merged. */
type ShownTarget = Target & { linked_id: string }

/** The targets of an attribute's links that a read shows. */
export type ShownLinks = { attribute: Relationship; targets: ShownTarget[] }

/**
 * Reads which targets of the links existed after the change `sequence`, and their names of then. A target that was
 * deleted and restored since the link was written is left out: its deletion ended the link.
 */
export async function readPastTargets(
  reader: Reader,
  organization_id: number,
  links: readonly PastLinks[],
  sequence: number,
): Promise<ShownLinks[]> {
  const asked = links.flatMap(({ attribute, ids, sequence }) =>
    ids.map(target_id => ({ stack_id: attribute.target_stack_id, target_id, sequence })),
  )
  if (asked.length === 0) return []
  const rows = await reader.query<ShownTarget & { position: number }>(readPastTargetsSql, [
    organization_id,
    JSON.stringify(asked.map((target, position) => ({ position, ...target }))),
    sequence,
  ])
  const shown = new Map(rows.map(({ position, ...target }) => [position, target]))
  let position = 0
  return links
    .map(({ attribute, ids }) => ({
      attribute,
      targets: eachOnce(ids.map(() => shown.get(position++)).filter(target => target !== undefined)),
    }))
    .filter(({ targets }) => targets.length > 0)
    .sort((one, other) => one.attribute.id - other.attribute.id)
}

/** The targets without those that occur earlier. Two targets are one after a merge. */
export function eachOnce<T extends { id: string }>(targets: T[]): T[] {
  const seen = new Set<string>()
  return targets.filter(({ id }) => !seen.has(id) && seen.add(id))
}

/** A deleted entity as it was before its deletion, with its links to entities that exist. */
export type DeletedEntity = Omit<PastState, 'links'> & {
  id: string
  links: ShownLinks[]
  /** The version of its deletion, or a higher one at which another entity released its name since. */
  version: number
  created_at: string
  /** Whether another entity, which may be a placeholder, has its name. */
  isNameTaken: boolean
}
