import fc from 'fast-check'
import { expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop } from '../../../test/support/shop.ts'

const service = useService()

type Consent = { consent_type_id: number; channel: string; state: boolean }

const channels = fc
  .uniqueArray(fc.constantFrom('email', 'sms'), { minLength: 1 })
  .map(names => names.map(channel => ({ channel })))
const consentType = fc.record({ channels, mandatory: fc.boolean(), default_state: fc.boolean() })
const patch = fc.record(
  { state: fc.constantFrom('active', 'archived'), channels, mandatory: fc.boolean(), default_state: fc.boolean() },
  { requiredKeys: [] },
)
const maxTypes = 4
const answer = fc.record({
  consent_type_id: fc.integer({ min: 1, max: maxTypes }),
  channel: fc.constantFrom('email', 'sms'),
  state: fc.boolean(),
})

const definitions = fc.record({
  types: fc.array(consentType, { maxLength: maxTypes - 1 }),
  answers: fc.array(answer, { minLength: 6, maxLength: 12 }),
  patches: fc.array(patch, { maxLength: maxTypes }),
})

/** All conditions on a consent. An absent type, channel or state matches any. */
const conditions = [undefined, 1, 2, 3, 4].flatMap(consent_type_id =>
  [undefined, 'email', 'sms'].flatMap(channel =>
    [undefined, true, false].map(state => ({
      ...(consent_type_id && { consent_type_id }),
      ...(channel && { channel }),
      ...(state !== undefined && { state }),
    })),
  ),
)

it('a filter finds exactly the people whose reads show such a consent, and is refused only if nobody has it', async () => {
  const property = fc.asyncProperty(definitions, async ({ types, answers, patches }) => {
    const { send } = await service.organization()
    const path = '/v1/schema/consent-types'
    for (const [index, type] of types.entries()) await send('POST', path, { ...type, key: `type${index}` })
    // Creates a person without answers, and one for each answer that the definitions allow.
    await send('POST', '/v1/people', {})
    for (const given of answers) await send('POST', '/v1/people', { consents: [given] })
    for (const [index, changes] of patches.entries()) await send('PATCH', `${path}/${index + 1}`, changes)

    const { items } = (await send('POST', '/v1/people/list', {})).body.data
    for (const condition of conditions) {
      const matches = (consent: Consent) =>
        Object.entries(condition).every(([name, value]) => consent[name as keyof Consent] === value)
      const expected = items.filter(({ consents }: { consents: Consent[] }) => consents.some(matches))
      const { status, body } = await send('POST', '/v1/people/filter', { filter: { consents: { $some: condition } } })
      expect([condition, status === 400 ? [] : body.data.items]).toEqual([condition, expected])
    }
  })
  await fc.assert(property, someRuns(12))
})

const purpose = fc.record({
  channels: fc
    .uniqueArray(fc.constantFrom('email', 'sms'), { minLength: 1 })
    .chain(names =>
      fc.tuple(...names.map(channel => fc.record({ channel: fc.constant(channel), double_opt_in: fc.boolean() }))),
    ),
  mandatory: fc.boolean(),
  default_state: fc.boolean(),
})
const reachable = fc.record(
  {
    email: fc.constant('ada@example.com'),
    mobile_number: fc.constant('+390612345'),
    consents: fc.array(answer, { maxLength: 3 }),
  },
  { requiredKeys: ['consents'] },
)

