import { fileURLToPath } from 'node:url'
import { type Cleanup, prepareCleanup } from './cleanup.ts'
import { serverVersion, settle } from './database.ts'
import { type BenchPostgres, type Service, startPostgres, startService } from './environment.ts'
import { type BenchOptions, type Figure, isWithin, medianSide, type Side } from './figures.ts'
import { loadPostgres, loadService } from './load.ts'
import { coolDown, type Run } from './measure.ts'
import { indexesOf, type Populated, populate } from './populate.ts'
import { printFigure, printMachine, printSummary } from './report.ts'
import { rows as allRows, type BenchRow } from './rows.ts'
import { organizationTokens } from './tokens.ts'
import { type Usage, withUsage } from './usage.ts'

/** A running service with its people and the PostgreSQL below. `restart` replaces the process of the service by a new one. */
export type BenchTarget = {
  restart(): Promise<void>
  postgres: BenchPostgres
  service: Service
  large: Populated
  small: Populated
  options: BenchOptions
}

/** A PostgreSQL on which `addTarget` starts services of a checkout, each on its own database. */
type BenchContext = {
  folder: string
  addTarget(checkout: string, name: string, settings?: Record<string, string>): Promise<BenchTarget>
  acquire: Cleanup['acquire']
}

const checkout = fileURLToPath(new URL('..', import.meta.url))

/** Runs `work` on a new PostgreSQL. It stops everything afterwards, also after an error or a signal. */
export async function withPostgres<T>(options: BenchOptions, work: (context: BenchContext) => Promise<T>): Promise<T> {
  const cleanup = prepareCleanup()
  try {
    const postgres = await cleanup.acquire(startPostgres, started => started.stop())
    const addTarget = async (checkout: string, name: string, settings = {}) => {
      await postgres.createDatabase(name)
      const start = () =>
        cleanup.acquire(
          () => startService(postgres, checkout, name, options.workers, settings),
          service => service.stop(),
        )
      const service = await start()
      const people = await populate(service, options.people, organizationTokens(checkout, service))
      const restart = async () => {
        await target.service.stop()
        target.service = await start()
      }
      const target: BenchTarget = { postgres, service, options, restart, ...people }
      return target
    }
    return await work({ folder: postgres.folder, addTarget, acquire: cleanup.acquire })
  } finally {
    await cleanup.close()
  }
}

/** Measures each row and its reference in alternation. Prints and returns the figures. */
export function benchRows(options: BenchOptions): Promise<Figure[]> {
  return withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    printMachine(options, await indexesOf(target.service), await serverVersion(target.service))
    const figures: Figure[] = []
    for (const row of options.rows) {
      const figure = await measureRow(target, row)
      figures.push(figure)
      printFigure(figure)
    }
    printSummary(figures)
    return figures
  })
}

async function measureRow(target: BenchTarget, row: BenchRow): Promise<Figure> {
  const { rounds } = target.options
  const ours: Side[] = []
  const theirs: Side[] = []
  await settle(target.service)
  // The first seconds of each side fill caches and compile code, so they do not count.
  await measureService(target, row, 2)
  for (let round = 0; round < rounds; round += 1) {
    // The second side finds a warmer machine, so the sides take turns at the start.
    if (round % 2 === 1) ours.push(await measureService(target, row))
    theirs.push(await measureReference(target, row))
    if (round % 2 === 0) ours.push(await measureService(target, row))
  }
  const [own, other] = [medianSide(ours), medianSide(theirs)]
  const ratio = ratioOf(row, own, other)
  return { row, ours: own, theirs: other, ratio, met: isWithin(row, ratio, row.atLeast) }
}

function ratioOf(row: BenchRow, ours: Run, theirs: Run): number {
  return row.measure === 'latency' ? ours.p50Ms / theirs.p50Ms : ours.rate / theirs.rate
}

function measureReference(target: BenchTarget, { against, clients }: BenchRow): Promise<Side> {
  if ('row' in against) return measureService(target, allRows.find(({ name }) => name === against.row)!)
  const { postgres, service, large, options } = target
  return measureLoad(target, () => loadPostgres(postgres, service, against.sql, clients, large, options.seconds))
}

/** Runs the requests of a row against a service. Returns the figures with the resources used. */
export function measureService(target: BenchTarget, row: BenchRow, seconds = target.options.seconds): Promise<Side> {
  return measureLoad(target, () => loadService(target.service, row, target[row.organization], seconds))
}

/** Runs a load after a pause. Returns its figures with the resources used. */
export async function measureLoad<R extends Run>(
  target: BenchTarget,
  work: () => Promise<R>,
): Promise<R & { usage: Usage }> {
  await coolDown()
  const { result, usage } = await withUsage(target, work)
  return { ...result, usage }
}
