import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { ArchiveRefusal, type Store } from './store.ts'

// An archive has four kinds of objects:
// - `archive.json`: the data folder that writes it
// - `wal/<timeline>/<segment>.zst`: a segment of the write-ahead log
// - `timelines/<timeline>.json`: the time up to which the log of a timeline is archived
// - `bases/<id>/base.json` and its parts: a copy of the data folder. base.json is written last.

/** The owner of an archive. A restored copy has the same system identifier, another `id` and a higher timeline. */
export type Owner = { format: 1; system_identifier: string; timeline: number; id: string }

/** Every write that was acknowledged before `until` is in the segments up to the number `segment`. */
export type Position = { until: string; segment: number }

/**
 * A copy of the data folder. A restore to `stopped_at` or later can begin with it, and needs the segments from `first`
 * on. The segment `last` has a transaction after `stopped_at`.
 */
export type Base = {
  id: string
  timeline: number
  first: number
  last: number
  stopped_at: string
  backup_label: string
  parts: { bytes: number; sha256: string }[]
}

const segmentBytes = 16 * 2 ** 20
const segmentsPerLog = 2 ** 32 / segmentBytes
const hex8 = (value: number) => value.toString(16).toUpperCase().padStart(8, '0')

/** PostgreSQL's name of a segment. */
export const segmentName = (timeline: number, segment: number): string =>
  hex8(timeline) + hex8(Math.floor(segment / segmentsPerLog)) + hex8(segment % segmentsPerLog)

/** The timeline and the number of a segment. Undefined for the name of another file of the log. */
export function parseSegmentName(name: string): { timeline: number; segment: number } | undefined {
  if (!/^[\dA-F]{24}$/.test(name)) return undefined
  const [timeline = 0, log = 0, rest = 0] = name.match(/.{8}/g)!.map(part => Number.parseInt(part, 16))
  return { timeline, segment: log * segmentsPerLog + rest }
}

const walFolder = (timeline: number) => `wal/${hex8(timeline)}/`
const walName = (timeline: number, segment: number) => `${walFolder(timeline)}${segmentName(timeline, segment)}.zst`
const positionName = (timeline: number) => `timelines/${hex8(timeline)}.json`
export const partName = (id: string, index: number): string => `bases/${id}/${String(index).padStart(6, '0')}.part`
const ownerName = 'archive.json'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

async function readJson<T>(store: Store, name: string): Promise<T | undefined> {
  const bytes = await store.read(name)
  try {
    return bytes && (JSON.parse(bytes.toString()) as T)
  } catch {
    throw new ArchiveRefusal(`${name} in ${store.label} is not JSON`)
  }
}

const writeJson = (store: Store, name: string, value: object) =>
  store.write(name, Buffer.from(`${JSON.stringify(value, null, 2)}\n`))

export const readOwner = (store: Store): Promise<Owner | undefined> => readJson<Owner>(store, ownerName)

/**
 * Takes over an empty archive, or continues an existing one. Throws {@link ArchiveRefusal} if the archive belongs to
 * other data.
 */
export async function claimArchive(store: Store, mine: Omit<Owner, 'format'>): Promise<void> {
  const owner = await readOwner(store)
  const takesOver = owner !== undefined && owner.id !== mine.id && mine.timeline > owner.timeline
  if (owner && owner.system_identifier !== mine.system_identifier)
    throw new ArchiveRefusal(`${store.label} is the archive of other data: set KITH_ARCHIVE to another place`)
  if (owner && owner.id !== mine.id && !takesOver)
    throw new ArchiveRefusal(
      `${store.label} is the archive of another copy of these data, which was restored or copied: set KITH_ARCHIVE to another place`,
    )
  if (!owner || takesOver || owner.timeline !== mine.timeline) await writeJson(store, ownerName, { format: 1, ...mine })
}

class DamagedSegment extends Error {}

/** Stores a segment. The bytes of a segment that is stored already must be equal, unless they are damaged. */
export async function writeSegment(store: Store, timeline: number, segment: number, bytes: Buffer): Promise<void> {
  const stored = await readSegment(store, timeline, segment).catch(error => {
    if (!(error instanceof DamagedSegment)) throw error
    return undefined
  })
  if (stored?.equals(bytes)) return
  if (stored)
    throw new ArchiveRefusal(
      `${store.label} has another segment ${segmentName(timeline, segment)}: two data folders write this archive`,
    )
  const params = { [constants.ZSTD_c_checksumFlag]: 1 }
  await store.write(walName(timeline, segment), await compress(bytes, { params }))
}

