import fc from 'fast-check'
import { expect, it } from 'vitest'
import { writable } from '../../client/index.ts'
import { exportAll, importLines, linesFrom } from '../../test/support/lines.ts'
import { eachFlag, eachText } from '../../test/support/profile.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { createShop, type Definition } from '../../test/support/shop.ts'

const service = useService()

const stacks = ['orders', 'visits'] as const
const names = ['a', 'b', 'c', 'd', 'É', 'x y'] as const
const paths = ['/v1/people', ...stacks.map(stack => `/v1/stacks/${stack}`)]

/** Both organizations have the same definitions in the same order, so that the ids of consent types are equal. */
const definitions: Definition[] = [
  ...(['referrer', 'bought', 'visitor', 'score'] as const),
  { owner: 'orders', key: 'buyers', type: 'person', cardinality: 'many' },
  { key: 'offers', channels: [{ channel: 'email' }], default_state: true },
  { key: 'law', channels: [{ channel: 'sms' }], mandatory: true },
]

const number = fc
  .double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 })
  .map(value => Number(value.toFixed(3)))
const word = fc.string({ unit: 'grapheme', maxLength: 12 }).map(text => text.replaceAll('\0', '').trim())
const json = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 2 },
    word,
    number,
    fc.boolean(),
    fc.constant({}),
    fc.constant([]),
    tie('list'),
    tie('map'),
  ),
  member: fc.oneof(tie('value'), fc.constant(null)),
  list: fc.array(tie('member'), { maxLength: 3 }),
  map: fc.dictionary(fc.stringMatching(/^[a-z "\\]{1,4}$/), tie('member'), { maxKeys: 3 }),
})).value
const name = fc.constantFrom(...names)
const answer = fc.record({ consent_type_id: fc.constantFrom(1, 2), channel: fc.constant('email'), state: fc.boolean() })
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const profile = {
  ...eachText((): fc.Arbitrary<unknown> => optional(word)),
  ...eachFlag(() => optional(fc.boolean())),
  email: optional(fc.constant('ada@example.org')),
  mobile_prefix: optional(fc.constant('+39')),
  mobile_number: optional(fc.constantFrom('333 1234567', '1')),
  language: optional(fc.constantFrom('en', 'pt-BR')),
  date_of_birth: optional(fc.constant('1990-02-28')),
}
const person = fc.record({
  ...profile,
  consents: fc.uniqueArray(answer, { selector: ({ consent_type_id }) => consent_type_id, maxLength: 2 }),
  attribute_values: fc.record({
    referrer: optional(name),
    bought: optional(fc.uniqueArray(name, { maxLength: 3 })),
    score: optional(number),
    free: optional(json),
  }),
})
const record = (links: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record({ attribute_values: fc.record({ ...links, free: optional(json) }) })

const organization = fc.record({
  '/v1/people': fc.dictionary(name, person),
  '/v1/stacks/orders': fc.dictionary(name, record({ buyers: optional(fc.uniqueArray(name, { maxLength: 3 })) })),
  '/v1/stacks/visits': fc.dictionary(name, record({ visitor: optional(name) })),
})

/** An entity without the fields that differ between organizations: identifiers, versions and times. */
function comparable(read: Record<string, unknown>) {
  const { id, record_id, version, created_at, updated_at, ...rest } = read
  const consents = (rest.consents as { answered_at: string | null }[] | undefined)?.map(
    ({ answered_at, ...consent }) => ({
      ...consent,
      answered: answered_at !== null,
    }),
  )
  return consents ? { ...rest, consents } : rest
}

async function reads(from: Organization): Promise<Record<string, unknown>[][]> {
  const all: Record<string, unknown>[][] = []
  // The exports run one after the other, because an organization may run two at a time.
  for (const path of paths) all.push((await exportAll(from, `${path}/export`)).map(comparable))
  return all.map(entities => entities.sort((a, b) => (String(a.external_id) < String(b.external_id) ? -1 : 1)))
}

it('reads the same after an export and an import into an empty organization', async () => {
  await fc.assert(
    fc.asyncProperty(organization, async generated => {
      const [from, to] = [await createShop(service, ...definitions), await createShop(service, ...definitions)]
      for (const [path, entities] of Object.entries(generated)) {
        const lines = Object.entries(entities).map(([external_id, body]) => ({ external_id, ...body }))
        expect((await importLines(from, `${path}/import`, linesFrom(lines))).refused).toEqual([])
      }
      const before = await reads(from)
      for (const path of paths) {
        const exported = await exportAll(from, `${path}/export`)
        const bodies = exported.filter(({ state }) => state === 'active').map(read => writable(read as never))
        const { counts, refused } = await importLines(to, `${path}/import`, linesFrom(bodies))
        expect({ refused, created: counts.created }).toEqual({ refused: [], created: bodies.length })
      }
      expect(await reads(to)).toEqual(before)
    }),
    someRuns(25),
  )
}, 120_000)

it('changes nothing by writing back what was read, also links to targets without an external identifier', async () => {
  await fc.assert(
    fc.asyncProperty(organization, fc.subarray([...names], { minLength: 1 }), async (generated, unnamed) => {
      const shop = await createShop(service, ...definitions)
      for (const [path, entities] of Object.entries(generated)) {
        const lines = Object.entries(entities).map(([external_id, body]) => ({ external_id, ...body }))
        expect((await importLines(shop, `${path}/import`, linesFrom(lines))).refused).toEqual([])
      }
      for (const name of unnamed)
        for (const path of ['/v1/people', '/v1/stacks/orders'])
          await shop.send('PATCH', `${path}/${encodeURIComponent(name)}`, { external_id: null })
      for (const path of paths) {
        const before = await exportAll(shop, `${path}/export`)
        const bodies = before.filter(({ state }) => state === 'active').map(read => writable(read as never))
        const named = bodies.filter(({ external_id }) => external_id !== null)
        expect(await importLines(shop, `${path}/import`, linesFrom(named))).toMatchObject({
          refused: [],
          counts: { unchanged: named.length },
        })
        if (path !== '/v1/stacks/visits')
          for (const { id, record_id, attribute_values } of before as { [key: string]: string }[])
            expect(await shop.send('PATCH', `${path}/internal/${id ?? record_id}`, { attribute_values })).toMatchObject(
              {
                status: 200,
              },
            )
        expect(await exportAll(shop, `${path}/export`)).toEqual(before)
      }
    }),
    someRuns(15),
  )
}, 120_000)
