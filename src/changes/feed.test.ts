import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { followPages, numbersTo, readFeed, type WireChange } from '../../test/support/changes.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { startService, useService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'
import { names } from '../../test/support/writes.ts'
import { contextOf } from '../db/context.ts'
import { renewLogId } from './log-id.ts'
import { countSubscribers } from './log-tail.ts'

const service = useService()
let start: number
const shop = useShop(service, 'companies')
const { send } = shop
beforeEach(async () => {
  start = (await readFeed(shop)).head
})

const read = (query = '') => readFeed(shop, `after=${start}&${query}`)
const sequences = (items: WireChange[]) => items.map(({ sequence }) => sequence)
const refusalOf = async (path: string, sender = send, headers = {}) => {
  const { status, body } = await sender('GET', path, undefined, headers)
  return [status, body.error, body.details?.map(({ path }) => path)]
}
/**
 * Creates a person, a record and a consent type, and deletes the person. The changes have the numbers after `start`.
 */
async function writeOfEach() {
  const person = (await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })).body.data
  await send('PATCH', '/v1/people/ada', { first_name: 'A', attribute_values: { 'tab\t"': ['x\ny', 1.5] } })
  const record = (await send('POST', '/v1/stacks/companies', { external_id: 'acme' })).body.data
  await send('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'sms' }] })
  await send('DELETE', '/v1/people/ada')
  return { person, record }
}

it('has the changes of one person or record by any identifier that it has or had', async () => {
  const { person, record } = await writeOfEach()
  const query = async (entity: string, more = '') => sequences((await read(`entity=${entity}${more}`)).items)
  expect(await query('ada')).toEqual([start + 1, start + 2, start + 5])
  expect(await query(person.id, '&operation=delete')).toEqual([start + 5])
  expect(await query('acme')).toEqual([start + 3])
  expect(await query(record.record_id.toUpperCase())).toEqual([start + 3])
  expect(await query('acme', '&subject=person')).toEqual([])
  await send('PATCH', '/v1/stacks/companies/acme', { external_id: 'acme-2' })
  expect(await query('acme')).toEqual([start + 3, start + 6])
  expect(await query('nobody')).toEqual([])
  expect(await refusalOf('/v1/changes?entity=ada&segment=vips')).toEqual([400, 'invalid_parameter', ['/entity']])
})

