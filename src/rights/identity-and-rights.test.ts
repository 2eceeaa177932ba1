import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readFeed, type WireChange } from '../../test/support/changes.ts'
import { follow } from '../../test/support/followers.ts'
import { sealLedgers } from '../../test/support/ledger.ts'
import { exportAll, importLines, linesFrom } from '../../test/support/lines.ts'
import { findCanaries } from '../../test/support/person-canaries.ts'
import { createLoopbackSender, startReceiver } from '../../test/support/receiver.ts'
import { type Organization, type Reply, type Service, startService, useOwnService } from '../../test/support/service.ts'
import { createShop, dataOf, useShop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import type { Follower } from '../followers/follower.ts'
import { auditLedger } from '../ledger/audit.ts'
import { type Operation, operationFacts } from '../organizations/logged-changes.ts'
import { webhookFollower } from '../webhooks/deliver.ts'
import { applyErasures } from './erasure/apply-erasures.ts'
import { retentionFollower } from './retention.ts'

// Tests of promises that involve several parts: aliases, match, merge, unmerge, erasure, dossier, retention and
// duplicates.

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const shop = useShop(service, 'referrer', 'friends', 'employer')

const reason = 'Request of the person'
const recreate = { Prefer: 'erased=recreate' }
const question = { consent_type_id: 1, channel: 'email' }

const pathOf = (address: string) =>
  `/v1/people/${address.startsWith('internal/') ? address : encodeURIComponent(address)}`
const get = (address: string) => shop.send('GET', pathOf(address))
const read = (address: string) => dataOf(get(address))
const create = (external_id: string, body: object = {}) =>
  dataOf(shop.send('POST', '/v1/people', { external_id, ...body }))
const patch = (address: string, body: object) => dataOf(shop.send('PATCH', pathOf(address), body))
const merging = (into: string, from: string) => shop.send('POST', `${pathOf(into)}/merge`, { from })
const merge = (into: string, from: string) => dataOf(merging(into, from))
const unmerging = (into: string, from: object) => shop.send('POST', `${pathOf(into)}/unmerge`, from)
const unmerge = (into: string, from: string) => dataOf(unmerging(into, { from }))
const erasing = (address: string, body: object = {}) =>
  shop.send('POST', `${pathOf(address)}/erase`, { reason, ...body })
const erase = (address: string, body: object = {}) => dataOf(erasing(address, body))
const upsert = (body: object, headers?: Record<string, string>) => shop.send('POST', '/v1/people/upsert', body, headers)
const refusalOf = ({ status, body }: Reply) => [status, body.reason, body.details?.map(({ path }) => path)]
const count = async (table: string, where = 'true') =>
  (
    await service.sql<{ count: number }>(
      `select count(*)::integer as count from ${table} where organization_id = $1 and ${where}`,
      [shop.id],
    )
  )[0]!.count
const audit = async () => (await auditLedger(contextOf(service.db, shop.id), { since: undefined })).findings

let runs = 0

type Canaried = { id: string; name: string; email: string; mobile_number: string; canaries: Record<string, string> }

/** Creates a person with a canary in every field, two names, two emails, answers, and links in both directions. */
async function createCanaried(who: string): Promise<Canaried> {
  const run = `${process.pid}r${++runs}`
  const canaries: Record<string, string> = {}
  const canary = (place: string) => {
    const text = `canary${Object.keys(canaries).length}x${run}z`
    canaries[`${who}: ${place}`] = text
    return text
  }
  const first = canary('first name of the log')
  const { id } = await create(first, {
    email: `${canary('an earlier email').toUpperCase()}@example.com`,
    first_name: canary('an earlier first name'),
    attribute_values: { city: canary('an earlier city'), friends: ['bob'] },
    consents: [{ ...question, state: true, collected_at: '2021-01-01T00:00:00Z', source: canary('a source') }],
  })
  await patch('bob', { attribute_values: { referrer: first } })
  await patch('bob', { attribute_values: { referrer: null, friends: ['eve', first] } })
  const name = canary('name')
  const email = `${canary('email')}@example.com`
  const mobile_number = `3${String(Math.floor(Math.random() * 1e9)).padStart(9, '0')}`
  canaries[`${who}: mobile`] = mobile_number
  await patch(first, {
    external_id: name,
    ...{ email, mobile_prefix: '+39', mobile_number },
    first_name: canary('first name'),
    last_name: canary('last name'),
    attribute_values: {
      city: canary('city'),
      [canary('a key')]: { deep: [canary('a nested value')] },
      employer: `works ${who}`,
    },
  })
  await create(`fan of ${who}`, { attribute_values: { referrer: name, friends: ['bob', name] } })
  await upsert({ external_id: name, language: 'it' }, { 'Idempotency-Key': run, Prefer: 'return=representation' })
  await dataOf(upsert({ external_id: canary('an alias'), email, match: ['email'] }))
  return { id, name, email, mobile_number, canaries }
}

const everyText = (...people: Canaried[]) => Object.assign({}, ...people.map(({ canaries }) => canaries))
const namesOf = ({ canaries }: Canaried) =>
  Object.entries(canaries).flatMap(([place, text]) =>
    /: (name|first name of the log|an alias)$/.test(place) ? [text] : [],
  )
const keysOf = ({ canaries }: Canaried) =>
  Object.entries(canaries).flatMap(([place, text]) => (/email$/.test(place) ? [`${text}@example.com`] : []))

/** Expects that every name, email and phone of the people is refused. */
async function expectTombstones(...people: Canaried[]) {
  for (const person of people) {
    for (const external_id of namesOf(person))
      expect(refusalOf(await shop.send('POST', '/v1/people', { external_id }))).toEqual([
        409,
        'erased',
        ['/external_id'],
      ])
    for (const email of keysOf(person)) {
      expect(refusalOf(await shop.send('POST', '/v1/people', { email }))).toEqual([409, 'erased', ['/email']])
      expect(refusalOf(await upsert({ email, match: ['email'] }))).toEqual([409, 'erased', ['/email']])
    }
    const mobile = { mobile_prefix: '+39', mobile_number: person.mobile_number }
    expect(refusalOf(await upsert({ ...mobile, match: ['mobile'] }))).toEqual([409, 'erased', ['/mobile_number']])
  }
}

describe('the erasure of a person into whom others were merged', () => {
  const addresses: Record<string, (people: Record<'ada' | 'shopper' | 'guest', Canaried>) => string> = {
    'the name of the survivor': ({ ada }) => ada.name,
    'the internal identifier of the survivor': ({ ada }) => `internal/${ada.id}`,
    'the name of a merged person': ({ shopper }) => shopper.name,
    'the internal identifier of a person merged into a merged one': ({ guest }) => `internal/${guest.id}`,
    'an alias that a match gave to a merged person': ({ guest }) => namesOf(guest).at(-1)!,
  }
  for (const [identifier, addressOf] of Object.entries(addresses))
    it(`by ${identifier} erases everybody of a chain of merges, and leaves no canary`, async () => {
      await create('bob')
      await create('eve')
      const [ada, shopper, guest] = [
        await createCanaried('ada'),
        await createCanaried('shopper'),
        await createCanaried('guest'),
      ]
      const people = { ada, shopper, guest }
      await merge(shopper.name, guest.name)
      await merge(ada.name, shopper.name)
      await patch('bob', { attribute_values: { friends: [shopper.name, guest.name] } })
      await patch('eve', { attribute_values: { referrer: guest.name } })
      await patch(guest.name, { language: 'de' })
      await sealLedgers(service)
      const places = new Set((await findCanaries(service, everyText(ada, shopper, guest))).map(({ place }) => place))
      expect(Object.keys(everyText(ada, shopper, guest)).filter(place => !places.has(place))).toEqual([])

      const { erasure } = await erase(addressOf(people))
      expect([erasure.person_id, erasure.merged_ids.toSorted()]).toEqual([ada.id, [shopper.id, guest.id].toSorted()])
      expect(await findCanaries(service, everyText(ada, shopper, guest))).toEqual([])
      expect([await count('aliases'), await count('merges', 'undo is not null')]).toEqual([0, 0])
      expect(erasure.tombstones).toBe(3 * (3 + 2 + 1))
      await expectTombstones(ada, shopper, guest)
      expect(await audit()).toEqual([])
      // A repeated erasure by any identifier answers with the same certificate.
      for (const again of Object.values(addresses)) expect((await erase(again(people))).erasure).toEqual(erasure)
    })

  it('refuses unmerge, restore, reads, past states and receipts of each of them afterwards', async () => {
    const ada = await create('ada', { email: 'ada@example.com' })
    const shopper = await create('shopper', { consents: [{ ...question, state: true }] })
    await sealLedgers(service)
    const at = new Date().toISOString()
    await merge('ada', 'shopper')
    await erase('ada')
    for (const { id } of [ada, shopper]) {
      const base = `/v1/people/internal/${id}`
      for (const path of [
        '',
        '?version=1',
        `?at=${at}`,
        `?at=${new Date().toISOString()}`,
        '/consents/1/email/receipt',
      ])
        expect([path, (await shop.send('GET', `${base}${path}`)).status]).toEqual([path, 404])
      expect((await shop.send('POST', `${base}/restore`)).status).toBe(404)
      expect((await unmerging(`internal/${id}`, { from_id: shopper.id })).status).toBe(404)
      expect((await merging(`internal/${id}`, 'bob')).status).toBe(404)
    }
    for (const name of ['ada', 'shopper']) {
      expect((await get(name)).status).toBe(404)
      // By the contract of this request, a missing person is answered with 500.
      expect((await shop.send('PATCH', pathOf(name), { first_name: 'A' })).status).toBe(500)
      expect((await unmerging(name, { from: 'shopper' })).status).toBe(404)
    }
  })

  it('refuses only the names of the erased to others, and recreates with erased=recreate', async () => {
    await create('ada')
    await create('shopper')
    await merge('ada', 'shopper')
    await erase('ada')
    for (const name of ['ada', 'shopper']) {
      expect(refusalOf(await upsert({ external_id: name }))).toEqual([409, 'erased', ['/external_id']])
      const link = { attribute_values: { referrer: name } }
      expect(refusalOf(await shop.send('POST', '/v1/people', link))).toEqual([
        409,
        'erased',
        ['/attribute_values/referrer'],
      ])
      expect((await upsert({ external_id: name }, recreate)).status).toBe(201)
      expect((await read(name)).external_id).toBe(name)
    }
    const [ada, shopper] = [await read('ada'), await read('shopper')]
    expect(ada.id).not.toBe(shopper.id)
  })

  it('takes the values that a merge gave to somebody else, although it was undone', async () => {
    await create('bob')
    await create('eve')
    const shopper = await createCanaried('shopper')
    await create('ada', { first_name: 'Ada', attribute_values: { size: 'M' } })
    await create('top', { language: 'en' })
    await merge('ada', shopper.name)
    await patch('ada', { last_name: 'Lovelace', attribute_values: { city: 'London' } })
    await merge('top', 'ada')
    await unmerge('top', 'ada')
    await unmerge('ada', shopper.name)
    const [before, top] = [await read('ada'), await read('top')]
    await erase(shopper.name)
    expect(await findCanaries(service, shopper.canaries)).toEqual([])
    await expectTombstones(shopper)
    // The other people are unchanged, and their log keeps all values that did not come from the erased person.
    expect([await read('ada'), await read('top')]).toEqual([before, top])
    const log = (await dataOf(shop.send('GET', `${pathOf('ada')}/history`))).items as WireChange[]
    expect(log.find(({ after }) => after?.last_name === 'Lovelace')).toMatchObject({
      after: { attribute_values: { city: 'London' } },
    })
    expect(await dataOf(shop.send('GET', `${pathOf('ada')}?version=1`))).toMatchObject({
      first_name: 'Ada',
      attribute_values: { size: 'M' },
    })
  })

  it('is not applied again to somebody who had the same email before it', async () => {
    await create('ada', { email: 'home@example.com' })
    await create('eve', { email: 'Home@example.com' })
    await create('bob')
    await erase('ada')
    const reached = contextOf(service.db, shop.id)
    const context = { ...reached, originName: service.config.ledgerOrigin }
    expect(await applyErasures(context, [])).toEqual([])
    expect((await get('eve')).status).toBe(200)
    // Another program writes the email to the database, not by the API.
    await service.sql(
      `update entities set email = 'home@example.com', email_key = 'home@example.com' where organization_id = $1 and external_id = 'bob'`,
      [shop.id],
    )
    expect(await applyErasures(context, [])).toHaveLength(1)
    expect([(await get('bob')).status, (await get('eve')).status]).toEqual([404, 200])
  })

  it('keeps an unmerge from bringing back a value of an erased person, unless with erased=recreate', async () => {
    await create('ada', { email: 'ada@example.com' })
    await create('shopper', { email: 'twin@example.com' })
    await create('twin', { email: 'Twin@example.com' })
    await merge('ada', 'shopper')
    await erase('twin')
    expect(refusalOf(await unmerging('ada', { from: 'shopper' }))).toEqual([409, 'erased', ['/email']])
    expect((await read('shopper')).external_id).toBe('ada')
    await dataOf(shop.send('POST', '/v1/people/ada/unmerge', { from: 'shopper' }, recreate))
    expect(await read('shopper')).toMatchObject({ external_id: 'shopper', email: 'twin@example.com' })
    expect((await upsert({ email: 'twin@example.com', match: ['email'] })).status).toBe(200)
  })

  it('lets an unmerge bring back a value that the person shared with someone who was erased before the merge', async () => {
    const home = { email: 'home@example.com', mobile_number: '+393331234567' }
    for (const name of ['twin', 'shopper']) await create(name, home)
    await create('ada', { email: 'ada@example.com' })
    await erase('twin')
    await merge('ada', 'shopper')
    await unmerge('ada', 'shopper')
    expect(await read('shopper')).toMatchObject({ external_id: 'shopper', ...home })
    await merge('ada', 'shopper')
    await create('eve')
    expect((await shop.send('PUT', '/v1/people/eve', { email: home.email })).body.reason).toBe('erased')
    await dataOf(shop.send('PUT', '/v1/people/eve', { email: home.email }, recreate))
    await erase('eve')
    expect(refusalOf(await unmerging('ada', { from: 'shopper' }))).toEqual([409, 'erased', ['/email']])
  })

  it('with `records: linked` takes the records of the merged people, but not those of somebody who was unmerged', async () => {
    await shop.client.schema.stacks.create({ key: 'orders', kind: 'event' })
    await shop.client.schema.attributes.create({ key: 'buyer', owner: 'orders', type: 'person' })
    for (const name of ['ada', 'shopper', 'guest']) {
      await create(name)
      await dataOf(
        shop.send('POST', '/v1/stacks/orders', { external_id: `of ${name}`, attribute_values: { buyer: name } }),
      )
    }
    await merge('ada', 'shopper')
    await merge('ada', 'guest')
    await unmerge('ada', 'guest')
    const { erasure } = await erase('shopper', { records: 'linked' })
    expect(erasure.record_ids).toHaveLength(2)
    const statusOf = async (name: string) => (await shop.send('GET', `/v1/stacks/orders/of%20${name}`)).status
    expect([await statusOf('ada'), await statusOf('shopper'), await statusOf('guest')]).toEqual([404, 404, 200])
    expect((await get('guest')).status).toBe(200)
  })

  it('does not take the people of another organization with the same names', async () => {
    const other = await createShop(service, 'referrer', 'friends', 'employer')
    const inOther = async (method: string, path: string, body?: unknown) => dataOf(other.send(method, path, body))
    for (const name of ['ada', 'shopper', 'fan']) {
      await create(name, { attribute_values: { friends: ['shopper'] }, email: `${name}@example.com` })
      const body = { external_id: name, attribute_values: { friends: ['shopper'] }, email: `${name}@example.com` }
      await inOther('POST', '/v1/people', body)
    }
    await merge('ada', 'shopper')
    await inOther('POST', '/v1/people/ada/merge', { from: 'shopper' })
    const tables = ['entities', 'links', 'changes', 'aliases', 'merges', 'tombstones', 'change_heads']
    const rowsOfOther = () =>
      Promise.all(
        tables.map(table =>
          service.sql(`select t::text from ${table} t where organization_id = $1 order by 1`, [other.id]),
        ),
      )
    const before = await rowsOfOther()
    await erase('shopper')
    expect(await rowsOfOther()).toEqual(before)
    await inOther('POST', '/v1/people/ada/unmerge', { from: 'shopper' })
    expect((await inOther('GET', '/v1/people/shopper')).email).toBe('shopper@example.com')
  })
})

describe('an erasure next to other work on the person', () => {
  /** Runs two requests concurrently in several orders, and checks the result of each order. */
  async function race(
    set: () => Promise<void>,
    requests: (() => Promise<Reply>)[],
    check: (replies: Reply[]) => Promise<void>,
  ) {
    for (let round = 0; round < 4; round += 1) {
      await set()
      const order = round % 2 === 0 ? requests : requests.toReversed()
      const replies = await Promise.all(order.map(request => request()))
      await check(round % 2 === 0 ? replies : replies.toReversed())
      await shop.renew('referrer', 'friends', 'employer')
    }
  }

  it('and a merge of the person into another one: the other one is never left with its values', async () => {
    const canaries = { name: 'racing-shopper', email: 'racing-shopper@example' }
    await race(
      async () => {
        await create('ada')
        await create('racing-shopper', { email: 'racing-shopper@example.com' })
      },
      [() => erasing('racing-shopper'), () => merging('ada', 'racing-shopper')],
      async ([erased, merged]) => {
        expect(erased!.status).toBe(200)
        expect([200, 404]).toContain(merged!.status)
        expect(await findCanaries(service, canaries)).toEqual([])
        expect((await get('ada')).status).toBe(merged!.status === 200 ? 404 : 200)
      },
    )
  })

  it('and a merge of somebody into the person: both are gone, or the other one is whole', async () => {
    await race(
      async () => {
        await create('ada')
        await create('shopper', { email: 'shopper@example.com' })
      },
      [() => erasing('ada'), () => merging('ada', 'shopper')],
      async ([erased, merged]) => {
        expect(erased!.status).toBe(200)
        if (merged!.status === 200) {
          expect((await get('shopper')).status).toBe(404)
          expect(await count('entities')).toBe(0)
          expect(await count('changes', `entity_id is not null and (before is not null or after <> '{}')`)).toBe(0)
        } else {
          expect(merged!.status).toBe(404)
          expect(await read('shopper')).toMatchObject({ email: 'shopper@example.com' })
        }
      },
    )
  })

  it('and an unmerge: the identifier of the merged person erases that person, alone or with the survivor', async () => {
    const ids: Record<string, string> = {}
    for (const addressOf of [() => 'shopper', () => `internal/${ids.shopper}`])
      await race(
        async () => {
          ids.ada = (await create('ada')).id
          ids.shopper = (await create('shopper')).id
          await merge('ada', 'shopper')
        },
        [() => erasing(addressOf()), () => unmerging('ada', { from: 'shopper' })],
        async ([erased, unmerged]) => {
          expect(erased!.status).toBe(200)
          const { person_id, merged_ids } = erased!.body.data.erasure
          expect((await get(`internal/${ids.shopper}`)).status).toBe(404)
          if (unmerged!.status === 200) expect([person_id, merged_ids]).toEqual([ids.shopper, []])
          else expect([person_id, merged_ids]).toEqual([ids.ada, [ids.shopper]])
          expect((await get('ada')).status).toBe(unmerged!.status === 200 ? 200 : 404)
        },
      )
  })

  it('and a rename that gives the name to somebody else: the person who has it then is erased', async () => {
    const ids: Record<string, string> = {}
    await race(
      async () => {
        ids.ada = (await create('ada')).id
        ids.eve = (await create('eve')).id
        await patch('ada', { external_id: 'first' })
        await patch('first', { external_id: 'ada' })
      },
      [
        () => erasing('ada'),
        async () => {
          await shop.send('PATCH', `/v1/people/internal/${ids.ada}`, { external_id: 'renamed' })
          return shop.send('PATCH', `/v1/people/internal/${ids.eve}`, { external_id: 'ada' })
        },
      ],
      async ([erased]) => {
        if (erased!.status === 404) return
        const { person_id } = erased!.body.data.erasure
        const left = person_id === ids.ada ? ids.eve! : ids.ada!
        expect((await get(`internal/${left}`)).status).toBe(200)
      },
    )
  })

  it('and a match, a link and a rename: nothing of the person comes back', async () => {
    const canaries = { name: 'hurried-ada', email: 'hurried@example' }
    await race(
      async () => {
        await create('hurried-ada', { email: 'hurried@example.com' })
        await create('shopper')
        await merge('hurried-ada', 'shopper')
        await create('fan')
      },
      [
        () => erasing('shopper'),
        () => upsert({ external_id: 'crm-1', email: 'Hurried@example.com', match: ['email'] }),
        () => shop.send('PATCH', '/v1/people/fan', { attribute_values: { friends: ['shopper', 'hurried-ada'] } }),
        () => upsert({ external_id: 'hurried-ada', first_name: 'H' }),
      ],
      async ([erased, matched, linked, upserted]) => {
        expect(erased!.status).toBe(200)
        for (const reply of [matched!, linked!, upserted!])
          if (reply.status >= 300) expect(reply.body.reason).toBe('erased')
        expect(await findCanaries(service, canaries)).toEqual([])
        expect(await count('aliases')).toBe(0)
        expect(await count('links')).toBe(0)
        expect(await count('entities')).toBe(1)
      },
    )
  })
})

describe('a match', () => {
  it('by a value of an erased person is refused, and with erased=recreate creates a person', async () => {
    await create('ada', { email: 'ada@example.com' })
    await create('shopper', { email: 'shop@example.com' })
    await merge('ada', 'shopper')
    await erase('ada')
    for (const email of ['ADA@example.com', 'shop@example.com']) {
      expect(refusalOf(await upsert({ email, match: ['email'] }))).toEqual([409, 'erased', ['/email']])
      const line = linesFrom([{ external_id: `new ${email}`, email }])
      const imported = await importLines(shop, '/v1/people/import?match=external_id,email', line)
      expect(imported).toMatchObject({ counts: { created: 0, failed: 1 }, refused: [{ reason: 'erased' }] })
      const created = await upsert({ external_id: `new ${email}`, email, match: ['external_id', 'email'] }, recreate)
      expect(created.status).toBe(201)
      expect((await upsert({ email, match: ['email'] })).status).toBe(200)
    }
  })

  it('finds the survivor by the names and the email of a merged person, and gives it no tombstoned alias', async () => {
    const ada = await create('ada')
    await create('shopper', { email: 'shop@example.com' })
    await create('gone')
    await erase('gone')
    await merge('ada', 'shopper')
    const found = await upsert({ external_id: 'shopper', email: 'shop@example.com', match: ['external_id', 'email'] })
    expect([found.status, found.body.data?.id ?? ada.id]).toEqual([200, ada.id])
    const alias = { external_id: 'gone', email: 'shop@example.com', match: ['email'] }
    expect(refusalOf(await upsert(alias))).toEqual([409, 'erased', ['/external_id']])
    expect((await upsert(alias, recreate)).status).toBe(200)
    expect((await read('gone')).id).toBe(ada.id)
  })
})

describe('aliases', () => {
  beforeEach(async () => {
    await create('ada', { email: 'ada@example.com', attribute_values: { city: 'London' } })
    await create('shopper', { first_name: 'Shopper' })
    await create('eve')
    await merge('ada', 'shopper')
  })

  it('cannot become the name of somebody else, and can become the name of their own person', async () => {
    expect((await shop.send('POST', '/v1/people', { external_id: 'shopper' })).status).toBe(409)
    const rename = await shop.send('PATCH', '/v1/people/eve', { external_id: 'shopper' })
    expect([rename.status, rename.body.error]).toEqual([400, 'duplicate_entry'])
    const lines = linesFrom([{ external_id: 'shopper', language: 'it' }])
    expect((await importLines(shop, '/v1/people/import', lines)).counts).toMatchObject({ updated: 1, created: 0 })
    await patch('ada', { external_id: 'shopper' })
    expect(await read('shopper')).toMatchObject({ external_id: 'shopper', language: 'it' })
    // The former name leads to no person, as after any rename.
    expect((await get('ada')).status).toBe(404)
    const { erasure } = await erase('shopper')
    expect(erasure.tombstones).toBe(3)
    for (const external_id of ['ada', 'shopper']) expect((await upsert({ external_id })).body.reason).toBe('erased')
  })

  it('find the survivor in filters, look-ups, contactable, receipts, histories and the dossier, and leave duplicates out', async () => {
    const { id } = await read('ada')
    const list = async (filter: object) =>
      (await dataOf(shop.send('POST', '/v1/people/filter', { filter }))).items.map(
        (person: { id: string }) => person.id,
      )
    expect(await list({ external_id: 'shopper' })).toEqual([id])
    expect(await list({ external_id: { $in: ['shopper', 'nobody'] } })).toEqual([id])
    await patch('eve', { attribute_values: { referrer: 'shopper' } })
    expect(await list({ 'attribute_values.referrer': 'shopper' })).toEqual([(await read('eve')).id])
    const { items } = await dataOf(shop.send('POST', '/v1/people/lookup', { external_id: 'shopper' }))
    expect(items).toMatchObject([{ id, external_id: 'ada' }])
  })

  it('survive an export and an import into another organization as names of one person each', async () => {
    const other = await createShop(service, 'referrer', 'friends', 'employer')
    const exported = await exportAll(shop, '/v1/people/export')
    expect(exported.map(({ external_id }) => external_id).toSorted()).toEqual(['ada', 'eve'])
    const lines = linesFrom(exported.map(({ id, version, created_at, updated_at, state, consents, ...body }) => body))
    const imported = await importLines(other, '/v1/people/import', lines)
    expect(imported).toMatchObject({ refused: [], counts: { created: 2, failed: 0 } })
    const again = await importLines(shop, '/v1/people/import', lines)
    expect(again.counts).toMatchObject({ created: 0, updated: 0, unchanged: 2, failed: 0 })
  })
})

describe('the answers of a survivor', () => {
  it('are found by every identifier: one, many, in the past, with receipts and the consent history, and none of an erased one', async () => {
    const ada = await create('ada', {
      email: 'ada@example.com',
      consents: [{ ...question, state: false, collected_at: '2020-01-01T00:00:00Z' }],
    })
    const shopper = await create('shopper', {
      email: 'ada@example.com',
      consents: [{ ...question, state: true, collected_at: '2021-01-01T00:00:00Z', source: 'the shop' }],
    })
    await sealLedgers(service)
    await merge('ada', 'shopper')
    const addresses = ['ada', 'shopper', `internal/${ada.id}`, `internal/${shopper.id}`]
    for (const address of addresses) {
      const now = await dataOf(shop.send('POST', `${pathOf(address)}/contactable`, question))
      expect([address, now]).toMatchObject([
        address,
        { allowed: true, reasons: [{ rule: 'answer', source: 'the shop' }] },
      ])
      const then = await dataOf(
        shop.send('POST', `${pathOf(address)}/contactable`, { ...question, at: new Date().toISOString() }),
      )
      expect([address, then]).toMatchObject([address, { allowed: true }])
      const history = await dataOf(shop.send('GET', `${pathOf(address)}/consents/history`))
      // The internal identifier of the merged person shows only that person's own answers.
      const answers = address === `internal/${shopper.id}` ? [true] : [false, true]
      expect([address, history.items.map(({ state }: { state: boolean }) => state).toSorted()]).toEqual([
        address,
        answers,
      ])
      expect((await shop.send('GET', `${pathOf(address)}/consents/1/email/receipt`)).status).toBe(200)
    }
    const ask = async () =>
      (
        await dataOf(
          shop.send('POST', '/v1/people/contactable', { external_ids: ['shopper', 'ada', 'nobody'], ...question }),
        )
      ).items
    expect(await ask()).toMatchObject([{ allowed: true }, { allowed: true }, { reasons: [{ rule: 'not_found' }] }])
    await erase('ada')
    const erased = { allowed: false, reasons: [{ rule: 'erased' }] }
    for (const address of addresses)
      expect([address, await dataOf(shop.send('POST', `${pathOf(address)}/contactable`, question))]).toMatchObject([
        address,
        erased,
      ])
    expect(await ask()).toMatchObject([erased, erased, { reasons: [{ rule: 'not_found' }] }])
    for (const { id } of [ada, shopper])
      expect((await dataOf(shop.send('GET', `/v1/people/internal/${id}/consents/history`))).items).toEqual([])
    expect(await count('consent_history')).toBe(0)
    expect(await audit()).toEqual([])
  })

  it('leave a ledger that verifies after merges, unmerges, and erasures before and after the sealing', async () => {
    for (const name of ['ada', 'shopper', 'guest'])
      await create(name, { email: `${name}@example.com`, consents: [{ ...question, state: true }] })
    await merge('ada', 'shopper')
    await patch('shopper', { consents: [{ ...question, state: false }] })
    await sealLedgers(service)
    await unmerge('ada', 'shopper')
    await merge('guest', 'shopper')
    await patch('guest', { consents: [{ ...question, state: true }] })
    await erase('shopper')
    await sealLedgers(service)
    expect(await audit()).toEqual([])
    expect(await count('ledger_entries', 'salt is not null')).toBe(await count('consent_history'))
  })
})

describe('the dossier', () => {
  type Line = Record<string, unknown> & { type: string }
  const dossier = (address: string): Promise<Line[]> => dataOf(shop.send('GET', `${pathOf(address)}/dossier`))

  it('of a survivor shows what is held about the merged people, by every identifier, until the erasure', async () => {
    await create('bob')
    await create('eve')
    const [ada, shopper, guest] = [
      await createCanaried('ada'),
      await createCanaried('shopper'),
      await createCanaried('guest'),
    ]
    await merge(shopper.name, guest.name)
    await merge(ada.name, shopper.name)
    const canaries = everyText(ada, shopper, guest)
    const addresses = [ada.name, shopper.name, guest.name, `internal/${guest.id}`, `internal/${ada.id}`]
    for (const address of addresses) {
      const lines = await dossier(address)
      const text = JSON.stringify(lines).toLowerCase()
      expect([
        address,
        Object.entries(canaries).filter(([, canary]) => !text.includes((canary as string).toLowerCase())),
      ]).toEqual([address, []])
      expect(lines[0]).toMatchObject({
        type: 'about',
        person: { id: ada.id, merged_ids: expect.arrayContaining([shopper.id, guest.id]) },
      })
      expect(lines.filter(({ type }) => type === 'merge')).toHaveLength(2)
    }
    await erase(guest.name)
    for (const { id } of [ada, shopper, guest]) {
      const lines = await dossier(`internal/${id}`)
      expect(lines[0]).toMatchObject({ person: { state: 'erased' } })
      const text = JSON.stringify(lines).toLowerCase()
      expect(Object.values(canaries).filter(canary => text.includes((canary as string).toLowerCase()))).toEqual([])
    }
  })

  it('of two people whose merge was undone shows each alone', async () => {
    await create('ada')
    const shopper = await create('shopper', { email: 'shop@example.com' })
    await merge('ada', 'shopper')
    await unmerge('ada', 'shopper')
    const [about] = await dossier('ada')
    expect(about).toMatchObject({ person: { merged_ids: [] } })
    expect((await dossier('shopper'))[0]).toMatchObject({ person: { id: shopper.id, external_id: 'shopper' } })
  })
})

describe('duplicates', () => {
  it('no longer list merged and erased people, and list those of an undone merge again', async () => {
    for (const name of ['ada', 'shopper', 'guest']) await create(name, { email: 'one@example.com' })
    const groups = async () =>
      (await dataOf(shop.send('POST', '/v1/people/duplicates', {}))).items.map(
        ({ people }: { people: { external_id: string }[] }) => people.map(({ external_id }) => external_id).toSorted(),
      )
    expect(await groups()).toEqual([['ada', 'guest', 'shopper']])
    await merge('ada', 'shopper')
    expect(await groups()).toEqual([['ada', 'guest']])
    await unmerge('ada', 'shopper')
    expect(await groups()).toEqual([['ada', 'guest', 'shopper']])
    await merge('ada', 'shopper')
    await erase('ada')
    expect(await groups()).toEqual([])
  })
})

describe('the retention', () => {
  it('erases records that link to merged people, and takes their names out of what is left', async () => {
    const dayMs = 86_400_000
    await dataOf(shop.send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event', retention_days: 30 }))
    for (const body of [
      { owner: 'visits', key: 'visitor', type: 'person' },
      { owner: 'people', key: 'visited', type: 'stack', target_stack: 'visits', cardinality: 'many' },
    ])
      await dataOf(shop.send('POST', '/v1/schema/attributes', body))
    await create('ada')
    await create('shopper')
    await dataOf(
      shop.send('POST', '/v1/stacks/visits', { external_id: 'canary-visit', attribute_values: { visitor: 'shopper' } }),
    )
    await patch('shopper', { attribute_values: { visited: ['canary-visit'] } })
    await merge('ada', 'shopper')
    expect((await read('ada')).attribute_values).toEqual({ visited: ['canary-visit'] })
    const nowMs = () => Date.now() + 31 * dayMs
    const follower = retentionFollower({ logRetentionDays: undefined, nowMs, pausePerWork: 0 })
    const work: Follower['work'] = async task =>
      task.organization_id === shop.id ? follower.work(task) : { sequence: task.after, notBeforeMs: nowMs() + dayMs }
    await follow(service.db, [{ ...follower, work, maxConcurrent: 100 }], { nowMs })
    expect((await shop.send('GET', '/v1/stacks/visits/canary-visit')).status).toBe(404)
    expect(await findCanaries(service, { visit: 'canary-visit' })).toEqual([])
    expect((await read('ada')).attribute_values).toEqual({})
    // The merge can still be undone, but without the record.
    await unmerge('ada', 'shopper')
    expect((await read('shopper')).attribute_values).toEqual({})
    await service.sql('delete from followers')
  })
})

describe('the feed and webhooks', () => {
  it('tell merges, unmerges and erasures in order, each with its number, and nothing of erased people', async () => {
    const receiver = await startReceiver()
    const sender = createLoopbackSender()
    try {
      await dataOf(shop.send('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'] }))
      const ada = await create('ada')
      const shopper = await create('shopper', { email: 'shop@example.com' })
      await merge('ada', 'shopper')
      await unmerge('ada', 'shopper')
      await merge('ada', 'shopper')
      const deliver = () => follow(service.db, [webhookFollower({ sender })])
      await deliver()
      await erase('shopper')
      await deliver()
      const { items } = await readFeed(shop, 'limit=1000')
      const own = items.filter(({ subject }) => subject === 'entity' || subject === 'person')
      const told = own.map(({ operation, id }) => [operation, id === ada.id ? 'ada' : 'shopper'])
      const expected = [
        ['create', 'ada'],
        ['create', 'shopper'],
        ['merge', 'shopper'],
        ['update', 'ada'],
        ['unmerge', 'shopper'],
        ['update', 'ada'],
        ['merge', 'shopper'],
        ['update', 'ada'],
      ]
      expect(told.slice(0, -2)).toEqual(expected)
      expect(told.slice(-2).toSorted()).toEqual([
        ['erase', 'ada'],
        ['erase', 'shopper'],
      ])
      expect(own.map(({ external_id }) => external_id)).toEqual(own.map(() => null))
      expect(own.map(({ sequence }) => sequence)).toEqual(own.map((_, index) => own[0]!.sequence + index))
      const events = receiver.received.map(({ event }) => [event.type, event.data.id === ada.id ? 'ada' : 'shopper'])
      expect(events.toSorted()).toEqual(
        told.map(([operation, who]) => [`person.${operationFacts[operation as Operation].event}`, who]).toSorted(),
      )
      const erased = receiver.received.filter(({ event }) => event.type === 'person.erased')
      expect(erased.map(({ event }) => event.data.external_id)).toEqual([null, null])
      expect([shopper.id, ada.id].toSorted()).toEqual(erased.map(({ event }) => event.data.id).toSorted())
    } finally {
      await sender.close()
      await receiver.close()
      await service.sql('delete from followers')
    }
  })
})

