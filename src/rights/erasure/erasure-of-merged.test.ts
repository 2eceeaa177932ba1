import { describe, expect, it } from 'vitest'
import { findCanaries } from '../../../test/support/person-canaries.ts'
import { type Organization, type Reply, useOwnService } from '../../../test/support/service.ts'
import { createShop, expectSuccess } from '../../../test/support/shop.ts'

// A search for canaries reads whole tables. With the tables of a shared service it may exceed the time limit of a
// statement.
const service = useOwnService()
const reason = 'Request of the person'
const erase = ({ send }: Organization, path: string) => send('POST', `/v1/people/${path}/erase`, { reason })
const recreate = { Prefer: 'erased=recreate' }

let merges = 0
/** Creates two people with links and answers, one of whom is merged into the other. */
async function mergeTwo() {
  const organization = await createShop(service, 'friends')
  const { send } = organization
  merges += 1
  const [one, other] = ['one', 'other'].map(name => `${name}-of-merge-${merges}`) as [string, string]
  const create = async (external_id: string, consents: boolean) =>
    (
      await expectSuccess(
        send('POST', '/v1/people', { external_id, email: `${external_id}@example.com`, email_consent: consents }),
      )
    ).body.data.id as string
  const [one_id, other_id] = [await create(one, true), await create(other, false)]
  await expectSuccess(
    send('POST', '/v1/people', { external_id: 'friend', attribute_values: { friends: [one, other] } }),
  )
  await expectSuccess(send('POST', `/v1/people/${one}/merge`, { from: other }))
  return { organization, send, one, other, one_id, other_id }
}

describe('the erasure of a person whom another one was merged into', () => {
  it.each(['the external identifier', 'the alias', 'the internal identifier', 'that of the merged person'])(
    'takes both, under %s',
    async by => {
      const { organization, send, one, other, one_id, other_id } = await mergeTwo()
      const path = { e: one, a: other, i: `internal/${one_id}`, m: `internal/${other_id}` }[
        by.startsWith('that') ? 'm' : by === 'the alias' ? 'a' : by.includes('internal') ? 'i' : 'e'
      ]!
      const { erasure } = (await expectSuccess(erase(organization, path))).body.data
      expect(erasure).toMatchObject({ person_id: one_id, merged_ids: [other_id], tombstones: 4 })
      expect(await findCanaries(service, { one, other })).toEqual([])
      for (const id of [one_id, other_id]) {
        expect((await send('GET', `/v1/people/internal/${id}`)).status).toBe(404)
        expect((await send('POST', `/v1/people/internal/${id}/restore`)).status).toBe(404)
        const log = (await expectSuccess(send('GET', `/v1/people/internal/${id}/history`))).body.data.items
        expect(log[0]).toMatchObject({ operation: 'erase', before: null, after: {} })
        expect((await expectSuccess(erase(organization, `internal/${id}`))).body.data.erasure).toEqual(erasure)
      }
      expect((await send('POST', `/v1/people/${one}/unmerge`, { from: other })).status).toBe(404)
      for (const name of [one, other]) {
        expect((await expectSuccess(erase(organization, name))).body.data.erasure).toEqual(erasure)
        expect((await send('POST', '/v1/people', { external_id: name })).body.reason).toBe('erased')
      }
      expect((await expectSuccess(send('GET', '/v1/people/friend'))).body.data.attribute_values).toEqual({})
    },
  )
})

