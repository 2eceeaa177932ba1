import type { Transaction } from '../../db/db.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import type { DecidedSet } from '../decide/decide-set.ts'
import type { EntityRow, Target } from '../entity-row.ts'
import {
  checkNamesSql,
  checkTargetsSql,
  countFirstAliasSql,
  deleteAliasesSql,
  insertAliasesSql,
  readAliasesSql,
  rememberAliasesSql,
} from './alias-sql.ts'
import { addressKey, type Item, nameKey, referenceKey } from './plan-write.ts'
import { LostRace } from './read-stage.ts'

/** A person that a further identifier leads to. */
type AliasRow = Target & { alias_name: string | null; alias_id: string | null }

/** Reads the `sameAs` of the items of an array ({@link Item}). Undefined if they name nobody in several ways. */
export async function readSameAs(
  db: Pick<Transaction, 'query'>,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
): Promise<Item['sameAs']> {
  if (!has_aliases) return undefined
  const asked = new Map<string, object>()
  for (const { write, plan } of items) {
    const { stack_id, address } = write
    const key = addressKey(write)
    if (key !== undefined && stack_id === peopleStackId) asked.set(key, { stack_id, ...address })
    for (const { references } of plan.links.values())
      for (const reference of references)
        if (reference.stack_id === peopleStackId) asked.set(referenceKey(reference), reference)
  }
  if (asked.size === 0) return undefined
  const rows = await db.query<AliasRow>(readAliasesSql, [organization_id, JSON.stringify([...asked.values()])])
  const keyOf = (external_id: string) => nameKey({ stack_id: peopleStackId, external_id })
  const sameAs = rows.map(({ alias_name, alias_id, id, external_id }): [string, string] => [
    alias_name === null ? alias_id! : keyOf(alias_name),
    external_id === null ? id : keyOf(external_id),
  ])
  return rows.length === 0 ? undefined : new Map(sameAs)
}

/**
 * Read stage of organizations with aliases: reads again, after the locks, where the addresses lead that named no person directly. The
 * statement that locks is older than its locks. Throws LostRace if an address leads elsewhere now.
 */
export async function checkAddresses(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
  rows: ReadonlyMap<Item, EntityRow & { alias_name?: string | null; alias_id?: string | null }>,
): Promise<void> {
  if (!has_aliases) return
  const asked: Item[] = []
  for (const item of items) {
    const row = rows.get(item)
    const { stack_id, address } = item.write
    if (address && stack_id === peopleStackId && !(row && isDirect(item, row))) asked.push(item)
  }
  if (asked.length === 0) return
  const addresses = asked.map(({ write: { stack_id, address } }) => ({ stack_id, ...address }))
  const found = await tx.query<AliasRow>(readAliasesSql, [organization_id, JSON.stringify(addresses)])
  const idOf = new Map(found.map(({ alias_name, alias_id, id }) => [alias_name ?? alias_id, id]))
  for (const item of asked)
    if (idOf.get(addressText(item)) !== rows.get(item)?.id)
      throw new LostRace('an alias led to another person while the set waited for its locks')
}

function addressText({ write: { address } }: Item): string {
  return 'id' in address! ? address.id : address!.external_id
}

const isDirect = (item: Item, row: EntityRow): boolean =>
  addressText(item) === ('id' in item.write.address! ? row.id : row.external_id)

export type NewAlias = {
  external_id: string
  person_id: string
  /** The merge that the alias comes from. Null for the name by which a person was sent when it was found by its email or phone. */
  merge_id: number | null
}

/**
 * Inserts aliases in a transaction that has locked the head. The first alias of an organization increments the version of its
 * definitions. Throws the errors of a lost race if a name is an alias or the name of a person already.
 */
export function insertAliases(
  tx: Transaction,
  organization_id: number,
  aliases: readonly NewAlias[],
  at: string,
): Promise<unknown>[] {
  if (aliases.length === 0) return []
  return [
    countFirstAlias(tx, organization_id),
    tx.query(insertAliasesSql, [organization_id, JSON.stringify(aliases), at]),
    checkNames(
      tx,
      organization_id,
      aliases.map(({ external_id }) => external_id),
    ),
  ]
}

/**
 * Increments the version of the definitions if the organization has neither an alias nor a merge. Runs after apply, and before the
 * transaction inserts one.
 */
export const countFirstAlias = (tx: Transaction, organization_id: number): Promise<unknown> =>
  tx.query(countFirstAliasSql, [organization_id])

const checkNames = (tx: Transaction, organization_id: number, names: string[]): Promise<unknown> =>
  tx.query(checkNamesSql, [organization_id, names])

/** Checks that none of the people that the changes link to was merged meanwhile, so that no link leads to a merged person. */
function checkTargets(tx: Transaction, { definitions, accepted }: DecidedSet): Promise<unknown>[] {
  if (!definitions.has_aliases) return []
  const targets = new Set<string>()
  for (const { change } of accepted)
    for (const { attribute, targets: linked } of change.relinked)
      if (attribute.target_stack_id === peopleStackId)
        for (const target of linked) if ('id' in target) targets.add(target.id)
  return targets.size === 0 ? [] : [tx.query(checkTargetsSql, [definitions.organization_id, [...targets]])]
}

/**
 * Alias stage, after apply: stores the new aliases, deletes those of deleted people and those that their own person took as its
 * external identifier, and checks that no person has been given the name of an alias, or a link to a person who was merged.
 */
export function storeAliases(tx: Transaction, set: DecidedSet): Promise<unknown>[] {
  const { definitions, at, accepted, placeholders } = set
  const { organization_id, has_aliases } = definitions
  const added: NewAlias[] = []
  const removed: { person_id: string; external_id: string | null }[] = []
  const ended: { stack_id: number; id: string; version: number }[] = []
  const taken: string[] = []
  for (const { item, change } of accepted) {
    for (const external_id of change.aliases ?? []) added.push({ external_id, person_id: change.id, merge_id: null })
    // Without aliases there are none to delete or to check. The first one makes apply fail.
    if (!has_aliases || item.write.stack_id !== peopleStackId) continue
    const { operation, id, columns, version } = change
    if (operation === 'delete') {
      removed.push({ person_id: id, external_id: null })
      ended.push({ stack_id: peopleStackId, id, version })
    }
    if (!columns.external_id) continue
    taken.push(columns.external_id)
    if (operation === 'update') removed.push({ person_id: id, external_id: columns.external_id })
  }
  if (has_aliases)
    for (const { stack_id, external_id } of placeholders.values())
      if (stack_id === peopleStackId) taken.push(external_id)
  return [
    ...(ended.length > 0 ? [tx.query(rememberAliasesSql, [organization_id, JSON.stringify(ended)])] : []),
    ...(removed.length > 0 ? [tx.query(deleteAliasesSql, [organization_id, JSON.stringify(removed)])] : []),
    ...(taken.length > 0 ? [checkNames(tx, organization_id, taken)] : []),
    ...checkTargets(tx, set),
    ...insertAliases(tx, organization_id, added, at),
  ]
}
