import { afterEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, senderTo, tokenFrom } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'

afterEach(endProcesses)

it('delivers every change at least once and in order per person, while its processes are killed', {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase()
  const receiver = await startReceiver()
  receiver.answer = response => setTimeout(() => response.writeHead(204).end(), 2)
  const environment = { DATABASE_URL: database.url, KITH_WEBHOOK_ALLOW: '127.0.0.0/8', LOG_LEVEL: 'silent' }
  const start = async () => {
    const kith = launch({ ...environment, LOG_LEVEL: 'info' })
    return { kith, send: senderTo(await kith.ready, await tokenFrom(environment)) }
  }
  const kept = await start()
  let killed = await start()
  const created = await kept.send('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'] })
  expect(created.status).toBe(201)
  const names = ['ada', 'bob', 'eve', 'dan']
  for (const external_id of names) await kept.send('POST', '/v1/people', { external_id })
  const rounds = 3
  const patchesPerRound = 40
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < patchesPerRound; n += 1) {
      const patches = names.map(name => kept.send('PATCH', `/v1/people/${name}`, { first_name: `v${round}-${n}` }))
      for (const { status } of await Promise.all(patches)) expect(status).toBe(200)
      if (n === patchesPerRound / 2) killed.kith.child.kill('SIGKILL')
    }
    killed = await start()
  }
  const total = names.length * (1 + rounds * patchesPerRound)
  const distinct = () => new Set(receiver.received.map(({ id }) => id)).size
  await expect.poll(distinct, { timeout: 60_000, interval: 200 }).toBe(total)
  const byPerson = Map.groupBy(receiver.received, ({ event }) => event.data.external_id as string)
  for (const received of byPerson.values()) {
    const versions = received.map(({ event }) => event.data.version as number)
    const first = versions.filter((version, index) => versions.indexOf(version) === index)
    expect(first).toEqual(Array.from({ length: 1 + rounds * patchesPerRound }, (_, n) => n + 1))
  }
  console.log(`webhooks: ${total} changes in ${receiver.received.length} requests, ${rounds} processes killed`)
  await endProcesses()
  await receiver.close()
  await database.drop()
})