describe('a page of changes', () => {
  it('has each change with its fields, in order, with the head and the log_id', async () => {
    const { person, record } = await writeOfEach()
    const page = await read()
    expect(page).toMatchObject({ last: start + 5, head: start + 5, log_id: expect.stringMatching(/^[\da-f-]{36}$/) })
    const [created, patched, acme, news, deleted] = page.items
    const written = { actor: 'tests', request_id: expect.any(String), at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) }
    expect(created).toMatchObject({
      before: null,
      after: { first_name: 'Ada', external_id: 'ada' },
      at: person.created_at,
    })
    expect(patched).toEqual({
      ...written,
      sequence: start + 2,
      subject: 'person',
      id: person.id,
      external_id: 'ada',
      stack_key: null,
      operation: 'update',
      version: 2,
      before: { first_name: 'Ada', attribute_values: { 'tab\t"': null } },
      after: { first_name: 'A', attribute_values: { 'tab\t"': ['x\ny', 1.5] } },
      links: null,
    })
    expect(acme).toMatchObject({ subject: 'record', id: record.record_id, external_id: 'acme', stack_key: 'companies' })
    const definition = { subject: 'consent_type', id: 2, external_id: null, stack_key: null, version: null }
    expect(news).toMatchObject({ ...definition, operation: 'create', after: { key: 'news' } })
    expect(deleted).toMatchObject({ operation: 'delete', version: 3, external_id: 'ada', after: {} })
  })

  it('has the internal identifiers of the targets that the change linked to and no longer links to', async () => {
    const shop = await createShop(service, 'friends', 'employer')
    const post = async (path: string, body: object) => (await shop.send('POST', path, body)).body.data
    const [bob, eve] = [await post('/v1/people', { external_id: 'bob' }), await post('/v1/people', {})]
    const { record_id: acme } = await post('/v1/stacks/companies', { external_id: 'acme' })
    const values = { friends: ['bob', { id: eve.id }], employer: 'acme', plain: 1 }
    const ada = await post('/v1/people', { external_id: 'ada', attribute_values: values })
    await shop.send('DELETE', '/v1/people/bob')
    await shop.send('PATCH', '/v1/people/ada', { attribute_values: { friends: [{ id: eve.id }], plain: 2 } })
    await shop.send('PATCH', '/v1/people/ada', { attribute_values: { friends: [], plain: null } })
    await shop.send('PATCH', '/v1/people/ada', { attribute_values: { plain: 3 } })
    await shop.send('DELETE', '/v1/people/ada')
    await shop.send('POST', `/v1/people/internal/${ada.id}/restore`)
    const { items } = (await shop.send('GET', `/v1/people/internal/${ada.id}/history`)).body.data
    expect(items.map(({ operation, links }: { operation: string; links: unknown }) => [operation, links])).toEqual([
      ['restore', { employer: { after: [acme] } }],
      ['delete', { employer: { before: [acme] } }],
      ['update', null],
      ['update', { friends: { before: [eve.id] } }],
      ['update', { friends: { before: [eve.id], after: [eve.id] } }],
      ['create', { friends: { after: [bob.id, eve.id] }, employer: { after: [acme] } }],
    ])
  })

  it('has the external identifier of now, or the last one of a deleted entity', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('POST', '/v1/people', { external_id: 'bob"' })
    await send('POST', '/v1/people', {})
    await send('PATCH', '/v1/people/ada', { external_id: 'lovelace' })
    await send('PATCH', '/v1/people/bob%22', { external_id: 'robert' })
    await send('DELETE', '/v1/people/robert')
    // Another person takes the name of the deleted one.
    await send('POST', '/v1/people', { external_id: 'robert' })
    expect((await read()).items.map(({ external_id }) => external_id)).toEqual([
      'lovelace',
      'robert',
      null,
      'lovelace',
      'robert',
      'robert',
      'robert',
    ])
  })

  it('begins after a number and ends at the limit', async () => {
    await importLines(shop, '/v1/people/import', linesFrom(names('p', 250).map(external_id => ({ external_id }))))
    const first = await read()
    expect([sequences(first.items), first.last, first.head]).toEqual([
      numbersTo(start + 100, start + 1),
      start + 100,
      start + 250,
    ])
    const second = await readFeed(shop, `after=${first.last}&limit=1000`)
    expect(sequences(second.items)).toEqual(numbersTo(start + 250, start + 101))
    expect(sequences((await read('limit=1')).items)).toEqual([start + 1])
  })

  it('ends early when the changes are large, and the next one continues', async () => {
    const attribute_values = Object.fromEntries(names('a', 6).map(key => [key, randomBytes(40_000).toString('base64')]))
    for (const external_id of names('p', 8)) await send('POST', '/v1/people', { external_id, attribute_values })
    const page = await read()
    expect(page.items.length).toBeLessThan(8)
    expect([page.last, page.head]).toEqual([page.items.at(-1)!.sequence, start + 8])
    const all = await followPages(shop, start + 8, 'limit=100')
    expect(sequences(all)).toEqual(numbersTo(start + 8))
    expect(all.at(-1)!.after!.attribute_values).toEqual(attribute_values)
  })

  it('is empty at the head, with its position', async () => {
    expect(await read()).toMatchObject({ items: [], last: start, head: start })
  })

  it('has no change of another organization', async () => {
    const other = await createShop(service)
    await send('POST', '/v1/people', { external_id: 'ada' })
    const { items, log_id } = await readFeed(other, 'limit=1000')
    expect(items.filter(({ subject }) => subject === 'person')).toEqual([])
    expect(log_id).not.toBe((await read()).log_id)
  })
})

