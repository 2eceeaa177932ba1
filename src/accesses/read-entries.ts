import type { Reading } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import {
  type AccessKind,
  batchesOf,
  bucketOf,
  bytesOf,
  decodeEntries,
  decodeEntriesOf,
  type Entry,
  hashOf,
  idsOfTime,
} from './batch.ts'
import { findUnindexedSql, readBatchesSql, readIndexSql, readNamedBatchesSql, readSecurityBatchesSql } from './sql.ts'

/** The entries to read. Times are Unix time in milliseconds, both inclusive. */
export type AccessFilter = {
  /** Internal identifiers. Only entries that list one of them are read. */
  entities?: readonly string[] | undefined
  subject?: string | undefined
  kind?: AccessKind | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

/**
 * The place of an entry: its batch and its index in the batch, or the offset of its text if the filter has entities.
 * The next page has the entries before it.
 */
export type Place = { id: number; index: number }

export type FoundEntry = { kind: AccessKind; entry: Entry; place: Place }

type StoredBatch = { id: number; kind: AccessKind; entries: Buffer }

const batchesPerRead = 64
const noPlace: Place = { id: Number.MAX_SAFE_INTEGER, index: Number.MAX_SAFE_INTEGER }

/**
 * Reads the entries of the access log before a place, newest first. After each batch, yields a place without an entry,
 * where the caller may stop.
 */
export async function* readEntries(
  reading: Reading,
  filter: AccessFilter,
  before: Place = noPlace,
  signal?: Signal,
): AsyncGenerator<FoundEntry | { place: Place }> {
  const { fromMs = 0, toMs = Date.now() + 86_400_000, entities } = filter
  const { first, last } = idsOfTime(fromMs, toMs)
  const range = { first, last: Math.min(last, before.id) }
  const batches = entities
    ? batchesOfEntities(reading, entities, range, signal)
    : batchesInOrder(reading, filter.kind, range, signal)
  for await (const { id, kind, entries } of batches) {
    const decoded = filter.kind === undefined || filter.kind === kind ? decode(entries, entities) : []
    for (const { entry, index } of decoded.reverse())
      if ((id !== before.id || index < before.index) && satisfies(entry, filter))
        yield { kind, entry, place: { id, index } }
    yield { place: { id, index: 0 } }
  }
}

function decode(batch: Buffer, entities: readonly string[] | undefined): { entry: Entry; index: number }[] {
  if (entities) return decodeEntriesOf(batch, entities)
  return decodeEntries(batch).map((entry, index) => ({ entry, index }))
}

function satisfies({ at, context, ids }: Entry, { entities, subject, fromMs, toMs }: AccessFilter): boolean {
  if (subject !== undefined && context.subject !== subject) return false
  if ((fromMs !== undefined && at < fromMs) || (toMs !== undefined && at > toMs)) return false
  return entities === undefined || entities.some(id => ids.includes(id))
}

type Range = { first: number; last: number }

async function* batchesInOrder(
  { db, organization_id }: Reading,
  kind: AccessKind | undefined,
  { first, last }: Range,
  signal?: Signal,
): AsyncGenerator<StoredBatch> {
  const statement = kind === 'security' ? readSecurityBatchesSql : readBatchesSql
  for (let highest = last; ; ) {
    const batches = await db.query<StoredBatch>(statement, [organization_id, first, highest, batchesPerRead], signal)
    yield* batches
    if (batches.length < batchesPerRead) return
    highest = batches.at(-1)!.id - 1
  }
}

/** The batches that may list one of the entities, newest first. */
export async function* batchesOfEntities(
  reading: Reading,
  entities: readonly string[],
  { first, last }: Range = { first: 0, last: noPlace.id },
  signal?: Signal,
): AsyncGenerator<StoredBatch> {
  const { db, organization_id } = reading
  const found = (await findBatches(reading, entities, signal)).filter(id => id >= first && id <= last)
  for (let start = 0; start < found.length; start += batchesPerRead) {
    const values = [organization_id, found.slice(start, start + batchesPerRead)]
    yield* await db.query<StoredBatch>(readNamedBatchesSql, values, signal)
  }
}

/**
 * The ids of these batches, from the parts of the index, and from the hashes of the batches that are not indexed yet.
 */
async function findBatches(
  { db, organization_id }: Reading,
  entities: readonly string[],
  signal?: Signal,
): Promise<number[]> {
  const hashes = new Set(entities.map(hashOf))
  const buckets = [...new Set([...hashes].map(bucketOf))]
  type Part = { last_id: number; pairs: Buffer }
  const parts = await db.query<Part>(readIndexSql, [organization_id, buckets], signal)
  const lastIndexed = Math.max(0, ...parts.map(({ last_id }) => last_id))
  const values = [organization_id, lastIndexed, [...hashes].map(bytesOf)]
  const unindexed = await db.query<{ id: number }>(findUnindexedSql, values, signal)
  const indexed = parts.flatMap(({ pairs }) => [...batchesOf(pairs, hashes)])
  const found = new Set([...unindexed.map(({ id }) => id), ...indexed])
  return [...found].sort((a, b) => b - a)
}
