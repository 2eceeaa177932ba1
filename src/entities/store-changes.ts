import { awaitPipelined, type Transaction } from '../db/db.ts'
import { Fault } from '../errors.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { Change } from './decide.ts'
import type { Accepted } from './decide-set.ts'
import type { LockedRow } from './entity-row.ts'
import { erasableValues, erasedRefusal } from './erasable-values.ts'
import type { Item } from './plan-write.ts'
import { storeSet } from './store-stage.ts'
import { readErased } from './tombstone-stage.ts'

/** A change that follows from no body. `row` is the locked row, if the entity has one. */
export type PlannedChange = { stack_id: number; change: Change; row?: LockedRow | undefined }

/** The writer, as the change log names it. `erased` is the preference of the request. */
export type ChangeAuthor = { actor: string; request_id: string; erased?: 'refuse' | 'recreate' }

/**
 * Stores and logs changes in the order given. The head of the organization is locked afterwards. Throws a Fault of 409 if an unmerge
 * would bring back an identifier of a person who was erased.
 */
export async function storeChanges(
  tx: Transaction,
  definitions: Definitions,
  at: string,
  author: ChangeAuthor,
  changes: readonly PlannedChange[],
): Promise<void> {
  const rows = new Map<Item, LockedRow>()
  const accepted = changes.map(({ stack_id, change, row }, index): Accepted => {
    const item = itemOf(stack_id, author, index)
    if (row) rows.set(item, row)
    return { item, change }
  })
  if (author.erased !== 'recreate') await throwIfErased(tx, definitions, accepted)
  await awaitPipelined(storeSet(tx, { definitions, at, rows, decisions: new Map(), accepted, placeholders: new Map() }))
}

async function throwIfErased(tx: Transaction, { organization_id, has_tombstones }: Definitions, accepted: Accepted[]) {
  const returning = accepted.filter(({ change }) => change.operation === 'unmerge')
  if (!has_tombstones || returning.length === 0) return
  const values = returning.flatMap(({ item, change }) => erasableValues(change, item.write, undefined))
  const erased = await readErased(
    tx,
    organization_id,
    values.map(({ value }) => value),
  )
  for (const { item, change } of returning) {
    const refusal = erasedRefusal(change, item.write, undefined, erased)
    if (refusal) throw new Fault(refusal)
  }
}

const itemOf = (stack_id: number, { actor, request_id, erased }: ChangeAuthor, index: number): Item => ({
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
    ...(erased === 'recreate' && { erased }),
    actor,
    request_id,
  },
})
