import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { ndjsonHeaders } from '../support/lines.ts'
import { endProcesses, launch, senderTo, tokenFrom } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeEach(async () => {
  database = await createTestDatabase()
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

it('ends a running import at shutdown with an error line that reports the stored lines, and exits with 0', async () => {
  const environment = { DATABASE_URL: database.url }
  const kith = launch(environment)
  const address = await kith.ready
  const token = await tokenFrom(environment)
  const headers = { Authorization: `Bearer ${token}`, ...ndjsonHeaders }
  const sent = request(`${address}/v1/people/import`, { method: 'POST', headers })
  sent.on('error', () => {})
  sent.write('{"external_id":"ada"}\n{"external_id":"bo"}\n')
  const [response] = await once(sent, 'response')
  const send = senderTo(address, token)
  await expect.poll(async () => (await send('GET', '/v1/people/bo')).status).toBe(200)
  kith.child.kill('SIGTERM')
  const last = JSON.parse((await text(response)).trim().split('\n').at(-1)!)
  expect(last).toMatchObject({
    error: 'operation_failed',
    message: 'The service is shutting down.',
    progress: { received: 2, created: 2 },
  })
  expect(await kith.ended).toBe(0)
})