describe('a filter', () => {
  it.each([
    ['subject=person', [1, 2, 5]],
    ['subject=record', [3]],
    ['subject=consent_type', [4]],
    ['subject=stack&subject=attribute', []],
    ['subject=person&subject=record', [1, 2, 3, 5]],
    ['subject[0]=record&subject[1]=consent_type', [3, 4]],
    ['subject=webhook', []],
    ['stack=companies', [3]],
    ['stack=companies&subject=record', [3]],
    ['stack=companies&subject=person', []],
    ['operation=delete', [5]],
    ['operation=restore', []],
    ['operation=create&operation=delete', [1, 3, 4, 5]],
    ['operation=create&subject=person', [1]],
    ['operation=update&stack=companies', []],
    ['operation=create&subject=record&subject=consent_type', [3, 4]],
    ['operation=create&limit=2', [1, 3]],
  ])('%s selects the changes %j', async (query, expected) => {
    await writeOfEach()
    const { items, last } = await read(query)
    expect(items.map(({ sequence }) => sequence - start)).toEqual(expected)
    // `last` is past the changes that do not match, unless the page is full.
    expect(last - start).toBe(query.includes('limit') ? 3 : 5)
  })

  it('has the changes of the stacks that it names, of several', async () => {
    for (const key of ['orders', 'visits']) await send('POST', '/v1/schema/stacks', { key, kind: 'item' })
    for (const stack of ['orders', 'visits', 'companies']) await send('POST', `/v1/stacks/${stack}`, {})
    const { items } = await read('stack=visits&stack=orders')
    expect(items.map(({ stack_key }) => stack_key)).toEqual(['orders', 'visits'])
  })

  /** Appends updates of people, and makes the last but one a deletion. */
  async function appendUpdates(count: number) {
    await service.sql(
      `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
         actor, request_id)
       select $1, $2::integer + n, now(), 'entity', 0, gen_random_uuid(), case when n = $3::integer - 1 then 'delete' else 'update' end, 2,
         '{}', '{}', 'a', 'r' from generate_series(1, $3::integer) n`,
      [shop.id, start, count],
    )
    await setHead(start + count)
  }
  const setHead = (sequence: number) =>
    service.sql('update change_heads set sequence = $2 where organization_id = $1', [shop.id, sequence])

  it('finds what is rare at once among a hundred thousand changes', async () => {
    await appendUpdates(100_000)
    await writeOfEach()
    for (const [query, expected] of [
      ['operation=delete', [99_999, 100_005]],
      ['subject=consent_type', [100_004]],
      ['subject=consent_type&subject=stack&limit=1', [100_004]],
      ['subject=webhook', []],
      ['subject=consent_type&operation=delete', []],
    ] as const) {
      const { items, last } = await read(query)
      expect([sequences(items).map(sequence => sequence - start), last - start]).toEqual([
        expected,
        query.includes('limit') ? 100_004 : 100_005,
      ])
    }
  })

  it('ends a page without an index after 20,000 changes, and goes on after them', async () => {
    await appendUpdates(100_000)
    await writeOfEach()
    const pages = await pagesOf('subject=record')
    expect(pages.map(({ last, items }) => [last - start, items.length])).toEqual([
      [20_000, 0],
      [40_000, 0],
      [60_000, 0],
      [80_000, 0],
      [100_000, 0],
      [100_005, 1],
    ])
    expect(await read('subject=record&wait=20')).toMatchObject({ items: [], last: start + 20_000 })
    const found = []
    for await (const change of shop.client.changes.list({ after: start, subject: 'record' })) found.push(change)
    expect(found.map(({ subject }) => subject)).toEqual(['record'])
  })

  it('ends a page by an index after 5,000 changes that the index has, and goes on after them', async () => {
    await service.sql(
      `insert into changes (organization_id, sequence, at, subject, definition_id, operation, before, after, actor, request_id)
       select $1, $2::integer + n, now(), 'settings', 1, 'update', '{}', '{}', 'a', 'r' from generate_series(1, 12000) n`,
      [shop.id, start],
    )
    await setHead(start + 12_000)
    const pages = await pagesOf('subject=webhook')
    expect(pages.map(({ last, items }) => [last - start, items.length])).toEqual([
      [5_000, 0],
      [10_000, 0],
      [12_000, 0],
    ])
    expect((await read('subject=settings&limit=1000')).items).toHaveLength(1_000)
  })

  async function pagesOf(query: string) {
    const pages = [await read(query)]
    for (let page = pages[0]!; page.last < page.head; pages.push(page))
      page = await readFeed(shop, `after=${page.last}&${query}`)
    return pages
  }
})

