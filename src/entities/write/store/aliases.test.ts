import { beforeEach, describe, expect, it } from 'vitest'
import { giveAlias, moveAlias } from '../../../../test/support/aliases.ts'
import { follow } from '../../../../test/support/followers.ts'
import { importLines, linesFrom } from '../../../../test/support/lines.ts'
import { momentBetween } from '../../../../test/support/moments.ts'
import { linksOf, requestPage } from '../../../../test/support/pages.ts'
import { type Organization, useOwnService } from '../../../../test/support/service.ts'
import { createShop, useShop } from '../../../../test/support/shop.ts'
import {
  names,
  recordStatements,
  resultOf,
  runBeforeTransaction,
  write,
  writeAll,
} from '../../../../test/support/writes.ts'
import { parseLink } from '../../../consent-links/token.ts'
import { statement } from '../../../db/db.ts'
import { ledgerFollower } from '../../../ledger/seal.ts'

import { backfillIndexes } from '../../indexes/index-backfill.ts'

const service = useOwnService()
let ada: string
let old: string
let before: string

// ada has the alias newsletter, and the person old was merged into ada.
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { send, ok } = shop
beforeEach(async () => {
  ada = (await ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })).id
  old = (await ok('POST', '/v1/people', { external_id: 'old', first_name: 'Old' })).id
  before = await momentBetween()
  await giveAlias(service, shop, ada, 'newsletter')
  await merge('old')
})

const merge = (from: string, into = 'ada') => ok('POST', `/v1/people/${into}/merge`, { from })
const read = (address = 'ada', by = send) => by('GET', `/v1/people/${address}`).then(({ body }) => body.data)
const idOf = async (address: string) => (await read(address))?.id
const head = async (organization: Pick<Organization, 'id'> = shop) =>
  (
    await service.sql<{ sequence: number; schema_version: number }>(
      'select sequence, schema_version from change_heads where organization_id = $1',
      [organization.id],
    )
  )[0]!
const aliases = async () =>
  (
    await service.sql<{ external_id: string }>(
      'select external_id from aliases where organization_id = $1 order by external_id',
      [shop.id],
    )
  ).map(({ external_id }) => external_id)

/** The further identifiers of ada. */
const furtherOf = (): [string, string][] => [
  ['an alias', 'newsletter'],
  ['the name of a merged person', 'old'],
  ['the internal identifier of a merged person', `internal/${old}`],
]
const eachFurther = async (check: (address: string) => Promise<void>) => {
  for (const [, address] of furtherOf()) await check(address)
}
const eachName = async (check: (name: string) => Promise<void>) => {
  for (const name of ['newsletter', 'old']) await check(name)
}

