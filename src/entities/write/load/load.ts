import { answerKey, hasAnswers, possibleRepeats } from '../../../consents/answers.ts'
import type { Within } from '../../../db/context.ts'
import { awaitPipelined, type Transaction } from '../../../db/db.ts'
import { readKeys } from '../../../idempotency/kept-responses.ts'
import { type Definitions, peopleStackId } from '../../../organizations/definitions.ts'
import type { Channel } from '../../../values/channels.ts'
import { readBearersSql, readBearersWithAliasesSql } from '../../bearers-sql.ts'
import type { EntityRow, Links, StoredRow, Target } from '../../entity-row.ts'
import { type DeletedEntity, readLastChange, readPastState, readStandingTargets } from '../../past/past-state.ts'
import { canCreate, timeOfUndated, type Write } from '../../write-request.ts'
import type { KnownAnswers } from '../decide/answers.ts'
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
} from '../plan.ts'
import { readGivenTombstones, readKept } from '../tombstones.ts'
import { claimsOf, findHolders } from '../unique.ts'
import {
  readKnownAnswersSql,
  readLinksSql,
  readNamedSql,
  readNamesLeftSql,
  readRowsSql,
  readRowsWithAliasesSql,
} from './load-sql.ts'
import { type Loaded, rowOf } from './loaded.ts'
import { matchItems } from './match.ts'

/**
 * Loads the data that items name in one flush, and in a second one the data to which only the rows lead. Before that,
 * it finds the people that items recognize. A read without work issues no statement.
 */
export async function load(tx: Transaction, definitions: Definitions, unmatched: Item[]): Promise<Loaded> {
  const { organization_id, unique } = definitions
  const within = { tx, organization_id }
  const reading = { db: tx, organization_id }
  const matched = unmatched.some(({ match }) => match) ? await matchItems(within, unmatched) : undefined
  const items = matched?.items ?? unmatched
  const readingRows = readRows(tx, definitions, items)
  const readingVersions = readLastVersions(within, items)
  const findingHolders = findHolders(
    reading,
    items.flatMap(({ plan }) => plan.claims ?? []),
  )
  const readingReferences = readReferences(tx, definitions, items)
  const readingKeys = readKeys(
    within,
    items.flatMap(({ write: { keyed } }) => keyed ?? []),
  )
  await awaitPipelined([readingRows, readingVersions, findingHolders, readingReferences, readingKeys])
  const [{ rows, ids }, lastVersionOf, holders] = [await readingRows, await readingVersions, await findingHolders]
  const references = await readingReferences
  for (const [key, id] of references.ids) ids.set(key, id)

  const rowOfItem = (item: Item) => rowOf({ rows, ids }, item)
  const readingLinks = readLinks(tx, definitions, items, rowOfItem)
  const readingAnswers = readKnownAnswers(tx, definitions, items, rowOfItem)
  const readingDeleted = readDeletedEntities(tx, definitions, items, rowOfItem)
  await awaitPipelined([readingLinks, readingAnswers, readingDeleted])
  const deleted = await readingDeleted
  const claims = [...deleted].flatMap(([{ write }, { attributes }]) => claimsOf(unique.get(write.stack_id), attributes))
  const loaded = {
    items,
    refused: matched?.refused ?? noRefusals,
    ids,
    rows,
    otherwiseNamed: references.otherwiseNamed,
    links: await readingLinks,
    lastVersionOf,
    knownAnswers: await readingAnswers,
    deleted,
    keys: await readingKeys,
    holders: claims.length === 0 ? holders : new Map([...holders, ...(await findHolders(reading, claims))]),
  }
  return { ...loaded, erased: await readGivenTombstones(tx, definitions, loaded) }
}

const noRefusals: Loaded['refused'] = new Map()

/** Read stage: reads the addressed rows, and the id to which each identifier leads. */
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
async function readAddressed(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
): Promise<StoredRow[]> {
  const addressed = items.filter(({ write }) => write.address !== null)
  if (addressed.length === 0) return []
  const { stack_id } = addressed[0]!.write
  const mayHaveAliases = has_aliases && addressed.some(({ write }) => write.stack_id === peopleStackId)
  if (
    !mayHaveAliases &&
    addressed.every(({ write }) => 'external_id' in write.address! && write.stack_id === stack_id)
  ) {
    const names = new Set(addressed.map(({ write }) => (write.address as { external_id: string }).external_id))
    return tx.query<StoredRow>(readNamedSql, [organization_id, stack_id, [...names].join('\n')])
  }
  const addresses = addressed.map(({ write: { stack_id, address } }) => ({ stack_id, ...address }))
  const statement = mayHaveAliases ? readRowsWithAliasesSql : readRowsSql
  return tx.query<StoredRow>(statement, [organization_id, JSON.stringify(addresses)])
}

