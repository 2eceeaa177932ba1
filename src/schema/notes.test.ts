import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { findCanaries } from '../../test/support/person-canaries.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'

const service = useOwnService()
const shop = useShop(service)
const ensure = (token = shop.token) =>
  shop.send('POST', '/v1/schema/notes', undefined, { Authorization: `Bearer ${token}` })

const note = (text: string, person: string) =>
  shop.ok('POST', '/v1/stacks/notes', { attribute_values: { person, text, author: 'Grace' } })

describe('the notes about people', () => {
  it('are a stack that the first request creates with its attributes, and that later requests return', async () => {
    const head = await shop.head()
    const created = await ensure()
    expect([created.status, created.body.data]).toMatchObject([
      201,
      { key: 'notes', kind: 'event', name: 'Notes', label: '{text}', erased_with: 'person', summary: null },
    ])
    const { attributes } = await shop.ok('GET', '/v1/schema')
    expect(attributes).toMatchObject([
      { owner: 'notes', key: 'person', type: 'person' },
      { owner: 'notes', key: 'text', type: 'text', searchable: true },
      { owner: 'notes', key: 'author', type: 'text' },
    ])
    expect(await shop.head()).toBe(head + 4)
    const again = await ensure()
    expect([again.status, again.body.data]).toEqual([200, created.body.data])
    expect(await shop.head()).toBe(head + 4)
  })

  it('are created once by requests at the same time', async () => {
    const replies = await Promise.all([ensure(), ensure(), ensure()])
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 201])
    expect((await shop.ok('GET', '/v1/schema/stacks')).items).toHaveLength(1)
  })

  it('leave a stack `notes` of the organization as it is, and become `person_notes`, or that stack if it says with whom it is erased', async () => {
    const own = await shop.ok('POST', '/v1/schema/stacks', { key: 'notes', kind: 'item' })
    expect((await ensure()).body.data.key).toBe('person_notes')
    expect(await shop.ok('GET', '/v1/schema/stacks/notes')).toEqual(own)
    await shop.renew()
    await shop.ok('POST', '/v1/schema/stacks', { key: 'calls', kind: 'event' })
    await shop.ok('POST', '/v1/schema/attributes', { owner: 'calls', key: 'caller', type: 'person' })
    await shop.ok('POST', '/v1/schema/attributes', { owner: 'calls', key: 'text', type: 'text' })
    await shop.ok('PATCH', '/v1/schema/stacks/calls', { erased_with: 'caller' })
    expect((await ensure()).body.data.key).toBe('calls')
    await shop.renew()
    for (const key of ['notes', 'person_notes']) await shop.ok('POST', '/v1/schema/stacks', { key, kind: 'item' })
    expect(await ensure()).toMatchObject({ status: 409, body: { error: 'duplicate_entry' } })
  })

  it('need the scope that writes records, and store nothing in a dry run', async () => {
    expect((await ensure(await service.tokenFor(shop.key, 'records:read schema:write'))).status).toBe(403)
    expect((await ensure(await service.tokenFor(shop.key, 'records:write'))).status).toBe(201)
    await shop.renew()
    const { changes } = await shop.ok('POST', '/v1/schema/notes?dry_run=true')
    expect(changes).toHaveLength(4)
    expect((await shop.ok('GET', '/v1/schema/stacks')).items).toEqual([])
  })

  it('are found by the words of their text', async () => {
    await ensure()
    await note('Prefers a call in the afternoon', 'ada')
    await follow(service.db, [searchFollower()])
    const { items } = await shop.ok('POST', '/v1/search', { text: 'afternoon', owners: ['notes'] })
    expect(items).toMatchObject([{ owner: 'notes', entity: { attribute_values: { author: 'Grace' } } }])
  })

  it('are erased with the person also where other records are kept, those that were deleted before too', async () => {
    await ensure()
    await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await note('A secret of the kept note', 'ada')
    const deleted = await note('A secret of the deleted note', 'ada')
    await shop.ok('DELETE', `/v1/stacks/notes/internal/${deleted.record_id}`)
    const other = await note('About somebody else', 'bob')
    const body = { reason: 'Request of the person', records: 'keep' }
    const { erasure } = await shop.ok('POST', '/v1/people/ada/erase', { ...body, dry_run: true })
    expect(erasure.record_ids).toHaveLength(2)
    expect((await shop.ok('POST', '/v1/people/ada/erase', body)).erasure.record_ids).toEqual(erasure.record_ids)
    expect((await shop.ok('POST', '/v1/stacks/notes/list', {})).items).toEqual([other])
    expect(await findCanaries(service, { text: 'A secret of the' })).toEqual([])
  })
})
