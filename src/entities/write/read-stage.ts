import { answerKey, possibleRepeats } from '../../consents/answers.ts'
import { awaitPipelined, type Transaction } from '../../db/db.ts'
import { type Channel, type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import type { KnownAnswers } from '../decide/decide-answers.ts'
import type { DecidedSet, ReadState } from '../decide/decide-set.ts'
import type { Links, StoredRow, Target } from '../entity-row.ts'
import { maxBatchedRowBytes, readSerializedWithin, type SerializedEntity } from '../read/entity-reader.ts'
import { unlimitedRowBytes } from '../read/pagination.ts'
import { canCreate, type Write } from '../write-request.ts'
import { readBearersWithAliasesSql, readRowsWithAliasesSql } from './alias-sql.ts'
import {
  addressedName,
  aliasOf,
  type Item,
  type Name,
  nameKey,
  newNameOf,
  type Reference,
  referenceKey,
  requiredLinkAttributes,
  requiredReferences,
} from './plan-write.ts'
import {
  readBearersSql,
  readKnownAnswersSql,
  readLinksSql,
  readNamedSql,
  readNamesLeftSql,
  readRowsSql,
} from './sql.ts'

/** Read stage: reads the addressed rows. Returns the row of each item that has one. */
export async function readRows(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
): Promise<Map<Item, StoredRow>> {
  const found = new Map<Item, StoredRow>()
  const rows = await readAddressed(tx, definitions, items)
  if (rows.length === 0) return found
  const byAddress = new Map<string, StoredRow>()
  for (const row of rows) {
    const { stack_id, alias_name, alias_id } = row
    byAddress.set(`${stack_id} ${row.id}`, row)
    if (row.external_id !== null) byAddress.set(nameKey(row as Name), row)
    if (alias_name) byAddress.set(nameKey({ stack_id, external_id: alias_name }), row)
    if (alias_id) byAddress.set(`${stack_id} ${alias_id}`, row)
  }
  for (const item of items) {
    const { address, stack_id } = item.write
    if (!address) continue
    const row = byAddress.get(item.name ?? `${stack_id} ${(address as { id: string }).id}`)
    if (row) found.set(item, row)
  }
  return found
}

/** Reads the rows that items address. */
export async function readAddressed(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
): Promise<StoredRow[]> {
  const addressed = items.filter(({ write }) => write.address !== null)
  if (addressed.length === 0) return []
  const { stack_id } = addressed[0]!.write
  const mayHaveAliases = has_aliases && addressed.some(({ write }) => write.stack_id === peopleStackId)
  if (!mayHaveAliases && addressed.every(({ write, name }) => name !== undefined && write.stack_id === stack_id)) {
    const names = addressed.map(({ write }) => (write.address as { external_id: string }).external_id)
    return tx.query<StoredRow>(readNamedSql, [organization_id, stack_id, names.join('\n')])
  }
  const addresses = addressed.map(({ write: { stack_id, address } }) => ({ stack_id, ...address }))
  const statement = mayHaveAliases ? readRowsWithAliasesSql : readRowsSql
  return tx.query<StoredRow>(statement, [organization_id, JSON.stringify(addresses)])
}

/** Read stage: reads the versions at which the names that entities may take were released. */
export async function readLastVersions(
  tx: Transaction,
  organization_id: number,
  items: Item[],
): Promise<ReadState['lastVersionOf']> {
  const names = new Map<string, Name>()
  for (const { write, plan, name } of items) {
    if (name !== undefined && canCreate(write)) names.set(name, addressedName(write)!)
    const newName = newNameOf(write) ?? aliasOf(write)
    if (newName) names.set(nameKey(newName), newName)
    for (const { references } of plan.links.values())
      for (const target of references) if (!('id' in target)) names.set(nameKey(target), target)
  }
  if (names.size === 0) return noVersions
  const rows = await tx.query<Name & { version: number }>(readNamesLeftSql, [
    organization_id,
    JSON.stringify([...names.values()]),
  ])
  if (rows.length === 0) return noVersions
  const versions = new Map(rows.map(row => [nameKey(row), row.version]))
  return name => versions.get(nameKey(name)) ?? 0
}

const noVersions = () => 0

/** Read stage: reads the entities that the items refer to, and the links of the written entities. */
export async function readReferences(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  rows: ReadState['rows'],
): Promise<Pick<ReadState, 'idsByReference' | 'links' | 'otherwiseNamed'>> {
  const references = new Map<string, Reference>()
  const sources: { source_id: string; attribute_ids: number[] }[] = []
  for (const item of items) {
    for (const reference of requiredReferences(item.write, item.plan))
      references.set(referenceKey(reference), reference)
    const row = rows.get(item)
    const attribute_ids = row ? requiredLinkAttributes(item.write, item.plan, definitions) : []
    if (row && attribute_ids.length > 0) sources.push({ source_id: row.id, attribute_ids })
  }
  const readingIds = references.size === 0 ? noRows : readReferenced(tx, definitions, [...references.values()])
  const readingLinks = sources.length === 0 ? noRows : readLinks(tx, definitions.organization_id, sources)
  await awaitPipelined([readingIds, readingLinks])
  const idsByReference = new Map<string, string>()
  const otherwiseNamed = new Map<string, Target>()
  for (const { stack_id, external_id, asked_id, id, is_alias, current_name = null } of await readingIds) {
    const key = referenceKey(external_id === null ? { stack_id, id: asked_id! } : { stack_id, external_id })
    idsByReference.set(key, id)
    if (is_alias || external_id === null) otherwiseNamed.set(key, { id, external_id: current_name })
  }
  return { idsByReference, otherwiseNamed, links: groupBySource(await readingLinks) }
}

/**
 * Read stage of imports: finds the answers with evidence that the history already has. Few answers can be repeats, and
 * without one no statement runs.
 */
export async function readKnownAnswers(
  tx: Transaction,
  organization_id: number,
  items: Item[],
  rows: ReadState['rows'],
): Promise<KnownAnswers> {
  const writes: Write[] = []
  const asked: object[] = []
  for (const item of items) {
    const row = item.write.operation === 'import' ? rows.get(item) : undefined
    for (const { person_id, ...answer } of row ? possibleRepeats(item.write.body, row.answers) : []) {
      asked.push({ position: writes.length, person_ids: person_id ? [row!.id, person_id] : [row!.id], ...answer })
      writes.push(item.write)
    }
  }
  if (asked.length === 0) return noAnswers
  const found = await tx.query<{ position: number; consent_type_id: number; channel: Channel }>(readKnownAnswersSql, [
    organization_id,
    JSON.stringify(asked),
  ])
  const known = new Map<Write, Set<string>>()
  for (const { position, consent_type_id, channel } of found) {
    const write = writes[position]!
    known.set(write, (known.get(write) ?? new Set()).add(answerKey(consent_type_id, channel)))
  }
  return known
}

const noAnswers: KnownAnswers = new Map()

const noRows = Promise.resolve([])

/** An entity that was asked for by its name, an alias, its internal identifier or that of a person who was merged into it. */
type Referenced = {
  stack_id: number
  external_id: string | null
  asked_id: string | null
  id: string
  is_alias?: boolean
  current_name?: string | null
}
type LinkRow = Target & { source_id: string; attribute_id: number }

function readReferenced(tx: Transaction, { organization_id, has_aliases }: Definitions, references: Reference[]) {
  const statement = has_aliases ? readBearersWithAliasesSql : readBearersSql
  return tx.query<Referenced>(statement, [organization_id, JSON.stringify(references)])
}

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

/** Represent stage: reads the entities that the writes return, as the transaction sees them. Returns them by id. */
export async function readRepresentations(
  tx: Transaction,
  { definitions, decisions }: DecidedSet,
): Promise<Map<string, SerializedEntity>> {
  const idsByStack = new Map<number, string[]>()
  let maxRowBytes = maxBatchedRowBytes
  for (const [{ write }, decision] of decisions) {
    if (!write.represent || 'refusal' in decision) continue
    if (write.represent === 'whole') maxRowBytes = unlimitedRowBytes
    const ids = idsByStack.get(write.stack_id) ?? []
    idsByStack.set(write.stack_id, ids)
    ids.push('change' in decision ? decision.change.id : decision.unchanged.id)
  }
  const reads = [...idsByStack].map(([stack_id, ids]) =>
    readSerializedWithin(tx, definitions, stack_id, ids, maxRowBytes),
  )
  await awaitPipelined(reads)
  const found = (await Promise.all(reads)).flat()
  return new Map(found.map(entity => [entity.identifier, entity]))
}
