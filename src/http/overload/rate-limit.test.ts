import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSocket, parseResponse } from '../../../test/support/process.ts'
import { type Reply, type Send, type Service, startService, useOwnService } from '../../../test/support/service.ts'
import { openDatabase, statement } from '../../db/db.ts'
import type { Caller } from '../../route/caller.ts'
import type { Fault } from '../../values/errors.ts'
import { createRateLimiter } from './rate-limit.ts'

const limited = (replies: Reply[]) => replies.filter(({ status }) => status === 429)

/** Sends concurrent requests and counts the seconds that began meanwhile. Each second admits another request. */
async function flood(work: () => Promise<unknown>, count = 40) {
  const startedMs = Date.now()
  const answers = await Promise.allSettled(Array.from({ length: count }, work))
  return { answers, seconds: Math.ceil((Date.now() - startedMs) / 1_000) + 1 }
}

async function floodOf(send: Send, method: string, path: string, body?: unknown) {
  const { answers, seconds } = await flood(() => send(method, path, body))
  return { replies: answers.map(answer => (answer as PromiseFulfilledResult<Reply>).value), seconds }
}

describe('without a configured rate', () => {
  it('refuses no request and sends no rate limit headers', async () => {
    const service = await startService()
    const { send } = await service.organization()
    const { replies } = await floodOf(send, 'GET', '/v1/people/nobody')
    expect(limited(replies)).toEqual([])
    expect(replies[0]!.headers.get('ratelimit') ?? replies[0]!.headers.get('ratelimit-policy')).toBeNull()
    await service.stop()
  })
})

describe('a rate of one a second and a burst of five', () => {
  const service = useOwnService({
    KITH_RATE_READ: '1',
    KITH_RATE_READ_BURST: '5',
    KITH_RATE_WRITE: '1',
    KITH_RATE_WRITE_BURST: '5',
  })

  it('admits the rate and the burst, and refuses the rest with 429 and the rate limit headers', async () => {
    const { send, id } = await service.organization()
    const { replies, seconds } = await floodOf(send, 'POST', '/v1/people', { first_name: 'Ada' })
    const taken = replies.filter(({ status }) => status === 201)
    expect(taken.length).toBeGreaterThanOrEqual(6)
    expect(taken.length).toBeLessThanOrEqual(5 + seconds)
    expect(taken.length + limited(replies).length).toBe(replies.length)
    for (const { body, headers } of limited(replies)) {
      expect(body).toMatchObject({ error: 'rate_limit_exceeded', errorstack: null, details: [] })
      expect(headers.get('retry-after')).toBe('1')
      expect(headers.get('ratelimit')).toBe('"write";r=0;t=1')
    }
    for (const { headers } of replies) expect(headers.get('ratelimit-policy')).toBe('"write";q=1;w=1;kith-burst=5')
    const [{ count } = { count: -1 }] = await service.sql<{ count: number }>(
      'select count(*)::int from entities where organization_id = $1',
      [id],
    )
    expect(count).toBe(taken.length)
  })

  it('counts per subject, for all of its tokens, apart from other subjects', async () => {
    const { key, send } = await service.organization()
    const otherToken = service.sender(await service.tokenFor(key))
    const otherSubject = service.sender(await service.tokenFor(key, 'people:read', 'somebody else'))
    const otherOrganization = (await service.organization()).send
    expect(limited((await floodOf(send, 'GET', '/v1/people/nobody')).replies).length).toBeGreaterThan(0)
    expect(limited((await floodOf(otherToken, 'GET', '/v1/people/nobody')).replies).length).toBeGreaterThan(30)
    for (const neighbour of [otherSubject, otherOrganization])
      expect((await neighbour('GET', '/v1/people/nobody')).status).toBe(404)
  })

  it('counts reads and writes separately, and a POST that reads as a read', async () => {
    const { send } = await service.organization()
    const { replies } = await floodOf(send, 'POST', '/v1/people/list', {})
    expect(limited(replies).length).toBeGreaterThan(0)
    expect(replies[0]!.headers.get('ratelimit-policy')).toContain('"read"')
    expect((await send('POST', '/v1/people', {})).status).toBe(201)
  })

  it('counts unknown paths and methods, and nothing outside /v1', async () => {
    const { send } = await service.organization()
    for (const [method, path] of [
      ['GET', '/v1/nothing'],
      ['DELETE', '/v1/people/batch/x'],
    ] as const)
      expect(limited((await floodOf(send, method, path)).replies).length).toBeGreaterThan(0)
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/.well-known/jwks.json']) {
      const { answers } = await flood(() => fetch(`${service.address}${path}`))
      for (const answer of answers) {
        const { status, headers } = (answer as PromiseFulfilledResult<Response>).value
        expect([status, headers.get('ratelimit')]).toEqual([200, null])
      }
    }
  })

  it('is checked before the body is read, and after the token and its scope', async () => {
    const { key } = await service.organization()
    const token = await service.tokenFor(key, 'people:write')
    await floodOf(service.sender(token), 'POST', '/v1/people', {})
    const head = (bearer: string) =>
      `POST /v1/people HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${bearer}\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n{`
    const statusOf = async (bearer: string) => {
      const socket = await openSocket(service.address)
      const answer = new Promise<string>(resolve => socket.once('data', data => resolve(String(data))))
      socket.write(head(bearer))
      const { status } = parseResponse(await answer)
      socket.destroy()
      return status
    }
    const reader = await service.tokenFor(key, 'people:read')
    // If the service waited for the body, it would return 504 after ten seconds. Each new second admits one request.
    await expect.poll(() => Promise.race([statusOf(token), statusOf(token)])).toBe(429)
    expect([await statusOf('x.y.z'), await statusOf(reader)]).toEqual([401, 403])
  })
})

