import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insertPeople, personIdSql } from '../../../test/support/many-people.ts'
import { readMetrics } from '../../../test/support/metrics.ts'
import { type Organization, type Service, startService, useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

/** A filter reads 8 + 64 + 512 links for each person, which exceeds the time limit of a request. */
const people = 20_000
const filterCount = 24

const service = useOwnService({ KITH_LIMIT_REQUEST_MS: '30000' })
/** A service on the same database with a shorter time limit for requests. */
let impatient: Service
// For an undeclared note, a short search would come before each filter. On a busy machine many of them take so long
// together that they count as fast pages.
const slow = useSharedShop(service, 'friends', { owner: 'people', key: 'note', type: 'text' })
const other = useSharedShop(service)
const requestMs = 2_000
beforeAll(async () => {
  impatient = await startService({ KITH_LIMIT_REQUEST_MS: `${requestMs}` }, service.databaseUrl)
  await storeFriends(slow.id)
  expect((await other.send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
})
afterAll(() => impatient.stop())

/** Stores eight friends for each person by SQL, because the service would take longer than the rest of this file. */
async function storeFriends(organizationId: number) {
  await insertPeople(service.sql, organizationId, people, { attributes: `'{"note": "here"}'` })
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, ${personIdSql('i')}, 1, 0, ${personIdSql('1 + (i * 7919 + k) % $2::integer')}, k
     from generate_series(1, $2::integer) i, generate_series(1, 8) k`,
    [organizationId, people],
  )
  await service.sql('analyze entities, links')
}

const friends = (filter: object) => ({ 'attribute_values.friends': { $some: filter } })
const matchesNothing = { 'attribute_values.note': { $contains: 'nowhere' } }
const slowFilter = friends(friends(friends(matchesNothing)))

/** Sends slow filters. `leave` closes their connections. */
function sendSlowFilters({ address } = service) {
  const controller = new AbortController()
  const responses = Array.from({ length: filterCount }, () =>
    fetch(`${address}/v1/people/filter`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${slow.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ filter: slowFilter }),
      signal: controller.signal,
    }),
  )
  for (const response of responses) response.catch(() => {})
  return { responses, leave: () => controller.abort() }
}

const patience = { timeout: 20_000 }

/**
 * Counts the connections whose statement has run for at least this time. Without other requests, only slow filters use
 * connections.
 */
async function countActiveConnections(minSeconds = 0): Promise<number> {
  const rows = await service.sql(
    `select from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()
       and backend_type = 'client backend' and clock_timestamp() - query_start >= make_interval(secs => $1)`,
    [minSeconds],
  )
  return rows.length
}

const statusesFor = ({ send }: Organization) =>
  Promise.all([
    send('GET', '/v1/people/ada'),
    send('PATCH', '/v1/people/ada', { first_name: 'Ada' }),
    send('POST', '/v1/people/list', {}),
    send('POST', '/v1/people/filter', { filter: { external_id: 'ada' } }),
    send('GET', '/v1/schema'),
  ]).then(replies => replies.map(({ status }) => status))

/** The seconds for which the pages of a service have held connections. */
const readPageSeconds = async ({ address }: Service) =>
  (await readMetrics(address)).value('kith_db_statement_duration_seconds_sum{statement="filter"}')

/**
 * Reads fast pages until an organization that has read nothing yet from this service has its whole share. For that, the
 * pages must have held connections for 0.35 s. On a busy machine, a page spends most of its time outside of the
 * database.
 */
async function readFastPages(from: Service) {
  const send = from.sender(slow.token)
  const page = { cursor_configuration: { size: 500 } }
  while ((await readPageSeconds(from)) < 0.6) expect((await send('POST', '/v1/people/list', page)).status).toBe(200)
}

describe('slow filters of one organization', () => {
  it('take half of the connections, and other requests are answered meanwhile', async () => {
    await readFastPages(service)
    const { leave } = sendSlowFilters()
    await expect.poll(() => countActiveConnections(), patience).toBe(4)
    await expect.poll(() => service.db.load!().waitingForShare, patience).toBe(filterCount - 4)
    expect(await statusesFor(other)).toEqual([200, 200, 200, 200, 200])
    expect((await slow.send('POST', '/v1/people', { external_id: 'bo' })).status).toBe(201)
    expect((await slow.send('GET', '/v1/people/bo')).status).toBe(200)
    // A background task of the service may use a connection briefly.
    await expect.poll(() => countActiveConnections(), patience).toBe(4)
    leave()
    await expect.poll(() => countActiveConnections(), patience).toBe(0)
    await expect.poll(() => service.db.load!(), patience).toMatchObject({ used: 0, waiting: 0, waitingForShare: 0 })
    expect((await slow.send('POST', '/v1/people/list', { cursor_configuration: { size: 1 } })).status).toBe(200)
  })

  it('are refused in time: with 503 if they have not started, with 504 if they have', async () => {
    await readFastPages(impatient)
    const { responses } = sendSlowFilters(impatient)
    const replies = await Promise.all(responses)
    const [timedOut, shed] = [504, 503].map(status => replies.filter(reply => reply.status === status))
    expect(timedOut!.length + shed!.length).toBe(filterCount)
    // On a busy machine, a waiting filter may start at the moment when another is cancelled.
    expect(timedOut!.length).toBeGreaterThanOrEqual(4)
    expect(timedOut!.length).toBeLessThan(8)
    for (const { headers } of shed!) expect(headers.get('Retry-After')).toBe(`${requestMs / 2_000}`)
    const metrics = await (await fetch(`${impatient.address}/metrics`)).text()
    expect(metrics).toContain(`kith_overload_refusals_total{reason="share"} ${shed!.length}\n`)
    await expect.poll(() => countActiveConnections(), patience).toBe(0)
  })

  it('take one connection of eight once the organization is known for them', async () => {
    const fresh = await startService({ KITH_LIMIT_REQUEST_MS: '30000' }, service.databaseUrl)
    await readFastPages(fresh)
    const first = sendSlowFilters(fresh)
    await expect.poll(() => countActiveConnections(3), patience).toBe(4)
    first.leave()
    await expect.poll(() => countActiveConnections(), patience).toBe(0)
    const { leave } = sendSlowFilters(fresh)
    await expect.poll(() => fresh.db.load!().waitingForShare, patience).toBe(filterCount - 1)
    await expect.poll(() => countActiveConnections(), patience).toBe(1)
    expect(fresh.db.load!().waitingForShare).toBe(filterCount - 1)
    leave()
    await expect.poll(() => countActiveConnections(), patience).toBe(0)
    await fresh.stop()
  })

  it('take one connection of eight if the organization has read no pages before', async () => {
    const fresh = await startService({ KITH_LIMIT_REQUEST_MS: '30000' }, service.databaseUrl)
    // Otherwise each filter would read the definitions first. On a busy machine, all these reads together count as fast
    // pages.
    expect((await fresh.sender(slow.token)('GET', '/v1/schema')).status).toBe(200)
    const { responses, leave } = sendSlowFilters(fresh)
    await expect.poll(() => countActiveConnections(3), patience).toBe(1)
    expect(fresh.db.load!().waitingForShare).toBe(filterCount - 1)
    leave()
    await Promise.allSettled(responses)
    await fresh.stop()
  })
})

describe('a filter that reaches the time limit of a request', () => {
  const errorOf = async (filter: object) => {
    const { body, status } = await impatient.sender(slow.token)('POST', '/v1/people/filter', { filter })
    return { status, message: body.message, details: body.details }
  }

  it('names the attributes to index, with their paths and the request that does it', async () => {
    const send = impatient.sender(slow.token)
    const declare = async (key: string, type: string, more = {}) =>
      (await send('POST', '/v1/schema/attributes', { owner: 'people', key, type, ...more })).body.data.id as number
    const city = await declare('city', 'text')
    const total = await declare('total', 'number')
    await declare('shape', 'json')
    await declare('tier', 'text', { indexed: true })
    const filter = {
      $or: [
        slowFilter,
        { 'attribute_values.city': 'Rome' },
        friends({ 'attribute_values.total': { $gte: 3 } }),
        { 'attribute_values.shape': 1 },
        { 'attribute_values.tier': 'gold' },
        { $not: { 'attribute_values.city': { $neq: 'Oslo' } } },
        { 'attribute_values.city': { $ends_with: 'x' } },
      ],
    }
    const { status, message, details } = await errorOf(filter)
    expect({ status, message }).toEqual({
      status: 504,
      message: expect.stringMatching(
        /^The request took longer than 2 seconds .* Index the attributes that the details name\.$/,
      ),
    })
    expect(details).toEqual([
      {
        path: '/filter/$or/1/attribute_values.city',
        message: `this attribute is not indexed: PATCH /v1/schema/attributes/${city} {"indexed": true}`,
      },
      {
        path: '/filter/$or/2/attribute_values.friends/$some/attribute_values.total',
        message: `this attribute is not indexed: PATCH /v1/schema/attributes/${total} {"indexed": true}`,
      },
      {
        path: '/filter/$or/4/attribute_values.tier',
        message: 'the index of this attribute is still being filled: GET /v1/schema/attributes shows how far it is',
      },
    ])
  })

  it('reads the operands of a query string by the types of their fields', async () => {
    const send = impatient.sender(slow.token)
    const { body } = await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'visits', type: 'number' })
    const parameters = new URLSearchParams({
      'filter[$or][0][attribute_values.visits][$gte]': '3',
      [`filter[$or][1]${'[attribute_values.friends][$some]'.repeat(3)}[attribute_values.note][$contains]`]: 'nowhere',
    })
    const reply = await send('POST', `/v1/people/filter?${parameters}`)
    expect({ status: reply.status, details: reply.body.details }).toEqual({
      status: 504,
      details: [
        {
          path: '/filter/$or/0/attribute_values.visits',
          message: `this attribute is not indexed: PATCH /v1/schema/attributes/${body.data.id} {"indexed": true}`,
        },
      ],
    })
  })

  it('suggests another condition if no index would help', async () => {
    expect(await errorOf(slowFilter)).toEqual({
      status: 504,
      message: expect.stringContaining('Add a condition that an index serves'),
      details: [],
    })
  })

  it('advises on indexes for a count too, though its page is read in time', async () => {
    const own = await service.organization()
    const impatient = await startService({ KITH_LIMIT_REQUEST_MS: '1500' }, service.databaseUrl)
    try {
      const { id } = (await own.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'note', type: 'text' }))
        .body.data
      // Ten statements insert the rows, because on a busy machine a single one exceeds the time limit of a statement.
      for (let part = 0; part < 10; part++)
        await service.sql(
          `insert into entities (organization_id, stack_id, id, active, version, attributes, created_at, updated_at)
           select $1, 0, gen_random_uuid(), true, 1, jsonb_build_object('note', 'here', 'long', repeat(i::text, 4000)), now(), now()
           from generate_series(1, 3000) i`,
          [own.id],
        )
      // With statistics, PostgreSQL expects almost no match for many conditions. The page must be read in order
      // nevertheless.
      await service.sql('analyze entities')
      const conditions = Array.from({ length: 40 }, (_, index) => ({
        'attribute_values.note': { $neq: `nowhere ${index}` },
      }))
      const filter = { $and: [{ 'attribute_values.note': 'here' }, ...conditions] }
      const sendHere = impatient.sender(own.token)
      const page = await sendHere('POST', '/v1/people/filter', { filter, cursor_configuration: { size: 1 } })
      expect(page.body.data.items).toHaveLength(1)
      const { status, body } = await sendHere('POST', '/v1/people/filter', {
        filter,
        cursor_configuration: { size: 1 },
        count: true,
      })
      expect([status, body.details]).toEqual([
        504,
        [
          {
            path: '/filter/$and/0/attribute_values.note',
            message: `this attribute is not indexed: PATCH /v1/schema/attributes/${id} {"indexed": true}`,
          },
        ],
      ])
      expect(body.message).toContain('Index the attributes that the details name.')
    } finally {
      await impatient.stop()
    }
  })
})
