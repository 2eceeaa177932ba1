import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { expect, it } from 'vitest'
import { writePair } from '../../../test/support/certificate.ts'
import { createTestDatabase } from '../../../test/support/database.ts'
import { endProcesses, launch, lockPerson, makeFolder, tokenFrom } from '../../../test/support/process.ts'

it('refuses each request of a TLS connection that waits for its responses, and keeps the connection open', async () => {
  const database = await createTestDatabase()
  // In the same process, a client never sends its next request before the service knows that the response was sent.
  const kith = launch({
    DATABASE_URL: database.url,
    ...(await writePair(await makeFolder())),
    KITH_LIMIT_IN_FLIGHT: '6',
  })
  const address = await kith.ready
  const token = await tokenFrom({ DATABASE_URL: database.url })
  const connections: Record<string, Agent> = {}
  const send = async (client: string, method: string, path: string, body?: object) => {
    connections[client] ??= new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    const headers = { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) }
    const sent = request(`${address}${path}`, { agent: connections[client], method, headers })
    sent.end(body && JSON.stringify(body))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    return { status: response.statusCode, connection: response.headers.connection }
  }
  await send('first', 'POST', '/v1/people', { external_id: 'ada' })
  // A TLS handshake takes longer than the requests below.
  for (const client of ['a', 'b', 'c']) await send(client, 'GET', '/v1/people/ada')
  const lock = await lockPerson(database.url, 'ada')
  try {
    const waiting = ['a', 'b', 'c'].map(first_name => send(first_name, 'PATCH', '/v1/people/ada', { first_name }))
    await expect.poll(lock.waiting).toBe(1)
    await expect.poll(async () => (await send('first', 'GET', '/v1/people/ada')).status).toBe(503)
    const answers = new Set<string>()
    for (let time = 0; time < 300; time += 1) answers.add(JSON.stringify(await send('first', 'GET', '/v1/people/ada')))
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
