import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { insertPeople } from '../../../test/support/many-people.ts'
import { type Organization, useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

// Memory for two pages in parts at a time. The long deadline is for the test that leaves a response unread.
const service = useOwnService({ KITH_LIMIT_ANSWER_BYTES: '2097152', KITH_LIMIT_REQUEST_MS: '60000' })
const organization = useShop(service, 'referrer')

/** Inserts people of 448 KiB each, named `large1`, `large2` and so on in order of id. */
const insertLarge = (count: number, { id }: Organization = organization) =>
  insertPeople(service.sql, id, count, {
    name: 'large',
    attributes: `(select jsonb_object_agg('k' || k, repeat('é', 32768)) from generate_series(1, 7) k)`,
  })

/** Sends a POST request and returns the response before its body is read. */
async function post(path: string, body: unknown, { token }: Organization = organization): Promise<IncomingMessage> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const outgoing = request(`${service.address}${path}`, { method: 'POST', headers })
  outgoing.on('error', () => {})
  outgoing.end(JSON.stringify(body))
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return response
}

const list = '/v1/people/list'
const pageOf = (size: number, sorting_type = 'asc') => ({ cursor_configuration: { size }, sorting_type })
const namesOf = (items: { external_id: string }[]) => items.map(({ external_id }) => external_id)
const numbered = (count: number, first = 1) => Array.from({ length: count }, (_, index) => `large${first + index}`)

describe('a page of large entities', () => {
  it.each(['asc', 'desc'])(
    'has the same entities as single reads, large and small ones in order: %s',
    async direction => {
      const { send } = organization
      await insertLarge(6)
      const linked = {
        consents: [{ consent_type_id: 1, channel: 'email', state: true }],
        attribute_values: { referrer: 'hub' },
      }
      for (const name of ['large2', 'large5', 'small'])
        await send('POST', '/v1/people/upsert', { external_id: name, ...linked })
      for (const { path, body } of [
        { path: list, body: pageOf(500, direction) },
        { path: '/v1/people/filter', body: { cursor_configuration: { size: 500 }, sort_direction: direction } },
        { path: '/v1/people/hub/related', body: { ...pageOf(500, direction), target: 'people' } },
      ]) {
        const reply = await send('POST', path, body)
        expect([reply.status, reply.body.data.has_more]).toEqual([200, false])
        const names = namesOf(reply.body.data.items)
        const expected = path.endsWith('related') ? ['large2', 'large5', 'small'] : [...numbered(6), 'small', 'hub']
        expect(names.toSorted()).toEqual(expected.toSorted())
        for (const item of reply.body.data.items)
          expect(item).toEqual((await send('GET', `/v1/people/${item.external_id}`)).body.data)
        const ids = reply.body.data.items.map(({ id }: { id: string }) => id)
        expect(ids).toEqual(direction === 'asc' ? ids.toSorted() : ids.toSorted().reverse())
      }
    },
  )

  it('returns every entity once for any page size, with has_more until the end', async () => {
    await insertLarge(7)
    for (const size of [1, 3, 7, 500]) {
      const names: string[] = []
      for (let after_id: string | undefined; ; ) {
        const { body } = await organization.send('POST', list, {
          ...pageOf(size),
          cursor_configuration: { size, after_id },
        })
        const { items, has_more } = body.data
        names.push(...namesOf(items))
        if (!has_more) break
        expect(items).toHaveLength(size)
        after_id = items.at(-1).id
      }
      expect(names).toEqual(numbered(7))
    }
  })

  it('has its full size when entities are deleted while the client reads it', async () => {
    await insertLarge(70)
    const response = await post(list, pageOf(50))
    // The rest of the page exceeds the connection's buffers, so the service has not read it from the database yet.
    await service.sql('delete from entities where organization_id = $1 and external_id = any($2)', [
      organization.id,
      numbered(10, 41),
    ])
    const { items, has_more } = JSON.parse(await text(response)).data
    expect(namesOf(items)).toEqual([...numbered(40), ...numbered(10, 51)])
    expect(has_more).toBe(true)
  })

  it('ends with has_more false when the remaining entities are deleted while the client reads it', async () => {
    await insertLarge(70)
    const response = await post(list, pageOf(50))
    await service.sql('delete from entities where organization_id = $1 and external_id = any($2)', [
      organization.id,
      numbered(30, 41),
    ])
    const { items, has_more } = JSON.parse(await text(response)).data
    expect([namesOf(items), has_more]).toEqual([numbered(40), false])
  })

  it('aborts the connection instead of ending early when the database fails', async () => {
    await insertLarge(60)
    const response = await post(list, pageOf(50))
    expect(response.statusCode).toBe(200)
    await service.sql('alter table entities rename to entities_elsewhere')
    await expect(text(response)).rejects.toThrow(/aborted/)
    await service.sql('alter table entities_elsewhere rename to entities')
    expect(service.logs.some(line => line.includes('"code":"42P01"'))).toBe(true)
    // The failed response has released its memory.
    for (let count = 0; count < 3; count += 1)
      expect((await organization.send('POST', list, pageOf(10))).body.data.items).toHaveLength(10)
  })

  it('delays only the next page of the same organization while its client does not read it', async () => {
    const other = await service.organization()
    await insertLarge(60)
    await insertLarge(10, other)
    const unread = await post(list, pageOf(50))
    const waiting = post(list, pageOf(10))
    expect((await other.send('POST', list, pageOf(10))).body.data.items).toHaveLength(10)
    const { status } = await organization.send('POST', '/v1/people/filter', { filter: { external_id: 'nobody' } })
    expect(status).toBe(200)
    const state = await Promise.race([
      waiting.then(() => 'answered'),
      other.send('POST', list, pageOf(10)).then(() => 'waiting'),
    ])
    expect(state).toBe('waiting')
    expect(JSON.parse(await text(unread)).data.items).toHaveLength(50)
    expect(JSON.parse(await text(await waiting)).data.items).toHaveLength(10)
  })

  it('releases its memory when its client disconnects', async () => {
    await insertLarge(60)
    for (let count = 0; count < 4; count += 1) {
      const response = await post(list, pageOf(50))
      response.on('error', () => {})
      response.destroy()
    }
    expect((await organization.send('POST', list, pageOf(50))).body.data.items).toHaveLength(50)
  })
})

