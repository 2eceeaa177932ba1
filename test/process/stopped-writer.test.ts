import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, senderTo, tokenFrom } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  await endProcesses()
  await database.drop()
})

it('a process that stops inside a write holds up the writes of its organization until the database ends it', async () => {
  const environment = { DATABASE_URL: database.url, LOG_LEVEL: 'error' }
  const [stopped, other] = [launch(environment), launch(environment)]
  const token = await tokenFrom(environment)
  const sendTo = async (kith: typeof stopped) => senderTo(await kith.ready, token)
  const [send, sendToOther] = [await sendTo(stopped), await sendTo(other)]
  expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)

  const locker = new pg.Client(database.url)
  await locker.connect()
  const waiting = async () => {
    // Within a transaction, PostgreSQL keeps showing the connections of the first query.
    await locker.query('select pg_stat_clear_snapshot()')
    const { rows } = await locker.query(
      `select count(*)::integer as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0].count as number
  }
  await locker.query('begin')
  await locker.query('select from change_heads for update')
  const lost = send('PATCH', '/v1/people/ada', { first_name: 'Lost' })
  await expect.poll(waiting).toBe(1)
  // The process is stopped while it waits for the head. Then it holds the head, and does not go on.
  stopped.child.kill('SIGSTOP')
  await locker.query('commit')
  await expect.poll(waiting).toBe(0)
  const replies = await Promise.all(
    [1, 2, 3].map(n => sendToOther('PATCH', '/v1/people/ada', { attribute_values: { [`n${n}`]: n } })),
  )
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
  stopped.child.kill('SIGCONT')
  const { status, body } = await lost
  // The stopped process sends COMMIT before it learns that its connection has ended.
  expect([status, body.outcome]).toEqual([503, 'unknown'])
  const { data } = (await sendToOther('GET', '/v1/people/ada')).body
  expect([data.first_name, data.version]).toEqual([null, 4])
  await locker.end()
})
