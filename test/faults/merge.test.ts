import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, tokenFrom } from '../support/process.ts'
import { rounds } from './rounds.ts'

const roundNumbers = rounds(20)
const pairsPerRound = 12

let database: Awaited<ReturnType<typeof createTestDatabase>>
let client: pg.Client

beforeAll(async () => {
  database = await createTestDatabase()
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
})

afterAll(async () => {
  await endProcesses()
  await client.end()
  await database.drop()
})

type Send = (method: string, path: string, body?: object) => Promise<number>

const sendTo =
  (address: string, token: string): Send =>
  async (method, path, body) => {
    const response = await fetch(`${address}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    await response.text()
    return response.status
  }

const countOf = async (sql: string) => Number((await client.query(`select count(*) as count ${sql}`)).rows[0].count)

const pairs = (round: number) =>
  Array.from({ length: pairsPerRound }, (_, n) => [`a${round}-${n}`, `b${round}-${n}`] as const)

/** Creates pairs of people, and a person who links to both. */
async function createPairs(send: Send, round: number) {
  for (const [ada, bob] of pairs(round)) {
    expect(await send('POST', '/v1/people', { external_id: ada, first_name: 'Ada' })).toBe(201)
    const consents = [{ consent_type_id: 1, channel: 'email', state: false }]
    expect(await send('POST', '/v1/people', { external_id: bob, email: `${bob}@example.org`, consents })).toBe(201)
    const friends = [bob, ada]
    expect(await send('POST', '/v1/people', { external_id: `fan-${ada}`, attribute_values: { friends } })).toBe(201)
  }
}

/** Every pair is merged wholly or not at all, and so are its links, aliases and log. */
async function checkWhole(round: number) {
  const merged = `from merges m where m.unmerged_sequence is null`
  expect(await countOf(`${merged} and exists (select from entities e where e.id = m.merged_id)`)).toBe(0)
  expect(
    await countOf(
      `${merged} and not exists (select from aliases a where a.merge_id = m.id and a.person_id = m.person_id)`,
    ),
  ).toBe(0)
  expect(await countOf(`from aliases a join entities e on e.external_id = a.external_id`)).toBe(0)
  expect(
    await countOf(
      `from links l where l.target_id is not null and not exists (select from entities e where e.id = l.target_id)`,
    ),
  ).toBe(0)
  expect(
    await countOf(
      `from changes c where c.operation = 'merge' and not exists (select from merges m where m.sequence = c.sequence)`,
    ),
  ).toBe(0)
  // Each pair has one entity and an alias, or two entities, and links to all of them.
  for (const [ada, bob] of pairs(round)) {
    const people = await countOf(`from entities e where e.external_id in ('${ada}', '${bob}')`)
    const links = await countOf(
      `from links l join entities f on f.id = l.source_id join entities t on t.id = l.target_id
       where f.external_id = 'fan-${ada}' and t.external_id in ('${ada}', '${bob}')`,
    )
    const filled = await countOf(`from entities e where e.external_id = '${ada}' and e.email = '${bob}@example.org'`)
    expect([people, links, filled]).toEqual(people === 1 ? [1, 1, 1] : [2, 2, 0])
  }
}

/** Sends the request for each pair, and kills the process after a part of them. Returns how many had an answer. */
async function killDuring(kith: Kith, send: Send, round: number, path: 'merge' | 'unmerge') {
  let settled = 0
  const sending = pairs(round).map(async ([ada, bob]) => {
    const status = await send('POST', `/v1/people/${ada}/${path}`, { from: bob }).catch(() => 0)
    settled += 1
    return status
  })
  const target = Math.floor(((round - 1) / roundNumbers.length) * pairsPerRound)
  const done = path === 'merge' ? 'is null' : 'is not null'
  const countDone = () =>
    countOf(
      `from merges m join changes c on c.entity_id = m.into_id and c.operation = 'create'
       where c.after->>'external_id' like 'a${round}-%' and m.unmerged_sequence ${done}`,
    )
  // On a busy machine, requests may reach their deadline before the target.
  await expect
    .poll(async () => settled === pairsPerRound || (await countDone()) >= target, { interval: 1, timeout: 60_000 })
    .toBe(true)
  kith.child.kill('SIGKILL')
  await kith.ended
  return (await Promise.all(sending)).filter(status => status === 200).length
}

it('merges and unmerges wholly or not at all when killed, and the same again ends the same, in each round', async () => {
  const environment = { DATABASE_URL: database.url }
  let kith = launch(environment)
  let send = sendTo(await kith.ready, '')
  const token = await tokenFrom(environment)
  const restart = async () => {
    kith = launch(environment)
    send = sendTo(await kith.ready, token)
  }
  send = sendTo(await kith.ready, token)
  await send('POST', '/v1/schema/attributes', { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' })
  let interrupted = 0
  for (const round of roundNumbers) {
    await createPairs(send, round)
    for (const path of ['merge', 'unmerge'] as const) {
      const answered = await killDuring(kith, send, round, path)
      if (answered < pairsPerRound) interrupted += 1
      await checkWhole(round)
      await restart()
      for (const [ada, bob] of pairs(round)) {
        const status = await send('POST', `/v1/people/${ada}/${path}`, { from: bob })
        // A merge that was done is with oneself, and an unmerge that was done is of no merge.
        expect([200, path === 'merge' ? 400 : 404]).toContain(status)
      }
      await checkWhole(round)
      const people = await countOf(`from entities e where e.external_id ~ '^[ab]${round}-'`)
      expect(people).toBe(path === 'merge' ? pairsPerRound : 2 * pairsPerRound)
    }
  }
  console.log(`merges: ${2 * roundNumbers.length} kills, ${interrupted} in the middle`)
  expect(interrupted).toBeGreaterThanOrEqual(roundNumbers.length)
}, 900_000)
