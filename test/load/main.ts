import { availableParallelism } from 'node:os'
import { prepareCleanup } from '../../bench/cleanup.ts'
import { createChecks } from './checks.ts'
import type { Figures } from './load.ts'
import { type LoadOptions, readOptions } from './options.ts'
import { filters, neighbour, soak, storm } from './scenarios.ts'
import { type LoadSetup, preparePlace } from './setup.ts'
import { offer } from './source.ts'

const scenes = { storm, neighbour, filters, soak }

/** The connections of the closed loop. */
const connections = 64

/** Requests a second that so many connections are answered, each sending the next when it has the last answer. */
async function measureMaximum({ one }: LoadSetup, { seed, seconds, work }: LoadOptions): Promise<Figures> {
  await offer({ ...one, seed, work, seconds: 3, connections, rate: undefined })
  return offer({ ...one, seed: seed + 1, work, seconds: seconds.maximum, connections, rate: undefined })
}

async function run(asked: LoadOptions): Promise<number> {
  const checks = createChecks(line => process.stdout.write(`${line}\n`))
  checks.say(
    `seed ${asked.seed}; ${asked.work} work; ${availableParallelism()} cores for service, PostgreSQL and generator`,
  )
  const ending = prepareCleanup()
  try {
    const place = await preparePlace(ending)
    const closed = await measureMaximum(place, asked)
    const maximum = Math.round(closed.answered.count / closed.seconds)
    const { p50Ms, p99Ms } = closed.answered
    checks.say(`maximum, closed loop of ${connections}: ${maximum}/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms`)
    for (const name of asked.scenes) await scenes[name]({ place, asked, maximum, checks })
  } finally {
    await ending.close()
  }
  return checks.finish()
}

process.exitCode = await run(readOptions(process.argv.slice(2)))
