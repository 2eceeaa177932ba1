import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Person } from '../../client/index.ts'
import { exportAll, importLines, linesFrom } from '../../test/support/lines.ts'
import { eachFlag, eachText } from '../../test/support/profile.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, type Reply, useService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useService()

type Body = Record<string, unknown>
type Answer = { error?: string; message?: string; details?: { path: string; message: string }[] }

/** White space beside a text, which trimming removes, or no white space. */
const space = fc.constantFrom('', '', ' ', '\t', '\u00a0 ', '\u3000\n')
const padded = (texts: fc.Arbitrary<string>) =>
  fc.tuple(space, texts, space).map(([before, text, after]) => before + text + after)
const wrongType = fc.constantFrom<unknown>(7, true, [], {}, ['x'])
const text = (...texts: string[]) =>
  fc.oneof(
    { weight: 8, arbitrary: padded(fc.constantFrom(...texts)) },
    { weight: 1, arbitrary: fc.constantFrom(null, '', '  ') },
    { weight: 1, arbitrary: wrongType },
  )
const long = (length: number) => 'x'.repeat(length)

const entry = fc.record(
  {
    consent_type_id: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, fc.constantFrom<unknown>(0, 99, '1', null)),
    channel: text('email', 'sms', 'post'),
    state: fc.oneof({ weight: 8, arbitrary: fc.boolean() }, fc.constantFrom<unknown>('true', null)),
    collected_at: text('2026-01-01T00:00:00Z', '2026-01-01', '1970-01-01T00:00:00Z'),
    method: text('web_form', 'import', 'telepathy'),
    ip: text('192.0.2.7', '2001:db8::7', 'nowhere'),
    source: text('https://shop.example', long(2_100)),
    unknown: fc.constant(1),
  },
  { requiredKeys: ['consent_type_id', 'channel', 'state'], noNullPrototype: true },
)
const fields = {
  ...eachText(() => text('Ada', long(300))),
  email: text('ada@example.com', 'ada', 'a b@example.com'),
  mobile_prefix: text('+49'),
  mobile_number: text('170 1234567'),
  date_of_birth: text('1815-12-10', '1915-12-10', '1915-02-30'),
  language: text('en', 'pt_BR', 'english language'),
  ...eachFlag(() => fc.oneof(fc.boolean(), fc.constantFrom<unknown>(null, 1, ' true '))),
  consents: fc.oneof(
    { weight: 8, arbitrary: fc.array(entry, { maxLength: 3 }) },
    fc.constantFrom<unknown>(null, {}, [1, 1]),
  ),
  attribute_values: fc.oneof(
    fc.dictionary(
      fc.constantFrom('city', ' city ', '', 'a'.repeat(151), 'born', 'visits'),
      fc.oneof(text('Rome', '1915-12-10', long(70_000)), fc.constant(3), fc.constant([' a ', { b: ' c ' }])),
      { maxKeys: 3, noNullPrototype: true },
    ),
    fc.constantFrom<unknown>(null, [], 'x'),
  ),
  surname: fc.constant('unknown key'),
} satisfies Record<string, fc.Arbitrary<unknown>>
/** A body with one to three fields. Bodies with more are nearly always refused. */
const bodies = fc.oneof(
  fc
    .uniqueArray(fc.constantFrom(...(Object.keys(fields) as (keyof typeof fields)[])), { minLength: 1, maxLength: 3 })
    .chain(names => fc.record(Object.fromEntries(names.map(name => [name, fields[name]])), { noNullPrototype: true })),
  fc.record({ external_id: text('.', long(256), 'a\u0007b') }, { noNullPrototype: true }),
)

const refusalOf = ({ error, message, details }: Answer, prefix = ''): Answer | undefined =>
  error === undefined
    ? undefined
    : { error, message: message!, details: details!.map(each => ({ ...each, path: each.path.replace(prefix, '') })) }

const singly = async ({ send }: Organization, operation: string, body: Body, name: string): Promise<Reply> => {
  if (operation === 'create') return send('POST', '/v1/people', body)
  if (operation === 'upsert') return send('POST', '/v1/people/upsert', body)
  return send(operation.toUpperCase(), `/v1/people/${name}`, body)
}

