import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, lockPerson, senderTo, terminate, tokenFrom } from '../support/process.ts'
import { createClientLog, expectStored, keepCreating, restartRolling } from '../support/rolling-restart.ts'
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

it('answers fifty requests that are in flight at SIGTERM, and exits with 0', async () => {
  const kith = launch(environment)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  const people = names('p', 50)
  for (const external_id of ['ada', ...people]) await send('POST', '/v1/people', { external_id })
  const lock = await lockPerson(database.url, 'ada')
  const lockedPatch = send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
  await expect.poll(lock.waiting).toBe(1)
  const answers = people.map((name, index) =>
    index % 2 === 0
      ? send('PATCH', `/v1/people/${name}`, { first_name: name })
      : send('POST', '/v1/people/filter', { filter: { external_id: name } }),
  )
  kith.child.kill('SIGTERM')
  await expect.poll(() => kith.output.stdout).toContain('draining')
  await lock.release()
  const statuses = (await Promise.all([lockedPatch, ...answers])).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(await kith.ended).toBe(0)
})

describe.each([1, 2])('SIGTERM under load with %i workers', workers => {
  it('interrupts no request, and stores exactly the acknowledged writes', async () => {
    const kith = launch(environment, ['serve', '--workers', `${workers}`])
    const send = senderTo(await kith.ready, await tokenFrom(environment))
    const clientLog = createClientLog()
    const clients = names('c', 30).map(name => keepCreating(send, name, clientLog))
    await expect.poll(() => clientLog.stored.length, { timeout: 20_000 }).toBeGreaterThan(200)
    expect(await terminate(kith)).toBe(0)
    await Promise.all(clients)
    expect(clientLog.faults).toEqual([])
    await expectStored(database.url, clientLog.stored)
  }, 60_000)
})

describe('a rolling restart of two services', () => {
  it('refuses no request behind an HTTP proxy, and loses none behind a TCP balancer if clients retry after Retry-After', async () => {
    const start = () => launch(environment)
    const stored = await restartRolling({
      launchOld: start,
      launchNew: start,
      makeToken: () => tokenFrom(environment),
    })
    await expectStored(database.url, stored)
  }, 240_000)
})
