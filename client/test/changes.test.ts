import { beforeEach, describe, expect, it } from 'vitest'
import { renewLogId } from '../../src/changes/log-id.ts'
import { contextOf } from '../../src/db/context.ts'
import { breakingProxy } from '../../test/support/command.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { type Change, createClient, isKithError, writable } from '../index.ts'

const service = useService()
const organization = useShop(service, 'buyer')
const { client } = organization
/** The number of the newest change before the test. */
let start: number
beforeEach(async () => {
  start = (await client.changes.list().page()).head
})

/** Takes the changes of a stream until the one with the number `until`. */
async function take(stream: AsyncIterable<Change>, until: number): Promise<Change[]> {
  const seen: Change[] = []
  for await (const change of stream) {
    seen.push(change)
    if (change.sequence >= until) break
  }
  return seen
}

const numbers = (changes: Change[]) => changes.map(({ sequence }) => sequence)
const numbersTo = (last: number, first: number) => Array.from({ length: last - first + 1 }, (_, n) => first + n)

async function importPeople(count: number) {
  const bodies = Array.from({ length: count }, (_, n) => ({ external_id: `p${n}`, first_name: `ä\n${n}` }))
  for await (const answer of client.people.import(bodies)) expect(answer).not.toHaveProperty('error')
}

describe('client.changes.list', () => {
  it('reads pages of changes from a position to the head', async () => {
    await importPeople(5)
    const seen: Change[] = []
    let after = start
    for (;;) {
      const page = await client.changes.list({ after, size: 2 }).page()
      seen.push(...page.items)
      after = page.last
      if (page.last === page.head) break
    }
    expect(numbers(seen)).toEqual(numbersTo(start + 5, start + 1))
  })

  it('selects by subject, stack and operation', async () => {
    await client.people.create({ external_id: 'ada' })
    await client.stack('orders').create({ external_id: 'o-1' })
    await client.people.delete('ada')
    const listed = async (filter: Parameters<typeof client.changes.list>[0]) =>
      numbers((await client.changes.list({ after: start, ...filter }).page()).items).map(number => number - start)
    expect(await listed({ subject: 'person' })).toEqual([1, 3])
    expect(await listed({ subject: ['person', 'record'], operation: ['create'] })).toEqual([1, 2])
    expect(await listed({ stack: 'orders' })).toEqual([2])
  })

  it('waits for the first change, also for longer than the timeout of the client', async () => {
    const patient = createClient({ url: service.address, token: organization.token, timeoutMs: 500, retries: 0 })
    const waiting = patient.changes.list({ after: start, wait: 2 }).page()
    expect(await waiting).toMatchObject({ items: [], last: start })
    const next = client.changes.list({ after: start, wait: 20 }).page()
    await client.people.create({ external_id: 'ada' })
    expect((await next).items).toMatchObject([{ sequence: start + 1, external_id: 'ada' }])
  })
})

describe('client.changes.follow', () => {
  it('delivers the changes that exist, then each new one', async () => {
    await importPeople(1_200)
    const stream = client.changes.follow({ after: start })
    const first = await take(stream, start + 1_200)
    expect(numbers(first)).toEqual(numbersTo(start + 1_200, start + 1))
    const { items, log_id } = await client.changes.list({ after: start, size: 1_000 }).page()
    expect(first.slice(0, 1_000)).toEqual(items)
    expect(stream.logId).toBe(log_id)
    const rest = take(client.changes.follow({ after: start + 1_200, subject: 'person' }), start + 1_202)
    await client.stack('orders').create({ external_id: 'o-1' })
    await client.people.delete('p0')
    expect(await rest).toMatchObject([{ sequence: start + 1_202, operation: 'delete', external_id: 'p0' }])
  })

  it('misses and repeats nothing while a proxy breaks the connection again and again, in the middle of events', async () => {
    await importPeople(3_000)
    const proxy = await breakingProxy(service.address, { down: 20_011, repeats: true })
    const broken = createClient({ url: proxy.address, token: organization.token, random: () => 0 })
    const seen = await take(broken.changes.follow({ after: start }), start + 3_000)
    proxy.server.close()
    expect(proxy.cuts()).toBeGreaterThan(20)
    expect(numbers(seen)).toEqual(numbersTo(start + 3_000, start + 1))
    expect(new Set(seen.map(({ external_id }) => external_id)).size).toBe(3_000)
  })

  it('ends at once on its signal', async () => {
    const stopping = new AbortController()
    const following = take(client.changes.follow({ after: start, signal: stopping.signal }), start + 1)
    stopping.abort()
    expect(await following).toEqual([])
  })

  it('throws 403 without the scope, 400 for an unknown stack, 401 for a wrong token', async () => {
    const narrow = await service.tokenFor(organization.key, 'people:read')
    const refusalOf = (options: { token?: string; stack?: string }) =>
      take(
        createClient({ url: service.address, token: options.token ?? organization.token }).changes.follow({
          ...(options.stack !== undefined && { stack: options.stack }),
        }),
        1,
      ).catch(error => (isKithError(error) ? `${error.status} ${error.message}` : error))
    expect(await refusalOf({ token: narrow })).toBe('403 The token lacks the scope changes:read.')
    expect(await refusalOf({ stack: 'nothing' })).toMatch(/^400 .*is not the key of a stack/)
    expect(await refusalOf({ token: 'x' })).toMatch(/^401 /)
  })

  it('throws 410 for a position of another numbering, also if the log gets another one meanwhile', async () => {
    const following = client.changes.follow({ after: start })
    const ended = take(following, start + 2).catch(error => error)
    await client.people.create({ external_id: 'ada' })
    await expect.poll(() => following.logId).toBeDefined()
    await renewLogId(contextOf(service.db, organization.id))
    expect(await ended).toMatchObject({ status: 410, message: expect.stringContaining('another numbering') })
    const logId = following.logId
    const later = await take(client.changes.follow({ after: 0, logId }), 1).catch(error => error)
    expect(later).toMatchObject({ status: 410, details: [{ path: '/log_id' }] })
    const beyond = await take(client.changes.follow({ after: start + 100 }), 1).catch(error => error)
    expect(beyond).toMatchObject({ status: 410, details: [{ path: '/after' }] })
  })

  it('throws 403 if a later token lacks the scope', async () => {
    await importPeople(100)
    const scopes = ['changes:read people:read', 'people:read']
    const getToken = () => service.tokenFor(organization.key, scopes.shift())
    const proxy = await breakingProxy(service.address, { down: 8_000 })
    const narrowed = createClient({ url: proxy.address, getToken, random: () => 0 })
    await expect(take(narrowed.changes.follow({ after: start }), start + 100)).rejects.toMatchObject({ status: 403 })
    proxy.server.close()
  })
})

