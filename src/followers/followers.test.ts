import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { follow, throwReported } from '../../test/support/followers.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { announceCommit } from '../db/commit-events.ts'
import { contextOf } from '../db/context.ts'
import { type Database, openDatabase, statement } from '../db/db.ts'
import type { Follower, Task } from './follower.ts'
import { createFollowers, listFailingFollowers, readFollowerLag } from './followers.ts'
import { LeaseLost } from './tasks.ts'

const service = useOwnService()
const organization = useShop(service)
const other = useShop(service)

let names = 0
const person = ({ send }: Organization, external_id: string) => send('POST', '/v1/people', { external_id })
/** A follower with a new name. `work` sees only the tasks of the two organizations of the test. */
function makeFollower(work: Follower['work'], maxConcurrent = 100): Follower {
  names += 1
  return {
    name: `tests_${names}`,
    isForEveryOrganization: true,
    maxConcurrent,
    work: async task =>
      [organization.id, other.id].includes(task.organization_id) ? work(task) : { sequence: task.head },
  }
}
const toHead = async ({ head }: Task) => ({ sequence: head })
const row = async ({ name }: Follower, { id } = organization) => {
  const text = 'select * from followers where organization_id = $1 and name = $2'
  return (await service.sql(text, [id, name]))[0]
}
const ignore = () => {}

