import type { Answers } from '../consents/answers.ts'
import { type Attribute, peopleStackId } from '../organizations/definitions.ts'
import { recordIdOf } from '../values/formats.ts'
import type { ProfileFlag, ProfileText } from '../values/profile-fields.ts'

/** The profile columns of a row. They are null for a record. */
export type Profile = Record<ProfileText, string | null> & Record<ProfileFlag, boolean | null>

/** A row of `entities`: a person (stack 0) or a record. */
export type EntityRow = Profile & {
  stack_id: number
  id: string
  external_id: string | null
  /** False for a placeholder. */
  active: boolean
  version: number
  answers: Answers
  attributes: Record<string, unknown>
}

/** A row that a set has read under the lock of the head. `ctid` is the location of its version. */
export type StoredRow = EntityRow & {
  ctid: string
  /** The alias or the merged identifier that the row was looked up by. */
  alias_name?: string | null
  alias_id?: string | null
}

/** The columns that a change writes, without `attributes`. */
export type Columns = Partial<Omit<EntityRow, 'stack_id' | 'id' | 'attributes'>>

/**
 * The target of a link. Reads leave out the link to a deleted target until the target is restored. If a merge has
 * changed the target since, `written_id` is the one as it was written. Two links of a list may then lead to one person,
 * and reads leave out the later one.
 */
export type Target = { id: string; external_id: string | null; is_deleted?: boolean; written_id?: string | null }

/** The links of one entity, grouped by attribute id, in order of position. */
export type Links = ReadonlyMap<number, readonly Target[]>

/** The current state of an entity: its row, and the links that the decision needs. */
export type CurrentState = { row: EntityRow; links: Links }

/** The targets, each once, in order. Two targets may be one person after a merge. */
export const eachOnce = (targets: readonly Target[]): Target[] => [
  ...new Map(targets.map(target => [target.id, target])).values(),
]

/** The targets that a read shows. */
export const shownTargets = (targets: readonly Target[]): Target[] =>
  eachOnce(targets.filter(({ is_deleted }) => !is_deleted))

/** The id of the target as the link was written. */
export const writtenIdOf = ({ id, written_id }: Pick<Target, 'id' | 'written_id'>): string => written_id ?? id

/** Whether a read shows one of the links. */
export const isShown = (targets: readonly Target[]): boolean => targets.some(({ is_deleted }) => !is_deleted)

/**
 * The targets of a relationship in the format of a read: an array for `many`. A target without an external identifier
 * is shown by its internal one, which a write accepts too.
 */
export function relationshipValue(
  { cardinality, target_stack_id }: Pick<Attribute, 'cardinality' | 'target_stack_id'>,
  targets: readonly { id?: string; external_id: string | null; is_deleted?: boolean }[],
): unknown {
  const values = targets
    .filter(({ is_deleted }) => !is_deleted)
    .map(({ id, external_id }) => external_id ?? internalReference(target_stack_id, id!))
  return cardinality === 'many' ? values : (values[0] ?? null)
}

const internalReference = (stack_id: number | null, id: string) =>
  stack_id === peopleStackId ? { id } : { record_id: recordIdOf(id) }
