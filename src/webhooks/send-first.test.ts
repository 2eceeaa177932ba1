import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { follow, throwReported } from '../../test/support/followers.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { announceCommit } from '../changes/commit-events.ts'
import type { Database } from '../db/db.ts'
import { createFollowers } from '../followers/followers.ts'
import { webhookFollower } from './deliver.ts'
import type { Sender } from './send.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const organization = useShop(service)
let receiver: Receiver
let sender: Sender
beforeEach(async () => {
  receiver = await startReceiver()
  sender = createLoopbackSender()
})
afterEach(async () => {
  await service.sql('delete from followers')
  await sender.close()
  await receiver.close()
})

const create = () => organization.send('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'] })
const person = (external_id: string) => organization.send('POST', '/v1/people', { external_id })
const deliveries = async () => (await organization.send('GET', '/v1/webhooks/1/deliveries')).body.data.items
const sequences = () => receiver.received.map(({ sequence }) => sequence)

/** The database with the names of its statements. `fail` throws instead of some. */
function watch(fail: (name: string) => void = () => {}) {
  const names: string[] = []
  const see = (name: string) => {
    names.push(name)
    fail(name)
  }
  const db: Database = {
    ...service.db,
    query: async (statement, values, signal) => {
      see(statement.name)
      return service.db.query(statement, values, signal)
    },
    transaction: (work, options) =>
      service.db.transaction(
        tx =>
          work({
            ...tx,
            query: async (statement, values) => {
              see(statement.name)
              return tx.query(statement, values)
            },
          }),
        options,
      ),
  }
  return { db, names, count: (name: string) => names.filter(each => each === name).length }
}

describe('a few changes, of which none waits for an earlier one', () => {
  it('are sent before they are stored, and one transaction stores position and results', async () => {
    await create()
    for (const name of ['a', 'b', 'c']) await person(name)
    const { db, count } = watch()
    await follow(db, [webhookFollower({ sender, firstMs: 60_000 })])
    expect(receiver.received).toHaveLength(3)
    expect(count('insert_webhook_deliveries')).toBe(1)
    expect(count('record_webhook_attempts')).toBe(0)
    expect(await deliveries()).toMatchObject([3, 2, 1].map(() => ({ status: 'delivered', attempts: 1 })))
  })

  it('are listed while a slow receiver has them, and sent once', async () => {
    await create()
    await person('a')
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>()
    receiver.answer = response => mayAnswer.then(() => response.writeHead(204).end())
    const following = createFollowers(service.db, [webhookFollower({ sender, firstMs: 1 })], { report: throwReported })
    await following.tick()
    await expect.poll(deliveries).toMatchObject([{ state: 'due', attempts: 0 }])
    answer()
    await following.idle()
    await following.stop()
    expect(await deliveries()).toMatchObject([{ status: 'delivered', attempts: 1 }])
    expect(receiver.received).toHaveLength(1)
  })

  it('wait for the next attempt if the receiver refuses them', async () => {
    await create()
    await person('a')
    receiver.answer = response => response.writeHead(500).end('no')
    await follow(service.db, [webhookFollower({ sender })])
    expect(await deliveries()).toMatchObject([{ state: 'failing', attempts: 1, response_status: 500, response: 'no' }])
    receiver.answer = response => response.writeHead(204).end()
    const nowMs = () => Date.now() + 60_000
    await follow(service.db, [webhookFollower({ sender, nowMs })], { nowMs })
    expect(await deliveries()).toMatchObject([{ status: 'delivered', attempts: 2 }])
    expect(receiver.received).toHaveLength(2)
  })

  it('are sent again if the process dies before it stores them', async () => {
    await create()
    await person('a')
    let isDying = true
    const { db } = watch(name => {
      if (isDying && name === 'insert_webhook_deliveries') throw new TypeError('the process died')
    })
    const nowMs = () => (isDying ? Date.now() : Date.now() + 60_000)
    const following = createFollowers(db, [webhookFollower({ sender })], { report: () => {}, nowMs })
    await following.settle()
    expect(receiver.received).toHaveLength(1)
    expect(await deliveries()).toEqual([])
    isDying = false
    await following.settle()
    await following.stop()
    const [first, second] = sequences()
    expect(second).toBe(first)
    expect(await deliveries()).toMatchObject([{ sequence: first, status: 'delivered' }])
  })

  it('of one entity are sent in order', async () => {
    await create()
    await person('a')
    for (const first_name of ['A', 'B', 'C']) await organization.send('PATCH', '/v1/people/a', { first_name })
    await follow(service.db, [webhookFollower({ sender })])
    expect(sequences()).toEqual(sequences().toSorted((a, b) => a - b))
    expect(receiver.received).toHaveLength(4)
  })
})

describe('a webhook that lingers', () => {
  it('sends the next changes without another claim, and ends when none comes', async () => {
    await create()
    const { db, count } = watch()
    const following = createFollowers(db, [webhookFollower({ sender, lingerMs: 5_000 })], { report: throwReported })
    await person('a')
    await following.tick()
    await expect.poll(() => receiver.received.length).toBe(1)
    for (const name of ['b', 'c']) {
      const before = receiver.received.length
      await person(name)
      announceCommit(db, organization.id)
      await expect.poll(() => receiver.received.length).toBe(before + 1)
    }
    expect(count('claim_follower')).toBe(1)
    await following.stop()
    expect(await deliveries()).toMatchObject([3, 2, 1].map(() => ({ status: 'delivered' })))

    const ending = createFollowers(service.db, [webhookFollower({ sender, lingerMs: 1 })], { report: throwReported })
    await person('d')
    await ending.settle()
    await ending.stop()
    expect(receiver.received).toHaveLength(4)
    expect(await service.sql(`select owner from followers where name = 'webhooks'`)).toEqual([{ owner: null }])
  })
})
