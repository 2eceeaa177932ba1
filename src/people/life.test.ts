import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { eachText } from '../../test/support/profile.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import type { Profile } from '../entities/entity-row.ts'
import { plainColumns } from '../values/profile-fields.ts'

const service = useService()
const shop = useShop(service)
const { send } = shop

const full = {
  external_id: 'ada',
  ...eachText(name => `some ${name}`),
  first_name: 'Ada',
  last_name: 'Lovelace',
  email: 'ada@example.org',
  mobile_prefix: '+44',
  mobile_number: '7700900123',
  date_of_birth: '1850-01-01',
  language: 'en_GB',
  push_notification_consent: true,
  attribute_values: { city: 'London', nested: { a: [1, null, 'x'] } },
} satisfies Record<
  Exclude<keyof Profile, 'email_consent' | 'sms_consent'> | 'external_id' | 'attribute_values',
  unknown
>
const unset = Object.fromEntries(plainColumns.map(column => [column, null]))

describe('a person', () => {
  it('may be born today where the day begins first, in UTC+14', async () => {
    const date_of_birth = new Date(Date.now() + 14 * 3_600_000).toISOString().slice(0, 10)
    expect((await send('POST', '/v1/people', { external_id: 'newborn', date_of_birth })).status).toBe(201)
    expect((await send('GET', '/v1/people/newborn')).body.data).toMatchObject({ date_of_birth })
    await send('DELETE', '/v1/people/newborn')
  })

  it('is created with all fields and read by either identifier', async () => {
    const created = await send('POST', '/v1/people', full)
    expect([created.status, created.headers.get('location'), created.headers.get('etag')]).toEqual([
      201,
      '/v1/people/ada',
      '"1"',
    ])
    expect(created.body.data).toMatchObject({ ...full, email_consent: null, state: 'active', version: 1 })
    expect(created.body.data.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const { id } = created.body.data
    for (const path of ['/v1/people/ada', `/v1/people/internal/${id}`, `/v1/people/internal/${id.toUpperCase()}`]) {
      const read = await send('GET', path)
      expect([read.status, read.headers.get('etag'), read.body.data]).toEqual([200, '"1"', created.body.data])
    }
  })

  it('needs no field: unset fields are null, and Location has the internal identifier', async () => {
    const { body, headers } = await send('POST', '/v1/people', {})
    expect(body.data).toMatchObject({ external_id: null, ...unset, attribute_values: {} })
    expect(headers.get('location')).toBe(`/v1/people/internal/${body.data.id}`)
  })

  it('is replaced by PUT, which clears omitted fields except the external identifier', async () => {
    await send('POST', '/v1/people', full)
    expect((await send('PUT', '/v1/people/ada', { first_name: 'Augusta' })).body).toEqual({
      status: 'Success',
      data: true,
    })
    const { body } = await send('GET', '/v1/people/ada')
    expect(body.data).toMatchObject({
      ...unset,
      external_id: 'ada',
      first_name: 'Augusta',
      attribute_values: {},
      version: 2,
    })
    await send('PUT', `/v1/people/internal/${body.data.id}`, { external_id: null })
    expect((await send('GET', '/v1/people/ada')).status).toBe(404)
  })

  it('is renamed and found only under the new external identifier', async () => {
    await send('POST', '/v1/people', full)
    expect((await send('PATCH', '/v1/people/ada', { external_id: ' countess ' })).status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).status).toBe(404)
    expect((await send('GET', '/v1/people/countess')).body.data).toMatchObject({ first_name: 'Ada', version: 2 })
  })

  it('is deleted: reads return 404, its external identifier is free, and its changes are kept', async () => {
    const { id } = (await send('POST', '/v1/people', full)).body.data
    expect((await send('DELETE', '/v1/people/ada')).body).toEqual({ status: 'Success', data: true })
    expect((await send('GET', `/v1/people/internal/${id}`)).status).toBe(404)
    expect((await send('DELETE', '/v1/people/ada')).status).toBe(404)
    // The deletion was version 2, so an If-Match of the first ada does not match the second.
    expect((await send('POST', '/v1/people', { external_id: 'ada' })).body.data).toMatchObject({
      version: 3,
      first_name: null,
    })
    expect(
      await service.sql('select 1 from changes where organization_id = $1 and entity_id = $2', [shop.id, id]),
    ).toHaveLength(2)
  })

  it.each(['a/b', 'a%2Fb', 'ünï cødé 🎈', 'list', 'batch', 'internal', 'x'.repeat(255), '1', 'a?b#c', '...'])(
    'can have the external identifier %s, percent-encoded once in its path',
    async external_id => {
      await send('POST', '/v1/people', { external_id })
      const path = `/v1/people/${encodeURIComponent(external_id)}`
      expect((await send('GET', path)).body.data.external_id).toBe(external_id)
      expect((await send('PATCH', path, { first_name: 'x' })).body.data).toBe(true)
    },
  )

  it.each([
    '/v1/people/%ff',
    '/v1/people/a%00',
    '/v1/people/%07',
    `/v1/people/${'x'.repeat(256)}`,
    '/v1/people/internal/123',
  ])('is not found at the malformed path %s, which returns 400', async path => {
    const reply = await send('GET', path)
    expect([reply.status, reply.body.error]).toEqual([400, 'invalid_parameter'])
  })
})

