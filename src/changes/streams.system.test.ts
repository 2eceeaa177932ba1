import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type EventStream,
  followPages,
  numbersTo,
  openEvents,
  readFeed,
  takeEvents,
  type WireChange,
} from '../../test/support/changes.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { allScopes, type Service, startService, useOwnService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'
import { names, write, writeAll } from '../../test/support/writes.ts'
import { createClient, revokeClient } from '../auth/clients.ts'
import { listKeys, revokeKey, rotateKeys } from '../auth/keys/keys.ts'
import { issueToken } from '../auth/token.ts'
import { contextOf } from '../db/context.ts'
import { openDatabase } from '../db/db.ts'
import type { Caller } from '../route/caller.ts'
import { renewLogId } from './log-id.ts'
import { countSubscribers } from './log-tail.ts'

const service = useOwnService({ KITH_LIMIT_CHANGE_STREAMS: '4' })
let start: number
const shop = useShop(service, 'friends', 'companies')
const { send } = shop
beforeEach(async () => {
  start = (await readFeed(shop)).head
})

/** A stream that no write reaches, and its first blocks. They take 30 seconds, in which the other tests run. */
let quietStream: EventStream
let quietBlocks: Promise<unknown[]>
let quietHead: number
beforeAll(async () => {
  const quiet = await createShop(service)
  const { head } = await readFeed(quiet)
  quietHead = head + 1
  const stream = await openEvents(service, quiet.token, `after=${head}&subject=record`)
  quietStream = stream
  quietBlocks = (async () => [await stream.nextBlock(), await stream.nextBlock(), await stream.nextBlock()])()
  // The test that awaits the blocks reports the failure.
  quietBlocks.catch(() => {})
  await quiet.send('POST', '/v1/people', { external_id: 'ada' })
})
// The stream is undefined if the start failed.
afterAll(() => quietStream?.close())

const sequences = (items: WireChange[]) => items.map(({ sequence }) => sequence)
const create = (external_id: string, body = {}) => send('POST', '/v1/people', { external_id, ...body })
const open = (query = '', headers = {}) => openEvents(service, shop.token, query, headers)
const followers = () => countSubscribers(contextOf(service.db, shop.id))
const importPeople = (count: number) =>
  importLines(shop, '/v1/people/import', linesFrom(names('p', count).map(external_id => ({ external_id }))))

describe('a stream of lines', () => {
  const lines = async (query = '') => {
    const { status, headers, body } = await send('GET', `/v1/changes?${query}`, undefined, {
      Accept: 'application/x-ndjson',
    })
    expect(status).toBe(200)
    return { headers, items: body.data as WireChange[] }
  }

  it('has every change after a number up to the head, and ends', async () => {
    await importPeople(5_000)
    const { headers, items } = await lines(`after=${start}`)
    expect(headers.get('content-type')).toBe('application/x-ndjson')
    expect(sequences(items)).toEqual(numbersTo(start + 5_000, start + 1))
    const { head, log_id, items: page } = await readFeed(shop, `after=${start}&limit=1000`)
    expect([headers.get('kith-log-head'), headers.get('kith-log-id')]).toEqual([`${head}`, log_id])
    expect(items.slice(0, 1_000)).toEqual(page)
  })

  it('has only the changes of a filter and of the token', async () => {
    await create('ada')
    await send('POST', '/v1/stacks/companies', { external_id: 'acme' })
    await send('DELETE', '/v1/people/ada')
    expect(sequences((await lines(`after=${start}&operation=delete`)).items)).toEqual([start + 3])
    const reader = service.sender(await service.tokenFor(shop.key, 'changes:read records:read'))
    const { body } = await reader('GET', '/v1/changes', undefined, { Accept: 'application/x-ndjson' })
    expect(sequences(body.data)).toEqual([start + 2])
  })

  it('is empty at the head', async () => {
    expect((await lines(`after=${start}`)).items).toEqual([])
  })
})

