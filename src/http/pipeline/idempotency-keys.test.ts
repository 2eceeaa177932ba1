import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/index.ts'
import { type KeyedClient, keyedOrganization } from '../../../test/support/keyed.ts'
import { lockPerson } from '../../../test/support/process.ts'
import { type Service, startService, useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { forgetKeys } from '../../idempotency/kept-responses.ts'
import { maxConcurrentKeyedWrites } from '../../idempotency/keyed-transaction.ts'

const service = useOwnService()
let second: Service
let ask: KeyedClient['ask']
let changes: KeyedClient['changes']
let keys: KeyedClient['keys']
beforeAll(async () => {
  second = await startService({}, service.databaseUrl)
})
afterAll(async () => {
  await second.stop()
})
const organization = useShop(service)
beforeEach(async () => {
  ;({ ask, changes, keys } = keyedOrganization(service, organization))
})

type Item = { status: number }

const age = (hours: number) =>
  service.sql(`update idempotency_keys set at = at - $2 * interval '1 hour' where organization_id = $1`, [
    organization.id,
    hours,
  ])

const ada = { external_id: 'ada', first_name: 'Ada' }

describe('an idempotency key', () => {
  it('has 1 to 255 characters; others are refused with their path', async () => {
    expect((await ask('POST', '/v1/people', {}, { key: 'k'.repeat(255) })).said.status).toBe(201)
    for (const key of ['', 'k'.repeat(256)]) {
      const { status, text } = (await ask('POST', '/v1/people', {}, { key })).said
      expect([status, JSON.parse(text).details[0].path]).toEqual([400, '/Idempotency-Key'])
    }
    expect(await changes()).toBe(1)
  })

  it('is measured in characters if it is valid UTF-8, otherwise in bytes', async () => {
    const sent = (key: Buffer) => ask('POST', '/v1/people', {}, { key: key.toString('latin1') })
    const of = (character: string, count: number) => Buffer.from(character.repeat(count))
    for (const key of [of('ß', 255), of('€', 255), of('𝄞', 255), Buffer.alloc(255, 0xff)])
      expect((await sent(key)).said.status).toBe(201)
    for (const key of [of('ß', 256), of('𝄞', 256), Buffer.alloc(256, 0xff)])
      expect((await sent(key)).said.status).toBe(400)
    expect(await changes()).toBe(4)
  })

  it('is kept for 24 hours; then the same request runs again, and housekeeping deletes the key', async () => {
    const first = await ask('POST', '/v1/people', {})
    await age(23.9)
    expect((await ask('POST', '/v1/people', {})).said).toEqual(first.said)
    expect(await forgetKeys(service.db)).toBe(0)
    await age(0.2)
    const anew = await ask('POST', '/v1/people', {})
    expect([anew.said.status, anew.replayed, anew.said.text === first.said.text]).toEqual([201, null, false])
    await ask('POST', '/v1/people', {}, { key: 'young' })
    await service.sql(
      `update idempotency_keys set at = at - interval '25 hours' where organization_id = $1 and body = $2`,
      [organization.id, JSON.stringify(JSON.parse(anew.said.text).data)],
    )
    expect([await keys(), await forgetKeys(service.db), await keys()]).toEqual([2, 1, 1])
  })

  it('is not kept for a request that fails with 5xx, by a fault or at its deadline', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'slow' })
    const faulty = { first_name: 'fault' }
    await service.sql(`alter table entities add constraint fault check (first_name <> 'fault') not valid`)
    const failed = await ask('PATCH', '/v1/people/slow', faulty)
    expect([failed.said.status, JSON.parse(failed.said.text).error, await keys()]).toEqual([500, 'operation_failed', 0])
    const operations = [faulty, { first_name: 'fine' }].map(body => ({ op: 'create', body }))
    const askBatch = async () => {
      const { said, replayed } = await ask('POST', '/v1/people/batch', { operations })
      const items: Item[] = JSON.parse(said.text).data.items
      return { statuses: items.map(({ status }) => status), replayed, changes: await changes() }
    }
    expect(await askBatch()).toEqual({ statuses: [500, 201], replayed: null, changes: 2 })
    await service.sql('alter table entities drop constraint fault')
    // The repeated batch runs the failed operations.
    expect(await askBatch()).toEqual({ statuses: [201, 201], replayed: null, changes: 3 })
    expect(await askBatch()).toEqual({ statuses: [201, 201], replayed: 'true', changes: 3 })

    const hurried = await startService({ KITH_LIMIT_REQUEST_MS: '500' }, service.databaseUrl)
    const lock = await lockPerson(service.databaseUrl, 'slow')
    const late = await ask('PATCH', '/v1/people/slow', faulty, { address: hurried.address })
    await lock.release()
    await hurried.stop()
    expect([late.said.status, await keys(), await changes()]).toEqual([504, 3, 3])
    const done = await ask('PATCH', '/v1/people/slow', faulty)
    expect([done.said.status, done.replayed]).toEqual([200, null])
  })

  it('is not kept for the 500 of a PATCH of a missing person', async () => {
    const missing = await ask('PATCH', '/v1/people/nobody', { first_name: 'N' })
    expect([missing.said.status, await keys()]).toEqual([500, 0])
    await organization.send('POST', '/v1/people', { external_id: 'nobody' })
    expect((await ask('PATCH', '/v1/people/nobody', { first_name: 'N' })).said.status).toBe(200)
  })

  it('is not kept for a refusal by the scope or the schema', async () => {
    const reader = await service.tokenFor(organization.key, 'people:read')
    expect((await ask('POST', '/v1/people', {}, { token: reader })).said.status).toBe(403)
    expect((await ask('POST', '/v1/people', { unknown: 1 })).said.status).toBe(400)
    expect([(await ask('POST', '/v1/people', {})).said.status, await keys()]).toEqual([201, 1])
  })

  it('is ignored by reads and by DELETE', async () => {
    await organization.send('POST', '/v1/people', ada)
    expect((await ask('POST', '/v1/people/list', {})).said.status).toBe(200)
    expect((await ask('POST', '/v1/people/list', { sorting_type: 'asc' })).said.status).toBe(200)
    expect((await ask('GET', '/v1/people/ada', undefined)).said.status).toBe(200)
    expect((await ask('DELETE', '/v1/people/ada', undefined)).said.status).toBe(200)
    expect((await ask('DELETE', '/v1/people/ada', undefined)).said.status).toBe(404)
    expect(await keys()).toBe(0)
  })
})

