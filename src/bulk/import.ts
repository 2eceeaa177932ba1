import type { Static } from 'typebox'
import { perDatabase } from '../db/per-database.ts'
import { findOutcomeUnknown, isUnavailable } from '../db/pg-errors.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { readMatch } from '../entities/write/load/match.ts'
import { writeAll } from '../entities/write/request-coalescing.ts'
import { dryRun } from '../entities/write/run.ts'
import { maxStretch, type SetSize } from '../entities/write/set-size.ts'
import {
  type EntityBody,
  type MatchKind,
  newWrite,
  type Outcome,
  requestOf,
  type Write,
} from '../entities/write-request.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import { FairPool } from '../process/fair-pool.ts'
import type { ImportOutcome } from '../process/observer.ts'
import type { Call, StreamingCall } from '../route/call.ts'
import { accessOf, requireWritable } from '../route/field-rights.ts'
import type { StreamResult } from '../route/result.ts'
import { createRefusal, Fault, type Refusal, refuseValues, throwBusy } from '../values/errors.ts'
import { fieldsIn, isCountry } from '../values/phone-numbers.ts'
import { csvLinesOf, throwIfCsvQuery } from './csv.ts'
import { beginImport, type EndImport, type LineCounts } from './imports.ts'
import { type Line, linesOf } from './lines.ts'
import { createRefusals, defaultMaxRefused, type RefusedLine } from './refusals.ts'
import type { peopleImportQuery } from './schema.ts'
import { batchStream, withHeartbeat } from './streams.ts'

/**
 * The lines that a dry run tries in one transaction, so that a line sees the effects of those before it. The
 * transaction locks the organization meanwhile.
 */
const maxDryRun: SetSize = { items: 1_024, bytes: 262_144 }

/** The maximum number of imports per organization and process. Each import holds some sets of lines in memory. */
const maxImports = 2
const imports = perDatabase(() => new FairPool({ share: maxImports }))

const progressMs = 1_000

/** Each element of `match` is one or more {@link MatchKind}s, separated by commas. */
export type ImportQuery = Static<typeof peopleImportQuery>

type Entry = { number: number; bytes: number } & ({ write: Write } | { refusal: Refusal })

/** The result of a line that was written or refused. */
type LineResult = { refused?: RefusedLine; isWarned?: boolean }

/**
 * The results of the first lines of a set. `failure` ended the import, so the results of the other lines are unknown.
 */
type SetResult = { results: LineResult[]; failure?: { error: unknown } }

type OutcomeCounts = Record<ImportOutcome, number>

const importOutcomes = ['created', 'updated', 'unchanged', 'failed'] as const satisfies readonly ImportOutcome[]
const zeroCounts: OutcomeCounts = { created: 0, updated: 0, unchanged: 0, failed: 0 }

/** Counts the lines of a set by outcome. The change log up to `sequence` includes all of them. */
type CountLines = (counts: OutcomeCounts, sequence: number) => void

/** Writes the lines of a body in sets. The response contains the refused lines, the progress and the counts. */
export async function importEntities(kind: EntityKind, call: StreamingCall<ImportQuery>): Promise<StreamResult> {
  const stack_id = await kind.stackOf(call)
  const match = readMatch(call.body.match?.flatMap(kinds => kinds.split(',') as MatchKind[]))
  const mayRead = call.caller.scopes.has(kind.reads)
  const target = targetOf(call, { stack_id, mayRead, ...(match && { match }) })
  const { chunks, isCsv, body, context, limits } = call
  const locate = phoneLocator(body)
  if (!isCsv) throwIfCsvQuery(body)
  const definitions = isCsv ? await currentDefinitions(context, call.signal) : undefined
  const lines = definitions ? csvLinesOf(chunks, body, stack_id, definitions) : linesOf(chunks, limits.bodyBytes)
  const entries = entriesOf(lines, line => entryOf(call, target, line, locate))
  const metricKind = kind.noun === 'person' ? 'people' : 'records'
  // A dry run stores nothing, so the metrics do not count it.
  const countInMetrics = (outcome: ImportOutcome, lines: number) => {
    if (lines > 0 && !call.body.dry_run) call.context.db.observer?.imported(metricKind, outcome, lines)
  }
  const release =
    imports(call.context.db).tryTake(call.caller.organization.id) ??
    throwBusy(`The organization already runs ${maxImports} imports.`)
  try {
    const end: EndImport = call.body.dry_run ? async () => {} : await beginImport(call, stack_id)
    return { status: 200, stream: answerLines(call, entries, countInMetrics, { end, release }) }
  } catch (error) {
    release()
    throw error
  }
}

type Locate = (line: ImportLine) => ImportLine

/**
 * Returns a function that adds the prefix of the query's country to a phone number without one. Throws a Fault of 400
 * for an unknown country.
 */