describe('the scopes of a token', () => {
  const scoped = async (scope: string) => service.sender(await service.tokenFor(shop.key, scope))

  it('are named in a warning if none of them reads a subject, and a strict request is refused', async () => {
    const blind = await scoped('changes:read')
    const { status, body } = await blind('GET', '/v1/changes')
    expect([status, body.data.items]).toEqual([200, []])
    expect(body.data.warnings).toEqual([
      { path: '/subject', message: expect.stringContaining('people:read, records:read') },
    ])
    const strict = await blind('GET', '/v1/changes', undefined, { Prefer: 'handling=strict' })
    expect([strict.status, strict.body.error]).toEqual([403, 'forbidden'])
  })

  it('are named in a warning if they leave out a subject, unless the request names the subjects it wants', async () => {
    const sees = await scoped('changes:read people:read records:read')
    const [{ path, message }] = (await sees('GET', '/v1/changes')).body.data.warnings
    expect(path).toBe('/subject')
    expect(message).toMatch(
      /^The token lacks schema:read, webhooks:read, access:read, so it sees no change of stack, .*role\. /,
    )
    for (const query of ['subject=person&subject=record', 'stack=companies'])
      expect(Object.hasOwn((await sees('GET', `/v1/changes?${query}`)).body.data, 'warnings')).toBe(false)
    const whole = await shop.send('GET', '/v1/changes')
    expect(Object.hasOwn(whole.body.data, 'warnings')).toBe(false)
  })

  it.each(['application/x-ndjson', 'text/event-stream'])('are named in a header of a stream of %s', async Accept => {
    const open = async (scope: string, others = {}) => {
      const ending = new AbortController()
      const headers = { Authorization: `Bearer ${await service.tokenFor(shop.key, scope)}`, Accept, ...others }
      const { status, headers: got } = await fetch(`${service.address}/v1/changes`, { headers, signal: ending.signal })
      ending.abort()
      return [status, got.get('X-Kith-Warning')]
    }
    const warning = expect.stringMatching(/^\/subject The token has none of the scopes people:read, records:read/)
    expect(await open('changes:read')).toEqual([200, warning])
    expect(await open('changes:read people:read')).toEqual([
      200,
      expect.stringMatching(/^\/subject The token lacks records:read/),
    ])
    expect(await open('changes:read', { Prefer: 'handling=strict' })).toEqual([403, null])
  })

  it.each([
    ['people:read', ['person']],
    ['records:read', ['record']],
    ['schema:read', ['consent_type']],
    ['people:read schema:read', ['person', 'consent_type']],
    ['people:write', []],
  ])('%s shows the changes of %j', async (scope, expected) => {
    await writeOfEach()
    const sender = await scoped(`changes:read ${scope}`)
    const { items, last } = await readFeed({ send: sender }, `after=${start}`)
    expect(new Set(items.map(({ subject }) => subject))).toEqual(new Set(expected))
    expect(last).toBe(start + 5)
  })

  it.each([
    ['changes:read', 'subject=person', 'people:read'],
    ['changes:read people:read', 'subject=person&subject=record', 'records:read'],
    ['changes:read people:read', 'stack=companies', 'records:read'],
    ['changes:read records:read', 'subject=attribute', 'schema:read'],
    ['changes:read records:read', 'subject=webhook', 'webhooks:read'],
    ['people:read records:read', '', 'changes:read'],
  ])('%s is refused with %s, because %s is missing', async (scope, query, missing) => {
    const { status, headers, body } = await (await scoped(scope))('GET', `/v1/changes?${query}`)
    expect([status, body.error, body.message]).toEqual([403, 'forbidden', `The token lacks the scope ${missing}.`])
    expect(headers.get('www-authenticate')).toContain(`scope="${missing}"`)
  })
})

describe('a bad request', () => {
  it.each([
    ['after=-1', '/after'],
    ['after=1.5', '/after'],
    ['after=9007199254740992', '/after'],
    ['after=x', '/after'],
    ['after=1&after=2', '/after'],
    ['limit=0', '/limit'],
    ['limit=1001', '/limit'],
    ['limit=', '/limit'],
    ['wait=-1', '/wait'],
    ['wait=20.5', '/wait'],
    ['wait=x', '/wait'],
    ['subject=people', '/subject/0'],
    ['subject=person&subject=', '/subject/1'],
    ['subject[0]=person&subject=record', '/subject/0'],
    ['operation=created', '/operation/0'],
    ['stack=', '/stack/0'],
    ['stack=nothing', '/stack/0'],
    ['stack=companies&stack=people', '/stack/1'],
    ['log_id=1', '/log_id'],
    ['unknown=1', '/unknown'],
  ])('%s gets 400 at %s', async (query, path) => {
    expect(await refusalOf(`/v1/changes?${query}`)).toEqual([400, 'invalid_parameter', [path]])
  })

  it.each(['limit=5', 'wait=1'])('%s gets 400 for a stream', async query => {
    for (const Accept of ['application/x-ndjson', 'text/event-stream'])
      expect(await refusalOf(`/v1/changes?${query}`, send, { Accept })).toEqual([
        400,
        'invalid_parameter',
        [`/${query.split('=')[0]}`],
      ])
  })

  it('gets 405 for another method, and a HEAD has no body', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect((await send(method, '/v1/changes', {})).status).toBe(405)
    for (const Accept of ['application/json', 'application/x-ndjson', 'text/event-stream']) {
      const headers = { Accept, Authorization: `Bearer ${shop.token}` }
      const response = await fetch(`${service.address}/v1/changes`, { method: 'HEAD', headers })
      expect([response.status, await response.text()]).toEqual([200, ''])
    }
  })

  it('gets 401 without a token', async () => {
    expect((await fetch(`${service.address}/v1/changes`)).status).toBe(401)
  })
})

