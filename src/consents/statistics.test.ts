import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ConsentStatistics } from '../../client/index.ts'
import { fuzzSeed } from '../../test/hostile/seed.ts'
import { type Organization, type Send, useService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { endsOf } from './statistics.ts'

const service = useService()

const path = '/v1/consents/statistics'
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** Noon of a past day, so that no test depends on the time of the day. */
const noonMs = Math.floor(Date.now() / dayMs) * dayMs - 3 * dayMs + 12 * hourMs
const timeAt = (ms: number) => new Date(ms).toISOString()

/**
 * Moves the history of an organization into the past: the newest change to noon, and each earlier one to `hours` before
 * the next.
 */
async function spread({ id }: Organization, hours: number) {
  const [head] = await service.sql<{ sequence: number }>(
    'select sequence from change_heads where organization_id = $1',
    [id],
  )
  // A subtraction of an interval depends on the time zone of the session, which Citus refuses in an UPDATE.
  await service.sql(
    `update changes set at = to_timestamp($4::float8 - ($2 - sequence)::float8 * $3::float8) where organization_id = $1`,
    [id, head!.sequence, (hours * hourMs) / 1_000, noonMs / 1_000],
  )
  await service.sql(
    `update consent_history a set at = c.at from changes c
     where a.organization_id = $1 and c.organization_id = $1 and c.entity_id = a.person_id and c.version = a.version`,
    [id],
  )
  await service.sql(
    `update merges m set at = c.at from changes c where m.organization_id = $1 and c.organization_id = $1 and c.sequence = m.sequence`,
    [id],
  )
}

const answer = (state: boolean, more: object = {}) => ({
  consents: [{ consent_type_id: 1, channel: 'email', state, ...more }],
})

/** The item of a question. Throws if the statistics have none. */
function itemOf({ items }: ConsentStatistics, consent_type_id: number, channel: string) {
  const item = items.find(each => each.consent_type_id === consent_type_id && each.channel === channel)
  if (!item) throw new Error(`there is no item of ${consent_type_id} ${channel}`)
  return item
}

/** Counts the people in a state at a time by reading the past state of each. */
async function countByReading(send: Send, ids: string[], consent_type_id: number, channel: string, at: string) {
  const counts = { granted: 0, refused: 0, pending: 0 }
  for (const id of ids) {
    const { status, body } = await send('GET', `/v1/people/internal/${id}?at=${at}`)
    // A merged person leads to the survivor.
    if (status === 404 || body.data.id !== id) continue
    const consent = body.data.consents.find(
      (each: { consent_type_id: number; channel: string }) =>
        each.consent_type_id === consent_type_id && each.channel === channel,
    )
    if (consent.source !== 'answer') continue
    counts[consent.pending ? 'pending' : consent.state ? 'granted' : 'refused'] += 1
  }
  return counts
}

type Act = { who: number; other: number; act: string; type: number; channel: string; state: boolean; old: boolean }

const acts: fc.Arbitrary<Act> = fc.record({
  who: fc.nat({ max: 7 }),
  other: fc.nat({ max: 7 }),
  act: fc.constantFrom(
    'answer',
    'answer',
    'answer',
    'answer',
    'answer',
    'delete',
    'restore',
    'merge',
    'unmerge',
    'address',
  ),
  type: fc.constantFrom(1, 2),
  channel: fc.constantFrom('email', 'email', 'sms'),
  state: fc.boolean(),
  old: fc.integer({ min: 0, max: 4 }).map(draw => draw === 0),
})

/** Each act once, so that each succeeds at least once. */
const firstActs: Act[] = [
  ['answer', 0, 0],
  ['answer', 1, 0],
  ['merge', 0, 1],
  ['unmerge', 0, 1],
  ['delete', 0, 0],
  ['restore', 0, 0],
  ['address', 2, 0],
].map(([act, who, other]) => ({ act, who, other, type: 1, channel: 'sms', state: true, old: false }) as Act)

/** Performs an act. A refusal is a valid outcome. */
function perform(send: Send, ids: string[], { who, other, act, type, channel, state, old }: Act) {
  const address = `/v1/people/internal/${ids[who]}`
  const collected = old ? { collected_at: '2020-01-01T00:00:00Z' } : {}
  const consents = [{ consent_type_id: type, channel, state, ...collected }]
  if (act === 'answer') return send('PATCH', address, { consents })
  if (act === 'delete') return send('DELETE', address)
  if (act === 'restore') return send('POST', `${address}/restore`)
  if (act === 'address') return send('PATCH', address, { email: state ? `p${who}@example.com` : null })
  return send('POST', `${address}/${act}`, { from_id: ids[other] })
}

describe('POST /v1/consents/statistics', () => {
  it('counts what reads of the past show, through deletions, restorations, merges and their reversals', async () => {
    const seed = fuzzSeed()
    console.log(`consent statistics: KITH_FUZZ_SEED=${seed}`)
    const organization = await createShop(service, {
      key: 'surveys',
      channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }],
      default_state: true,
    })
    const { send, client } = organization
    const ids: string[] = []
    for (let who = 0; who < 8; who++) {
      const created = await send('POST', '/v1/people', { external_id: `p${who}`, email: `p${who}@example.com` })
      ids.push(created.body.data.id)
    }
    const outcomes = new Set<string>()
    const [random] = fc.sample(fc.array(acts, { minLength: 90, maxLength: 90 }), { numRuns: 1, seed })
    for (const act of [...firstActs, ...random!]) {
      const { status } = await perform(send, ids, act)
      if (status < 300) outcomes.add(act.act)
    }
    expect([...outcomes].sort()).toEqual(['address', 'answer', 'delete', 'merge', 'restore', 'unmerge'])
    await spread(organization, 11)
    const from = timeAt(noonMs - 70 * dayMs)
    const statistics = await client.consents.statistics({ interval: 'week', from })
    expect(statistics.items).toHaveLength(4)
    for (const { consent_type_id, channel, granted, refused, pending, contactable } of statistics.items) {
      for (const [index, end] of statistics.ends.entries()) {
        const at = timeAt(Date.parse(end) - 1)
        const counted = { granted: granted[index], refused: refused[index], pending: pending[index] }
        expect(counted, `${consent_type_id} ${channel} ${end}`).toEqual(
          await countByReading(send, ids, consent_type_id, channel, at),
        )
      }
      const { items } = (await send('POST', '/v1/people/list', { cursor_configuration: { size: 500 } })).body.data
      const purpose = { consent_type_id, channel }
      let allowed = 0
      for (const { id } of items)
        if ((await send('POST', `/v1/people/internal/${id}/contactable`, purpose)).body.data.allowed) allowed += 1
      expect([consent_type_id, channel, contactable]).toEqual([consent_type_id, channel, allowed])
    }
  })

  it('shows a grant, its confirmation, a refusal and a deletion at the end of their days', async () => {
    const organization = await service.organization()
    const { send, client } = organization
    const { channels } = (await send('GET', '/v1/schema/consent-types/1')).body.data
    const double_opt_in = channels.map((channel: object) => ({ ...channel, double_opt_in: true }))
    await send('PATCH', '/v1/schema/consent-types/1', { channels: double_opt_in })
    await send('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com' })
    await send('PATCH', '/v1/people/ada', answer(true))
    await send('PATCH', '/v1/people/ada', answer(true, { method: 'double_opt_in' }))
    await send('POST', '/v1/people', { external_id: 'bob', ...answer(false) })
    await send('DELETE', '/v1/people/ada')
    await spread(organization, 24)
    const [from, to] = [timeAt(noonMs - 4 * dayMs), timeAt(noonMs + dayMs)]
    const body = { interval: 'day', from, to, consent_type_id: 1, channel: 'email' } as const
    const statistics = await client.consents.statistics(body)
    expect(statistics.items).toHaveLength(1)
    const { granted, refused, pending, contactable } = itemOf(statistics, 1, 'email')
    expect(granted).toEqual([0, 0, 1, 1, 0, 0])
    expect(pending).toEqual([0, 1, 0, 0, 0, 0])
    expect(refused).toEqual([0, 0, 0, 1, 1, 1])
    expect([statistics.ends.length, statistics.ends.at(-1), contactable]).toEqual([6, to, 0])
    expect(statistics.sequence).toBe((await client.organization()).counts.changes)
  })

  it('forgets the answers of erased people in all intervals', async () => {
    const organization = await service.organization()
    const { send, client } = organization
    for (const external_id of ['ada', 'bob']) await send('POST', '/v1/people', { external_id, ...answer(true) })
    await spread(organization, 48)
    const grantedOf = async () => {
      const body = { interval: 'day', from: timeAt(noonMs - 3 * dayMs) } as const
      return itemOf(await client.consents.statistics(body), 1, 'email').granted
    }
    expect([(await grantedOf())[1], (await grantedOf()).at(-1)]).toEqual([1, 2])
    expect((await send('POST', '/v1/people/ada/erase', { reason: 'request' })).status).toBe(200)
    expect([(await grantedOf())[1], (await grantedOf()).at(-1)]).toEqual([0, 1])
  })

  it('counts who may be written to by the rules of the consent type', async () => {
    const types = [{ mandatory: true }, { default_state: true }, {}, {}]
    const channels = [{ channel: 'email' as const }]
    const { send, client } = await createShop(
      service,
      ...types.map((type, index) => ({ key: `t${index}`, channels, ...type })),
    )
    const consents = [3, 4, 5].map(consent_type_id => ({ consent_type_id, channel: 'email', state: true }))
    const refused = [{ consent_type_id: 3, channel: 'email', state: false }]
    await send('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com', consents })
    await send('POST', '/v1/people', { external_id: 'bob', email: 'bob@example.com', consents: refused })
    await send('POST', '/v1/people', { external_id: 'eve', email: 'eve@example.com' })
    await send('POST', '/v1/people', { external_id: 'without address', consents })
    await send('PATCH', '/v1/schema/consent-types/5', { state: 'archived' })
    const statistics = await client.consents.statistics({ interval: 'month', channel: 'email' })
    const counts = statistics.items.map(({ consent_type_id, contactable }) => [consent_type_id, contactable])
    expect(counts).toEqual([
      [1, 0],
      [2, 3],
      [3, 2],
      [4, 1],
      [5, 0],
    ])
    expect(itemOf(statistics, 5, 'email').granted.at(-1)).toBe(2)
  })

  it.each([
    ['too many intervals', { interval: 'day', from: '2020-01-01T00:00:00Z' }, '/from'],
    [
      'a from that is not before to',
      { interval: 'day', from: '2026-01-02T00:00:00Z', to: '2026-01-02T00:00:00Z' },
      '/from',
    ],
    ['a from in the future', { interval: 'day', from: '2999-01-01T00:00:00Z' }, '/from'],
    ['a to before 1970', { interval: 'day', to: '1969-12-31T23:59:59Z' }, '/to'],
    ['a date', { interval: 'day', from: '2026-01-02' }, '/from'],
    ['no interval', {}, '/interval'],
    ['another interval', { interval: 'year' }, '/interval'],
    ['an unknown consent type', { interval: 'day', consent_type_id: 99 }, '/consent_type_id'],
  ])('refuses %s', async (_, body, at) => {
    const { send } = await service.organization()
    const { status, body: refusal } = await send('POST', path, body)
    expect([status, refusal.error, refusal.details?.map(detail => detail.path)]).toEqual([
      400,
      'invalid_parameter',
      [at],
    ])
  })

  it('refuses a channel that the consent type does not have, and a token without the scope consents:read', async () => {
    const { key, send } = await createShop(service, { key: 'surveys', channels: [{ channel: 'email' }] })
    const refused = await send('POST', path, { interval: 'day', consent_type_id: 2, channel: 'sms' })
    expect([refused.status, refused.body.details?.map(detail => detail.path)]).toEqual([400, ['/channel']])
    const reader = service.sender(await service.tokenFor(key, 'people:read schema:read'))
    expect((await reader('POST', path, { interval: 'day' })).status).toBe(403)
  })
})

