import { expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'

const service = useOwnService()
const shop = useShop(service)

const setCountry = (default_country: string | null) => shop.send('PATCH', '/v1/schema/settings', { default_country })
const create = (body: object) => shop.send('POST', '/v1/people', body)
const names = async (body: object) =>
  (await shop.ok('POST', '/v1/people/lookup', body)).items.map(
    ({ external_id }: { external_id: string }) => external_id,
  )

it('reads numbers without a prefix in writes, matches, imports, look-ups and searches', async () => {
  expect((await setCountry('IT')).body.data.default_country).toBe('IT')
  const created = await create({ external_id: 'ada', mobile_number: '333 1234567' })
  expect(created.headers.get('X-Kith-Warning')).toBeNull()
  expect(created.body.data).toMatchObject({ mobile_prefix: null, mobile_number: '333 1234567' })
  for (const mobile_number of ['3331234567', '+39 333 1234567', '0039 3331234567'])
    expect(await names({ mobile_number })).toEqual(['ada'])
  expect(await names({ mobile_prefix: '49', mobile_number: '15123456789' })).toEqual([])
  const match = ['mobile']
  const matched = await shop.send('POST', '/v1/people/upsert', {
    match,
    mobile_number: '333-123 4567',
    first_name: 'Ada',
  })
  expect([matched.status, matched.body.data.external_id]).toEqual([200, 'ada'])
  const line = linesFrom([{ match, mobile_number: '333/1234567', last_name: 'Lovelace' }])
  expect((await importLines(shop, '/v1/people/import', line)).counts).toMatchObject({ updated: 1, created: 0 })
  const search = () => shop.send('POST', '/v1/people/search', { text: '(333) 123-4567' })
  // The first search begins the index.
  await search()
  await follow(service.db, [searchFollower()])
  expect((await search()).body.data.items).toMatchObject([{ external_id: 'ada' }])
})

it('leads a number without a prefix of a merged person to the survivor', async () => {
  await setCountry('IT')
  await create({ external_id: 'ada', mobile_number: '333 1234567' })
  await create({ external_id: 'bob', mobile_number: '333 7654321' })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  expect(await names({ mobile_number: '3337654321' })).toEqual(['ada'])
})

it('keeps an erased person away under every notation of a number without a prefix', async () => {
  await setCountry('IT')
  await create({ external_id: 'ada', mobile_number: '333 1234567' })
  const erase = service.sender(await service.tokenFor(shop.key, 'people:erase people:read'))
  expect((await erase('POST', '/v1/people/ada/erase', { reason: 'Request of the person' })).status).toBe(200)
  for (const mobile_number of ['333-1234567', '+393331234567']) {
    const { status, body } = await create({ mobile_number })
    expect([status, body.details?.map(({ path }) => path)]).toEqual([409, ['/mobile_number']])
  }
})

it('applies to what is written later, and leaves the keys of stored people as they are', async () => {
  const before = await create({ external_id: 'ada', mobile_number: '333 1234567' })
  expect(before.headers.get('X-Kith-Warning')).toContain('/mobile_number')
  await setCountry('IT')
  expect(await names({ mobile_number: '3331234567' })).toEqual([])
  await shop.ok('PATCH', '/v1/people/ada', { mobile_number: '3331234567' })
  expect(await names({ mobile_number: '3331234567' })).toEqual(['ada'])
  await setCountry(null)
  expect(await names({ mobile_number: '+393331234567' })).toEqual(['ada'])
  expect((await shop.send('POST', '/v1/people/lookup', { mobile_number: '3331234567' })).status).toBe(400)
  const after = await create({ external_id: 'bob', mobile_number: '333 7654321' })
  expect(after.headers.get('X-Kith-Warning')).toContain('/mobile_number')
})

it.each(['ZZ', 'it', 'ITA', ''])('is refused as a setting if it is no country: %s', async country => {
  const head = await shop.head()
  const { status, body } = await setCountry(country)
  expect([status, body.error, body.details?.map(({ path }) => path)]).toEqual([
    400,
    'invalid_parameter',
    ['/default_country'],
  ])
  expect(await shop.head()).toBe(head)
})
