import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { repeat } from '../../process/background.ts'
import { archivedFolder, readFolderId, stoppingFile } from '../embedded/archiving.ts'
import {
  claimArchive,
  listBases,
  parseSegmentName,
  readPosition,
  readSegment,
  removeOld,
  segmentName,
  writePosition,
  writeSegment,
} from './archive.ts'
import { copyBase } from './base.ts'
import { ArchiveRefusal, type Store } from './store.ts'

/** The archiving of a running server. `path` is the folder of its cluster, `url` the address of a database of it. */
export type ArchiverOptions = {
  url: string
  path: string
  store: Store
  /** How often the log is archived. */
  seconds: number
  days: number
  log: (line: string) => void
}

export type Archiver = {
  /** The age of the last moment that can be restored. Undefined before the first one. */
  ageSeconds(): number | undefined
  /** Archives everything so far, if the archive takes it in a few seconds. Call it before the server stops, and `stop` after that. */
  finish(): Promise<void>
  stop(): Promise<void>
}

/** Segments that PostgreSQL has filled before the next turn are archived after this time. */
const pollMs = 500
const retryMs = 5_000
/** A request to a store that does not respond takes longer than a stop may. */
const stopPatienceMs = 1_000
const finishPatienceMs = 4_000
const baseIntervalMs = 86_400_000

type Progress = { timeline: number; next: number | undefined; needsBase: boolean }

/**
 * Archives the log of a server and a copy of its data every day, until it is stopped. An archive that is away is tried again. Throws an
 * Error if the archive refuses the work: the credentials, or an archive of other data.
 */
