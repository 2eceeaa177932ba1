import fc from 'fast-check'
import { expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import { type Shop, useShop } from '../../test/support/shop.ts'
import { backfillIndexes } from '../entities/indexes/index-backfill.ts'
import { type Definitions, readDefinitions } from './definitions.ts'

const service = useOwnService()
const shop = useShop(service)

const key = fc.constantFrom('a', 'b', 'c', 'd')
const id = fc.integer({ min: 1, max: 4 })
const attribute = fc.record({
  ...{ key, owner: fc.constantFrom('people', 'a', 'b'), type: fc.constantFrom('text', 'number', 'person') },
  indexed: fc.boolean(),
})
const filter = fc.constantFrom({}, { first_name: 'Ada' })

type Request = [method: string, path: string, body?: unknown] | 'fill'

/** Requests that change the definitions, including some that are refused. */
const request: fc.Arbitrary<Request> = fc.oneof(
  fc.tuple(fc.constant('POST'), fc.constant('/v1/schema/attributes'), attribute),
  fc.tuple(
    fc.constant('POST'),
    fc.constant('/v1/schema/attributes/batch'),
    fc.record({ items: fc.array(attribute, { maxLength: 3 }) }),
  ),
  fc.tuple(
    fc.constant('PATCH'),
    id.map(number => `/v1/schema/attributes/${number}`),
    fc.record({ name: key, indexed: fc.boolean(), state: fc.constantFrom('active', 'archived') }, { requiredKeys: [] }),
  ),
  fc.tuple(fc.constant('POST'), fc.constant('/v1/schema/stacks'), fc.record({ key, kind: fc.constant('item') })),
  fc.tuple(
    fc.constant('PATCH'),
    key.map(name => `/v1/schema/stacks/${name}`),
    fc.record({ name: key }),
  ),
  fc.tuple(
    fc.constant('POST'),
    fc.constant('/v1/schema/consent-types'),
    fc.record({ key, channels: fc.constant([{ channel: 'email', is_default: true }]) }),
  ),
  fc.tuple(
    fc.constant('PATCH'),
    id.map(number => `/v1/schema/consent-types/${number}`),
    fc.record({ name: key }),
  ),
  fc.tuple(
    fc.constant('POST'),
    id.map(number => `/v1/schema/consent-types/${number}/texts`),
    fc.constant({ language: 'en', text: 'May we?' }),
  ),
  fc.tuple(fc.constant('POST'), fc.constant('/v1/segments'), fc.record({ key, filter })),
  fc.tuple(
    fc.constant('PATCH'),
    key.map(name => `/v1/segments/${name}`),
    fc.record({ filter }),
  ),
  fc.tuple(
    fc.constant('DELETE'),
    key.map(name => `/v1/segments/${name}`),
  ),
  fc.tuple(
    fc.constant('PATCH'),
    fc.constant('/v1/schema/settings'),
    fc.record({ time_zone: fc.constantFrom('Europe/Rome', 'UTC') }),
  ),
  fc.tuple(
    fc.constant('POST'),
    fc.constant('/v1/people/list'),
    fc.constant({ sort: { field: 'last_name', direction: 'asc' } }),
  ),
  fc.constant('fill' as const),
)

const read = ({ id }: Shop, base?: Definitions) => readDefinitions({ db: service.db, organization_id: id }, base)

it('the definitions that a process has, with what changed since, are those of the database', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 0, max: 11 }),
      async (requests, rare) => {
        await shop.renew()
        let each = await read(shop)
        let some = each
        for (const [index, next] of requests.entries()) {
          if (next === 'fill') await backfillIndexes(service.db)
          else await shop.send(...next)
          each = await read(shop, each)
          if (index === rare) some = await read(shop, some)
          expect(each).toEqual(await read(shop))
        }
        expect(await read(shop, some)).toEqual(each)
      },
    ),
    { numRuns: 40 },
  )
})

it('the definitions of a version that the database does not have are read anew', async () => {
  await shop.ok('POST', '/v1/schema/attributes', { key: 'a', owner: 'people', type: 'text' })
  const current = await read(shop)
  const lost = { ...current, version: current.version + 3, attributes: [] }
  expect(await read(shop, lost)).toEqual(current)
})

it('what did not change stays the same object', async () => {
  for (const key of ['a', 'b']) await shop.ok('POST', '/v1/schema/attributes', { key, owner: 'people', type: 'text' })
  const base = await read(shop)
  await shop.ok('PATCH', '/v1/schema/attributes/2', { name: 'B' })
  const next = await read(shop, base)
  expect(next.attributes.map(({ name }) => name)).toEqual(['a', 'B'])
  expect(next.attributes[0]).toBe(base.attributes[0])
  expect(next.consent_types).toBe(base.consent_types)
})