describe('the erasure of a survivor whose merge was undone', () => {
  it('refuses what the survivor wrote, and nothing that it had only from the other', async () => {
    const organization = await createShop(service)
    const { send } = organization
    const create = (body: object) => expectSuccess(send('POST', '/v1/people', body))
    const phone = { mobile_prefix: '+39', mobile_number: '3331234567' }
    const shared = 'shared@example.com'
    const ada = (await create({ external_id: 'ada', email: shared, mobile_prefix: '+39' })).body.data.id
    await expectSuccess(send('PATCH', '/v1/people/ada', { email: null }))
    for (const [external_id, body] of [
      ['bob', { email: 'bob@example.com', ...phone }],
      ['eve', { email: shared }],
    ] as const) {
      const from_id = (await create({ external_id, ...body })).body.data.id
      await expectSuccess(send('POST', '/v1/people/ada/merge', { from_id }))
      expect((await expectSuccess(send('GET', '/v1/people/ada'))).body.data).toMatchObject(body)
      // The log now has the state of the survivor twice more.
      await expectSuccess(send('DELETE', '/v1/people/ada'))
      await expectSuccess(send('POST', `/v1/people/internal/${ada}/restore`))
      await expectSuccess(send('POST', '/v1/people/ada/unmerge', { from_id }))
    }
    expect((await expectSuccess(erase(organization, 'ada'))).body.data.erasure.tombstones).toBe(2)
    await expectSuccess(send('PATCH', '/v1/people/bob', { email: 'other@example.com', mobile_number: null }))
    await expectSuccess(send('PATCH', '/v1/people/bob', { email: 'bob@example.com', ...phone }))
    expect((await send('POST', '/v1/people', { email: shared })).body.reason).toBe('erased')
    expect((await send('POST', '/v1/people', { external_id: 'ada' })).body.reason).toBe('erased')
  })
})

describe('the identifiers of merged people, once the survivor is deleted', () => {
  const asked = { consent_type_id: 1, channel: 'email' }

  it('lead to the survivor in dossiers, decisions, consent histories and erasures, also over several merges', async () => {
    const { organization, send, one, other, one_id, other_id } = await mergeTwo()
    const last = `last-${one}`
    const { id } = (await expectSuccess(send('POST', '/v1/people', { external_id: last }))).body.data
    await expectSuccess(send('POST', `/v1/people/${last}/merge`, { from: one }))
    const answers = (await expectSuccess(send('GET', `/v1/people/${last}/consents/history`))).body.data
    expect(answers.items.length).toBeGreaterThan(0)
    await expectSuccess(send('DELETE', `/v1/people/${last}`))
    const [deletion] = (await expectSuccess(send('GET', `/v1/people/internal/${id}/history`))).body.data.items
    const names = [last, one, other]
    for (const address of [...names, ...[id, one_id, other_id].map(each => `internal/${each}`)]) {
      const [about] = (await expectSuccess(send('GET', `/v1/people/${address}/dossier`))).body.data
      expect([address, about.person, about.other_holders]).toMatchObject([
        address,
        { id, external_id: last, state: 'deleted', merged_ids: [other_id, one_id] },
        [],
      ])
      const decision = (await expectSuccess(send('POST', `/v1/people/${address}/contactable`, asked))).body.data
      const { sequence, at } = deletion
      expect([address, decision.reasons]).toEqual([address, [{ rule: 'deleted', sequence, at }]])
      const rehearsed = (await expectSuccess(send('POST', `/v1/people/${address}/erase`, { reason, dry_run: true })))
        .body.data
      expect([address, rehearsed.erasure.person_id, rehearsed.other_holders]).toEqual([address, id, []])
    }
    for (const name of names)
      expect((await expectSuccess(send('GET', `/v1/people/${name}/consents/history`))).body.data).toEqual(answers)
    const many = (await expectSuccess(send('POST', '/v1/people/contactable', { external_ids: names, ...asked }))).body
      .data.items
    expect(many.map(({ reasons }: { reasons: object }) => reasons)).toMatchObject(
      names.map(() => [{ rule: 'deleted' }]),
    )
    const { certificate, erasure } = (await expectSuccess(erase(organization, other))).body.data
    expect([erasure.person_id, erasure.merged_ids.toSorted()]).toEqual([id, [one_id, other_id].sort()])
    expect(await findCanaries(service, { one, other, last })).toEqual([])
    for (const name of names)
      expect((await expectSuccess(erase(organization, name))).body.data.certificate).toBe(certificate)
  })

  it('lead to somebody else who has taken the name since, and to the person itself after an unmerge', async () => {
    const { send, one, other, one_id, other_id } = await mergeTwo()
    const dossierOf = async (name: string) =>
      (await expectSuccess(send('GET', `/v1/people/${name}/dossier`))).body.data[0]
    await expectSuccess(send('DELETE', `/v1/people/${one}`))
    const { id } = (await expectSuccess(send('POST', '/v1/people', { external_id: other }))).body.data
    expect(await dossierOf(other)).toMatchObject({ person: { id }, other_holders: [one_id] })
    await expectSuccess(send('DELETE', `/v1/people/${other}`))
    expect(await dossierOf(other)).toMatchObject({ person: { id }, other_holders: [one_id] })
    const second = await mergeTwo()
    await expectSuccess(second.send('POST', `/v1/people/${second.one}/unmerge`, { from: second.other }))
    const found = async () =>
      (await expectSuccess(second.send('GET', `/v1/people/${second.other}/dossier`))).body.data[0].person
    await expectSuccess(second.send('DELETE', `/v1/people/${second.one}`))
    expect(await found()).toMatchObject({ id: second.other_id, state: 'active' })
    await expectSuccess(second.send('DELETE', `/v1/people/${second.other}`))
    expect(await found()).toMatchObject({ id: second.other_id, state: 'deleted' })
    expect(other_id).not.toBe(one_id)
  })
})

