import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { sealLedgers } from '../../test/support/ledger.ts'
import { useOwnService } from '../../test/support/service.ts'
import { dataOf, useShop } from '../../test/support/shop.ts'
import { names, runBeforeTransaction, write, writeAll } from '../../test/support/writes.ts'
import { contextOf } from '../db/context.ts'
import { auditLedger } from '../ledger/audit.ts'
import { retentionFollower } from '../rights/retention.ts'

const service = useOwnService()
const shop = useShop(service, 'referrer', 'friends')

const get = async (path: string) => (await shop.send('GET', `/v1/people/${path}`)).body.data
const create = async (external_id: string, body: object = {}) =>
  (await shop.send('POST', '/v1/people', { external_id, ...body })).body.data
const merge = (into: string, from: string, headers?: Record<string, string>) =>
  shop.send('POST', `/v1/people/${into}/merge`, { from }, headers)
const unmerge = (into: string, from: string, headers?: Record<string, string>) =>
  shop.send('POST', `/v1/people/${into}/unmerge`, { from }, headers)
const countRows = async (table: string) =>
  (
    await service.sql<{ count: number }>(`select count(*)::integer as count from ${table} where organization_id = $1`, [
      shop.id,
    ])
  )[0]!.count
const head = async () =>
  (
    await service.sql<{ sequence: number }>('select sequence from change_heads where organization_id = $1', [shop.id])
  )[0]!