it('finds exactly the people who may be written to, by the answers of contact decisions, and refuses the questions that these refuse', async () => {
  const world = fc.record({
    purposes: fc.array(purpose, { minLength: 1, maxLength: 3 }),
    people: fc.array(reachable, { minLength: 8, maxLength: 12 }),
    patches: fc.array(patch, { maxLength: 3 }),
  })
  const property = fc.asyncProperty(world, async ({ purposes, people, patches }) => {
    const { send } = await service.organization()
    const path = '/v1/schema/consent-types'
    for (const [index, type] of purposes.entries()) await send('POST', path, { ...type, key: `type${index}` })
    const external_ids: string[] = []
    for (const [index, { email, ...person }] of people.entries()) {
      const written = { ...person, ...(email && { email: `p${index}@example.com` }), external_id: `p${index}` }
      const { status } = await send('POST', '/v1/people', written)
      if (status === 201) external_ids.push(written.external_id)
    }
    await send('POST', '/v1/people', { external_id: 'nobody' })
    external_ids.push('nobody')
    for (const [index, changes] of patches.entries()) await send('PATCH', `${path}/${index + 1}`, changes)

    for (const consent_type_id of [1, 2, 3, 4])
      for (const channel of ['email', 'sms']) {
        const question = { consent_type_id, channel }
        const decided = await send('POST', '/v1/people/contactable', { external_ids, ...question })
        const body = { filter: { contactable: question }, sort_direction: 'asc' }
        const found = await send('POST', '/v1/people/filter', body)
        expect([question, found.status]).toEqual([question, decided.status])
        if (found.status !== 200) continue
        const allowed = decided.body.data.items.filter((item: { allowed: boolean }) => item.allowed)
        const names = (items: { external_id: string }[]) => items.map(({ external_id }) => external_id)
        expect([question, names(found.body.data.items)]).toEqual([question, names(allowed)])
        const others = await send('POST', '/v1/people/filter', {
          filter: { $not: { contactable: question } },
          count: true,
        })
        expect(others.body.data.count).toBe(external_ids.length - allowed.length)
      }
  })
  await fc.assert(property, someRuns(12))
})

it('names what is wrong with the question of who may be written to', async () => {
  const shop = await createShop(service)
  const cases: [unknown, string, string][] = [
    [true, '/filter/contactable', 'must be an object of consent_type_id and channel'],
    [{}, '/filter/contactable/consent_type_id', 'is required'],
    [{ consent_type_id: 1 }, '/filter/contactable/channel', 'is required'],
    [
      { consent_type_id: 99, channel: 'email' },
      '/filter/contactable/consent_type_id',
      'is not a consent type of the organization',
    ],
    [{ consent_type_id: 1, channel: 'fax' }, '/filter/contactable/channel', 'must be one of: email, sms'],
    [{ consent_type_id: 1, channel: 'email', state: true }, '/filter/contactable/state', 'unknown key'],
  ]
  for (const [contactable, path, message] of cases) {
    const { status, body } = await shop.send('POST', '/v1/people/filter', { filter: { contactable } })
    expect([status, body.details]).toEqual([400, [{ path, message }]])
  }
  const inQuery = '/v1/people/filter?filter[contactable][consent_type_id]=1&filter[contactable][channel]=email'
  expect((await shop.send('POST', inQuery)).status).toBe(200)
  const many = { $or: Array.from({ length: 51 }, () => ({ contactable: { consent_type_id: 1, channel: 'email' } })) }
  const { body } = await shop.send('POST', '/v1/people/filter', { filter: many })
  expect(body.details).toMatchObject([{ message: 'exceeds the maximum of 50 conditions in a filter' }])
  const fifty = { $or: many.$or.slice(1) }
  expect((await shop.send('POST', '/v1/people/filter', { filter: fifty })).status).toBe(200)
})

type Answered = Consent & { pending?: true; text_version?: number; method?: string; answered_at: string | null }

const times = ['2020-01-01T00:00:00.000Z', '2020-06-01T12:00:00.001Z', '2021-01-01T00:00:00.000Z']
const answered = fc.record(
  {
    consent_type_id: fc.constantFrom(1, 2),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
    collected_at: fc.constantFrom(...times),
    method: fc.constantFrom('import', 'web_form', 'double_opt_in'),
    text_version: fc.constantFrom(1, 2, 3),
  },
  { requiredKeys: ['consent_type_id', 'channel', 'state', 'collected_at'] },
)
const tests = <T>(value: fc.Arbitrary<T>, isOrdered: boolean) =>
  fc.oneof(
    fc.option(value),
    ...['$eq', '$neq', ...(isOrdered ? ['$lt', '$lte', '$gt', '$gte'] : [])].map(operator =>
      value.map(operand => ({ [operator]: operand })),
    ),
    ...['$in', '$nin'].map(operator =>
      fc.array(fc.option(value), { maxLength: 2 }).map(operands => ({ [operator]: operands })),
    ),
    fc.boolean().map($exists => ({ $exists })),
  )
