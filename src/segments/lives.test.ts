import fc from 'fast-check'
import { expect, it } from 'vitest'
import { someRuns } from '../../test/support/runs.ts'
import { followSegments, SegmentMirror } from '../../test/support/segments.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useOwnService()

const some = (key: string, filter: object) => ({ [`attribute_values.${key}`]: { $some: filter } })
const linked = (name: string, operand: object) => ({ [`incoming.${name}`]: operand })
const answered = (state: boolean) => ({ consents: { $some: { consent_type_id: 1, channel: 'email', state } } })
const inRome = { 'attribute_values.city': 'Rome' }

/** The filters of the segments, each with a replacement. */
const segments: Record<string, [object, object]> = {
  rome: [inRome, { 'attribute_values.city': { $in: ['Rome', 'Oslo'] } }],
  high: [{ 'attribute_values.score': { $gte: 2 } }, { 'attribute_values.score': { $lt: 2 } }],
  readers: [answered(true), answered(false)],
  texted: [
    { contactable: { consent_type_id: 1, channel: 'sms' } },
    { $not: { contactable: { consent_type_id: 1, channel: 'sms' } } },
  ],
  romans_without_news: [{ $and: [{ $segment: 'rome' }, { $not: { $segment: 'readers' } }] }, { $segment: 'rome' }],
  of_pro: [some('employer', { 'attribute_values.plan': 'pro' }), { 'attribute_values.employer': 'c1' }],
  not_of_pro: [{ 'attribute_values.employer': { $none: { 'attribute_values.plan': 'pro' } } }, {}],
  friends_of_romans: [some('friends', { $segment: 'rome' }), some('friends', { state: 'active' })],
  all_friends_high: [{ 'attribute_values.friends': { $every: { $segment: 'high' } } }, { first_name: 'n1' }],
  of_roman_founders: [some('employer', some('founder', inRome)), some('employer', { state: 'placeholder' })],
  far: [some('friends', some('employer', some('founder', { 'attribute_values.friends': 'p1' }))), inRome],
  referred_by_p2: [{ 'attribute_values.referrer': 'p2' }, { 'attribute_values.referrer': { $exists: true } }],
  founders_of_pro: [linked('companies.founder', { $some: { 'attribute_values.plan': 'pro' } }), inRome],
  referring_to_nobody: [linked('people.referrer', { $none: {} }), linked('people.referrer', { $count: { $gte: 2 } })],
  liked_by_romans: [linked('people.friends', { $count: { $gte: 1, $lt: 3 }, $where: { $segment: 'rome' } }), inRome],
  with_colleagues: [some('employer', linked('people.employer', { $count: { $gte: 2 } })), inRome],
  founders_of_romans: [
    linked('companies.founder', { $some: linked('people.employer', { $some: inRome }) }),
    linked('companies.founder', { $every: linked('people.employer', { $none: { first_name: 'n1' } }) }),
  ],
  is_p3: [{ external_id: 'p3' }, { external_id: { $starts_with: 'p' } }],
}