describe('a follower', () => {
  it('gets the changes of every organization in order of number, each once', async () => {
    const ranges: [number, number, number][] = []
    const follower = makeFollower(async task => {
      ranges.push([task.organization_id, task.after, task.head])
      return toHead(task)
    })
    for (const name of ['a', 'b', 'c']) await person(organization, name)
    await person(other, 'a')
    await follow(service.db, [follower])
    await person(organization, 'd')
    await follow(service.db, [follower])
    expect(ranges.filter(([id]) => id === organization.id)).toEqual([
      [organization.id, 0, 3],
      [organization.id, 3, 4],
    ])
    expect(ranges.filter(([id]) => id === other.id)).toEqual([[other.id, 0, 1]])
  })

  it('stores work and position together', async () => {
    const follower = makeFollower(async ({ db, head, advance }) => {
      await db.transaction(async tx => {
        await advance(tx, head)
        throw new Error('the work fails after the position was stored')
      })
      return { sequence: head }
    })
    await person(organization, 'a')
    const following = createFollowers(service.db, [follower], { report: ignore })
    await following.settle()
    expect(await row(follower)).toMatchObject({ sequence: 0, failures: 1 })
    await following.stop()
  })

  it('that fails delays no other organization, and is retried later each time', async () => {
    const reports: unknown[] = []
    let isBroken = true
    const follower = makeFollower(async task => {
      if (isBroken && task.organization_id === organization.id) throw new TypeError('broken')
      return toHead(task)
    })
    await person(organization, 'a')
    await person(other, 'a')
    let nowMs = Date.now()
    const following = createFollowers(service.db, [follower], {
      report: (error, failure) => reports.push([(error as Error).message, failure]),
      nowMs: () => nowMs,
    })
    await following.settle()
    expect((await row(follower, other))!.sequence).toBe(1)
    expect(await row(follower)).toMatchObject({ sequence: 0, failures: 1, failure: 'TypeError', owner: null })
    const failure = { follower: follower.name, organization_id: organization.id, id: 0, failures: 1 }
    expect(reports).toEqual([['broken', failure]])
    const waits: number[] = []
    for (let attempt = 0; attempt < 12; attempt += 1) {
      const { not_before } = (await row(follower)) as { not_before: string }
      waits.push(Date.parse(not_before) - nowMs)
      // Nothing happens until a millisecond before.
      nowMs = Date.parse(not_before) - 1
      await following.settle()
      expect(reports).toHaveLength(attempt + 1)
      nowMs += 1
      await following.settle()
      expect(reports).toHaveLength(attempt + 2)
    }
    expect(waits.slice(0, 10)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map(seconds => seconds * 1_000))
    isBroken = false
    nowMs += 300_000
    await following.settle()
    expect(await row(follower)).toMatchObject({ sequence: 1, failures: 0, failure: null })
    const { text } = await readMetrics(service.address)
    expect(text).toContain(`kith_follower_failures_total{follower="${follower.name}"} 13`)
    await following.stop()
  })

  it('that fails on one change stops no other follower of the organization, and passes over nothing', async () => {
    const worked: number[] = []
    let isBroken = true
    const broken = makeFollower(async ({ organization_id, after, head }) => {
      if (organization_id !== organization.id) return { sequence: head }
      if (after + 1 === 2 && isBroken) throw new TypeError('broken')
      worked.push(after + 1)
      return { sequence: after + 1 }
    })
    const other = makeFollower(toHead)
    for (const name of ['a', 'b', 'c']) await person(organization, name)
    let nowMs = Date.now()
    const following = createFollowers(service.db, [broken, other], { report: ignore, nowMs: () => nowMs })
    await following.settle()
    expect(worked).toEqual([1])
    expect((await row(other))!.sequence).toBe(3)
    const failing = async () => (await listFailingFollowers(service.db)).filter(({ name }) => name === broken.name)
    const failure = { organization: organization.key, id: 0, sequence: 1, failures: 1, failure: 'TypeError' }
    expect(await failing()).toMatchObject([failure])
    isBroken = false
    nowMs += 1_000
    await following.settle()
    expect(worked).toEqual([1, 2, 3])
    expect(await failing()).toEqual([])
    await following.stop()
  })

  it.each([
    ['of every organization', true],
    ['of organizations that asked for it', false],
  ])(
    '%s waits until the time that its work has named, and wakes up without news',
    async (_, isForEveryOrganization) => {
      let nowMs = Date.now()
      const runs: number[] = []
      const follower: Follower = {
        ...makeFollower(async ({ organization_id, head }) => {
          if (organization_id !== organization.id) return { sequence: head }
          runs.push(nowMs)
          return runs.length === 1
            ? { sequence: head, wakeAtMs: nowMs + 60_000 }
            : { sequence: head, notBeforeMs: nowMs + 5_000 }
        }),
        isForEveryOrganization,
      }
      if (!isForEveryOrganization)
        await service.sql('insert into followers (organization_id, name, id) values ($1, $2, 7)', [
          organization.id,
          follower.name,
        ])
      await person(organization, 'a')
      const begunMs = nowMs
      const run = async (ms: number) => {
        nowMs = begunMs + ms
        await follow(service.db, [follower], { nowMs: () => nowMs })
      }
      await run(0)
      await run(59_999)
      await run(60_000)
      await person(organization, 'b')
      await run(64_999)
      await run(65_000)
      expect(runs.map(ms => ms - begunMs)).toEqual([0, 60_000, 65_000])
    },
  )

  it('that is paused does nothing, and does not count as behind', async () => {
    const follower = makeFollower(() => Promise.reject(new Error('it runs')))
    await service.sql('insert into followers (organization_id, name, paused) values ($1, $2, true)', [
      organization.id,
      follower.name,
    ])
    await person(organization, 'a')
    await follow(service.db, [follower])
    const [lag] = await readFollowerLag(service.db, [follower])
    const others = await service.sql<{ changes: number }>(
      'select sum(sequence)::float8 as changes from change_heads where organization_id <> $1',
      [organization.id],
    )
    // The position of the other organizations is at their head.
    expect(others[0]!.changes).toBeGreaterThan(0)
    expect(lag!.changes).toBe(0)
  })

  it('reports how many changes it is behind, in how many organizations, and the age of the oldest', async () => {
    const follower = makeFollower(toHead)
    await follow(service.db, [follower])
    for (const name of ['a', 'b', 'c']) await person(organization, name)
    await service.sql(`update changes set at = at - interval '1 hour' where organization_id = $1 and sequence = 1`, [
      organization.id,
    ])
    const [lag] = await readFollowerLag(service.db, [follower])
    expect(lag).toMatchObject({ name: follower.name, changes: 3, organizations: 1 })
    expect(Math.round(lag!.seconds / 60)).toBe(60)
  })
})

