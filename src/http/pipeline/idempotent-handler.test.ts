import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type KeyedClient, keyedOrganization } from '../../../test/support/keyed.ts'
import { readMetrics } from '../../../test/support/metrics.ts'
import { lockPerson } from '../../../test/support/process.ts'
import { type Service, startService, useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
let second: Service
let ask: KeyedClient['ask']
let changes: KeyedClient['changes']
beforeAll(async () => {
  second = await startService({}, service.databaseUrl)
})
afterAll(async () => {
  await second.stop()
})
const organization = useShop(service)
beforeEach(async () => {
  ;({ ask, changes } = keyedOrganization(service, organization))
})

const ada = { external_id: 'ada', first_name: 'Ada', attribute_values: { n: 1.5, text: 'é "\u2028' } }

describe('the same request with the same key', () => {
  it('is refused by the current definitions after another process has changed them', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'ada' })
    const attribute = { key: 'size', owner: 'people', type: 'number' }
    await second.sender(organization.token)('POST', '/v1/schema/attributes', attribute)
    const { said } = await ask('POST', '/v1/people', { external_id: 'ada' })
    expect([said.status, JSON.parse(said.text).error]).toEqual([409, 'duplicate_entry'])
  })

  it('replays the response and its headers byte for byte, with a new request id, and is done once', async () => {
    const first = await ask('POST', '/v1/people', ada)
    expect([first.said.status, first.said.location, first.said.etag]).toEqual([201, '/v1/people/ada', '"1"'])
    await organization.send('PATCH', '/v1/people/ada', { first_name: 'Augusta' })
    const again = await ask('POST', '/v1/people', ada)
    expect(again.said).toEqual(first.said)
    expect([first.replayed, again.replayed]).toEqual([null, 'true'])
    expect(again.request_id).not.toBe(first.request_id)
    expect(await changes()).toBe(2)
  })

  it.each([
    ['PUT', '/v1/people/ada', { last_name: 'Byron' }, { Prefer: 'return=representation' }],
    ['PATCH', '/v1/people/ada', { attribute_values: { n: 2 } }, {}],
    ['PATCH', '/v1/people/ada', { external_id: 'augusta' }, {}],
    ['PATCH', '/v1/people/ada', { first_name: 'A' }, { 'If-Match': '"1"' }],
    ['POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'B' }, {}],
    ['POST', '/v1/people/upsert', { external_id: 'new', first_name: 'B' }, {}],
    ['POST', '/v1/people', { attribute_values: { anonymous: true } }, {}],
    ['POST', '/v1/people?first_name=Query', undefined, {}],
    [
      'POST',
      '/v1/people/batch',
      {
        operations: [
          { op: 'create', body: {} },
          { op: 'delete', external_id: 'no' },
        ],
      },
      {},
    ],
    ['POST', '/v1/people/batch', { atomic: true, operations: [{ op: 'create', body: {} }] }, {}],
    ['POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }, {}],
    ['POST', '/v1/schema/attributes', { key: 'size', owner: 'people', type: 'number', indexed: true }, {}],
    ['POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'sms' }] }, {}],
    ['PATCH', '/v1/schema/consent-types/1', { name: 'Other' }, {}],
  ] as [string, string, unknown, Record<string, string>][])(
    '%s %s %j is done once',
    async (method, path, body, headers) => {
      await organization.send('POST', '/v1/people', ada)
      const first = await ask(method, path, body, { headers })
      expect(first.said.status).toBeLessThan(300)
      const done = await changes()
      expect(done).toBe(2)
      const again = await ask(method, path, body, { headers })
      expect([again.said, again.replayed, await changes()]).toEqual([first.said, 'true', done])
    },
  )

  it('sees definitions that were created with other keys, in both services', async () => {
    const body = { key: 'visits', kind: 'event' }
    await ask('POST', '/v1/schema/stacks', body, { address: second.address })
    await ask('POST', '/v1/schema/attributes', { key: 'n', owner: 'visits', type: 'number' })
    const visit = { external_id: 'v', attribute_values: { n: 1 } }
    expect((await ask('POST', '/v1/stacks/visits', visit, { address: second.address })).said.status).toBe(201)
    expect((await ask('POST', '/v1/stacks/visits', { attribute_values: { n: 'x' } }, { key: 'l' })).said.status).toBe(
      400,
    )
    expect((await ask('POST', '/v1/stacks/visits', visit)).replayed).toBe('true')
  })

  it('replays a refusal by a rule, with the new request id', async () => {
    await organization.send('POST', '/v1/people', ada)
    const first = await ask('POST', '/v1/people', ada)
    await organization.send('DELETE', '/v1/people/ada')
    const again = await ask('POST', '/v1/people', ada)
    expect([first.said.status, again.said.status, again.replayed]).toEqual([409, 409, 'true'])
    expect(again.said.text.replace(again.request_id!, first.request_id!)).toBe(first.said.text)
    expect((await ask('POST', '/v1/people', ada, { key: 'another' })).said.status).toBe(201)
  })

  it('runs once for twenty concurrent requests on two services; the others get its response or 409', async () => {
    for (const [round, addresses] of [[service.address], [service.address, second.address]].entries()) {
      const body = { external_id: `p${round}` }
      const key = `round ${round}`
      const before = await changes()
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          ask('POST', '/v1/people', body, { key, address: addresses[n % addresses.length]! }),
        ),
      )
      const done = replies.filter(({ said }) => said.status === 201)
      const running = replies.filter(({ said }) => said.status === 409)
      expect([done.length + running.length, done.filter(({ replayed }) => !replayed).length]).toEqual([20, 1])
      expect(new Set(done.map(({ said }) => said.text)).size).toBe(1)
      for (const { said, retryAfter } of running)
        expect([JSON.parse(said.text).error, retryAfter]).toEqual(['invalid_parameter', '1'])
      expect((await ask('POST', '/v1/people', body, { key })).said).toEqual(done[0]!.said)
      expect(await changes()).toBe(before + 1)
    }
  })

  it('waits in both services while a write of one person runs, and then gets its response', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'locked' })
    const lock = await lockPerson(service.databaseUrl, 'locked')
    const body = { first_name: 'Late' }
    const first = ask('PATCH', '/v1/people/locked', body)
    await expect.poll(lock.waiting).toBe(1)
    const repeated = [service, second].map(({ address }) => ask('PATCH', '/v1/people/locked', body, { address }))
    await expect.poll(lock.waiting).toBe(2)
    await lock.release()
    const { said } = await first
    expect(said.status).toBe(200)
    for (const again of await Promise.all(repeated)) expect(again).toMatchObject({ said, replayed: 'true' })
    expect(await changes()).toBe(2)
  })

  it('waits for a batch that runs, and gets the outcomes of its operations; another batch gets 422', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'busy' })
    const lock = await lockPerson(service.databaseUrl, 'busy')
    const creates = Array.from({ length: 299 }, (_, n) => ({ op: 'create', body: { first_name: `${n}` } }))
    const operations = [{ op: 'patch', external_id: 'busy', body: { first_name: 'Late' } }, ...creates]
    const first = ask('POST', '/v1/people/batch', { operations })
    await expect.poll(lock.waiting).toBe(1)
    const repeated = ask('POST', '/v1/people/batch', { operations }, { address: second.address })
    await expect.poll(lock.waiting).toBe(2)
    await lock.release()
    const { said } = await first
    expect(JSON.parse(said.text).data).toMatchObject({ failed: 0, items: { length: 300 } })
    expect((await repeated).said.text).toBe(said.text)
    expect(await ask('POST', '/v1/people/batch', { operations })).toMatchObject({ said, replayed: 'true' })
    for (const others of [operations.slice(1), [...operations, ...creates]]) {
      const other = await ask('POST', '/v1/people/batch', { operations: others })
      expect([other.said.status, await changes()]).toEqual([422, 301])
    }
  })

  it('gets 409 with Retry-After in both services while an atomic batch runs, and then its response', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'held' })
    const lock = await lockPerson(service.databaseUrl, 'held')
    const operations = [{ op: 'patch', external_id: 'held', body: { first_name: 'Late' } }]
    const body = { atomic: true, operations }
    const first = ask('POST', '/v1/people/batch', body)
    await expect.poll(lock.waiting).toBe(1)
    for (const { address } of [service, second]) {
      const running = await ask('POST', '/v1/people/batch', body, { address })
      expect([running.said.status, running.retryAfter, running.replayed]).toEqual([409, '1', null])
    }
    await lock.release()
    expect((await first).said.status).toBe(200)
    expect(await ask('POST', '/v1/people/batch', body, { address: second.address })).toMatchObject({
      said: (await first).said,
      replayed: 'true',
    })
  })

  it('gives back the memory that its response has taken', async () => {
    await organization.send('POST', '/v1/people', ada)
    // Each merge takes 3 MiB of the 32 MiB for all responses.
    for (let n = 0; n < 12; n += 1) {
      await organization.send('POST', '/v1/people', { external_id: `p${n}` })
      const { said } = await ask('POST', '/v1/people/ada/merge', { from: `p${n}` }, { key: `merge ${n}` })
      expect(said.status).toBe(200)
    }
  })

  it('is done once when a hundred of them arrive at once in two services', async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        ask('POST', '/v1/people', ada, { address: [service, second][n % 2]!.address }),
      ),
    )
    const [first, ...others] = replies.toSorted(
      (one, other) => Number(one.replayed !== null) - Number(other.replayed !== null),
    )
    expect([first!.said.status, first!.replayed]).toEqual([201, null])
    for (const other of others) expect(other).toMatchObject({ said: first!.said, replayed: 'true' })
    expect(await changes()).toBe(1)
  })

  it('keeps the refusal of a write, and shares a transaction with other writes', async () => {
    await organization.send('POST', '/v1/people', ada)
    const refused = await ask('POST', '/v1/people', ada, { key: 'taken' })
    await organization.send('DELETE', '/v1/people/ada')
    const again = await ask('POST', '/v1/people', ada, { key: 'taken' })
    expect([refused.said.status, again.said.status, again.replayed]).toEqual([409, 409, 'true'])
    const transactions = async () => (await readMetrics(service.address)).value('kith_batch_items_count{work="write"}')
    const before = await transactions()
    const patches = Array.from({ length: 60 }, (_, n) =>
      ask('POST', '/v1/people', { external_id: `p${n}` }, { key: `k${n}` }),
    )
    expect((await Promise.all(patches)).map(({ said }) => said.status)).toEqual(patches.map(() => 201))
    expect((await transactions()) - before).toBeLessThan(30)
  })
})