const person = fc.constantFrom(...Array.from({ length: 6 }, (_, n) => `p${n}`))
const company = fc.constantFrom('c0', 'c1', 'c2')
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 4 })
const body = fc.record(
  {
    first_name: fc.constantFrom('n0', 'n1', null),
    attribute_values: fc.record(
      {
        city: fc.constantFrom('Rome', 'Oslo', null),
        score: maybe(fc.nat({ max: 4 })),
        friends: fc.uniqueArray(person, { maxLength: 3 }),
        referrer: maybe(person),
        employer: maybe(company),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
    mobile_number: fc.constantFrom('+390612345', null),
    consents: fc
      .record({ consent_type_id: fc.constant(1), channel: fc.constantFrom('email', 'sms'), state: fc.boolean() })
      .map(answer => [answer]),
  },
  { requiredKeys: [], noNullPrototype: true },
)
const companyBody = fc.record(
  { plan: fc.constantFrom('pro', 'free', null), founder: maybe(person) },
  { requiredKeys: [], noNullPrototype: true },
)

/** A step of a life. kith may refuse its requests. */
type Step = { name: string; run: (shop: Organization, known: Known) => Promise<unknown> }
/** The created internal identifiers, and the mirrors of the segments. */
type Known = { ids: string[]; mirrors: SegmentMirror[] }

const at = (name: string) => `/v1/people/${name}`
const steps: fc.Arbitrary<Step>[] = [
  fc.record({ name: person, body }).map(({ name, body }) => ({
    ...{ name: `upsert ${name} ${JSON.stringify(body)}` },
    run: async (shop, known) => {
      const { body: reply } = await shop.send('POST', '/v1/people/upsert', { external_id: name, ...body })
      if (reply.data?.id) known.ids.push(reply.data.id)
    },
  })),
  fc.record({ name: company, attribute_values: companyBody }).map(({ name, attribute_values }) => ({
    ...{ name: `put ${name} ${JSON.stringify(attribute_values)}` },
    run: shop => shop.send('POST', '/v1/stacks/companies/upsert', { external_id: name, attribute_values }),
  })),
  person.map(name => ({ name: `delete ${name}`, run: shop => shop.send('DELETE', at(name)) })),
  company.map(name => ({
    ...{ name: `delete ${name}` },
    run: shop => shop.send('DELETE', `/v1/stacks/companies/${name}`),
  })),
  fc.nat().map(n => ({
    ...{ name: `restore ${n}` },
    run: async (shop, { ids }) =>
      ids.length > 0 && shop.send('POST', `/v1/people/internal/${ids[n % ids.length]}/restore`),
  })),
  fc.tuple(person, person).map(([into, from]) => ({
    ...{ name: `merge ${from} into ${into}` },
    run: shop => shop.send('POST', `${at(into)}/merge`, { from }),
  })),
  fc.tuple(person, person).map(([into, from]) => ({
    ...{ name: `unmerge ${from} from ${into}` },
    run: shop => shop.send('POST', `${at(into)}/unmerge`, { from }),
  })),
  person.map(name => ({
    ...{ name: `erase ${name}` },
    run: shop => shop.send('POST', `${at(name)}/erase`, { reason: 'x' }),
  })),
  fc.tuple(person, person).map(([name, next]) => ({
    ...{ name: `rename ${name} to ${next}` },
    run: shop => shop.send('PATCH', at(name), { external_id: next }),
  })),
]
const changesOfDefinitions: fc.Arbitrary<Step>[] = [
  fc.record({ key: fc.constantFrom(...Object.keys(segments)), which: fc.constantFrom(0, 1) }).map(({ key, which }) => ({
    ...{ name: `filter ${key} ${which}` },
    run: shop => shop.send('PATCH', `/v1/segments/${key}`, { filter: segments[key]![which]! }),
  })),
  fc.boolean().map(default_state => ({
    ...{ name: `default ${default_state}` },
    run: shop => shop.send('PATCH', '/v1/schema/consent-types/1', { default_state }),
  })),
  fc.constantFrom('active', 'archived').map(state => ({
    ...{ name: `the employer is ${state}` },
    run: shop => shop.send('PATCH', '/v1/schema/attributes/3', { state }),
  })),
]
const follow: fc.Arbitrary<Step> = fc.boolean().map(reads => ({
  ...{ name: reads ? 'follow and read' : 'follow' },
  run: async (_, { mirrors }) => {
    await followSegments(service)
    if (reads) for (const mirror of mirrors) await mirrorWhileValid(mirror)
  },
}))

const life = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: fc.oneof({ weight: 5, arbitrary: steps[0]! }, ...steps) },
    { weight: 1, arbitrary: fc.oneof(...changesOfDefinitions) },
    { weight: 3, arbitrary: follow },
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
)

/**
 * Mirrors a segment while its filter is valid. A filter that tests an archived relationship has no feed until it is
 * repaired.
 */
async function mirrorWhileValid(mirror: SegmentMirror): Promise<boolean> {
  try {
    await mirror.follow()
    return true
  } catch (error) {
    if (!(error as Error).message.includes('not valid any more')) throw error
    return false
  }
}

it(
  'replaying the feed of a segment gives exactly the people that its filter finds',
  () =>
    fc.assert(
      fc.asyncProperty(life, async lived => {
        const shop = await createShop(service, 'referrer', 'friends', 'employer', {
          owner: 'companies',
          key: 'founder',
          type: 'person',
        })
        const known: Known = { ids: [], mirrors: [] }
        for (const [key, [filter]] of Object.entries(segments)) {
          const { status, body } = await shop.send('POST', '/v1/segments', { key, filter })
          expect([status, body.details]).toEqual([201, undefined])
          known.mirrors.push(new SegmentMirror(shop, key))
        }
        for (const step of lived) await step.run(shop, known)
        await followSegments(service)
        for (const mirror of known.mirrors) {
          if (!(await mirrorWhileValid(mirror))) continue
          const filter = { $segment: mirror.key }
          const page = await shop.send('POST', '/v1/people/filter', { filter, cursor_configuration: { size: 500 } })
          const found = page.body.data.items.map(({ id }: { id: string }) => id)
          expect([mirror.key, [...mirror.people].sort()]).toEqual([mirror.key, found.sort()])
        }
      }),
      someRuns(5),
    ),
  240_000,
)