describe('a stream of events', () => {
  it('begins with the changes that exist, and goes on with each that follows', async () => {
    await importPeople(1_500)
    const stream = await open(`after=${start}`)
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(stream.headers.get('x-accel-buffering')).toBe('no')
    expect(sequences(await takeEvents(stream, start + 1_500))).toEqual(numbersTo(start + 1_500, start + 1))
    for (const [index, external_id] of names('later', 20).entries()) {
      await create(external_id)
      const [change] = await takeEvents(stream, start + 1_501 + index)
      expect(change).toMatchObject({ sequence: start + 1_501 + index, external_id, operation: 'create' })
    }
    await importPeople(3_000)
    expect(sequences(await takeEvents(stream, start + 3_020))).toEqual(numbersTo(start + 3_020, start + 1_521))
    stream.close()
    await expect.poll(followers).toBe(0)
  })

  it('prints the same changes as a page', async () => {
    const stream = await open(`after=${start}`)
    await create('ada', { first_name: '\n\u2028"', attribute_values: { 'a\\': 1.5 } })
    await send('POST', '/v1/stacks/companies', {})
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    const changes = await takeEvents(stream, start + 3)
    expect(changes).toEqual((await readFeed(shop, `after=${start}`)).items)
    stream.close()
  })

  it('has the changes of its own filter and scopes, beside others', async () => {
    const readsRecords = await service.tokenFor(shop.key, 'changes:read records:read')
    const streams = [
      await open(`after=${start}&operation=delete`),
      await open(`after=${start}&subject=record`),
      await openEvents(service, readsRecords, `after=${start}`),
      await open(`after=${start}`),
    ]
    await create('ada')
    await send('POST', '/v1/stacks/companies', { external_id: 'acme' })
    await send('DELETE', '/v1/people/ada')
    await send('DELETE', '/v1/stacks/companies/acme')
    const seen = await Promise.all(streams.map(stream => takeEvents(stream, start + 4)))
    expect(seen.map(changes => changes.map(({ sequence }) => sequence - start))).toEqual([
      [3, 4],
      [2, 4],
      [2, 4],
      [1, 2, 3, 4],
    ])
    for (const stream of streams) stream.close()
  })

  it('has all of its changes, whichever filters others begin and end with in the meantime', async () => {
    const people = await open(`after=${start}&subject=person`)
    let last = start
    /** Writes a person and a record. Returns the number of the second one. */
    const writeBoth = async () => {
      await create(`ada ${last}`)
      await send('POST', '/v1/stacks/companies', {})
      last += 2
      return last
    }
    await writeBoth()
    expect(sequences(await takeEvents(people, last - 1))).toEqual([last - 1])
    for (const filter of ['subject=record', '']) {
      const other = await open(`after=${start}&${filter}`)
      await writeBoth()
      const all = numbersTo(last, start + 1)
      const records = all.filter(number => (number - start) % 2 === 0)
      expect(sequences(await takeEvents(other, last))).toEqual(filter === '' ? all : records)
      expect(sequences(await takeEvents(people, last - 1))).toEqual([last - 1])
      other.close()
      await expect.poll(followers).toBe(1)
    }
    await writeBoth()
    expect(sequences(await takeEvents(people, last - 1))).toEqual([last - 1])
    people.close()
  })

  it('continues after Last-Event-ID, which has precedence over after', async () => {
    await importPeople(10)
    const stream = await open(`after=${start}`, { 'Last-Event-ID': `${start + 7}` })
    expect(sequences(await takeEvents(stream, start + 10))).toEqual([start + 8, start + 9, start + 10])
    stream.close()
    const empty = await open(`after=${start + 9}`, { 'Last-Event-ID': '' })
    expect(sequences(await takeEvents(empty, start + 10))).toEqual([start + 10])
    empty.close()
  })

  it.each(['x', '-1', '1.5', '99999999999999999'])('is refused with the Last-Event-ID %s', async value => {
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': value }
    const { status, body } = await send('GET', '/v1/changes', undefined, headers)
    expect([status, body.details?.[0]?.path]).toEqual([400, '/Last-Event-ID'])
  })

  it('ends when the log gets another log_id', async () => {
    const stream = await open(`after=${start}`)
    await stream.nextBlock()
    await renewLogId(contextOf(service.db, shop.id))
    expect(await stream.next()).toBeUndefined()
  })

  it('sees what another process writes', async () => {
    const stream = await open(`after=${start}`)
    const db = openDatabase(service.databaseUrl, { connections: 1, statementTimeoutMs: 10_000 })
    await writeAll(db, shop, [write('create', 'ada')])
    await db.close()
    expect(sequences(await takeEvents(stream, start + 1))).toEqual([start + 1])
    stream.close()
  })
})