const caller: Caller = {
  organization: { id: 1, key: 'a' },
  subject: 'x'.repeat(8_000),
  scopes: new Set(),
  identity: 'x',
  credential: { client_id: undefined, session_id: undefined, token_id: undefined, budget: 'x', expiresAtMs: 0 },
}
const rates = (store: 'memory' | 'postgresql') => ({ read: { perSecond: 1, burst: 5 }, write: undefined, store })
const countTaken = ({ answers }: Awaited<ReturnType<typeof flood>>) =>
  answers.filter(({ status }) => status === 'fulfilled').length

describe('counted in PostgreSQL', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService()
  })
  afterAll(async () => {
    await service.stop()
  })
  const make = (db = service.db) => {
    const reports: string[] = []
    const limiter = createRateLimiter({ rates: rates('postgresql'), db, report: message => reports.push(message) })!
    return { limiter, reports }
  }

  /**
   * Floods two limiters. A statement of the store may take 250 ms. On a busy machine it may take longer, and the
   * limiters then count locally and report it. So the flood is repeated until the store has answered all of it.
   */
  async function floodTwo(): ReturnType<typeof flood> {
    // With open connections, the time limit covers only the store itself.
    await Promise.all(Array.from({ length: 8 }, () => service.db.query(statement('', 'select'), [])))
    for (;;) {
      await service.sql('delete from rate_limits')
      const [first, second] = [make(), make()]
      let turn = 0
      const flooded = await flood(() => (turn++ % 2 ? first : second).limiter.spend(caller, 'read'))
      if (first.reports.length + second.reports.length === 0) return flooded
    }
  }

  it('shares one budget between all processes', async () => {
    const flooded = await floodTwo()
    expect(countTaken(flooded)).toBeGreaterThanOrEqual(6)
    expect(countTaken(flooded)).toBeLessThanOrEqual(5 + flooded.seconds)
    for (const answer of flooded.answers)
      if (answer.status === 'rejected') expect((answer.reason as Fault).refusal.status).toBe(429)
    const stored = await service.sql<{ key: string }>('select key from rate_limits')
    expect(stored.map(({ key }) => key.replace(/:[\w-]{43}$/, '')).sort()).toEqual(['read', 'read-burst'])
  })

  it('counts in each process while the store is unavailable, and logs the start and the end once', async () => {
    const { limiter, reports } = make()
    await service.sql('alter table rate_limits rename to away')
    const flooded = await flood(() => limiter.spend({ ...caller }, 'read'))
    expect(countTaken(flooded)).toBeGreaterThanOrEqual(6)
    expect(countTaken(flooded)).toBeLessThanOrEqual(5 + flooded.seconds)
    expect(reports).toEqual([expect.stringContaining('unavailable')])
    await service.sql('alter table away rename to rate_limits')
    await expect
      .poll(
        async () => {
          await limiter.spend({ ...caller, subject: String(Math.random()) }, 'read')
          return reports
        },
        { timeout: 10_000 },
      )
      .toEqual([expect.stringContaining('unavailable'), expect.stringContaining('again')])
  })

  it('refuses nobody if the database is unreachable', async () => {
    const db = openDatabase('postgresql://nobody@127.0.0.1:1/nothing', { connections: 1, statementTimeoutMs: 1_000 })
    const { limiter, reports } = make(db)
    expect(await limiter.spend(caller, 'read')).toMatchObject({ RateLimit: '"read";r=0;t=1' })
    expect(reports).toHaveLength(1)
    await db.close()
  })
})

it('does not limit writes if only reads have a rate', async () => {
  const limiter = createRateLimiter({ rates: rates('memory'), db: undefined as never, report: () => {} })!
  expect(countTaken(await flood(() => limiter.spend(caller, 'write')))).toBe(40)
  await expect(flood(() => limiter.spend(caller, 'read')).then(countTaken)).resolves.toBeLessThan(40)
})
