import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const { send } = useShop(service)

const path = '/v1/schema/consent-types'
const marks = async () => {
  const { items } = (await send('GET', path)).body.data
  return items.map((type: { id: number; channels: { channel: string; is_default: boolean }[] }) => [
    type.id,
    type.channels.filter(entry => entry.is_default).map(entry => entry.channel),
  ])
}

it('a new organization has the consent type marketing with id 1, the default of both channels', async () => {
  expect((await send('GET', `${path}/1`)).body.data).toMatchObject({
    id: 1,
    key: 'marketing',
    state: 'active',
    mandatory: false,
    default_state: false,
    channels: [
      { channel: 'email', is_default: true },
      { channel: 'sms', is_default: true },
    ],
  })
})

describe('the default of a channel', () => {
  it('moves to a type that is marked, so a channel has at most one default', async () => {
    await send('POST', path, { key: 'news', channels: [{ channel: 'email', is_default: true }, { channel: 'sms' }] })
    expect(await marks()).toEqual([
      [1, ['sms']],
      [2, ['email']],
    ])
    await send('PATCH', `${path}/1`, { channels: [{ channel: 'email', is_default: true }] })
    expect(await marks()).toEqual([
      [1, ['email']],
      [2, []],
    ])
  })

  it('is removed when its type is archived and does not return when the type is activated again', async () => {
    await send('PATCH', `${path}/1`, { state: 'archived' })
    await send('POST', path, { key: 'news', channels: [{ channel: 'email', is_default: true }] })
    await send('PATCH', `${path}/1`, { state: 'active' })
    expect(await marks()).toEqual([
      [1, []],
      [2, ['email']],
    ])
  })
})

it('a type is created with defaults, renamed and archived, and keeps its key', async () => {
  const created = await send('POST', path, { key: 'news', channels: [{ channel: 'email' }] })
  expect([created.status, created.headers.get('location')]).toEqual([201, `${path}/2`])
  expect(created.body.data).toMatchObject({ id: 2, name: 'news', description: null, default_state: false })
  const patched = await send('PATCH', `${path}/2`, { name: 'News', default_state: true, state: 'archived' })
  expect(patched.body.data).toMatchObject({ key: 'news', name: 'News', default_state: true, state: 'archived' })
})

it('a changed default state appears in reads at once', async () => {
  await send('POST', '/v1/people', { external_id: 'ada' })
  await send('PATCH', `${path}/1`, { default_state: true })
  const { consents, version } = (await send('GET', '/v1/people/ada')).body.data
  expect([consents[0].state, consents[0].source, version]).toEqual([true, 'default', 1])
})

it.each([
  ['POST', path, { key: 'news' }, 400, '/channels'],
  ['POST', path, { channels: [{ channel: 'email' }] }, 400, '/key'],
  ['POST', path, { key: 'News!', channels: [{ channel: 'email' }] }, 400, '/key'],
  ['POST', path, { key: 'news', channels: [] }, 400, '/channels'],
  ['POST', path, { key: 'news', channels: [{ channel: 'fax' }] }, 400, '/channels/0/channel'],
  ['POST', path, { key: 'news', channels: [{ channel: 'sms' }, { channel: 'sms' }] }, 400, '/channels/1/channel'],
  [
    'POST',
    path,
    { key: 'news', mandatory: true, channels: [{ channel: 'sms', is_default: true }] },
    400,
    '/channels/0/is_default',
  ],
  ['POST', path, { key: 'marketing', channels: [{ channel: 'sms' }] }, 409, '/key'],
  ['PATCH', `${path}/1`, { key: 'other' }, 400, '/key'],
  ['PATCH', `${path}/1`, { mandatory: true }, 400, '/channels/0/is_default'],
  [
    'PATCH',
    `${path}/1`,
    { state: 'archived', channels: [{ channel: 'sms', is_default: true }] },
    400,
    '/channels/0/is_default',
  ],
  ['PATCH', `${path}/1`, { state: 'deleted' }, 400, '/state'],
])('%s %s with %j returns %i at %s and changes nothing', async (method, address, body, status, where) => {
  const before = (await send('GET', path)).body.data
  const reply = await send(method, address, body)
  expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([status, [where]])
  expect((await send('GET', path)).body.data).toEqual(before)
})

it.each([
  ['GET', `${path}/99`, 404],
  ['PATCH', `${path}/99`, 404],
  ['GET', `${path}/x`, 400],
  ['GET', `${path}/0`, 400],
  ['DELETE', `${path}/1`, 405],
])('%s %s returns %i', async (method, address, status) => {
  expect((await send(method, address, method === 'PATCH' ? {} : undefined)).status).toBe(status)
})

