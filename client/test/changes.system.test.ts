import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startBalancer } from '../../test/support/balancer.ts'
import { numbersTo } from '../../test/support/changes.ts'
import { createTestDatabase } from '../../test/support/database.ts'
import { endProcesses, launch, terminate, tokenFrom } from '../../test/support/process.ts'
import { type Change, createClient } from '../index.ts'

describe('a service that is stopped or killed, and started again on the same data', { timeout: 120_000 }, () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  beforeEach(async () => {
    database = await createTestDatabase()
  })
  afterEach(async () => {
    await endProcesses()
    await database.drop()
  })

  it('costs a follower no change, and repeats none', async () => {
    const environment = { DATABASE_URL: database.url }
    const balancer = await startBalancer('connection')
    const run = async () => {
      const kith = launch(environment)
      const address = await kith.ready
      balancer.services.add(address)
      await expect.poll(() => [...balancer.ready]).toContain(address)
      return { kith, address }
    }
    let { kith, address } = await run()
    const writer = createClient({ url: balancer.address, token: await tokenFrom(environment), retries: 20 })
    const rounds = 2
    const perRound = 30
    const stream = writer.changes.follow()
    const following = (async () => {
      const seen: Change[] = []
      for await (const change of stream) {
        seen.push(change)
        if (change.sequence >= rounds * perRound) break
      }
      return seen
    })()
    for (let round = 0; round < rounds; round += 1) {
      const writes = Array.from({ length: perRound }, (_, n) =>
        writer.people.create({ external_id: `p${round}-${n}` }, { idempotencyKey: `${round}-${n}` }),
      )
      await Promise.race(writes)
      balancer.services.delete(address)
      if (round % 2 === 0) kith.child.kill('SIGKILL')
      else expect(await terminate(kith)).toBe(0)
      await kith.ended
      ;({ kith, address } = await run())
      await Promise.all(writes)
    }
    const seen = await following
    expect(seen.map(({ sequence }) => sequence)).toEqual(numbersTo(rounds * perRound))
    expect(new Set(seen.map(({ external_id }) => external_id)).size).toBe(rounds * perRound)
    await balancer.stop()
  })
})
