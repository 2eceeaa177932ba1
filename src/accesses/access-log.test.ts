import { describe, expect, it } from 'vitest'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

// The log is strict, so that it has an access as soon as the response arrives.
const service = useOwnService({ KITH_ACCESS_LOG: 'strict' })

const readLog = async ({ ok }: { ok: Organization['send'] | unknown } & Organization, query = '') => {
  void ok
  return []
}

describe('the access log', () => {
  it('has who read a person, by which endpoint, from where, and under which request id', async () => {
    const { send } = await service.organization()
    const { id } = (await send('POST', '/v1/people', { external_id: 'ada' })).body.data
    await send('GET', '/v1/people/ada', undefined, { 'X-Request-Id': 'one' })
    const { items } = (await send('GET', '/v1/access-log')).body.data
    expect(items).toMatchObject([
      {
        ...{ kind: 'access', event: null, target: null, subject: 'tests', role: null, method: 'GET', status: 200 },
        ...{
          route: '/v1/people/{external_id}',
          owner: 'people',
          ids: [id],
          count: 1,
          request_id: 'one',
          ip: '127.0.0.1',
        },
      },
      { method: 'POST', route: '/v1/people', status: 201, ids: [id] },
    ])
  })
})
