import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service)

type Named = { id: string; external_id: string }
const path = '/v1/people/duplicates/set-aside'

const email = 'family@example.com'
const create = async (external_id: string, body: object = { email }): Promise<Named> =>
  shop.ok('POST', '/v1/people', { external_id, ...body })
const setAside = (...external_ids: string[]) => shop.send('POST', path, { external_ids })
const namesOf = (people: readonly Named[]) => people.map(({ external_id }) => external_id).join(' ')

/** Each group as the names of its people, and its size. */
async function groups(body: object = {}) {
  const { items } = await shop.ok('POST', '/v1/people/duplicates', body)
  return items.map(({ people, size }: { people: Named[]; size: number }) => [namesOf(people), size])
}

async function duplicatesOf(name: string) {
  const { items } = await shop.ok('GET', `/v1/people/${name}/duplicates`)
  return namesOf(items.map(({ person }: { person: Named }) => person))
}

const listed = async () => (await shop.ok('GET', path)).items.map(({ people }: { people: Named[] }) => namesOf(people))

describe('people who were set aside', () => {
  it('are no duplicates, until the set-aside is taken back', async () => {
    await create('ada')
    await create('bob')
    expect(await groups()).toEqual([['ada bob', 2]])
    const { status, body } = await setAside('ada', 'bob')
    expect([status, namesOf(body.data.people), body.data.actor]).toEqual([200, 'ada bob', 'tests'])
    expect([await groups(), await duplicatesOf('ada'), await listed()]).toEqual([[], '', ['ada bob']])
    await shop.ok('DELETE', `${path}/${body.data.id}`)
    expect([await groups(), await duplicatesOf('ada'), await listed()]).toEqual([[['ada bob', 2]], 'bob', []])
    expect((await shop.send('DELETE', `${path}/${body.data.id}`)).status).toBe(404)
  })

  it('are left out of a group only if they are set aside from all others of it', async () => {
    for (const name of ['ada', 'bob', 'eve', 'zoe']) await create(name)
    await setAside('ada', 'bob')
    expect(await groups()).toEqual([['ada bob eve zoe', 4]])
    expect([await duplicatesOf('ada'), await duplicatesOf('eve')]).toEqual(['eve zoe', 'ada bob zoe'])
    await setAside('ada', 'eve', 'zoe')
    expect(await groups()).toEqual([['bob eve zoe', 3]])
    expect([await duplicatesOf('ada'), await duplicatesOf('eve')]).toEqual(['', 'bob'])
    await setAside('bob', 'eve', 'zoe')
    expect(await groups()).toEqual([])
  })

  it('leave a group that shows under the first key that the others share', async () => {
    const phone = { mobile_number: '+393331234567' }
    await create('ada', { email, ...phone })
    await create('bob', { email, ...phone })
    await create('eve', phone)
    expect(await groups()).toEqual([
      ['ada bob', 2],
      ['ada bob eve', 3],
    ])
    await setAside('ada', 'eve')
    await setAside('bob', 'eve')
    expect(await groups()).toEqual([['ada bob', 2]])
    expect(await groups({ by: ['mobile'] })).toEqual([['ada bob', 2]])
  })

  it('are set aside once, however many requests say so at the same time', async () => {
    await create('ada')
    await create('bob')
    const replies = await Promise.all([
      ...Array.from({ length: 4 }, () => setAside('ada', 'bob')),
      ...Array.from({ length: 4 }, () => setAside('bob', 'ada')),
    ])
    expect(new Set(replies.map(({ status, body }) => `${status} ${body.data.id}`)).size).toBe(1)
    expect(await listed()).toEqual(['ada bob'])
  })

  it('may be merged all the same, and are set aside again after the unmerge', async () => {
    await create('ada')
    await create('bob')
    await create('eve')
    await setAside('ada', 'bob')
    await setAside('bob', 'eve')
    await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
    // The set-asides of the merged person hold for the survivor.
    expect([await groups(), await duplicatesOf('eve')]).toEqual([[], ''])
    await shop.ok('POST', '/v1/people/ada/unmerge', { from: 'bob' })
    expect([await groups(), await duplicatesOf('ada')]).toEqual([[['ada eve', 2]], 'eve'])
    expect(await listed()).toEqual(['bob eve', 'ada bob'])
  })

  it('cannot be set aside from themselves after a merge', async () => {
    await create('ada')
    await create('bob')
    await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
    const reply = await setAside('ada', 'bob')
    expect([reply.status, reply.body.details![0]!.path]).toEqual([400, '/external_ids/1'])
  })

  it('are so again when they are restored, and never after an erasure', async () => {
    const ada = await create('ada')
    await create('bob')
    await create('eve')
    await setAside('ada', 'bob', 'eve')
    await setAside('ada', 'bob')
    await shop.ok('DELETE', '/v1/people/ada')
    expect([await groups(), await listed()]).toEqual([[], ['bob', 'bob eve']])
    await shop.ok('POST', `/v1/people/internal/${ada.id}/restore`)
    expect([await groups(), await listed()]).toEqual([[], ['ada bob', 'ada bob eve']])
    await shop.ok('POST', '/v1/people/ada/erase', { reason: 'asked' })
    expect([await groups(), await listed()]).toEqual([[], ['bob eve']])
    const rows = await service.sql('select person_id from set_aside_people where organization_id = $1', [shop.id])
    expect(rows).toHaveLength(2)
    await shop.ok('POST', '/v1/people', { external_id: 'ada', email }, { Prefer: 'erased=recreate' })
    expect(await groups()).toEqual([['bob eve ada', 3]])
  })

  it('are listed in pages, the newest first', async () => {
    for (const name of ['ada', 'bob', 'eve']) await create(name)
    await setAside('ada', 'bob')
    await setAside('ada', 'eve')
    const first = await shop.ok('GET', `${path}?limit=1`)
    expect([namesOf(first.items[0].people), first.has_more]).toEqual(['ada eve', true])
    const second = await shop.ok('GET', `${path}?limit=1&before=${first.items[0].id}`)
    expect([namesOf(second.items[0].people), second.has_more]).toEqual(['ada bob', false])
  })

  it('are those of one organization', async () => {
    const other = await createShop(service)
    const here = [await create('ada'), await create('bob')]
    const there = await other.ok('POST', '/v1/people', { external_id: 'ada', email })
    await other.ok('POST', '/v1/people', { external_id: 'bob', email })
    const { id } = (await setAside('ada', 'bob')).body.data
    expect((await other.ok('POST', '/v1/people/duplicates', {})).items).toHaveLength(1)
    expect((await other.ok('GET', path)).items).toEqual([])
    expect((await other.send('DELETE', `${path}/${id}`)).status).toBe(404)
    const foreign = await shop.send('POST', path, { ids: [here[0]!.id, there.id] })
    const missing = await shop.send('POST', path, { ids: [here[0]!.id, '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'] })
    expect([foreign.status, foreign.body.details]).toEqual([404, [expect.objectContaining({ path: '/ids/1' })]])
    expect([foreign.body.message, foreign.body.details]).toEqual([missing.body.message, missing.body.details])
    expect((await other.send('GET', `/v1/people/internal/${here[0]!.id}/duplicates`)).status).toBe(404)
  })
})