describe('the past of an entity', () => {
  it('is read by time and by version, and can be written back', async () => {
    const created = await client.people.create({ external_id: 'ada', first_name: 'Ada', attribute_values: { n: 1 } })
    await client.people.patch('ada', { first_name: 'Augusta', attribute_values: { n: null } })
    const { as_of, ...past } = await client.people.get('ada', { version: 1 })
    expect([past, as_of]).toEqual([created, { at: created.updated_at, sequence: start + 1, version: 1 }])
    const at = await client.people.get({ id: created.id }, { at: created.updated_at })
    expect(at).toMatchObject({ first_name: 'Ada', as_of: { version: 1 } })
    expect(await client.people.get('ada', { at: new Date(created.updated_at) })).toEqual(at)
    await client.people.replace('ada', writable(at))
    const { version, updated_at, ...now } = await client.people.get('ada')
    expect(now).toEqual((({ version, updated_at, ...rest }) => rest)(created))
    const missing = await client.people.get('ada', { at: '2001-01-01T00:00:00Z' }).catch(error => error)
    expect(missing).toMatchObject({ status: 404 })
  })

  it('of a record is read as that of a person', async () => {
    const orders = client.stack('orders')
    const order = await orders.create({ external_id: 'o-1', attribute_values: { total: 1 } })
    await orders.patch('o-1', { attribute_values: { total: 2 } })
    const { as_of, ...past } = await orders.get('o-1', { version: 1 })
    expect([past, as_of?.version]).toEqual([order, 1])
    await orders.replace('o-1', writable(await orders.get({ id: order.record_id }, { version: 1 })))
    expect((await orders.get('o-1')).attribute_values).toEqual({ total: 1 })
    expect((await orders.history('o-1').page()).items).toMatchObject([{ version: 3 }, { version: 2 }, { version: 1 }])
    expect((await orders.history({ id: order.record_id }, { size: 1 }).page()).items).toMatchObject([{ version: 3 }])
  })

  it('is listed by pages, newest first, also of a deleted person', async () => {
    const { id } = await client.people.create({ external_id: 'ada' })
    for (const language of ['en', 'fr', 'de']) await client.people.patch('ada', { language })
    const newest = await client.people.history('ada', { size: 2 }).page()
    expect(newest).toMatchObject({ items: [{ version: 4 }, { version: 3 }], has_more: true })
    const older = await client.people.history('ada', { after: newest.next! }).page()
    expect(older).toMatchObject({ items: [{ version: 2 }, { version: 1 }], has_more: false })
    await client.people.delete('ada')
    await expect(client.people.history('ada').page()).rejects.toMatchObject({ status: 404 })
    expect((await client.people.history({ id }, { size: 1 }).page()).items).toMatchObject([{ operation: 'delete' }])
  })

  it('comes back by a restore', async () => {
    const created = await client.people.create({ external_id: 'ada', first_name: 'Ada' })
    await client.people.delete('ada')
    const restored = await client.people.restore({ id: created.id })
    expect(restored).toMatchObject({ id: created.id, external_id: 'ada', first_name: 'Ada', version: 3 })
    expect(await client.people.restore({ id: created.id })).toEqual(restored)
    expect((await client.people.history('ada', { size: 1 }).page()).items).toMatchObject([{ operation: 'restore' }])
    const order = await client.stack('orders').create({ external_id: 'o-1', attribute_values: { buyer: 'ada' } })
    await client.stack('orders').delete({ id: order.record_id })
    await client.stack('orders').create({ external_id: 'o-1' })
    await expect(client.stack('orders').restore({ id: order.record_id })).rejects.toMatchObject({
      code: 'duplicate_entry',
    })
  })
})
