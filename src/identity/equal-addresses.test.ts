import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'

const service = useOwnService()

const spellings = ['ada@bücher.example', 'Ada@BU\u0308CHER.example', 'ada@xn--bcher-kva.example']

describe('addresses that differ in the notation of their domain', () => {
  it.each(spellings)('lead to one person by look-up, match, search, import and duplicates: %s', async stored => {
    const { ok, send, ...shop } = await createShop(service)
    const { id } = await ok('POST', '/v1/people', { external_id: 'ada', email: stored })
    expect((await ok('GET', '/v1/people/ada')).email).toBe(stored)
    await follow(service.db, [searchFollower()])
    for (const email of spellings) {
      expect((await ok('POST', '/v1/people/lookup', { email })).items).toMatchObject([{ id }])
      expect((await ok('POST', '/v1/people/search', { text: email })).items).toMatchObject([{ id }])
      const upserted = await send('POST', '/v1/people/upsert', { email, match: ['email'] })
      expect([upserted.status, upserted.body.data.id]).toEqual([200, id])
      const imported = await importLines({ ...shop, send }, '/v1/people/import?match=email', linesFrom([{ email }]))
      expect(imported.counts).toMatchObject({ created: 0, failed: 0 })
    }
    const other = await ok('POST', '/v1/people', { email: spellings.find(email => email !== stored) })
    const { items } = await ok('POST', '/v1/people/duplicates', { by: ['email'] })
    expect(items.map(({ people }: { people: { id: string }[] }) => people.map(person => person.id).sort())).toEqual([
      [id, other.id].sort(),
    ])
  })

  it.each(spellings)('are all refused after an erasure: %s', async stored => {
    const { ok, send } = await createShop(service)
    await ok('POST', '/v1/people', { external_id: 'ada', email: stored })
    await ok('POST', '/v1/people/ada/erase', { reason: 'Request of the person' })
    for (const email of spellings) {
      const refused = await send('POST', '/v1/people', { email })
      expect([refused.status, refused.body.reason, refused.body.details?.[0]?.path]).toEqual([409, 'erased', '/email'])
    }
  })
})
