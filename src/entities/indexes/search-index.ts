import type { Within } from '../../db/context.ts'
import { awaitPipelined, type Transaction } from '../../db/db.ts'
import type { Follower, Progress, Task } from '../../followers/follower.ts'
import { currentDefinitions, type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { firstId } from '../../values/formats.ts'
import { dialledDigits } from '../../values/phone-numbers.ts'
import { phoneColumns, wordColumns } from '../../values/profile-fields.ts'
import { analyzeEntitiesSql, scanIdsSql } from './index-keys-sql.ts'
import {
  advanceSearchIndexSql,
  appendWords,
  beginSearchIndexSql,
  deleteDocumentsSql,
  deleteFeaturesSql,
  deleteWordsSql,
  dropSearchIndexSql,
  eraseDocumentsSql,
  insertFeaturesSql,
  listChangedEntitiesSql,
  listDocumentsSql,
  lockSearchFollowerSql,
  readSearchIndexesSql,
  readSearchSourcesSql,
  searchFollowerName,
  storeDocumentsSql,
} from './search-index-sql.ts'
import { backwards, featuresOf, pairAcross, wordsForm, wordsOf } from './search-words.ts'

const entitiesPerBatch = 500
/** A fill of fewer entities is fast with any plan. */
const minAnalyzed = 1_000
/** The numbers of the log that one transaction works through. */
const changesPerBatch = 1_000
/** An entity is found by this many of its words. */
const maxWords = 256
/** The text of one value that is searched for words. */
const maxTextCharacters = 20_000

/** The fields that every entity is found by. A change of another field changes no word. */
const fieldsWithWords = [...wordColumns, ...phoneColumns, 'external_id'] as const

export type SearchIndexOptions = { entitiesPerBatch?: number }

/**
 * Keeps the words of people, and of the stacks with searchable attributes. It fills an index from the stored rows
 * first, and then follows the change log. It reads the current rows, so it may repeat work. Each transaction holds the
 * lease, and an erasure waits for it, so that no word of an erased person is stored afterwards.
 */
export function searchFollower({ entitiesPerBatch: limit = entitiesPerBatch }: SearchIndexOptions = {}): Follower {
  return {
    name: searchFollowerName,
    isForEveryOrganization: false,
    maxConcurrent: 1,
    work: task => indexOrganization(task, limit),
  }
}

type SearchIndex = {
  stack_id: number
  keys: string[]
  form: number
  after_id: string
  indexed: number
  total: number
  is_ready: boolean
}

async function indexOrganization(task: Task, limit: number): Promise<Progress> {
  const { db, organization_id, head, signal } = task
  const definitions = await currentDefinitions(task, signal)
  const wanted = searchedKeys(definitions)
  const indexes = await db.query<SearchIndex>(readSearchIndexesSql, [organization_id])
  let sequence = task.after
  for (const { stack_id } of indexes) if (!wanted.has(stack_id)) await dropIndex(task, stack_id, limit)
  for (const [stack_id, keys] of wanted) {
    const index = indexes.find(each => each.stack_id === stack_id)
    const isCurrent = index?.form === wordsForm && index.keys.join('\n') === keys.join('\n')
    if (isCurrent && index.is_ready) continue
    // The very first fill reads rows that include every change so far, so the follower skips these changes. It leaves
    // the last one, so that another process finds the follower behind if this process stops.
    if (indexes.length === 0 && stack_id === peopleStackId) sequence = Math.max(sequence, head - 1)
    if (!isCurrent) await beginIndex(task, stack_id, keys, sequence)
    await fillIndex(task, definitions, { stack_id, keys, after_id: isCurrent ? index.after_id : firstId }, limit)
  }
  while (sequence < head && !signal.aborted) {
    const until = Math.min(head, sequence + changesPerBatch)
    await indexChanges(task, definitions, wanted, { after: sequence, until })
    sequence = until
  }
  return { sequence }
}

/** The keys of the searchable attributes by stack, in order. People have an index even without any. */
export function searchedKeys({ attributes }: Definitions): Map<number, string[]> {
  const keys = new Map<number, string[]>([[peopleStackId, []]])
  for (const { searchable, state, owner_stack_id, key } of attributes)
    if (searchable && state === 'active') keys.set(owner_stack_id, [...(keys.get(owner_stack_id) ?? []), key].sort())
  return keys
}

async function beginIndex(task: Task, stack_id: number, keys: string[], sequence: number) {
  const total = await task.db.transaction(async tx => {
    await task.advance(tx, sequence)
    const [begun] = await tx.query<{ total: number }>(beginSearchIndexSql, [
      task.organization_id,
      stack_id,
      keys,
      wordsForm,
    ])
    return begun!.total
  })
  // Without statistics PostgreSQL may look an entity up in the index of external identifiers.
  if (total >= minAnalyzed) await task.db.query(analyzeEntitiesSql, [])
}

async function fillIndex(
  task: Task,
  definitions: Definitions,
  { stack_id, keys, after_id }: Pick<SearchIndex, 'stack_id' | 'keys' | 'after_id'>,
  limit: number,
) {
  let [after, isComplete] = [after_id, false]
  while (!isComplete && !task.signal.aborted)
    await task.db.transaction(async tx => {
      await task.hold(tx)
      const rows = await tx.query<{ id: string }>(scanIdsSql, [task.organization_id, stack_id, after, limit])
      const ids = rows.map(({ id }) => id)
      await indexEntities(tx, definitions, { stack_id, keys, ids })
      isComplete = ids.length < limit
      const progress = [stack_id, ids.at(-1) ?? null, ids.length, isComplete]
      await tx.query(advanceSearchIndexSql, [task.organization_id, ...progress])
      after = ids.at(-1) ?? after
    })
}

async function dropIndex(task: Task, stack_id: number, limit: number) {
  for (let isComplete = false; !isComplete && !task.signal.aborted; )
    await task.db.transaction(async tx => {
      await task.hold(tx)
      const documents = await tx.query<Document>(listDocumentsSql, [task.organization_id, stack_id, limit])
      await deleteDocuments({ tx, organization_id: task.organization_id }, stack_id, documents)
      isComplete = documents.length < limit
      if (isComplete) await tx.query(dropSearchIndexSql, [task.organization_id, stack_id])
    })
}

async function indexChanges(
  task: Task,
  definitions: Definitions,
  wanted: Map<number, string[]>,
  { after, until }: { after: number; until: number },
) {
  const { organization_id } = task
  // An alias may come with any change of its person.
  const fields = definitions.has_aliases ? null : fieldsWithWords
  const allKeys = [...new Set([...wanted.values()].flat())]
  const values = [organization_id, after, until, fields, allKeys]
  const changed = await task.db.query<{ stack_id: number; id: string }>(listChangedEntitiesSql, values)
  // The end of the task stores the position.
  if (changed.length === 0 && until === task.head) return
  await task.db.transaction(async tx => {
    await task.hold(tx)
    for (const [stack_id, entities] of Map.groupBy(changed, each => each.stack_id)) {
      const keys = wanted.get(stack_id)
      if (!keys) continue
      await indexEntities(tx, definitions, { stack_id, keys, ids: entities.map(({ id }) => id) })
    }
    await task.advance(tx, until)
  })
}

/**
 * Stores the current words of people, in a transaction that has locked the head. Waits for the follower, which may
 * store words of the same people.
 */
export async function reindexPeople(tx: Transaction, definitions: Definitions, ids: string[]): Promise<void> {
  const { organization_id } = definitions
  await tx.query(lockSearchFollowerSql, [organization_id])
  const indexes = await tx.query<SearchIndex>(readSearchIndexesSql, [organization_id])
  const index = indexes.find(({ stack_id }) => stack_id === peopleStackId)
  if (index) await indexEntities(tx, definitions, { stack_id: peopleStackId, keys: index.keys, ids })
}

type Source = {
  id: string
  /** Null if the entity does not exist. The other members are then null too. */
  exists: true | null
  /** The texts of the searched profile fields, see {@link wordColumns}. */
  texts: (string | null)[] | null
  /** The phone in E.164. */
  mobile_key: string | null
  mobile_number: string | null
  external_id: string | null
  values: unknown[] | null
  aliases: string[] | null
  /** The emails and phones of merged people that lead to the person. */
  emails: string[] | null
  mobiles: string[] | null
  words: string | null
}

type Document = { id: string; words: string }

/** Stores the current words of the entities, and deletes those of entities that do not exist. */
async function indexEntities(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  { stack_id, keys, ids }: { stack_id: number; keys: string[]; ids: string[] },
) {
  if (ids.length === 0) return
  const mayHaveAliases = has_aliases && stack_id === peopleStackId
  const values = [organization_id, stack_id, ids, keys, mayHaveAliases]
  const sources = await tx.query<Source>(readSearchSourcesSql, values)
  const stored: Document[] = []
  const deleted: Document[] = []
  const inserted: WordOfEntity[] = []
  const left: WordOfEntity[] = []
  for (const source of sources) {
    const { id } = source
    const before = listWords(source.words ?? '')
    const after = source.exists ? searchWords(source) : []
    if (after.length === 0 && source.words !== null) deleted.push({ id, words: source.words })
    if (after.length === 0) continue
    const words = documentOf(after)
    if (words !== source.words) stored.push({ id, words })
    for (const word of new Set(after).difference(new Set(before))) inserted.push({ word, id })
    for (const word of new Set(before).difference(new Set(after))) left.push({ word, id })
  }
  await storeWords({ tx, organization_id }, stack_id, stored, inserted)
  await deleteWords({ tx, organization_id }, stack_id, left)
  await deleteDocuments({ tx, organization_id }, stack_id, deleted)
}

type WordOfEntity = { word: string; id: string }

async function storeWords(
  { tx, organization_id }: Within,
  stack_id: number,
  stored: Document[],
  inserted: WordOfEntity[],
) {
  const sent: Promise<unknown>[] = []
  if (stored.length > 0) {
    const lines = [linesOf(stored, 'id'), linesOf(stored, 'words')]
    sent.push(tx.query(storeDocumentsSql, [organization_id, stack_id, ...lines]))
  }
  inserted.sort((a, b) => (a.word < b.word ? -1 : a.word > b.word ? 1 : 0))
  const rows = inserted.map(({ word, id }) => ({ organization_id, stack_id, word, entity_id: id }))
  if (rows.length > 0) sent.push(tx.append(appendWords, rows))
  const features = featuresByWord(inserted)
  if (features) sent.push(tx.query(insertFeaturesSql, [organization_id, stack_id, features]))
  await awaitPipelined(sent)
}

async function deleteWords({ tx, organization_id }: Within, stack_id: number, left: WordOfEntity[]) {
  if (left.length === 0) return
  await tx.query(deleteWordsSql, [organization_id, stack_id, linesOf(left, 'word'), linesOf(left, 'id')])
  const features = featuresByWord(left)
  if (features) await tx.query(deleteFeaturesSql, [organization_id, stack_id, features])
}

async function deleteDocuments(within: Within, stack_id: number, documents: Document[]) {
  const { tx, organization_id } = within
  if (documents.length === 0) return
  await tx.query(deleteDocumentsSql, [organization_id, stack_id, documents.map(({ id }) => id)])
  await deleteWords(within, stack_id, wordsOfDocuments(documents))
}

const wordsOfDocuments = (documents: readonly Document[]): WordOfEntity[] =>
  documents.flatMap(({ id, words }) => listWords(words).map(word => ({ word, id })))

/**
 * One member of all items, one per line. Neither a word nor an id has a line feed, and pg escapes each element of an
 * array.
 */
const linesOf = <Name extends string>(items: readonly Record<Name, string>[], name: Name): string =>
  items.map(item => item[name]).join('\n')

/** The features of the words that have any, as JSON. */
function featuresByWord(words: readonly WordOfEntity[]): string | undefined {
  const distinct = new Set(words.map(({ word }) => word))
  const features = [...distinct].map(word => [word, featuresOf(word)] as const).filter(([, own]) => own.length > 0)
  return features.length === 0 ? undefined : JSON.stringify(Object.fromEntries(features))
}

const listWords = (document: string): string[] => document.split(' ').filter(word => word !== '')

/** The text that is stored: each word between two spaces. */
const documentOf = (words: readonly string[]) => ` ${words.join(' ')} `

/**
 * The words of a person's phones: the digits as written, in full, as dialed in their country, and the last ones
 * backwards.
 */
function phoneWords({ mobile_key, mobile_number, mobiles }: Source): string[] {
  const [written] = wordsOf((mobile_number ?? '').replace(/\P{Nd}/gu, ''))
  const numbers = [mobile_key, ...(mobiles ?? [])].filter(number => number !== null)
  const whole = numbers.map(number => number.slice(1))
  if (written !== undefined && mobile_key === null) whole.push(written)
  return [...whole, ...(written === undefined ? [] : [written]), ...numbers.map(dialledDigits), ...whole.map(backwards)]
}

/** The distinct words that an entity is found by. */
function searchWords(source: Source): string[] {
  const words = new Set<string>()
  const addWord = (word: string) => words.size < maxWords && words.add(word)
  const add = (text: string) => {
    for (const word of wordsOf(text.slice(0, maxTextCharacters))) addWord(word)
  }
  const { texts, external_id } = source
  for (const text of [...(texts ?? []), external_id]) if (text) add(text)
  const [first, last] = (['first_name', 'last_name'] as const).map(name => texts?.[wordColumns.indexOf(name)])
  // Names in scripts without spaces are written in either order.
  if (first && last) for (const pair of [...pairAcross(last, first), ...pairAcross(first, last)]) words.add(pair)
  for (const word of phoneWords(source)) addWord(word)
  for (const alias of [...(source.aliases ?? []), ...(source.emails ?? [])]) add(alias)
  for (const value of (source.values ?? []).flat()) if (typeof value === 'string') add(value)
  return [...words]
}

/**
 * Deletes the documents and words of erased entities, in the transaction of the erasure, which has locked the follower.
 * Returns the number of documents.
 */
export async function eraseSearchWords(
  within: Within,
  entities: readonly { stack_id: number; id: string }[],
): Promise<number> {
  const { tx, organization_id } = within
  const values = [organization_id, entities.map(({ stack_id }) => stack_id), entities.map(({ id }) => id)]
  const erased = await tx.query<Document & { stack_id: number }>(eraseDocumentsSql, values)
  for (const [stack_id, documents] of Map.groupBy(erased, each => each.stack_id))
    await deleteWords(within, stack_id, wordsOfDocuments(documents))
  return erased.length
}