describe('writes with idempotency keys', () => {
  it('create a common target once, beside as many concurrent writes without keys', async () => {
    await organization.client.schema.attributes.create({ key: 'friend', owner: 'people', type: 'person' })
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => {
        const body = { external_id: `p${n}`, attribute_values: { friend: `hub${n % 3}` } }
        if (n % 2 === 0) return organization.send('POST', '/v1/people', body).then(({ status }) => status)
        const { address } = n % 4 === 1 ? service : second
        return ask('POST', '/v1/people', body, { key: `k${n}`, address }).then(({ said }) => said.status)
      }),
    )
    expect(replies).toEqual(replies.map(() => 201))
    expect(await changes()).toBe(44)
  })

  it('of atomic batches that wait leave connections to writes without keys, to reads and to other organizations', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'held' })
    const lock = await lockPerson(service.databaseUrl, 'held')
    const batchOf = (attribute_values: object) => ({
      atomic: true,
      operations: [{ op: 'patch', external_id: 'held', body: { attribute_values } }],
    })
    const patches = Array.from({ length: 20 }, (_, n) =>
      ask('POST', '/v1/people/batch', batchOf({ [`k${n}`]: n }), { key: `k${n}` }),
    )
    await expect.poll(lock.waiting).toBe(maxConcurrentKeyedWrites)
    const otherOrganization = await service.organization()
    const beside = organization.send('POST', '/v1/people', {})
    await expect.poll(lock.waiting).toBe(maxConcurrentKeyedWrites + 1)
    expect((await organization.send('GET', '/v1/people/held')).status).toBe(200)
    expect((await ask('POST', '/v1/people', {}, { token: otherOrganization.token })).said.status).toBe(201)
    await lock.release()
    expect((await beside).status).toBe(201)
    expect((await Promise.all(patches)).map(({ said }) => said.status)).toEqual(patches.map(() => 200))
    expect((await organization.send('GET', '/v1/people/held')).body.data.version).toBe(21)
  })

  it('survive deadlocks of batches in opposite orders with conflicting items', async () => {
    for (const external_id of ['a', 'b']) await organization.send('POST', '/v1/people', { external_id })
    const patch = (external_id: string, n: number) => ({ op: 'patch', external_id, body: { attribute_values: { n } } })
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, n) => {
        const [one, other] = n % 2 === 0 ? ['a', 'b'] : ['b', 'a']
        // The second write of a person waits for the next set, while the head stays locked.
        const operations = [patch(one!, n), patch(one!, n + 100), patch(other!, n + 200)]
        return ask('POST', '/v1/people/batch', { operations }, { key: `k${n}` })
      }),
    )
    expect(replies.map(({ said }) => [said.status, JSON.parse(said.text).data.failed])).toEqual(
      replies.map(() => [200, 0]),
    )
    expect(await changes()).toBe(2 + 36)
  })

  it('of the client are done once, although the client retries them', async () => {
    let lost = 0
    const losing: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (lost++ === 0)
        throw new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) })
      return response
    }
    const client = createClient({
      url: service.address,
      token: organization.token,
      fetch: losing,
      sleep: async () => {},
    })
    const person = await client.people.create({ first_name: 'Once' })
    expect([lost, person.first_name, await changes()]).toEqual([2, 'Once', 1])
  })
})
