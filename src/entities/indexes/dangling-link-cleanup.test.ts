import { describe, expect, it } from 'vitest'
import { cleanDanglingLinks } from '../../../test/support/followers.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { createShop, useShop } from '../../../test/support/shop.ts'
import { names, write, writeAll } from '../../../test/support/writes.ts'
import type { Database } from '../../db/db.ts'
import { createFollowers } from '../../followers/followers.ts'
import { danglingLinkFollower } from './dangling-link-cleanup.ts'

const service = useOwnService()
const shop = useShop(service, 'referrer', 'friends', 'employer')

/** A grace period that includes every deletion. */
const noGrace = { graceMs: -1_000 }
const hourMs = 3_600_000
const count = async (organization = shop) => {
  const text = 'select count(*)::integer as count from links where organization_id = $1'
  return (await service.sql<{ count: number }>(text, [organization.id]))[0]!.count
}
const remove = (external_id: string) => shop.send('DELETE', `/v1/people/${external_id}`)
const valuesOf = async (external_id: string) => {
  const { data } = (await shop.send('GET', `/v1/people/${external_id}`)).body
  return [data.version, data.attribute_values]
}
const untilLockWait = async () => {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  while ((await service.sql(waiting)).length === 0);
}
/** Creates people that each link to one of the targets in turn. */
const linkTo = (targets: string[], count: number) =>
  writeAll(
    service.db,
    shop,
    names('p', count).map((name, n) =>
      write('create', name, { attribute_values: { referrer: targets[n % targets.length]! } }),
    ),
  )

describe('a deleted target', () => {
  it('disappears from all reads at once, and the cleanup deletes the links to it', async () => {
    const { send } = shop
    await send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { referrer: 'bob', friends: ['bob', 'eve', 'ada'] },
    })
    await send('POST', '/v1/people', { external_id: 'eve', attribute_values: { employer: 'acme' } })
    await remove('bob')
    await send('DELETE', '/v1/stacks/companies/acme')
    const reads = () => Promise.all(['ada', 'eve'].map(valuesOf))
    const after = [
      [1, { friends: ['eve', 'ada'] }],
      [2, {}],
    ]
    expect([await reads(), await count()]).toEqual([after, 5])
    expect(await cleanDanglingLinks(service.db, noGrace)).toBe(3)
    expect([await reads(), await count()]).toEqual([after, 2])
  })

  it('passes no links on to a new entity with its name', async () => {
    await linkTo(['bob'], 1)
    await remove('bob')
    await shop.send('POST', '/v1/people', { external_id: 'bob' })
    expect(await valuesOf('p0')).toEqual([1, {}])
    await cleanDanglingLinks(service.db, noGrace)
    await shop.send('PATCH', '/v1/people/p0', { attribute_values: { referrer: 'bob' } })
    await cleanDanglingLinks(service.db, noGrace)
    expect(await valuesOf('p0')).toEqual([2, { referrer: 'bob' }])
  })

  it('loses its own links in the cleanup', async () => {
    await shop.send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { referrer: 'bob', friends: ['eve'] },
    })
    await remove('bob')
    await remove('ada')
    await cleanDanglingLinks(service.db, noGrace)
    expect(await count()).toBe(0)
  })
})