describe('the erasure of a person who was merged and unmerged', () => {
  it('takes what the merge had given out of the log of the survivor, whose own values stay', async () => {
    const organization = await createShop(service, 'referrer', 'friends')
    const { send } = organization
    const get = async (path: string) => (await expectSuccess(send('GET', path))).body.data
    const club = `club-${Math.random()}`
    const collected_at = '2025-03-04T05:06:07.000Z'
    await expectSuccess(
      send('POST', '/v1/people', {
        external_id: 'x',
        attribute_values: { friends: [club, 'shared'], referrer: `${club}-referrer`, tags: ['own', `${club}-tag`] },
        consents: [{ consent_type_id: 1, channel: 'email', state: true, collected_at }],
        push_notification_consent: false,
      }),
    )
    const own = { friends: ['own', 'shared'], tags: ['own'] }
    const { id } = (await expectSuccess(send('POST', '/v1/people', { external_id: 'y', attribute_values: own }))).body
      .data
    const before = await get('/v1/people/y')
    await expectSuccess(send('POST', '/v1/people/y/merge', { from: 'x' }))
    expect((await get('/v1/people/y')).attribute_values.friends).toEqual(['own', 'shared', club])
    // While it has the values of the merge, the survivor writes, is deleted and restored, and is merged and unmerged
    // itself.
    await expectSuccess(send('PATCH', '/v1/people/y', { first_name: 'Y' }))
    await expectSuccess(send('POST', '/v1/people', { external_id: 'z', attribute_values: { friends: ['z-friend'] } }))
    await expectSuccess(send('POST', '/v1/people/z/merge', { from: 'y' }))
    await expectSuccess(send('POST', '/v1/people/z/unmerge', { from: 'y' }))
    const merged = await get('/v1/people/y')
    expect([merged.email_consent, merged.attribute_values.friends]).toEqual([true, ['own', 'shared', club]])
    await expectSuccess(send('POST', '/v1/people/y/unmerge', { from: 'x' }))
    const after = await get('/v1/people/y')
    expect(after.attribute_values).toEqual(before.attribute_values)
    await expectSuccess(erase(organization, 'x'))
    expect(await get('/v1/people/y')).toEqual(after)
    const log = (await get('/v1/people/y/history')).items as { version: number; operation: string }[]
    const text = JSON.stringify(log)
    for (const canary of [club, collected_at, '"email_consent":true', '"state":true'])
      expect(text).not.toContain(canary)
    for (const { version } of log.filter(({ operation }) => operation !== 'merge')) {
      const past = await get(`/v1/people/internal/${id}?version=${version}`)
      const { attribute_values, email_consent, push_notification_consent, consents } = before
      expect([version, past]).toMatchObject([
        version,
        { attribute_values, email_consent, push_notification_consent, consents },
      ])
      expect(past.first_name).toBe(version > 2 ? 'Y' : null)
    }
    const dossier = (await expectSuccess(send('GET', '/v1/people/y/dossier'))).body.data as { type: string }[]
    expect(JSON.stringify(dossier)).not.toContain(club)
    const [left] = await service.sql<{ targets: number }>(
      `select count(distinct t.id)::integer as targets from changes c, jsonb_each(c.links) as a(key, sides),
         jsonb_each(a.sides) as s(side, ids), jsonb_array_elements_text(s.ids) as t(id) where c.organization_id = $1 and c.entity_id = $2`,
      [organization.id, id],
    )
    expect(left!.targets).toBe(own.friends.length)
  })
})

