import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'

const service = useOwnService({ KITH_LIMIT_PAGE: '50', KITH_LIMIT_CONSENT_TYPES: '7' })

const path = '/v1/organization'

describe('GET /v1/organization', () => {
  it('answers the key, the counts and the limits of the organization', async () => {
    const { key, send, client } = await service.organization()
    const before = (await send('GET', path)).body.data
    expect(before).toMatchObject({
      key,
      counts: { stacks: 0, attributes: 0, consent_types: 1, changes: 0 },
      limits: { page: 50, consent_types: 7, body_bytes: 1_048_576, request_ms: expect.any(Number) },
    })
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'city', type: 'text' })
    await send('POST', '/v1/people', { external_id: 'ada' })
    const after = await client.organization()
    expect(after).toEqual({
      ...before,
      schema_version: before.schema_version + 2,
      counts: { stacks: 1, attributes: 1, consent_types: 1, changes: 3 },
    })
  })

  it('is refused without the scope schema:read', async () => {
    const { key } = await service.organization()
    const send = service.sender(await service.tokenFor(key, 'people:read people:write'))
    expect((await send('GET', path)).status).toBe(403)
  })
})
