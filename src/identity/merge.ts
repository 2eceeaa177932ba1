import type { AnswerChoice } from '../consents/answer-changes.ts'
import type { Answers } from '../consents/answers.ts'
import {
  type Columns,
  type CurrentState,
  isShown,
  shownTargets,
  type Target,
  writtenIdOf,
} from '../entities/entity-row.ts'
import { type LinkedKey, linkedByKey } from '../entities/write/decide/attributes.ts'
import type { Fill } from '../entities/write/decide/decide.ts'
import { jsonEqual } from '../entities/write/decide/json-equal.ts'
import { type Attribute, type Definitions, isRelationship } from '../organizations/definitions.ts'
import { channels, channelTable, type SummaryFlag } from '../values/channels.ts'
import { type Detail, pointer } from '../values/errors.ts'
import { plainColumns, profileFlags } from '../values/profile-fields.ts'
import { addAnswers, answerColumns, type GivenAt, type TakenAnswer } from './merge-answers.ts'

/**
 * Links of one attribute of the survivor, by the ids of the targets before and after the merge. `chosen`: the request
 * chose the links of the other person.
 */
export type LinkFill = { attribute_id: number; before: string[]; after: string[]; chosen?: true }

export type Side = 'survivor' | 'other'

/**
 * The person whose value the survivor gets, by field and by attribute key. The choice for the number applies to the
 * whole phone.
 */
export type Keep = {
  columns: ReadonlyMap<string, Side>
  attributes: ReadonlyMap<string, Side>
}

const noChoice: Keep = { columns: new Map(), attributes: new Map() }

/** The values that a merge gives to the survivor, and the record by which unmerge recognizes them. */
export type MergePlan = {
  fill: Fill
  answers: AnswerChoice[]
  filled: {
    columns: Record<string, { before: unknown; after: unknown }>
    attributes: Record<string, unknown>
    /** The plain values of the survivor that a choice for the other replaced or removed. Absent if there are none. */
    replaced?: Record<string, unknown>
    links: LinkFill[]
    /** The attributes for which a choice for the survivor left out the links of the other. */
    left?: number[]
  }
  /** The number of moved links of the other, and of the links between the two or that both had, which end. */
  links: { moved_out: number; dropped: number }
  faults: Detail[]
}

/** The content of `merges.undo` until the merge is undone. */
export type Undo = {
  /** The version of the survivor that the merge made. Null if the merge did not change the survivor. */
  into_version: number | null
  /** The merged person before the merge. */
  other: {
    columns: Omit<Columns, 'version' | 'answers'>
    answers: Answers
    attributes: Record<string, unknown>
    /** The targets of the links as they were written, by attribute. */
    links: Record<string, string[]>
  }
  filled: MergePlan['filled']
  /** The summary flags of the survivor before the merge. */
  flags: Record<SummaryFlag, boolean | null>
  /** The aliases of the merged person, and the merges into it. */
  aliases: string[]
  merges: number[]
  answers: TakenAnswer[]
}

/**
 * The content of `merges.undo` after an unmerge: erasures need the version of the survivor, past states the answers.
 */
export type EndedUndo = Pick<Undo, 'into_version' | 'answers'>

/** A row of `merges`. `undo` is null if one of the two was erased. */
export type MergeRow = {
  id: number
  merged_id: string
  into_id: string
  person_id: string
  sequence: number
  undo: Undo | null
}

/**
 * Decides which values a person gets from another one who is merged into it: its unset fields and absent attribute
 * values, the other's links, and of two answers to one question the later. A field of `keep` gets the value of the
 * chosen person, even if that is empty. The function is pure. `linksLimit` is the maximum number of links of one
 * attribute. `givenAt` decides between answers of both that are equal otherwise.
 */
