import { expect, it } from 'vitest'
import { linesFrom, ndjsonHeaders } from '../../../test/support/lines.ts'
import { startService } from '../../../test/support/service.ts'
import { createShop } from '../../../test/support/shop.ts'

it.each([1, 2, 3])(
  'answers every kind of concurrent request with %i database connections',
  async connections => {
    const service = await startService({ KITH_DATABASE_CONNECTIONS: `${connections}`, KITH_LIMIT_REQUEST_MS: '60000' })
    try {
      const { send } = await createShop(service, 'friends')
      const ada = { external_id: 'ada', attribute_values: { friends: ['bo', 'cy'] } }
      expect((await send('POST', '/v1/people', ada)).status).toBe(201)
      const rounds = Array.from({ length: 4 }, (_, round) => {
        const name = `p${round}`
        const batch = {
          operations: [`a${round}`, `b${round}`].map(external_id => ({ op: 'upsert', external_id, body: {} })),
        }
        return [
          send('GET', '/v1/people/ada'),
          send('POST', '/v1/people/list', {}),
          send('POST', '/v1/people/filter', {
            filter: { 'attribute_values.friends': { $some: { external_id: 'bo' } } },
          }),
          send('POST', '/v1/people/ada/related', { target: 'people' }),
          send('PATCH', '/v1/people/ada', { first_name: name, attribute_values: { friends: [name] } }),
          send('POST', '/v1/people', { external_id: `new ${name}` }),
          send('POST', '/v1/people/upsert', { external_id: name }, { 'Idempotency-Key': name }),
          send('POST', '/v1/people/batch', batch),
          send('POST', '/v1/people/batch', { ...batch, atomic: true }, { 'Idempotency-Key': `batch ${name}` }),
          send('GET', '/v1/schema'),
          send('PATCH', '/v1/schema/attributes/1', { name }, { 'Idempotency-Key': `schema ${name}` }),
        ]
      })
      const streams = [
        send('POST', '/v1/people/import', linesFrom([{ external_id: 'ada' }, { external_id: 'line' }]), ndjsonHeaders),
        send('POST', '/v1/people/import?dry_run=true', linesFrom([{ external_id: 'dry' }]), ndjsonHeaders),
        send('POST', '/v1/people/export'),
      ]
      const replies = await Promise.all([...rounds.flat(), ...streams])
      expect(replies.filter(({ status }) => status >= 300).map(({ status, body }) => ({ status, body }))).toEqual([])
      expect(service.db.load!()).toMatchObject({ waiting: 0, waitingForShare: 0 })
    } finally {
      await service.stop()
    }
  },
  60_000,
)
