import { fileURLToPath } from 'node:url'
import { type Ending, prepareEnding } from './cleanup.ts'
import { serverVersion, settle } from './database.ts'
import { type Ground, prepareGround, type Service, startService } from './environment.ts'
import { type BenchOptions, type Figure, isWithin, middle, type Side } from './figures.ts'
import { loadPostgres, loadService } from './load.ts'
import { breathe, type Run } from './measure.ts'
import { indexesOf, type Populated, populate } from './populate.ts'
import { printFigure, printMachine, printSummary } from './report.ts'
import { rows as all_rows, type BenchRow } from './rows.ts'
import { organizationTokens } from './tokens.ts'
import { withUsage } from './usage.ts'

/** A service with its people, ready to be asked. */
export type Theatre = { ground: Ground; service: Service; large: Populated; small: Populated; options: BenchOptions }

/** A database server, on which services of some checkout can be set up, each on a database of its own. */
type Grounds = {
  folder: string
  enter(checkout: string, name: string): Promise<Theatre>
  hold: Ending['hold']
}

const checkout = fileURLToPath(new URL('..', import.meta.url))

/** Runs `work` on a fresh PostgreSQL; whatever was started on it is gone afterwards, whatever happens. */
export async function inTheatre<T>(options: BenchOptions, work: (grounds: Grounds) => Promise<T>): Promise<T> {
  const ending = prepareEnding()
  try {
    const ground = await ending.hold(prepareGround, ground => ground.stop())
    const enter = async (checkout: string, name: string) => {
      await ground.createDatabase(name)
      const start = () => startService(ground, checkout, name, options.workers)
      const service = await ending.hold(start, service => service.stop())
      const people = await populate(service, options.people, organizationTokens(checkout, service))
      return { ground, service, options, ...people }
    }
    return await work({ folder: ground.folder, enter, hold: ending.hold })
  } finally {
    await ending.close()
  }
}

/** Measures each row against the bare statement, or against another row, in alternation. */
export function benchRows(options: BenchOptions): Promise<Figure[]> {
  return inTheatre(options, async ({ enter }) => {
    const theatre = await enter(checkout, 'bench')
    printMachine(options, await indexesOf(theatre.service), await serverVersion(theatre.service))
    const figures: Figure[] = []
    for (const row of options.rows) {
      const figure = await measureRow(theatre, row)
      figures.push(figure)
      printFigure(figure)
    }
    printSummary(figures)
    return figures
  })
}

async function measureRow(theatre: Theatre, row: BenchRow): Promise<Figure> {
  const { rounds } = theatre.options
  const ours: Side[] = []
  const theirs: Side[] = []
  await settle(theatre.service)
  // The first seconds of either side fill caches and compile; they do not count.
  await askService(theatre, row, 2)
  for (let round = 0; round < rounds; round += 1) {
    // Whoever comes second finds the machine warmer: they take turns.
    if (round % 2 === 1) ours.push(await askService(theatre, row))
    theirs.push(await measureOther(theatre, row))
    if (round % 2 === 0) ours.push(await askService(theatre, row))
  }
  const [own, other] = [middle(ours), middle(theirs)]
  const ratio = ratioOf(row, own, other)
  return { row, ours: own, theirs: other, ratio, met: isWithin(row, ratio, row.atLeast) }
}

function ratioOf(row: BenchRow, ours: Run, theirs: Run): number {
  return row.measure === 'latency' ? ours.p50Ms / theirs.p50Ms : ours.rate / theirs.rate
}

function measureOther(theatre: Theatre, { against, clients }: BenchRow): Promise<Side> {
  if ('row' in against) return askService(theatre, all_rows.find(({ name }) => name === against.row)!)
  const { ground, service, large, options } = theatre
  return observed(theatre, () => loadPostgres(ground, service, against.sql, clients, large, options.seconds))
}

export function askService(theatre: Theatre, row: BenchRow, seconds = theatre.options.seconds): Promise<Side> {
  return observed(theatre, () => loadService(theatre.service, row, theatre[row.organization], seconds))
}

async function observed({ ground, service }: Theatre, work: () => Promise<Run>): Promise<Side> {
  await breathe()
  const { result, usage } = await withUsage({ service: service.pid, postgres: ground.postgresPid }, work)
  return { ...result, usage }
}
