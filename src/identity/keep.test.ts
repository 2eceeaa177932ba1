import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer', 'city', {
  key: 'card',
  owner: 'people',
  type: 'text',
  unique: true,
  indexed: true,
})

type Body = Record<string, unknown>

const get = async (path: string) => (await shop.send('GET', `/v1/people/${path}`)).body.data
const create = async (external_id: string | null, body: Body = {}) =>
  (await shop.send('POST', '/v1/people', { external_id, ...body })).body.data
const merge = (into: string, from: string, rest: Body = {}) =>
  shop.send('POST', `/v1/people/${into}/merge`, { from, ...rest })
const unmerge = (into: string, from: string) => shop.send('POST', `/v1/people/${into}/unmerge`, { from })
const lookUp = async (key: Body) =>
  (await shop.ok('POST', '/v1/people/lookup', key)).items.map(({ id }: { id: string }) => id)

/** The values that a read shows, except for those that every write changes. */
const valuesOf = ({ version, updated_at, ...values }: Body) => values

describe('a merge with `keep`', () => {
  it('gives the survivor the value of the person that the request names, field by field', async () => {
    await create('ada', {
      ...{ first_name: 'Ada', last_name: 'Byron', email: 'ada@home.example', mobile_prefix: '+39' },
      ...{ mobile_number: '3331234567', language: 'en' },
      attribute_values: { city: 'Rome', note: { a: 1 }, friends: ['eve'], referrer: 'eve' },
    })
    await create('shopper', {
      ...{ first_name: 'A.', last_name: 'Lovelace', email: 'ada@work.example', mobile_prefix: '+49' },
      ...{ mobile_number: '3012345', date_of_birth: '1915-12-10' },
      attribute_values: { city: 'Paris', note: [2], friends: ['bob'], referrer: 'bob', employer: 'acme' },
    })
    const before = [await get('ada'), await get('shopper')]
    const keep = {
      ...{ last_name: 'other', email: 'other', mobile_number: 'other', language: 'other', date_of_birth: 'survivor' },
      ...{ 'attribute_values.city': 'survivor', 'attribute_values.note': 'other', 'attribute_values.friends': 'other' },
      ...{ 'attribute_values.referrer': 'other', 'attribute_values.employer': 'survivor' },
    }
    const preview = await merge('ada', 'shopper', { keep, dry_run: true })
    expect([await get('ada'), await get('shopper')]).toEqual(before)
    const { body } = await merge('ada', 'shopper', { keep })
    expect(body.data.changes).toEqual(preview.body.data.changes)
    expect(valuesOf(body.data.person)).toEqual(valuesOf(preview.body.data.person))
    expect(body.data.changes.fields.map(({ path }: { path: string }) => path).toSorted()).toEqual([
      ...['/attribute_values/friends', '/attribute_values/note', '/attribute_values/referrer'],
      ...['/email', '/language', '/last_name', '/mobile_number', '/mobile_prefix'],
    ])
    expect(await get('ada')).toMatchObject({
      ...{ first_name: 'Ada', last_name: 'Lovelace', email: 'ada@work.example', mobile_prefix: '+49' },
      ...{ mobile_number: '3012345', language: null, date_of_birth: null },
      attribute_values: { city: 'Rome', note: [2], friends: ['bob'], referrer: 'bob' },
    })
    expect((await get('ada')).attribute_values).not.toHaveProperty('employer')
    const back = await unmerge('ada', 'shopper')
    expect(back.body.data.changes.kept).toEqual([])
    expect([await get('ada'), await get('shopper')].map(valuesOf)).toEqual(before.map(valuesOf))
  })

  it('leaves the email and phone that the survivor gives up as ways to find it, until the unmerge', async () => {
    const ada = await create('ada', { email: 'ada@home.example', mobile_number: '+393331234567' })
    const shopper = await create('shopper', { email: 'ada@work.example', mobile_number: '+393331234568' })
    const keep = { email: 'other', mobile_number: 'other' }
    const { changes } = (await merge('ada', 'shopper', { keep })).body.data
    expect(changes.aliases).toEqual([
      { kind: 'external_id', value: 'shopper' },
      { kind: 'email', value: 'ada@home.example' },
      { kind: 'mobile', value: '+393331234567' },
    ])
    const keys = [{ email: 'ada@home.example' }, { email: 'ada@work.example' }, { mobile_number: '+393331234567' }]
    for (const key of keys) expect(await lookUp(key)).toEqual([ada.id])
    const back = await unmerge('ada', 'shopper')
    expect(back.body.data.changes.aliases).toEqual([{ kind: 'external_id', value: 'shopper' }])
    expect(await lookUp(keys[0]!)).toEqual([ada.id])
    expect(await lookUp(keys[1]!)).toEqual([shopper.id])
  })

  it('keeps what was written to the survivor since, and says so', async () => {
    await create('ada', { email: 'ada@home.example', attribute_values: { city: 'Rome' } })
    await create('shopper', { email: 'ada@work.example', attribute_values: { city: 'Paris' } })
    await merge('ada', 'shopper', { keep: { email: 'other', 'attribute_values.city': 'other' } })
    await shop.ok('PATCH', '/v1/people/ada', { attribute_values: { city: 'Oslo' } })
    const { data } = (await unmerge('ada', 'shopper')).body
    expect(data.changes.kept).toEqual([{ path: '/attribute_values/city', reason: 'written_since' }])
    expect(data.person).toMatchObject({ email: 'ada@home.example', attribute_values: { city: 'Oslo' } })
  })

  it('passes on a unique value, and refuses the unmerge while another person has the one that the survivor had', async () => {
    await create('ada', { attribute_values: { card: 'A' } })
    await create('shopper', { attribute_values: { card: 'B' } })
    expect((await merge('ada', 'shopper', { keep: { 'attribute_values.card': 'other' } })).status).toBe(200)
    await create('eve', { attribute_values: { card: 'A' } })
    const refused = await unmerge('ada', 'shopper')
    expect([refused.status, refused.body.error]).toEqual([409, 'duplicate_entry'])
    await shop.ok('PATCH', '/v1/people/eve', { attribute_values: { card: null } })
    expect((await unmerge('ada', 'shopper')).status).toBe(200)
    expect([(await get('ada')).attribute_values.card, (await get('shopper')).attribute_values.card]).toEqual(['A', 'B'])
  })

  it('is refused for an erased email that only the survivor had, unless the unmerge says recreate', async () => {
    await create('ada', { email: 'twin@example.com' })
    await create('shopper', { email: 'ada@work.example' })
    await create('twin', { email: 'Twin@example.com' })
    await merge('ada', 'shopper', { keep: { email: 'other' } })
    await shop.ok('POST', '/v1/people/twin/erase', { reason: 'asked' })
    expect((await unmerge('ada', 'shopper')).status).toBe(409)
    const recreate = { Prefer: 'erased=recreate' }
    expect((await shop.send('POST', '/v1/people/ada/unmerge', { from: 'shopper' }, recreate)).status).toBe(200)
    expect((await get('ada')).email).toBe('twin@example.com')
  })

  it.each([
    ['state', { state: 'other' }, '/keep/state'],
    ['a summary of consents', { email_consent: 'other' }, '/keep/email_consent'],
    ['a refusal of push notifications', { push_notification_consent: 'other' }, '/keep/push_notification_consent'],
    ['the prefix of a phone alone', { mobile_prefix: 'other' }, '/keep/mobile_prefix'],
    ['a misspelt field', { emial: 'other' }, '/keep/emial'],
    ['an attribute that nobody has', { 'attribute_values.color': 'other' }, '/keep/attribute_values.color'],
    ['a name that the other lacks', { external_id: 'other' }, '/keep/external_id'],
    ['a third person', { email: 'both' }, '/keep/email'],
  ])('refuses %s with its path, and stores nothing', async (_, keep, path) => {
    await create('ada', { email: 'ada@home.example' })
    const nameless = await create(null, { email: 'ada@work.example' })
    const head = await shop.head()
    const reply = await shop.send('POST', '/v1/people/ada/merge', { from_id: nameless.id, keep })
    expect([reply.status, reply.body.error, reply.body.details?.[0]?.path]).toEqual([400, 'invalid_parameter', path])
    expect(await shop.head()).toBe(head)
  })

  it('takes an attribute that is declared although neither person has it', async () => {
    await create('ada')
    await create('shopper')
    const reply = await merge('ada', 'shopper', { keep: { 'attribute_values.city': 'other', email: 'other' } })
    expect([reply.status, reply.body.data.changes.fields]).toEqual([200, []])
  })

  it('is no choice of an unmerge', async () => {
    await create('ada')
    await create('shopper')
    await merge('ada', 'shopper')
    const body = { from: 'shopper', keep: { email: 'other' } }
    const reply = await shop.send('POST', '/v1/people/ada/unmerge', body)
    expect([reply.status, reply.body.details![0]!.path]).toEqual([400, '/keep'])
  })

  it('takes links for good: one that a later merge brings anew goes with that merge', async () => {
    for (const name of ['ada', 'first', 'empty', 'again']) await create(name)
    for (const name of ['first', 'again'])
      await shop.ok('PATCH', `/v1/people/${name}`, { attribute_values: { friends: ['eve'] } })
    await merge('ada', 'first')
    await merge('ada', 'empty', { keep: { 'attribute_values.friends': 'other' } })
    expect((await get('ada')).attribute_values).toEqual({})
    await merge('ada', 'again')
    for (const name of ['again', 'first', 'empty']) {
      expect((await unmerge('ada', name)).status).toBe(200)
      expect((await get('ada')).attribute_values).toEqual({})
    }
  })
})

