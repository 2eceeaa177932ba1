import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { repeat } from '../../process/background.ts'
import { archivedFolder, query, readFolderId, stoppingFile } from '../embedded/archiving.ts'
import { orMissing } from '../missing-files.ts'
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

/** The archiving of a running server. `path` is the folder of its cluster, `url` the URL of one of its databases. */
export type ArchiverOptions = {
  url: string
  path: string
  store: Store
  /** The interval of archiving the log. */
  seconds: number
  days: number
  log: (line: string) => void
  /** Logs the reason why the archive is not up to date. */
  warn: (line: string) => void
}

export type Archiver = {
  /** The age of the latest time that can be restored. Undefined before the first one. */
  ageSeconds(): number | undefined
  /**
   * Archives everything so far, if the archive accepts it within a few seconds. Call it before the server stops, and
   * `stop` after it.
   */
  finish(): Promise<void>
  stop(): Promise<void>
}

/** PostgreSQL may fill segments before the next interval. They are archived after this time. */
const pollMs = 500
const retryMs = 5_000
/** A request to an unresponsive store takes longer than a stop may. */
const stopPatienceMs = 1_000
const finishPatienceMs = 4_000
const baseIntervalMs = 86_400_000
/** A failed copy is retried after one interval of the log, then two, four, up to this time. */
const maxCopyRetryMs = 3_600_000

type Progress = { timeline: number; next: number | undefined; needsBase: boolean }

/**
 * Archives the log of a server, and a copy of its data every day, until it is stopped. Retries if the archive is
 * unavailable. Throws an Error if the archive refuses: wrong credentials, or an archive of other data.
 */
export async function startArchiver(options: ArchiverOptions): Promise<Archiver> {
  const { path, seconds } = options
  const archiving = new Archiving(options)
  await archiving.begin()
  await rm(stoppingFile(path), { force: true })
  const steps = repeat(
    () => archiving.step(),
    Math.min(pollMs, seconds * 1_000),
    () => {},
  )
  return {
    ageSeconds: () => archiving.ageSeconds(),
    finish: () => archiving.finish(),
    stop: () => Promise.race([steps.stop(), setTimeout(stopPatienceMs)]),
  }
}

/** The state of an archiving, and its steps. One step runs at a time. A copy of the data runs concurrently. */
class Archiving {
  readonly #options: ArchiverOptions
  #progress: Progress | undefined
  /** The latest time that can be restored. */
  #untilMs: number | undefined
  #lastTurnMs = Number.NEGATIVE_INFINITY
  #finishAtMs: number | undefined
  #retryAtMs = 0
  #problem = ''
  #copying: Promise<void> | undefined
  #copyFailures = 0
  #copyRetryAtMs = Number.NEGATIVE_INFINITY
  readonly #stoppingCopies = new AbortController()

  constructor(options: ArchiverOptions) {
    this.#options = options
  }

  ageSeconds(): number | undefined {
    return this.#untilMs === undefined ? undefined : Math.max(0, (Date.now() - this.#untilMs) / 1_000)
  }

