import fc from 'fast-check'
import { expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop, type Shop } from '../../../test/support/shop.ts'

const service = useService()

const erased = ['7', '8', '9']
const emailOf = (name: string) => `p${name}@example.com`
const mobileOf = (name: string) => ({ mobile_prefix: '39', mobile_number: `333123456${name}` })

/** Creates an organization with two people, a record and three erased people. */
async function createErased(): Promise<Shop> {
  const shop = await createShop(service, 'referrer', 'friends', 'buyer')
  for (const external_id of ['p', 'q']) await shop.ok('POST', '/v1/people', { external_id })
  await shop.ok('POST', '/v1/stacks/orders', { external_id: 'o' })
  for (const external_id of erased) {
    const body = { external_id, email: emailOf(external_id), ...mobileOf(external_id) }
    await shop.ok('POST', '/v1/people', body)
    await shop.ok('POST', `/v1/people/${external_id}/erase`, { reason: 'Request of the person' })
  }
  return shop
}

/** Returns the erased identifiers that lead to an existing person. */
async function findReturned({ send, ok }: Shop): Promise<string[]> {
  const found: string[] = []
  for (const name of erased) {
    if ((await send('GET', `/v1/people/${name}`)).status !== 404) found.push(name)
    for (const sought of [{ external_id: name }, { email: emailOf(name) }, mobileOf(name)])
      if ((await ok('POST', '/v1/people/lookup', sought)).items.length > 0) found.push(JSON.stringify(sought))
  }
  return found
}

const living = fc.constantFrom('p', 'q')
const gone = fc.constantFrom(...erased)
const target = fc.oneof({ weight: 3, arbitrary: gone }, { weight: 1, arbitrary: living })
const many = fc.uniqueArray(target, { minLength: 1, maxLength: 3 })
const values = fc.oneof(
  target.map(referrer => ({ referrer })),
  many.map(friends => ({ friends })),
  many.map(names => ({ friends: { $add: names } })),
  fc.constant({ friends: [], referrer: null }),
)
const personBody = fc.oneof(
  values.map(attribute_values => ({ attribute_values })),
  gone.map(name => ({ email: emailOf(name) })),
  gone.map(mobileOf),
  fc.constant({ email: 'other@example.com', mobile_prefix: '39', mobile_number: '3339999999' }),
  // The number and the prefix of one erased person, in separate writes.
  gone.map(name => ({ mobile_number: mobileOf(name).mobile_number })),
  fc.constantFrom('39', null).map(mobile_prefix => ({ mobile_prefix })),
)
const personOperation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('patch'), external_id: living, body: personBody }) },
  gone.chain(external_id => living.map(name => ({ op: 'patch', external_id: name, body: { external_id } }))),
  fc
    .tuple(fc.constantFrom('create', 'upsert'), fc.oneof(target, fc.constant('new')), personBody)
    .map(([op, external_id, body]) => ({ op, body: { external_id, ...body } })),
)
const recordOperation = fc
  .tuple(fc.constantFrom('patch', 'upsert'), target)
  .map(([op, buyer]) =>
    op === 'patch'
      ? { op, external_id: 'o', body: { attribute_values: { buyer } } }
      : { op, body: { external_id: 'o', attribute_values: { buyer } } },
  )

/** Generates writes that arrive together: the operations of a batch, or concurrent requests. */
const set = fc.record({
  path: fc.constantFrom('/v1/people', '/v1/stacks/orders'),
  people: fc.array(personOperation, { minLength: 1, maxLength: 6 }),
  records: fc.array(recordOperation, { minLength: 1, maxLength: 4 }),
  isBatch: fc.boolean(),
})

const methods: Record<string, string> = { patch: 'PATCH', create: 'POST', upsert: 'POST' }

it('gives no write of a set an identifier of an erased person, whatever an earlier write of it is refused for', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(set, { minLength: 1, maxLength: 3 }), async sets => {
      const shop = await createErased()
      for (const { path, people, records, isBatch } of sets) {
        const operations = path === '/v1/people' ? people : records
        if (isBatch) await shop.ok('POST', `${path}/batch`, { operations })
        else
          await Promise.all(
            operations.map(({ op, body, ...named }) => {
              const at = 'external_id' in named ? `/${named.external_id}` : op === 'upsert' ? '/upsert' : ''
              return shop.send(methods[op]!, `${path}${at}`, body)
            }),
          )
      }
      expect(await findReturned(shop)).toEqual([])
    }),
    someRuns(75),
  )
})

it('refuses each of several patches of one person that link to erased people, and a rename behind them', async () => {
  const shop = await createErased()
  const patch = (body: object) => ({ op: 'patch', external_id: 'p', body })
  const operations = [
    patch({ attribute_values: { referrer: '7' } }),
    patch({ attribute_values: { referrer: '8' } }),
    patch({ attribute_values: { friends: { $add: ['9'] } } }),
    patch({ email: emailOf('7') }),
    patch({ external_id: '8' }),
    patch({ first_name: 'Ada' }),
  ]
  const { items } = await shop.ok('POST', '/v1/people/batch', { operations })
  expect(items.map(({ status }: { status: number }) => status)).toEqual([409, 409, 409, 409, 409, 200])
  expect(await findReturned(shop)).toEqual([])
})
