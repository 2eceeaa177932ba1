import { describe, expect, it } from 'vitest'
import { type Reply, useOwnService } from '../../../test/support/service.ts'
import { createShop, useShop } from '../../../test/support/shop.ts'

const service = useOwnService()
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { send, ok } = shop

const create = (body: object) => ok('POST', '/v1/people', body)
const read = (external_id: string) => ok('GET', `/v1/people/${external_id}`)
const remove = (external_id: string) => ok('DELETE', `/v1/people/${external_id}`)
const patch = (path: string, body: object) => ok('PATCH', path, body)
const restorePath = (id: string) => `/v1/people/internal/${id}/restore`
const restore = (id: string, headers?: Record<string, string>) => send('POST', restorePath(id), undefined, headers)
const stored = () =>
  service.sql(
    `select (select count(*) from entities where organization_id = $1) as entities,
       (select sequence from change_heads where organization_id = $1) as changes`,
    [shop.id],
  )
const lastChange = async () => {
  const text = 'select sequence - 1 as after from changes where organization_id = $1 order by sequence desc limit 1'
  const [{ after } = { after: 0 }] = await service.sql<{ after: number }>(text, [shop.id])
  return (await ok('GET', `/v1/changes?after=${after}`)).items[0]
}

/** Expects the refusal of a request that stores nothing. */
async function expectRefusal(status: number, error: string, sending: () => Promise<Reply>, path?: string) {
  const before = await stored()
  const reply = await sending()
  expect([reply.status, reply.body.error]).toEqual([status, error])
  if (path !== undefined) expect(reply.body.details?.map(detail => detail.path)).toEqual([path])
  expect(await stored()).toEqual(before)
}

