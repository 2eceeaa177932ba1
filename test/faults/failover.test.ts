import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses, launch } from '../support/process.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes } from './load.ts'
import { runOutage } from './outage.ts'
import { type OwnPostgres, startOwnPostgres, startStandby, urlOfServers } from './own-postgres.ts'
import { lastErrors, printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

const maxAnswerMs = 5_000
const maxRecoveryMs = 5_000

const servers: OwnPostgres[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) {
    await server.thaw()
    await server.stop()
    // The end of the test would start a server that was killed.
    await rm(join(server.path, 'data', 'postmaster.pid'), { force: true })
  }
  await endProcesses()
})

/**
 * A primary with the tables of kith, and its streaming standby. The settings of the primary are in no file: a later start of its data,
 * by the end of a test or after a killed run, must not wait for the standby.
 */
async function startPair(settings: Record<string, string> = {}) {
  const primary = await startOwnPostgres(settings)
  servers.push(primary)
  const standby = await startStandby(primary)
  servers.push(standby)
  await migrate(primary.url)
  const state = settings.synchronous_standby_names ? 'sync' : 'async'
  const streams = `select from pg_stat_replication where state = 'streaming' and sync_state = '${state}'`
  await until(async () => (await query(primary.url, streams)).length === 1)
  return { primary, standby }
}

type Failover = {
  fault: 'killed' | 'frozen'
  standbyIs: 'synchronous' | 'asynchronous'
  round: number
  primary: OwnPostgres
  standby: OwnPostgres
}

/**
 * Writes while the primary is killed or frozen, and the standby is promoted. A frozen primary goes on afterwards, and still accepts
 * writes. Returns what the clients observed, and what differs afterwards.
 */
async function failOver({ fault, standbyIs, round, primary, standby }: Failover) {
  const random = createRandom('failover', fault, standbyIs, round)
  const kith = launch({ DATABASE_URL: urlOfServers(primary, standby), LOG_LEVEL: 'warn' })
  const address = await kith.ready
  const world = await makeWorld(primary.url, address)
  const { observed, journal } = await runOutage({
    world,
    address,
    seedParts: ['failover', fault, standbyIs, round],
    prepare: async () => {
      if (standbyIs === 'asynchronous') await stopReceiving(standby)
    },
    begin: () => (fault === 'killed' ? primary.kill('all') : primary.freeze()),
    end: async () => {
      await query(standby.url, 'select pg_promote()')
    },
    finish: () => (fault === 'killed' ? Promise.resolve() : primary.thaw()),
    durationMs: random.below(1_500),
  })
  const promoted = { ...world, databaseUrl: standby.url }
  await resolveUnknownOutcomes({ journal, world: promoted, address })
  const findings = await check(promoted, journal, address)
  printRound(
    `failover, ${fault} primary, ${standbyIs} standby`,
    round,
    { ...observed, findings: findings.length },
    journal,
  )
  expect(kith.child.exitCode ?? kith.child.signalCode).toBeNull()
  expect(kith.output.stdout).toContain(`moved to ${standby.path}/data/.s.PGSQL.5432, timeline 2.`)
  return { observed, findings, errors: lastErrors(kith) }
}

/** Lets the standby receive nothing any more, as if it were far behind. */
async function stopReceiving(standby: OwnPostgres) {
  await query(standby.url, `alter system set primary_conninfo = ''`)
  await query(standby.url, 'select pg_reload_conf()')
  await until(async () => (await query(standby.url, 'select from pg_stat_wal_receiver')).length === 0)
}

describe('a primary killed or frozen under write load, and its standby promoted', () => {
  it.each(rounds(20))(
    'loses no acknowledged write, does none twice, and writes again, with a synchronous standby: round %i',
    async round => {
      const pair = await startPair({ synchronous_standby_names: 'standby' })
      const fault = round % 2 === 0 ? 'frozen' : 'killed'
      const { observed, findings, errors } = await failOver({ ...pair, fault, standbyIs: 'synchronous', round })
      expect(formatFindings(findings), errors).toEqual([])
      expect(observed.otherFailures).toEqual([])
      expect(observed.withoutRetryAfter).toBe(0)
      expect(observed.refused).toBeGreaterThan(0)
      expect(observed.slowestAnswerMs).toBeLessThan(maxAnswerMs)
      expect(observed.recoveryMs).toBeLessThan(maxRecoveryMs)
    },
  )

  it('loses acknowledged writes with an asynchronous standby that is behind, and the check finds them', async () => {
    const { observed, findings } = await failOver({
      ...(await startPair()),
      fault: 'killed',
      standbyIs: 'asynchronous',
      round: 1,
    })
    expect(findings.map(({ kind }) => kind)).toContain('a write is lost')
    expect(observed.recoveryMs).toBeLessThan(maxRecoveryMs)
  })
})
