import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Service, startService } from '../../test/support/service.ts'
import { makeShop, names, type Shop, write, writeAll } from '../../test/support/writes.ts'
import type { Database } from '../db/db.ts'
import { cleanDanglingLinks } from './dangling-link-cleanup.ts'

let service: Service
let shop: Shop
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  shop = await makeShop(service)
})

/** However young a deletion is. */
const atOnce = { graceMs: -1_000 }
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
const someoneWaits = async () => {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  while ((await service.sql(waiting)).length === 0);
}
/** So many people, each linked to one of the targets in turn. */
const linkTo = (targets: string[], many: number) =>
  writeAll(
    service.db,
    shop,
    names('p', many).map((name, n) =>
      write('create', name, { attribute_values: { referrer: targets[n % targets.length]! } }),
    ),
  )

describe('deleting a target', () => {
  test('takes its links out of every read at once, and the sweep takes their rows', async () => {
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
    expect(await cleanDanglingLinks(service.db, atOnce)).toBe(3)
    expect([await reads(), await count()]).toEqual([after, 2])
  })

  test('leaves whoever takes its name afterwards unlinked', async () => {
    await linkTo(['bob'], 1)
    await remove('bob')
    await shop.send('POST', '/v1/people', { external_id: 'bob' })
    expect(await valuesOf('p0')).toEqual([1, {}])
    await cleanDanglingLinks(service.db, atOnce)
    await shop.send('PATCH', '/v1/people/p0', { attribute_values: { referrer: 'bob' } })
    await cleanDanglingLinks(service.db, atOnce)
    expect(await valuesOf('p0')).toEqual([2, { referrer: 'bob' }])
  })

  test('that named others takes its own links with it, dangling ones by the sweep', async () => {
    await shop.send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { referrer: 'bob', friends: ['eve'] },
    })
    await remove('bob')
    await remove('ada')
    await cleanDanglingLinks(service.db, atOnce)
    expect(await count()).toBe(0)
  })
})

describe('the sweep', () => {
  test('leaves deletions younger than its grace, and follows them later', async () => {
    await linkTo(['bob'], 3)
    await remove('bob')
    expect(await cleanDanglingLinks(service.db, { graceMs: hourMs })).toBe(0)
    expect(await count()).toBe(3)
    expect(await cleanDanglingLinks(service.db, atOnce)).toBe(3)
  })

  test('run twice is harmless, and touches no link that leads somewhere', async () => {
    await linkTo(['bob', 'eve'], 4)
    await remove('bob')
    expect([await cleanDanglingLinks(service.db, atOnce), await cleanDanglingLinks(service.db, atOnce)]).toEqual([2, 0])
    expect(await count()).toBe(2)
  })

  test('of a hub and of many deletions ends only when all are followed, in every organization', async () => {
    await linkTo(['hub'], 1_050)
    await remove('hub')
    const other = await makeShop(service)
    const targets = names('t', 210)
    for (const [n, part] of [targets.slice(0, 100), targets.slice(100, 200), targets.slice(200)].entries())
      await other.send('POST', '/v1/people', { external_id: `s${n}`, attribute_values: { friends: part } })
    await writeAll(
      service.db,
      other,
      targets.map(target => write('delete', target)),
    )
    expect(await cleanDanglingLinks(service.db, atOnce)).toBe(1_260)
    expect([await count(), await count(other)]).toEqual([0, 0])
  })

  test('of several servers at once removes each link once, beside writers who go on', async () => {
    await linkTo(['bob', 'eve'], 200)
    await remove('bob')
    const writers = names('w', 20).map(name =>
      shop.send('POST', '/v1/people', { external_id: name, attribute_values: { referrer: 'bob' } }),
    )
    const sweeping = Promise.all([1, 2, 3].map(() => cleanDanglingLinks(service.db, atOnce)))
    expect((await Promise.all(writers)).every(reply => reply.status === 201)).toBe(true)
    expect((await sweeping).reduce((sum, swept) => sum + swept, 0)).toBe(100)
    expect(await count()).toBe(120)
    expect(await cleanDanglingLinks(service.db, atOnce)).toBe(0)
  })

  test('that is stopped in the middle is finished by the next one', async () => {
    await linkTo(['bob'], 3)
    await remove('bob')
    const stopping = new AbortController()
    const db: Database = {
      ...service.db,
      query: async (statement, values, signal) => {
        const rows = await service.db.query(statement, values, signal)
        // The service is told to stop while the deletions to follow are on their way.
        if (statement.name === 'read_deletions' && rows.length > 0) stopping.abort()
        return rows as never[]
      },
    }
    await cleanDanglingLinks(db, { ...atOnce, signal: stopping.signal })
    await cleanDanglingLinks(service.db, atOnce)
    expect(await count()).toBe(0)
  })

  test('that finds its batch taken by a server that then dies finishes the rest', async () => {
    await linkTo(['hub'], 1_050)
    await remove('hub')
    const dying = await service.db.connect()
    await dying.query('begin')
    await dying.query(
      `delete from links where organization_id = $1 and source_id in
         (select source_id from links where organization_id = $1 limit 1000)`,
      [shop.id],
    )
    const sweeping = cleanDanglingLinks(service.db, atOnce)
    await someoneWaits()
    await dying.query('commit')
    await dying.end()
    await sweeping
    await cleanDanglingLinks(service.db, atOnce)
    expect(await count()).toBe(0)
  })

  test('follows a young deletion later, even when an older one was committed after it', async () => {
    await linkTo(['slow', 'quick'], 2)
    const holder = await service.db.connect()
    await holder.query('begin')
    await holder.query('select 1 from entities where organization_id = $1 and external_id = $2 for update', [
      shop.id,
      'slow',
    ])
    const slow = remove('slow')
    await someoneWaits()
    const betweenMs = Date.now()
    // A deletion's time has milliseconds: the other one's is a later one.
    while (Date.now() === betweenMs);
    await remove('quick')
    await holder.query('commit')
    await holder.end()
    await slow
    const times = await service.sql<{ at: string }>(
      `select at from changes where organization_id = $1 and operation = 'delete' order by sequence`,
      [shop.id],
    )
    // The one that took its time first took its number last.
    expect(times.map(({ at }) => Date.parse(at) > betweenMs)).toEqual([true, false])
    const later = openedAt(service.db, Date.parse(times[1]!.at) + 1)
    await cleanDanglingLinks(later, { graceMs: 0 })
    await cleanDanglingLinks(service.db, atOnce)
    expect(await count()).toBe(0)
  })
})

/** A database for which the deletions before this moment are the old ones. */
function openedAt(db: Database, momentMs: number): Database {
  const before = new Date(momentMs).toISOString()
  return {
    ...db,
    query: (statement, values, signal) =>
      db.query(statement, statement.name === 'read_deletions' ? [values[0], before, values[2]] : values, signal),
  }
}
