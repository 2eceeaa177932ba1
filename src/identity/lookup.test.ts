import { describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { type Organization, useService } from '../../test/support/service.ts'

const service = useService()

const lookUp = ({ send }: Pick<Organization, 'send'>, body: object) => send('POST', '/v1/people/lookup', body)
const idsIn = async (organization: Organization, body: object) => {
  const { status, body: answer } = await lookUp(organization, body)
  expect(status).toBe(200)
  return answer.data.items.map(({ id }: { id: string }) => id)
}
const create = async ({ send }: Organization, body: object) => (await send('POST', '/v1/people', body)).body.data

describe('a look-up', () => {
  it('finds people by email, phone and external identifier, as reads show them', async () => {
    const shop = await service.organization()
    const ada = await create(shop, {
      external_id: 'ada',
      email: 'Ada@Example.com',
      mobile_prefix: '+39',
      mobile_number: '333 1234567',
      attribute_values: { city: 'London' },
    })
    const bob = await create(shop, { email: 'ada@example.com', mobile_number: '+39 333 123 4567' })
    const both = [ada.id, bob.id]
    const { data } = (await lookUp(shop, { email: 'ADA@example.com' })).body
    expect(data).toEqual({ items: [ada, bob], has_more: false })
    expect(await idsIn(shop, { mobile_prefix: '39', mobile_number: '3331234567' })).toEqual(both)
    expect(await idsIn(shop, { mobile_number: '0039-333-1234567' })).toEqual(both)
    expect((await lookUp(shop, { external_id: 'ada' })).body.data).toEqual({ items: [ada], has_more: false })
    for (const body of [{ email: 'a.da@example.com' }, { external_id: 'Ada' }, { mobile_number: '+39 333 1234568' }])
      expect((await lookUp(shop, body)).body.data).toEqual({ items: [], has_more: false })
  })

  it('finds a person by an alias', async () => {
    const shop = await service.organization()
    const { id } = await create(shop, { external_id: 'ada', email: 'ada@example.com' })
    const body = { match: ['email'], external_id: 'news-7', email: 'ada@example.com' }
    expect((await shop.send('POST', '/v1/people/upsert', body)).status).toBe(200)
    expect(await idsIn(shop, { external_id: 'news-7' })).toEqual([id])
    expect(await idsIn(shop, { external_id: 'ada' })).toEqual([id])
  })

  it('follows what writes change', async () => {
    const shop = await service.organization()
    const { id } = await create(shop, { external_id: 'ada', email: 'ada@example.com', mobile_number: '3331234567' })
    expect(await idsIn(shop, { mobile_number: '+393331234567' })).toEqual([])
    await shop.send('PATCH', '/v1/people/ada', { mobile_prefix: '39' })
    expect(await idsIn(shop, { mobile_number: '+393331234567' })).toEqual([id])
    await shop.send('PATCH', '/v1/people/ada', { mobile_number: null, email: 'new@example.com' })
    expect(await idsIn(shop, { mobile_number: '+393331234567' })).toEqual([])
    expect(await idsIn(shop, { email: 'ada@example.com' })).toEqual([])
    await shop.send('PUT', '/v1/people/ada', { first_name: 'Ada' })
    expect(await idsIn(shop, { email: 'new@example.com' })).toEqual([])
    await shop.send('PATCH', '/v1/people/ada', { email: 'last@example.com' })
    await shop.send('DELETE', '/v1/people/ada')
    expect(await idsIn(shop, { email: 'last@example.com' })).toEqual([])
    await shop.send('POST', `/v1/people/internal/${id}/restore`)
    expect(await idsIn(shop, { email: 'last@example.com' })).toEqual([id])
  })

  it('returns the first hundred of more people in order of id, also of large ones', async () => {
    const shop = await service.organization()
    const people = Array.from({ length: 120 }, (_, n) => ({
      external_id: `p${n}`,
      email: 'info@example.com',
      attribute_values: { text: 'x'.repeat(n % 10 === 0 ? 20_000 : 5_000) },
    }))
    await importLines(shop, '/v1/people/import', linesFrom(people))
    const { data } = (await lookUp(shop, { email: 'info@example.com' })).body
    const ids = data.items.map(({ id }: { id: string }) => id)
    expect([ids.length, data.has_more, ids]).toEqual([100, true, ids.toSorted()])
    expect(data.items[0].attribute_values.text).toHaveLength(20_000)
    const large = await create(shop, {
      external_id: 'large',
      attribute_values: Object.fromEntries(Array.from('abcdefg', key => [key, 'x'.repeat(60_000)])),
    })
    expect((await lookUp(shop, { external_id: 'large' })).body.data.items).toEqual([large])
  })

  it.each([
    [{ email: 'a@example.com', external_id: 'a' }, ''],
    [{ first_name: 'Ada' }, '/first_name'],
    [{ mobile_prefix: '39' }, ''],
    [{ mobile_prefix: '39', email: 'a@example.com' }, '/mobile_prefix'],
    [{ mobile_number: '3331234567' }, '/mobile_number'],
    [{ mobile_prefix: '999', mobile_number: '3331234567' }, '/mobile_number'],
    [{ mobile_prefix: '39', mobile_number: '0' }, '/mobile_number'],
    [{ email: 'nobody' }, '/email'],
    [{ email: null }, '/email'],
    [{ external_id: '' }, '/external_id'],
  ])('refuses %j and names %j', async (body, path) => {
    const shop = await service.organization()
    const reply = await lookUp(shop, body)
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, path])
  })

  it('needs the scope to read people', async () => {
    const { key } = await service.organization()
    const writer = service.sender(await service.tokenFor(key, 'people:write'))
    expect((await lookUp({ send: writer }, { email: 'ada@example.com' })).status).toBe(403)
  })
})