describe('a limit of streams', () => {
  it('refuses the fifth of an organization with 503, in every form that waits', async () => {
    const streams = [await open(), await open(), await open(), await open()]
    const other = await createShop(service)
    const open5 = (Accept: string, query = '') => send('GET', `/v1/changes?${query}`, undefined, { Accept })
    for (const reply of [
      await open5('text/event-stream'),
      await open5('application/x-ndjson'),
      await open5('application/json', `wait=20&after=${start}`),
    ]) {
      expect([reply.status, reply.body.error, reply.headers.get('retry-after')]).toEqual([
        503,
        'operation_failed',
        '10',
      ])
    }
    expect((await open5('application/json')).status).toBe(200)
    const elsewhere = await openEvents(service, other.token)
    expect(elsewhere.status).toBe(200)
    for (const stream of [...streams, elsewhere]) stream.close()
    await expect.poll(followers).toBe(0)
    const again = await open()
    expect(again.status).toBe(200)
    again.close()
  })

  it('holds none of the places for requests under way', async () => {
    const crowded = await startService({ KITH_LIMIT_IN_FLIGHT: '4' }, service.databaseUrl)
    try {
      const token = await crowded.tokenFor(shop.key)
      const streams = []
      const waiting = []
      for (let count = 1; count <= 8; count += 1) {
        streams.push(await openEvents(crowded, token, `after=${start}`))
        waiting.push(readFeed({ send: crowded.sender(token) }, `after=${start}&wait=20`))
        await expect.poll(() => countSubscribers(contextOf(crowded.db, shop.id))).toBe(2 * count)
      }
      expect((await crowded.sender(token)('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
      for (const page of await Promise.all(waiting)) expect(sequences(page.items)).toEqual([start + 1])
      for (const stream of streams) {
        expect(sequences(await takeEvents(stream, start + 1))).toEqual([start + 1])
        stream.close()
      }
    } finally {
      await crowded.stop()
    }
  })

  it('lets more clients connect at once than requests may be under way', async () => {
    const crowded = await startService({ KITH_LIMIT_IN_FLIGHT: '4' }, service.databaseUrl)
    try {
      const token = await crowded.tokenFor(shop.key)
      // From here on, the service knows the token.
      await crowded.sender(token)('GET', '/v1/changes')
      const streams = await Promise.all(names('client', 64).map(() => openEvents(crowded, token, `after=${start}`)))
      expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200))
      await create('ada')
      for (const stream of streams) {
        expect(sequences(await takeEvents(stream, start + 1))).toEqual([start + 1])
        stream.close()
      }
      await expect.poll(() => countSubscribers(contextOf(crowded.db, shop.id))).toBe(0)
    } finally {
      await crowded.stop()
    }
  })

  it('is not used up by requests that are refused', async () => {
    for (let count = 1; count <= 8; count += 1) {
      const refused = await open(`after=${start + 100}`)
      expect(refused.status).toBe(410)
      refused.close()
    }
    const stream = await open(`after=${start}`)
    expect(stream.status).toBe(200)
    stream.close()
  })
})

describe('the token of a stream', { timeout: 30_000 }, () => {
  const request = { subject: 'tests', scope: allScopes, ttlSeconds: 2 }

  it('ends the stream when it expires, and a wait gets 401', async () => {
    const token = await issueToken(service.db, { ...request, organizationKey: shop.key })
    const stream = await openEvents(service, token, `after=${start}`)
    const waiting = service.sender(token)('GET', `/v1/changes?after=${start}&wait=20`)
    expect(await stream.next()).toBeUndefined()
    expect((await waiting).status).toBe(401)
  })

  it('ends the stream when its client is revoked', async () => {
    const { db } = service
    const { client_id } = await createClient(db, { organizationKey: shop.key, name: 'x', scope: allScopes })
    const token = await issueToken(db, { ...request, organizationKey: shop.key, ttlSeconds: 600, client_id })
    const stream = await openEvents(service, token, `after=${start}`)
    await create('ada')
    await takeEvents(stream, start + 1)
    await revokeClient(db, client_id)
    const revokedMs = performance.now()
    expect(await stream.next()).toBeUndefined()
    expect(performance.now() - revokedMs).toBeLessThan(10_000)
  })

  it('ends the stream when its key is revoked', async () => {
    // The tokens of all tests are signed with the key of their service.
    const own = await startService()
    try {
      const stream = await openEvents(own, (await own.organization()).token)
      await stream.nextBlock()
      const signing = (await listKeys(own.db)).find(({ state }) => state === 'signs')!
      await rotateKeys(own.db)
      await revokeKey(own.db, signing.kid)
      const revokedMs = performance.now()
      expect(await stream.next()).toBeUndefined()
      expect(performance.now() - revokedMs).toBeLessThan(10_000)
    } finally {
      await own.stop()
    }
  })
})

describe('a token that loses scopes', { timeout: 30_000 }, () => {
  // kith never changes the scopes of a token, so the test changes the scopes that the service reads.
  let lost = ''
  let shrinking: Service
  beforeAll(async () => {
    const shrink = (caller: Caller) => ({
      ...caller,
      scopes: new Set([...caller.scopes].filter(each => each !== lost)),
    })
    shrinking = await startService({}, service.databaseUrl, authenticator => ({
      ...authenticator,
      authenticate: (...given) => {
        const caller = authenticator.authenticate(...given)
        return caller instanceof Promise ? caller.then(shrink) : shrink(caller)
      },
    }))
  })
  afterAll(() => shrinking.stop())

  it.each(['people:read', 'changes:read'])('without %s ends its stream within 10 s', async scope => {
    lost = ''
    const stream = await openEvents(shrinking, await shrinking.tokenFor(shop.key), `after=${start}`)
    await create('ada')
    await takeEvents(stream, start + 1)
    lost = scope
    const lostMs = performance.now()
    expect(await stream.next()).toBeUndefined()
    expect(performance.now() - lostMs).toBeLessThan(10_000)
  })

  it('keeps a stream that needs none of them', async () => {
    lost = ''
    const token = await shrinking.tokenFor(shop.key)
    const ending = await openEvents(shrinking, token, `after=${start}&subject=person`)
    const stream = await openEvents(shrinking, token, `after=${start}&subject=record`)
    await ending.nextBlock()
    lost = 'people:read'
    expect(await ending.next()).toBeUndefined()
    await send('POST', '/v1/stacks/companies', {})
    expect(sequences(await takeEvents(stream, start + 1))).toEqual([start + 1])
    stream.close()
  })
})

describe('a client that does not read', { timeout: 120_000 }, () => {
  const large = () => ({ attribute_values: { a: 'x'.repeat(60_000), b: 'y'.repeat(60_000), c: 'z'.repeat(60_000) } })

  /** Opens a stream without reading it. */
  async function openUnread({ address }: Service, token: string): Promise<IncomingMessage> {
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
    const request = get(`${address}/v1/changes?after=${start}`, { headers, agent: false })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return response.pause()
  }

  it('delays no other client, and receives every change once it reads', async () => {
    // A client that reads nothing is disconnected after the time of a request. That time must exceed the time of this
    // test.
    const patient = await startService({ KITH_LIMIT_REQUEST_MS: '120000' }, service.databaseUrl)
    try {
      const token = await patient.tokenFor(shop.key)
      const response = await openUnread(patient, token)
      const stream = await openEvents(patient, token, `after=${start}`)
      await Promise.all(names('p', 100).map(external_id => create(external_id, large())))
      expect(sequences(await takeEvents(stream, start + 100))).toEqual(numbersTo(start + 100, start + 1))
      stream.close()
      const seen: string[] = []
      let tail = ''
      for await (const part of response.setEncoding('latin1')) {
        const lines = `${tail}${part}`.split('\n')
        tail = lines.pop()!
        // A comment, which follows every 15 seconds, has an id as well.
        for (const line of lines) seen.push(...(/^data: \{"sequence":(\d+)/.exec(line)?.slice(1) ?? []))
        if (seen.at(-1) === `${start + 100}`) break
      }
      expect(seen).toEqual(numbersTo(start + 100, start + 1).map(String))
      await expect.poll(() => countSubscribers(contextOf(patient.db, shop.id))).toBe(0)
    } finally {
      await patient.stop()
    }
  })

  it('is disconnected after the time of a request', async () => {
    const impatient = await startService({ KITH_LIMIT_REQUEST_MS: '2000' }, service.databaseUrl)
    try {
      const response = await openUnread(impatient, await impatient.tokenFor(shop.key))
      for (const external_id of names('p', 100)) await create(external_id, large())
      await expect.poll(() => countSubscribers(contextOf(impatient.db, shop.id)), { timeout: 30_000 }).toBe(0)
      await expect(text(response)).rejects.toThrow()
    } finally {
      await impatient.stop()
    }
  })
})

describe('followers beside concurrent writers', { timeout: 120_000 }, () => {
  it('see every acknowledged change exactly once, in order', async () => {
    const otherProcess = openDatabase(service.databaseUrl, { connections: 4, statementTimeoutMs: 10_000 })
    const acknowledged: string[] = []
    const writeTo = async (writer: string, headers = {}) => {
      for (const external_id of names(`${writer}-`, 25)) {
        const body = { external_id, attribute_values: { friends: [`${writer}-friend`] } }
        const { status } = await send('POST', '/v1/people', body, headers && keyOf(external_id, headers))
        if (status === 201) acknowledged.push(`create ${external_id}`)
        await send('PATCH', '/v1/people/shared', { attribute_values: { [writer]: external_id } })
      }
    }
    const keyOf = (name: string, headers: object) =>
      'keyed' in headers ? { 'Idempotency-Key': `${shop.id}-${name}` } : {}
    await create('shared')
    const stream = await open(`after=${start}`)
    const polls = followUntilDone()
    const writing = [
      ...names('w', 4).map(writer => writeTo(writer)),
      writeTo('k', { keyed: true }),
      importLines(shop, '/v1/people/import', linesFrom(names('i', 4_000).map(external_id => ({ external_id })))),
      (async () => {
        for (const key of names('stack', 10)) await send('POST', '/v1/schema/stacks', { key, kind: 'item' })
      })(),
      (async () => {
        for (const name of names('o', 30)) await writeAll(otherProcess, shop, [write('create', name)])
      })(),
      (async () => {
        for (const name of names('b', 20))
          await send('POST', '/v1/people/batch', {
            atomic: true,
            operations: names(`${name}-`, 3).map(external_id => ({ op: 'create', body: { external_id } })),
          })
      })(),
    ]
    await Promise.all(writing)
    const { head } = await readFeed(shop)
    polls.until(head)
    const expected = numbersTo(head, start + 1)
    const polled = await polls.done
    expect(sequences(polled)).toEqual(expected)
    expect(sequences(await takeEvents(stream, head))).toEqual(expected)
    stream.close()
    const created = new Set(polled.map(({ operation, after }) => `${operation} ${after?.external_id}`))
    expect(acknowledged.length).toBe(125)
    expect(acknowledged.filter(name => !created.has(name))).toEqual([])
    const stacks = polled.filter(({ subject }) => subject === 'stack').map(({ after }) => after!.key)
    expect(stacks).toEqual(names('stack', 10))
    expect(await followPages(shop, head, 'limit=1000')).toEqual(
      (await readAllLines()).map(line => ({ ...line, external_id: line.external_id })),
    )
    await otherProcess.close()
  })

  /** Follows by long polls until the number that `until` is called with. */
  function followUntilDone() {
    let until = Number.POSITIVE_INFINITY
    const done = (async () => {
      const seen: WireChange[] = []
      for (let after = start; after < until; ) {
        const { items, last } = await readFeed(shop, `after=${after}&wait=1&limit=37`)
        seen.push(...items)
        after = last
      }
      return seen
    })()
    return {
      done,
      until: (head: number) => {
        until = head
      },
    }
  }

  const readAllLines = async () =>
    (await send('GET', '/v1/changes', undefined, { Accept: 'application/x-ndjson' })).body.data as WireChange[]
})

it('a stream of events has a comment every 15 seconds, with the number that was read up to', {
  timeout: 40_000,
}, async () => {
  expect(await quietBlocks).toMatchObject([
    { retry: '1000' },
    { '': expect.any(String), id: `${quietHead}` },
    { '': expect.any(String) },
  ])
})