describe('the restore of a deleted entity', () => {
  it('returns it as it was, with the next version and the time of its creation', async () => {
    await ok('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'sms' }] })
    await create({
      external_id: 'ada',
      first_name: 'Ada',
      push_notification_consent: false,
      consents: [{ consent_type_id: 2, channel: 'sms', state: true }],
      attribute_values: {
        a: 0.1,
        nested: { b: [null, 1e-7] },
        referrer: 'bob',
        friends: ['eve', 'ada', 'bob'],
        employer: 'acme',
      },
    })
    await ok('PATCH', '/v1/people/ada', { email_consent: true, attribute_values: { a: null, c: 'x' } })
    const before = await read('ada')
    await remove('ada')
    const reply = await restore(before.id)
    expect(reply.status).toBe(200)
    const { updated_at, ...restored } = reply.body.data
    expect(restored).toEqual({ ...withoutUpdate(before), version: 4 })
    expect(Date.parse(updated_at)).toBeGreaterThanOrEqual(Date.parse(before.updated_at))
    expect(reply.headers.get('ETag')).toBe('"4"')
    expect(await read('ada')).toEqual(reply.body.data)
  })

  it('is logged as a restore with the whole entity after it, and answers no consent', async () => {
    const consents = [{ consent_type_id: 1, channel: 'sms', state: true }]
    const { id } = await create({ external_id: 'ada', consents, attribute_values: { a: 1, referrer: 'bob' } })
    await remove('ada')
    await restore(id)
    expect(await lastChange()).toMatchObject({
      operation: 'restore',
      id,
      version: 3,
      before: null,
      after: {
        external_id: 'ada',
        state: 'active',
        sms_consent: true,
        consents,
        attribute_values: { a: 1, referrer: 'bob' },
      },
      actor: 'tests',
    })
    const history = 'select version from consent_history where organization_id = $1 and person_id = $2'
    expect(await service.sql(history, [shop.id, id])).toEqual([{ version: 1 }])
  })

  it('links to the targets that still exist, by their names of today and in order', async () => {
    const { id } = await create({
      external_id: 'ada',
      attribute_values: { friends: ['bob', 'eve', 'ada', 'kim'], referrer: 'eve', employer: 'acme' },
    })
    await remove('ada')
    await remove('eve')
    await ok('PATCH', '/v1/people/bob', { external_id: 'robert' })
    // This eve is another person.
    await create({ external_id: 'eve' })
    expect((await restore(id)).body.data.attribute_values).toEqual({
      friends: ['robert', 'ada', 'kim'],
      employer: 'acme',
    })
  })

  it('links to targets without a name, also after a second restore', async () => {
    const { id } = await create({ external_id: 'ada', attribute_values: { friends: ['bob'], employer: 'acme' } })
    const bob = await ok('GET', '/v1/people/bob')
    const { record_id } = await ok('GET', '/v1/stacks/companies/acme')
    await patch('/v1/people/bob', { external_id: null })
    await patch('/v1/stacks/companies/acme', { external_id: null })
    for (const _ of [1, 2]) {
      await remove('ada')
      const { attribute_values } = (await restore(id)).body.data
      expect(attribute_values).toEqual({ friends: [{ id: bob.id }], employer: { record_id } })
    }
  })

  it('keeps a plain value under a key that was declared as a relationship later', async () => {
    const { id } = await create({ external_id: 'ada', attribute_values: { mentor: 'bob' } })
    await create({ external_id: 'bob' })
    await ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'mentor', type: 'person', cardinality: 'many' })
    for (const version of [3, 5]) {
      await remove('ada')
      expect((await restore(id)).body.data.attribute_values).toEqual({ mentor: 'bob' })
      expect((await ok('GET', `/v1/people/ada?version=${version}`)).attribute_values).toEqual({ mentor: 'bob' })
    }
  })

  it('shows the links of others to it again, in their places, without a change of the others', async () => {
    const { id } = await create({ external_id: 'bob' })
    const ada = await create({
      external_id: 'ada',
      attribute_values: { referrer: 'bob', friends: ['eve', 'bob', 'kim'] },
    })
    await remove('bob')
    expect(await read('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['eve', 'kim'] } })
    const deleted = await lastChange()
    await restore(id)
    expect(await read('ada')).toEqual(ada)
    const related = await ok('POST', '/v1/people/bob/related', { target: 'people' })
    expect(related.items.map(({ id }: { id: string }) => id)).toEqual([ada.id])
    const before = await ok('GET', `/v1/people/ada?at=${deleted.at}`)
    expect(before.attribute_values).toEqual({ friends: ['eve', 'kim'] })
  })

  it('does not show a link again whose attribute was written since, even if nothing else was visible', async () => {
    const bob = await create({ external_id: 'bob' })
    const values = { referrer: 'bob', friends: ['bob', 'eve'] }
    for (const name of ['ada', 'kim', 'lea', 'zoe']) await create({ external_id: name, attribute_values: values })
    await remove('bob')
    await patch('/v1/people/ada', { attribute_values: { referrer: null } })
    expect(await read('ada')).toMatchObject({ version: 2, attribute_values: { friends: ['eve'] } })
    expect(await lastChange()).toMatchObject({
      before: { attribute_values: { referrer: null } },
      after: { attribute_values: { referrer: null } },
      links: { referrer: {} },
    })
    await patch('/v1/people/ada', { attribute_values: { referrer: null } })
    expect(await read('ada')).toMatchObject({ version: 2 })
    await patch('/v1/people/kim', { attribute_values: { friends: ['eve'] } })
    await ok('PUT', '/v1/people/lea', { attribute_values: { friends: ['eve'] } })
    // This bob is another person.
    await patch('/v1/people/zoe', { attribute_values: { referrer: 'bob' } })
    await ok('PATCH', '/v1/people/bob', { external_id: 'robert' })
    await restore(bob.id)
    const shown = await Promise.all(['ada', 'kim', 'lea', 'zoe'].map(async name => (await read(name)).attribute_values))
    expect(shown).toEqual([
      { friends: ['bob', 'eve'] },
      { referrer: 'bob', friends: ['eve'] },
      { friends: ['eve'] },
      { referrer: 'robert', friends: ['bob', 'eve'] },
    ])
  })

  it('links to a target that was deleted too as soon as both are back, in any order', async () => {
    const ids = { bob: '', ada: '' }
    ids.bob = (await create({ external_id: 'bob' })).id
    ids.ada = (await create({ external_id: 'ada', attribute_values: { friends: ['bob', 'eve'] } })).id
    const both = ['bob', 'ada'] as const
    for (const deleted of [both, both.toReversed()])
      for (const restored of [both, both.toReversed()]) {
        for (const name of deleted) await remove(name)
        for (const name of restored) expect((await restore(ids[name])).status).toBe(200)
        expect((await read('ada')).attribute_values).toEqual({ friends: ['bob', 'eve'] })
      }
  })

  it('does not bring back a link to a target that was erased', async () => {
    const bob = await create({ external_id: 'bob' })
    const ada = await create({ external_id: 'ada', attribute_values: { friends: ['bob'] } })
    await remove('bob')
    await remove('ada')
    await ok('POST', `/v1/people/internal/${bob.id}/erase`, { reason: 'asked' })
    expect((await restore(ada.id)).body.data.attribute_values).toEqual({})
    expect(await service.sql('select * from links where organization_id = $1', [shop.id])).toEqual([])
  })

  it('shows the links of a survivor too that a merge has taken over', async () => {
    const { id } = await create({ external_id: 'bob' })
    await create({ external_id: 'ada', attribute_values: { referrer: 'eve' } })
    await create({ external_id: 'adele', attribute_values: { friends: ['bob', 'kim'] } })
    await remove('bob')
    const merged = await ok('POST', '/v1/people/ada/merge', { from: 'adele' })
    expect(merged.changes.links).toEqual({ moved_in: 0, moved_out: 1, dropped: 0 })
    await restore(id)
    expect((await read('ada')).attribute_values).toEqual({ referrer: 'eve', friends: ['bob', 'kim'] })
    await remove('bob')
    const unmerged = await ok('POST', '/v1/people/ada/unmerge', { from: 'adele' })
    expect(unmerged.changes.links).toEqual({ moved_in: 0, moved_out: 1, dropped: 0 })
    await restore(id)
    expect((await read('ada')).attribute_values).toEqual({ referrer: 'eve' })
    expect((await read('adele')).attribute_values).toEqual({ friends: ['bob', 'kim'] })
  })

  it('returns its values to the index', async () => {
    await ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'city', type: 'text', indexed: true })
    const { id } = await create({ external_id: 'ada', attribute_values: { city: 'Rome' } })
    const terms = () =>
      service.sql('select value from terms where organization_id = $1 and entity_id = $2', [shop.id, id])
    const before = await terms()
    await remove('ada')
    expect([before.length, await terms()]).toEqual([1, []])
    await restore(id)
    expect(await terms()).toEqual(before)
  })

  it('works for placeholders, records, event records, and entities without a name', async () => {
    await ok('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    await create({ external_id: 'ada', attribute_values: { referrer: 'bob' } })
    const paths = ['/v1/people', '/v1/stacks/companies', '/v1/stacks/visits']
    const made = await Promise.all(paths.map(path => ok('POST', path, { attribute_values: { a: 1 } })))
    for (const [index, path] of [...paths, '/v1/people'].entries()) {
      const before = made[index] ?? (await read('bob'))
      const address = `${path}/internal/${before.id ?? before.record_id}`
      await ok('DELETE', address)
      const restored = await ok('POST', `${address}/restore`)
      expect(withoutUpdate(restored)).toEqual({ ...withoutUpdate(before), version: before.version + 2 })
    }
    const repeated = { external_id: 'v1', attribute_values: { a: 1 } }
    const { record_id } = await ok('POST', '/v1/stacks/visits', repeated)
    await ok('DELETE', '/v1/stacks/visits/v1')
    await ok('POST', `/v1/stacks/visits/internal/${record_id}/restore`)
    expect((await send('POST', '/v1/stacks/visits', repeated)).status).toBe(200)
  })

  it('works again after the next deletion', async () => {
    const { id } = await create({ external_id: 'ada', attribute_values: { friends: ['bob'] } })
    for (const version of [3, 6, 9]) {
      await remove('ada')
      expect((await restore(id)).body.data).toMatchObject({ version, attribute_values: { friends: ['bob'] } })
      await ok('PATCH', '/v1/people/ada', { attribute_values: { [`v${version}`]: 1 } })
    }
    expect((await read('ada')).attribute_values).toEqual({ v3: 1, v6: 1, v9: 1, friends: ['bob'] })
  })

  it('has a higher version than every entity that had the name', async () => {
    const { id } = await create({ external_id: 'ada' })
    await remove('ada')
    await create({ external_id: 'ada' })
    for (const first_name of ['a', 'b']) await ok('PATCH', '/v1/people/ada', { first_name })
    await ok('PATCH', '/v1/people/ada', { external_id: 'other' })
    expect((await restore(id)).body.data).toMatchObject({ external_id: 'ada', version: 7 })
  })
})

