import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Send, type Service, startService } from '../../test/support/service.ts'

let service: Service
let send: Send
let organization_id: number
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  const organization = await service.organization()
  send = organization.send
  organization_id = organization.id
  const both = [{ channel: 'email' }, { channel: 'sms' }]
  await send('POST', '/v1/schema/consent-types', { key: 'surveys', channels: both })
  await send('POST', '/v1/schema/consent-types', { key: 'service', channels: both, mandatory: true })
  await send('POST', '/v1/people', { external_id: 'ada' })
})

const person = async () => (await send('GET', '/v1/people/ada')).body.data
const patch = (body: object, headers?: Record<string, string>) => send('PATCH', '/v1/people/ada', body, headers)
const answer = (consent_type_id: number, channel: string, state: boolean) => ({ consent_type_id, channel, state })

type History = {
  version: number
  consent_type_id: number
  channel: string
  previous_state: boolean | null
  state: boolean
  source: string
  actor: string
  request_id: string
}
const history = () =>
  service.sql<History>(
    `select version, consent_type_id, channel, previous_state, state, source, actor, request_id from consent_history
     where organization_id = $1 order by version, consent_type_id, channel`,
    [organization_id],
  )

describe('an answer', () => {
  test('is kept with the state before it, its author and its request, and the flag is recomputed', async () => {
    await patch({ consents: [answer(1, 'email', true)] }, { 'X-Request-Id': 'one' })
    await patch({ consents: [answer(1, 'email', false), answer(2, 'sms', true)] }, { 'X-Request-Id': 'two' })
    expect(await person()).toMatchObject({ email_consent: false, sms_consent: true, version: 3 })
    const by = (request_id: string, source = 'entry') => ({ actor: 'tests', request_id, source })
    expect(await history()).toEqual([
      { version: 2, ...answer(1, 'email', true), previous_state: null, ...by('one') },
      { version: 3, ...answer(1, 'email', false), previous_state: true, ...by('two') },
      { version: 3, ...answer(2, 'sms', true), previous_state: null, ...by('two') },
    ])
  })

  test('given again is a write: the version moves and the history grows', async () => {
    await patch({ consents: [answer(1, 'email', true)] })
    await patch({ consents: [answer(1, 'email', true)] })
    expect((await person()).version).toBe(3)
    expect((await history()).map(row => row.previous_state)).toEqual([null, true])
  })

  test('is shown with its time; the others resolve to their default, mandatory ones to true', async () => {
    await patch({ consents: [answer(2, 'email', false)] })
    const { consents, updated_at } = await person()
    expect(consents).toEqual([
      { ...answer(1, 'email', false), source: 'default', answered_at: null },
      { ...answer(1, 'sms', false), source: 'default', answered_at: null },
      { ...answer(2, 'email', false), source: 'answer', answered_at: updated_at },
      { ...answer(2, 'sms', false), source: 'default', answered_at: null },
      { ...answer(3, 'email', true), source: 'mandatory', answered_at: null },
      { ...answer(3, 'sms', true), source: 'mandatory', answered_at: null },
    ])
  })

  test('survives a PUT that says nothing of it, and the history survives the person', async () => {
    await patch({ consents: [answer(1, 'email', true)], push_notification_consent: true })
    await send('PUT', '/v1/people/ada', { consents: [] })
    await send('PUT', '/v1/people/ada', { consents: null })
    expect(await person()).toMatchObject({ email_consent: true, push_notification_consent: null, external_id: 'ada' })
    await send('DELETE', '/v1/people/ada')
    expect(await history()).toHaveLength(1)
  })

  test.each([
    ['unknown', answer(9, 'email', true), 'consent_type_id'],
    ['mandatory', answer(3, 'email', false), 'consent_type_id'],
    ['archived', answer(4, 'email', true), 'consent_type_id'],
    ['not for the channel', answer(5, 'sms', true), 'channel'],
  ])('to a purpose that is %s is refused, and nothing of the request is stored', async (_what, entry, field) => {
    await send('POST', '/v1/schema/consent-types', { key: 'old', channels: [{ channel: 'email' }] })
    await send('PATCH', '/v1/schema/consent-types/4', { state: 'archived' })
    await send('POST', '/v1/schema/consent-types', { key: 'letters', channels: [{ channel: 'email' }] })
    const reply = await patch({ first_name: 'Ada', email_consent: false, consents: [answer(1, 'email', true), entry] })
    expect([reply.status, reply.body.error, reply.body.details]).toEqual([
      400,
      'invalid_parameter',
      [{ path: `/consents/1/${field}`, message: expect.any(String) }],
    ])
    expect(await person()).toMatchObject({ first_name: null, email_consent: null, version: 1 })
    expect(await history()).toEqual([])
  })
})

