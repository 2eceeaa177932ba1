import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Send, type Service, startService } from '../../test/support/service.ts'

let service: Service
let send: Send
let organization: Awaited<ReturnType<Service['organization']>>
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  organization = await service.organization()
  send = organization.send
  await send('POST', '/v1/schema/attributes', { key: 'age', owner: 'people', type: 'number' })
  await send('POST', '/v1/schema/attributes', { key: 'referrer', owner: 'people', type: 'person' })
  await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  await send('POST', '/v1/people', { external_id: 'bob' })
})

/** Everything the organization has: rows, links, answers and the number of the last change. */
async function everything() {
  const values = [organization.id]
  return {
    entities: await service.sql('select * from entities where organization_id = $1 order by id', values),
    links: await service.sql('select * from links where organization_id = $1 order by source_id', values),
    history: await service.sql('select * from consent_history where organization_id = $1', values),
    head: await service.sql('select sequence from change_heads where organization_id = $1', values),
  }
}

const long = (length: number) => 'x'.repeat(length)
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]))
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

type Case = [what: string, body: unknown, error: string, path: string]

const refused: Case[] = [
  ['a wrong type', { first_name: 1 }, 'invalid_json', '/first_name'],
  [
    'a wrong type within',
    { consents: [{ consent_type_id: '1', channel: 'email', state: true }] },
    'invalid_json',
    '/consents/0/consent_type_id',
  ],
  ['attribute values that are no object', { attribute_values: [] }, 'invalid_json', '/attribute_values'],
  ['a top level that is no object', '[]', 'invalid_json', ''],
  ['a key twice', '{"first_name": "a", "first_name": "b"}', 'invalid_json', '/first_name'],
  [
    'a key twice, escaped, deep down',
    '{"attribute_values": {"a": {"b": 1, "\\u0062": 2}}}',
    'invalid_json',
    '/attribute_values/a/b',
  ],
  ['an unknown key', { firstname: 'x' }, 'invalid_parameter', '/firstname'],
  ['an id in the body', { id: 'x' }, 'invalid_parameter', '/id'],
  ['a version in the body', { version: 9 }, 'invalid_parameter', '/version'],
  ['a state in the body', { state: 'active' }, 'invalid_parameter', '/state'],
  ['an email that is none', { email: 'ada at example' }, 'invalid_parameter', '/email'],
  ['an empty email', { email: ' ' }, 'invalid_parameter', '/email'],
  ['an empty language', { language: '' }, 'invalid_parameter', '/language'],
  ['a language that is none', { language: 'e' }, 'invalid_parameter', '/language'],
  ['an empty date of birth', { date_of_birth: '' }, 'invalid_parameter', '/date_of_birth'],
  ['a day that never was', { date_of_birth: '2023-02-29' }, 'invalid_parameter', '/date_of_birth'],
  ['a birth too long ago', { date_of_birth: '1849-12-31' }, 'invalid_parameter', '/date_of_birth'],
  [
    'a birth tomorrow',
    { date_of_birth: new Date(Date.now() + 86_400_000).toISOString().slice(0, 10) },
    'invalid_parameter',
    '/date_of_birth',
  ],
  ['an empty external id', { external_id: '' }, 'invalid_parameter', '/external_id'],
  ['an external id that is a dot', { external_id: '..' }, 'invalid_parameter', '/external_id'],
  ['an external id too long', { external_id: long(256) }, 'invalid_parameter', '/external_id'],
  ['a control character', { external_id: 'a\u0007' }, 'invalid_parameter', '/external_id'],
  ['a name too long', { first_name: long(256) }, 'invalid_parameter', '/first_name'],
  [
    'an email too long',
    { email: `${long(64)}@${long(63)}.${long(63)}.${long(63)}.org` },
    'invalid_parameter',
    '/email',
  ],
  ['NUL', { attribute_values: { a: 'x\u0000' } }, 'invalid_parameter', '/attribute_values/a'],
  ['a lone surrogate', '{"attribute_values": {"a": "\\ud800"}}', 'invalid_parameter', '/attribute_values/a'],
  ['__proto__', '{"attribute_values": {"__proto__": 1}}', 'invalid_parameter', '/attribute_values/__proto__'],
  ['an overflow', '{"attribute_values": {"a": 1e400}}', 'invalid_parameter', '/attribute_values/a'],
  [
    'an integer that rounds',
    '{"attribute_values": {"a": 9007199254740993}}',
    'invalid_parameter',
    '/attribute_values/a',
  ],
  [
    'more digits than a double keeps',
    '{"attribute_values": {"a": 0.1000000000000000055}}',
    'invalid_parameter',
    '/attribute_values/a',
  ],
  [
    'a nesting too deep',
    { attribute_values: { a: nested(31) } },
    'invalid_parameter',
    `/attribute_values/a${'/0'.repeat(30)}`,
  ],
  ['too many keys', { attribute_values: keys(301) }, 'invalid_parameter', '/attribute_values'],
  ['a key too long', { attribute_values: { [long(151)]: 1 } }, 'invalid_parameter', `/attribute_values/${long(151)}`],
  ['a string too long', { attribute_values: { a: long(65_537) } }, 'invalid_parameter', '/attribute_values/a'],
  ['a value of another type', { attribute_values: { age: 'old' } }, 'invalid_parameter', '/attribute_values/age'],
  [
    'a relationship that is a boolean',
    { attribute_values: { referrer: true } },
    'invalid_parameter',
    '/attribute_values/referrer',
  ],
  [
    'two targets for a link to one',
    { attribute_values: { referrer: ['new1', 'new2'] } },
    'invalid_parameter',
    '/attribute_values/referrer',
  ],
  [
    'a purpose that is not there',
    { consents: [{ consent_type_id: 9, channel: 'email', state: true }] },
    'invalid_parameter',
    '/consents/0/consent_type_id',
  ],
  [
    'a channel that is not there',
    { consents: [{ consent_type_id: 1, channel: 'fax', state: true }] },
    'invalid_parameter',
    '/consents/0/channel',
  ],
  [
    'an answer without a state',
    { consents: [{ consent_type_id: 1, channel: 'sms' }] },
    'invalid_parameter',
    '/consents/0/state',
  ],
  [
    'too many answers',
    { consents: Array(101).fill({ consent_type_id: 1, channel: 'sms', state: true }) },
    'invalid_parameter',
    '/consents',
  ],
]

