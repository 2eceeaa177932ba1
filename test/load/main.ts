import { availableParallelism } from 'node:os'
import { prepareEnding } from '../../bench/cleanup.ts'
import { createChecks } from './checks.ts'
import type { Figures } from './load.ts'
import { type LoadOptions, readOptions } from './options.ts'
import { filters, neighbour, soak, storm } from './scenarios.ts'
import { type LoadSetup, prepareSetup } from './setup.ts'
import { runLoad } from './source.ts'

const scenarios = { storm, neighbour, filters, soak }

/** The number of connections of the closed loop. */
const connections = 64

/** Measures the maximum rate with a closed loop: each connection sends its next request after the response to the last one. */
async function measureMaximum({ one }: LoadSetup, { seed, seconds, work }: LoadOptions): Promise<Figures> {
  await runLoad({ ...one, seed, work, seconds: 3, connections, rate: undefined })
  return runLoad({ ...one, seed: seed + 1, work, seconds: seconds.maximum, connections, rate: undefined })
}

async function runScenarios(options: LoadOptions): Promise<number> {
  const checks = createChecks(line => process.stdout.write(`${line}\n`))
  checks.print(
    `seed ${options.seed}; ${options.work} work; ${availableParallelism()} cores for kith, PostgreSQL and generator`,
  )
  const cleanup = prepareEnding()
  try {
    const setup = await prepareSetup(cleanup)
    const closedLoop = await measureMaximum(setup, options)
    const maximum = Math.round(closedLoop.answered.count / closedLoop.seconds)
    const { p50Ms, p99Ms } = closedLoop.answered
    checks.print(`maximum, closed loop of ${connections}: ${maximum}/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms`)
    for (const name of options.scenarios) await scenarios[name]({ setup, options, maximum, checks })
  } finally {
    await cleanup.close()
  }
  return checks.finish()
}

process.exitCode = await runScenarios(readOptions(process.argv.slice(2)))