it('a program that read a merge before its undoing and the erasure of the merged person learns that the survivor lost its values', async () => {
  const organization = await createShop(
    service,
    { key: 'tags', owner: 'people', type: 'text', cardinality: 'many' },
    { key: 'colors', owner: 'people', type: 'text', cardinality: 'many' },
    { key: 'note', owner: 'people', type: 'text' },
    { key: 'size', owner: 'people', type: 'number' },
  )
  const { send } = organization
  const own = { external_id: 'y', attribute_values: { tags: ['own', 'shared'] } }
  await expectSuccess(send('POST', '/v1/people', own))
  const other = { tags: ['other', 'shared'], colors: ['red'], note: 'of x', size: 42 }
  await expectSuccess(send('POST', '/v1/people', { external_id: 'x', first_name: 'X', attribute_values: other }))
  await expectSuccess(send('POST', '/v1/people/y/merge', { from: 'x' }))
  // The survivor itself writes one of the values, which must stay.
  for (const size of [7, 42]) await expectSuccess(send('PATCH', '/v1/people/y', { attribute_values: { size } }))
  const readAfter = async (position: number) =>
    (await expectSuccess(send('GET', `/v1/changes?after=${position}&subject=person`))).body.data.items as {
      sequence: number
      external_id: string
      after: { first_name?: string | null; attribute_values?: object } | null
    }[]
  const read = await readAfter(0)
  await expectSuccess(send('POST', '/v1/people/y/unmerge', { from: 'x' }))
  await expectSuccess(erase(organization, 'x'))
  const late = [...read, ...(await readAfter(read.at(-1)!.sequence))]
  for (const changes of [late, await readAfter(0)]) {
    const ofSurvivor = changes.flatMap(({ external_id, after }) => (external_id === 'y' ? [after!] : []))
    const { attribute_values: _, ...fields } = Object.assign({}, ...ofSurvivor)
    const values = Object.assign({}, ...ofSurvivor.map(after => after.attribute_values))
    const { first_name, attribute_values } = (await expectSuccess(send('GET', '/v1/people/y'))).body.data
    expect([fields.first_name ?? null, withoutNulls(values)]).toEqual([first_name, attribute_values])
    expect(attribute_values).toEqual({ ...own.attribute_values, size: 42 })
  }
})

it('lists and links that a survivor wrote after the merge are its own, in the log as in the present', async () => {
  const organization = await createShop(
    service,
    { key: 'tags', owner: 'people', type: 'text', cardinality: 'many' },
    { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' },
  )
  const { send } = organization
  for (const external_id of ['y', 'eve']) await expectSuccess(send('POST', '/v1/people', { external_id }))
  const given = { tags: ['of x'], friends: ['dan'] }
  await expectSuccess(send('POST', '/v1/people', { external_id: 'x', attribute_values: given }))
  await expectSuccess(send('POST', '/v1/people/y/merge', { from: 'x' }))
  const added = { tags: { $add: ['own'] }, friends: { $add: ['eve'] } }
  await expectSuccess(send('PATCH', '/v1/people/y', { attribute_values: added }))
  await expectSuccess(send('POST', '/v1/people/y/unmerge', { from: 'x' }))
  await expectSuccess(erase(organization, 'x'))
  const { version, ...now } = (await expectSuccess(send('GET', '/v1/people/y'))).body.data
  expect(now.attribute_values).toEqual({ tags: ['of x', 'own'], friends: ['dan', 'eve'] })
  const { data } = (await expectSuccess(send('GET', `/v1/people/y?version=${version}`))).body
  expect(data.attribute_values).toEqual(now.attribute_values)
  const { data: merged } = (await expectSuccess(send('GET', '/v1/people/y?version=2'))).body
  expect(merged.attribute_values).toEqual({})
})

const withoutNulls = (values: object) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))

