import { flushed, type Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { addressedName, type Item } from './conflicts.ts'
import type { Change } from './decide.ts'
import { readSerializedWithin, type SerializedEntity } from './entity-reader.ts'
import type { EntityRow, Links, LockedRow, Target } from './entity-row.ts'
import { newEntityId } from './identifiers.ts'
import { linksNeeded, type Name, nameKey, namesNeeded } from './plan-write.ts'
import { lockEntitiesSql, lockNamedSql, readBearersSql, readLinksSql, readNamesLeftSql } from './sql.ts'
import { isMaking } from './write-request.ts'

/** One item whose decision was a change. */
export type Accepted = { item: Item; change: Change }

/** An entity that a relationship brings to life. */
export type Placeholder = Name & { id: string; version: number; item: Item }

/** Another transaction got ahead of this set between two of its statements: it is decided again. */
export class LostRace extends Error {}

/** Read: locks the addressed rows in order of id. Answers the row of each item that has one. */
export async function lockRows(tx: Transaction, organization_id: number, items: Item[]): Promise<Map<Item, LockedRow>> {
  const found = new Map<Item, LockedRow>()
  const rows = await lockAddressed(tx, organization_id, items)
  if (rows.length === 0) return found
  if (rows.some(row => row.asked !== null && row.asked !== row.external_id))
    throw new LostRace('a row was renamed while its lock was waited for')
  const byAddress = new Map<string, LockedRow>()
  for (const row of rows) {
    byAddress.set(`${row.stack_id} ${row.id}`, row)
    if (row.external_id !== null) byAddress.set(nameKey(row as Name), row)
  }
  for (const item of items) {
    const { address, stack_id } = item.write
    if (!address) continue
    const row = byAddress.get(item.name ?? `${stack_id} ${(address as { id: string }).id}`)
    if (row) found.set(item, row)
  }
  return found
}

/**
 * Locks the rows that are addressed. An array whose sets share a transaction has all of its rows locked before the first set takes the
 * head: whoever held a row of the second, and waited for that head, would wait in a circle with it.
 */
export async function lockAddressed(tx: Transaction, organization_id: number, items: Item[]): Promise<LockedRow[]> {
  const addressed = items.filter(({ write }) => write.address !== null)
  if (addressed.length === 0) return []
  const { stack_id } = addressed[0]!.write
  if (addressed.every(({ write, name }) => name !== undefined && write.stack_id === stack_id)) {
    const names = addressed.map(({ write }) => (write.address as { external_id: string }).external_id)
    return tx.query<LockedRow>(lockNamedSql, [organization_id, stack_id, names.join('\n')])
  }
  const addresses = addressed.map(({ write: { stack_id, address } }) =>
    'id' in address! ? { s: stack_id, i: address.id } : { s: stack_id, e: address!.external_id },
  )
  return tx.query<LockedRow>(lockEntitiesSql, [organization_id, JSON.stringify(addresses)])
}

/** The version at which a name was left by the last entity that had it; 0 where nobody has left it. */
export type LeftAt = (name: Name) => number

/** Read: at which versions the names were left that these items may give to new entities. Sent behind the locks, to see what they waited for. */
export async function readNamesLeft(tx: Transaction, organization_id: number, items: Item[]): Promise<LeftAt> {
  const names = new Map<string, Name>()
  for (const { write, plan, name } of items) {
    if (name !== undefined && isMaking(write)) names.set(name, addressedName(write)!)
    for (const planned of plan.links.values()) for (const target of planned.names) names.set(nameKey(target), target)
  }
  if (names.size === 0) return neverLeft
  const asked = [...names.values()].map(({ stack_id, external_id }) => ({ s: stack_id, e: external_id }))
  const rows = await tx.query<Name & { version: number }>(readNamesLeftSql, [organization_id, JSON.stringify(asked)])
  if (rows.length === 0) return neverLeft
  const versions = new Map(rows.map(row => [nameKey(row), row.version]))
  return name => versions.get(nameKey(name)) ?? 0
}

const neverLeft: LeftAt = () => 0

/** Read: who bears the names that decisions ask for, and the stored links of what is written. */
export async function readReferences(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  rows: Map<Item, EntityRow>,
): Promise<{ bearers: Map<string, string>; links: Map<string, Links> }> {
  const names = new Map<string, Name>()
  const sources: { i: string; a: number[] }[] = []
  for (const item of items) {
    for (const name of namesNeeded(item.write, item.plan)) names.set(nameKey(name), name)
    const row = rows.get(item)
    const attributeIds = row ? linksNeeded(item.write, item.plan, definitions) : []
    if (row && attributeIds.length > 0) sources.push({ i: row.id, a: attributeIds })
  }
  const bearing = names.size === 0 ? none : readBearers(tx, definitions.organization_id, [...names.values()])
  const linking = sources.length === 0 ? none : readLinks(tx, definitions.organization_id, sources)
  await flushed([bearing, linking])
  const bearers = new Map((await bearing).map(bearer => [nameKey(bearer), bearer.id]))
  return { bearers, links: groupBySource(await linking) }
}

const none = Promise.resolve([])

type Bearer = Name & { id: string }
type LinkRow = Target & { source_id: string; attribute_id: number }

const readBearers = (tx: Transaction, organization_id: number, names: Name[]) =>
  tx.query<Bearer>(readBearersSql, [
    organization_id,
    JSON.stringify(names.map(name => ({ s: name.stack_id, e: name.external_id }))),
  ])

const readLinks = (tx: Transaction, organization_id: number, sources: object[]) =>
  tx.query<LinkRow>(readLinksSql, [organization_id, JSON.stringify(sources)])

function groupBySource(rows: LinkRow[]): Map<string, Links> {
  const grouped = new Map<string, Map<number, Target[]>>()
  for (const { source_id, attribute_id, id, external_id } of rows) {
    const ofSource = grouped.get(source_id) ?? new Map<number, Target[]>()
    grouped.set(source_id, ofSource)
    ofSource.set(attribute_id, [...(ofSource.get(attribute_id) ?? []), { id, external_id }])
  }
  return grouped
}

/** The placeholders that accepted changes need, each once, born of the first item that names it. */
export function placeholdersOf(accepted: Accepted[], leftAt: LeftAt): Map<string, Placeholder> {
  const placeholders = new Map<string, Placeholder>()
  for (const { item, change } of accepted)
    for (const { name } of change.missing)
      if (!placeholders.has(nameKey(name)))
        placeholders.set(nameKey(name), {
          ...name,
          id: newEntityId(name.stack_id),
          version: leftAt(name) + 1,
          item,
        })
  return placeholders
}

/** The entities that were asked for, as they stand within the transaction, by internal identifier. */
export async function readRepresentations(
  tx: Transaction,
  definitions: Definitions,
  wanted: { stack_id: number; id: string }[],
  rowOctets: number,
): Promise<Map<string, SerializedEntity>> {
  const byStack = Map.groupBy(wanted, ({ stack_id }) => stack_id)
  const reads = [...byStack].map(([stack_id, entities]) => {
    const ids = entities.map(({ id }) => id)
    return readSerializedWithin(tx, definitions, stack_id, ids, rowOctets)
  })
  await flushed(reads)
  const standings = (await Promise.all(reads)).flat()
  return new Map(standings.map(standing => [standing.identifier, standing]))
}
