import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Organization, type Service, startService } from '../../test/support/service.ts'

/** A filter reads 8 + 64 + 512 links for each of them, which takes longer than any request has. */
const people = 20_000
const many = 24

let service: Service
/** On the same database; its requests have less time. */
let impatient: Service
let slow: Organization
let other: Organization
const requestMs = 2_000
beforeAll(async () => {
  service = await startService({ KITH_LIMIT_REQUEST_MS: '30000' })
  impatient = await startService({ KITH_LIMIT_REQUEST_MS: `${requestMs}` }, service.databaseUrl)
  slow = await service.organization()
  other = await service.organization()
  const friends = { owner: 'people', key: 'friends', type: 'person', cardinality: 'many' }
  const declared = await slow.send('POST', '/v1/schema/attributes', friends)
  await storeFriends(slow.id, declared.body.data.id)
  expect((await other.send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
})
afterAll(async () => {
  await impatient.stop()
  await service.stop()
})

const idOf = (number: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

/** Eight friends for each: to write them through the service would take longer than all else here. */
async function storeFriends(organizationId: number, attributeId: number) {
  await service.sql(
    `insert into entities (organization_id, stack_id, id, active, version, attributes, created_at, updated_at)
     select $1, 0, ${idOf('i')}, true, 1, '{"note": "here"}', now(), now() from generate_series(1, $2::integer) i`,
    [organizationId, people],
  )
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, ${idOf('i')}, $2, 0, ${idOf('1 + (i * 7919 + k) % $3::integer')}, k
     from generate_series(1, $3::integer) i, generate_series(1, 8) k`,
    [organizationId, attributeId, people],
  )
  await service.sql('analyze entities, links')
}

const friends = (of: object) => ({ 'attribute_values.friends': { $some: of } })
const never = { 'attribute_values.note': { $contains: 'nowhere' } }
const slowFilter = friends(friends(friends(never)))

/** Sends slow filters; `leave` ends their connections. */
function beginSlowFilters({ address } = service) {
  const gone = new AbortController()
  const answers = Array.from({ length: many }, () =>
    fetch(`${address}/v1/people/filter`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${slow.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ filter: slowFilter }),
      signal: gone.signal,
    }),
  )
  for (const answer of answers) answer.catch(() => {})
  return { answers, leave: () => gone.abort() }
}

const patience = { timeout: 20_000 }

/** How many connections work on something: on such filters, while nothing else is asked. */
async function running(): Promise<number> {
  const rows = await service.sql(
    `select from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`,
  )
  return rows.length
}

const answeredTo = ({ send }: Organization) =>
  Promise.all([
    send('GET', '/v1/people/ada'),
    send('PATCH', '/v1/people/ada', { first_name: 'Ada' }),
    send('POST', '/v1/people/list', {}),
    send('POST', '/v1/people/filter', { filter: { external_id: 'ada' } }),
    send('GET', '/v1/schema'),
  ]).then(replies => replies.map(({ status }) => status))

describe('slow filters of one organization', () => {
  it('take half of the connections, and others are answered meanwhile, as are its own reads and writes', async () => {
    const { leave } = beginSlowFilters()
    await expect.poll(running, patience).toBe(4)
    await expect.poll(() => service.db.load!().waitingForShare, patience).toBe(many - 4)
    expect(await answeredTo(other)).toEqual([200, 200, 200, 200, 200])
    expect((await slow.send('POST', '/v1/people', { external_id: 'bo' })).status).toBe(201)
    expect((await slow.send('GET', '/v1/people/bo')).status).toBe(200)
    // What the service does in the background may be seen for a moment, too.
    await expect.poll(running, patience).toBe(4)
    leave()
    await expect.poll(running, patience).toBe(0)
    await expect.poll(() => service.db.load!(), patience).toMatchObject({ used: 0, waiting: 0, waitingForShare: 0 })
    expect((await slow.send('POST', '/v1/people/list', { cursor_configuration: { size: 1 } })).status).toBe(200)
  })

  it('are refused in time: with 503 where they have not begun, with 504 where they have', async () => {
    const { answers } = beginSlowFilters(impatient)
    const replies = await Promise.all(answers)
    const [late, refused] = [504, 503].map(status => replies.filter(reply => reply.status === status))
    expect([late!.length, refused!.length]).toEqual([4, many - 4])
    for (const { headers } of refused!) expect(headers.get('Retry-After')).toBe(`${requestMs / 2_000}`)
    const metrics = await (await fetch(`${impatient.address}/metrics`)).text()
    expect(metrics).toContain(`kith_overload_refusals_total{reason="share"} ${many - 4}\n`)
    await expect.poll(running, patience).toBe(0)
  })
})

describe('a filter that runs into the time of a request', () => {
  const said = async (filter: object) => {
    const { body, status } = await impatient.sender(slow.token)('POST', '/v1/people/filter', { filter })
    return { status, message: body.message, details: body.details }
  }

  it('names what could be indexed, by its path, and how', async () => {
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
    const { status, message, details } = await said(filter)
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

  it('and could not be helped by an index says what else would help', async () => {
    expect(await said(slowFilter)).toEqual({
      status: 504,
      message: expect.stringContaining('Add a condition that an index answers'),
      details: [],
    })
  })
})