describe('a large entity', () => {
  const values = Object.fromEntries(Array.from({ length: 7 }, (_, k) => [`k${k}`, 'é'.repeat(32_000)]))

  it('is returned whole by creates, upserts, updates and reads, with its version', async () => {
    const { send } = organization
    const created = await send('POST', '/v1/people', { external_id: 'ada', attribute_values: values })
    expect([created.status, created.headers.get('etag')]).toEqual([201, '"1"'])
    expect(created.body.data.attribute_values).toEqual(values)
    const upserted = await send('POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'Ada' })
    expect([upserted.status, upserted.headers.get('etag')]).toEqual([200, '"2"'])
    const shown = { Prefer: 'return=representation' }
    const patched = await Promise.all(
      Array.from({ length: 8 }, (_, n) => send('PATCH', '/v1/people/ada', { last_name: `L${n}` }, shown)),
    )
    for (const { status, body } of patched) expect([status, body.data.attribute_values]).toEqual([200, values])
    const read = await send('GET', '/v1/people/ada')
    expect([read.status, read.headers.get('etag')]).toEqual([200, '"10"'])
    expect(read.body.data).toMatchObject({ first_name: 'Ada', attribute_values: values })
    expect((await send('GET', `/v1/people/internal/${read.body.data.id}`)).body.data).toEqual(read.body.data)
  })

  it('is replayed under its Idempotency-Key', async () => {
    const key = { 'Idempotency-Key': 'once' }
    const body = { external_id: 'ada', attribute_values: values }
    const first = await organization.send('POST', '/v1/people', body, key)
    const second = await organization.send('POST', '/v1/people', body, key)
    expect([first.status, second.status, second.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true'])
    expect(second.body).toEqual(first.body)
  })

  it('is read correctly among many concurrent reads of large entities', async () => {
    await insertLarge(40)
    const replies = await Promise.all(numbered(40).map(name => organization.send('GET', `/v1/people/${name}`)))
    expect(replies.map(({ status, body }) => [status, body.data.external_id])).toEqual(
      numbered(40).map(name => [200, name]),
    )
    expect((await organization.send('GET', '/v1/people/large41')).status).toBe(404)
  })
})

it('counts the printed length of small numbers toward the size limit of an entity', async () => {
  const small = (count: number) => ({
    attribute_values: { a: Array(count).fill(1.5e-300), b: { c: [-1e-7, 0.000_001, 0] } },
  })
  const refused = await organization.send('POST', '/v1/people', small(60_000))
  expect([refused.status, refused.body.error]).toEqual([400, 'invalid_parameter'])
  expect(refused.body.details).toEqual([{ path: '/attribute_values', message: expect.any(String) }])
  const { status, body } = await organization.send('POST', '/v1/people', small(1_500))
  expect([status, body.data.attribute_values]).toEqual([201, small(1_500).attribute_values])
})
