import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exportAll, importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, type Reply, startService, useService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useService()

const upsert = ({ send }: Organization, body: object) => send('POST', '/v1/people/upsert', body)
const create = async ({ send }: Organization, body: object) => (await send('POST', '/v1/people', body)).body.data
const statusAnd = ({ status, body: { data } }: Reply) => ({ status, id: data?.id })
const byEmail = { match: ['email'] }

async function readAll({ id }: Organization) {
  return service.sql<{ external_id: string | null; email: string | null; version: number; last_name: string | null }>(
    'select external_id, email, version, last_name from entities where organization_id = $1 and stack_id = 0 order by id',
    [id],
  )
}

describe('an upsert with match', () => {
  it('updates the person with the email, in any case, and creates one if nobody has it', async () => {
    const shop = await service.organization()
    const created = await upsert(shop, { ...byEmail, email: 'Ada@Example.com', first_name: 'Ada' })
    expect(created.status).toBe(201)
    const { id } = created.body.data
    expect(created.body.data).toMatchObject({ email: 'Ada@Example.com', external_id: null, version: 1 })
    expect(created.headers.get('location')).toBe(`/v1/people/internal/${id}`)
    const found = await upsert(shop, { ...byEmail, email: 'ada@example.COM', last_name: 'Lovelace' })
    expect(found.status).toBe(200)
    expect(found.body.data).toMatchObject({ id, email: 'ada@example.COM', first_name: 'Ada', last_name: 'Lovelace' })
    expect(found.body.data).not.toHaveProperty('match')
    const again = await upsert(shop, { ...byEmail, email: 'ada@example.COM', last_name: 'Lovelace' })
    expect(again.body.data).toEqual(found.body.data)
  })

  it('keeps dots and plus signs, and knows addresses in Unicode and of 254 characters', async () => {
    const shop = await service.organization()
    const longest = `${'a'.repeat(64)}@${`${'b'.repeat(61)}.`.repeat(3)}com`.padEnd(254, 'm')
    const emails = ['ada@x.io', 'a.da@x.io', 'ada+1@x.io', 'ÀDA@x.io', '用户@例子.公司', longest]
    const ids = []
    for (const email of emails) ids.push((await upsert(shop, { ...byEmail, email })).body.data.id)
    expect(new Set(ids).size).toBe(emails.length)
    const other = ['ADA@x.io', 'A.da@X.io', 'Ada+1@x.io', 'àda@x.io'.normalize('NFD'), '用户@例子.公司', longest]
    for (const [index, email] of other.entries())
      expect(statusAnd(await upsert(shop, { ...byEmail, email }))).toEqual({ status: 200, id: ids[index] })
  })

  it('finds a phone however it is written, and skips a number that no country has', async () => {
    const shop = await service.organization()
    const byMobile = { match: ['mobile', 'email'] }
    const { id } = await create(shop, { mobile_prefix: '+43', mobile_number: '0664 1234567' })
    const written = [
      { mobile_prefix: '43', mobile_number: '664/1234567' },
      { mobile_prefix: '0043', mobile_number: '0664-1234567' },
      { mobile_number: '+43 664 1234567' },
      { mobile_number: '0043 (0) 664 1234567' },
    ]
    for (const phone of written)
      expect(statusAnd(await upsert(shop, { ...byMobile, ...phone }))).toEqual({ status: 200, id })
    const without = await upsert(shop, { match: ['mobile'], mobile_number: '664 1234567' })
    expect([without.status, without.body.error]).toEqual([400, 'invalid_parameter'])
    expect(without.body.details).toMatchObject([{ path: '/mobile_number' }])
    expect(without.body.details![0]!.message).toContain('mobile_prefix')
    const unknown = { mobile_prefix: '999', mobile_number: '6641234567' }
    expect((await upsert(shop, { match: ['mobile'], ...unknown })).status).toBe(400)
    const other = await upsert(shop, { ...byMobile, ...unknown, email: 'x@example.com' })
    expect(other.status).toBe(201)
    expect(other.body.data).toMatchObject({ ...unknown, email: 'x@example.com' })
  })

  it('tries its keys in order, and the first that anybody has decides', async () => {
    const shop = await service.organization()
    const ada = await create(shop, { external_id: 'ada', email: 'ada@example.com' })
    const bob = await create(shop, { external_id: 'bob', email: 'bob@example.com' })
    const all = ['external_id', 'email', 'mobile']
    const body = { external_id: 'ada', email: 'bob@example.com' }
    expect((await upsert(shop, { match: all.toReversed(), ...body })).body).toMatchObject({ error: 'duplicate_entry' })
    const found = await upsert(shop, { match: all, ...body })
    expect(statusAnd(found)).toEqual({ status: 200, id: ada.id })
    const both = await upsert(shop, { match: all, email: 'BOB@example.com' })
    expect([both.status, both.body.error]).toEqual([409, 'duplicate_entry'])
    expect(both.body.details).toEqual([
      { path: '/email', message: 'is also that of the person with the external_id ada' },
      { path: '/email', message: 'is also that of the person with the external_id bob' },
    ])
    expect(await readAll(shop)).toMatchObject([{ version: 2 }, { version: 1, email: bob.email }])
  })

  it('names at most ten candidates', async () => {
    const shop = await service.organization()
    for (let n = 0; n < 12; n += 1) await create(shop, { email: 'info@example.com' })
    const { status, body } = await upsert(shop, { ...byEmail, email: 'info@example.com' })
    expect([status, body.details!.length]).toEqual([409, 10])
    expect(body.message).toContain('More than 10')
  })

  it('gives its external identifier to a person without one, and as an alias to a person with another one', async () => {
    const shop = await service.organization()
    const { id } = await create(shop, { email: 'ada@example.com' })
    const first = await upsert(shop, { ...byEmail, external_id: 'shop-1', email: 'ada@example.com' })
    expect(first.body.data).toMatchObject({ id, external_id: 'shop-1', version: 2 })
    const second = await upsert(shop, {
      ...byEmail,
      external_id: 'news-7',
      email: 'ada@example.com',
      first_name: 'Ada',
    })
    expect([second.status, second.body.data]).toMatchObject([200, { id, external_id: 'shop-1', first_name: 'Ada' }])
    for (const path of ['shop-1', 'news-7'])
      expect((await shop.send('GET', `/v1/people/${path}`)).body.data).toMatchObject({ id, external_id: 'shop-1' })
    const repeated = await upsert(shop, { ...byEmail, external_id: 'news-7', email: 'ada@example.com' })
    expect(repeated.body.data).toEqual(second.body.data)
    const byName = await upsert(shop, {
      match: ['external_id', 'email'],
      external_id: 'news-7',
      email: 'new@example.com',
    })
    expect(byName.body.data).toMatchObject({ id, external_id: 'shop-1', email: 'new@example.com' })
    expect((await shop.send('PATCH', '/v1/people/news-7', { last_name: 'L' })).status).toBe(200)
    expect(await readAll(shop)).toHaveLength(1)
  })

  it('is refused if its external identifier is that of another person', async () => {
    const shop = await service.organization()
    await create(shop, { external_id: 'ada', email: 'ada@example.com' })
    await create(shop, { external_id: 'bob', email: 'bob@example.com' })
    const before = await readAll(shop)
    for (const email of ['ada@example.com', 'nobody@example.com']) {
      const { status, body } = await upsert(shop, { ...byEmail, external_id: 'bob', email })
      expect([status, body.error, body.details![0]!.path]).toEqual([409, 'duplicate_entry', '/external_id'])
    }
    expect(await readAll(shop)).toEqual(before)
  })

  it('completes a placeholder, and honors If-Match and references', async () => {
    const shop = await createShop(service, 'referrer')
    await create(shop, { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    const match = ['external_id', 'email']
    const completed = await upsert(shop, { match, external_id: 'bob', email: 'bob@example.com' })
    expect(completed.body.data).toMatchObject({ state: 'active', email: 'bob@example.com' })
    const body = { match, email: 'BOB@example.com', attribute_values: { referrer: 'nobody' } }
    const send = (headers: Record<string, string>) => shop.send('POST', '/v1/people/upsert', body, headers)
    expect((await send({ 'If-Match': '"7"' })).status).toBe(412)
    expect((await send({ Prefer: 'references=strict' })).body.details).toMatchObject([
      { path: '/attribute_values/referrer' },
    ])
    expect((await send({ 'If-Match': '"2"' })).body.data).toMatchObject({ attribute_values: { referrer: 'nobody' } })
  })

  it('repeats its response to an Idempotency-Key, and is refused without a key or with an unknown kind', async () => {
    const shop = await service.organization()
    const headers = { 'Idempotency-Key': 'one' }
    const body = { ...byEmail, email: 'ada@example.com', external_id: 'ada' }
    const first = await shop.send('POST', '/v1/people/upsert', body, headers)
    const second = await shop.send('POST', '/v1/people/upsert', body, headers)
    expect([first.status, second.status, second.body.data]).toEqual([201, 201, first.body.data])
    for (const [wrong, path] of [
      [{ match: [] }, '/match'],
      [{ match: ['phone'] }, '/match/0'],
      [{ match: 'email' }, '/match'],
      [{ match: ['email', 'email'] }, '/match/1'],
      [{ match: ['email', 'mobile'] }, '/email'],
      [{ match: ['external_id'] }, '/external_id'],
      [{}, '/external_id'],
    ] as const) {
      const { status, body: answer } = await upsert(shop, { first_name: 'X', ...wrong })
      expect([status, answer.details![0]!.path], JSON.stringify(wrong)).toEqual([400, path])
    }
    const stack = await shop.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    expect(stack.status).toBe(201)
    expect((await shop.send('POST', '/v1/stacks/orders/upsert', { external_id: 'a', ...byEmail })).status).toBe(400)
    expect(await readAll(shop)).toHaveLength(1)
  })

  it('sees a person whom a rename or a new email made equal, and no longer one whose email changed', async () => {
    const shop = await service.organization()
    const ada = await create(shop, { external_id: 'ada', email: 'ada@example.com' })
    await create(shop, { external_id: 'bob', email: 'bob@example.com' })
    await shop.send('PATCH', '/v1/people/bob', { email: 'ADA@example.com' })
    expect((await upsert(shop, { ...byEmail, email: 'ada@example.com' })).status).toBe(409)
    await shop.send('PUT', '/v1/people/bob', { external_id: 'robert', first_name: 'Bob' })
    expect(statusAnd(await upsert(shop, { ...byEmail, email: 'ada@example.com' }))).toEqual({ status: 200, id: ada.id })
    await shop.send('DELETE', '/v1/people/ada')
    expect((await upsert(shop, { ...byEmail, email: 'ada@example.com' })).status).toBe(201)
    await shop.send('POST', `/v1/people/internal/${ada.id}/restore`)
    expect((await upsert(shop, { ...byEmail, email: 'ada@example.com' })).status).toBe(409)
  })

  it('never finds the people of another organization', async () => {
    const [ours, theirs] = [await service.organization(), await service.organization()]
    await create(theirs, { external_id: 'ada', email: 'ada@example.com' })
    expect((await upsert(ours, { ...byEmail, external_id: 'ada', email: 'ada@example.com' })).status).toBe(201)
    expect(await readAll(theirs)).toMatchObject([{ version: 1 }])
  })
})

describe('concurrent upserts', () => {
  it('by one new email make one person, spread over two services on one database', async () => {
    const shop = await service.organization()
    const other = await startService({}, service.databaseUrl)
    try {
      const sender = other.sender(shop.token)
      const senders = [shop.send, sender]
      const bodies = Array.from({ length: 200 }, (_, n) => ({
        ...byEmail,
        email: n % 3 === 0 ? 'New@example.com' : 'new@example.com',
        attribute_values: { [`k${n}`]: n },
      }))
      const replies = await Promise.all(bodies.map((body, n) => senders[n % 2]!('POST', '/v1/people/upsert', body)))
      expect(replies.map(({ status }) => status).toSorted()).toEqual([...Array(199).fill(200), 201])
      expect(new Set(replies.map(({ body }) => body.data.id)).size).toBe(1)
      const { items } = (await shop.send('POST', '/v1/people/list')).body.data
      expect(items).toHaveLength(1)
      expect(Object.keys(items[0].attribute_values)).toHaveLength(200)
    } finally {
      await other.stop()
    }
  }, 60_000)

  it('by the email or the phone of one person make one person, whatever external identifiers they have', async () => {
    const shop = await service.organization()
    const contact = { email: 'new@example.com', mobile_number: '+393331234567' }
    const bodies = Array.from({ length: 60 }, (_, n) => ({
      match: n % 2 === 0 ? ['email', 'mobile'] : ['external_id', 'mobile'],
      external_id: `source-${n % 7}`,
      ...contact,
    }))
    const replies = await Promise.all(bodies.map(body => upsert(shop, body)))
    expect(new Set(replies.map(({ body }) => body.data?.id)).size).toBe(1)
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1)
    for (let n = 0; n < 7; n += 1)
      expect((await shop.send('GET', `/v1/people/source-${n}`)).body.data.id).toBe(replies[0]!.body.data.id)
  }, 60_000)
})

describe('a batch with match', () => {
  it('applies it to the upserts, each of which sees the operations before it', async () => {
    const shop = await service.organization()
    await create(shop, { external_id: 'ada', email: 'ada@example.com' })
    for (const atomic of [false, true]) {
      const tag = atomic ? '2' : '1'
      const { status, body } = await shop.send('POST', '/v1/people/batch', {
        match: ['email'],
        atomic,
        operations: [
          { op: 'create', external_id: `bob${tag}`, body: { email: `bob${tag}@example.com` } },
          { op: 'upsert', body: { email: `BOB${tag}@example.com`, first_name: 'Bob' } },
          { op: 'patch', external_id: 'ada', body: { email: `new${tag}@example.com` } },
          { op: 'upsert', body: { email: `New${tag}@example.com`, last_name: `L${tag}` } },
          { op: 'patch', external_id: 'ada', body: { last_name: `Last${tag}` } },
          { op: 'upsert', external_id: `news${tag}`, body: { email: `new${tag}@example.com`, first_name: `F${tag}` } },
          { op: 'upsert', external_id: `news${tag}`, body: { email: `new${tag}@example.com`, first_name: `G${tag}` } },
        ],
      })
      expect(status).toBe(200)
      expect(body.data.items.map(({ status }: { status: number }) => status)).toEqual([
        201, 200, 200, 200, 200, 200, 200,
      ])
      const ada = (await shop.send('GET', `/v1/people/news${tag}`)).body.data
      expect(ada).toMatchObject({ external_id: 'ada', last_name: `Last${tag}`, first_name: `G${tag}` })
    }
    expect(await readAll(shop)).toHaveLength(3)
  })

  it('reports an ambiguous email with the path of the operation, and does not stop the others', async () => {
    const shop = await service.organization()
    for (const external_id of ['one', 'two']) await create(shop, { external_id, email: 'info@example.com' })
    const operations = [
      { op: 'upsert', body: { email: 'info@example.com' } },
      { op: 'upsert', body: { first_name: 'Nobody' } },
      { op: 'upsert', body: { email: 'new@example.com' } },
    ]
    const { body } = await shop.send('POST', '/v1/people/batch', { match: ['email'], operations })
    expect(body.data.items).toMatchObject([
      { status: 409, error: 'duplicate_entry', details: [{ path: '/operations/0/body/email' }, {}] },
      { status: 400, error: 'invalid_parameter', details: [{ path: '/operations/1/body/email' }] },
      { status: 201 },
    ])
    const atomic = await shop.send('POST', '/v1/people/batch', { match: ['email'], atomic: true, operations })
    expect(atomic.status).toBe(409)
    expect(await readAll(shop)).toHaveLength(3)
  })
})

const declareCode = ({ send }: Organization) =>
  send('POST', '/v1/schema/attributes', { owner: 'people', key: 'code', type: 'text', indexed: true, unique: true })

describe('an import with match', () => {
  const path = '/v1/people/import?match=external_id,email,mobile'

  it('takes the lines of one person in order, whatever keys they name it by, and can be sent again', async () => {
    const shop = await createShop(service, 'referrer', 'friends')
    await create(shop, { external_id: 'old', email: 'old@example.com', mobile_number: '+393331234567' })
    const lines = linesFrom([
      { external_id: 'old', email: 'new@example.com', attribute_values: { a: 1 } },
      { mobile_number: '0039 333 1234567', attribute_values: { a: 2, b: 2 } },
      { email: 'NEW@example.com', attribute_values: { b: 3, c: 3 } },
      { external_id: 'crm-1', email: 'new@example.com', attribute_values: { c: 4, friends: ['crm-1', 'eve'] } },
      { email: 'eve@example.com', external_id: 'eve', attribute_values: { referrer: 'crm-1' } },
      { email: 'Eve@example.com', attribute_values: { city: 'Rome' } },
    ])
    const { counts, refused } = await importLines(shop, path, lines)
    expect({ counts, refused }).toMatchObject({ counts: { received: 6, created: 1, updated: 5 }, refused: [] })
    const old = (await shop.send('GET', '/v1/people/crm-1')).body.data
    expect(old).toMatchObject({
      external_id: 'old',
      email: 'new@example.com',
      attribute_values: { a: 2, b: 3, c: 4, friends: ['old', 'eve'] },
    })
    const eve = (await shop.send('GET', '/v1/people/eve')).body.data
    expect(eve.attribute_values).toEqual({ referrer: 'old', city: 'Rome' })
    expect(await readAll(shop)).toHaveLength(2)
    const again = await importLines(shop, path, linesFrom([{ external_id: 'crm-1', email: 'new@example.com' }]))
    expect(again.counts).toMatchObject({ received: 1, unchanged: 1 })
  })

  it('equals the same upserts one after the other, for lines that share keys at random', async () => {
    const [imported, upserted] = [await service.organization(), await service.organization()]
    const pick = (values: string[], n: number) => values[n % values.length]!
    const bodies = Array.from({ length: 150 }, (_, n) => {
      const k = (n * 7_919) % 1_009
      return {
        ...(k % 3 !== 0 && { external_id: pick(['a', 'b', 'c', 'd', 'e', 'f'], k) }),
        ...(k % 4 !== 1 && { email: `${pick(['u', 'v', 'w', 'x', 'y', 'z'], k >> 2)}@example.com` }),
        ...(k % 5 === 2 && { mobile_number: `+39333123456${k % 6}` }),
        last_name: `n${n}`,
      }
    }).filter(body => 'external_id' in body || 'email' in body || 'mobile_number' in body)
    const { refused, counts } = await importLines(imported, path, linesFrom(bodies))
    const failures: number[] = []
    for (const [index, body] of bodies.entries()) {
      const reply = await upsert(upserted, { match: ['external_id', 'email', 'mobile'], ...body })
      if (reply.status >= 400) failures.push(index + 1)
    }
    expect(refused.map(({ line }) => line)).toEqual(failures)
    expect(counts).toMatchObject({ received: bodies.length, failed: failures.length })
    const textsOf = async (shop: Organization) => (await readAll(shop)).map(row => JSON.stringify(row)).toSorted()
    expect(await textsOf(imported)).toEqual(await textsOf(upserted))
  }, 60_000)

  it('links to the people of earlier lines, whatever name each of them gave', async () => {
    const owner = fc.nat({ max: 49 })
    const name = fc.tuple(fc.constantFrom('crm', 'shop', 'news'), owner).map(([source, n]) => `${source}-${n}`)
    const line = fc.record(
      { owner, source: fc.constantFrom('crm', 'shop', 'news'), friends: fc.uniqueArray(name, { maxLength: 3 }) },
      { requiredKeys: ['owner'] },
    )
    const lines = fc.array(line, { minLength: 1_000, maxLength: 1_000, size: 'max' })
    const ownerOf = (external_id: string) => Number(external_id.split('-')[1])
    const run = fc.asyncProperty(fc.noShrink(lines), async all => {
      const shop = await createShop(service, 'friends')
      const given = new Set<string>()
      const expected = new Map<number, number[]>()
      const bodies = all.map(({ owner, source, friends }) => {
        if (source) given.add(`${source}-${owner}`)
        const known = friends?.filter(friend => given.has(friend))
        expected.set(owner, known ? [...new Set(known.map(ownerOf))] : (expected.get(owner) ?? []))
        return {
          email: `p${owner}@example.com`,
          ...(source && { external_id: `${source}-${owner}` }),
          ...(known && { attribute_values: { friends: known } }),
        }
      })
      const { refused } = await importLines(shop, path, linesFrom(bodies))
      expect(refused).toEqual([])
      const people = await exportAll(shop, '/v1/people/export')
      const friendsOf = people.map(({ email, attribute_values }): [number, number[]] => [
        Number(/\d+/.exec(email as string)![0]),
        ((attribute_values as { friends?: string[] }).friends ?? []).map(ownerOf),
      ])
      expect(friendsOf.toSorted(([a], [b]) => a - b)).toEqual([...expected].toSorted(([a], [b]) => a - b))
    })
    await fc.assert(run, someRuns(3))
  }, 60_000)

  it('reaches the person of an earlier line that has to wait for a unique value', async () => {
    const shop = await createShop(service, 'friends')
    await declareCode(shop)
    const eve = await create(shop, { external_id: 'eve', email: 'eve@example.com' })
    await create(shop, { external_id: 'ada', attribute_values: { code: 'old' } })
    const lines = linesFrom([
      { external_id: 'ada', attribute_values: { code: 'new' } },
      { external_id: 'news-1', email: 'eve@example.com', attribute_values: { code: 'old' } },
      { external_id: 'bob', attribute_values: { friends: ['news-1'] } },
      { email: 'EVE@example.com', last_name: 'last' },
    ])
    const { refused } = await importLines(shop, path, lines)
    expect(refused).toEqual([])
    const read = async (name: string) => (await shop.send('GET', `/v1/people/${name}`)).body.data
    expect(await read('news-1')).toMatchObject({ id: eve.id, last_name: 'last', attribute_values: { code: 'old' } })
    expect((await read('bob')).attribute_values).toEqual({ friends: ['eve'] })
    expect(await readAll(shop)).toHaveLength(3)
  })

  it('keeps the order of the lines of a person across concurrent sets, whatever key each names', async () => {
    const shop = await service.organization()
    const count = 200
    const keysOf = (n: number) => [
      { external_id: `p${n}` },
      { email: `P${n}@example.com` },
      { mobile_number: `+39333${1_000_000 + n}` },
    ]
    const owners = Array.from({ length: 3_000 }, (_, n) => (n < count ? n : (n * 7_919) % count))
    const lines = owners.map((owner, n) => ({
      ...(n < count ? Object.assign({}, ...keysOf(owner)) : keysOf(owner)[(n * 31) % 3]),
      last_name: `line ${n}`,
    }))
    const { counts, refused } = await importLines(shop, path, linesFrom(lines))
    expect({ counts, refused }).toMatchObject({ counts: { created: count, updated: 3_000 - count }, refused: [] })
    const expected = Array.from({ length: count }, (_, owner) => ({
      external_id: `p${owner}`,
      last_name: `line ${owners.lastIndexOf(owner)}`,
      version: owners.filter(other => other === owner).length,
    }))
    const found = (await readAll(shop)).map(({ external_id, last_name, version }) => ({
      external_id,
      last_name,
      version,
    }))
    const byName = (one: { external_id: string | null }) => Number(one.external_id!.slice(1))
    expect(found.toSorted((a, b) => byName(a) - byName(b))).toEqual(expected)
  }, 60_000)

  it('keeps the order of sets that name the same people by different keys, which share no value', async () => {
    const shop = await service.organization()
    const count = 448
    const keysOf = (n: number) => [
      { external_id: `p${n}` },
      { email: `p${n}@example.com` },
      { mobile_number: `+39333${1_000_000 + n}` },
    ]
    const numbers = Array.from({ length: count }, (_, n) => n)
    await importLines(shop, path, linesFrom(numbers.map(n => Object.assign({}, ...keysOf(n)))))
    const lines = [0, 1, 2, 0, 2, 1].flatMap((kind, round) =>
      numbers.map(n => ({ ...keysOf(n)[kind], last_name: `round ${round}` })),
    )
    const { counts } = await importLines(shop, path, linesFrom(lines))
    expect(counts).toMatchObject({ received: 6 * count, updated: 6 * count })
    const changes = await service.sql<{ names: string[] }>(
      `select array_agg(after->>'last_name' order by sequence) as names from changes
       where organization_id = $1 and operation = 'update' group by entity_id`,
      [shop.id],
    )
    const inOrder = Array.from({ length: 6 }, (_, round) => `round ${round}`)
    expect(changes).toEqual(numbers.map(() => ({ names: inOrder })))
  }, 60_000)

  it('keeps the order of a set that recognizes people only by what an earlier set gives them', async () => {
    const shop = await service.organization()
    const numbers = Array.from({ length: 448 }, (_, n) => n)
    const name = (n: number) => ({ external_id: `p${n}` })
    const mobile = (n: number) => ({ mobile_number: `+39333${1_000_000 + n}` })
    const email = (n: number) => ({ email: `p${n}@example.com` })
    await importLines(shop, path, linesFrom(numbers.map(n => ({ ...name(n), ...mobile(n) }))))
    const lines = [
      ...numbers.map(n => ({ ...name(n), ...email(n), last_name: 'first' })),
      ...numbers.map(n => ({ ...email(n), last_name: 'second' })),
      ...numbers.slice(-8).map(n => ({ ...mobile(n), last_name: 'third' })),
    ]
    const { counts } = await importLines(shop, path, linesFrom(lines))
    expect(counts).toMatchObject({ received: 904, updated: 904 })
    const names = (await readAll(shop)).map(({ last_name }) => last_name)
    expect([names.filter(last => last === 'second').length, names.filter(last => last === 'third').length]).toEqual([
      440, 8,
    ])
  }, 60_000)

  it('makes one person of each email when two imports bring the same people at once, beside upserts', async () => {
    const shop = await service.organization()
    const people = Array.from({ length: 600 }, (_, n) => ({ email: `p${n}@example.com` }))
    const importAll = (word: string) =>
      importLines(shop, '/v1/people/import?match=email', linesFrom(people.map(body => ({ ...body, [word]: 'x' }))))
    const upserts = people.slice(0, 60).map(body => upsert(shop, { ...byEmail, ...body, language: 'en' }))
    const imports = await Promise.all([importAll('first_name'), importAll('last_name')])
    const statuses = (await Promise.all(upserts)).map(({ status }) => status)
    expect(imports.map(({ refused }) => refused)).toEqual([[], []])
    expect(statuses.every(status => status === 200 || status === 201)).toBe(true)
    const created =
      imports.reduce((sum, { counts }) => sum + counts.created, 0) + statuses.filter(s => s === 201).length
    expect([created, (await readAll(shop)).length]).toEqual([600, 600])
  }, 60_000)

  it('refuses lines that more than one person could be, and lines without a key', async () => {
    const shop = await service.organization()
    for (const external_id of ['one', 'two']) await create(shop, { external_id, email: 'info@example.com' })
    const lines = linesFrom([{ email: 'info@example.com' }, { first_name: 'X' }, { email: 'a@example.com' }])
    const { refused, counts } = await importLines(shop, '/v1/people/import?match=email', lines)
    expect(counts).toMatchObject({ received: 3, created: 1, failed: 2 })
    expect(refused).toMatchObject([
      { line: 1, error: 'duplicate_entry', details: [{ path: '/email' }, { path: '/email' }] },
      { line: 2, error: 'invalid_parameter', details: [{ path: '/email' }] },
    ])
  })

  it('refuses to change people under create_only, stores nothing in a dry run, and reads either form of the parameter', async () => {
    const shop = await service.organization()
    await create(shop, { external_id: 'ada', email: 'ada@example.com' })
    const lines = linesFrom([{ email: 'ada@example.com', first_name: 'Ada' }, { email: 'new@example.com' }])
    const import_ = (query: string) => importLines(shop, `/v1/people/import?${query}`, lines)
    expect((await import_('match=email&dry_run=true')).counts).toMatchObject({ created: 1, updated: 1 })
    expect(await readAll(shop)).toHaveLength(1)
    expect((await import_('match=email&create_only=true')).counts).toMatchObject({ created: 1, failed: 1 })
    expect((await import_('match=mobile&match=email')).counts).toMatchObject({ updated: 1, unchanged: 1 })
    for (const query of ['match=phone', 'match=email,email', 'match=', 'match=email,', 'match=a&match=b'])
      expect((await shop.send('POST', `/v1/people/import?${query}`, undefined)).status, query).toBe(400)
    expect((await shop.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })).status).toBe(201)
    expect((await shop.send('POST', '/v1/stacks/orders/import?match=email', undefined)).status).toBe(400)
  })
})
