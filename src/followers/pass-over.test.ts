import { describe, expect, it } from 'vitest'
import { follow, throwReported } from '../../test/support/followers.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { announceCommit } from '../db/commit-events.ts'
import { contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { ledgerFollower } from '../ledger/seal.ts'
import { retentionFollower } from '../rights/retention.ts'
import type { Follower, Progress, Task } from './follower.ts'
import { createFollowers, readFollowerLag } from './followers.ts'
import { LeaseLost } from './tasks.ts'

const service = useOwnService()
const organization = useShop(service)
const others = [useShop(service), useShop(service), useShop(service)]

let names = 0
const person = ({ send }: Organization, external_id: string) => send('POST', '/v1/people', { external_id })
const toHead = async ({ head }: Task) => ({ sequence: head })
const row = async ({ name }: Follower, { id } = organization) => {
  const text = 'select * from followers where organization_id = $1 and name = $2'
  return (await service.sql(text, [id, name]))[0]
}

/** A follower with a new name that passes over all organizations except the busy ones. */
function makeFollower(busy: readonly { id: number }[] = [], progress: Partial<Progress> = {}, work = toHead) {
  names += 1
  const worked: number[] = []
  const follower: Follower = {
    name: `passing_${names}`,
    isForEveryOrganization: true,
    maxConcurrent: 4,
    work: async task => {
      worked.push(task.organization_id)
      return work(task)
    },
    passOver: async (_, news) =>
      new Map(
        news
          .filter(({ organization_id }) => !busy.some(({ id }) => id === organization_id))
          .map(each => [each, { sequence: each.head, ...progress }]),
      ),
  }
  return { follower, worked }
}

function countStatements(db: Database) {
  const counts = new Map<string, number>()
  const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
  const counted: Database = {
    ...db,
    query: (statement, values, signal) => {
      count(statement.name)
      return db.query(statement, values, signal)
    },
    transaction: (work, options) => {
      count('transaction')
      return db.transaction(work, options)
    },
  }
  return { db: counted, counts }
}

describe('organizations where a follower has nothing to do', () => {
  it('share a transaction when the followers stop, and take no lease', async () => {
    for (const each of [organization, ...others]) await person(each, 'a')
    const { follower, worked } = makeFollower([organization])
    const { db, counts } = countStatements(service.db)
    const following = createFollowers(db, [follower], { report: throwReported })
    await following.tick()
    await following.idle()
    await following.stop()
    expect(worked).toEqual([organization.id])
    expect(counts.get('transaction')).toBe(1)
    expect(counts.get('claim_follower')).toBe(1)
    for (const each of [organization, ...others])
      expect(await row(follower, each)).toMatchObject({ sequence: 1, owner: null, leased_until: null, failures: 0 })
  })

  it('cost no commit after each write, but one after a minute', async () => {
    await person(organization, 'a')
    let nowMs = Date.now()
    const { follower, worked } = makeFollower()
    const { db, counts } = countStatements(service.db)
    const following = createFollowers(db, [follower], { report: throwReported, nowMs: () => nowMs })
    for (const name of ['b', 'c']) {
      expect(await following.tick()).toBeGreaterThan(0)
      expect(await following.tick()).toBe(0)
      await person(organization, name)
    }
    await following.tick()
    nowMs += 59_999
    await following.tick()
    expect(counts.get('transaction')).toBeUndefined()
    expect(await row(follower)).toBeUndefined()
    nowMs += 1
    await following.tick()
    expect(counts.get('transaction')).toBe(1)
    expect(await row(follower)).toMatchObject({ sequence: 3 })
    expect(worked).toEqual([])
    await following.stop()
  })

  it('cost no commit after a PATCH of a person, when they are the ledger and the retention', async () => {
    await person(organization, 'ada')
    const own = [ledgerFollower({ originName: 'kith' }), retentionFollower({})]
    await follow(service.db, own)
    const text = 'select * from followers where organization_id = $1 order by name'
    const before = await service.sql(text, [organization.id])
    expect(before).toHaveLength(own.length)
    expect((await organization.send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
    const { db, counts } = countStatements(service.db)
    const nowMs = () => Date.now() + 1_000
    const following = createFollowers(db, own, { report: throwReported, nowMs })
    expect(await following.tick()).toBeGreaterThan(0)
    await following.idle()
    expect([counts.get('transaction'), counts.get('claim_follower')]).toEqual([undefined, undefined])
    expect(await service.sql(text, [organization.id])).toEqual(before)
    await following.stop()
  })

  it('are looked at again after a crash, and not reported as behind meanwhile', async () => {
    await person(organization, 'a')
    const crashed = makeFollower()
    const first = createFollowers(service.db, [crashed.follower], { report: throwReported })
    await first.tick()
    const { follower, worked } = makeFollower([organization])
    follower.name = crashed.follower.name
    expect(await readFollowerLag(service.db, [crashed.follower])).toMatchObject([{ changes: 0, organizations: 0 }])
    expect(await readFollowerLag(service.db, [follower])).toMatchObject([{ changes: 1, organizations: 1 }])
    await follow(service.db, [follower])
    expect(worked).toEqual([organization.id])
    expect(await row(follower)).toMatchObject({ sequence: 1 })
  })

  it('are worked on from the stored position when a change concerns the follower', async () => {
    await person(organization, 'a')
    const { follower } = makeFollower()
    const ranges: number[][] = []
    follower.work = async ({ after, head }) => {
      ranges.push([after, head])
      return { sequence: head }
    }
    const following = createFollowers(service.db, [follower], { report: throwReported })
    await following.tick()
    await person(organization, 'b')
    const asked: number[] = []
    follower.passOver = async (_, news) => {
      asked.push(...news.filter(each => each.organization_id === organization.id).map(({ after }) => after))
      return new Map()
    }
    await following.settle()
    await following.stop()
    expect(asked).toEqual([1])
    expect(ranges).toContainEqual([0, 2])
    expect(await row(follower)).toMatchObject({ sequence: 2 })
  })

  it('pause as long as the follower says, and wake up without news', async () => {
    await person(organization, 'a')
    let nowMs = Date.now()
    const begunMs = nowMs
    const { follower } = makeFollower([], { notBeforeMs: nowMs + 5_000, wakeAtMs: nowMs + 60_000 })
    const run = async (ms: number) => {
      nowMs = begunMs + ms
      await follow(service.db, [follower], { nowMs: () => nowMs })
      return (await row(follower))!
    }
    expect(await run(0)).toMatchObject({ sequence: 1, wake_at: new Date(begunMs + 60_000).toISOString() })
    await person(organization, 'b')
    expect(await run(4_999)).toMatchObject({ sequence: 1 })
    expect(await run(5_000)).toMatchObject({ sequence: 2 })
    const woken: number[] = []
    follower.passOver = async (_, news) => {
      woken.push(...news.filter(({ is_due }) => is_due).map(({ organization_id }) => organization_id))
      return new Map(news.map(each => [each, { sequence: each.head }]))
    }
    await run(60_000)
    expect(woken).toContain(organization.id)
    expect((await row(follower))!.wake_at).toBeNull()
  })

  it('are not delayed by one whose position an erasure has locked', async () => {
    for (const each of [organization, ...others]) await person(each, 'a')
    const { follower } = makeFollower()
    await follow(service.db, [follower])
    for (const each of [organization, ...others]) await person(each, 'b')
    const locker = await service.db.connect()
    const lock = `select from followers where organization_id = ${organization.id} and name = '${follower.name}' for update`
    await locker.query('begin')
    await locker.query(lock)
    const following = createFollowers(service.db, [follower], { report: throwReported })
    await following.tick()
    await following.stop()
    expect(await row(follower)).toMatchObject({ sequence: 1 })
    for (const each of others) expect(await row(follower, each)).toMatchObject({ sequence: 2 })
    await locker.query('rollback')
    await locker.end()
    await follow(service.db, [follower])
    expect(await row(follower)).toMatchObject({ sequence: 2 })
  })

  it('are worked on one by one when the statement for all of them fails', async () => {
    for (const each of [organization, ...others]) await person(each, 'a')
    const { follower, worked } = makeFollower()
    follower.passOver = () => Promise.reject(new Error('one row is broken'))
    const reports: string[] = []
    const following = createFollowers(service.db, [follower], {
      report: error => reports.push((error as Error).message),
    })
    await following.settle()
    await following.stop()
    expect(reports).toEqual(['one row is broken'])
    expect(worked).toEqual(expect.arrayContaining([organization, ...others].map(({ id }) => id)))
    expect(await row(follower)).toMatchObject({ sequence: 1 })
  })

  it('are left to the process that works for them', async () => {
    await person(organization, 'a')
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
    const { follower, worked } = makeFollower([organization], {}, async task => {
      begin()
      await mayEnd
      await task.db.transaction(tx => task.advance(tx, task.head))
      return toHead(task)
    })
    const working = createFollowers(service.db, [follower], { report: throwReported })
    await working.tick()
    await begun
    await person(organization, 'b')
    await follow(service.db, [{ ...makeFollower().follower, name: follower.name }])
    expect(await row(follower)).toMatchObject({ sequence: 0 })
    end()
    await working.idle()
    await working.stop()
    expect(worked).toEqual([organization.id])
    expect(await row(follower)).toMatchObject({ sequence: 1, owner: null })
  })

  it('are passed over after the lease of a process that died, which can store nothing any more', async () => {
    await person(organization, 'a')
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: dead, resolve: die } = Promise.withResolvers<void>()
    let late: Promise<void> | undefined
    const { follower } = makeFollower([organization], {}, async task => {
      begin()
      await dead
      late = task.db.transaction(tx => task.advance(tx, 0))
      await late
      return toHead(task)
    })
    const frozen: Database = {
      ...service.db,
      query: async (statement, values, signal) =>
        statement.name === 'renew_lease' ? new Promise<never>(() => {}) : service.db.query(statement, values, signal),
    }
    const first = createFollowers(frozen, [follower], { report: () => {}, leaseMs: 50 })
    await first.tick()
    await begun
    await expect
      .poll(async () => {
        await follow(service.db, [{ ...makeFollower().follower, name: follower.name }])
        return (await row(follower))?.sequence
      })
      .toBe(1)
    die()
    await first.stop()
    await expect(late).rejects.toThrow(LeaseLost)
    expect(await row(follower)).toMatchObject({ sequence: 1, owner: null })
  })

  it('are found by one search, and by further ones at once if there are more', async () => {
    const { follower } = makeFollower()
    const added = await service.sql<{ id: number }>(
      `insert into organizations (key) select 'passed' || n from generate_series(1, 2500) n returning id`,
    )
    await service.sql(
      `insert into change_heads (organization_id, sequence) select id, 1 from organizations where key like 'passed%'`,
    )
    const { db, counts } = countStatements(service.db)
    const passed = new Set<number>()
    const { passOver } = follower
    follower.passOver = async (db, news) => {
      for (const { organization_id } of news) passed.add(organization_id)
      return passOver!(db, news)
    }
    const following = createFollowers(db, [follower], { report: throwReported, tickMs: 10 })
    following.start()
    await expect.poll(() => passed.size).toBeGreaterThanOrEqual(added.length)
    await following.stop()
    const text = 'select count(*)::integer as count from followers where name = $1 and sequence = 1'
    const [stored] = await service.sql<{ count: number }>(text, [follower.name])
    expect(stored!.count).toBeGreaterThanOrEqual(added.length)
    expect(counts.get('claim_follower')).toBeUndefined()
    await service.sql(
      `delete from change_heads where organization_id in (select id from organizations where key like 'passed%')`,
    )
    await service.sql(`delete from organizations where key like 'passed%'`)
  })
})

describe('a look after commits', () => {
  it('is one statement for all organizations that have news', async () => {
    const { follower } = makeFollower()
    await follow(service.db, [follower])
    const passed: number[][] = []
    const { passOver } = follower
    follower.passOver = async (db, news) => {
      passed.push(news.map(({ organization_id }) => organization_id))
      return passOver!(db, news)
    }
    const { db, counts } = countStatements(service.db)
    const following = createFollowers(db, [follower], { report: throwReported, tickMs: 1_000_000 })
    following.start()
    await service.sql('update change_heads set sequence = sequence + 1')
    for (const each of [organization, ...others]) announceCommit(contextOf(db, each.id))
    const ids = [organization, ...others].map(({ id }) => id)
    await expect.poll(() => passed).toEqual([expect.arrayContaining(ids)])
    // A second statement repeats it if this takes longer than a second.
    expect(counts.get('find_news_of')).toBeLessThanOrEqual(2)
    await following.stop()
    for (const each of [organization, ...others]) expect(await row(follower, each)).toMatchObject({ sequence: 1 })
  })
})
