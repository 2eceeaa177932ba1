import type { ConsentBody } from '../consents/answers.ts'
import type { IfMatch } from '../entity-tag.ts'
import type { Refusal } from '../errors.ts'
import type { SerializedEntity } from './entity-reader.ts'
import type { Profile } from './entity-row.ts'

/** The body of a create, replace or patch, after binding, trimming and validation. Absent, null and value are three states. */
export type EntityBody = Partial<Profile> &
  ConsentBody & {
    external_id?: string | null
    attribute_values?: Record<string, unknown> | null
  }

export type Address = { external_id: string } | { id: string }

/** One write of one entity. A single request is an array of one of these; a batch or an import is a longer one. */
export type Write = {
  /**
   * An upsert creates what is not there and merges like a patch where it is. So does an import, except into an event; it
   * completes placeholders as a create does, and takes an answer that stands already for no news: what is sent again
   * changes nothing. Imports of one set may link to each other's entities whatever their order.
   */
  operation: 'create' | 'put' | 'patch' | 'upsert' | 'import' | 'delete'
  stack_id: number
  /** Whom to write to. A create is addressed by the external identifier it takes, or by nothing. */
  address: Address | null
  body: EntityBody
  /** Values bound from a query string are texts, which declared attributes coerce. */
  boundFrom: 'body' | 'query'
  if_match: IfMatch
  /** Refuses an import that would change an active entity; one that would change nothing is no harm. */
  create_only?: boolean
  /** What happens to relationship targets that do not exist. */
  references: 'create' | 'strict'
  /** Whether the outcome carries the entity as it stands after the write: its JSON, too, where it is small, or `whole` in any case. */
  represent: boolean | 'whole'
  /** The size of the body, which bounds a set. */
  bytes: number
  actor: string
  request_id: string
}

/** Whether it makes the entity where none stands. */
export const isMaking = ({ operation }: Pick<Write, 'operation'>): boolean =>
  operation === 'create' || operation === 'upsert' || operation === 'import'

/** Whether it makes whoever stands there active, be there nothing else to change: a create is only decided where nobody is. */
export const isCompleting = ({ operation }: Pick<Write, 'operation'>, row: { active: boolean } | undefined): boolean =>
  operation === 'create' || (operation === 'import' && !row?.active)

export type Done = {
  result: 'created' | 'updated' | 'unchanged' | 'deleted'
  id: string
  external_id: string | null
  version: number
  /** Present when `represent` was asked for and the entity still stands, with all its links. */
  standing?: SerializedEntity
}

/** What became of one write: done, refused by a rule, or failed by a fault of the machinery. */
export type Outcome = { done: Done } | { refusal: Refusal } | { error: unknown }