describe('the cleanup', () => {
  it('skips deletions within the grace period and processes them later', async () => {
    await linkTo(['bob'], 3)
    await remove('bob')
    expect(await cleanDanglingLinks(service.db, { graceMs: hourMs })).toBe(0)
    expect(await count()).toBe(3)
    expect(await cleanDanglingLinks(service.db, noGrace)).toBe(3)
  })

  it('keeps links to existing entities and does nothing in a second run', async () => {
    await linkTo(['bob', 'eve'], 4)
    await remove('bob')
    expect([await cleanDanglingLinks(service.db, noGrace), await cleanDanglingLinks(service.db, noGrace)]).toEqual([
      2, 0,
    ])
    expect(await count()).toBe(2)
  })

  it('processes deletions and links of several batches in every organization', async () => {
    await linkTo(['hub'], 1_050)
    await remove('hub')
    const other = await createShop(service, 'friends')
    const targets = names('t', 210)
    for (const [n, part] of [targets.slice(0, 100), targets.slice(100, 200), targets.slice(200)].entries())
      await other.send('POST', '/v1/people', { external_id: `s${n}`, attribute_values: { friends: part } })
    await writeAll(
      service.db,
      other,
      targets.map(target => write('delete', target)),
    )
    expect(await cleanDanglingLinks(service.db, noGrace)).toBe(1_260)
    expect([await count(), await count(other)]).toEqual([0, 0])
  })

  it('removes each link once when several processes run it during writes', async () => {
    await linkTo(['bob', 'eve'], 200)
    await remove('bob')
    const writers = names('w', 20).map(name =>
      shop.send('POST', '/v1/people', { external_id: name, attribute_values: { referrer: 'bob' } }),
    )
    const cleaning = Promise.all([1, 2, 3].map(() => cleanDanglingLinks(service.db, noGrace)))
    expect((await Promise.all(writers)).every(reply => reply.status === 201)).toBe(true)
    expect((await cleaning).reduce((sum, removed) => sum + removed, 0)).toBe(100)
    await cleanDanglingLinks(service.db, noGrace)
    expect(await count()).toBe(120)
    expect(await cleanDanglingLinks(service.db, noGrace)).toBe(0)
  })

  it('is completed by the next run after the process has stopped', async () => {
    await linkTo(['bob'], 3)
    await remove('bob')
    let stopped: Promise<void> | undefined
    const db: Database = {
      ...service.db,
      query: async (statement, values, signal) => {
        const rows = await service.db.query(statement, values, signal)
        // Stops the run while it reads the deletions.
        if (statement.name === 'read_deletions' && rows.length > 0) stopped ??= following.stop()
        return rows as never[]
      },
    }
    const following = createFollowers(db, [danglingLinkFollower(noGrace)], { report: () => {} })
    await following.settle()
    await stopped
    expect(await count()).toBe(3)
    await cleanDanglingLinks(service.db, noGrace)
    expect(await count()).toBe(0)
  })

  it('keeps the links to an entity that was restored under its identifier', async () => {
    await linkTo(['bob'], 3)
    const [bob] = await service.sql<{ id: string }>(
      'select id from entities where organization_id = $1 and external_id = $2',
      [shop.id, 'bob'],
    )
    await remove('bob')
    await shop.send('POST', '/v1/people', { external_id: 'bob' })
    await service.sql('update entities set id = $2 where organization_id = $1 and external_id = $3', [
      shop.id,
      bob!.id,
      'bob',
    ])
    expect(await cleanDanglingLinks(service.db, noGrace)).toBe(0)
    expect(await count()).toBe(3)
  })

  it('deletes the remaining links when another process deleted part of its batch and died', async () => {
    await linkTo(['hub'], 1_050)
    await remove('hub')
    const dying = await service.db.connect()
    await dying.query('begin')
    await dying.query(
      `delete from links where organization_id = $1 and source_id in
         (select source_id from links where organization_id = $1 limit 1000)`,
      [shop.id],
    )
    const cleaning = cleanDanglingLinks(service.db, noGrace)
    await untilLockWait()
    await dying.query('commit')
    await dying.end()
    await cleaning
    await cleanDanglingLinks(service.db, noGrace)
    expect(await count()).toBe(0)
  })

  it('processes a recent deletion later, even if an older one has a higher change number', async () => {
    await linkTo(['slow', 'quick'], 2)
    await remove('slow')
    await remove('quick')
    // As if the clock had been set back between the two deletions.
    await service.sql(
      `update changes set at = at - interval '1 minute' where organization_id = $1 and before->>'external_id' = 'quick'`,
      [shop.id],
    )
    const later = withDueTime(service.db, Date.now() - 30_000)
    await cleanDanglingLinks(later, { graceMs: 0 })
    await cleanDanglingLinks(service.db, noGrace)
    expect(await count()).toBe(0)
  })
})

/** A database that treats the deletions before this time as due. */
function withDueTime(db: Database, momentMs: number): Database {
  const before = new Date(momentMs).toISOString()
  return {
    ...db,
    query: (statement, values, signal) =>
      db.query(
        statement,
        statement.name === 'read_deletions' ? [values[0], before, ...values.slice(2)] : values,
        signal,
      ),
  }
}