describe('several processes', () => {
  it('never work for the same follower at a time, and share the organizations', async () => {
    const active = new Map<number, number>()
    let overlaps = 0
    const counts = [0, 0, 0]
    const followersOf = (process: number) => [
      {
        ...shared,
        work: async (task: Task) => {
          if (![organization.id, other.id].includes(task.organization_id)) return toHead(task)
          active.set(task.organization_id, (active.get(task.organization_id) ?? 0) + 1)
          if (active.get(task.organization_id)! > 1) overlaps += 1
          await service.sql('select 1')
          await task.db.transaction(tx => task.advance(tx, task.after + 1))
          counts[process]! += 1
          active.set(task.organization_id, active.get(task.organization_id)! - 1)
          return { sequence: task.after + 1 }
        },
      },
    ]
    const shared = makeFollower(toHead)
    for (let n = 0; n < 15; n += 1) await Promise.all([person(organization, `p${n}`), person(other, `p${n}`)])
    await Promise.all([0, 1, 2].map(process => follow(service.db, followersOf(process))))
    expect(overlaps).toBe(0)
    // Each change is processed once.
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(30)
    expect((await row(shared))!.sequence).toBe(15)
  })

  it('take over when the lease of a dead one ends, and the dead one can store nothing', async () => {
    const { promise: dead, resolve: die } = Promise.withResolvers<void>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    let late: Promise<void> | undefined
    const shared = makeFollower(toHead)
    const dying: Follower = {
      ...shared,
      work: async task => {
        if (task.organization_id !== organization.id) return toHead(task)
        begin()
        await dead
        late = task.db.transaction(tx => task.advance(tx, 1))
        await late
        return toHead(task)
      },
    }
    await person(organization, 'a')
    // A process that renews no lease, like a frozen one.
    const frozen: Database = {
      ...service.db,
      query: async (statement, values, signal) =>
        statement.name === 'renew_lease' ? new Promise<never>(() => {}) : service.db.query(statement, values, signal),
    }
    const first = createFollowers(frozen, [dying], { report: ignore, leaseMs: 50 })
    await first.tick()
    await begun
    await expect
      .poll(async () => {
        await follow(service.db, [shared])
        return (await row(shared))?.sequence
      })
      .toBe(1)
    await service.sql('update followers set sequence = 5 where organization_id = $1 and name = $2', [
      organization.id,
      shared.name,
    ])
    die()
    await first.stop()
    await expect(late).rejects.toThrow(LeaseLost)
    expect((await row(shared))!.sequence).toBe(5)
  })

  it('abort the work when the lease cannot be renewed, before another one can take over', async () => {
    const { promise: aborted, resolve } = Promise.withResolvers<boolean>()
    const follower = makeFollower(async task => {
      await new Promise<void>(settled => task.signal.addEventListener('abort', settled))
      resolve(task.isHeld())
      return { sequence: 0 }
    })
    await person(organization, 'a')
    const cut: Database = {
      ...service.db,
      query: async (statement, values, signal) => {
        if (statement.name === 'renew_lease') throw new Error('the connection is lost')
        return service.db.query(statement, values, signal)
      },
    }
    const following = createFollowers(cut, [follower], { report: ignore, leaseMs: 60 })
    await following.tick()
    expect(await aborted).toBe(false)
    await following.stop()
  })

  it('take over at once from one that stops', async () => {
    const shared = makeFollower(toHead)
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const waiting: Follower = {
      ...shared,
      work: async ({ signal, organization_id, after }) => {
        if (organization_id !== organization.id) return { sequence: after }
        begin()
        await new Promise<void>(settled => signal.addEventListener('abort', settled))
        return { sequence: after }
      },
    }
    await person(organization, 'a')
    const first = createFollowers(service.db, [waiting], { report: ignore })
    await first.tick()
    await begun
    await first.stop()
    expect(await row(shared)).toMatchObject({ owner: null, leased_until: null, sequence: 0 })
    await follow(service.db, [shared])
    expect((await row(shared))!.sequence).toBe(1)
  })
})