describe('another request with the same key', () => {
  it.each([
    ['another body', { ...ada, first_name: 'B' }, {}],
    ['another preference', ada, { Prefer: 'references=strict' }],
    ['another If-Match', ada, { 'If-Match': '"1"' }],
  ] as [string, object, Record<string, string>][])(
    'with %s is refused with 422 and changes nothing',
    async (_, body, headers) => {
      const first = await ask('POST', '/v1/people', ada)
      const other = await ask('POST', '/v1/people', body, { headers })
      expect([other.said.status, JSON.parse(other.said.text).error]).toEqual([422, 'invalid_parameter'])
      expect([await changes(), (await ask('POST', '/v1/people', ada)).said]).toEqual([1, first.said])
    },
  )

  it('differs by a bound query and not by a preference without effect', async () => {
    expect((await ask('POST', '/v1/people?first_name=A', undefined)).said.status).toBe(201)
    expect((await ask('POST', '/v1/people?first_name=B', undefined)).said.status).toBe(422)
    const headers = { Prefer: 'return=representation, respond-async' }
    expect((await ask('POST', '/v1/people?first_name=A', undefined, { headers })).replayed).toBe('true')
  })

  it('is independent for another subject, organization, path or method', async () => {
    const otherOrganization = await service.organization()
    const otherSubject = await service.tokenFor(organization.key, undefined, 'somebody else')
    const body = { attribute_values: { a: 1 } }
    const all = [
      await ask('POST', '/v1/people', body),
      await ask('POST', '/v1/people', body, { token: otherSubject }),
      await ask('POST', '/v1/people', body, { token: otherOrganization.token }),
      await ask('POST', '/v1/people/upsert', { ...body, external_id: 'x' }),
      await ask('PUT', '/v1/people/x', body),
      await ask('PATCH', '/v1/people/x', body),
    ]
    expect(all.map(({ said, replayed }) => [said.status, replayed])).toEqual(
      [201, 201, 201, 201, 200, 200].map(status => [status, null]),
    )
    expect(new Set(all.slice(0, 3).map(({ said }) => said.text)).size).toBe(3)
    // This is the same path with another encoding.
    expect((await ask('PATCH', '/v1/people/%78', body)).replayed).toBe('true')
  })
})
