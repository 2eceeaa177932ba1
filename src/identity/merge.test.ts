import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer')

const get = async (path: string) => (await shop.send('GET', `/v1/people/${path}`)).body.data
const create = async (external_id: string, body: object = {}) =>
  (await shop.send('POST', '/v1/people', { external_id, ...body })).body.data
const merge = (into: string, from: string, rest: object = {}) =>
  shop.send('POST', `/v1/people/${into}/merge`, { from, ...rest })
const unmerge = (into: string, from: string, rest: object = {}) =>
  shop.send('POST', `/v1/people/${into}/unmerge`, { from, ...rest })

/** All stored rows of the organization that a merge may touch. */
async function storedState() {
  const tables = ['entities', 'links', 'terms', 'changes', 'consent_history', 'aliases', 'merges', 'change_heads']
  const rows = await Promise.all(
    tables.map(table =>
      service.sql(`select t::text as row from ${table} t where organization_id = $1 order by 1`, [shop.id]),
    ),
  )
  return Object.fromEntries(tables.map((table, index) => [table, rows[index]]))
}

describe('a merge', () => {
  it('fills unset fields and absent attribute values, moves links, and makes the other identifiers lead to the survivor', async () => {
    const ada = await create('ada', { first_name: 'Ada', attribute_values: { city: 'London', friends: ['bob'] } })
    const shopper = await create('shopper', {
      first_name: 'A.',
      email: 'ada@example.org',
      attribute_values: { city: 'Paris', size: 'M', friends: ['bob', 'eve'], referrer: 'bob', employer: 'acme' },
    })
    await create('fan', { attribute_values: { referrer: 'shopper', friends: ['ada', 'shopper', 'bob'] } })
    const fan = await get('fan')
    const reply = await merge('ada', 'shopper')
    expect(reply.status).toBe(200)
    expect(reply.body.data).toMatchObject({
      dry_run: false,
      merge_id: 1,
      merged: { id: shopper.id, external_id: 'shopper' },
      changes: {
        links: { moved_in: 2, moved_out: 3, dropped: 1 },
        consents: [],
        aliases: [{ kind: 'external_id', value: 'shopper' }],
      },
    })
    const after = await get('ada')
    expect(reply.body.data.person).toEqual(after)
    expect(reply.headers.get('etag')).toBe('"2"')
    expect(after).toMatchObject({
      id: ada.id,
      first_name: 'Ada',
      email: 'ada@example.org',
      version: 2,
      attribute_values: { city: 'London', size: 'M', friends: ['bob', 'eve'], referrer: 'bob', employer: 'acme' },
    })
    expect(await get('shopper')).toEqual(after)
    expect(await get(`internal/${shopper.id}`)).toEqual(after)
    expect(await get('fan')).toEqual({ ...fan, attribute_values: { referrer: 'ada', friends: ['ada', 'bob'] } })
    const { items } = (await shop.send('GET', '/v1/changes?after=0&limit=1000')).body.data
    expect(
      items.slice(-2).map((item: Record<string, unknown>) => [item.operation, item.external_id, item.after]),
    ).toEqual([
      ['merge', 'shopper', { merged_into: ada.id }],
      ['update', 'ada', expect.objectContaining({ email: 'ada@example.org' })],
    ])
  })

  it('is undone exactly', async () => {
    await create('ada', { first_name: 'Ada', attribute_values: { referrer: 'shopper', friends: ['bob'] } })
    await shop.send('PUT', '/v1/people/shopper', {
      email: 'ada@example.org',
      attribute_values: { friends: ['ada', 'eve'] },
    })
    await create('shopper', { email: 'ada@example.org', attribute_values: { friends: ['ada', 'eve'] } })
    await create('fan', { attribute_values: { referrer: 'shopper', friends: ['eve', 'ada', 'bob', 'shopper'] } })
    const before = await Promise.all(['ada', 'shopper', 'fan'].map(get))
    expect((await merge('ada', 'shopper')).status).toBe(200)
    expect((await get('ada')).attribute_values).toEqual({ friends: ['bob', 'eve'] })
    const reply = await unmerge('ada', 'shopper')
    expect([reply.status, reply.body.message]).toEqual([200, undefined])
    const after = await Promise.all(['ada', 'shopper', 'fan'].map(get))
    expect(after.map(({ version, updated_at, ...rest }) => rest)).toEqual(
      before.map(({ version, updated_at, ...rest }) => rest),
    )
    expect(after.map(({ version }) => version)).toEqual([before[1].version + 2, before[1].version + 2, 1])
  })

  it('numbers the changes that it and its undoing made, and no others', async () => {
    await create('ada')
    await create('shopper', { email: 'ada@example.org' })
    const { merge_id } = (await merge('ada', 'shopper')).body.data
    await shop.send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
    expect((await unmerge('ada', 'shopper')).status).toBe(200)
    const { items } = (await shop.send('GET', '/v1/changes?after=0&limit=1000')).body.data
    type Item = { operation: string; external_id: string; merge_id?: number; after: { email?: string } }
    expect(
      items
        .slice(-5)
        .map(({ operation, external_id, merge_id, after }: Item) => [operation, external_id, merge_id, after.email]),
    ).toEqual([
      ['merge', 'shopper', merge_id, undefined],
      ['update', 'ada', merge_id, 'ada@example.org'],
      ['update', 'ada', undefined, undefined],
      ['unmerge', 'shopper', merge_id, 'ada@example.org'],
      ['update', 'ada', merge_id, null],
    ])
  })

  it('fills a prefix without a number, and gives it back', async () => {
    await create('ada')
    await create('shopper', { mobile_prefix: '+39' })
    expect((await merge('ada', 'shopper')).status).toBe(200)
    expect(await get('ada')).toMatchObject({ mobile_prefix: '+39', mobile_number: null })
    expect((await unmerge('ada', 'shopper')).status).toBe(200)
    expect((await get('ada')).mobile_prefix).toBe(null)
    expect((await get('shopper')).mobile_prefix).toBe('+39')
  })

  it('shows what it would change in a dry run, and stores nothing', async () => {
    await create('ada')
    await create('shopper', { email: 'ada@example.org' })
    const before = await storedState()
    const dry = await merge('ada', 'shopper', { dry_run: true })
    expect([dry.status, dry.body.data.dry_run, dry.body.data.merge_id]).toEqual([200, true, null])
    expect(await storedState()).toEqual(before)
    const real = await merge('ada', 'shopper')
    expect(real.body.data.changes).toEqual(dry.body.data.changes)
    const { updated_at, ...person } = real.body.data.person
    expect(dry.body.data.person).toMatchObject(person)
  })
})
