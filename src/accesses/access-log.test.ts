import { beforeAll, describe, expect, it, vi } from 'vitest'
import { allScopes, useOwnService } from '../../test/support/service.ts'
import { createShop, type Shop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import { AccessLog } from './access-log.ts'
import { accessFollower } from './follower.ts'

// A strict log stores an access before the response arrives.
const service = useOwnService({ KITH_ACCESS_LOG: 'strict' })

const readLog = async ({ ok }: Shop, query = '') => (await ok('GET', `/v1/access-log${query}`)).items
const work = (organization: Shop, options: { retentionDays: number; nowMs?: () => number }) =>
  accessFollower({ ...options, pausePerWork: 0 }).work({
    ...contextOf(service.db, organization.id),
    ...{ id: 1, after: 0, head: 0, signal: new AbortController().signal, isHeld: () => true },
    hold: async () => {},
    advance: async () => {},
  })

describe('the access log', () => {
  it('has who read a person, by which endpoint, from where, and under which request id', async () => {
    const shop = await createShop(service)
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await shop.ok('GET', '/v1/people/ada', undefined, { 'X-Request-Id': 'one' })
    expect(await readLog(shop)).toMatchObject([
      {
        ...{ kind: 'access', event: null, target: null, subject: 'tests', role: null, method: 'GET', status: 200 },
        ...{ route: '/v1/people/{external_id}', owner: 'people', ids: [id], count: 1 },
        ...{ request_id: 'one', ip: '127.0.0.1' },
      },
      { method: 'POST', route: '/v1/people', status: 201, ids: [id] },
    ])
  })

  it('has an entry for each owner that a page shows, included records too', async () => {
    const shop = await createShop(service, 'orders', 'buyer')
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    const { record_id } = await shop.ok('POST', '/v1/stacks/orders', { attribute_values: { buyer: 'ada' } })
    await shop.ok('POST', '/v1/stacks/orders/list', { include: ['buyer'] })
    const entries = await readLog(shop, '?limit=2')
    expect(entries.map(({ owner, ids }: { owner: string; ids: string[] }) => [owner, ids]).sort()).toEqual([
      ['orders', [record_id]],
      ['people', [id]],
    ])
  })

  it('lists the first 500 of an export, and counts all', async () => {
    const shop = await createShop(service)
    const operations = Array.from({ length: 600 }, (_, n) => ({ op: 'create', external_id: `p${n}`, body: {} }))
    await shop.ok('POST', '/v1/people/batch', { operations })
    await shop.send('POST', '/v1/people/export', {})
    const exported = (await readLog(shop, '?kind=access')).filter(({ route }: { route: string }) =>
      /export/.test(route),
    )
    const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0)
    expect(sum(exported.map(({ count }: { count: number }) => count))).toBe(600)
    expect(sum(exported.map(({ ids }: { ids: string[] }) => ids.length))).toBe(500)
    expect(await readLog(shop, '?kind=security')).toMatchObject([{ event: 'export', subject: 'tests', status: 200 }])
  })

  it('has an access to what a kept response shows again', async () => {
    const shop = await createShop(service)
    const create = () => shop.ok('POST', '/v1/people', { external_id: 'ada' }, { 'Idempotency-Key': 'k' })
    const { id } = await create()
    await create()
    expect(await readLog(shop)).toMatchObject([{ ids: [id], status: 201 }, { ids: [id] }])
  })

  it('lists everyone whose address an event changes, and counts addresses of nobody', async () => {
    const shop = await createShop(service)
    const ids: string[] = []
    for (const external_id of ['ada', 'bob'])
      ids.push((await shop.ok('POST', '/v1/people', { external_id, email: 'both@example.com' })).id)
    const event = (type: string, address: string) => ({ channel: 'email', type, address })
    const events = [event('unsubscribe', 'both@example.com'), event('hard_bounce', 'nobody@example.com')]
    await shop.ok('POST', '/v1/deliverability', { events })
    const [entry] = await readLog(shop)
    expect(entry).toMatchObject({ route: '/v1/deliverability', ids: expect.arrayContaining(ids), count: 3 })
    await shop.ok('POST', '/v1/deliverability', { events: [event('hard_bounce', 'both@example.com')] })
    await shop.ok('DELETE', '/v1/deliverability/email/both@example.com')
    expect((await readLog(shop))[0]).toMatchObject({ method: 'DELETE', ids: expect.arrayContaining(ids), count: 2 })
  })

  it('goes on with a cursor, and has entries by subject and time', async () => {
    const shop = await createShop(service)
    await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    const other = service.sender(await service.tokenFor(shop.key, allScopes, 'other'))
    for (let n = 0; n < 3; n += 1) await other('GET', '/v1/people/ada')
    const first = await shop.ok('GET', '/v1/access-log?limit=3')
    const rest = await shop.ok('GET', `/v1/access-log?limit=3&cursor=${first.next_cursor}`)
    expect([first.items.length, first.has_more, rest.items.length, rest.has_more]).toEqual([3, true, 1, false])
    expect(await readLog(shop, '?subject=other')).toHaveLength(3)
    expect(await readLog(shop, `?to=${first.items[2].at}`)).not.toHaveLength(0)
    expect(await readLog(shop, '?from=2100-01-01T00:00:00Z')).toEqual([])
    const readLines = async (query = '') =>
      (await shop.send('GET', `/v1/access-log${query}`, undefined, { Accept: 'application/x-ndjson' })).body.data
    expect(await readLines()).toEqual([...first.items, ...rest.items])
    expect(await readLines('?limit=3')).toEqual(first.items)
    expect(await readLines(`?limit=1&cursor=${first.next_cursor}`)).toEqual(rest.items)
  })

  it('tells who looked at a person, by its identifiers, with and without the index, and at a record', async () => {
    const shop = await createShop(service, 'orders')
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    const { record_id } = await shop.ok('POST', '/v1/stacks/orders', { external_id: 'o1' })
    await shop.ok('POST', '/v1/people', { external_id: 'bob' })
    const seenBy = async (address: string) => (await shop.ok('GET', `/v1/people/${address}/accesses`)).items
    const found = await seenBy('ada')
    expect(found).toMatchObject([{ method: 'POST', ids: [id] }])
    for (let n = 0; n < 1_000; n += 1)
      await service.sql(
        `insert into access_batches select organization_id, id - 4096 * 60000 * (1 + $2::bigint), kind, hashes, entries from access_batches
         where organization_id = $1 order by id desc limit 1`,
        [shop.id, n],
      )
    await work(shop, { retentionDays: 365, nowMs: () => Date.now() + 3_600_000 })
    const [indexed] = await service.sql<{ count: number }>(
      'select count(*)::integer as count from access_index where organization_id = $1',
      [shop.id],
    )
    expect(indexed!.count).toBe(256)
    expect(await seenBy(`internal/${id}`)).toEqual(found)
    expect(await readLog(shop, `?entity=${record_id}`)).toMatchObject([{ owner: 'orders', ids: [record_id] }])
  })

  it('lists the person of a dry run of an erasure', async () => {
    const shop = await createShop(service)
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await shop.ok('POST', '/v1/people/ada/erase?dry_run=true', { reason: 'asked' })
    expect((await readLog(shop, `?entity=${id}`))[0]).toMatchObject({
      route: '/v1/people/{external_id}/erase',
      ids: [id],
    })
  })

  it('has what a person was erased from no more, also what is stored after the erasure', async () => {
    const shop = await createShop(service)
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await shop.ok('POST', '/v1/people/list', {})
    const [late] = await service.sql<{ hashes: Buffer; entries: Buffer }>(
      'select hashes, entries from access_batches where organization_id = $1 order by id desc limit 1',
      [shop.id],
    )
    const { certificate } = await shop.ok('POST', '/v1/people/ada/erase', { reason: 'asked' })
    expect(certificate).not.toBeNull()
    const seen = async () => JSON.stringify(await readLog(shop)).includes(id)
    expect(await seen()).toBe(false)
    await service.sql(`insert into access_batches values ($1, $2, 'access', $3, $4)`, [
      ...[shop.id, Date.now() * 4096, late!.hashes, late!.entries],
    ])
    expect(await seen()).toBe(true)
    await work(shop, { retentionDays: 365 })
    expect(await seen()).toBe(false)
    expect(await readLog(shop, '?kind=security')).toMatchObject([{ event: 'erasure', target: null }])
  })

  it('is deleted after its retention', async () => {
    const shop = await createShop(service)
    await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await work(shop, { retentionDays: 1 })
    expect(await readLog(shop)).toHaveLength(1)
    await work(shop, { retentionDays: 1, nowMs: () => Date.now() + 2 * 86_400_000 })
    expect(await readLog(shop)).toEqual([])
  })

  it('has a dossier as a page as it has one as lines: a security event, and an access of each entity that it shows', async () => {
    const shop = await createShop(service, 'orders', 'buyer')
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    const { record_id } = await shop.ok('POST', '/v1/stacks/orders', { attribute_values: { buyer: 'ada' } })
    const seenBy = async (Accept: string, requestId: string) => {
      await shop.send('GET', '/v1/people/ada/dossier', undefined, { Accept, 'X-Request-Id': requestId })
      const entries = await readLog(shop)
      return entries
        .filter(({ request_id }: { request_id: string }) => request_id === requestId)
        .map(({ event, owner, ids }: { event: string; owner: string; ids: string[] }) => `${event} ${owner} ${ids}`)
        .sort()
    }
    const expected = [`dossier null `, `null orders ${record_id}`, `null people ${id}`]
    expect([await seenBy('text/html', 'page'), await seenBy('application/x-ndjson', 'lines')]).toEqual([
      expected,
      expected,
    ])
  })

  it('is part of the dossier, with the identifiers of nobody else', async () => {
    const shop = await createShop(service)
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await shop.ok('POST', '/v1/people', { external_id: 'bob' })
    await shop.ok('POST', '/v1/people/list', {})
    const lines = (await shop.send('GET', '/v1/people/ada/dossier')).body.data
    const accesses = lines.filter(({ type }: { type: string }) => type === 'access')
    expect(accesses).toMatchObject([
      { route: '/v1/people/list', ids: [id], count: 2 },
      { route: '/v1/people', ids: [id] },
    ])
  })

  it('refuses a token without its scope, a wrong cursor, and an entity that is none', async () => {
    const shop = await createShop(service)
    const other = service.sender(await service.tokenFor(shop.key, 'people:read'))
    expect((await other('GET', '/v1/access-log')).status).toBe(403)
    expect(await readLog(shop, '?kind=security')).toMatchObject([{ event: 'access_refused', status: 403 }])
    expect((await shop.send('GET', '/v1/access-log?cursor=x')).status).toBe(400)
    expect((await shop.send('GET', '/v1/access-log?entity=x')).status).toBe(400)
    expect((await shop.send('GET', '/v1/people/nobody/accesses')).status).toBe(404)
  })
})