export function planMerge(
  survivor: CurrentState,
  other: CurrentState,
  definitions: Definitions,
  linksLimit: number,
  givenAt: GivenAt = () => undefined,
  keep: Keep = noChoice,
): MergePlan {
  const plain = new Map<string, unknown>()
  const attributes: Record<string, unknown> = {}
  const replaced: Record<string, unknown> = {}
  const links = mergeLinks(survivor, other, definitions, linksLimit, keep)
  const otherLinked = linkedByKey(other.links, definitions)
  const ownKeys = visibleKeys(survivor, linkedByKey(withoutTarget(survivor, other.row.id), definitions))
  for (const [key, value] of Object.entries(other.row.attributes)) {
    if (ownKeys.has(key) || otherLinked.has(key) || links.filledKeys.has(key) || keep.attributes.has(key)) continue
    plain.set(key, value)
    define(attributes, key, value)
  }
  for (const [key, side] of keep.attributes) {
    if (side === 'survivor') continue
    const isStored = Object.hasOwn(survivor.row.attributes, key)
    const own = isStored ? survivor.row.attributes[key] : undefined
    const isPlain = !lastShown(otherLinked.get(key)) && Object.hasOwn(other.row.attributes, key)
    const value = isPlain ? other.row.attributes[key] : undefined
    if (isStored === isPlain && jsonEqual(own, value) && !links.changed.some(({ attribute }) => attribute.key === key))
      continue
    if (isStored) define(replaced, key, own)
    if (isPlain) define(attributes, key, value)
    if (isStored || isPlain) plain.set(key, value ?? null)
  }
  const answers = addAnswers(survivor.row, other.row, givenAt)
  const answered = answerColumns(survivor.row, answers, definitions.consent_types)
  const filled = fillColumns(survivor, other, answered.columns, keep.columns)
  return {
    fill: {
      plain,
      // A plain value that replaces links removes them by itself.
      links: links.changed
        .filter(({ attribute, after }) => after.length > 0 || !plain.has(attribute.key))
        .map(({ attribute, after }) => ({ attribute, targets: after })),
      columns: { ...answered.columns, ...filled },
      ...(answered.consents && { consents: answered.consents }),
    },
    answers,
    filled: {
      columns: Object.fromEntries(
        Object.entries(filled).map(([name, after]) => [
          name,
          { before: survivor.row[name as keyof typeof survivor.row] ?? null, after },
        ]),
      ),
      attributes,
      ...(Object.keys(replaced).length > 0 && { replaced }),
      links: links.changed.map(({ attribute, before, after }) => ({
        attribute_id: attribute.id,
        before: before.map(writtenIdOf),
        after: after.map(writtenIdOf),
        ...(keep.attributes.get(attribute.key) === 'other' && { chosen: true as const }),
      })),
      ...(links.left.length > 0 && { left: links.left }),
    },
    links: links.count,
    faults: links.faults,
  }
}

/**
 * The profile columns that the other fills. A refusal of push notifications wins, and so does the refusal of a channel
 * without purposes to answer. The prefix and the number of a phone come from one person, because those of two people
 * are no phone. A prefix alone is filled if the survivor has neither.
 */
function fillColumns({ row }: CurrentState, other: CurrentState, answered: Columns, keep: Keep['columns']): Columns {
  const columns: Record<string, unknown> = {}
  const phone = keep.get('mobile_number')
  const fillsPhone = phone
    ? phone === 'other'
    : row.mobile_number === null && (other.row.mobile_number !== null || row.mobile_prefix === null)
  if (keep.get('external_id') === 'other') columns.external_id = other.row.external_id
  for (const column of plainColumns) {
    const [own, others] = [row[column] ?? null, other.row[column] ?? null]
    const isPhone = column === 'mobile_prefix' || column === 'mobile_number'
    const side = isPhone ? (fillsPhone ? 'other' : 'survivor') : keep.get(column)
    const isRefused = (profileFlags as string[]).includes(column) && others === false
    const isFilled = others !== null && (own === null || (isRefused && own !== false))
    if (side ? side === 'other' && own !== others : isFilled) columns[column] = others
  }
  for (const channel of channels) {
    const flag = channelTable[channel].flag
    const isAnswered = Object.keys({ ...row.answers, ...answered.answers }).some(key => key.endsWith(`:${channel}`))
    if (!isAnswered && other.row[flag] === false && row[flag] !== false) columns[flag] = false
  }
  return columns as Columns
}

type LinkChange = { attribute: Attribute; before: readonly Target[]; after: readonly Target[] }

type MergedLinks = {
  changed: LinkChange[]
  /** The keys that the links of the other fill. */
  filledKeys: Set<string>
  left: number[]
  count: MergePlan['links']
  faults: Detail[]
}

