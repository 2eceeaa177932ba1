import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AccessEntry } from '../../client/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch } from '../support/process.ts'
import { printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { makeWorld, type World } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

const readers = 16
/** The mode `on` may lose entries of the last second before a crash. */
const lostMs = 1_000

/** A read whose whole response arrived. */
type Answered = { request_id: string; atMs: number }

async function startService(mode: string) {
  const kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', KITH_ACCESS_LOG: mode })
  return { kith, address: await kith.ready }
}

/** Reads a person over many connections until the service is gone. */
async function readUntilKilled(address: string, { token }: World, answered: Answered[]): Promise<void> {
  for (;;) {
    const request_id = randomUUID()
    const headers = { Authorization: `Bearer ${token}`, 'X-Request-Id': request_id }
    try {
      const response = await fetch(`${address}/v1/people/ada`, { headers })
      await response.json()
      if (response.status === 200) answered.push({ request_id, atMs: Date.now() })
    } catch {
      return
    }
  }
}

async function readLog(address: string, { token }: World, fromMs: number): Promise<Set<string>> {
  const headers = { Authorization: `Bearer ${token}`, Accept: 'application/x-ndjson' }
  const from = new Date(fromMs).toISOString()
  const response = await fetch(`${address}/v1/access-log?kind=access&from=${from}`, { headers })
  const lines = (await response.text()).split('\n').filter(Boolean)
  return new Set(lines.map(line => (JSON.parse(line) as AccessEntry).request_id))
}

it.each(
  rounds(10).flatMap(round => [
    { round, mode: 'strict' },
    { round, mode: 'on' },
  ]),
)(
  'an access log that is $mode has every read that was answered, but at most the last second of on: round $round',
  async ({ round, mode }) => {
    const random = createRandom('access log', mode, round)
    const { kith, address } = await startService(mode)
    const world = await makeWorld(database.url, address)
    const person = { method: 'POST', body: '{"external_id":"ada"}' }
    const headers = { Authorization: `Bearer ${world.token}`, 'Content-Type': 'application/json' }
    await fetch(`${address}/v1/people`, { ...person, headers })
    const startedMs = Date.now()
    const answered: Answered[] = []
    const reading = Array.from({ length: readers }, () => readUntilKilled(address, world, answered))
    const wanted = 100 + random.below(400)
    while (answered.length < wanted) await setTimeout(20)
    const killedMs = Date.now()
    kith.child.kill('SIGKILL')
    await Promise.all([...reading, kith.ended])
    const restarted = await startService(mode)
    const stored = await readLog(restarted.address, world, startedMs - 1_000)
    const missing = answered.filter(({ request_id }) => !stored.has(request_id))
    const oldestMs = Math.max(0, ...missing.map(({ atMs }) => killedMs - atMs))
    printRound(`access log ${mode}`, round, { answered: answered.length, missing: missing.length, oldest_ms: oldestMs })
    restarted.kith.child.kill('SIGKILL')
    await restarted.kith.ended
    if (mode === 'strict') expect(missing).toEqual([])
    else expect(oldestMs).toBeLessThan(lostMs)
  },
)