function phoneLocator({ phone_country }: ImportQuery): Locate {
  if (phone_country === undefined) return line => line
  if (!isCountry(phone_country))
    return refuseValues({ path: '/phone_country', message: 'must be the ISO 3166 code of a country, such as IT' })
  return line => {
    const { mobile_prefix, mobile_number } = line as Record<string, unknown>
    if (mobile_prefix || typeof mobile_number !== 'string' || mobile_number === '') return line
    return { ...line, ...fieldsIn(phone_country, mobile_number) }
  }
}

const textOf = (value: unknown) => `${JSON.stringify(value)}\n`

async function* answerLines(
  call: StreamingCall<ImportQuery>,
  entries: AsyncGenerator<Entry[]>,
  countInMetrics: (outcome: ImportOutcome, lines: number) => void,
  { end, release }: { end: EndImport; release: () => void },
): AsyncGenerator<string> {
  const counts: LineCounts = { received: 0, ...zeroCounts }
  let newest = 0
  let warnings = 0
  const count: CountLines = (ofSet, sequence) => {
    newest = Math.max(newest, sequence)
    for (const outcome of importOutcomes) {
      counts.received += ofSet[outcome]
      counts[outcome] += ofSet[outcome]
      countInMetrics(outcome, ofSet[outcome])
    }
  }
  const heartbeat = { lastAtMs: performance.now(), intervalMs: progressMs }
  const textOfRefused = createRefusals()
  const findTooManyRefused = limitRefused(call.body.max_refused ?? defaultMaxRefused)
  let writing: Promise<SetResult> | undefined
  let isOver = false
  const progress = () => {
    if (call.draining() && !writing) throw shuttingDown
    return textOf({ progress: counts })
  }
  const sets = batchStream(entries, call.body.dry_run ? maxDryRun : maxStretch)
  // No set is written after a failed one, because the client resends the lines after the counted ones. The next lines
  // are read meanwhile.
  const writeNext = async () => {
    const { value: set, done } = await sets.next()
    if (done) return undefined
    if (isOver || call.draining()) throw shuttingDown
    writing = writeSet(call, set, count).finally(() => {
      writing = undefined
    })
    return writing
  }
  try {
    for (;;) {
      const written = yield* withHeartbeat(writeNext(), heartbeat, progress)
      if (!written) break
      const { results, failure } = written
      const refused = results.flatMap(({ refused }) => refused ?? [])
      if (refused.length > 0) yield textOfRefused(refused)
      warnings += results.filter(({ isWarned }) => isWarned).length
      const tooManyRefused = findTooManyRefused(results)
      if (failure) throw findOutcomeUnknown([failure.error]) ?? tooManyRefused ?? failure.error
      if (tooManyRefused) throw tooManyRefused
    }
    // The import is stored, even if this fails.
    await end(counts, newest).catch(() => {})
    yield textOf({
      ...counts,
      ...(warnings > 0 && { warnings }),
      ...(newest > 0 && !call.body.dry_run && { sequence: newest }),
    })
  } catch (error) {
    // This is not awaited, because the database that did not confirm a set may not confirm this either.
    end(counts, newest).catch(() => {})
    const { code, message, details, outcome } = call.explain(error)
    yield textOf({ error: code, message, details, request_id: call.request_id, outcome, progress: counts })
  } finally {
    // This is not awaited, because it may wait for bytes that never arrive.
    sets.return(undefined).catch(() => {})
    isOver = true
    void Promise.allSettled([writing])
      .then(() => end(counts, newest))
      .catch(() => {})
      .finally(release)
  }
}

const shuttingDown = new Fault(createRefusal('operation_failed', 'The service is shutting down.', { status: 503 }))

async function* entriesOf(
  pieces: AsyncIterable<(Line | RefusedLine)[]>,
  readEntry: (line: Line) => Entry | Promise<Entry>,
): AsyncGenerator<Entry[]> {
  for await (const lines of pieces) {
    const entries: Entry[] = []
    for (const line of lines) {
      const due = yieldIfDue()
      if (due) await due
      const entry = 'refusal' in line ? { ...line, bytes: 0 } : readEntry(line)
      entries.push(entry instanceof Promise ? await entry : entry)
    }
    yield entries
  }
}

/** The members that the writes of all lines of an import share. */
function targetOf(call: Call<ImportQuery>, target: Pick<Write, 'stack_id' | 'match' | 'mayRead'>): Write {
  const { create_only = false, consents, lists, erased = call.preferences.erased } = call.body
  return newWrite({
    ...target,
    ...requestOf({ ...call, preferences: { ...call.preferences, erased } }),
    operation: 'import',
    address: null,
    body: {},
    create_only,
    ...(consents && { consents }),
    ...(lists === 'add' && { lists }),
  })
}

