import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Cleanup, prepareCleanup } from './cleanup.ts'
import { inDatabase, serverVersion } from './database.ts'
import { type BenchPostgres, startPostgres } from './environment.ts'
import { type Load, loadAtRate, loadClosed, loadStatement } from './load.ts'
import type { Options } from './options.ts'
import { type Usage, withUsage } from './processes.ts'
import { ask, type BenchRequest, UnexpectedResponse } from './requests.ts'
import type { Row } from './rows.ts'
import { addCheckout, checkout, readCommit, Side } from './side.ts'

/** The figures of a row, of one side and round. Times are in milliseconds, CPU in microseconds for each request or item. */
export type Figures = {
  rate: number
  p50Ms: number
  /** The requests are sent at half the rate of the row. */
  p99Ms: number
  aloneP50Ms: number
  aloneP99Ms: number
  nodeUs: number
  postgresUs: number
  peakMb: number
}

/** The rounds of a row: `ours` of the working tree, `theirs` of the revision to compare with, `statement` of pgbench. */
export type Measured = { row: Row; ours: Figures[]; theirs: Figures[]; statement: Figures[] }

/** Runs work on a new PostgreSQL. It stops everything afterwards, also after an error or a signal. */
export async function withPostgres<T>(
  work: (context: { postgres: BenchPostgres; acquire: Cleanup['acquire'] }) => Promise<T>,
): Promise<T> {
  const cleanup = prepareCleanup()
  try {
    const postgres = await cleanup.acquire(startPostgres, started => started.stop())
    return await work({ postgres, acquire: cleanup.acquire })
  } finally {
    await cleanup.close()
  }
}

type Listeners = {
  onStart: (postgresVersion: string) => void
  /** Called when all rounds of a row are measured. */
  onRow: (measured: Measured) => void
  onRound: () => void
}

/**
 * Measures the rows of the working tree, of another revision and of pgbench in alternation. Each round has processes of its own: two processes
 * of the same code differ by up to a third for as long as they run.
 */
export function measureRows(options: Options, { onStart, onRow, onRound }: Listeners): Promise<Measured[]> {
  return withPostgres(async context => {
    const { people, workers, against, rounds } = options
    const ours = await Side.open(context, { name: 'ours', checkout, people, workers })
    const theirs = against === undefined ? undefined : await openRevision(context, options, against)
    onStart(await serverVersion(ours.service))
    const measured = options.rows.map((row): Measured => ({ row, ours: [], theirs: [], statement: [] }))
    for (let round = 0; round < rounds; round += 1) {
      await ours.restart()
      await theirs?.restart()
      for (const each of measured) {
        // Otherwise autovacuum runs during the next row, and each first read of a changed row marks it and writes WAL.
        for (const side of theirs ? [ours, theirs] : [ours])
          await inDatabase(side.service.url, client => client.query('vacuum (analyze)'))
        await measureRound(each, { ours, theirs, options, isReversed: round % 2 === 1 })
        if (round === rounds - 1) onRow(each)
      }
      onRound()
    }
    return measured
  })
}

async function openRevision(
  context: { postgres: BenchPostgres; acquire: Cleanup['acquire'] },
  { people, workers }: Options,
  revision: string,
): Promise<Side> {
  const folder = join(context.postgres.folder, 'revision')
  const checkout = await addCheckout(folder, await readCommit(revision), context.acquire)
  return Side.open(context, { name: 'theirs', checkout, people, workers })
}

type Round = { ours: Side; theirs: Side | undefined; options: Options; isReversed: boolean }

/** Measures all sides of a row, one after the other. The last finds a warmer machine, so the order changes every round. */
async function measureRound({ row, ...figures }: Measured, { ours, theirs, options, isReversed }: Round) {
  const { sql } = row
  const steps = [
    async () => figures.ours.push(await measureSide(row, ours, options)),
    async () => {
      const measured = theirs && (await unlessMissing(() => measureSide(row, theirs, options)))
      if (measured) figures.theirs.push(measured)
    },
    async () => {
      if (sql && options.hasStatements) figures.statement.push(await measureStatement(sql, ours, options))
    },
  ]
  for (const step of isReversed ? steps.toReversed() : steps) {
    await setTimeout(options.pauseMs)
    await step()
  }
}

