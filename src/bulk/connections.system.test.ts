import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { exportAll, importLines, linesFrom, ndjsonHeaders } from '../../test/support/lines.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { startService, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useOwnService({ KITH_LIMIT_REQUEST_MS: '2000' })
const people = '/v1/people/import'

const organization = useShop(service)

const none = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
const named = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ external_id: `p${n}`, first_name: `First ${n}` }))

/** A request without its body, which the caller sends. */
function begin(
  path = people,
  headers: Record<string, string> = {},
): { sent: ClientRequest; answer: Promise<IncomingMessage> } {
  const authorization = { Authorization: `Bearer ${organization.token}` }
  const sent = request(`${service.address}${path}`, {
    method: 'POST',
    headers: { ...authorization, ...ndjsonHeaders, ...headers },
  })
  const answer = once(sent, 'response').then(([response]) => response as IncomingMessage)
  answer.catch(() => {})
  return { sent, answer }
}

describe('the connection of an import', () => {
  it('is served beyond the time limit of a request as long as lines arrive', async () => {
    const { sent, answer } = begin()
    const waited = new Promise<void>(resolve => {
      let sentLines = 0
      const timer = setInterval(() => {
        sent.write(`{"external_id":"slow${sentLines}"}\n`)
        sentLines += 1
        if (sentLines < 8) return
        clearInterval(timer)
        sent.end()
        resolve()
      }, 400)
    })
    const response = await answer
    await waited
    const lines = (await text(response))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(lines.at(-1)).toMatchObject({ ...none, received: 8, created: 8 })
    expect(lines.slice(0, -1).every(line => 'progress' in line)).toBe(true)
    expect(lines.length).toBeGreaterThan(1)
  })

  it('counts the stored lines of a set whose rest ran out of time', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'locked' })
    const holder = new pg.Client({ connectionString: service.databaseUrl })
    await holder.connect()
    try {
      await holder.query("begin; select from entities where external_id = 'locked' for update")
      // The last set has about 900 lines, which take several transactions. Its last line waits for the lock until the
      // time limit.
      const lines = [...named(1_700), { external_id: 'locked', first_name: 'x' }]
      const reply = await organization.send('POST', people, linesFrom(lines), ndjsonHeaders)
      const last = reply.body.data.at(-1)
      const { count } = await organization.client.people.count({ external_id: { $starts_with: 'p' } })
      expect(count).toBeGreaterThan(0)
      expect(last).toMatchObject({ error: 'operation_failed', progress: { ...none, received: count, created: count } })
    } finally {
      await holder.end()
    }
  })

  it('gets 503 as the third of its organization, until another one ends or breaks', async () => {
    const open = async (count: number) => {
      const { sent, answer } = begin()
      sent.on('error', () => {})
      sent.write(linesFrom(named(count)))
      await expect.poll(async () => (await exportAll(organization, '/v1/people/export')).length).toBe(count)
      return { sent, answer }
    }
    const [first, second] = [await open(1), await open(2)]
    const third = () => organization.send('POST', people, linesFrom(named(3)), ndjsonHeaders)
    const refused = await third()
    expect({ status: refused.status, after: refused.headers.get('Retry-After') }).toEqual({ status: 503, after: '10' })
    expect(refused.body).toMatchObject({ error: 'operation_failed' })
    expect(await exportAll(organization, '/v1/people/export')).toHaveLength(2)
    const other = await service.organization()
    expect((await importLines(other, people, linesFrom(named(3)))).counts).toEqual({ ...none, received: 3, created: 3 })
    second.sent.end()
    await text(await second.answer)
    expect((await third()).status).toBe(200)
    first.sent.destroy()
    const another = await open(3)
    await expect.poll(async () => (await third()).status).toBe(200)
    another.sent.end()
    await text(await another.answer)
  })

  it('stores whole sets and no partial line if it breaks', async () => {
    const { sent } = begin(people, { 'X-Request-Id': 'broken-off' })
    sent.on('error', () => {})
    sent.write(linesFrom(named(10)))
    await expect.poll(async () => (await exportAll(organization, '/v1/people/export')).length).toBe(10)
    sent.write('{"external_id":"half"}')
    await new Promise(resolve => sent.write('', resolve))
    sent.destroy()
    const logLines = () => service.logs.filter(line => line.includes('broken-off'))
    await expect.poll(() => logLines().some(line => line.includes('"aborted":true'))).toBe(true)
    const left = await exportAll(organization, '/v1/people/export')
    expect(left).toHaveLength(10)
    expect((await importLines(organization, people, linesFrom(named(11)))).counts).toEqual({
      ...none,
      received: 11,
      created: 1,
      unchanged: 10,
    })
    // A disconnect of the client is not logged as an error.
    expect(logLines().filter(line => line.includes('"level":50'))).toEqual([])
  })

  it('serves the next request after an import that ended before its last line', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = async (path: string, options: RequestOptions, body?: string) => {
      const sent = request(`${service.address}${path}`, { ...options, agent })
      sent.end(body)
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      return { status: response.statusCode, text: await text(response), isReused: sent.reusedSocket }
    }
    const headers = { Authorization: `Bearer ${organization.token}`, ...ndjsonHeaders }
    const { text: lines } = await ask(people, { method: 'POST', headers }, 'x\n'.repeat(300_000))
    expect(lines).toContain('1000 lines in a row were refused')
    expect(await ask('/healthz', {})).toMatchObject({ status: 200, isReused: true })
    agent.destroy()
  })

  it('gets a fault line with the counts if it falls silent, and the earlier lines stay stored', async () => {
    const { sent, answer } = begin()
    sent.on('error', () => {})
    sent.write(linesFrom(named(3)))
    const lines = (await text(await answer)).trim().split('\n')
    const last = JSON.parse(lines.at(-1)!)
    expect(last).toMatchObject({
      error: 'operation_failed',
      details: [],
      progress: { ...none, received: 3, created: 3 },
    })
    expect(last.request_id).toBe((await answer).headers['x-request-id'])
    sent.destroy()
    expect(await exportAll(organization, '/v1/people/export')).toHaveLength(3)
  })
})