describe('a wrong set-aside', () => {
  const [person, other] = ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50']

  it.each([
    [{}, '/external_ids'],
    [{ external_ids: ['ada'] }, '/external_ids'],
    [{ external_ids: ['ada', 'ada'] }, '/external_ids/1'],
    [{ external_ids: ['ada', 'bob'], ids: [person, other] }, '/external_ids'],
    [{ ids: ['ada', 'bob'] }, '/ids/0'],
  ])('with %j gets 400 at %s', async (body, where) => {
    await create('ada')
    const reply = await shop.send('POST', path, body)
    expect([reply.status, reply.body.error, reply.body.details![0]!.path]).toEqual([400, 'invalid_parameter', where])
  })

  it('gets 403 without people:write', async () => {
    await create('ada')
    await create('bob')
    const reader = service.sender(await service.tokenFor(shop.key, 'people:read'))
    expect((await reader('POST', path, { external_ids: ['ada', 'bob'] })).status).toBe(403)
    expect((await reader('GET', path)).status).toBe(200)
  })
})

describe('the duplicates of a person', () => {
  it('share an email, a phone, or name and birth date, by their own or those of merged people, the likeliest first', async () => {
    const born = { first_name: 'Ada', last_name: 'Lovelace', date_of_birth: '1915-12-10' }
    await create('ada', { email: 'ada@example.com', mobile_number: '+393331234567', ...born })
    await create('old', { email: 'ada@old.example' })
    await create('named', { ...born, first_name: 'ADA' })
    await create('phoned', { mobile_number: '0039 333 1234567' })
    await create('both', { email: 'Ada@Example.com', mobile_number: '+39 3331234567' })
    await create('mailed', { email: 'ada@old.example' })
    await create('stranger', { email: 'eve@example.com' })
    await shop.ok('POST', '/v1/people/ada/merge', { from: 'old' })
    const { items } = await shop.ok('GET', '/v1/people/ada/duplicates')
    expect(
      items.map(({ person, score, why }: { person: Named; score: number; why: { by: string }[] }) => [
        person.external_id,
        score,
        why.map(({ by }) => by).join(' '),
      ]),
    ).toEqual([
      ['both', 0.995, 'email mobile'],
      ['mailed', 0.95, 'email'],
      ['phoned', 0.9, 'mobile'],
      ['named', 0.7, 'name'],
    ])
    expect((await shop.ok('GET', '/v1/people/ada/duplicates?limit=1')).items).toHaveLength(1)
    expect((await shop.send('GET', '/v1/people/nobody/duplicates')).status).toBe(404)
  })
})