describe('security events', () => {
  it('has sign-ins, failed ones, and what is made and revoked', async () => {
    const shop = await createShop(service)
    const { client_id, client_secret } = await shop.ok('POST', '/v1/clients', { name: 'shop', scopes: ['people:read'] })
    const grant = (secret: string) =>
      fetch(`${service.address}/oauth/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret: secret }),
      })
    await grant(client_secret)
    await grant('wrong')
    const { jti } = await shop.ok('POST', '/v1/tokens', { scopes: ['people:read'], expires_in: 60 })
    await shop.ok('DELETE', `/v1/tokens/${jti}`)
    await shop.ok('DELETE', `/v1/clients/${client_id}`)
    await shop.ok('PATCH', '/v1/schema/settings', { display_name: 'Books' })
    await shop.ok('PATCH', '/v1/schema/settings?dry_run=true', { display_name: 'Shoes' })
    const events = await readLog(shop, '?kind=security')
    expect(events.map(({ event, target }: { event: string; target: string }) => [event, target])).toEqual([
      ['settings_changed', null],
      ['client_revoked', client_id],
      ['token_revoked', jti],
      ['token_created', jti],
      ['sign_in_failed', null],
      ['sign_in', null],
      ['client_created', client_id],
    ])
  })
})

describe('KITH_ACCESS_LOG=on', () => {
  const reported: string[] = []
  const counts = { recorded: 0, dropped: 0 }
  let log: AccessLog
  let shop: Shop
  let isAway = false
  const request = () => ({
    ...{ organization_id: shop.id, subject: 'tests', role: null, method: 'GET', route: '/v1/people', status: 200 },
    ...{ ip: '127.0.0.1', request_id: 'one' },
  })

  beforeAll(async () => {
    shop = await createShop(service)
    const query: typeof service.db.query = (...statement) =>
      isAway ? Promise.reject(new Error('the database is away')) : service.db.query(...statement)
    log = new AccessLog({
      db: { ...service.db, query },
      mode: 'on',
      observer: {
        accesses: (outcome, count) => {
          counts[outcome] += count
        },
      },
      report: problem => reported.push(problem),
    })
  })

  const stored = async () => (await readLog(shop, '?limit=500')).length
  const shown = [{ stack_id: 0, ids: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'], count: 1 }]

  it('stores an access within a second, and nothing is lost by a regular stop', async () => {
    log.record('access', request(), shown)
    await vi.waitFor(async () => expect(await stored()).toBe(1), { timeout: 5_000 })
    log.record('access', request(), shown)
    await log.stop()
    expect(await stored()).toBe(2)
  })

  it('drops the oldest entries that the database does not take, counts them and says so', async () => {
    isAway = true
    for (let n = 0; n < 60_000; n += 1) log.record('access', request(), shown)
    expect(counts.dropped).toBeGreaterThan(10_000)
    expect(reported.join()).toContain('lost its oldest')
    isAway = false
  })
})