describe('the intervals', () => {
  const nowMs = Date.parse('2026-03-04T15:00:00.000Z')
  const labels = (body: Parameters<typeof endsOf>[0]) =>
    endsOf(body, nowMs).ends.map(end => new Date(end).toISOString())

  it('are days, weeks from Monday and months in UTC, up to now', () => {
    const from = '2026-03-02T23:59:59-01:00'
    expect(labels({ interval: 'day', from })).toEqual(['2026-03-04T00:00:00.000Z', '2026-03-04T15:00:00.000Z'])
    expect(labels({ interval: 'week', from: '2026-03-01T12:00:00Z' })).toEqual([
      '2026-03-02T00:00:00.000Z',
      '2026-03-04T15:00:00.000Z',
    ])
    expect(labels({ interval: 'month', from: '2025-12-31T23:59:59.999Z' })).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2026-02-01T00:00:00.000Z',
      '2026-03-01T00:00:00.000Z',
      '2026-03-04T15:00:00.000Z',
    ])
  })

  it('end with a given time in the past, and with now for a later one', () => {
    const to = '2026-03-03T00:00:00Z'
    expect(endsOf({ interval: 'day', from: '2026-03-01T00:00:00Z', to }, nowMs)).toEqual({
      ends: [Date.parse('2026-03-02T00:00:00Z'), Date.parse(to)],
      isUntilNow: false,
    })
    const { ends, isUntilNow } = endsOf({ interval: 'day', to: '2026-03-05T00:00:00Z' }, nowMs)
    expect([ends.at(-1), isUntilNow]).toEqual([nowMs, true])
  })

  it('are 30 by default and at most 400', () => {
    for (const interval of ['day', 'week', 'month'] as const) expect(labels({ interval })).toHaveLength(30)
    const from = (days: number) => new Date(nowMs - days * dayMs).toISOString()
    expect(labels({ interval: 'day', from: from(399) })).toHaveLength(400)
    const message = expect.stringContaining('more than 400 intervals')
    const refusal = expect.objectContaining({ details: [{ path: '/from', message }] })
    expect(() => labels({ interval: 'day', from: from(400) })).toThrow(expect.objectContaining({ refusal }))
  })
})