describe('a merge that keeps the name of the other', () => {
  it('gives it to a survivor without one, and the unmerge gives it back', async () => {
    const nameless = await create(null, { email: 'ada@example.com' })
    const shopper = await create('shopper', { first_name: 'Ada' })
    const path = `/v1/people/internal/${nameless.id}`
    const keep = { external_id: 'other' }
    const reply = await shop.ok('POST', `${path}/merge`, { from: 'shopper', keep })
    expect(reply.changes.fields).toContainEqual({ path: '/external_id', before: null, after: 'shopper' })
    expect(reply.changes.aliases).toEqual([])
    expect(reply.person).toMatchObject({ id: nameless.id, external_id: 'shopper', email: 'ada@example.com' })
    expect(await get('shopper')).toEqual(reply.person)
    expect((await shop.send('POST', '/v1/people', { external_id: 'shopper' })).status).toBe(409)
    const back = await shop.ok('POST', `${path}/unmerge`, { from: 'shopper' })
    expect([back.person.external_id, back.unmerged.external_id]).toEqual([null, 'shopper'])
    expect((await get('shopper')).id).toBe(shopper.id)
    expect(back.unmerged.version).toBeGreaterThan(reply.person.version)
  })

  it('leaves the own name of the survivor as an alias, until the unmerge', async () => {
    const ada = await create('ada')
    const shopper = await create('shopper')
    const since = await shop.head()
    const merged = (await merge('ada', 'shopper', { keep: { external_id: 'other' } })).body.data
    expect(merged.changes.aliases).toEqual([{ kind: 'external_id', value: 'ada' }])
    expect((await get('ada')).external_id).toBe('shopper')
    expect((await get('shopper')).id).toBe(ada.id)
    expect((await get(`internal/${shopper.id}`)).id).toBe(ada.id)
    const { items } = await shop.ok('GET', `/v1/changes?after=${since}`)
    expect(items.map(({ operation, id, after }: Body) => [operation, id, after])).toEqual([
      ['merge', shopper.id, { merged_into: ada.id }],
      ['update', ada.id, { external_id: 'shopper' }],
    ])
    const atMerge = encodeURIComponent(items[0].at)
    expect((await get(`ada?at=${encodeURIComponent(ada.updated_at)}`)).id).toBe(ada.id)
    expect((await get(`shopper?at=${atMerge}`)).id).toBe(ada.id)
    // The alias names the survivor, not the merged person.
    expect((await unmerge('shopper', 'ada')).status).toBe(404)
    expect((await unmerge('ada', 'shopper')).status).toBe(200)
    expect([(await get('ada')).id, (await get('shopper')).id]).toEqual([ada.id, shopper.id])
    expect((await unmerge('ada', 'shopper')).status).toBe(404)
  })

  it('is undone in any order with a merge after it, and with one of the survivor', async () => {
    const people = [await create('ada'), await create('bob'), await create('eve'), await create('zoe')]
    const ids = async () => Promise.all(['ada', 'bob', 'eve', 'zoe'].map(async name => (await get(name)).id))
    const keep = { external_id: 'other' }
    for (const undone of [
      ['bob', 'eve'],
      ['eve', 'bob'],
    ]) {
      expect((await merge('ada', 'bob', { keep })).status).toBe(200)
      expect((await merge('ada', 'eve', { keep })).status).toBe(200)
      expect((await get('ada')).external_id).toBe('eve')
      for (const name of undone)
        expect((await shop.send('POST', `/v1/people/internal/${people[0].id}/unmerge`, { from: name })).status).toBe(
          200,
        )
      expect(await ids()).toEqual(people.map(({ id }) => id))
      expect((await get('ada')).external_id).toBe('ada')
    }
    await merge('ada', 'bob', { keep })
    await merge('zoe', 'ada', { keep })
    expect([(await get('zoe')).external_id, (await get('ada')).id]).toEqual(['bob', people[3].id])
    const zoe = `/v1/people/internal/${people[3].id}/unmerge`
    await shop.ok('POST', zoe, { from_id: people[0].id })
    expect((await get('ada')).external_id).toBe('bob')
    await shop.ok('POST', `/v1/people/internal/${people[0].id}/unmerge`, { from: 'bob' })
    expect(await ids()).toEqual(people.map(({ id }) => id))
  })

  it('stays with a survivor that was renamed since, and the other returns', async () => {
    await create('ada')
    const shopper = await create('shopper')
    await merge('ada', 'shopper', { keep: { external_id: 'other' } })
    await shop.ok('PATCH', '/v1/people/shopper', { external_id: 'countess' })
    const back = await shop.ok('POST', '/v1/people/countess/unmerge', { from_id: shopper.id })
    expect(back.changes.kept).toEqual([{ path: '/external_id', reason: 'written_since' }])
    expect([back.person.external_id, back.unmerged.external_id]).toEqual(['countess', 'shopper'])
  })

  it('is refused while another person has the name that the survivor had', async () => {
    await create('ada')
    const shopper = await create('shopper')
    await merge('ada', 'shopper', { keep: { external_id: 'other' } })
    const { id } = await get('ada')
    // A deletion ends the aliases. A restore does not bring them back.
    await shop.ok('DELETE', '/v1/people/shopper')
    await shop.ok('POST', `/v1/people/internal/${id}/restore`)
    await create('ada')
    const path = `/v1/people/internal/${id}/unmerge`
    const refused = await shop.send('POST', path, { from_id: shopper.id })
    expect([refused.status, refused.body.error]).toEqual([409, 'duplicate_entry'])
    await shop.ok('DELETE', '/v1/people/ada')
    const back = await shop.ok('POST', path, { from_id: shopper.id })
    expect([back.person.external_id, back.unmerged.external_id]).toEqual(['ada', 'shopper'])
  })
})

