import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseCheckpoint, parseVerifierKey, verifyNote } from '../../client/src/ledger-proof.ts'
import { contextOf } from '../../src/db/context.ts'
import { type DatabasePool, openDatabase, statement } from '../../src/db/db.ts'
import { auditLedger } from '../../src/ledger/audit.ts'
import { createTestDatabase } from '../support/database.ts'
import { isConsistent } from '../support/merkle-trees.ts'
import { endProcesses, type Kith, launch, senderTo } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { lastErrors, printRound } from './report.ts'
import { createRandom, type Random, rounds } from './rounds.ts'
import { makeWorld, type World } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: DatabasePool
beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 2, statementTimeoutMs: 20_000 })
})
afterAll(async () => {
  await endProcesses()
  await db.close()
  await database.drop()
})

async function startService() {
  const kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn' })
  return { kith, address: await kith.ready }
}

const clients = 2
const channels = ['email', 'sms']

/** Answers on both channels for new people until it is stopped or the service dies. Each person has a reference of its own. */
function startAnswering(send: Send, name: string, round: number) {
  const acknowledged: string[] = []
  let isStopped = false
  const run = async (client: number) => {
    const random = createRandom('sealing', name, round, client)
    for (let request = 0; !isStopped; request++) {
      const references = Array.from({ length: random.pick([1, 10, 50]) }, (_, n) => `${name} ${client} ${request} ${n}`)
      const operations = references.map(reference => {
        const state = random.oneIn(2)
        return {
          op: 'create',
          body: { consents: channels.map(channel => ({ ...question(channel), state, reference })) },
        }
      })
      const reply = await send('POST', '/v1/people/batch', { operations }).catch(() => undefined)
      if (!reply) return
      expect(reply).toMatchObject({ status: 200 })
      for (const [n, { status }] of reply.body.data.items.entries())
        if (status === 201) acknowledged.push(references[n]!)
    }
  }
  const ended = Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
  return {
    acknowledged,
    stop: () => {
      isStopped = true
      return ended
    },
  }
}

const question = (channel: string) => ({ consent_type_id: 1, channel })

/** The checkpoints of a ledger that were seen outside, by size. */
type Kept = Map<number, string>

/** Reads the newest checkpoint, and keeps it. One that was kept with this size must be the same. Returns its size. */
async function keepCheckpoint(kept: Kept, address: string, { token }: World): Promise<number> {
  const response = await fetch(`${address}/v1/ledger/checkpoint`, { headers: { Authorization: `Bearer ${token}` } })
  const note = await response.text()
  expect(response.status, note).toBe(200)
  const size = Number(note.split('\n')[1])
  expect(kept.get(size) ?? note).toBe(note)
  kept.set(size, note)
  return size
}

const findLeaseSql = statement(
  '',
  `select from followers where organization_id = $1 and name = 'ledger' and owner is not null`,
)
const isSealing = async ({ organization_id }: World) => (await db.query(findLeaseSql, [organization_id])).length > 0

/** Lets another process take over at once. The lease of a dead process ends after 6 seconds. */
const endLeaseSql = statement('', `update followers set leased_until = '-infinity' where organization_id = $1`)

const findWaitingSql = statement(
  '',
  `select from pg_stat_activity
   where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into ledgers %'`,
)

/** Kills the service while a sealing transaction waits for its last statement: everything else of it is written. */
async function killAtLastStatement({ child }: Kith, { organization_id }: World) {
  const holder = await db.connect()
  try {
    await holder.query('begin')
    await holder.query('select from ledgers where organization_id = $1 for update', [organization_id])
    while ((await db.query(findWaitingSql, [])).length === 0) await setTimeout(1)
    child.kill('SIGKILL')
  } finally {
    await holder.end()
  }
}

/** Kills the service soon after it has begun to seal. */
async function killAtAnyMoment({ child }: Kith, world: World, random: Random) {
  while (!(await isSealing(world))) await setTimeout(1)
  await setTimeout(random.below(20))
  child.kill('SIGKILL')
}