describe('a merge is refused and stores nothing', () => {
  const cases: [string, () => Promise<unknown>, string, object, number, string, string][] = [
    ['with oneself', () => create('ada'), 'ada', { from: 'ada' }, 400, 'invalid_parameter', '/from'],
    ['with a person who is missing', () => create('ada'), 'ada', { from: 'nobody' }, 404, 'not_found', '/from'],
    ['into a person who is missing', () => create('ada'), 'nobody', { from: 'ada' }, 404, 'not_found', ''],
    [
      'with a placeholder',
      () => create('ada', { attribute_values: { referrer: 'bob' } }),
      'ada',
      { from: 'bob' },
      400,
      'invalid_parameter',
      '/from',
    ],
    [
      'into a placeholder',
      () => create('ada', { attribute_values: { referrer: 'bob' } }),
      'bob',
      { from: 'ada' },
      400,
      'invalid_parameter',
      '',
    ],
    ['without a name', () => create('ada'), 'ada', {}, 400, 'invalid_parameter', '/from'],
    [
      'with two names',
      () => create('ada'),
      'ada',
      { from: 'ada', from_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f' },
      400,
      'invalid_parameter',
      '/from',
    ],
  ]
  it.each(cases)('%s', async (_, prepare, into, body, status, error, path) => {
    await prepare()
    const before = await head()
    for (const dry_run of [false, true]) {
      const reply = await shop.send('POST', `/v1/people/${into}/merge`, { ...body, dry_run })
      expect([reply.status, reply.body.error, reply.body.details?.[0]?.path ?? '']).toEqual([status, error, path])
    }
    expect(await head()).toEqual(before)
  })

  it('with another version than If-Match names, and with the scope to read alone', async () => {
    await create('ada')
    await create('bob')
    expect((await merge('ada', 'bob', { 'If-Match': '"7"' })).status).toBe(412)
    const reader = service.sender(await service.tokenFor(shop.key, 'people:read'))
    expect((await reader('POST', '/v1/people/ada/merge', { from: 'bob' })).status).toBe(403)
    expect((await merge('ada', 'bob', { 'If-Match': '"1"' })).status).toBe(200)
  })

  it('with more links than an attribute may have', async () => {
    const { links, placeholders } = service.config.limits
    // The number of placeholders of one write is limited.
    for (const [name, prefix] of [
      ['ada', 'a'],
      ['bob', 'b'],
    ] as const) {
      const friends = names(prefix, links / 2 + 1)
      for (
        let count = Math.min(placeholders, friends.length);
        ;
        count = Math.min(count + placeholders, friends.length)
      ) {
        await shop.send('POST', '/v1/people/upsert', {
          external_id: name,
          attribute_values: { friends: friends.slice(0, count) },
        })
        if (count === friends.length) break
      }
      await shop.send('POST', '/v1/people', { external_id: name })
    }
    const before = await head()
    const reply = await merge('ada', 'bob')
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/friends'])
    expect(await head()).toEqual(before)
  })
})

it('answers a token without the scope to read with the identifiers alone', async () => {
  await create('ada')
  const bob = await create('bob')
  const writer = service.sender(await service.tokenFor(shop.key, 'people:write'))
  const reply = await writer('POST', '/v1/people/ada/merge', { from: 'bob' })
  const merged = { id: bob.id, external_id: 'bob' }
  expect(reply.body.data).toEqual({ dry_run: false, merge_id: 1, completed: true, merged })
})

it('runs once for an Idempotency-Key', async () => {
  await create('ada')
  await create('bob', { email: 'bob@example.org' })
  const key = { 'Idempotency-Key': 'merge-1' }
  const [one, two] = [await merge('ada', 'bob', key), await merge('ada', 'bob', key)]
  expect([one.status, two.status]).toEqual([200, 200])
  expect(two.body.data).toEqual(one.body.data)
  expect(await countRows('merges')).toBe(1)
})

describe('chains of merges', () => {
  it('collapse: all identifiers lead to the last survivor, and the last merge is undone first', async () => {
    const [ada, bob, cleo] = [
      await create('ada'),
      await create('bob'),
      await create('cleo', { email: 'c@example.org' }),
    ]
    await dataOf(merge('bob', 'cleo'))
    await dataOf(merge('ada', 'bob'))
    for (const path of ['bob', 'cleo', `internal/${bob.id}`, `internal/${cleo.id}`])
      expect((await get(path)).id).toBe(ada.id)
    const early = await unmerge('ada', 'cleo')
    expect([early.status, early.body.details?.[0]?.message]).toEqual([
      409,
      `was merged into ${bob.id}, who was merged later. Undo the later merge first.`,
    ])
    await dataOf(unmerge('ada', 'bob'))
    expect([(await get('cleo')).id, (await get('ada')).email]).toEqual([bob.id, null])
    await dataOf(unmerge('bob', 'cleo'))
    const after = await Promise.all(['ada', 'bob', 'cleo'].map(get))
    expect(after.map(({ id, email }) => [id, email])).toEqual([
      [ada.id, null],
      [bob.id, null],
      [cleo.id, 'c@example.org'],
    ])
    expect(await countRows('aliases')).toBe(0)
  })

  it('never close a circle: who was merged leads to the survivor', async () => {
    await create('ada')
    await create('bob')
    await dataOf(merge('ada', 'bob'))
    const reply = await merge('bob', 'ada')
    expect([reply.status, reply.body.message, reply.body.details?.[0]?.message]).toEqual([
      400,
      'The request has invalid values. See details.',
      'leads to the same person. Name another one.',
    ])
  })

  it('may be undone in any order if all have the same survivor', async () => {
    await create('ada', { attribute_values: { friends: ['x'] } })
    await create('bob', { first_name: 'B', attribute_values: { friends: ['y'] } })
    await create('cleo', { last_name: 'C', attribute_values: { friends: ['z'] } })
    await create('fan', { attribute_values: { friends: ['bob', 'ada', 'cleo'] } })
    const before = await Promise.all(['ada', 'bob', 'cleo', 'fan'].map(get))
    await dataOf(merge('ada', 'bob'))
    await dataOf(merge('ada', 'cleo'))
    expect((await get('fan')).attribute_values.friends).toEqual(['ada'])
    await dataOf(unmerge('ada', 'bob'))
    expect(await get('ada')).toMatchObject({
      first_name: null,
      last_name: 'C',
      attribute_values: { friends: ['x', 'z'] },
    })
    expect((await get('fan')).attribute_values.friends).toEqual(['bob', 'ada'])
    await dataOf(unmerge('ada', 'cleo'))
    const after = await Promise.all(['ada', 'bob', 'cleo', 'fan'].map(get))
    const lasting = ({ first_name, last_name, attribute_values }: (typeof before)[0]) => [
      first_name,
      last_name,
      attribute_values,
    ]
    expect(after.map(lasting)).toEqual(before.map(lasting))
  })
})

describe('an unmerge', () => {
  it('says what the survivor keeps and why', async () => {
    await create('ada', {})
    const values = { first_name: 'B', language: 'it', attribute_values: { friends: ['y'], city: 'Rome', score: 1 } }
    await create('bob', { ...values, push_notification_consent: false })
    await create('cleo', { push_notification_consent: false })
    await dataOf(merge('ada', 'bob'))
    await dataOf(merge('ada', 'cleo'))
    const later = { first_name: 'A', attribute_values: { friends: ['z'], city: 'Milan' } }
    await dataOf(shop.send('PATCH', '/v1/people/ada', later))
    const { changes, person } = await dataOf(unmerge('ada', 'bob'))
    expect(changes.kept).toEqual([
      { path: '/first_name', reason: 'written_since' },
      { path: '/push_notification_consent', reason: 'refused_by_another' },
      { path: '/attribute_values/city', reason: 'written_since' },
      { path: '/attribute_values/friends', reason: 'written_since' },
    ])
    expect(person).toMatchObject({ ...later, language: null, push_notification_consent: false })
    expect((await dataOf(unmerge('ada', 'cleo'))).changes.kept).toEqual([])
    expect(await get('ada')).toMatchObject({ ...later, language: null, push_notification_consent: null })
  })

  it('is refused if there is no such merge, and if the name was taken', async () => {
    await create('ada')
    await create('bob')
    expect((await unmerge('ada', 'bob')).status).toBe(404)
    expect((await unmerge('nobody', 'bob')).status).toBe(404)
    const { merged } = await dataOf(merge('ada', 'bob'))
    // An alias is taken for every person except its own.
    expect((await shop.send('POST', '/v1/people', { external_id: 'bob' })).status).toBe(409)
    await shop.send('PATCH', '/v1/people/ada', { external_id: 'bob' })
    const reply = await shop.send('POST', '/v1/people/bob/unmerge', { from_id: merged.id })
    expect([reply.status, reply.body.error]).toEqual([409, 'duplicate_entry'])
    await shop.send('PATCH', '/v1/people/bob', { external_id: 'ada' })
    expect((await shop.send('POST', '/v1/people/ada/unmerge', { from_id: merged.id })).status).toBe(200)
    expect((await get('bob')).id).toBe(merged.id)
  })

  it('is refused if the name became an alias of another person', async () => {
    await create('ada')
    await create('bob')
    const { merged } = await dataOf(merge('ada', 'bob'))
    await shop.send('PATCH', '/v1/people/ada', { external_id: 'bob' })
    await shop.send('PATCH', '/v1/people/bob', { external_id: 'ada' })
    await create('eve', { email: 'eve@example.com' })
    const match = ['external_id', 'email']
    await dataOf(shop.send('POST', '/v1/people/upsert', { external_id: 'bob', email: 'eve@example.com', match }))
    const { status, body } = await shop.send('POST', '/v1/people/ada/unmerge', { from_id: merged.id })
    expect([status, body.error, body.details?.map(({ path }) => path)]).toEqual([409, 'duplicate_entry', ['/from_id']])
  })

  it('is refused if it would bring back an identifier of a person who was erased since', async () => {
    const eraser = service.sender(await service.tokenFor(shop.key, 'people:erase people:read'))
    const erase = (name: string) => eraser('POST', `/v1/people/${name}/erase`, { reason: 'Request of the person' })
    await create('ada')
    await create('bob', { email: 'shared@example.org' })
    await create('eve', { email: 'shared@example.org' })
    await dataOf(merge('ada', 'bob'))
    await dataOf(erase('eve'))
    const refused = await unmerge('ada', 'bob')
    expect([refused.status, (refused.body as { reason?: string }).reason, refused.body.details?.[0]?.path]).toEqual([
      409,
      'erased',
      '/email',
    ])
    await dataOf(unmerge('ada', 'bob', { Prefer: 'erased=recreate' }))
    await dataOf(merge('ada', 'bob'))
    await dataOf(erase('ada'))
    expect((await unmerge('ada', 'bob')).status).toBe(404)
    expect((await shop.send('GET', '/v1/people/bob')).status).toBe(404)
    expect(
      await service.sql('select undo from merges where organization_id = $1 and undo is not null', [shop.id]),
    ).toEqual([])
  })

  it('is possible by every identifier, and once', async () => {
    await create('ada')
    const bob = await create('bob')
    await dataOf(merge('ada', 'bob'))
    const dry = await dataOf(shop.send('POST', '/v1/people/bob/unmerge', { from_id: bob.id, dry_run: true }))
    expect([dry.dry_run, dry.merge_id, dry.unmerged.external_id]).toEqual([true, null, 'bob'])
    const real = await dataOf(shop.send('POST', `/v1/people/internal/${bob.id}/unmerge`, { from: 'bob' }))
    expect(real.unmerged).toMatchObject({ id: bob.id, external_id: 'bob', version: 3 })
    expect((await unmerge('ada', 'bob')).status).toBe(404)
  })

  it('names the merge by an alias that the merged person had from a match', async () => {
    await create('ada')
    const bob = await create('bob', { email: 'bob@example.com' })
    const match = { match: ['email'], email: 'bob@example.com', external_id: 'news-7' }
    expect((await shop.send('POST', '/v1/people/upsert', match)).status).toBe(200)
    await dataOf(merge('ada', 'news-7'))
    const { unmerged } = await dataOf(unmerge('ada', 'news-7'))
    expect([unmerged.id, (await get('news-7')).id]).toEqual([bob.id, bob.id])
    expect((await unmerge('ada', 'news-7')).status).toBe(404)
  })

  describe('gives back a link whose source has not written it since, although the source', () => {
    const friendsOf = async (name: string) => (await get(name)).attribute_values
    beforeEach(async () => {
      for (const name of ['old', 'new', 'zoe']) await create(name)
      await create('fan', { attribute_values: { referrer: 'old', friends: ['zoe', 'old'] } })
      await dataOf(merge('new', 'old'))
    })

    it('was merged and came back in between', async () => {
      await dataOf(merge('zoe', 'fan'))
      await dataOf(unmerge('zoe', 'fan'))
    })

    it('was the survivor of a merge with the person that it linked to', async () => {
      await dataOf(merge('fan', 'new'))
      await dataOf(unmerge('fan', 'new'))
    })

    it('was deleted and restored in between, with links to both', async () => {
      await dataOf(shop.send('PATCH', '/v1/people/fan', { attribute_values: { friends: null } }))
      await dataOf(unmerge('new', 'old'))
      const list = ['zoe', 'old', 'new', 'eve', 'fan']
      await dataOf(shop.send('PATCH', '/v1/people/fan', { attribute_values: { friends: list } }))
      await dataOf(merge('new', 'old'))
      const { id } = await get('fan')
      await shop.send('DELETE', '/v1/people/fan')
      await dataOf(shop.send('POST', `/v1/people/internal/${id}/restore`))
      await dataOf(unmerge('new', 'old'))
      expect(await friendsOf('fan')).toEqual({ referrer: 'old', friends: list })
      await dataOf(shop.send('PATCH', '/v1/people/fan', { attribute_values: { friends: ['zoe', 'old'] } }))
      await dataOf(merge('new', 'old'))
    })

    it('was deleted and restored in between', async () => {
      const { id } = await get('fan')
      await shop.send('DELETE', '/v1/people/fan')
      await dataOf(shop.send('POST', `/v1/people/internal/${id}/restore`))
    })

    it('got a link to the survivor by a merge before', async () => {
      await dataOf(unmerge('new', 'old'))
      await create('bob', { attribute_values: { friends: ['new'] } })
      await dataOf(merge('fan', 'bob'))
      const friends = ['zoe', 'old', 'new']
      expect((await friendsOf('fan')).friends).toEqual(friends)
      await dataOf(merge('new', 'old'))
      await dataOf(unmerge('new', 'old'))
      expect((await friendsOf('fan')).friends).toEqual(friends)
      await dataOf(unmerge('fan', 'bob'))
      await dataOf(merge('new', 'old'))
    })

    it('got another link by a merge in between', async () => {
      await create('bob', { attribute_values: { friends: ['eve'] } })
      await dataOf(merge('fan', 'bob'))
      await dataOf(unmerge('new', 'old'))
      expect(await friendsOf('fan')).toEqual({ referrer: 'old', friends: ['zoe', 'old', 'eve'] })
      await dataOf(merge('new', 'old'))
      await dataOf(unmerge('fan', 'bob'))
    })

    afterEach(async () => {
      await dataOf(unmerge('new', 'old'))
      expect(await friendsOf('fan')).toEqual({ referrer: 'old', friends: ['zoe', 'old'] })
    })
  })

  it('leaves what may have been written since, where the log no longer tells', async () => {
    await create('ada', { email: 'ada@example.com', attribute_values: { friends: ['eve'], note: 'x' } })
    await create('bob')
    await create('fan', { attribute_values: { referrer: 'ada' } })
    await create('other', { attribute_values: { referrer: 'ada' } })
    await dataOf(merge('bob', 'ada'))
    const patch = (name: string, body: object) => dataOf(shop.send('PATCH', `/v1/people/${name}`, body))
    await patch('bob', { email: 'new@example.com' })
    await patch('bob', { email: 'ada@example.com', attribute_values: { note: null } })
    await patch('bob', { attribute_values: { note: 'x' } })
    await patch('fan', { attribute_values: { referrer: null } })
    await patch('fan', { attribute_values: { referrer: 'bob' } })
    await create('last')
    const nowMs = () => Date.now() + 2 * 86_400_000
    await follow(service.db, [retentionFollower({ logRetentionDays: 1, nowMs, pausePerWork: 0 })], { nowMs })
    await dataOf(unmerge('bob', 'ada'))
    expect(await get('bob')).toMatchObject({
      email: 'ada@example.com',
      attribute_values: { note: 'x', friends: ['eve'] },
    })
    expect(await get('ada')).toMatchObject({
      email: 'ada@example.com',
      attribute_values: { note: 'x', friends: ['eve'] },
    })
    expect((await get('fan')).attribute_values).toEqual({ referrer: 'bob' })
    expect((await get('other')).attribute_values).toEqual({ referrer: 'ada' })
  })

  it('leaves a link that its source wrote since', async () => {
    await create('ada')
    await create('bob')
    await create('fan', { attribute_values: { referrer: 'bob' } })
    await create('other', { attribute_values: { referrer: 'bob' } })
    await dataOf(merge('ada', 'bob'))
    await shop.send('PATCH', '/v1/people/fan', { attribute_values: { referrer: null } })
    await shop.send('PATCH', '/v1/people/fan', { attribute_values: { referrer: 'bob' } })
    await dataOf(unmerge('ada', 'bob'))
    expect((await get('fan')).attribute_values).toEqual({ referrer: 'ada' })
    expect((await get('other')).attribute_values).toEqual({ referrer: 'bob' })
  })
})

describe('the answers of a merged person', () => {
  const grant = (collected_at: string, state = true) => ({
    consents: [{ consent_type_id: 1, channel: 'email', state, collected_at, method: 'paper', reference: collected_at }],
  })
  const contactable = async (name: string) =>
    (await shop.send('POST', `/v1/people/${name}/contactable`, { consent_type_id: 1, channel: 'email' })).body.data

  it('stand with their evidence, in the decision, the history and the receipt, under its identifier', async () => {
    const ada = await create('ada', { email: 'a@example.org', ...grant('2020-01-01T00:00:00Z') })
    const bob = await create('bob', grant('2020-01-02T00:00:00Z', false))
    const rows = await countRows('consent_history')
    const { changes } = await dataOf(merge('ada', 'bob'))
    expect(changes.consents).toEqual([
      {
        consent_type_id: 1,
        channel: 'email',
        before: { state: true, pending: false, answered_at: '2020-01-01T00:00:00.000Z', person_id: null },
        after: { state: false, pending: false, answered_at: '2020-01-02T00:00:00.000Z', person_id: bob.id },
      },
    ])
    expect(await countRows('consent_history')).toBe(rows)
    const decision = await contactable('ada')
    expect(decision).toMatchObject({
      allowed: false,
      reasons: [{ rule: 'answer', state: false, merged_person_id: bob.id, reference: '2020-01-02T00:00:00Z' }],
    })
    const history = (await shop.send('GET', '/v1/people/ada/consents/history')).body.data
    expect(
      history.items.map((item: Record<string, unknown>) => [item.version, item.state, item.merged_person_id]),
    ).toEqual([
      [2, false, bob.id],
      [1, true, undefined],
    ])
    const page = (await shop.send('GET', '/v1/people/ada/consents/history?before_version=2')).body.data
    expect(page.items).toHaveLength(1)
    const ofBob = (await shop.send('GET', `/v1/people/internal/${bob.id}/consents/history`)).body.data
    expect(ofBob.items).toHaveLength(1)
    await sealLedgers(service)
    const receipt = (await shop.send('GET', '/v1/people/ada/consents/1/email/receipt')).body.data
    expect(receipt.entry).toMatchObject({ person_id: bob.id, state: false })
    const bySequence = await shop.send(
      'GET',
      `/v1/people/ada/consents/1/email/receipt?sequence=${decision.reasons[0].sequence}`,
    )
    expect(bySequence.body.data.entry.person_id).toBe(bob.id)
    expect((await get('ada')).email_consent).toBe(false)
    await dataOf(unmerge('ada', 'bob'))
    expect(await contactable('ada')).toMatchObject({ allowed: true })
    expect((await shop.send('GET', '/v1/people/ada/consents/history')).body.data.items).toMatchObject([
      { version: 2, merged_person_id: bob.id },
      { version: 1 },
    ])
    expect([ada.id, (await get('bob')).email_consent]).toEqual([ada.id, false])
  })

  it('decide as they did at a past time', async () => {
    await create('ada', { email: 'a@example.org', ...grant('2020-01-01T00:00:00Z') })
    await create('bob', grant('2020-01-02T00:00:00Z', false))
    const times: string[] = []
    const mark = async () => {
      await new Promise(resolve => setImmediate(resolve))
      const [row] = await service.sql<{ at: string }>("select clock_timestamp() + interval '2 ms' as at")
      while (Date.now() <= Date.parse(row!.at));
      times.push(row!.at)
    }
    await mark()
    await dataOf(merge('ada', 'bob'))
    await mark()
    await dataOf(unmerge('ada', 'bob'))
    await mark()
    const allowed = await Promise.all(
      times.map(async at => {
        const body = { consent_type_id: 1, channel: 'email', at }
        return (await shop.send('POST', '/v1/people/ada/contactable', body)).body.data.allowed
      }),
    )
    expect(allowed).toEqual([true, false, true])
  })

  it('supersede an earlier answer, which stands again after the unmerge', async () => {
    await create('ada', { email: 'a@example.org', ...grant('2020-01-01T00:00:00Z') })
    // The answer also counts for the address, so both people have it.
    await create('bob', { email: 'a@example.org', ...grant('2020-01-05T00:00:00Z') })
    await dataOf(merge('ada', 'bob'))
    await shop.send('PATCH', '/v1/people/ada', grant('2020-01-03T00:00:00Z', false))
    expect(await contactable('ada')).toMatchObject({ allowed: true })
    await dataOf(unmerge('ada', 'bob'))
    // The survivor gave the refusal after this person's grant.
    expect(await contactable('ada')).toMatchObject({
      allowed: false,
      reasons: [{ rule: 'answer', state: false, reference: '2020-01-03T00:00:00Z', superseded: false }],
    })
    expect((await get('ada')).email_consent).toBe(false)
    await sealLedgers(service)
  })
})

describe('concurrent writes', () => {
  it('of merges of overlapping pairs leave one person with all identifiers', async () => {
    const all = names('p', 8)
    for (const [index, name] of all.entries())
      await create(name, { attribute_values: { friends: [all[(index + 1) % 8]!] } })
    const pairs = all.flatMap((into, index) => [1, 3].map(step => [into, all[(index + step) % 8]!] as const))
    const replies = await Promise.all(pairs.map(([into, from]) => merge(into, from)))
    for (const reply of replies) expect([200, 400, 503]).toContain(reply.status)
    const merged = replies.filter(({ status }) => status === 200).length
    expect(await countRows('entities')).toBe(8 - merged)
    const people = await Promise.all(all.map(get))
    expect(new Set(people.map(({ id }) => id)).size).toBe(8 - merged)
    expect(await danglingLinks()).toBe(0)
    const [{ stray }] = (await service.sql<{ stray: number }>(
      `select count(*)::integer as stray from aliases a where organization_id = $1 and (
         exists (select from entities e where e.organization_id = $1 and e.external_id = a.external_id)
         or not exists (select from entities e where e.organization_id = $1 and e.id = a.person_id))`,
      [shop.id],
    )) as [{ stray: number }]
    expect(stray).toBe(0)
  })

  it('to both sides are each in the survivor or refused', async () => {
    await create('ada')
    await create('bob')
    const writes = names('k', 20).map((key, index) =>
      shop.send('PATCH', `/v1/people/${index % 2 ? 'ada' : 'bob'}`, { attribute_values: { [key]: index } }),
    )
    const [merged, ...replies] = await Promise.all([merge('ada', 'bob'), ...writes])
    expect(merged.status).toBe(200)
    const values = (await get('ada')).attribute_values
    for (const [index, reply] of replies.entries()) {
      expect(reply.status).toBe(200)
      expect(values[`k${index}`]).toBe(index)
    }
  })

  it('that link to a person who is merged before they lock the head link to the survivor', async () => {
    await create('ada')
    const other = await create('bob')
    const db = runBeforeTransaction(service.db, () => dataOf(merge('ada', 'bob')))
    const [outcome] = await writeAll(db, shop, [write('create', 'fan', { attribute_values: { referrer: 'bob' } })])
    expect(outcome).toMatchObject({ done: { result: 'created' } })
    expect((await get('fan')).attribute_values).toEqual({ referrer: 'ada' })
    const targets = await service.sql('select 1 from links where organization_id = $1 and target_id = $2', [
      shop.id,
      other.id,
    ])
    expect(targets).toEqual([])
    expect(await danglingLinks()).toBe(0)
  })
})

const danglingLinks = async () =>
  (
    await service.sql<{ count: number }>(
      `select count(*)::integer as count from links l where organization_id = $1 and not exists (
         select from entities e where e.organization_id = $1 and e.id = l.target_id)`,
      [shop.id],
    )
  )[0]!.count

describe('a merged person in the past', () => {
  it('is read under its own identifiers before the merge, and as the survivor after it', async () => {
    const ada = await create('ada', { first_name: 'Ada' })
    const bob = await create('bob', { first_name: 'Bob' })
    const before = bob.created_at
    const { person } = await dataOf(merge('ada', 'bob'))
    const read = async (path: string) => (await shop.send('GET', `/v1/people/${path}`)).body.data
    const after = person.updated_at
    for (const path of ['bob', `internal/${bob.id}`]) {
      expect((await read(`${path}?at=${before}`)).id).toBe(bob.id)
      expect((await read(`${path}?at=${new Date(Date.parse(after) + 60_000).toISOString()}`))?.id ?? ada.id).toBe(
        ada.id,
      )
    }
    expect((await read(`internal/${bob.id}?version=1`)).first_name).toBe('Bob')
    expect((await shop.send('GET', `/v1/people/internal/${bob.id}?version=2`)).status).toBe(404)
    const { items } = (await shop.send('GET', `/v1/people/internal/${bob.id}/history`)).body.data
    expect(items.map((item: { operation: string; external_id: string }) => [item.operation, item.external_id])).toEqual(
      [
        ['merge', 'bob'],
        ['create', 'bob'],
      ],
    )
    // A restore of a merged person finds the survivor.
    expect((await dataOf(shop.send('POST', `/v1/people/internal/${bob.id}/restore`))).id).toBe(ada.id)
    await shop.send('DELETE', '/v1/people/ada')
    expect((await shop.send('POST', `/v1/people/internal/${bob.id}/restore`)).status).toBe(404)
  })
})

it('leaves a ledger that is whole', async () => {
  const consents = (state: boolean) => ({ consents: [{ consent_type_id: 1, channel: 'email', state }] })
  await create('ada', consents(true))
  await create('bob', consents(false))
  await dataOf(merge('ada', 'bob'))
  await shop.send('PATCH', '/v1/people/bob', consents(true))
  await dataOf(unmerge('ada', 'bob'))
  await sealLedgers(service)
  expect(await auditLedger(contextOf(service.db, shop.id))).toMatchObject({ size: 3, findings: [] })
})