it('merges with any choices are undone in any order, and everybody has what they had', {
  timeout: 400_000,
}, async () => {
  const text = (prefix: string) => fc.constantFrom(null, `${prefix}1`, `${prefix}2`, `${prefix}3`)
  const person = fc.record({
    first_name: text('n'),
    email: fc.constantFrom(null, 'a@x.example', 'b@x.example', 'c@x.example'),
    mobile_prefix: fc.constantFrom(null, '+39', '+49'),
    mobile_number: fc.constantFrom(null, '3331234567', '3331234568'),
    attribute_values: fc.record(
      {
        city: text('c'),
        note: fc.constantFrom<unknown>(null, 1, [1], { a: 1 }),
        referrer: fc.constantFrom(null, 'x', 'y', 'z'),
        friends: fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 }),
      },
      { requiredKeys: [] },
    ),
  })
  const side = fc.constantFrom('survivor', 'other')
  const keep = fc.record(
    {
      ...{ first_name: side, email: side, mobile_number: side, external_id: side, 'attribute_values.city': side },
      ...{ 'attribute_values.referrer': side, 'attribute_values.friends': side },
    },
    { requiredKeys: [] },
  )
  const order = fc.shuffledSubarray([0, 1, 2], { minLength: 3 })
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(person, person, person, person),
      fc.tuple(keep, keep, keep),
      order,
      async (people, keeps, undone) => {
        const { send, ok } = await createShop(service, 'referrer', 'friends', 'city')
        const created: { id: string }[] = []
        for (const [n, body] of people.entries())
          created.push(await ok('POST', '/v1/people', { ...body, external_id: `p${n}` }))
        const read = () => Promise.all(created.map(({ id }) => ok('GET', `/v1/people/internal/${id}`)))
        const addresses = async () => {
          const emails = ['a@x.example', 'b@x.example', 'c@x.example'].map(email => ({ email }))
          const found = await Promise.all(emails.map(key => ok('POST', '/v1/people/lookup', key)))
          return found.map(({ items }) => items.map(({ id }: { id: string }) => id))
        }
        const before = [(await read()).map(valuesOf), await addresses()]
        const survivor = `/v1/people/internal/${created[0]!.id}`
        for (const [n, chosen] of keeps.entries()) {
          const merged = await send('POST', `${survivor}/merge`, { from: `p${n + 1}`, keep: chosen })
          expect(merged.status).toBe(200)
        }
        for (const n of undone) {
          const back = await ok('POST', `${survivor}/unmerge`, { from_id: created[n + 1]!.id })
          expect(back.changes.kept).toEqual([])
        }
        expect([(await read()).map(valuesOf), await addresses()]).toEqual(before)
      },
    ),
    someRuns(25),
  )
})