export async function startArchiver(options: ArchiverOptions): Promise<Archiver> {
  const { url, path, store, seconds, log } = options
  let progress: Progress | undefined
  let untilMs: number | undefined
  let lastTurnMs = Number.NEGATIVE_INFINITY
  let finishAtMs: number | undefined
  let problem = ''
  let copying: Promise<void> | undefined
  let retryAtMs = 0
  const stoppingCopies = new AbortController()

  async function open(): Promise<Progress> {
    const [row] = await query<{ system_identifier: string; wal_file: string }>(
      url,
      'select system_identifier::text, pg_walfile_name(pg_current_wal_insert_lsn()) as wal_file from pg_control_system()',
    )
    const { timeline } = parseSegmentName(row!.wal_file)!
    await claimArchive(store, { system_identifier: row!.system_identifier, timeline, id: await readFolderId(path) })
    const position = await readPosition(store, timeline)
    if (position) untilMs = Date.parse(position.until)
    return { timeline, next: position && position.segment + 1, needsBase: false }
  }

  /** Ends the current segment, and archives all up to it. */
  async function turn(): Promise<void> {
    const startedMs = performance.now()
    // Another copy of the data may have taken over the archive meanwhile.
    const opened = await open()
    progress ??= opened
    const { until, segment } = await switchSegment(url)
    progress.next ??= segment
    await archiveThrough(progress, segment, options)
    await writePosition(store, progress.timeline, { until, segment })
    untilMs = Date.parse(until)
    await confirm(progress)
    await copyIfDue(progress)
    lastTurnMs = startedMs
  }

  /** Archives segments that PostgreSQL has filled, and lets it remove what is archived. */
  async function confirm(current: Progress): Promise<void> {
    const status = await readdir(join(path, 'data', 'pg_wal', 'archive_status'))
    const ready = status.filter(name => name.endsWith('.ready')).map(name => name.slice(0, -'.ready'.length))
    for (const name of ready.toSorted()) {
      const found = parseSegmentName(name)
      const isOld = found?.timeline !== current.timeline || current.next === undefined || found.segment < current.next
      if (!isOld) await archiveThrough(current, found.segment, options)
      // Only restores of older copies could need the file, and they have what they need.
      await writeFile(join(archivedFolder(path), name), '')
    }
    const waiting = new Set(ready)
    for (const name of await readdir(archivedFolder(path)))
      if (!waiting.has(name) && name !== 'stopping') await rm(join(archivedFolder(path), name), { force: true })
  }

  async function copyIfDue(current: Progress): Promise<void> {
    if (copying) return
    const last = (await listBases(store)).findLast(base => base.timeline === current.timeline)
    const isRecent = last && Date.now() - Date.parse(last.stopped_at) < baseIntervalMs
    if (isRecent && !current.needsBase) return
    current.needsBase = false
    const patienceMs = Number.POSITIVE_INFINITY
    copying = copyBase({ url, path, store, patienceMs, signal: stoppingCopies.signal })
      .then(
        ({ id }) => {
          log(`the copy ${id} of the data is in the archive`)
          return removeOld(store, { days: options.days, current: id }).catch(error =>
            log(`old copies could not be removed from the archive: ${error.message}`),
          )
        },
        error => {
          current.needsBase = true
          if (!stoppingCopies.signal.aborted) log(`the data could not be copied to the archive: ${error.message}`)
        },
      )
      .finally(() => {
        copying = undefined
      })
  }

  async function step(): Promise<void> {
    if (performance.now() < retryAtMs) return
    try {
      if (lastTurnMs < (finishAtMs ?? performance.now() - seconds * 1_000)) await turn()
      else if (progress) await confirm(progress)
      if (problem !== '') log('the archive is back')
      problem = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== problem) log(`archiving failed and will be retried: ${message}`)
      problem = message
      retryAtMs = performance.now() + Math.min(retryMs, seconds * 1_000)
    }
  }

  try {
    progress = await open()
  } catch (error) {
    if (error instanceof ArchiveRefusal) {
      // The server is about to stop, and nobody archives what it has.
      await writeFile(stoppingFile(path), '')
      throw new Error(`KITH_ARCHIVE cannot be used: ${error.message}.`)
    }
    log(`archiving failed and will be retried: ${(error as Error).message}`)
    problem = (error as Error).message
  }
  await rm(stoppingFile(path), { force: true })
  const steps = repeat(step, Math.min(pollMs, seconds * 1_000), () => {})

  async function finish(): Promise<void> {
    stoppingCopies.abort()
    finishAtMs = performance.now()
    retryAtMs = 0
    while (lastTurnMs < finishAtMs && performance.now() < finishAtMs + finishPatienceMs) await setTimeout(50)
    if (lastTurnMs >= finishAtMs) return
    finishAtMs = Number.NEGATIVE_INFINITY
    log('the archive is not up to date: the next start continues')
    await writeFile(stoppingFile(path), '')
  }

  return {
    ageSeconds: () => (untilMs === undefined ? undefined : Math.max(0, (Date.now() - untilMs) / 1_000)),
    finish,
    stop: () => Promise.race([steps.stop(), setTimeout(stopPatienceMs)]),
  }
}

/** Archives the segments before and including `last`. Without one that PostgreSQL has removed, the log has a gap: a new copy is needed. */
async function archiveThrough(progress: Progress, last: number, { path, store, log }: ArchiverOptions): Promise<void> {
  const { timeline } = progress
  while (progress.next! <= last) {
    const name = segmentName(timeline, progress.next!)
    const bytes = await readFile(join(path, 'data', 'pg_wal', name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (bytes) await writeSegment(store, timeline, progress.next!, bytes)
    else if (!(await readSegment(store, timeline, progress.next!))) {
      log(`the segment ${name} of the log is gone, so restores begin with a new copy of the data`)
      progress.needsBase = true
    }
    progress.next! += 1
  }
}

/**
 * Ends the current segment of the log. Every transaction that was acknowledged before `until` is in it or in an earlier one. The message
 * is a transaction after `until`, at which a recovery to `until` can stop. If another process has switched in the meantime, PostgreSQL
 * returns the beginning of the next segment, which is not complete: the byte before it is in the completed one.
 */
async function switchSegment(url: string): Promise<{ until: string; segment: number }> {
  const [time] = await query<{ until: Date }>(url, 'select clock_timestamp() as until')
  await query(url, `select pg_logical_emit_message(true, 'kith archive', '')`)
  const [row] = await query<{ name: string }>(url, 'select pg_walfile_name(pg_switch_wal() - 1) as name')
  return { until: time!.until.toISOString(), segment: parseSegmentName(row!.name)!.segment }
}

async function query<Row extends pg.QueryResultRow = object>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}
