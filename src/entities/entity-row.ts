import type { Answers } from '../consents/answers.ts'
import { profileTexts } from './sql.ts'

/** The columns of a person's profile that are plain values: set, kept or cleared, with no rule between them. */
export const profileColumns = [...profileTexts, 'push_notification_consent'] as const

export type ProfileColumn = (typeof profileColumns)[number]

/** The profile as the row holds it; records leave it null. */
export type Profile = Record<Exclude<ProfileColumn, 'push_notification_consent'>, string | null> & {
  push_notification_consent: boolean | null
}

/** A row of `entities`: a person (stack 0) or a record. */
export type EntityRow = Profile & {
  stack_id: number
  id: string
  external_id: string | null
  /** False for a placeholder. */
  active: boolean
  version: number
  email_consent: boolean | null
  sms_consent: boolean | null
  answers: Answers
  attributes: Record<string, unknown>
}

/**
 * A row that a set holds locked. `place` is where its version lies, which nobody moves before the set has ended;
 * `asked` the name it was found by, null where it was addressed by its internal identifier.
 */
export type LockedRow = EntityRow & { place: string; asked: string | null }

/** The columns that a change writes beside `attributes`. */
export type Columns = Partial<Omit<EntityRow, 'stack_id' | 'id' | 'attributes'>>

/** The far end of a link. */
export type Target = { id: string; external_id: string | null }

/** The links of one entity, by attribute id, in order of position. */
export type Links = ReadonlyMap<number, readonly Target[]>

/** An entity as it stands: its row, and the links that were asked for. */
export type CurrentState = { row: EntityRow; links: Links }

/**
 * An entity as it was read: the text of its row, null where it is too large to be read beside others, which `print.ts` makes into JSON
 * by definitions that are no older.
 */
export type Read = { id: string; row: string | null; schema_version: number }

/** The external identifiers of a relationship's targets as a read shows them: an array for `many`. */
export function shownLinks(cardinality: 'one' | 'many', targets: readonly { external_id: string | null }[]): unknown {
  const names = targets.map(target => target.external_id)
  return cardinality === 'many' ? names : (names[0] ?? null)
}
