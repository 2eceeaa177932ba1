import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, senderTo, tokenFrom } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>

beforeEach(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url }
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

const total = 1_000

it('goes on with a job after it was killed in the middle, loses no change and makes none twice', async () => {
  const first = launch(environment)
  const token = await tokenFrom(environment)
  const send = senderTo(await first.ready, token)
  const people = Array.from({ length: total }, (_, n) => ({ external_id: `p${n}`, last_name: 'Rossi' }))
  const operations = people.map(body => ({ op: 'create', body }))
  expect((await send('POST', '/v1/people/batch', { operations })).status).toBe(200)
  const body = { filter: { last_name: 'Rossi' }, change: { op: 'patch', body: { last_name: 'Bianchi' } } }
  const begun = (await send('POST', '/v1/people/bulk', body)).body.data
  expect(begun).toMatchObject({ state: 'running', total })
  const readDone = async () =>
    (await query(database.url, `select done from jobs where id = '${begun.id}'`))[0]!.done as number
  await expect.poll(readDone, { timeout: 20_000, interval: 5 }).toBeGreaterThan(0)
  first.child.kill('SIGKILL')
  await first.ended
  const reached = await readDone()
  expect(reached).toBeLessThan(total)
  // At the crash, the job's count of done entities equals the changes in the log.
  const countLogged = async () =>
    (await query(database.url, `select count(*)::integer as n from changes where request_id = '${begun.id}'`))[0]!.n
  expect(await countLogged()).toBe(reached)
  const second = launch(environment)
  const sendAgain = senderTo(await second.ready, token)
  const readJob = async () => (await sendAgain('GET', `/v1/jobs/${begun.id}`)).body.data
  await expect.poll(async () => (await readJob()).state, { timeout: 60_000 }).toBe('done')
  expect(await readJob()).toMatchObject({ done: total, unchanged: 0, refused: 0, remaining: 0 })
  const [log] = await query(
    database.url,
    `select count(*)::integer as n, count(distinct entity_id)::integer as people from changes where request_id = '${begun.id}'`,
  )
  expect(log).toEqual({ n: total, people: total })
  const left = await sendAgain('POST', '/v1/people/filter', { filter: { last_name: 'Rossi' }, count: true })
  expect(left.body.data.count).toBe(0)
}, 240_000)
