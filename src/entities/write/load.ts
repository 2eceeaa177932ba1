import { awaitPipelined, type Transaction } from '../../db/db.ts'
import type { Refusal } from '../../errors.ts'
import { readKeys } from '../../idempotency/kept-responses.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { StoredRow } from '../entity-row.ts'
import { matchItems } from './match-stage.ts'
import { addressReference, type Item, referenceKey } from './plan-write.ts'
import { readKnownAnswers, readLastVersions, readLinks, readReferences, readRows } from './read-stage.ts'
import { readDeletedEntities } from './restore-stage.ts'
import type { Loaded } from './state.ts'
import { findHoldersFor, findHoldersOfDeleted } from './unique-stage.ts'

/** What items name, and the items addressed to the people whom they recognize. `refused` are those that recognize nobody for certain. */
export type LoadedItems = { items: Item[]; refused: ReadonlyMap<Item, Refusal>; loaded: Loaded }

/**
 * Loads what items name, in one flush, and in a second one what only the rows lead to. People whom items recognize are found before. A read
 * without work issues no statement.
 */
export async function load(tx: Transaction, definitions: Definitions, unmatched: Item[]): Promise<LoadedItems> {
  const { organization_id } = definitions
  const matched = unmatched.some(({ match }) => match) ? await matchItems(tx, organization_id, unmatched) : undefined
  const items = matched?.items ?? unmatched
  const readingRows = readRows(tx, definitions, items)
  const readingVersions = readLastVersions(tx, organization_id, items)
  const findingHolders = findHoldersFor(tx, organization_id, items)
  const readingReferences = readReferences(tx, definitions, items)
  const readingKeys = readKeys(
    tx,
    organization_id,
    items.flatMap(({ write: { keyed } }) => keyed ?? []),
  )
  await awaitPipelined([readingRows, readingVersions, findingHolders, readingReferences, readingKeys])
  const [{ rows, ids }, lastVersionOf, holders] = [await readingRows, await readingVersions, await findingHolders]
  const references = await readingReferences
  for (const [key, id] of references.ids) ids.set(key, id)

  const rowOf = ({ write }: Item): StoredRow | undefined => {
    const reference = addressReference(write)
    return reference && rows.get(ids.get(referenceKey(reference)) ?? '')
  }
  const readingLinks = readLinks(tx, definitions, items, rowOf)
  const readingAnswers = readKnownAnswers(tx, organization_id, items, rowOf)
  const readingDeleted = readDeletedEntities(tx, definitions, items, rowOf)
  await awaitPipelined([readingLinks, readingAnswers, readingDeleted])
  const deleted = await readingDeleted
  const ofDeleted = deleted.size > 0 ? await findHoldersOfDeleted(tx, definitions, deleted) : undefined
  return {
    items,
    refused: matched?.refused ?? new Map(),
    loaded: {
      ids,
      rows,
      names: references.names,
      otherwiseNamed: references.otherwiseNamed,
      links: await readingLinks,
      lastVersionOf,
      knownAnswers: await readingAnswers,
      deleted,
      keys: await readingKeys,
      holders: ofDeleted ? new Map([...(holders ?? []), ...ofDeleted]) : holders,
    },
  }
}
