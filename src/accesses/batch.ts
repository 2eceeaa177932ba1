import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

import type { SecurityEvent } from '../values/security-events.ts'

export const accessKinds = ['access', 'security'] as const
export type AccessKind = (typeof accessKinds)[number]

/** The members that the entries of one caller at one endpoint share. */
export type AccessContext = {
  /** Set only for a security event. */
  event?: SecurityEvent | undefined
  target?: string | undefined
  subject: string
  role: string | null
  method: string
  /** The documented form of the path. */
  route: string
  status: number
  /** Null for an entry without entities. */
  stack_id: number | null
  ip: string
}

/** An entry of the access log. `at` is Unix time in milliseconds. */
export type Entry = { at: number; context: AccessContext; ids: readonly string[]; count: number; request_id: string }

/** The entries of a batch in the stored form. An entry refers to its context by the index in `contexts`. */
type Stored = {
  contexts: AccessContext[]
  entries: [at: number, context: number, request_id: string, count: number, ids: readonly string[]][]
}

export type Batch = { id: number; kind: AccessKind; hashes: Buffer; entries: Buffer }

// Decompressing a batch at once takes 60 µs. In chunks of the default size, in the thread pool, it took 430 µs of CPU.
const decompress = (bytes: Buffer): Buffer => zstdDecompressSync(bytes, { chunkSize: 65_536 })
const hashBytes = 4
/** The maximum number of entries of a batch. A look-up decompresses a whole batch for each entry that it finds. */
const maxEntries = 256
const maxIds = 4_096

// The lowest level compresses an entry of 160 bytes to 36, of which 32 are random, in 1 µs. Higher levels take twice
// the time for the same size.
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** Splits entries into parts that each fit into a batch. */
export function* partsOf(entries: readonly Entry[]): Generator<Entry[]> {
  let part: Entry[] = []
  let ids = 0
  for (const entry of entries) {
    const isFull = part.length === maxEntries || ids + entry.ids.length > maxIds
    if (part.length > 0 && (isFull || entry.at - part[0]!.at > batchMs)) {
      yield part
      part = []
      ids = 0
    }
    part.push(entry)
    ids += entry.ids.length
  }
  if (part.length > 0) yield part
}

/** Makes a batch of at least one entry. */
export function toBatch(kind: AccessKind, entries: readonly Entry[]): Batch {
  return { id: newBatchId(entries[0]!.at), kind, ...encodeEntries(entries) }
}

export function encodeEntries(entries: readonly Entry[]): Pick<Batch, 'hashes' | 'entries'> {
  const places = new Map<AccessContext, number>()
  const hashes: number[] = []
  const stored: Stored = { contexts: [], entries: [] }
  for (const { at, context, request_id, count, ids } of entries) {
    let place = places.get(context)
    if (place === undefined) {
      place = stored.contexts.push(context) - 1
      places.set(context, place)
    }
    stored.entries.push([at, place, request_id, count, ids])
    for (const id of ids) hashes.push(hashOf(id))
  }
  const bytes = Buffer.from(Uint32Array.from(hashes).buffer)
  return { hashes: bytes, entries: zstdCompressSync(JSON.stringify(stored), compression) }
}

export function decodeEntries(compressed: Buffer): Entry[] {
  const { contexts, entries } = JSON.parse(decompress(compressed).toString()) as Stored
  return entries.map(entry => toEntry(entry, contexts))
}

type StoredEntry = Stored['entries'][number]

const toEntry = ([at, context, request_id, count, ids]: StoredEntry, contexts: AccessContext[]): Entry => {
  return { at, context: contexts[context]!, ids, count, request_id }
}

/**
 * The entries that list one of some entities, each with its offset in the text of the batch. Only these are parsed,
 * because parsing a whole batch takes 200 µs.
 */
export function decodeEntriesOf(compressed: Buffer, entities: readonly string[]): { entry: Entry; index: number }[] {
  const text = decompress(compressed).toString('latin1')
  const starts = new Set<number>()
  for (const id of entities)
    for (let at = text.indexOf(id); at !== -1; at = text.indexOf(id, at + id.length))
      starts.add(Math.max(text.lastIndexOf(']],[', at) + 3, text.lastIndexOf(firstEntry, at) + firstEntry.length - 1))
  if (starts.size === 0) return []
  const contexts = JSON.parse(`${decodeUtf8(text.slice(0, text.indexOf(firstEntry)))}}`).contexts as AccessContext[]
  const found = [...starts].sort((a, b) => a - b)
  return found.map(index => {
    const entry = JSON.parse(text.slice(index, text.indexOf(']]', index) + 2)) as StoredEntry
    return { entry: toEntry(entry, contexts), index }
  })
}

/** The text before the first entry. No value contains it, because quotes in values are escaped. */
const firstEntry = ',"entries":[['
/** Decodes a context. An entry is pure ASCII, but a context may have other characters. */
const decodeUtf8 = (text: string) => Buffer.from(text, 'latin1').toString()

let lastId = 0

/**
 * Makes a batch id. Ids are in order of time. They differ between processes except by a rare chance, which
 * {@link idsOfTime} allows for.
 */
function newBatchId(ms: number): number {
  lastId = Math.max(lastId + 1, ms * idsPerMs + Math.floor(Math.random() * idsPerMs))
  return lastId
}

const idsPerMs = 4_096
/** The maximum time between the first and the last entry of a batch. */
const batchMs = 60_000

/** The range of ids of the batches that may have entries from `from` to `to` (Unix time in milliseconds). */
export const idsOfTime = (from: number, to: number): { first: number; last: number } => ({
  first: Math.max(0, (from - batchMs) * idsPerMs),
  last: Math.min(Number.MAX_SAFE_INTEGER, (to + 1) * idsPerMs + batchMs),
})

/**
 * The hash of an internal identifier. The first eight digits are the time of a person or a record. The digits from the
 * 24th on are the random part of a person, and the number of a record.
 */
export function hashOf(id: string): number {
  const time = Number.parseInt(id.slice(0, 8), 16)
  const rest = Number.parseInt(id.slice(24, 32), 16)
  return (Math.imul(time, 0x9e3779b1) ^ Math.imul(rest, 0x85ebca6b)) >>> 0
}

/** The stored identifier for a person's `id` or a record's `record_id`. */
export const storedId = (id: string): string =>
  id.length === 24 ? `${id}00000000`.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') : id

export const bucketOf = (hash: number): number => hash >>> 24

/** The bytes of a hash in `hashes`. */
export const bytesOf = (hash: number): Buffer => Buffer.from(Uint32Array.of(hash).buffer)

export const hashesOf = (bytes: Buffer): number[] =>
  Array.from({ length: bytes.length / hashBytes }, (_, index) => bytes.readUInt32LE(index * hashBytes))

const pairBytes = hashBytes + 8

/** The pairs of an index row. `found` alternates hashes and batch ids. */
export function toPairs(found: readonly number[]): Buffer {
  const pairs = Buffer.allocUnsafe((found.length / 2) * pairBytes)
  for (let index = 0, at = 0; index < found.length; index += 2, at += pairBytes) {
    pairs.writeUInt32LE(found[index]!, at)
    pairs.writeDoubleLE(found[index + 1]!, at + hashBytes)
  }
  return pairs
}

/** The batches that an index row lists for some hashes. */
export function* batchesOf(pairs: Buffer, hashes: ReadonlySet<number>): Generator<number> {
  for (let at = 0; at < pairs.length; at += pairBytes)
    if (hashes.has(pairs.readUInt32LE(at))) yield pairs.readDoubleLE(at + hashBytes)
}