  /** Takes over the archive. If the archive is unavailable, a later step retries. If it refuses, the start fails. */
  async begin(): Promise<void> {
    try {
      this.#progress = await this.#open()
    } catch (error) {
      const { message } = error as Error
      if (error instanceof ArchiveRefusal) {
        // The server is about to stop, and no process archives its remaining segments.
        await writeFile(stoppingFile(this.#options.path), '')
        throw new Error(`KITH_ARCHIVE cannot be used: ${message}.`)
      }
      this.#options.warn(`archiving failed and will be retried: ${message}`)
      this.#problem = message
    }
  }

  async step(): Promise<void> {
    const { seconds, log, warn } = this.#options
    if (performance.now() < this.#retryAtMs) return
    try {
      if (this.#lastTurnMs < (this.#finishAtMs ?? performance.now() - seconds * 1_000)) await this.#turn()
      else if (this.#progress) await this.#confirm(this.#progress)
      // After `finish` has given up, a step without work succeeds.
      if (this.#finishAtMs === Number.NEGATIVE_INFINITY) return
      if (this.#problem !== '') log('the archive is back')
      this.#problem = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== this.#problem) warn(`archiving failed and will be retried: ${message}`)
      this.#problem = message
      this.#retryAtMs = performance.now() + Math.min(retryMs, seconds * 1_000)
    }
  }

  async finish(): Promise<void> {
    this.#stoppingCopies.abort()
    const startedMs = performance.now()
    this.#finishAtMs = startedMs
    this.#retryAtMs = 0
    while (this.#lastTurnMs < startedMs && performance.now() < startedMs + finishPatienceMs) await setTimeout(50)
    if (this.#lastTurnMs >= startedMs) return
    this.#finishAtMs = Number.NEGATIVE_INFINITY
    this.#options.warn('the archive is not up to date: the next start continues')
    await writeFile(stoppingFile(this.#options.path), '')
  }

  async #open(): Promise<Progress> {
    const { url, path, store } = this.#options
    const [row] = await query<{ system_identifier: string; wal_file: string }>(
      url,
      'select system_identifier::text, pg_walfile_name(pg_current_wal_insert_lsn()) as wal_file from pg_control_system()',
    )
    const { timeline } = parseSegmentName(row!.wal_file)!
    await claimArchive(store, { system_identifier: row!.system_identifier, timeline, id: await readFolderId(path) })
    const position = await readPosition(store, timeline)
    if (position) this.#untilMs = Date.parse(position.until)
    return { timeline, next: position && position.segment + 1, needsBase: false }
  }

  async #turn(): Promise<void> {
    const { url, store } = this.#options
    const startedMs = performance.now()
    // Another copy of the data may have taken over the archive meanwhile.
    const opened = await this.#open()
    this.#progress ??= opened
    const progress = this.#progress
    const { until, segment } = await switchSegment(url)
    progress.next ??= segment
    await archiveThrough(progress, segment, this.#options)
    await writePosition(store, progress.timeline, { until, segment })
    this.#untilMs = Date.parse(until)
    await this.#confirm(progress)
    await this.#copyIfDue(progress)
    this.#lastTurnMs = startedMs
  }

  /** Archives the segments that PostgreSQL has filled, and lets PostgreSQL remove archived ones. */
  async #confirm(progress: Progress): Promise<void> {
    const { path } = this.#options
    const status = await readdir(join(path, 'data', 'pg_wal', 'archive_status'))
    const ready = status.filter(name => name.endsWith('.ready')).map(name => name.slice(0, -'.ready'.length))
    for (const name of ready.toSorted()) {
      const found = parseSegmentName(name)
      const isOld =
        found?.timeline !== progress.timeline || progress.next === undefined || found.segment < progress.next
      if (!isOld) await archiveThrough(progress, found.segment, this.#options)
      // Only restores of older copies could need the file, and the archive has all that they need.
      await writeFile(join(archivedFolder(path), name), '')
    }
    const waiting = new Set(ready)
    for (const name of await readdir(archivedFolder(path)))
      if (!waiting.has(name) && name !== 'stopping') await rm(join(archivedFolder(path), name), { force: true })
  }

  async #copyIfDue(progress: Progress): Promise<void> {
    if (this.#copying || performance.now() < this.#copyRetryAtMs) return
    const last = (await listBases(this.#options.store)).findLast(base => base.timeline === progress.timeline)
    const isRecent = last && Date.now() - Date.parse(last.stopped_at) < baseIntervalMs
    if (isRecent && !progress.needsBase) return
    progress.needsBase = false
    this.#copying = this.#copy(progress).finally(() => {
      this.#copying = undefined
    })
  }

  /** Copies the data, and removes copies and segments that are no longer needed. */
  async #copy(progress: Progress): Promise<void> {
    const { url, path, store, seconds, days, log, warn } = this.#options
    const { signal } = this.#stoppingCopies
    try {
      const { id } = await copyBase({ url, path, store, patienceMs: Number.POSITIVE_INFINITY, signal })
      log(`the copy ${id} of the data is in the archive`)
      this.#copyFailures = 0
      await removeOld(store, { days, current: id }).catch(error =>
        warn(`old copies could not be removed from the archive: ${error.message}`),
      )
    } catch (error) {
      progress.needsBase = true
      if (!signal.aborted) warn(`the data could not be copied to the archive: ${(error as Error).message}`)
      this.#copyRetryAtMs = performance.now() + Math.min(seconds * 1_000 * 2 ** this.#copyFailures, maxCopyRetryMs)
      this.#copyFailures += 1
    }
  }
}

/**
 * Archives the segments up to and including `last`. If PostgreSQL has removed one of them, the log has a gap and a new
 * copy is needed.
 */
async function archiveThrough(progress: Progress, last: number, { path, store, warn }: ArchiverOptions): Promise<void> {
  const { timeline } = progress
  while (progress.next! <= last) {
    const name = segmentName(timeline, progress.next!)
    const bytes = await orMissing(readFile(join(path, 'data', 'pg_wal', name)))
    if (bytes) await writeSegment(store, timeline, progress.next!, bytes)
    else if (!(await readSegment(store, timeline, progress.next!))) {
      warn(`the segment ${name} of the log is gone, so restores begin with a new copy of the data`)
      progress.needsBase = true
    }
    progress.next! += 1
  }
}

/**
 * Ends the current segment of the log. This segment or an earlier one has every transaction that was acknowledged
 * before `until`. The message is a transaction after `until`, at which a recovery to `until` can stop. If another
 * process has switched meanwhile, PostgreSQL returns the start of the next segment, which is incomplete. The byte
 * before it is in the completed segment.
 */
async function switchSegment(url: string): Promise<{ until: string; segment: number }> {
  const [time] = await query<{ until: Date }>(url, 'select clock_timestamp() as until')
  await query(url, `select pg_logical_emit_message(true, 'kith archive', '')`)
  const [row] = await query<{ name: string }>(url, 'select pg_walfile_name(pg_switch_wal() - 1) as name')
  return { until: time!.until.toISOString(), segment: parseSegmentName(row!.name)!.segment }
}
