import { awaitPipelined, type Transaction } from '../../db/db.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { lockHead } from '../../organizations/head.ts'
import type { Change } from '../decide/decide.ts'
import type { Accepted } from '../decide/decide-set.ts'
import type { StoredRow } from '../entity-row.ts'
import type { Item } from './plan-write.ts'
import { storeSet } from './store-stage.ts'

/** A change that follows from no body. `row` is the stored row, if the entity has one. */
export type PlannedChange = { stack_id: number; change: Change; row?: StoredRow | undefined }

/** The writer, as the change log names it. */
export type ChangeAuthor = { actor: string; request_id: string }

/**
 * Stores and logs changes in the order given, in a transaction that has locked the head of the organization. Returns the number of the last
 * one.
 */
export async function storeChanges(
  tx: Transaction,
  definitions: Definitions,
  at: string,
  author: ChangeAuthor,
  changes: readonly PlannedChange[],
): Promise<number> {
  const rows = new Map<Item, StoredRow>()
  const accepted = changes.map(({ stack_id, change, row }, index): Accepted => {
    const item = itemOf(stack_id, author, index)
    if (row) rows.set(item, row)
    return { item, change }
  })
  const set = { definitions, at, rows, decisions: new Map(), accepted, placeholders: new Map() }
  const { sequence: base } = await lockHead(tx, definitions.organization_id)
  const { statements, sequence } = storeSet(tx, set, base)
  await awaitPipelined(statements)
  return sequence
}

const itemOf = (stack_id: number, { actor, request_id }: ChangeAuthor, index: number): Item => ({
  index,
  name: undefined,
  plan: { plain: new Map(), links: new Map(), clearsRest: false, faults: [] },
  write: {
    operation: 'patch',
    stack_id,
    address: null,
    body: {},
    boundFrom: 'body',
    if_match: null,
    references: 'create',
    represent: false,
    bytes: 0,
    actor,
    request_id,
  },
})