/** Sends the bodies in one batch. A batch that cannot be bound is refused as a whole. */
async function batched({ send }: Organization, operation: string, requests: { body: Body; name: string }[]) {
  const operations = requests.map(({ body, name }) => ({
    op: operation,
    ...(['put', 'patch'].includes(operation) && { external_id: name }),
    body,
  }))
  const { status, body } = await send('POST', '/v1/people/batch', { operations })
  expect({ status, message: body.message ?? '' }).toEqual({ status: 200, message: '' })
  return body.data.items as ({ status: number } & Answer)[]
}

/** All people of an organization in the format of a read, without generated identifiers and times. */
async function stateOf(organization: Organization): Promise<unknown[]> {
  const people = (await exportAll(organization, '/v1/people/export')) as Person[]
  return people
    .map(({ id, created_at, updated_at, consents, ...person }) => ({
      ...person,
      consents: consents.map(({ answered_at, ...consent }) => ({ ...consent, isAnswered: answered_at !== null })),
    }))
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

const operations = ['create', 'upsert', 'put', 'patch'] as const

async function organizationWithPeople(names: string[]): Promise<Organization> {
  const organization = await createShop(
    service,
    { key: 'born', owner: 'people', type: 'date' },
    { key: 'visits', owner: 'people', type: 'number' },
  )
  const people = names.map(external_id => ({ external_id, first_name: 'Stored', attribute_values: { city: 'Bonn' } }))
  if (names.length > 0) await importLines(organization, '/v1/people/import', linesFrom(people))
  return organization
}

it('gives a body the same answer and the same effect in a request of its own, in a batch and in an import', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...operations),
      fc.array(bodies, { minLength: 20, maxLength: 30 }),
      async (operation, given) => {
        const isNew = operation === 'create'
        const requests = given.map((body, index) => {
          const name = `n${index}`
          const padded = { external_id: ` ${name}\t` }
          // An upsert is addressed by its identifier. A batch may have it beside the body, and an import line without
          // it is a create.
          if (operation === 'upsert') return { name, body: { ...body, ...padded } }
          return { name, body: isNew ? { ...padded, ...body } : body }
        })
        const stored = isNew ? [] : requests.map(({ name }) => name)
        const one = await organizationWithPeople(stored)
        const many = await organizationWithPeople(stored)
        const replies = await Promise.all(requests.map(({ body, name }) => singly(one, operation, body, name)))
        const expected = replies.map(({ status, body }) => ({ status, refusal: refusalOf(body as Answer) }))
        const items = await batched(many, operation, requests)
        expect(
          items.map(({ status, ...answer }, index) => ({
            status,
            refusal: refusalOf(answer, `/operations/${index}/body`),
          })),
        ).toEqual(expected)
        const state = await stateOf(one)
        expect(await stateOf(many)).toEqual(state)
        if (operation === 'put' || operation === 'patch') return
        const lines = await organizationWithPeople(stored)
        // With `consents=now`, the import dates its answers as a request does.
        const path = '/v1/people/import?consents=now'
        const { refused } = await importLines(lines, path, linesFrom(requests.map(({ body }) => body)))
        const refusals = new Map(refused.map(({ line, ...answer }) => [line, refusalOf(answer)]))
        expect(requests.map((_, index) => refusals.get(index + 1))).toEqual(expected.map(({ refusal }) => refusal))
        expect(await stateOf(lines)).toEqual(state)
      },
    ),
    someRuns(12),
  )
})

it('refuses what cannot be stored as sent in the same words, but a batch of it as a whole', async () => {
  const { send, ...organization } = await service.organization()
  const texts = ['12345678901234567890', '"\\u0000"', '"\\ud800"', '{"__proto__":1}', '{"b":1,"b":2}']
  for (const text of texts) {
    const body = `{"attribute_values":{"a":${text}}}`
    const one = await send('POST', '/v1/people', body, { 'Content-Type': 'application/json' })
    const batch = `{"operations":[{"op":"create","body":${body}}]}`
    const many = await send('POST', '/v1/people/batch', batch, { 'Content-Type': 'application/json' })
    const { refused } = await importLines({ ...organization, send }, '/v1/people/import', linesFrom([body]))
    const expected = refusalOf(one.body as Answer)
    expect([one.status, expected?.details?.length]).toEqual([400, 1])
    expect([many.status, refusalOf(many.body as Answer, '/operations/0/body')]).toEqual([400, expected])
    expect(refusalOf(refused[0]!)).toEqual(expected)
  }
})