describe('a person who was erased', () => {
  it('does not come back by an unmerge of somebody with the same email, unless with erased=recreate', async () => {
    const { organization, send, one, other } = await mergeTwo()
    await expectSuccess(send('POST', '/v1/people', { external_id: 'third', email: `${other}@example.com` }))
    await expectSuccess(erase(organization, 'third'))
    const unmerge = (headers?: Record<string, string>) =>
      send('POST', `/v1/people/${one}/unmerge`, { from: other }, headers)
    const refused = await unmerge()
    expect([refused.status, refused.body.reason, refused.body.details]).toMatchObject([
      409,
      'erased',
      [{ path: '/email' }],
    ])
    expect((await expectSuccess(unmerge(recreate))).body.data.unmerged.email).toBe(`${other}@example.com`)
  })

  it('is not recognized or created by a match of the email, and is no alias', async () => {
    const organization = await createShop(service)
    const { send } = organization
    const ada = { external_id: 'ada', email: 'ada@example.com' }
    await expectSuccess(send('POST', '/v1/people', ada))
    await expectSuccess(erase(organization, 'ada'))
    const match = ['email']
    const refused = await send('POST', '/v1/people/upsert', { email: 'ADA@example.com', match })
    expect([refused.status, refused.body.reason]).toEqual([409, 'erased'])
    await expectSuccess(send('POST', '/v1/people', { external_id: 'eve', email: 'eve@example.com' }))
    const alias = await send('POST', '/v1/people/upsert', { external_id: 'ada', email: 'eve@example.com', match })
    expect([alias.status, alias.body.reason]).toEqual([409, 'erased'])
    expect((await send('POST', '/v1/people/lookup', { email: 'ada@example.com' })).body.data.items).toEqual([])
  })
})

describe('the internal identifiers of merged people', () => {
  const question = { consent_type_id: 1, channel: 'email' }
  const requests = (at: string): [method: string, path: string, body?: object][] => [
    ['GET', ''],
    ['GET', `?at=${at}`],
    ['GET', '/history'],
    ['GET', '/consents/history'],
    ['GET', '/dossier'],
    ['POST', '/related', { target: 'people' }],
    ['POST', '/related', { target: 'companies' }],
    ['POST', '/contactable', question],
    ['POST', '/contactable', { ...question, at }],
    ['PATCH', '', { first_name: 'Ada' }],
    ['PUT', '', {}],
    ['DELETE', ''],
    ['POST', '/merge', { from: 'friend' }],
    ['POST', '/unmerge', { from: 'friend' }],
  ]

  it.each<[string, (organization: Organization, last: string) => Promise<Reply>]>([
    ['erased', erase],
    ['deleted', ({ send }, last) => send('DELETE', `/v1/people/${last}`)],
  ])('answer as that of the last survivor once it is %s', async (_, end) => {
    const { organization, send, one, one_id, other_id } = await mergeTwo()
    const last = `last-${one}`
    const { id } = (await expectSuccess(send('POST', '/v1/people', { external_id: last, email: 'last@example.com' })))
      .body.data
    await expectSuccess(send('POST', `/v1/people/${last}/merge`, { from: one }))
    await expectSuccess(end(organization, last))
    const [{ at }] = (await expectSuccess(send('GET', `/v1/people/internal/${id}/history`))).body.data.items
    for (const [method, path, body] of requests(at)) {
      const statusOf = async (each: string) => (await send(method, `/v1/people/internal/${each}${path}`, body)).status
      const own = await statusOf(id)
      for (const each of [one_id, other_id]) expect([method, path, await statusOf(each)]).toEqual([method, path, own])
    }
  })
})