describe('preconditions and preferences', () => {
  beforeEach(() => send('POST', '/v1/people', full))

  it.each([
    ['"1"', 200],
    ['*', 200],
    ['"7", "1"', 200],
    ['"2"', 412],
    ['W/"1"', 412],
    ['"one"', 412],
    ['1', 400],
  ])('If-Match: %s returns %i for every write', async (header, status) => {
    for (const [method, body] of [
      ['PATCH', {}],
      ['PUT', { ...full }],
      ['DELETE', undefined],
    ] as const) {
      const reply = await send(method, '/v1/people/ada', body, { 'If-Match': header })
      expect([method, reply.status]).toEqual([method, status])
    }
    const isDeleted = status === 200
    expect((await send('GET', '/v1/people/ada')).status).toBe(isDeleted ? 404 : 200)
  })

  it.each([
    ['W/"1"', 'no version has a weak tag. A proxy that compresses responses changes tags. Send "1".'],
    ['"1-gzip"', 'no version has this tag. A proxy that compresses responses changes tags. Send "1".'],
    ['"one"', 'no version has this tag. Read the entity and retry with its ETag.'],
  ])('says of If-Match: %s that no version has the tag', async (header, message) => {
    for (const [method, path, body] of [
      ['PATCH', '/v1/people/ada', {}],
      ['POST', '/v1/people/ada/erase', { reason: 'Request of the person' }],
    ] as const)
      expect((await send(method, path, body, { 'If-Match': header })).body.message).toContain(message)
  })

  it('exactly one of two writes with the same If-Match succeeds', async () => {
    const replies = await Promise.all(
      ['one', 'two'].map(first_name => send('PATCH', '/v1/people/ada', { first_name }, { 'If-Match': '"1"' })),
    )
    expect(replies.map(reply => reply.status).sort()).toEqual([200, 412])
  })

  it('Prefer: return=representation returns the person, the ETag and Preference-Applied', async () => {
    for (const method of ['PATCH', 'PUT']) {
      const reply = await send(
        method,
        '/v1/people/ada',
        { first_name: method },
        { Prefer: 'foo=bar, return=representation' },
      )
      expect(reply.body.data).toEqual((await send('GET', '/v1/people/ada')).body.data)
      expect(reply.headers.get('etag')).toBe(`"${reply.body.data.version}"`)
      expect(reply.headers.get('preference-applied')).toBe('return=representation')
    }
  })

  it('Preference-Applied is absent if Prefer: return=representation does not change the response', async () => {
    for (const [method, path, body] of [
      ['GET', '/v1/people/ada', undefined],
      ['POST', '/v1/people', {}],
      ['POST', '/v1/people/upsert', { external_id: 'ada' }],
      ['POST', '/v1/people/list', {}],
      ['DELETE', '/v1/people/ada', undefined],
    ] as const) {
      const reply = await send(method, path, body, { Prefer: 'return=representation' })
      expect([method, path, reply.headers.get('preference-applied')]).toEqual([method, path, null])
    }
  })

  it('a write that changes nothing keeps the version and the ETag', async () => {
    for (const body of [{}, { first_name: 'Ada' }, { attribute_values: { city: 'London', absent: null } }]) {
      const reply = await send('PATCH', '/v1/people/ada', body)
      expect([reply.status, reply.body.data, reply.headers.get('etag')]).toEqual([200, true, '"1"'])
    }
    expect((await send('PUT', '/v1/people/ada', full)).headers.get('etag')).toBe('"1"')
  })
})

describe('an accepted value', () => {
  const text = fc.string({ maxLength: 20, unit: 'grapheme' }).filter(value => !value.includes('\u0000'))
  const key = text.filter(value => value !== '' && value !== '__proto__')
  const value = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' })

  it('reads back equal after trimming', async () => {
    const trim = (given: unknown): unknown => {
      if (typeof given === 'string') return given.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '')
      if (Array.isArray(given)) return given.map(trim)
      if (given === null || typeof given !== 'object') return given
      return Object.fromEntries(Object.entries(given).map(([name, inner]) => [name, trim(inner)]))
    }
    await send('POST', '/v1/people', { external_id: 'ada' })
    await fc.assert(
      fc.asyncProperty(text, fc.dictionary(key, value, { maxKeys: 5 }), async (first_name, attribute_values) => {
        const reply = await send('PUT', '/v1/people/ada', { first_name, attribute_values })
        const stored = (await send('GET', '/v1/people/ada')).body.data
        if (reply.status !== 200) {
          expect(reply.status).toBe(400)
          return
        }
        expect(stored.first_name).toBe(trim(first_name))
        const nonNull = Object.entries(trim(attribute_values) as object).filter(([, inner]) => inner !== null)
        expect(JSON.parse(JSON.stringify(stored.attribute_values))).toEqual(
          JSON.parse(JSON.stringify(Object.fromEntries(nonNull))),
        )
      }),
      someRuns(60),
    )
  })

  it('can have a key that is a property of JavaScript objects', async () => {
    const attribute_values = { constructor: 1, toString: 'x', hasOwnProperty: [1] }
    expect((await send('POST', '/v1/people', { attribute_values })).body.data.attribute_values).toEqual(
      attribute_values,
    )
  })

  it('can be an empty string if the field accepts one', async () => {
    const { body } = await send('POST', '/v1/people', { first_name: '', attribute_values: { a: '' } })
    expect(body.data).toMatchObject({ first_name: '', attribute_values: { a: '' } })
  })
})