/** Reads a line synchronously. A long line takes several event-loop turns. */
function entryOf(
  call: StreamingCall<ImportQuery>,
  target: Write,
  { number, text }: Line,
  locate: Locate,
): Entry | Promise<Entry> {
  if (!text) {
    const message = `A line may have at most ${call.limits.bodyBytes} bytes.`
    return { number, bytes: 0, refusal: createRefusal('invalid_parameter', message, { status: 413 }) }
  }
  const bytes = text.length
  const access = accessOf(call.caller, target.stack_id)
  const accept = (body: EntityBody): Entry => {
    const write = writeOf(target, locate(body), bytes)
    requireWritable(access, write.body, { match: write.match })
    return { number, bytes, write }
  }
  const refuse = (error: unknown): Entry => {
    if (!(error instanceof Fault)) throw error
    return { number, bytes, refusal: error.refusal }
  }
  try {
    const line = call.checkLine(text)
    return line instanceof Promise ? line.then(accept).catch(refuse) : accept(line)
  } catch (error) {
    return refuse(error)
  }
}

type ImportLine = EntityBody & { match?: readonly MatchKind[] }

function writeOf(target: Write, line: ImportLine, bytes: number): Write {
  const { external_id } = line
  const address = external_id ? { external_id } : null
  if (line.match === undefined) return { ...target, address, body: line, bytes }
  const { match: kinds, ...body } = line
  const { match: _, ...others } = target
  const match = readMatch(kinds)
  return { ...others, ...(match && { match }), address, body, bytes }
}

/**
 * Returns a function that takes the results of lines in order, and returns a Fault after `max` refused lines in a row.
 */
function limitRefused(max: number): (results: readonly LineResult[]) => Fault | undefined {
  let inARow = 0
  return results => {
    for (const { refused } of results) {
      inARow = refused ? inARow + 1 : 0
      if (inARow !== max) continue
      const message = `${max} lines in a row were refused, up to line ${refused!.number}, so the import ended. Correct the file, or set max_refused to a higher number.`
      return new Fault(createRefusal('invalid_parameter', message))
    }
    return undefined
  }
}

/** Writes one set, counts its lines up to one with an unknown outcome, and returns the results of the counted lines. */
async function writeSet(call: StreamingCall<ImportQuery>, set: Entry[], count: CountLines): Promise<SetResult> {
  const writes = set.flatMap(entry => ('write' in entry ? [entry.write] : []))
  const outcomes: Outcomes = new Map()
  const failure = await writeWithin(call, writes, outcomes).then(
    () => undefined,
    error => ({ error: error as unknown }),
  )
  const results: LineResult[] = []
  const counts = { ...zeroCounts }
  let newest = 0
  let next = 0
  for (const entry of set) {
    const outcome = 'write' in entry ? outcomes.get(next++) : entry
    if (!outcome || (failure && 'error' in outcome)) break
    if ('done' in outcome) {
      const { result, id, sequence, warnings, preview } = outcome.done
      if (!preview?.isNew && 'write' in entry) call.shown.add(entry.write.stack_id, id)
      counts[result as ImportOutcome] += 1
      newest = Math.max(newest, sequence)
      results.push(warnings ? warned : stored)
    } else {
      counts.failed += 1
      const refusal = 'refusal' in outcome ? outcome.refusal : call.explain(outcome.error)
      results.push({ refused: { number: entry.number, refusal } })
    }
  }
  count(counts, newest)
  return { results, ...(failure && { failure }) }
}

const stored: LineResult = {}
const warned: LineResult = { isWarned: true }

type Outcomes = Map<number, Outcome>

/** Throws an error that concerns a whole set: the set timed out, the database is unavailable, or every write failed. */
function throwIfFailed(outcomes: Outcomes, signal: AbortSignal) {
  const errors = [...outcomes.values()].flatMap(outcome => ('error' in outcome ? [outcome.error] : []))
  if (errors.length === 0) return
  if (signal.aborted) throw findOutcomeUnknown(errors) ?? signal.reason
  const unavailable = errors.find(isUnavailable)
  if (unavailable || errors.length === outcomes.size) throw unavailable ?? errors[0]
}

/** Writes lines in sets, each with a separate deadline. Adds their outcomes, even if it throws. */
async function writeWithin(
  { context, limits, body }: Call<ImportQuery>,
  writes: Write[],
  outcomes: Outcomes,
): Promise<void> {
  const controller = new AbortController()
  const { signal } = controller
  const timeoutMessage = `A set of lines took longer than ${limits.requestMs / 1000} seconds and was cancelled.`
  let timer: NodeJS.Timeout | undefined
  const onStart = () => {
    const late = new Fault(createRefusal('operation_failed', timeoutMessage, { status: 504 }))
    clearTimeout(timer)
    timer = setTimeout(() => controller.abort(late), limits.requestMs)
  }
  const options = { limits, signal, onStart }
  try {
    if (!body.dry_run) await writeAll(context, writes, options, outcomes)
    else if (writes.length > 0) {
      onStart()
      const dry = await dryRun(context, writes, options)
      for (const [index, outcome] of dry.outcomes.entries()) outcomes.set(index, outcome)
    }
    throwIfFailed(outcomes, signal)
  } finally {
    clearTimeout(timer)
  }
}