const evidence = fc.record(
  {
    consent_type_id: fc.constantFrom(1, 2),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
    pending: fc.boolean(),
    text_version: tests(fc.constantFrom(1, 2, 3, 4), true),
    method: tests(fc.constantFrom('import', 'web_form', 'phone'), false),
    answered_at: tests(fc.constantFrom(...times, '2020-06-01T14:00:00.001+02:00', '2020-06-01T12:00:00.0011Z'), true),
  },
  { requiredKeys: [] },
)

/** The time in tenths of a millisecond. */
const tenths = (text: string) => Date.parse(text) * 10 + Number(/\.\d{3}(\d)/.exec(text)?.[1] ?? 0)

/** Whether a value of a read passes a test, by the documentation. */
function passes(value: unknown, test: unknown): boolean {
  const comparable = (one: unknown) => (typeof one === 'string' && one.includes('T') ? tenths(one) : one) as number
  const equals = (operand: unknown) => comparable(operand) === comparable(value ?? null)
  if (typeof test !== 'object' || test === null) return equals(test)
  return Object.entries(test).every(([operator, operand]) => {
    if (operator === '$eq') return equals(operand)
    if (operator === '$neq') return !equals(operand)
    if (operator === '$in') return operand.some(equals)
    if (operator === '$nin') return !operand.some(equals)
    if (operator === '$exists') return ((value ?? null) !== null) === operand
    if ((value ?? null) === null) return false
    const difference = comparable(value) - comparable(operand)
    if (operator === '$lt') return difference < 0
    if (operator === '$lte') return difference <= 0
    return operator === '$gt' ? difference > 0 : difference >= 0
  })
}

it('a filter on evidence and its negation split the people as their reads do', async () => {
  const both = [{ channel: 'email' as const, double_opt_in: true }, { channel: 'sms' as const }]
  const { send } = await createShop(
    service,
    { key: 'letters', channels: both, default_state: true },
    { key: 'law', channels: [{ channel: 'sms' }], mandatory: true },
  )
  for (const type of [1, 2])
    for (const text of ['a', 'b', 'c'])
      await send('POST', `/v1/schema/consent-types/${type}/texts`, { language: 'en', text })
  for (const given of [[], ...fc.sample(fc.array(answered, { maxLength: 3 }), 40)]) {
    const { body } = await send('POST', '/v1/people', {})
    for (const consents of given) await send('PATCH', `/v1/people/internal/${body.data.id}`, { consents: [consents] })
  }
  const { items } = (await send('POST', '/v1/people/list', { cursor_configuration: { size: 100 } })).body.data
  type Person = { id: string; consents: Answered[] }
  const idsOf = (people: Person[]) => people.map(({ id }) => id)
  const property = fc.asyncProperty(evidence, async condition => {
    const matches = (consent: Answered) =>
      Object.entries(condition).every(([name, test]) =>
        passes({ pending: false, ...consent }[name as keyof Answered], test),
      )
    const filter = { consents: { $some: condition } }
    for (const isNegated of [false, true]) {
      const expected = items.filter(({ consents }: Person) => consents.some(matches) !== isNegated)
      const reply = await send('POST', '/v1/people/filter', {
        filter: isNegated ? { $not: filter } : filter,
        cursor_configuration: { size: 100 },
      })
      expect([reply.status, idsOf(reply.body.data.items)]).toEqual([200, idsOf(expected)])
    }
  })
  await fc.assert(property, someRuns(60))
})

it('a filter on evidence in a query string has the types of its fields', async () => {
  const { send } = await service.organization()
  await send('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'a' })
  const consents = [{ consent_type_id: 1, channel: 'email', state: true, text_version: 1, method: 'paper' }]
  await send('POST', '/v1/people', { external_id: 'ada', consents })
  const path = '/v1/people/filter?filter[consents][$some]'
  for (const [condition, count] of [
    ['[text_version]=1', 1],
    ['[text_version][$gt]=1', 0],
    ['[method][$in][0]=paper', 1],
    ['[answered_at][$exists]=true', 1],
    ['[pending]=false', 1],
    ['[pending]=true', 0],
  ] as const)
    expect((await send('POST', `${path}${condition}`)).body.data.items).toHaveLength(count)
})