function mergeLinks(
  survivor: CurrentState,
  other: CurrentState,
  definitions: Definitions,
  linksLimit: number,
  keep: Keep,
): MergedLinks {
  const count = { moved_out: 0, dropped: 0 }
  const merged: MergedLinks = { changed: [], filledKeys: new Set(), left: [], count, faults: [] }
  const own = withoutTarget(survivor, other.row.id)
  const ownLinked = linkedByKey(own, definitions)
  const ownKeys = visibleKeys(survivor, ownLinked)
  const after = new Map<number, readonly Target[]>(own)
  for (const id of own.keys()) {
    const key = definitions.attributeById.get(id)?.key
    if (key !== undefined && keep.attributes.get(key) === 'other') after.set(id, [])
  }
  for (const [key, stored] of linkedByKey(other.links, definitions)) {
    const last = lastShown(stored)?.attribute ?? stored.at(-1)!.attribute
    for (const { attribute, targets } of stored) {
      // Only the last attribute of a key is visible, as in reads.
      const isVisible = last === attribute
      const side = keep.attributes.get(key)
      if (side === 'survivor') merged.left.push(attribute.id)
      const isMany = attribute.cardinality === 'many'
      const mine = side === 'other' ? [] : (own.get(attribute.id) ?? [])
      const isJoined = isVisible && isMany && lastShown(ownLinked.get(key))?.attribute === attribute
      const isTaken = side ? side === 'other' : isJoined || !ownKeys.has(key)
      const taken = isVisible && isTaken ? movedTargets(survivor, other, targets) : []
      const added = taken.filter(({ id }) => !mine.some(target => target.id === id))
      merged.count.moved_out += countShown(added)
      merged.count.dropped += countShown(targets) - countShown(added)
      if (added.length === 0) continue
      merged.filledKeys.add(key)
      // An attribute without shown targets may have a link to a deleted target.
      after.set(attribute.id, isMany ? [...mine, ...added] : added)
      const message = `would have more than ${linksLimit} links`
      if (mine.length + added.length > linksLimit)
        merged.faults.push({ path: pointer('attribute_values', key), message })
    }
  }
  for (const [attribute_id, targets] of survivor.links) {
    const kept = after.get(attribute_id) ?? []
    after.set(attribute_id, kept)
    merged.count.dropped += countShown(targets.filter(({ id }) => !kept.some(each => each.id === id)))
  }
  for (const [attribute_id, targets] of after) {
    const attribute = definitions.attributeById.get(attribute_id)
    const before = survivor.links.get(attribute_id) ?? []
    if (attribute && isRelationship(attribute) && !sameTargets(before, targets))
      merged.changed.push({ attribute, before, after: targets })
  }
  return merged
}

const lastShown = (stored: LinkedKey | undefined) => stored?.findLast(({ targets }) => isShown(targets))

const countShown = (targets: readonly Target[]) => shownTargets(targets).length

/**
 * The targets that the survivor gets. A link to the survivor ends. A link of the other to itself becomes a link of the
 * survivor to itself.
 */
function movedTargets({ row }: CurrentState, other: CurrentState, targets: readonly Target[]): Target[] {
  return targets
    .filter(({ id }) => id !== row.id)
    .map(target => (target.id === other.row.id ? { id: row.id, external_id: row.external_id } : target))
}

/** The links, except those to one person. Attributes without other links are left out. */
function withoutTarget({ links }: CurrentState, target_id: string): Map<number, readonly Target[]> {
  const kept = new Map<number, readonly Target[]>()
  for (const [attribute_id, targets] of links) {
    const others = targets.filter(({ id }) => id !== target_id)
    if (others.length > 0) kept.set(attribute_id, others)
  }
  return kept
}

const visibleKeys = ({ row }: CurrentState, linked: ReadonlyMap<string, LinkedKey>) =>
  new Set([...Object.keys(row.attributes), ...[...linked.keys()].filter(key => lastShown(linked.get(key)))])

const sameTargets = (one: readonly Target[], other: readonly Target[]) =>
  one.length === other.length && one.every(({ id }, index) => id === other[index]!.id)

/** Sets a key that a client chose, without calling a setter of the prototype. */
function define(target: Record<string, unknown>, key: string, value: unknown) {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}