describe('a position in another numbering', () => {
  const types = ['application/json', 'application/x-ndjson', 'text/event-stream']

  it('gets 410 if it is beyond the head, in every form', async () => {
    for (const Accept of types)
      for (const query of [`after=${start + 1}`, ...(Accept === types[0] ? [`after=${start + 1}&wait=5`] : [])])
        expect(await refusalOf(`/v1/changes?${query}`, send, { Accept })).toEqual([
          410,
          'invalid_parameter',
          ['/after'],
        ])
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': `${start + 1}` }
    expect(await refusalOf('/v1/changes', send, headers)).toEqual([410, 'invalid_parameter', ['/Last-Event-ID']])
  })

  it('gets 410 if the log has another log_id, in every form', async () => {
    const { log_id } = await read()
    expect(await read(`log_id=${log_id}`)).toMatchObject({ log_id })
    expect(await read(`log_id=${log_id.toUpperCase()}`)).toMatchObject({ log_id })
    const renewed = await renewLogId(contextOf(service.db, shop.id))
    expect(renewed.head).toBe(start)
    for (const Accept of types)
      expect(await refusalOf(`/v1/changes?after=0&log_id=${log_id}`, send, { Accept })).toEqual([
        410,
        'invalid_parameter',
        ['/log_id'],
      ])
    expect(await read()).toMatchObject({ log_id: renewed.log_id })
  })

  it('ends a wait that was under way', async () => {
    const waiting = read('wait=20')
    await expect.poll(() => followersOf(shop.id)).toBe(1)
    await renewLogId(contextOf(service.db, shop.id))
    expect(await waiting).toMatchObject({ items: [], last: start })
  })
})

/** The number of requests that wait for changes of an organization. */
const followersOf = (organization_id: number) => countSubscribers(contextOf(service.db, organization_id))

describe('a wait', () => {
  it('ends with the first change that matches', async () => {
    const waiting = read('wait=20&operation=delete')
    await expect.poll(() => followersOf(shop.id)).toBe(1)
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('DELETE', '/v1/people/ada')
    expect(await waiting).toMatchObject({ items: [{ sequence: start + 2, operation: 'delete' }], last: start + 2 })
    expect(followersOf(shop.id)).toBe(0)
  })

  it('ends at once if a change matches already', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    expect((await read('wait=20')).items).toHaveLength(1)
  })

  it('ends without a change after its time, with the position that was read up to', async () => {
    const waiting = read('wait=1&subject=record')
    await expect.poll(() => followersOf(shop.id)).toBe(1)
    await send('POST', '/v1/people', { external_id: 'ada' })
    expect(await waiting).toMatchObject({ items: [], last: start + 1, head: start + 1 })
  })

  it('lasts longer than the deadline of a request', async () => {
    const short = await startService({ KITH_LIMIT_REQUEST_MS: '300' }, service.databaseUrl)
    try {
      const sender = short.sender(await short.tokenFor(shop.key))
      const waiting = readFeed({ send: sender }, `after=${start}&wait=4`)
      expect(await waiting).toMatchObject({ items: [], last: start })
    } finally {
      await short.stop()
    }
  })

  it('sees what another process writes', async () => {
    const other = await startService({}, service.databaseUrl)
    try {
      const waiting = read('wait=20')
      await expect.poll(() => followersOf(shop.id)).toBe(1)
      const sender = other.sender(await other.tokenFor(shop.key))
      await sender('POST', '/v1/people', { external_id: 'ada' })
      expect((await waiting).items).toMatchObject([{ sequence: start + 1, external_id: 'ada' }])
    } finally {
      await other.stop()
    }
  })

  it('sees a write with an Idempotency-Key, an atomic batch and a changed definition', async () => {
    const operations = [{ op: 'create', body: { external_id: 'bob' } }]
    const writes: [string, string, object, object?][] = [
      ['POST', '/v1/people', { external_id: 'ada' }, { 'Idempotency-Key': 'k' }],
      ['POST', '/v1/people/batch', { operations, atomic: true }],
      ['POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }],
    ]
    for (const [index, [method, path, body, headers]] of writes.entries()) {
      const waiting = readFeed(shop, `after=${start + index}&wait=20`)
      await expect.poll(() => followersOf(shop.id)).toBe(1)
      await send(method, path, body, headers as Record<string, string>)
      expect(sequences((await waiting).items)).toEqual([start + index + 1])
    }
  })
})
