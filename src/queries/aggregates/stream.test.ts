import { beforeAll, describe, expect, it } from 'vitest'
import { insertPeople } from '../../../test/support/many-people.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useOwnService()
const shop = useSharedShop(service, 'referrer')
const field = (key: string) => `attribute_values.${key}`
const lines = { Accept: 'application/x-ndjson' }
const people = 25_000

beforeAll(async () => {
  // A text stored before the declaration does not count as a number.
  await shop.ok('POST', '/v1/people', { external_id: 'early', attribute_values: { score: 'high', key: 'last' } })
  await shop.ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'score', type: 'number' })
  const attributes = `jsonb_build_object('key', n, 'score', n % 10 + 0.1, 'long', repeat('x', 1000) || n)`
  await insertPeople(service.sql, shop.id, people, { attributes })
  await shop.ok('PATCH', '/v1/people/p1', { attribute_values: { referrer: 'p2' } })
})

const request = (body: object, headers: object = lines, token = shop.token) =>
  fetch(`${service.address}/v1/people/aggregate`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

async function stream(body: object): Promise<{ groups: { by: unknown[]; measures: unknown[] }[]; end: object }> {
  const response = await request(body)
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
  expect(response.headers.get('content-type')).toBe('application/x-ndjson')
  expect(text.endsWith('\n')).toBe(true)
  const values = text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  return { groups: values.slice(0, -1), end: values.at(-1) }
}

describe('the stream of an aggregate', () => {
  it('has any number of groups in order, and what was counted at the end', async () => {
    const measures = [{ op: 'count' }, { op: 'sum', field: field('score') }]
    const { groups, end } = await stream({ group_by: [field('key')], measures })
    expect(groups).toHaveLength(people + 1)
    expect(groups.map(({ by }) => by[0])).toEqual([...Array.from({ length: people }, (_, n) => n + 1), 'last'])
    expect(groups[10]).toEqual({ by: [11], measures: [1, 1.1] })
    expect(end).toEqual({ skipped: [{ path: '/measures/1', values: 1 }], sequence: await shop.head() })
  })

  it('has the same groups as an answer in JSON, also of several fields and of none', async () => {
    for (const body of [
      {},
      { filter: { external_id: 'nobody' }, group_by: ['state'] },
      { group_by: [field('score'), field('referrer.external_id')], sort: [{ group: 0, direction: 'desc' }] },
      { group_by: [field('score')], having: [{ measure: 0, $gt: 1 }], limit: 2 },
    ]) {
      const { groups, ...end } = (await shop.send('POST', '/v1/people/aggregate', body)).body.data
      expect(await stream(body)).toEqual({ groups, end })
    }
  })

  it('has groups of more than 8 MiB, and a limit beyond 10,000', async () => {
    const { groups } = await stream({ group_by: [field('long')], limit: 20_000 })
    expect(groups).toHaveLength(20_000)
  })

  it('says until when a relative time counts, and warns of unknown keys, at the end', async () => {
    const { end } = await stream({ filter: { created_at: { $lt: { $ago: 'P1D' } } }, group_by: [field('nothing')] })
    expect(end).toMatchObject({ evaluated_at: expect.any(String), warnings: [{ path: '/group_by/0' }] })
  })

  it('refuses what an answer in JSON refuses, before it begins', async () => {
    expect((await request({ group_by: ['nobody'] })).status).toBe(400)
    expect((await request({ group_by: [{ field: 'created_at', by: 'day', time_zone: 'Mars/Base' }] })).status).toBe(400)
    const onlyRecords = await service.tokenFor(shop.key, 'records:read')
    expect((await request({}, lines, onlyRecords)).status).toBe(403)
    expect((await request({ group_by: [field('key')] }, {})).status).toBe(400)
  })

  it('is told of by the refusal of too many groups', async () => {
    for (const [body, path] of [
      [{ group_by: [field('key')] }, '/group_by'],
      [{ limit: 10_001 }, '/limit'],
    ] as const) {
      const { status, body: refused } = await shop.send('POST', '/v1/people/aggregate', body)
      expect(status).toBe(400)
      expect(refused.details).toEqual([{ path, message: expect.stringContaining('Accept: application/x-ndjson') }])
    }
  })

  it('is the third of its organization only after another one has ended', async () => {
    const held = await Promise.all([1, 2].map(() => request({ group_by: [field('long')] })))
    expect(held.map(({ status }) => status)).toEqual([200, 200])
    const refused = await request({ group_by: [field('long')] })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10'])
    await held[0]!.body!.cancel()
    await expect.poll(async () => (await request({})).status).toBe(200)
    await held[1]!.body!.cancel()
  })
})
