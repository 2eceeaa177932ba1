import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useService()

it('the schema contains what the lists contain, including archived definitions', async () => {
  const { send } = await createShop(service, 'buyer')
  const archived = await send('POST', '/v1/schema/attributes', { key: 'old', owner: 'people', type: 'text' })
  await send('PATCH', `/v1/schema/attributes/${archived.body.data.id}`, { state: 'archived' })
  const { status, body } = await send('GET', '/v1/schema')
  expect(status).toBe(200)
  expect(body.data.attributes.map((attribute: { state: string }) => attribute.state)).toEqual(['active', 'archived'])
  const listed = async (kind: string) => (await send('GET', `/v1/schema/${kind}`)).body.data.items
  expect(body.data).toEqual({
    stacks: await listed('stacks'),
    attributes: await listed('attributes'),
    consent_types: await listed('consent-types'),
  })
})

it('the schema needs the scope schema:read', async () => {
  const { key } = await service.organization()
  const reader = service.sender(await service.tokenFor(key, 'people:read records:read schema:write'))
  const { status, body } = await reader('GET', '/v1/schema')
  expect([status, body.error]).toEqual([403, 'forbidden'])
})