describe('a further identifier of a person', () => {
  it('reads the person, whose own identifiers are in the answer', async () => {
    await eachFurther(async address => {
      const { status, body, headers } = await send('GET', `/v1/people/${address}`)
      expect([status, body.data.id, body.data.external_id, headers.get('etag')]).toEqual([200, ada, 'ada', '"2"'])
    })
  })

  it('reads the person together with others, and with one who is missing', async () => {
    const people = ['ada', 'newsletter', 'missing', 'old', 'newsletter', 'ada']
    const found = await Promise.all(people.map(name => idOf(name)))
    expect(found).toEqual([ada, ada, undefined, ada, ada, ada])
  })

  it('reads a person who is too large to be read with others', async () => {
    await ok('PATCH', '/v1/people/ada', { attribute_values: { text: 'x'.repeat(50_000) } })
    await eachFurther(async address => {
      const { id, attribute_values } = await read(address)
      expect([id, attribute_values.text.length]).toEqual([ada, 50_000])
    })
  })

  it('patches, replaces and deletes the person, under the person’s versions', async () => {
    await eachFurther(async address => {
      const { version } = await read()
      const wrong = { 'If-Match': `"${version + 1}"` }
      expect((await send('PATCH', `/v1/people/${address}`, { last_name: 'X' }, wrong)).status).toBe(412)
      const path = `/v1/people/${address}`
      const patched = await send('PATCH', path, { first_name: address }, { 'If-Match': `"${version}"` })
      expect([patched.status, patched.headers.get('etag')]).toEqual([200, `"${version + 1}"`])
      await ok('PUT', path, { last_name: address })
      expect(await read()).toMatchObject({ id: ada, external_id: 'ada', first_name: null, last_name: address })
    })
    await ok('DELETE', '/v1/people/newsletter')
    for (const address of ['ada', 'newsletter', 'old', `internal/${old}`, `internal/${ada}`])
      expect((await send('GET', `/v1/people/${address}`)).status).toBe(404)
  })

  it('is no rename if the body repeats it', async () => {
    await eachName(async name => {
      for (const [method, path] of [
        ['PATCH', `/v1/people/${name}`],
        ['PUT', `/v1/people/${name}`],
        ['POST', '/v1/people/upsert'],
      ] as const)
        await ok(method, path, { external_id: name, first_name: method + path })
      expect(await read()).toMatchObject({ id: ada, external_id: 'ada' })
    })
    expect(await aliases()).toEqual(['newsletter', 'old'])
  })

  it('merges an upsert into the person', async () => {
    await eachName(async name => {
      const { status, body } = await send('POST', '/v1/people/upsert', { external_id: name, last_name: name })
      expect([status, body.data]).toMatchObject([200, { id: ada, external_id: 'ada', last_name: name }])
    })
  })

  it('is taken for a create, a rename and another person’s restore', async () => {
    await ok('POST', '/v1/people', { external_id: 'bob' })
    const lost = (await ok('POST', '/v1/people', { external_id: 'lost' })).id
    await ok('DELETE', '/v1/people/lost')
    await giveAlias(service, shop, ada, 'lost')
    const { sequence } = await head()
    const taken = { error: 'duplicate_entry', details: [{ path: '/external_id' }] }
    for (const [method, path, body, status] of [
      ['POST', '/v1/people', { external_id: 'newsletter' }, 409],
      ['POST', '/v1/people', { external_id: 'old' }, 409],
      ['PATCH', '/v1/people/bob', { external_id: 'newsletter' }, 400],
      ['PUT', '/v1/people/bob', { external_id: 'old' }, 409],
      ['POST', `/v1/people/internal/${lost}/restore`, undefined, 409],
    ] as const) {
      const reply = await send(method, path, body)
      expect([path, reply.status, reply.body]).toMatchObject([path, status, taken])
    }
    expect(await head()).toMatchObject({ sequence })
  })

  it('can become the external identifier of its own person, and is no alias then', async () => {
    await ok('PATCH', '/v1/people/ada', { external_id: 'newsletter' })
    expect([await aliases(), await idOf('newsletter'), await idOf('ada')]).toEqual([['old'], ada, undefined])
    await ok('PATCH', `/v1/people/internal/${old}`, { external_id: 'old' })
    expect([await aliases(), (await read('old')).external_id]).toEqual([[], 'old'])
    // The name that the person gave up is free.
    expect((await send('POST', '/v1/people', { external_id: 'newsletter' })).status).toBe(201)
  })

  it('becomes free when its person is deleted, and does not return with a restore', async () => {
    await ok('DELETE', '/v1/people/ada')
    expect(await aliases()).toEqual([])
    const created = (await ok('POST', '/v1/people', { external_id: 'newsletter' })).id
    await ok('POST', `/v1/people/internal/${ada}/restore`)
    expect(await idOf('ada')).toBe(ada)
    expect(await idOf('newsletter')).toBe(created)
    expect((await send('GET', '/v1/people/old')).status).toBe(404)
    // No other person can get an internal identifier.
    expect(await idOf(`internal/${old}`)).toBe(ada)
  })

  it('restores nobody: the person exists', async () => {
    expect(await ok('POST', `/v1/people/internal/${old}/restore`)).toMatchObject({ id: ada, version: 2 })
  })

  it('is the address of the operations of a batch, also of an atomic one', async () => {
    for (const atomic of [false, true]) {
      const operations = [
        { op: 'patch', external_id: 'newsletter', body: { first_name: 'one' } },
        { op: 'upsert', external_id: 'old', body: { last_name: 'two' } },
        { op: 'put', id: old, body: { email: 'ada@example.com' } },
        { op: 'patch', external_id: 'ada', body: { first_name: 'four' } },
      ]
      const { items, failed } = await ok('POST', '/v1/people/batch', { operations, atomic })
      expect(failed).toBe(0)
      expect(items.map(({ id, external_id }: { id: string; external_id: string }) => [id, external_id])).toEqual(
        operations.map(() => [ada, 'ada']),
      )
      expect(await read()).toMatchObject({ first_name: 'four', last_name: null, email: 'ada@example.com' })
      await ok('PATCH', '/v1/people/ada', { first_name: null, email: null })
    }
    const { items } = await ok('POST', '/v1/people/batch', {
      operations: [
        { op: 'create', external_id: 'old', body: {} },
        { op: 'delete', external_id: 'old' },
        { op: 'create', external_id: 'old', body: {} },
        { op: 'patch', external_id: 'newsletter', body: {} },
      ],
    })
    expect(items.map(({ status }: { status: number }) => status)).toEqual([409, 200, 201, 404])
  })

  it('takes the lines of an import in their order, whatever name they have', async () => {
    const lines = ['ada', 'ada', 'old', 'newsletter', 'ada', 'old'].map((external_id, n) => ({
      external_id,
      first_name: `line ${n}`,
      attribute_values: { [`line${n}`]: n },
    }))
    const { counts } = await importLines(shop, '/v1/people/import', linesFrom(lines))
    expect(counts).toMatchObject({ updated: 6, created: 0, failed: 0 })
    expect(await read()).toMatchObject({
      first_name: 'line 5',
      external_id: 'ada',
      attribute_values: Object.fromEntries(lines.map((_, n) => [`line${n}`, n])),
    })
    const history = (await ok('GET', '/v1/people/ada/history')).items as { after: { first_name: string } }[]
    expect(history.map(({ after }) => after.first_name).slice(0, 6)).toEqual([5, 4, 3, 2, 1, 0].map(n => `line ${n}`))
    const rest = await importLines(
      shop,
      '/v1/people/import?create_only=true',
      linesFrom([{ external_id: 'old', first_name: 'X' }]),
    )
    expect(rest.refused).toMatchObject([{ error: 'duplicate_entry' }])
    expect((await importLines(shop, '/v1/people/import?dry_run=true', linesFrom(lines))).counts).toMatchObject({
      updated: 6,
    })
  })

  it('takes the lines of an import in their order, also where several sets of lines are written at once', async () => {
    const further = ['old', 'ada', 'newsletter']
    const lines = Array.from({ length: 1_500 }, (_, n) =>
      n % 50 === 0
        ? { external_id: further[(n / 50) % 3], first_name: `line ${n}` }
        : { external_id: `p${n}`, first_name: `line ${n}` },
    )
    const { counts } = await importLines(shop, '/v1/people/import', linesFrom(lines))
    expect(counts).toMatchObject({ updated: 30, created: 1_470, failed: 0 })
    const history = (await ok('GET', '/v1/people/ada/history?limit=30')).items as { after: { first_name: string } }[]
    expect(history.map(({ after }) => after.first_name)).toEqual(
      Array.from({ length: 30 }, (_, n) => `line ${(29 - n) * 50}`),
    )
  })

  it('keeps the order of a batch, in which an alias is linked to before its person is deleted', async () => {
    const { items } = await ok('POST', '/v1/people/batch', {
      operations: [
        { op: 'delete', external_id: 'ada' },
        { op: 'create', external_id: 'bob', body: { attribute_values: { referrer: 'newsletter' } } },
        { op: 'patch', external_id: 'newsletter', body: { first_name: 'New' } },
      ],
    })
    expect(items.map(({ status }: { status: number }) => status)).toEqual([200, 201, 200])
    // The deletion made the name free, so the link has made a placeholder of it.
    expect((await read('bob')).attribute_values).toEqual({ referrer: 'newsletter' })
    expect(await read('newsletter')).toMatchObject({ external_id: 'newsletter', first_name: 'New' })
  })

  it('links to the person, who is shown by name and linked to once', async () => {
    const body = (external_id: string, friends: unknown) => ({
      external_id,
      attribute_values: { friends, referrer: 'old' },
    })
    await ok('POST', '/v1/people', body('bob', ['newsletter', 'ada', 'old', 'eve']))
    expect((await read('bob')).attribute_values).toEqual({ friends: ['ada', 'eve'], referrer: 'ada' })
    const [created] = (await ok('GET', '/v1/people/bob/history')).items
    expect(created.after.attribute_values).toEqual({ friends: ['ada', 'eve'], referrer: 'ada' })
    const { version } = await read('bob')
    await ok('PATCH', '/v1/people/bob', { attribute_values: { friends: ['old', 'eve'], referrer: 'newsletter' } })
    expect((await read('bob')).version).toBe(version)
    const strict = await send('POST', '/v1/people', body('eva', 'old'), { Prefer: 'references=strict' })
    expect(strict.status).toBe(201)
    await importLines(shop, '/v1/people/import', linesFrom([body('ida', ['old'])]))
    expect((await read('ida')).attribute_values).toEqual({ friends: ['ada'], referrer: 'ada' })
    await ok('PATCH', '/v1/people/newsletter', { attribute_values: { referrer: 'old' } })
    expect((await read()).attribute_values).toEqual({ referrer: 'ada' })
    expect((await ok('POST', '/v1/people/list')).items).toHaveLength(5)
  })

  it('finds what is related to the person', async () => {
    await ok('POST', '/v1/people', { external_id: 'bob', attribute_values: { referrer: 'ada' } })
    await eachFurther(async address => {
      const { items } = await ok('POST', `/v1/people/${address}/related`, { target: 'people' })
      expect(items.map(({ external_id }: { external_id: string }) => external_id)).toEqual(['bob'])
    })
  })

  it('finds the histories of the person by name, and the merged person’s own by internal identifier', async () => {
    await ok('PATCH', '/v1/people/ada', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
    const own = [await ok('GET', '/v1/people/ada/history'), await ok('GET', '/v1/people/ada/consents/history')]
    await eachName(async name => {
      const found = [
        await ok('GET', `/v1/people/${name}/history`),
        await ok('GET', `/v1/people/${name}/consents/history`),
      ]
      expect(found).toEqual(own)
    })
    const { items } = await ok('GET', `/v1/people/internal/${old}/history`)
    expect(items.map(({ operation }: { operation: string }) => operation)).toEqual(['merge', 'create'])
  })

  it('finds the receipts of the person by name', async () => {
    await ok('PATCH', '/v1/people/ada', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
    await follow(service.db, [ledgerFollower({ originName: 'kith' })])
    const own = (await ok('GET', '/v1/people/ada/consents/1/email/receipt')).entry
    expect(own.person_id).toBe(ada)
    await eachName(async name =>
      expect((await ok('GET', `/v1/people/${name}/consents/1/email/receipt`)).entry).toEqual(own),
    )
  })

  it('decides whether the person may be written to, alone and among a thousand', async () => {
    await ok('PATCH', '/v1/people/ada', {
      email: 'ada@example.com',
      consents: [{ consent_type_id: 1, channel: 'email', state: true }],
    })
    const asked = { consent_type_id: 1, channel: 'email' }
    const own = await ok('POST', '/v1/people/ada/contactable', asked)
    expect(own.allowed).toBe(true)
    await eachFurther(async address =>
      expect(await ok('POST', `/v1/people/${address}/contactable`, asked)).toEqual(own),
    )
    const people = names('p', 498)
    await importLines(
      shop,
      '/v1/people/import',
      linesFrom(people.map(external_id => ({ external_id, email: `${external_id}@example.com` }))),
    )
    for (const [n, name] of people.entries())
      if (n % 100 === 0) await giveAlias(service, shop, (await read(name)).id, `also-${name}`)
    const external_ids = [...people, ...people.map(name => `also-${name}`), 'newsletter', 'old', 'ada', 'missing']
    const { items } = await ok('POST', '/v1/people/contactable', { external_ids, ...asked })
    expect(items.map(({ external_id }: { external_id: string }) => external_id)).toEqual(external_ids)
    const allowed = items.filter(({ allowed }: { allowed: boolean }) => allowed)
    expect(allowed.map(({ external_id }: { external_id: string }) => external_id)).toEqual(['newsletter', 'old', 'ada'])
    const missing = items.filter(({ reasons }: { reasons: [{ rule: string }] }) => reasons[0].rule === 'not_found')
    expect(missing).toHaveLength(498 - 5 + 1)
  })

  it('makes the consent links of the person', async () => {
    await eachFurther(async address => {
      const { preferences_url } = await ok('POST', `/v1/people/${address}/consent-links`, {})
      expect(parseLink(preferences_url.split('/').at(-1)!)).toMatchObject({ person_id: ada })
    })
  })

  it('is reached by the pages of a link that was made before the merge', async () => {
    await ok('POST', '/v1/people', { external_id: 'eve' })
    const { unsubscribe_url } = await linksOf(shop, 'eve', { consent_type_id: 1, channel: 'email' })
    await merge('eve')
    expect((await requestPage(unsubscribe_url, { method: 'POST' })).status).toBe(200)
    const { consents } = await read()
    expect(consents).toContainEqual(
      expect.objectContaining({ consent_type_id: 1, channel: 'email', state: false, source: 'answer' }),
    )
  })

  it.each(['without', 'with'])(
    'finds the person in a filter, and those who link to the person, %s indexes',
    async indexes => {
      if (indexes === 'with') await backfillIndexes(service.db)
      await ok('POST', '/v1/people', {
        external_id: 'bob',
        attribute_values: { referrer: 'ada', friends: ['ada', 'eve'] },
      })
      await ok('POST', '/v1/people', { external_id: 'ida', attribute_values: { referrer: 'eve' } })
      const find = async (filter: object) =>
        (await ok('POST', '/v1/people/filter', { filter, sort_direction: 'asc' })).items.map(
          ({ external_id }: { external_id: string }) => external_id,
        )
      await eachName(async name => {
        expect(await find({ external_id: name })).toEqual(['ada'])
        expect(await find({ external_id: { $in: [name, 'bob', 'missing'] } })).toEqual(['ada', 'bob'])
        expect(await find({ external_id: { $neq: name } })).toEqual(['bob', 'eve', 'ida'])
        expect(await find({ external_id: { $starts_with: name } })).toEqual([])
        expect(await find({ external_id: { $eq: name, $in: ['ada'] } })).toEqual(['ada'])
        for (const key of ['referrer', 'friends']) {
          expect(await find({ [`attribute_values.${key}`]: name })).toEqual(['bob'])
          expect(await find({ [`attribute_values.${key}`]: { $in: [name] } })).toEqual(['bob'])
          expect(await find({ [`attribute_values.${key}`]: { $some: { external_id: name } } })).toEqual(['bob'])
        }
        expect(await find({ 'attribute_values.referrer': { $nin: [name] } })).toEqual(['ada', 'eve', 'ida'])
      })
    },
  )

  it('shows the past of the person who had it until the merge, and then that of the other', async () => {
    const at = (address: string, time: string) => send('GET', `/v1/people/${address}?at=${time}`)
    const after = await momentBetween()
    for (const address of ['old', `internal/${old}`]) {
      expect((await at(address, before)).body.data).toMatchObject({ id: old, first_name: 'Old' })
      expect((await at(address, after)).body.data).toMatchObject({ id: ada, first_name: 'Ada' })
    }
    expect((await at('newsletter', before)).body.data).toMatchObject({ id: ada })
    expect((await send('GET', '/v1/people/old?version=1')).body.data).toMatchObject({ id: ada })
    expect((await send('GET', `/v1/people/internal/${old}?version=1`)).body.data).toMatchObject({ id: old })
    const eve = (await ok('POST', '/v1/people', { external_id: 'eve' })).id
    const between = await momentBetween()
    await merge('ada', 'eve')
    const end = await momentBetween()
    const ids = await Promise.all(
      [before, after, between, end].map(async time => (await at('old', time)).body.data?.id),
    )
    expect(ids).toEqual([old, ada, ada, eve])
    const asked = { consent_type_id: 1, channel: 'email' }
    for (const address of ['old', `internal/${old}`]) {
      const decide = async (time: string) =>
        (await ok('POST', `/v1/people/${address}/contactable`, { ...asked, at: time })).reasons[0].rule
      for (const time of [before, after, end]) expect(await decide(time)).toBe('no_address')
    }
  })

  it('means nothing in another organization', async () => {
    const other = await createShop(service)
    const { sequence } = await head(other)
    for (const [method, path, body] of [
      ['GET', '/v1/people/newsletter'],
      ['GET', `/v1/people/internal/${old}`],
      ['PUT', '/v1/people/newsletter', {}],
      ['PATCH', `/v1/people/internal/${old}`, {}],
      ['DELETE', '/v1/people/old'],
      ['GET', '/v1/people/old/history'],
      ['GET', '/v1/people/old/consents/history'],
      ['POST', '/v1/people/old/related', { target: 'people' }],
      ['POST', '/v1/people/old/contactable', { consent_type_id: 1, channel: 'email' }],
      ['POST', '/v1/people/old/consent-links', {}],
      ['GET', '/v1/people/old/consents/1/email/receipt'],
      ['GET', `/v1/people/old?at=${before}`],
    ] as const)
      expect([path, (await other.send(method, path, body)).status]).toEqual([path, 404])
    expect(await head(other)).toMatchObject({ sequence })
    expect((await other.send('POST', '/v1/people', { external_id: 'newsletter' })).status).toBe(201)
    expect((await read('newsletter')).id).toBe(ada)
  })

  it('may hold any text that an external identifier may hold', async () => {
    for (const name of [`'; drop table aliases; --`, '𝒜da\u0301', '%_\\', '{"a":1}', '0', 'x'.repeat(255), 'ADA']) {
      await giveAlias(service, shop, ada, name)
      expect((await read(encodeURIComponent(name))).id).toBe(ada)
      await ok('PATCH', `/v1/people/${encodeURIComponent(name)}`, { first_name: name.slice(0, 10) })
      await ok('POST', '/v1/people', { attribute_values: { referrer: name } })
      expect((await ok('POST', '/v1/people/filter', { filter: { external_id: name } })).items).toHaveLength(1)
    }
    expect((await send('GET', '/v1/people/Newsletter')).status).toBe(404)
  })

  it('leads to nobody in another stack', async () => {
    expect((await send('GET', '/v1/stacks/companies/newsletter')).status).toBe(404)
    expect((await send('POST', '/v1/stacks/companies', { external_id: 'newsletter' })).status).toBe(201)
    await ok('POST', '/v1/people', { attribute_values: { employer: 'old' } })
    expect((await ok('GET', '/v1/stacks/companies/old')).state).toBe('placeholder')
  })
})

describe('the first alias of an organization', () => {
  it('increments the version of the definitions, and so does the first after all have gone', async () => {
    const fresh = await createShop(service)
    const versions = async () => (await head(fresh)).schema_version
    const start = await versions()
    const id = (await fresh.send('POST', '/v1/people', { external_id: 'eve' })).body.data.id
    await giveAlias(service, fresh, id, 'one')
    expect(await versions()).toBe(start + 1)
    await giveAlias(service, fresh, id, 'two')
    expect(await versions()).toBe(start + 1)
    await fresh.send('DELETE', '/v1/people/eve')
    const bob = (await fresh.send('POST', '/v1/people', { external_id: 'bob' })).body.data.id
    await giveAlias(service, fresh, bob, 'one')
    expect(await versions()).toBe(start + 2)
  })

  it('is found by a process that read the definitions before', async () => {
    const fresh = await createShop(service, 'referrer')
    const by = async (method: string, path: string, body?: unknown, headers = {}) =>
      (await fresh.send(method, path, body, headers)).body.data
    const id = (await by('POST', '/v1/people', { external_id: 'eve' })).id
    const requests: [string, string, unknown?, Record<string, string>?][] = [
      ['GET', '/v1/people/also'],
      ['PATCH', '/v1/people/also', { first_name: 'Eve' }],
      ['POST', '/v1/people/upsert', { external_id: 'also' }],
      ['POST', '/v1/people/upsert', { external_id: 'also' }, { 'Idempotency-Key': 'one' }],
      ['PATCH', '/v1/people/also', { last_name: 'E' }, { 'Idempotency-Key': 'two' }],
      ['POST', '/v1/people/also/contactable', { consent_type_id: 1, channel: 'email' }],
      ['POST', '/v1/people/filter', { filter: { external_id: 'also' } }],
      ['POST', '/v1/people', { external_id: 'bob', attribute_values: { referrer: 'also' } }],
    ]
    for (const [method, path, body, headers] of requests) {
      // The definitions are cached for the version before the alias.
      await by('PATCH', '/v1/people/eve', { last_name: path })
      await giveAlias(service, fresh, id, 'also')
      const data = await by(method, path, body, headers)
      expect([path, JSON.stringify(data)]).not.toEqual([path, undefined])
      expect((await fresh.send('GET', '/v1/people/also')).body.data.id).toBe(id)
      const { length } = await service.sql(
        `select 1 from entities where organization_id = $1 and external_id = 'also'`,
        [fresh.id],
      )
      expect([path, length]).toEqual([path, 0])
      await service.sql('delete from aliases where organization_id = $1', [fresh.id])
    }
    expect((await by('GET', '/v1/people/bob')).attribute_values).toEqual({ referrer: 'eve' })
  })
})

describe('writes at the same time', () => {
  it('follow an alias that moves before they lock the head', async () => {
    const eve = (await ok('POST', '/v1/people', { external_id: 'eve' })).id
    const moving = runBeforeTransaction(service.db, () => moveAlias(service, shop, eve, 'newsletter'))
    const [outcome] = await writeAll(moving, shop, [write('patch', 'newsletter', { first_name: 'Moved' })])
    expect(resultOf(outcome)).toBe('updated')
    expect([(await read('eve')).first_name, (await read()).first_name]).toEqual(['Moved', 'Ada'])
  })

  it('find the person who is merged while they wait for the lock', async () => {
    const eve = (await ok('POST', '/v1/people', { external_id: 'eve' })).id
    const countWaiting = async () =>
      (
        await service.sql(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).length
    const { merging, writing } = await service.db.transaction(async tx => {
      await tx.query(statement('', 'select from entities where organization_id = $1 and id = $2 for update'), [
        shop.id,
        eve,
      ])
      const merging = merge('eve')
      while ((await countWaiting()) < 1);
      const writing = Promise.all([
        send('PATCH', '/v1/people/eve', { last_name: 'Late' }),
        send('POST', '/v1/people/upsert', { external_id: 'eve', email: 'eve@example.com' }),
      ])
      while ((await countWaiting()) < 2);
      return { merging, writing }
    })
    await merging
    expect(await writing).toMatchObject([{ status: 200 }, { status: 200 }])
    expect(await read()).toMatchObject({ id: ada, last_name: 'Late', email: 'eve@example.com' })
  })

  it.each([
    ['is created', write('create', 'fresh'), 'duplicate_entry'],
    ['is upserted', write('upsert', 'fresh', { external_id: 'fresh', last_name: 'X' }), 'updated'],
    ['becomes a placeholder', write('create', 'bob', { attribute_values: { referrer: 'fresh' } }), 'created'],
    ['is the new name of a person', write('patch', 'eve', { external_id: 'fresh' }), 'duplicate_entry'],
  ])('never make a person and an alias of a name that %s', async (_, given, result) => {
    await ok('POST', '/v1/people', { external_id: 'eve' })
    const racing = runBeforeTransaction(service.db, () => giveAlias(service, shop, ada, 'fresh'))
    const [outcome] = await writeAll(racing, shop, [given])
    expect([resultOf(outcome), (await read('fresh')).id]).toEqual([result, ada])
    const both = await service.sql(
      `select 1 from aliases a join entities e on e.organization_id = a.organization_id and e.stack_id = 0
         and e.external_id = a.external_id where a.organization_id = $1`,
      [shop.id],
    )
    expect(both).toEqual([])
  })

  it('address a person by several names at once without a deadlock', async () => {
    const people = names('p', 20)
    for (const name of people) {
      const { id } = await ok('POST', '/v1/people', { external_id: name })
      await giveAlias(service, shop, id, `z${name}`)
    }
    const writes = (n: number) =>
      people.map((name, index) =>
        write('patch', (index + n) % 2 ? name : `z${name}`, { attribute_values: { [`k${n}`]: n } }),
      )
    const outcomes = await Promise.all(
      [1, 2, 3, 4].map(n => writeAll(service.db, shop, n % 2 ? writes(n) : writes(n).reverse())),
    )
    expect(new Set(outcomes.flat().map(resultOf))).toEqual(new Set(['updated']))
    for (const name of people) expect((await read(name)).attribute_values).toEqual({ k1: 1, k2: 2, k3: 3, k4: 4 })
  })
})

describe('an organization without aliases', () => {
  it('runs no statement about them', async () => {
    const fresh = await createShop(service, 'referrer')
    const { db, statements } = recordStatements(service.db)
    await writeAll(db, fresh, [write('create', 'eve', { attribute_values: { referrer: 'bob' } })])
    for (const operation of ['patch', 'upsert', 'import', 'put', 'delete'] as const)
      await writeAll(db, fresh, [write(operation, 'eve', { first_name: operation })])
    expect(statements.filter(name => /alias|check_names/.test(name))).toEqual([])
    expect(statements).toContain('store_changes')
  })
})