it.each([
  [{ key: 'news', channels: [{ channel: 'email' }], default_state: 'yes' }, 'invalid_json', '/default_state'],
  [{ key: 'news', channels: [{ channel: 'email' }], mandatory: null }, 'invalid_json', '/mandatory'],
  [{ key: 'news', channels: { channel: 'email' } }, 'invalid_json', '/channels'],
  [{ key: 'news', channels: ['email'] }, 'invalid_json', '/channels/0'],
  [{ key: 'news', channels: [{}] }, 'invalid_parameter', '/channels/0/channel'],
  [{ key: 'news', channels: [{ channel: 'push' }] }, 'invalid_parameter', '/channels/0/channel'],
  [{ key: 'news', channels: [{ channel: 'email', on: true }] }, 'invalid_parameter', '/channels/0/on'],
  [{ key: 'news', channels: [{ channel: 'email', is_default: 1 }] }, 'invalid_json', '/channels/0/is_default'],
  [{ key: 'news', channels: [{ channel: 'email' }], name: '' }, 'invalid_parameter', '/name'],
  [
    { key: 'news', channels: [{ channel: 'email' }], description: 'x'.repeat(2_001) },
    'invalid_parameter',
    '/description',
  ],
  [{ key: 'news', channels: [{ channel: 'email' }], state: 'archived' }, 'invalid_parameter', '/state'],
  [{ id: 7, key: 'news', channels: [{ channel: 'email' }] }, 'invalid_parameter', '/id'],
])('POST with %j returns 400 %s at %s and creates nothing', async (body, code, where) => {
  const before = (await send('GET', path)).body.data
  const reply = await send('POST', path, body)
  expect([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)]).toEqual([400, code, [where]])
  expect((await send('GET', path)).body.data).toEqual(before)
})

it('a refused type takes no default mark, and a PATCH without changes moves none', async () => {
  const channels = [{ channel: 'email', is_default: true }]
  expect((await send('POST', path, { key: 'marketing', channels })).status).toBe(409)
  expect((await send('POST', path, { key: 'law', mandatory: true, channels })).status).toBe(400)
  const before = (await send('GET', `${path}/1`)).body.data
  expect(before.channels.every((entry: { is_default: boolean }) => entry.is_default)).toBe(true)
  expect((await send('PATCH', `${path}/1`, { name: before.name, mandatory: false })).body.data).toEqual(before)
})

it('exactly one of several types marked concurrently for a channel keeps the mark', async () => {
  const channels = [{ channel: 'email', is_default: true }]
  const created = await Promise.all(
    Array.from({ length: 8 }, (_, n) => send('POST', path, { key: `type${n}`, channels })),
  )
  expect(created.map(reply => reply.body.data.id).sort()).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
  const marked = (await marks()).filter(([, channels]: [number, string[]]) => channels.includes('email'))
  expect(marked).toEqual([[9, ['email']]])
})

it('the flag true grants the type that is the default at that moment', async () => {
  await send('POST', path, { key: 'news', channels: [{ channel: 'email', is_default: true }] })
  await send('POST', '/v1/people', { external_id: 'ada', email_consent: true })
  await send('PATCH', `${path}/1`, { channels: [{ channel: 'email', is_default: true }] })
  await send('POST', '/v1/people', { external_id: 'bob', email_consent: true })
  const granted = async (name: string) => {
    const { consents } = (await send('GET', `/v1/people/${name}`)).body.data
    return consents
      .filter((consent: { state: boolean }) => consent.state)
      .map((entry: { consent_type_id: number }) => entry.consent_type_id)
  }
  expect([await granted('ada'), await granted('bob')]).toEqual([[2], [1]])
})

it('a type that becomes mandatory counts as granted for everyone, despite earlier answers', async () => {
  await send('POST', path, { key: 'news', channels: [{ channel: 'sms' }] })
  const refusal = { consent_type_id: 2, channel: 'sms', state: false }
  await send('POST', '/v1/people', { external_id: 'ada', consents: [refusal] })
  await send('PATCH', `${path}/2`, { mandatory: true })
  const shown = (await send('GET', '/v1/people/ada')).body.data
  expect(shown.consents.at(-1)).toMatchObject({ consent_type_id: 2, state: true, source: 'mandatory' })
  expect([shown.sms_consent, shown.version]).toEqual([false, 1])
  await send('PATCH', `${path}/2`, { mandatory: false })
  expect((await send('GET', '/v1/people/ada')).body.data.consents.at(-1)).toMatchObject({
    ...refusal,
    source: 'answer',
  })
})

it('the key of an archived type stays taken', async () => {
  await send('PATCH', `${path}/1`, { state: 'archived' })
  expect((await send('POST', path, { key: 'marketing', channels: [{ channel: 'sms' }] })).status).toBe(409)
})
