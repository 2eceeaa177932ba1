import { expect, it } from 'vitest'
import { writable } from '../../client/src/writable.ts'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import { backfillIndexes } from '../entities/indexes/index-backfill.ts'
import { computePhoneKeys } from '../entities/indexes/phone-keys.ts'
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
  // The first search starts the index.
  await search()
  await follow(service.db, [searchFollower()])
  expect((await search()).body.data.items).toMatchObject([{ external_id: 'ada' }])
})

it('shows beside what was written the number in E.164, in every read', async () => {
  await setCountry('DE')
  const written = { mobile_prefix: null, mobile_number: '0171 1000003' }
  const mobile_e164 = '+491711000003'
  const created = await create({ external_id: 'ada', mobile_number: '0171 1000003' })
  expect(created.body.data).toMatchObject({ ...written, mobile_e164 })
  await create({ external_id: 'bob', mobile_number: 'ask' })
  await create({ external_id: 'cy', mobile_number: '+1 650 253 0000 ext. 12' })
  const { items } = await shop.ok('POST', '/v1/people/list', { sorting_type: 'asc' })
  const shown = items.map(({ external_id, mobile_e164 }: Record<string, unknown>) => [external_id, mobile_e164])
  expect(shown).toEqual([
    ['ada', mobile_e164],
    ['bob', null],
    ['cy', null],
  ])
  const fields = ['mobile_e164', 'external_id']
  const body = { filter: { external_id: 'ada' }, fields }
  expect((await shop.ok('POST', '/v1/people/filter', body)).items).toEqual([{ external_id: 'ada', mobile_e164 }])
  expect(await shop.ok('GET', '/v1/people/ada?version=1')).toMatchObject({ ...written, mobile_e164 })
  await setCountry('AT')
  await backfillIndexes(service.db)
  const read = await shop.ok('GET', '/v1/people/ada')
  expect(read).toMatchObject({ ...written, mobile_e164: '+431711000003', version: 1 })
})

it('ignores a number in E.164 beside the written one in a write, and leaves it out of a copy', async () => {
  const written = (await create({ external_id: 'eve', mobile_e164: '+491711000004' })).body.data
  expect(written).toMatchObject({ mobile_number: null, mobile_e164: null })
  const { data } = (await create({ external_id: 'ada', mobile_prefix: '49', mobile_number: '171 1000003' })).body
  const { external_id, ...copy } = writable(data)
  expect((await create(copy)).body.data).toMatchObject({ external_id: null, mobile_e164: '+491711000003' })
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

it('gives the phones of stored people their keys in the background, and tells the log of the setting only', async () => {
  const before = await create({ external_id: 'ada', mobile_number: '333 1234567' })
  expect(before.headers.get('X-Kith-Warning')).toContain('/mobile_number')
  await create({ external_id: 'bob', mobile_number: '333 7654321' })
  await create({ external_id: 'cy', mobile_prefix: '49', mobile_number: '15123456789' })
  await create({ external_id: 'dan', mobile_number: '333 1112222' })
  await shop.ok('POST', '/v1/people/cy/merge', { from: 'dan' })
  const search = async (text: string) =>
    (await shop.ok('POST', '/v1/people/search', { text })).items.map(
      ({ external_id }: { external_id: string }) => external_id,
    )
  // The first search starts the index.
  await shop.send('POST', '/v1/people/search', { text: '39333' })
  await follow(service.db, [searchFollower()])
  await setCountry('IT')
  const head = await shop.head()
  const { version } = await shop.ok('GET', '/v1/people/ada')
  expect(await names({ mobile_number: '3331234567' })).toEqual([])
  expect(await computePhoneKeys(contextOf(service.db, shop.id), { peoplePerStep: 2 })).toBe(3)
  expect(await names({ mobile_number: '+393331234567' })).toEqual(['ada'])
  expect(await names({ mobile_number: '3331112222' })).toEqual(['cy'])
  expect(await names({ mobile_prefix: '49', mobile_number: '15123456789' })).toEqual(['cy'])
  expect((await search('39333')).toSorted()).toEqual(['ada', 'bob', 'cy'])
  expect([await shop.head(), (await shop.ok('GET', '/v1/people/ada')).version]).toEqual([head, version])
  const matched = await shop.send('POST', '/v1/people/upsert', { match: ['mobile'], mobile_number: '+393337654321' })
  expect([matched.status, matched.body.data.external_id]).toEqual([200, 'bob'])
  expect(await computePhoneKeys(contextOf(service.db, shop.id))).toBe(0)
  await setCountry(null)
  await backfillIndexes(service.db)
  for (const number of ['3331234567', '3331112222']) expect(await names({ mobile_number: `+39${number}` })).toEqual([])
  expect(await names({ mobile_prefix: '49', mobile_number: '15123456789' })).toEqual(['cy'])
  expect((await shop.send('POST', '/v1/people/lookup', { mobile_number: '3331234567' })).status).toBe(400)
})

it('goes on after an interruption, beside writes under the new country', async () => {
  for (const n of [0, 1, 2, 3, 4]) await create({ external_id: `p${n}`, mobile_number: `333 123456${n}` })
  await setCountry('IT')
  const stopping = new AbortController()
  const position = () =>
    service.sql('select phone_keys_after as id from organization_settings where organization_id = $1', [shop.id])
  const computed = computePhoneKeys(contextOf(service.db, shop.id), { signal: stopping.signal, peoplePerStep: 2 })
  stopping.abort()
  expect(await computed).toBe(2)
  expect(await position()).toEqual([{ id: (await shop.ok('GET', '/v1/people/p1')).id }])
  await shop.ok('PATCH', '/v1/people/p0', { mobile_number: '333 7654321' })
  await shop.ok('PATCH', '/v1/people/p4', { mobile_prefix: '49', mobile_number: '15123456789' })
  await computePhoneKeys(contextOf(service.db, shop.id))
  expect(await position()).toEqual([{ id: null }])
  const found = await Promise.all(
    ['3337654321', '3331234561', '3331234563'].map(mobile_number => names({ mobile_number })),
  )
  expect(found).toEqual([['p0'], ['p1'], ['p3']])
  expect(await names({ mobile_prefix: '49', mobile_number: '15123456789' })).toEqual(['p4'])
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