const countAnswersSql = statement('', 'select count(*) as count from consent_history where organization_id = $1')
async function countAnswers({ organization_id }: World): Promise<number> {
  const [row] = await db.query<{ count: number }>(countAnswersSql, [organization_id])
  return row!.count
}

const countEntriesSql = statement(
  '',
  `select h.evidence->>'reference' as reference, count(*) as entries
   from ledger_entries e join changes c on c.organization_id = $1 and c.sequence = e.sequence
     join consent_history h on h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
       and h.consent_type_id = e.consent_type_id and h.channel = e.channel
   where e.organization_id = $1 group by 1`,
)
/** The entries of the ledger for each reference. */
async function countEntries({ organization_id }: World): Promise<Map<string, number>> {
  const rows = await db.query<{ reference: string; entries: number }>(countEntriesSql, [organization_id])
  return new Map(rows.map(({ reference, entries }) => [reference, entries]))
}

/** Verifies each checkpoint by the service's keys, and that the ledger of the newest one begins with it. */
async function verifyKept(kept: Kept, send: Send) {
  const { keys } = (await send('GET', '/v1/ledger/keys')).body.data
  const verifierKeys = await Promise.all(keys.map(({ key }: { key: string }) => parseVerifierKey(key)))
  const texts = await Promise.all([...kept.values()].map(note => verifyNote(note, verifierKeys)))
  const checkpoints = texts
    .map(parseCheckpoint)
    .map(({ size, rootHash }) => ({ size, rootHash: Buffer.from(rootHash) }))
  const newest = checkpoints.reduce((a, b) => (a.size > b.size ? a : b))
  for (const { size, rootHash } of checkpoints) {
    const { body } = await send('GET', `/v1/ledger/consistency/${size}?size=${newest.size}`)
    const hashes = body.data.hashes.map((hash: string) => Buffer.from(hash, 'base64'))
    const trees = { oldSize: size, oldRootHash: rootHash, newSize: newest.size, newRootHash: newest.rootHash, hashes }
    expect(isConsistent(trees), `the ledger of ${newest.size} entries begins with that of ${size}`).toBe(true)
  }
}

describe('kith killed while it seals consent answers', () => {
  let startNext = startService

  it.each(rounds(20))(
    'continues the ledger that others have seen, and seals each answer once: round %i',
    async round => {
      const { kith, address } = await startNext()
      const world = await makeWorld(database.url, address)
      const kept: Kept = new Map()
      const before = startAnswering(senderTo(address, world.token), 'before', round)
      while ((await keepCheckpoint(kept, address, world)) === 0) await setTimeout(5)
      const seen = Math.max(...kept.keys())
      while ((await keepCheckpoint(kept, address, world)) === seen) await setTimeout(1)
      if (round % 2 === 1) await killAtLastStatement(kith, world)
      else await killAtAnyMoment(kith, world, createRandom('sealing', round))
      await Promise.all([before.stop(), kith.ended])
      const diedSealing = await isSealing(world)
      await db.query(endLeaseSql, [world.organization_id])

      const restarted = await startService()
      startNext = async () => restarted
      const send = senderTo(restarted.address, world.token)
      await keepCheckpoint(kept, restarted.address, world)
      const after = startAnswering(send, 'after', round)
      await expect.poll(() => after.acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(20)
      await after.stop()
      const answers = await countAnswers(world)
      await expect.poll(() => keepCheckpoint(kept, restarted.address, world), { timeout: 20_000 }).toBe(answers)

      const acknowledged = [...before.acknowledged, ...after.acknowledged]
      const measured = { died_sealing: diedSealing, answers, acknowledged: acknowledged.length, checkpoints: kept.size }
      printRound('kill -9 while sealing', round, measured)
      const { findings, waiting } = await auditLedger(contextOf(db, world.organization_id))
      expect({ findings, waiting }, lastErrors(restarted.kith)).toEqual({ findings: [], waiting: 0 })
      await verifyKept(kept, send)
      const entries = await countEntries(world)
      expect(acknowledged.filter(reference => entries.get(reference) !== channels.length)).toEqual([])
    },
  )
})
