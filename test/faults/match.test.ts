import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { linesFrom, ndjsonHeaders } from '../support/lines.ts'
import { endProcesses, type Kith, launch, tokenFrom } from '../support/process.ts'
import { isPartial, rounds } from './rounds.ts'

const roundNumbers = rounds(20)
/** The lines of a round are several sets of an import. */
const peoplePerRound = isPartial ? 800 : 2_000

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

/** Three lines of each person: from a shop, from a newsletter under another name, and by phone. */
function linesOf(round: number) {
  const name = (n: number) => `${round}-${n}`
  const mobile_number = (n: number) => `+39333${String(1_000_000 + round * 10_000 + n)}`
  const people = Array.from({ length: peoplePerRound }, (_, n) => n)
  return [
    ...people.map(n => ({
      external_id: `shop-${name(n)}`,
      email: `P${name(n)}@example.com`,
      mobile_number: mobile_number(n),
    })),
    ...people.map(n => ({ external_id: `news-${name(n)}`, email: `p${name(n)}@Example.com`, first_name: 'News' })),
    ...people.map(n => ({ mobile_number: mobile_number(n), last_name: 'Phone' })),
  ]
}

const countOf = async (sql: string) => Number((await client.query(`select count(*) as count ${sql}`)).rows[0].count)

/** How many of a round's writes are stored: creations and changes. */
const countStored = (round: number) =>
  countOf(
    `from changes c join entities e on (e.organization_id, e.id) = (c.organization_id, c.entity_id)
     where e.email_key like 'p${round}-%' and c.subject = 'entity'`,
  )

/** Imports the lines of a round. Returns the lines of the response. */
async function importRound(kith: Kith, token: string, round: number): Promise<string[]> {
  const response = await fetch(`${await kith.ready}/v1/people/import?match=external_id,email,mobile`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, ...ndjsonHeaders },
    body: linesFrom(linesOf(round)),
  })
  return (await response.text()).trim().split('\n')
}

/** Imports the lines of a round, and kills the process when about `fraction` of them are stored. */
async function killDuring(kith: Kith, token: string, round: number, fraction: number) {
  const importing = importRound(kith, token, round).catch(() => {})
  const target = Math.floor(fraction * 3 * peoplePerRound)
  await expect.poll(() => countStored(round), { interval: 20, timeout: 60_000 }).toBeGreaterThanOrEqual(target)
  kith.child.kill('SIGKILL')
  await kith.ended
  await importing
}

it('stores whole sets of an import with match when killed, and the same import again ends the same, in each round', async () => {
  const environment = { DATABASE_URL: database.url }
  let kith = launch(environment)
  await kith.ready
  const token = await tokenFrom(environment)
  let interrupted = 0
  for (const round of roundNumbers) {
    await killDuring(kith, token, round, (round - 1) / roundNumbers.length)
    // The version, the log and the aliases of each stored person agree.
    const own = `e.email_key like 'p${round}-%'`
    expect(
      await countOf(`from entities e where ${own} and e.version <> (
      select count(*) from changes c where (c.organization_id, c.entity_id) = (e.organization_id, e.id)
        and c.subject = 'entity')`),
    ).toBe(0)
    expect(
      await countOf(
        `from aliases a join entities e on (e.organization_id, e.id) = (a.organization_id, a.person_id) where ${own} and e.first_name is null`,
      ),
    ).toBe(0)
    const stored = await countStored(round)
    if (stored < 3 * peoplePerRound) interrupted += 1

    kith = launch(environment)
    const counts = JSON.parse((await importRound(kith, token, round)).at(-1)!)
    expect(counts).toMatchObject({ received: 3 * peoplePerRound, failed: 0 })
    expect(await countOf(`from entities e where ${own}`)).toBe(peoplePerRound)
    expect(
      await countOf(`from entities e where ${own} and e.external_id like 'shop-%' and e.first_name = 'News'
      and e.last_name = 'Phone' and e.mobile_key is not null`),
    ).toBe(peoplePerRound)
    expect(
      await countOf(`from aliases a join entities e on (e.organization_id, e.id) = (a.organization_id, a.person_id)
      where ${own} and a.external_id = 'news-' || substr(e.external_id, 6)`),
    ).toBe(peoplePerRound)
  }
  expect(interrupted).toBeGreaterThanOrEqual(roundNumbers.length / 2)
}, 600_000)