describe('the restore of an entity that exists', () => {
  it('returns it unchanged, so that a retry is safe', async () => {
    const { id } = await create({ external_id: 'ada' })
    await remove('ada')
    const first = await restore(id)
    const before = await stored()
    const second = await restore(id)
    expect([second.status, second.body.data]).toEqual([200, first.body.data])
    expect(await stored()).toEqual(before)
  })

  it('happens once when requests compete', async () => {
    const { id } = await create({ external_id: 'ada' })
    await remove('ada')
    const replies = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => restore(id)))
    expect(replies.map(({ status, body }) => [status, body.data.version])).toEqual(Array(8).fill([200, 3]))
  })
})

describe('a restore is refused', () => {
  it('if the name is taken, also by a placeholder', async () => {
    const { id } = await create({ external_id: 'ada' })
    await remove('ada')
    await create({ external_id: 'bob', attribute_values: { referrer: 'ada' } })
    await expectRefusal(409, 'duplicate_entry', () => restore(id), '/external_id')
    await create({ external_id: 'ada' })
    await expectRefusal(409, 'duplicate_entry', () => restore(id), '/external_id')
    await ok('PATCH', '/v1/people/ada', { external_id: 'eve' })
    expect((await restore(id)).status).toBe(200)
  })

  it('for an unknown identifier, one of another stack, and one of another organization', async () => {
    await expectRefusal(404, 'not_found', () => restore('01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'))
    await ok('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    const { record_id } = await ok('POST', '/v1/stacks/companies', {})
    await ok('DELETE', `/v1/stacks/companies/internal/${record_id}`)
    await expectRefusal(404, 'not_found', () => send('POST', `/v1/stacks/orders/internal/${record_id}/restore`))
    const { id } = await create({ external_id: 'ada' })
    await remove('ada')
    const other = await createShop(service)
    await expectRefusal(404, 'not_found', () => other.send('POST', restorePath(id)))
  })

  it('after an erasure of the values in the log', async () => {
    const { id } = await create({ external_id: 'ada', first_name: 'Ada' })
    await remove('ada')
    const erase = `update changes set before = null, after = null, links = null
      where organization_id = $1 and entity_id = $2`
    await service.sql(erase, [shop.id, id])
    await expectRefusal(404, 'not_found', () => restore(id))
    expect((await send('GET', `/v1/people/internal/${id}?version=1`)).status).toBe(404)
  })

  it('without the write scope, and with an If-Match, which a deleted entity cannot match', async () => {
    const { id } = await create({ external_id: 'ada' })
    await remove('ada')
    const reader = service.sender(await service.tokenFor(shop.key, 'people:read changes:read'))
    await expectRefusal(403, 'forbidden', () => reader('POST', restorePath(id)))
    await expectRefusal(412, 'invalid_parameter', () => restore(id, { 'If-Match': '"2"' }))
    const writer = service.sender(await service.tokenFor(shop.key, 'people:write'))
    expect((await writer('POST', restorePath(id))).body.data).toEqual({ id, external_id: 'ada' })
  })
})

it('restores once under an Idempotency-Key and repeats the response', async () => {
  const { id } = await create({ external_id: 'ada', attribute_values: { referrer: 'bob' } })
  await remove('ada')
  const first = await restore(id, { 'Idempotency-Key': 'k' })
  await ok('PATCH', '/v1/people/ada', { first_name: 'A' })
  const second = await restore(id, { 'Idempotency-Key': 'k' })
  expect([second.status, second.headers.get('Idempotency-Replayed')]).toEqual([200, 'true'])
  expect(second.body.data).toEqual(first.body.data)
  expect(first.body.data).toMatchObject({ version: 3, attribute_values: { referrer: 'bob' } })
})

/** An entity without the fields that a restore changes. */
function withoutUpdate({ updated_at, ...rest }: Record<string, unknown>) {
  expect(updated_at).toEqual(expect.any(String))
  return rest
}
