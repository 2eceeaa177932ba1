import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { expect, it } from 'vitest'
import { writePair } from '../../../test/support/certificate.ts'
import { createTestDatabase } from '../../../test/support/database.ts'
import { endProcesses, launch, lockPerson, makeFolder, tokenFrom } from '../../../test/support/process.ts'

it('by TLS whoever waits for each answer is refused as often as it asks, and keeps its connection', async () => {
  const database = await createTestDatabase()
  // Within one process the client would never come back before the service has heard that its answer has left.
  const kith = launch({
    DATABASE_URL: database.url,
    ...(await writePair(await makeFolder())),
    KITH_LIMIT_IN_FLIGHT: '6',
  })
  const address = await kith.ready
  const token = await tokenFrom({ DATABASE_URL: database.url })
  const connections: Record<string, Agent> = {}
  const ask = async (by: string, method: string, path: string, body?: object) => {
    connections[by] ??= new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    const headers = { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) }
    const asked = request(`${address}${path}`, { agent: connections[by], method, headers })
    asked.end(body && JSON.stringify(body))
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    return { status: response.statusCode, connection: response.headers.connection }
  }
  await ask('first', 'POST', '/v1/people', { external_id: 'ada' })
  // Shaking hands takes longer than what is asked.
  for (const by of ['a', 'b', 'c']) await ask(by, 'GET', '/v1/people/ada')
  const lock = await lockPerson(database.url, 'ada')
  try {
    const waiting = ['a', 'b', 'c'].map(first_name => ask(first_name, 'PATCH', '/v1/people/ada', { first_name }))
    await expect.poll(lock.waiting).toBe(1)
    await expect.poll(async () => (await ask('first', 'GET', '/v1/people/ada')).status).toBe(503)
    const answers = new Set<string>()
    for (let time = 0; time < 300; time += 1) answers.add(JSON.stringify(await ask('first', 'GET', '/v1/people/ada')))
    expect([...answers]).toEqual([JSON.stringify({ status: 503, connection: 'keep-alive' })])
    await lock.release()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200])
  } finally {
    await lock.release()
    for (const agent of Object.values(connections)) agent.destroy()
    await endProcesses()
    await database.drop()
  }
})