describe('a commit of the process', () => {
  it('wakes its followers before the next tick', async () => {
    const { promise: worked, resolve } = Promise.withResolvers<number>()
    const follower = makeFollower(async task => {
      resolve(task.head)
      return toHead(task)
    })
    await follow(service.db, [makeFollower(toHead)])
    const following = createFollowers(service.db, [follower], { report: ignore, tickMs: 1_000_000 })
    following.start()
    await person(organization, 'a')
    announceCommit(contextOf(service.db, organization.id))
    expect(await worked).toBe(1)
    await following.stop()
  })

  it('wakes a follower that works, pauses, or was searched for in vain just before, without another tick', async () => {
    const heads: number[] = []
    const { promise: worked, resolve } = Promise.withResolvers<void>()
    const follower = makeFollower(async task => {
      heads.push(task.head)
      // One commit happens during the work, and one during the pause after it.
      if (task.head === 1) await write('b')
      if (task.head === 2) setTimeout(() => void write('c'), 50)
      if (task.head === 3) resolve()
      return { sequence: task.head, notBeforeMs: Date.now() + 200 }
    })
    const write = async (name: string) => {
      await person(organization, name)
      announceCommit(contextOf(service.db, organization.id))
    }
    await follow(service.db, [makeFollower(toHead)])
    const following = createFollowers(service.db, [follower], { report: ignore, tickMs: 1_000_000 })
    following.start()
    announceCommit(contextOf(service.db, organization.id))
    await write('a')
    await worked
    expect(heads).toEqual([1, 2, 3])
    await following.stop()
  })
})

describe('many organizations with news', () => {
  it('are worked on one after the other by a follower with one place, after one search', async () => {
    const worked: number[] = []
    const work = async (task: Task) => {
      worked.push(task.organization_id)
      return toHead(task)
    }
    const follower = makeFollower(work, 1)
    await person(organization, 'a')
    await person(other, 'a')
    await service.sql('update change_heads set sequence = 0 where organization_id not in ($1, $2)', [
      organization.id,
      other.id,
    ])
    const following = createFollowers(service.db, [follower], { report: throwReported })
    expect(await following.tick()).toBe(2)
    await following.idle()
    expect(worked).toEqual([organization.id, other.id])
    await following.stop()
  })

  it('are all worked on without a pause between the searches, and each once', async () => {
    const database = await createTestDatabase()
    const db = openDatabase(database.url, { connections: 2, statementTimeoutMs: 10_000 })
    const run = (text: string) => db.query(statement('', text), [])
    await run(`insert into organizations (key) select 'org' || n from generate_series(1, 450) n`)
    await run('insert into change_heads (organization_id, sequence) select id, 5 from organizations')
    const worked: number[] = []
    const work = async (task: Task) => {
      worked.push(task.organization_id)
      return toHead(task)
    }
    const follower = { name: 'busy', isForEveryOrganization: true, maxConcurrent: 2, work }
    const following = createFollowers(db, [follower], { report: throwReported, tickMs: 1_000_000 })
    following.start()
    expect(await following.tick()).toBe(102)
    await expect.poll(() => worked.length).toBe(450)
    await following.idle()
    expect(new Set(worked).size).toBe(450)
    await following.stop()
    expect(await readFollowerLag(db, [follower])).toEqual([{ name: 'busy', changes: 0, seconds: 0, organizations: 0 }])
    await db.close()
    await database.drop()
  })
})

describe('10,000 quiet organizations', () => {
  it('cost one statement a tick', async () => {
    const database = await createTestDatabase()
    const db = openDatabase(database.url, { connections: 2, statementTimeoutMs: 10_000 })
    const insert = (text: string) => db.query(statement('', text), [])
    await insert(`insert into organizations (key) select 'org' || n from generate_series(1, 10000) n`)
    await insert('insert into change_heads (organization_id, sequence) select id, 5 from organizations')
    await insert(`insert into followers (organization_id, name, sequence) select id, 'quiet', 5 from organizations`)
    let statements = 0
    const counted: Database = {
      ...db,
      query: (statement, values, signal) => {
        statements += 1
        return db.query(statement, values, signal)
      },
    }
    const follower = { name: 'quiet', isForEveryOrganization: true, maxConcurrent: 10, work: toHead }
    const following = createFollowers(counted, [follower], { report: ignore })
    expect(await following.tick()).toBe(0)
    expect(statements).toBe(1)
    await insert('update change_heads set sequence = 6 where organization_id = 9000')
    await following.settle()
    expect(await insert(`select organization_id from followers where sequence = 6`)).toEqual([
      { organization_id: 9000 },
    ])
    await following.stop()
    await db.close()
    await database.drop()
  })
})
