import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'orders')
const path = '/v1/import-mappings'
const people = { owner: 'people', header: ['Nr', 'Ort'], fields: ['external_id', 'attribute_values.city'] }

it('remembers one mapping for each owner and header, newest first, until somebody forgets it', async () => {
  await shop.ok('PUT', path, people)
  const orders = await shop.ok('PUT', path, { ...people, owner: 'orders', fields: ['external_id', null] })
  await shop.ok('PUT', path, { ...people, fields: ['external_id', null] })
  const { items } = await shop.ok('GET', path)
  expect(items).toMatchObject([
    { owner: 'people', header: ['Nr', 'Ort'], fields: ['external_id', null], actor: expect.any(String) },
    { owner: 'orders', id: orders.id },
  ])
  await shop.ok('DELETE', `${path}/${orders.id}`)
  expect((await shop.ok('GET', path)).items).toHaveLength(1)
  expect((await shop.send('DELETE', `${path}/${orders.id}`)).status).toBe(404)
})

it.each([
  ['another number of fields', { ...people, fields: [null] }],
  ['an owner that does not exist', { ...people, owner: 'nothing' }],
  ['no columns', { ...people, header: [], fields: [] }],
])('refuses %s and remembers nothing', async (_, body) => {
  expect((await shop.send('PUT', path, body)).status).toBe(400)
  expect((await shop.ok('GET', path)).items).toEqual([])
})

it('keeps the newest 200, and shows none to another organization', async () => {
  for (let n = 0; n < 201; n++) await shop.ok('PUT', path, { owner: 'people', header: [`c${n}`], fields: [null] })
  const { items } = await shop.ok('GET', path)
  expect([items.length, items[0].header, items.at(-1).header]).toEqual([200, ['c200'], ['c1']])
  const { client } = await service.organization()
  expect(await client.imports.mappings()).toEqual([])
  await expect(client.imports.forgetMapping(items[0].id)).rejects.toMatchObject({ status: 404 })
})
