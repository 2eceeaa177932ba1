import { expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'

const limits = { stacks: 3, attributes: 4, consent_types: 3 }

const service = useOwnService({
  KITH_LIMIT_STACKS: `${limits.stacks}`,
  KITH_LIMIT_ATTRIBUTES: `${limits.attributes}`,
  KITH_LIMIT_CONSENT_TYPES: `${limits.consent_types}`,
})

const kinds = [
  { kind: 'stacks', path: '/v1/schema/stacks', bodyOf: (key: string) => ({ key, kind: 'item' }) },
  {
    kind: 'attributes',
    path: '/v1/schema/attributes',
    bodyOf: (key: string) => ({ key, owner: 'people', type: 'text' }),
  },
  {
    kind: 'consent_types',
    path: '/v1/schema/consent-types',
    bodyOf: (key: string) => ({ key, channels: [{ channel: 'email' }] }),
  },
] as const

it.each(kinds)('an organization can have $kind up to the limit and no more', async ({ kind, path, bodyOf }) => {
  const { send } = await service.organization()
  const count = async () => (await send('GET', path)).body.data.items.length
  const setting = `KITH_LIMIT_${kind.toUpperCase()}`
  for (let index = await count(); index < limits[kind]; index += 1)
    expect((await send('POST', path, bodyOf(`k${index}`))).status).toBe(201)
  const { status, body } = await send('POST', path, bodyOf('more'))
  expect([status, body.error]).toEqual([400, 'invalid_parameter'])
  expect(body.message).toContain(`${setting}: ${limits[kind]}`)
  expect(body.details).toEqual([{ path: '', message: expect.stringContaining(`${limits[kind]}`) }])
  expect(await count()).toBe(limits[kind])
  // Each organization has a separate limit.
  expect((await (await service.organization()).send('POST', path, bodyOf('first'))).status).toBe(201)
})

it.each(kinds)('concurrent creates of $kind do not exceed the limit together', async ({ kind, path, bodyOf }) => {
  const { send } = await service.organization()
  const existing = (await send('GET', path)).body.data.items.length
  const created = await Promise.all(Array.from({ length: 12 }, (_, index) => send('POST', path, bodyOf(`k${index}`))))
  const statuses = created.map(({ status }) => status).sort()
  const remaining = limits[kind] - existing
  expect(statuses).toEqual([...Array(remaining).fill(201), ...Array(12 - remaining).fill(400)])
  expect((await send('GET', path)).body.data.items).toHaveLength(limits[kind])
})

it('definitions beyond a lowered limit remain and can be changed, archived and written to', async () => {
  const { id, send } = await service.organization()
  await service.sql(
    `insert into attributes (organization_id, id, owner_stack_id, key, name, type, cardinality, indexed, state, created_at, updated_at, version)
     select $1, n, 0, 'a' || n, 'a' || n, 'number', 'one', false, 'active', now(), now(), 2 from generate_series(1, 9) n`,
    [id],
  )
  await service.sql('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [id])
  expect((await send('PATCH', '/v1/schema/attributes/9', { name: 'Ninth' })).status).toBe(200)
  expect((await send('POST', '/v1/people', { attribute_values: { a8: 8, a9: 9 } })).status).toBe(201)
  expect((await send('POST', '/v1/people', { attribute_values: { a9: 'no number' } })).status).toBe(400)
  expect((await send('PATCH', '/v1/schema/attributes/9', { state: 'archived' })).status).toBe(200)
  expect((await send('POST', '/v1/schema/attributes', { key: 'more', owner: 'people', type: 'text' })).status).toBe(400)
})
