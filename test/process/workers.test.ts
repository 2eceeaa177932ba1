import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, isAlive, launch, senderTo, terminate, tokenFrom, workersOf } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { names } from '../support/writes.ts'

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

/** Sends 120 concurrent writes to two people, each with a key of its own, so that a lost write shows. */
async function writeOverlapping(senders: Send[]): Promise<void> {
  const writes = names('k', 120).map((key, index) => {
    const [own, other] = index % 2 === 0 ? ['a', 'b'] : ['b', 'a']
    const body = { attribute_values: { [key]: index, friend: other, ...(index % 3 === 0 && { met: `m${index % 7}` }) } }
    return senders[index % senders.length]!('PATCH', `/v1/people/${own}`, body)
  })
  const statuses = (await Promise.all(writes)).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
}

async function expectNothingLost(send: Send) {
  const [a, b] = [await send('GET', '/v1/people/a'), await send('GET', '/v1/people/b')]
  const keys = [a, b].flatMap(({ body }) => Object.keys(body.data.attribute_values)).filter(key => key.startsWith('k'))
  expect(keys).toHaveLength(120)
  const changes = await query(database.url, 'select sequence::integer from changes order by sequence')
  expect(changes.map(({ sequence }) => sequence)).toEqual(changes.map((_, index) => index + 1))
}

async function declareFriends(send: Send) {
  for (const external_id of ['a', 'b']) await send('POST', '/v1/people', { external_id })
  for (const key of ['friend', 'met'])
    await send('POST', '/v1/schema/attributes', { key, owner: 'people', type: 'person' })
}

it('serves one port with several workers, loses no write, and ends all of them', async () => {
  const kith = launch(environment, ['serve', '--workers', '2'])
  const address = await kith.ready
  const workers = workersOf(kith)
  expect(workers).toHaveLength(2)
  const send = senderTo(address, await tokenFrom(environment))
  await declareFriends(send)
  await writeOverlapping([send])
  await expectNothingLost(send)
  expect(await terminate(kith)).toBe(0)
  expect(workers.filter(isAlive)).toEqual([])
})

it('reports all workers at /metrics, whichever worker answers', async () => {
  const kith = launch(environment, ['serve', '--workers', '2'])
  const address = await kith.ready
  const token = await tokenFrom(environment)
  // Connections go to the workers in turn, so each worker answers some.
  const authorization = { Authorization: `Bearer ${token}`, Connection: 'close' }
  for (let index = 0; index < 12; index += 1)
    await (await fetch(`${address}/v1/people/nobody`, { headers: authorization })).text()
  for (let index = 0; index < 4; index += 1) {
    const { value } = await readMetrics(address)
    expect(value('kith_http_requests_total{method="GET",route="/v1/people/{external_id}",status="404"}')).toBe(12)
    expect(value('kith_cache_requests_total{cache="token",outcome="miss"}')).toBe(2)
    expect(value('kith_db_up')).toBe(1)
  }
  expect(await terminate(kith)).toBe(0)
})

it('replaces a worker that dies, and keeps serving', async () => {
  const kith = launch(environment, ['serve', '--workers', '2'])
  const address = await kith.ready
  const send = senderTo(address, await tokenFrom(environment))
  const [first] = workersOf(kith)
  process.kill(first!, 'SIGKILL')
  await expect.poll(() => workersOf(kith).filter(pid => pid !== first).length, { timeout: 15_000 }).toBe(2)
  await expect.poll(() => send('GET', '/v1/people/nobody').then(({ status }) => status)).toBe(404)
  expect(kith.output.stdout).toContain('a worker ended and will be replaced')
  expect(await terminate(kith)).toBe(0)
})

it('reports once why workers cannot start, and exits with 1', async () => {
  const taken = launch(environment)
  const port = new URL(await taken.ready).port
  const kith = launch({ ...environment, PORT: port }, ['serve', '--workers', '2'])
  expect(await kith.ended).toBe(1)
  expect(kith.output.stderr.match(/PORT/g)).toHaveLength(2)
  expect(kith.output.stderr).toContain(`PORT ${port} on 127.0.0.1 is taken by another program`)
})

it('loses no write with two servers on one database, and each knows at once what the other declares', async () => {
  const servers = [launch(environment), launch(environment)]
  const token = await tokenFrom(environment)
  const senders = await Promise.all(servers.map(async ({ ready }) => senderTo(await ready, token)))
  const [one, other] = senders as [Send, Send]
  await declareFriends(one)
  await writeOverlapping(senders)
  await expectNothingLost(other)
  for (const size of ['number', 'boolean']) {
    await one('POST', '/v1/schema/attributes', { key: `size_${size}`, owner: 'people', type: size })
    const reply = await other('PATCH', '/v1/people/a', { attribute_values: { [`size_${size}`]: 'text' } })
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, `/attribute_values/size_${size}`])
  }
})