/** The bytes of a segment. Undefined if the archive does not have it. Throws if they are damaged. */
export async function readSegment(store: Store, timeline: number, segment: number): Promise<Buffer | undefined> {
  const stored = await store.read(walName(timeline, segment))
  if (!stored) return undefined
  const bytes = await decompress(stored, { maxOutputLength: segmentBytes }).catch(() => Buffer.alloc(0))
  if (bytes.length !== segmentBytes)
    throw new DamagedSegment(`The segment ${segmentName(timeline, segment)} in ${store.label} is damaged.`)
  return bytes
}

/** The numbers of the stored segments of a timeline, ascending. */
export async function listSegments(store: Store, timeline: number): Promise<number[]> {
  const names = await store.list(walFolder(timeline))
  return names.flatMap(name => {
    const found = parseSegmentName(name.slice(walFolder(timeline).length).replace(/\.zst$/, ''))
    return found?.timeline === timeline ? [found.segment] : []
  })
}

export const readPosition = (store: Store, timeline: number): Promise<Position | undefined> =>
  readJson<Position>(store, positionName(timeline))

export const writePosition = (store: Store, timeline: number, position: Position): Promise<void> =>
  writeJson(store, positionName(timeline), position)

export const writeBase = (store: Store, base: Base): Promise<void> =>
  writeJson(store, `bases/${base.id}/base.json`, base)

/** The complete copies, the oldest first. */
export async function listBases(store: Store): Promise<Base[]> {
  const bases: Base[] = []
  for (const name of await store.list('bases/')) {
    const id = /^bases\/([^/]+)\/base\.json$/.exec(name)?.[1]
    const base = id === undefined ? undefined : await readJson<Base>(store, name)
    if (base === undefined) continue
    if (base.id !== id || !Number.isSafeInteger(base.first) || Number.isNaN(Date.parse(base.stopped_at)))
      throw new ArchiveRefusal(`${name} in ${store.label} does not describe a copy`)
    bases.push(base)
  }
  return bases.toSorted((a, b) => Date.parse(a.stopped_at) - Date.parse(b.stopped_at))
}

/** Removes a copy, even if it is incomplete. */
export async function removeBase(store: Store, id: string): Promise<void> {
  // The description is removed first, because a copy without it is never used.
  await store.remove(`bases/${id}/base.json`)
  for (const name of await store.list(`bases/${id}/`)) await store.remove(name)
}

/** A copy with the range of restores from it. `until` is undefined if a segment that the copy needs is missing. */
export type Reach = Base & { until: string | undefined }

/** The complete copies with the range of restores from each, the oldest first. */
export async function listReach(store: Store): Promise<Reach[]> {
  const bases = await listBases(store)
  const timelines = new Map<number, { segments: Set<number>; position: Position | undefined }>()
  for (const timeline of new Set(bases.map(base => base.timeline)))
    timelines.set(timeline, {
      segments: new Set(await listSegments(store, timeline)),
      position: await readPosition(store, timeline),
    })
  return bases.map(base => {
    const { segments, position } = timelines.get(base.timeline)!
    const isWhole = position !== undefined && hasAll(segments, base.first, position.segment)
    return { ...base, until: isWhole ? position.until : undefined }
  })
}

function hasAll(segments: ReadonlySet<number>, first: number, last: number): boolean {
  for (let segment = first; segment <= last; segment += 1) if (!segments.has(segment)) return false
  return true
}

/**
 * Removes the copies that no restore to a time of the last `days` needs, and the segments that no remaining copy needs.
 * The newest copy from before stays, because restores to the first of these days begin with it. Unfinished copies other
 * than `current` are removed after a day.
 */
export async function removeOld(store: Store, { days, current }: { days: number; current: string }): Promise<void> {
  const dayMs = 86_400_000
  const startMs = Date.now() - days * dayMs
  const bases = await listBases(store)
  const anchor = bases.findLastIndex(base => Date.parse(base.stopped_at) <= startMs)
  const kept = bases.slice(Math.max(anchor, 0))
  for (const { id } of bases.slice(0, Math.max(anchor, 0))) await removeBase(store, id)
  const known = new Set([current, ...kept.map(base => base.id)])
  const unfinished = new Set((await store.list('bases/')).map(name => name.split('/')[1]!))
  for (const id of unfinished.difference(known))
    if (Number(id.split('-')[0]) < Date.now() - dayMs) await removeBase(store, id)
  const timelines = new Set((await store.list('wal/')).map(name => Number.parseInt(name.split('/')[1]!, 16)))
  const newest = Math.max(...kept.map(base => base.timeline))
  for (const timeline of timelines) {
    const needed = kept.filter(base => base.timeline === timeline).map(base => base.first)
    // A newer timeline has no copy yet, because its first copy is in progress.
    if (needed.length === 0 && timeline > newest) continue
    const first = Math.min(...needed)
    for (const segment of await listSegments(store, timeline))
      if (segment < first) await store.remove(walName(timeline, segment))
  }
}