describe('a flag', () => {
  test('false refuses all, true grants the default and lifts no refusal, null is nothing', async () => {
    await patch({ email_consent: false })
    expect((await history()).map(row => [row.consent_type_id, row.state, row.source])).toEqual([
      [1, false, 'flag'],
      [2, false, 'flag'],
    ])
    await patch({ email_consent: true })
    await patch({ email_consent: null })
    const { consents, email_consent, version } = await person()
    expect([email_consent, version]).toEqual([true, 3])
    expect(consents.filter((consent: { source: string }) => consent.source === 'answer')).toMatchObject([
      answer(1, 'email', true),
      answer(2, 'email', false),
    ])
  })

  test('is kept as itself where nothing can be answered', async () => {
    for (const id of [1, 2]) await send('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' })
    expect((await patch({ sms_consent: false })).status).toBe(200)
    expect(await person()).toMatchObject({ sms_consent: false, version: 2 })
    expect(await history()).toEqual([])
    const reply = await patch({ sms_consent: true })
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/sms_consent'])
  })

  test('stays as it is when a purpose is archived', async () => {
    await patch({ consents: [answer(2, 'email', true)] })
    await send('PATCH', '/v1/schema/consent-types/2', { state: 'archived' })
    expect((await person()).email_consent).toBe(true)
    await patch({ consents: [answer(1, 'email', false)] })
    expect((await person()).email_consent).toBe(false)
  })
})

describe('the history of random answers and flags', () => {
  const entry = fc.record({
    consent_type_id: fc.constantFrom(1, 2),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
  })
  const body = fc.record(
    {
      email_consent: fc.option(fc.boolean()),
      sms_consent: fc.option(fc.boolean()),
      consents: fc.uniqueArray(entry, {
        selector: ({ consent_type_id, channel }) => consent_type_id + channel,
        maxLength: 3,
      }),
    },
    { requiredKeys: [] },
  )

  test('replayed by a model equals what a read shows', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 6 }), async bodies => {
        const { body: made } = await send('POST', '/v1/people', {})
        const path = `/v1/people/internal/${made.data.id}`
        for (const given of bodies) expect((await send('PATCH', path, given)).status).toBe(200)
        const rows = await service.sql<History>(
          'select * from consent_history where organization_id = $1 and person_id = $2 order by version',
          [organization_id, made.data.id],
        )
        const model = new Map<string, boolean>()
        for (const row of rows) {
          const key = `${row.consent_type_id} ${row.channel}`
          expect(row.previous_state).toBe(model.get(key) ?? null)
          model.set(key, row.state)
        }
        const { data } = (await send('GET', path)).body
        for (const consent of data.consents.filter((shown: { source: string }) => shown.source === 'answer')) {
          expect(consent.state).toBe(model.get(`${consent.consent_type_id} ${consent.channel}`))
          model.set(`${consent.consent_type_id} ${consent.channel} seen`, true)
        }
        for (const channel of ['email', 'sms']) {
          const states = [...model].filter(([key]) => key.endsWith(channel)).map(([, state]) => state)
          expect(data[`${channel}_consent`]).toBe(states.length === 0 ? null : states.includes(true))
        }
      }),
      { numRuns: 25 },
    )
  })
})
