import { beforeEach, describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const organization = useShop(service, { key: 'age', owner: 'people', type: 'number' }, 'referrer')
const { send } = organization
beforeEach(async () => {
  await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  await send('POST', '/v1/people', { external_id: 'bob' })
})

/** The complete stored state of the organization: rows, links, answers and the number of the last change. */
async function storedState() {
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

type Case = [description: string, body: unknown, error: string, path: string]

const refused: Case[] = [
  ['a wrong type', { first_name: 1 }, 'invalid_json', '/first_name'],
  [
    'a wrong type inside an array',
    { consents: [{ consent_type_id: '1', channel: 'email', state: true }] },
    'invalid_json',
    '/consents/0/consent_type_id',
  ],
  ['attribute values that are not an object', { attribute_values: [] }, 'invalid_json', '/attribute_values'],
  ['a top level that is not an object', '[]', 'invalid_json', ''],
  ['a duplicate key', '{"first_name": "a", "first_name": "b"}', 'invalid_json', '/first_name'],
  [
    'a duplicate key that is nested and escaped',
    '{"attribute_values": {"a": {"b": 1, "\\u0062": 2}}}',
    'invalid_json',
    '/attribute_values/a/b',
  ],
  ['an unknown key', { firstname: 'x' }, 'invalid_parameter', '/firstname'],
  ['an id in the body', { id: 'x' }, 'invalid_parameter', '/id'],
  ['a version in the body', { version: 9 }, 'invalid_parameter', '/version'],
  ['a state in the body', { state: 'active' }, 'invalid_parameter', '/state'],
  ['a malformed email', { email: 'ada at example' }, 'invalid_parameter', '/email'],
  ['an empty email', { email: ' ' }, 'invalid_parameter', '/email'],
  ['an empty language', { language: '' }, 'invalid_parameter', '/language'],
  ['a malformed language', { language: 'e' }, 'invalid_parameter', '/language'],
  ['an empty date of birth', { date_of_birth: '' }, 'invalid_parameter', '/date_of_birth'],
  ['a date that does not exist', { date_of_birth: '2023-02-29' }, 'invalid_parameter', '/date_of_birth'],
  ['a date of birth too long ago', { date_of_birth: '1849-12-31' }, 'invalid_parameter', '/date_of_birth'],
  [
    'a date of birth in the future',
    { date_of_birth: new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10) },
    'invalid_parameter',
    '/date_of_birth',
  ],
  ['an empty external id', { external_id: '' }, 'invalid_parameter', '/external_id'],
  ['an external id that is a dot', { external_id: '..' }, 'invalid_parameter', '/external_id'],
  ['an external id that is too long', { external_id: long(256) }, 'invalid_parameter', '/external_id'],
  ['a control character in an external id', { external_id: 'a\u0007' }, 'invalid_parameter', '/external_id'],
  ['a name that is too long', { first_name: long(256) }, 'invalid_parameter', '/first_name'],
  [
    'an email that is too long',
    { email: `${long(64)}@${long(63)}.${long(63)}.${long(63)}.org` },
    'invalid_parameter',
    '/email',
  ],
  ['a NUL character', { attribute_values: { a: 'x\u0000' } }, 'invalid_parameter', '/attribute_values/a'],
  ['a lone surrogate', '{"attribute_values": {"a": "\\ud800"}}', 'invalid_parameter', '/attribute_values/a'],
  ['the key __proto__', '{"attribute_values": {"__proto__": 1}}', 'invalid_parameter', '/attribute_values/__proto__'],
  ['a number that overflows', '{"attribute_values": {"a": 1e400}}', 'invalid_parameter', '/attribute_values/a'],
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
    'nesting that is too deep',
    { attribute_values: { a: nested(31) } },
    'invalid_parameter',
    `/attribute_values/a${'/0'.repeat(30)}`,
  ],
  ['too many keys', { attribute_values: keys(301) }, 'invalid_parameter', '/attribute_values'],
  [
    'a key that is too long',
    { attribute_values: { [long(151)]: 1 } },
    'invalid_parameter',
    `/attribute_values/${long(151)}`,
  ],
  ['a string that is too long', { attribute_values: { a: long(65_537) } }, 'invalid_parameter', '/attribute_values/a'],
  ['a value of the wrong type', { attribute_values: { age: 'old' } }, 'invalid_parameter', '/attribute_values/age'],
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
    'an unknown purpose',
    { consents: [{ consent_type_id: 9, channel: 'email', state: true }] },
    'invalid_parameter',
    '/consents/0/consent_type_id',
  ],
  [
    'an unknown channel',
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

describe('an invalid body', () => {
  // The body also has a valid field, a new placeholder and an answer, none of which may be stored.
  const withValidFields = (body: unknown) => {
    if (typeof body === 'string') return body
    const { attribute_values, consents, ...rest } = body as Record<string, Record<string, unknown> | undefined>
    if (Array.isArray(attribute_values)) return body
    const values =
      Object.keys(attribute_values ?? {}).length > 300
        ? attribute_values
        : { referrer: 'never-created', ...attribute_values }
    return { last_name: 'L', sms_consent: false, ...(consents && { consents }), ...rest, attribute_values: values }
  }

  it.each(refused)(
    'has %s: it is refused with its code and path, and nothing is stored',
    async (_description, body, error, path) => {
      const before = await storedState()
      for (const [method, address] of [
        ['PATCH', '/v1/people/ada'],
        ['PUT', '/v1/people/ada'],
        ['POST', '/v1/people'],
      ] as const) {
        const reply = await send(method, address, withValidFields(body))
        expect([method, reply.status, reply.body.error]).toEqual([method, 400, error])
        expect(reply.body.details!.map(detail => detail.path)).toContain(path)
        expect(reply.body.errorstack).toBeNull()
      }
      expect(await storedState()).toEqual(before)
    },
  )

  it.each([
    ['broken JSON', '{"first_name": '],
    ['only white space', '  \n '],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['two byte order marks', '\uFEFF\uFEFF{}'],
  ])('is %s: it is refused, and the query string is not read instead', async (_description, body) => {
    const before = await storedState()
    const reply = await send('PATCH', '/v1/people/ada?first_name=Query', body)
    expect([reply.status, reply.body.error]).toEqual([400, 'failed_binding_json'])
    expect(await storedState()).toEqual(before)
  })
})

describe('a missing person and a taken external identifier', () => {
  it.each([
    ['PATCH', '/v1/people/nobody', 500],
    ['PUT', '/v1/people/nobody', 404],
    ['DELETE', '/v1/people/nobody', 404],
    ['GET', '/v1/people/nobody', 404],
    ['PATCH', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
    ['PUT', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
    ['GET', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
    ['DELETE', '/v1/people/internal/00000000-0000-7000-8000-000000000000', 404],
  ])('%s %s returns %i not_found', async (method, path, status) => {
    const before = await storedState()
    const body =
      method === 'PATCH' || method === 'PUT' ? { attribute_values: { referrer: 'never-created' } } : undefined
    const reply = await send(method, path, body, { 'X-Request-Id': 'mine-1' })
    expect([reply.status, reply.body.error]).toEqual([status, 'not_found'])
    const reason = reply.body.message
    expect(reply.body.errorstack).toEqual(status === 500 ? { reason, request_id: 'mine-1' } : null)
    expect([reply.body.request_id, reply.headers.get('x-request-id')]).toEqual(['mine-1', 'mine-1'])
    expect(await storedState()).toEqual(before)
  })

  it('a taken external identifier is a 400 on PATCH by external identifier, otherwise a 409', async () => {
    const { id } = (await send('GET', '/v1/people/ada')).body.data
    const before = await storedState()
    const results: unknown[] = []
    for (const [method, path] of [
      ['PATCH', '/v1/people/ada'],
      ['PATCH', `/v1/people/internal/${id}`],
      ['PUT', '/v1/people/ada'],
      ['POST', '/v1/people'],
    ] as const) {
      const reply = await send(method, path, { external_id: 'bob', first_name: 'x' })
      results.push([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)])
    }
    const taken = (status: number) => [status, 'duplicate_entry', ['/external_id']]
    expect(results).toEqual([taken(400), taken(409), taken(409), taken(409)])
    expect(await storedState()).toEqual(before)
  })
})

describe('a value that kith refuses on purpose', () => {
  const attribute = { key: 'x', owner: 'people' }
  it.each<[string, string, unknown, string]>([
    ['a quoted mailbox', '/v1/people', { email: '"ada l"@example.com' }, 'without quotes'],
    ['an address literal', '/v1/people', { email: 'ada@[192.0.2.7]' }, 'such as ada@example.com'],
    ['a number with too many digits', '/v1/people', '{"attribute_values": {"n": 12345678901234567890}}', 'as a text'],
    [
      'an empty target',
      '/v1/people',
      { attribute_values: { referrer: ['bob', null] } },
      'a single external identifier',
    ],
    ['an index of JSON', '/v1/schema/attributes', { ...attribute, type: 'json', indexed: true }, 'of its own key'],
    ['a stack of people', '/v1/schema/stacks', { key: 'people', name: 'People', kind: 'item' }, 'Choose another key'],
    ['an order of states', '/v1/people/filter', { filter: { state: { $gt: 'active' } } }, 'use $eq or $in'],
    ['a text in a number', '/v1/people/filter', { filter: { 'attribute_values.age': { $contains: '1' } } }, 'use $gte'],
    [
      'an anniversary of a text',
      '/v1/people/filter',
      { filter: { email: { $anniversary: { within_days: 1 } } } },
      '$gte',
    ],
  ])('is refused with what to do instead: %s', async (_, path, body, advice) => {
    const before = await storedState()
    const { status, body: answer } = await send('POST', path, body)
    expect([status, answer.details?.map(({ message }) => message)]).toEqual([400, [expect.stringContaining(advice)]])
    expect(await storedState()).toEqual(before)
  })

  it('is refused with a link by the internal identifier if a target only looks like one', async () => {
    const { id } = (await send('GET', '/v1/people/bob')).body.data
    const { body } = await send('PATCH', '/v1/people/ada', { attribute_values: { referrer: id } })
    expect(body.details?.[0]?.message).toContain(`Link to that entity with {"id": "${id}"}`)
  })
})