describe('links to merged people', () => {
  it('of records and people lead to the survivor, and are gone after its erasure', async () => {
    await shop.client.schema.attributes.create({ key: 'founder', owner: 'companies', type: 'person' })
    await create('lone-ada')
    await create('lone-shopper')
    await dataOf(
      shop.send('POST', '/v1/stacks/companies', { external_id: 'acme', attribute_values: { founder: 'lone-shopper' } }),
    )
    await merge('lone-ada', 'lone-shopper')
    await dataOf(
      shop.send('POST', '/v1/stacks/companies', {
        external_id: 'later',
        attribute_values: { founder: 'lone-shopper' },
      }),
    )
    const founders = async () =>
      Promise.all(
        ['acme', 'later'].map(
          async name => (await dataOf(shop.send('GET', `/v1/stacks/companies/${name}`))).attribute_values.founder,
        ),
      )
    expect(await founders()).toEqual(['lone-ada', 'lone-ada'])
    await erase('lone-shopper')
    expect(await founders()).toEqual([undefined, undefined])
    expect(await count('links')).toBe(0)
    expect(await findCanaries(service, { shopper: 'lone-shopper', ada: 'lone-ada' })).toEqual([])
  })
})

describe('a process that has not learned of the first alias or erasure', () => {
  let second: Service
  beforeAll(async () => {
    second = await startService({}, service.databaseUrl)
  })
  afterAll(() => second?.stop())

  /** Sends a request to the second process, which cached its definitions before `happen` runs in the first one. */
  async function afterwards(happen: () => Promise<unknown>) {
    const send = second.sender(await second.tokenFor(shop.key))
    await dataOf(send('POST', '/v1/people', { external_id: `warm ${++runs}` }))
    await happen()
    return send
  }
  const first = [
    ['a create', (send: Organization['send']) => send('POST', '/v1/people', { external_id: 'shopper' }), 409],
    [
      'an upsert',
      (send: Organization['send']) => send('POST', '/v1/people/upsert', { external_id: 'shopper', language: 'it' }),
      200,
    ],
    ['a patch', (send: Organization['send']) => send('PATCH', '/v1/people/shopper', { language: 'it' }), 200],
    ['a rename', (send: Organization['send']) => send('PATCH', '/v1/people/eve', { external_id: 'shopper' }), 400],
    [
      'a link',
      (send: Organization['send']) => send('PATCH', '/v1/people/eve', { attribute_values: { referrer: 'shopper' } }),
      200,
    ],
    ['a deletion', (send: Organization['send']) => send('DELETE', '/v1/people/shopper'), 200],
    ['a read', (send: Organization['send']) => send('GET', '/v1/people/shopper'), 200],
    [
      'a match',
      (send: Organization['send']) =>
        send('POST', '/v1/people/upsert', {
          external_id: 'shopper',
          email: 'x@example.com',
          match: ['external_id', 'email'],
        }),
      200,
    ],
    ['a decision', (send: Organization['send']) => send('POST', '/v1/people/shopper/contactable', question), 200],
    ['a dossier', (send: Organization['send']) => send('GET', '/v1/people/shopper/dossier'), 200],
    [
      'a restore of a person with the name',
      (send: Organization['send']) => send('GET', '/v1/people/shopper/history'),
      200,
    ],
  ] as const
  for (const [what, request, status] of first)
    it(`follows the first alias in ${what}`, async () => {
      const ada = await create('ada')
      await create('shopper')
      await create('eve')
      const send = await afterwards(() => merge('ada', 'shopper'))
      const reply = await request(send)
      expect([reply.status, reply.body.message]).toEqual([status, reply.body.message])
      const names = await service.sql<{ external_id: string }>(
        `select external_id from entities where organization_id = $1 and external_id in ('ada', 'shopper') order by 1`,
        [shop.id],
      )
      expect(names.map(({ external_id }) => external_id)).toEqual(what === 'a deletion' ? [] : ['ada'])
      if (what === 'a link') expect((await read('eve')).attribute_values).toEqual({ referrer: 'ada' })
      if (what === 'a read') expect(reply.body.data.id).toBe(ada.id)
      if (what === 'a patch' || what === 'an upsert') expect((await read('ada')).language).toBe('it')
    })

  const filters = [
    { external_id: 'shopper' },
    { external_id: { $in: ['shopper'] } },
    { 'attribute_values.referrer': 'shopper' },
  ]
  for (const filter of filters)
    it(`follows the first alias in the filter ${JSON.stringify(filter)}`, async () => {
      await create('ada')
      await create('shopper')
      await create('eve', { attribute_values: { referrer: 'shopper' } })
      const send = await afterwards(() => merge('ada', 'shopper'))
      const { items } = await dataOf(send('POST', '/v1/people/filter', { filter }))
      const expected = 'external_id' in filter ? ['ada'] : ['eve']
      expect(items.map(({ external_id }: { external_id: string }) => external_id)).toEqual(expected)
    })

  it('refuses erased values, and knows that the person was erased', async () => {
    await create('ada', { email: 'ada@example.com' })
    const send = await afterwards(() => erase('ada'))
    expect((await send('GET', '/v1/people/ada')).status).toBe(404)
    expect(await dataOf(send('POST', '/v1/people/ada/contactable', question))).toMatchObject({
      reasons: [{ rule: 'erased' }],
    })
    expect((await send('POST', '/v1/people', { email: 'ada@example.com' })).body.reason).toBe('erased')
  })
  for (const [what, request] of [
    ['a create', (send: Organization['send']) => send('POST', '/v1/people', { external_id: 'ada' })],
    [
      'a match',
      (send: Organization['send']) => send('POST', '/v1/people/upsert', { email: 'ada@example.com', match: ['email'] }),
    ],
    [
      'a placeholder',
      (send: Organization['send']) => send('POST', '/v1/people', { attribute_values: { referrer: 'ada' } }),
    ],
    ['an email', (send: Organization['send']) => send('POST', '/v1/people', { email: 'ADA@example.com' })],
  ] as const)
    it(`refuses ${what} with an erased value`, async () => {
      await create('ada', { email: 'ada@example.com' })
      const send = await afterwards(() => erase('ada'))
      const reply = await request(send)
      expect([reply.status, reply.body.reason]).toEqual([409, 'erased'])
      expect(await count('entities')).toBe(1)
    })
})