it('resets the connection of an export to HTTP/1.0 that is cut off, so that it does not look whole', async () => {
  const long = 'x'.repeat(60_000)
  const lines = Array.from({ length: 150 }, (_, n) => ({ external_id: `l${n}`, attribute_values: { long } }))
  await importLines(organization, people, linesFrom(lines))
  const aborted = async () => (await readMetrics(service.address)).value('kith_http_aborted_total')
  const before = await aborted()
  const { hostname: host, port } = new URL(service.address)
  const socket = connect({ host, port: Number(port) })
  socket.pause()
  socket.write(
    `POST /v1/people/export HTTP/1.0\r\nHost: kith\r\nAuthorization: Bearer ${organization.token}\r\nContent-Length: 0\r\n\r\n`,
  )
  // The client does not read, so the export ends after the limit.
  await expect.poll(aborted).toBeGreaterThan(before)
  const failed = once(socket, 'error')
  socket.resume()
  expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
})

it('needs one connection for two imports and all other writes of an organization whose head is locked', async () => {
  const service = await startService()
  const [organization, other] = [await service.organization(), await service.organization()]
  const existing = [...named(30), { external_id: 'q1' }, { external_id: 'q2' }]
  for (const each of [organization, other]) await importLines(each, people, linesFrom(existing))
  const used = () => service.db.load!().used
  const locker = await service.db.connect()
  const writes: Promise<unknown>[] = []
  try {
    await locker.query('begin')
    await locker.query('select from change_heads where organization_id = $1 for update', [organization.id])
    const lines = (name: string) =>
      linesFrom(named(3_000).map(({ external_id }) => ({ external_id: name + external_id })))
    for (const name of ['a', 'b']) writes.push(importLines(organization, people, lines(name)))
    await expect.poll(used).toBe(1)
    for (const { external_id } of named(30))
      writes.push(organization.send('PATCH', `/v1/people/${external_id}`, { first_name: 'Ada' }))
    for (const external_id of ['q1', 'q2']) writes.push(organization.send('DELETE', `/v1/people/${external_id}`))
    await expect
      .poll(async () => (await readMetrics(service.address)).value('kith_queue_waiting{work="write"}'))
      .toBeGreaterThan(30)
    expect((await other.send('GET', '/v1/people/p1')).status).toBe(200)
    expect((await other.send('PATCH', '/v1/people/p1', { first_name: 'Ada' })).status).toBe(200)
    expect((await organization.send('GET', '/v1/people/p1')).status).toBe(200)
    expect(used()).toBe(1)
  } finally {
    await locker.end()
    await Promise.all(writes)
    await service.stop()
  }
})