/** Returns undefined if a revision does not have the endpoint or the parameter of a row. */
async function unlessMissing(work: () => Promise<Figures>): Promise<Figures | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof UnexpectedResponse && [400, 404, 405].includes(error.status)) return undefined
    throw error
  }
}

async function measureSide(row: Row, side: Side, options: Options): Promise<Figures> {
  if ('prepare' in row) return measureWork(side, await row.prepare(side))
  const next = await row.requests(side)
  return row.beside ? measureBeside(side, next, row.beside(side), options) : measureRequests(side, next, options)
}

const perItem = ({ nodeUs, postgresUs, peakMb }: Usage, done: number) => ({
  nodeUs: nodeUs / done,
  postgresUs: postgresUs / done,
  peakMb,
})

/**
 * Runs a load and measures what it used. The index of a search is written behind a write, but it is a cost of the write, so the measurement
 * ends when the index has reached the head of the log.
 */
async function withUsageAndIndex<T>(side: Side, work: () => Promise<T>): Promise<{ result: T; usage: Usage }> {
  await side.settle()
  return withUsage(side, async () => {
    const result = await work()
    await side.settle()
    return result
  })
}

async function measureWork(side: Side, work: () => Promise<number>): Promise<Figures> {
  const { result, usage } = await withUsageAndIndex(side, async () => {
    const startedMs = performance.now()
    const done = await work()
    return { done, rate: done / ((performance.now() - startedMs) / 1_000) }
  })
  const { done, rate } = result
  const none = Number.NaN
  return { rate, p50Ms: none, p99Ms: none, aloneP50Ms: none, aloneP99Ms: none, ...perItem(usage, done) }
}

const connections = 64
/** No row reached this rate. */
const maxRate = 40_000
/** undici in this process sends no more beside a service on the same cores. */
const maxPacedRate = 2_000

async function measureRequests(side: Side, next: () => BenchRequest, options: Options): Promise<Figures> {
  const { folder } = side.postgres
  // The first request says whether the revision has the endpoint. The first seconds fill caches and compile code.
  await ask(side, next())
  const { rate } = await loadClosed(side, { folder, next, connections, seconds: options.warmUpSeconds, maxRate })
  const closed = { folder, next, seconds: options.seconds, maxRate: 3 * rate + 1_000 }
  const { result, usage } = await loadClosed(side, { ...closed, connections }, work => withUsageAndIndex(side, work))
  const alone = await loadClosed(side, {
    ...closed,
    connections: 1,
    seconds: options.aloneSeconds,
    maxRate: rate + 1_000,
  })
  const perSecond = Math.min(maxPacedRate, result.rate / 2)
  const paced = await loadAtRate(side, { next, perSecond, seconds: options.aloneSeconds })
  return {
    ...figuresOf(result, usage),
    p99Ms: paced.p99Ms,
    aloneP50Ms: alone.p50Ms,
    aloneP99Ms: alone.p99Ms,
  }
}

/** The requests a second that are sent beside other work. */
const rateBeside = 100

/** Measures the times of requests while work is repeated. */
async function measureBeside(
  side: Side,
  next: () => BenchRequest,
  work: () => Promise<unknown>,
  { seconds }: Options,
): Promise<Figures> {
  await ask(side, next())
  let isOver = false
  const repeat = async () => {
    while (!isOver) await work()
  }
  const repeating = repeat()
  // The repeated work is awaited at the end, perhaps after it fails.
  repeating.catch(() => {})
  const load = await loadAtRate(side, { next, perSecond: rateBeside, seconds }).finally(() => {
    isOver = true
  })
  await repeating
  const none = Number.NaN
  const { p50Ms, p99Ms } = load
  return { rate: none, p50Ms, p99Ms, aloneP50Ms: none, aloneP99Ms: none, nodeUs: none, postgresUs: none, peakMb: none }
}

async function measureStatement(sql: string, side: Side, { seconds }: Options): Promise<Figures> {
  const { folder } = side.postgres
  const variables = { organization: side.organizationId, people: side.people }
  const { result, usage } = await withUsage(side, () =>
    loadStatement({ folder, url: side.service.url, sql, variables, seconds }),
  )
  return figuresOf(result, usage)
}

const figuresOf = (load: Load, usage: Usage): Figures => ({
  rate: load.rate,
  p50Ms: load.p50Ms,
  p99Ms: load.p99Ms,
  aloneP50Ms: Number.NaN,
  aloneP99Ms: Number.NaN,
  ...perItem(usage, load.done),
})