/** Read stage: reads the versions at which the names that entities may take were released. */
async function readLastVersions({ tx, organization_id }: Within, items: Item[]): Promise<Loaded['lastVersionOf']> {
  const names = new Map<string, Name>()
  for (const { write, plan, key } of items) {
    const name = canCreate(write) ? addressedName(write) : undefined
    if (name) names.set(key!, name)
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
async function readReferences(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
): Promise<Pick<Loaded, 'otherwiseNamed'> & { ids: Map<string, string> }> {
  const references = new Map<string, Reference>()
  for (const { write, plan } of items)
    for (const reference of requiredReferences(write, plan)) references.set(referenceKey(reference), reference)
  const ids = new Map<string, string>()
  const otherwiseNamed = new Map<string, Target>()
  if (references.size === 0) return { ids, otherwiseNamed }
  const statement = has_aliases ? readBearersWithAliasesSql : readBearersSql
  const found = await tx.query<Referenced>(statement, [organization_id, JSON.stringify([...references.values()])])
  for (const { stack_id, external_id, asked_id, id, is_alias, current_name = null } of found) {
    const key = referenceKey(external_id === null ? { stack_id, id: asked_id! } : { stack_id, external_id })
    ids.set(key, id)
    if (is_alias || external_id === null) otherwiseNamed.set(key, { id, external_id: current_name })
  }
  return { ids, otherwiseNamed }
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
  return linksBySource(found)
}

const noLinks: Loaded['links'] = new Map()

/**
 * Read stage of imports: finds the answers that the history already has. It issues no statement if no answer can be a
 * repeat, which is the usual case.
 */
export async function readKnownAnswers<Writing extends Pick<Item, 'write'>>(
  tx: Transaction,
  { organization_id, consent_types }: Pick<Definitions, 'organization_id' | 'consent_types'>,
  items: readonly Writing[],
  rowOf: (item: Writing) => StoredRow | undefined,
): Promise<KnownAnswers> {
  const writes: Write[] = []
  const asked: object[] = []
  for (const item of items) {
    const row = item.write.operation === 'import' ? rowOf(item) : undefined
    if (!row || !hasAnswers(item.write.body)) continue
    const { body } = item.write
    const repeats = possibleRepeats(body, row.answers, consent_types, timeOfUndated(item.write))
    for (const { person_id, ...answer } of repeats) {
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

/**
 * An entity that a write refers to by its name, an alias, its internal identifier, or that of a person who was merged
 * into it.
 */
type Referenced = {
  stack_id: number
  external_id: string | null
  asked_id: string | null
  id: string
  is_alias?: boolean
  current_name?: string | null
}
/** A row of {@link readLinksSql}. */
export type LinkRow = Target & { source_id: string; attribute_id: number }

export function linksBySource(rows: LinkRow[]): Map<string, Links> {
  const grouped = Map.groupBy(rows, ({ source_id }) => source_id)
  return new Map([...grouped].map(([id, links]) => [id, Map.groupBy(links, ({ attribute_id }) => attribute_id)]))
}

/**
 * Read stage of restores: reads the deleted entities from the change log. An item without one addresses an entity that
 * exists, that never existed, or whose values in the log were erased.
 */
export async function readDeletedEntities(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  rowOf: (item: Item) => EntityRow | undefined,
): Promise<Loaded['deleted']> {
  const restores = items.filter(item => item.write.operation === 'restore' && !rowOf(item))
  if (restores.length === 0) return noEntities
  const reads = restores.map(item => readDeletedEntity(tx, definitions, item.write))
  await awaitPipelined(reads)
  const deleted = new Map<Item, DeletedEntity>()
  for (const [index, item] of restores.entries()) {
    const entity = await reads[index]
    if (entity) deleted.set(item, entity)
  }
  return deleted
}

const noEntities: Loaded['deleted'] = new Map()

async function readDeletedEntity(
  tx: Transaction,
  definitions: Definitions,
  { stack_id, address }: Write,
): Promise<DeletedEntity | undefined> {
  const { organization_id } = definitions
  const { id } = address as { id: string }
  const entity = { stack_id, id }
  const deletion = await readLastChange({ db: tx, organization_id }, entity)
  // A merged person comes back by an unmerge only, and an erased one not at all.
  if (deletion?.operation !== 'delete') return undefined
  const past = await readPastState(tx, definitions, entity, deletion.version - 1)
  if (!past) return undefined
  const { links, ...state } = past
  const name = state.columns.external_id ?? null
  const { bearer, lastVersion } = await readName(tx, definitions, stack_id, name)
  const standing = await readStandingTargets({ db: tx, organization_id }, links)
  // A link to itself returns with the entity.
  const itself = (target: Target) => (target.id === id ? { id, external_id: name } : target)
  const change = { operation: 'restore', external_id: name, columns: state.columns, missing: [] }
  const kept = stack_id === peopleStackId ? await readKept(tx, definitions, change, deletion.sequence) : undefined
  return {
    ...state,
    id,
    links: standing.map(({ attribute, targets }) => ({ attribute, targets: targets.map(itself) })),
    version: Math.max(deletion.version, lastVersion),
    created_at: deletion.created_at,
    isNameTaken: bearer !== undefined,
    kept,
  }
}

/** Reads the entity that has the name now, and the version at which the name was last released. */
async function readName(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  stack_id: number,
  name: string | null,
) {
  if (name === null) return { bearer: undefined, lastVersion: 0 }
  const parameters = [organization_id, JSON.stringify([{ stack_id, external_id: name }])]
  const statement = has_aliases ? readBearersWithAliasesSql : readBearersSql
  const [bearer] = await tx.query<{ id: string }>(statement, parameters)
  const [release] = await tx.query<{ version: number }>(readNamesLeftSql, parameters)
  return { bearer: bearer?.id, lastVersion: release?.version ?? 0 }
}