describe('is refused with its word and path, and changes nothing:', () => {
  // Beside the broken value stands a good one, a birth and an answer, none of which may remain.
  const beside = (body: unknown) => {
    if (typeof body === 'string') return body
    const { attribute_values, consents, ...rest } = body as Record<string, Record<string, unknown> | undefined>
    if (Array.isArray(attribute_values)) return body
    const values =
      Object.keys(attribute_values ?? {}).length > 300
        ? attribute_values
        : { referrer: 'never-born', ...attribute_values }
    return { last_name: 'L', sms_consent: false, ...(consents && { consents }), ...rest, attribute_values: values }
  }

  test.each(refused)('%s', async (_what, body, error, path) => {
    const before = await everything()
    for (const [method, address] of [
      ['PATCH', '/v1/people/ada'],
      ['PUT', '/v1/people/ada'],
      ['POST', '/v1/people'],
    ] as const) {
      const reply = await send(method, address, beside(body))
      expect([method, reply.status, reply.body.error]).toEqual([method, 400, error])
      expect(reply.body.details!.map(detail => detail.path)).toContain(path)
      expect(reply.body.errorstack).toBeNull()
    }
    expect(await everything()).toEqual(before)
  })

  test.each([
    ['broken JSON', '{"first_name": '],
    ['white space alone', '  \n '],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['a byte order mark', '\uFEFF{}'],
  ])('%s, and the query is no way out', async (_what, body) => {
    const before = await everything()
    const reply = await send('PATCH', '/v1/people/ada?first_name=Query', body)
    expect([reply.status, reply.body.error]).toEqual([400, 'failed_binding_json'])
    expect(await everything()).toEqual(before)
  })
})

describe('somebody who is not there, and a name that is taken', () => {
  test.each([
    ['PATCH', '/v1/people/nobody', 500],
    ['PUT', '/v1/people/nobody', 404],
    ['DELETE', '/v1/people/nobody', 404],
    ['GET', '/v1/people/nobody', 404],
    ['PATCH', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
    ['PUT', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
    ['GET', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
    ['DELETE', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
  ])('%s %s answers %i not_found', async (method, path, status) => {
    const before = await everything()
    const body = method === 'PATCH' || method === 'PUT' ? { attribute_values: { referrer: 'never-born' } } : undefined
    const reply = await send(method, path, body, { 'X-Request-Id': 'mine-1' })
    expect([reply.status, reply.body.error]).toEqual([status, 'not_found'])
    const reason = reply.body.message
    expect(reply.body.errorstack).toEqual(status === 500 ? { reason, request_id: 'mine-1' } : null)
    expect([reply.body.request_id, reply.headers.get('x-request-id')]).toEqual(['mine-1', 'mine-1'])
    expect(await everything()).toEqual(before)
  })

  test('a taken name is 400 on the PATCH of the contract, else 409', async () => {
    const { id } = (await send('GET', '/v1/people/ada')).body.data
    const before = await everything()
    const seen: unknown[] = []
    for (const [method, path] of [
      ['PATCH', '/v1/people/ada'],
      ['PATCH', `/v1/people/internal/${id}`],
      ['PUT', '/v1/people/ada'],
      ['POST', '/v1/people'],
    ] as const) {
      const reply = await send(method, path, { external_id: 'bob', first_name: 'x' })
      seen.push([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)])
    }
    const taken = (status: number) => [status, 'duplicate_entry', ['/external_id']]
    expect(seen).toEqual([taken(400), taken(409), taken(409), taken(409)])
    expect(await everything()).toEqual(before)
  })

  test('another organization’s person is a missing person, byte for byte', async () => {
    const other = await service.organization()
    const { id } = (await send('GET', '/v1/people/ada')).body.data
    const withoutId = ({ body }: { body: object }) => JSON.stringify({ ...body, request_id: 0, errorstack: 0 })
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const body = method === 'PUT' || method === 'PATCH' ? { first_name: 'x' } : undefined
      const theirs = await other.send(method, `/v1/people/internal/${id}`, body)
      const nobody = await other.send(method, '/v1/people/internal/00000000-0000-7000-8000-000000000000', body)
      expect([theirs.status, withoutId(theirs)]).toEqual([nobody.status, withoutId(nobody)])
    }
    expect((await send('GET', '/v1/people/ada')).body.data.first_name).toBe('Ada')
  })
})
