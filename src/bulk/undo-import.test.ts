import { beforeEach, describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'

type Named = { external_id: string }

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer', 'bought', 'buyer')
const { send } = shop

let imports = 0
async function load(lines: object[], path = '/v1/people/import') {
  const id = `import-${++imports}`
  await importLines(shop, path, linesFrom(lines), { 'X-Request-Id': id })
  return id
}
const person = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data
const undo = async (id: string, body?: object) => (await send('POST', `/v1/imports/${id}/undo`, body)).body.data

beforeEach(async () => {
  const ada = { external_id: 'ada', first_name: 'Ada', email: 'ada@example.com' }
  await send('POST', '/v1/people', { ...ada, attribute_values: { city: 'Rome', friends: ['bo'] } })
})

describe('POST /v1/imports/{id}/undo', () => {
  it('takes back all that the import changed and nothing has written since, as ordinary changes, and a dry run tells of it', async () => {
    const before = await person('ada')
    const id = await load([
      {
        external_id: 'ada',
        first_name: null,
        language: 'en',
        attribute_values: { city: 'Oslo', 'a/b~': 1, friends: ['cy'] },
      },
      { external_id: 'new', first_name: 'New', attribute_values: { friends: ['ada', 'other'], referrer: 'new' } },
      { external_id: 'ada', attribute_values: { city: null, employer: 'acme' } },
    ])
    const expected = { deleted: 4, updated: 1, left: [], has_more: false }
    expect(await undo(id, { dry_run: true })).toMatchObject({ dry_run: true, ...expected })
    expect(await person('new')).toMatchObject({ first_name: 'New' })
    const { sequence } = (await send('GET', '/v1/changes?limit=1000')).body.data.items.at(-1)
    expect(await undo(id)).toMatchObject({ dry_run: false, ...expected })
    const { version: _, updated_at: __, ...values } = await person('ada')
    expect(before).toMatchObject(values)
    for (const name of ['new', 'other', 'cy']) expect((await send('GET', `/v1/people/${name}`)).status).toBe(404)
    const { items } = (await send('GET', `/v1/changes?after=${sequence}&limit=1000`)).body.data
    expect(items).toHaveLength(5)
    expect(items.every(({ request_id }: { request_id: string }) => request_id !== id)).toBe(true)
  })

  it('leaves what was changed since, and what others link to, and says so', async () => {
    const id = await load([
      { external_id: 'ada', first_name: 'Wrong', last_name: 'Wrong', email_consent: true },
      { external_id: 'edited' },
      { external_id: 'linked' },
      { external_id: 'gone' },
    ])
    await send('PATCH', '/v1/people/ada', { first_name: 'Right' })
    await send('PATCH', '/v1/people/edited', { first_name: 'Mine' })
    await send('PATCH', '/v1/people/bo', { attribute_values: { referrer: 'linked' } })
    await send('DELETE', '/v1/people/gone')
    const done = await undo(id)
    expect(done).toMatchObject({ deleted: 0, updated: 1, has_more: false })
    const left = done.left.map(({ external_id, path, reason }: Record<string, string>) => [external_id, path, reason])
    expect(left.toSorted()).toEqual([
      ['ada', '/consents', 'consents'],
      ['ada', '/first_name', 'changed_since'],
      ['edited', null, 'changed_since'],
      ['gone', null, 'gone'],
      ['linked', null, 'linked_since'],
    ])
    expect(await person('ada')).toMatchObject({ first_name: 'Right', last_name: null, email_consent: true })
    expect(await person('bo')).toMatchObject({ attribute_values: { referrer: 'linked' } })
    expect(await undo(id)).toMatchObject({ deleted: 0, updated: 0, left: [], has_more: false })
  })

  const matching = '/v1/people/import?match=external_id,email'
  const foundBy = async (text: string) => {
    await follow(service.db, [searchFollower()])
    return (await shop.ok('POST', '/v1/people/search', { text })).items.map(({ external_id }: Named) => external_id)
  }

  it('ends the aliases that the import gave by a match, so that somebody else can have the identifier', async () => {
    const before = await person('ada')
    const line = { external_id: 'crm-7', email: 'ada@example.com' }
    const id = await load([line, { ...line, external_id: 'crm-8', language: 'de' }, { external_id: 'crm-8' }], matching)
    expect(await person('crm-8')).toMatchObject({ external_id: 'ada', language: 'de' })
    expect(await foundBy('crm-7')).toEqual(['ada'])
    const expected = { deleted: 0, updated: 1, left: [], has_more: false }
    expect(await undo(id, { dry_run: true })).toMatchObject(expected)
    expect(await person('crm-7')).toMatchObject({ external_id: 'ada' })
    expect(await undo(id)).toMatchObject(expected)
    for (const name of ['crm-7', 'crm-8']) expect((await send('GET', `/v1/people/${name}`)).status).toBe(404)
    expect(await foundBy('crm-7')).toEqual([])
    const { version, updated_at: _, ...values } = await person('ada')
    expect(before).toMatchObject(values)
    expect((await send('POST', '/v1/people', { external_id: 'crm-7' })).status).toBe(201)
    // An If-Match with a version of the person that the identifier led to before must fail.
    expect((await person('crm-7')).version).toBeGreaterThan(version)
    expect(await undo(id)).toMatchObject({ deleted: 0, updated: 0, left: [], has_more: false })
    expect(await person('crm-7')).toMatchObject({ external_id: 'crm-7' })
  })

  it('leaves an alias of a person whom anything else has written since or merged, and one that an earlier import gave', async () => {
    const line = { external_id: 'crm-7', email: 'ada@example.com' }
    const first = await load([line], matching)
    const second = await load([{ ...line, language: 'de' }], matching)
    const left = [{ external_id: 'ada', path: '/aliases', reason: 'changed_since' }]
    expect(await undo(first)).toMatchObject({ updated: 0, left })
    expect(await undo(second)).toMatchObject({ updated: 1, left: [] })
    expect(await person('crm-7')).toMatchObject({ external_id: 'ada', language: null })
    const third = await load([{ external_id: 'crm-9', email: 'ada@example.com' }], matching)
    await send('POST', '/v1/people', { external_id: 'eve' })
    await send('POST', '/v1/people/eve/merge', { from: 'ada' })
    expect(await undo(third)).toMatchObject({ updated: 0, left: [{ path: null, reason: 'gone' }] })
    for (const name of ['crm-7', 'crm-9']) expect(await person(name)).toMatchObject({ external_id: 'eve' })
  })

  it('takes back many sets, also of records, whatever order their links have', async () => {
    const records = Array.from({ length: 300 }, (_, index) => ({
      external_id: `o${index}`,
      attribute_values: { buyer: `p${index % 90}` },
    }))
    const id = await load(records, '/v1/stacks/orders/import')
    expect(await shop.client.imports.undo(id)).toMatchObject({ deleted: 390, updated: 0, left: [], has_more: false })
    expect((await shop.client.stack('orders').count()).count).toBe(0)
    expect((await shop.client.imports.list().page()).items[0]).toMatchObject({
      ...{ id, owner: 'orders', received: 300, created: 300, undone_at: expect.any(String) },
    })
  })

  it('needs the scopes of a write, and knows the imports of its organization only', async () => {
    const id = await load([{ external_id: 'o', attribute_values: {} }], '/v1/stacks/orders/import')
    const only = async (scope: string) => ({ Authorization: `Bearer ${await service.tokenFor(shop.key, scope)}` })
    for (const scope of ['people:read changes:read', 'people:write', 'records:write'])
      expect((await send('POST', `/v1/imports/${id}/undo`, {}, await only(scope))).status).toBe(403)
    const other = await service.organization()
    expect((await other.send('POST', `/v1/imports/${id}/undo`, {})).status).toBe(404)
    expect((await other.send('GET', '/v1/imports')).body.data).toEqual({ items: [], has_more: false })
  })
})

describe('GET /v1/imports', () => {
  it('lists imports with author and counts, newest first, in pages, but no dry run', async () => {
    const ids = [await load([{ external_id: 'ada', first_name: 'B' }, { external_id: '' }]), await load([{}, {}])]
    await importLines(shop, '/v1/people/import?dry_run=true', linesFrom([{}]))
    const page = (await send('GET', '/v1/imports?limit=1')).body.data
    expect(page).toMatchObject({ has_more: true, items: [{ id: ids[1], received: 2, created: 2, failed: 0 }] })
    const next = (await send('GET', `/v1/imports?before=${ids[1]}&limit=1`)).body.data
    expect(next.items[0]).toMatchObject({ id: ids[0], owner: 'people', updated: 1, failed: 1, undone_at: null })
    const { actor } = (await send('GET', '/v1/people/ada/history')).body.data.items[0]
    expect(next.items[0]).toMatchObject({ actor, ended_at: expect.any(String) })
  })

  it('is one import if the rest of a file names the same request, and refuses the name of an import of something else', async () => {
    const headers = { 'X-Request-Id': 'one' }
    await importLines(shop, '/v1/people/import', linesFrom([{ external_id: 'x' }]), headers)
    await importLines(shop, '/v1/people/import', linesFrom([{ external_id: 'y' }]), headers)
    const { items } = (await send('GET', '/v1/imports')).body.data
    expect(items).toMatchObject([{ id: 'one', received: 2, created: 2 }])
    await expect(importLines(shop, '/v1/stacks/orders/import', linesFrom([{}]), headers)).rejects.toThrow('409')
    expect(await undo('one')).toMatchObject({ deleted: 2 })
  })
})
