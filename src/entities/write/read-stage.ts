import { answerKey, possibleRepeats } from '../../consents/answers.ts'
import { awaitPipelined, type Transaction } from '../../db/db.ts'
import { type Channel, type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import type { KnownAnswers } from '../decide/decide-answers.ts'
import type { DecidedRound } from '../decide/decide-round.ts'
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
import type { Loaded } from './state.ts'

/** Read stage: reads the addressed rows, and which identifier leads to which. */
export async function readRows(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
): Promise<Pick<Loaded, 'rows'> & { ids: Map<string, string> }> {
  const rows = new Map<string, StoredRow>()
  const ids = new Map<string, string>()
  for (const row of await readAddressed(tx, definitions, items)) {
    const { stack_id, id, external_id, alias_name, alias_id } = row
    rows.set(id, row)
    ids.set(referenceKey({ stack_id, id }), id)
    if (external_id !== null) ids.set(nameKey({ stack_id, external_id }), id)
    if (alias_name) ids.set(nameKey({ stack_id, external_id: alias_name }), id)
    if (alias_id) ids.set(referenceKey({ stack_id, id: alias_id }), id)
  }
  return { rows, ids }
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
    const names = new Set(addressed.map(({ write }) => (write.address as { external_id: string }).external_id))
    return tx.query<StoredRow>(readNamedSql, [organization_id, stack_id, [...names].join('\n')])
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
): Promise<Loaded['lastVersionOf']> {
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

/** Read stage: reads the entities that the items refer to. Issues no statement for items that refer to none. */
export async function readReferences(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
): Promise<Pick<Loaded, 'otherwiseNamed'> & { ids: Map<string, string>; names: Map<string, string | null> }> {
  const references = new Map<string, Reference>()
  for (const { write, plan } of items)
    for (const reference of requiredReferences(write, plan)) references.set(referenceKey(reference), reference)
  const ids = new Map<string, string>()
  const names = new Map<string, string | null>()
  const otherwiseNamed = new Map<string, Target>()
  if (references.size === 0) return { ids, names, otherwiseNamed }
  const statement = has_aliases ? readBearersWithAliasesSql : readBearersSql
  const found = await tx.query<Referenced>(statement, [organization_id, JSON.stringify([...references.values()])])
  for (const { stack_id, external_id, asked_id, id, is_alias, current_name = null } of found) {
    const key = referenceKey(external_id === null ? { stack_id, id: asked_id! } : { stack_id, external_id })
    ids.set(key, id)
    names.set(id, current_name)
    if (is_alias || external_id === null) otherwiseNamed.set(key, { id, external_id: current_name })
  }
  return { ids, names, otherwiseNamed }
}

/** Read stage: reads the links of the addressed rows under the attributes that the items write. */
export async function readLinks(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  rowOf: (item: Item) => StoredRow | undefined,
): Promise<Loaded['links']> {
  const sources = new Map<string, Set<number>>()
  for (const item of items) {
    const row = rowOf(item)
    if (!row) continue
    for (const attribute_id of requiredLinkAttributes(item.write, item.plan, definitions))
      sources.set(row.id, (sources.get(row.id) ?? new Set()).add(attribute_id))
  }
  if (sources.size === 0) return noLinks
  const asked = [...sources].map(([source_id, attributes]) => ({ source_id, attribute_ids: [...attributes] }))
  const found = await tx.query<LinkRow>(readLinksSql, [definitions.organization_id, JSON.stringify(asked)])
  return groupBySource(found)
}

const noLinks: Loaded['links'] = new Map()

/**
 * Read stage of imports: finds the answers with evidence that the history already has. Few answers can be repeats, and
 * without one no statement runs.
 */
export async function readKnownAnswers(
  tx: Transaction,
  organization_id: number,
  items: Item[],
  rowOf: (item: Item) => StoredRow | undefined,
): Promise<KnownAnswers> {
  const writes: Write[] = []
  const asked: object[] = []
  for (const item of items) {
    const row = item.write.operation === 'import' ? rowOf(item) : undefined
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
  { definitions, decisions }: DecidedRound,
): Promise<Map<string, SerializedEntity>> {
  const idsByStack = new Map<number, string[]>()
  let maxRowBytes = maxBatchedRowBytes
  for (const [{ write }, decision] of decisions) {
    if (!write.represent || 'refusal' in decision || 'replayed' in decision) continue
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
